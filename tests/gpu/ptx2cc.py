#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Translates PTX of a file of kernels/cuda (by nvcc) to C++ that runs by tests/gpu/executor.h.

ptx2cc.py FILE.ptx >FILE.cc

In: PTX; an unknown instruction ends the translation with its name. Out: a C++ function for each kernel and function, by the
PTX ISA (tests/gpu/ptx.h implements instructions that are more than an expression), and a table of kernels by their names in
host code.

A register becomes a variable of its size, a label a label. Addresses of a block's shared memory are offsets, since they must
fit 32 bits; all others are the CPU's own.
"""
import re
import struct
import sys

C_TYPE = {"pred": "bool", "f32": "float", "f64": "double"}
for bits in (8, 16, 32, 64):
    C_TYPE["b%d" % bits] = C_TYPE["u%d" % bits] = "uint%d_t" % bits
    C_TYPE["s%d" % bits] = "int%d_t" % bits
SPECIAL = {"%" + name + "." + axis: of + "." + axis
           for name, of in (("tid", "executor_thread"), ("ctaid", "executor_block"), ("ntid", "executor_block_dim"),
                            ("nctaid", "executor_grid_dim")) for axis in "xyz"}
SPECIAL["%laneid"] = "executor_lane()"
# Comparisons of two numbers. Those with u are also true for unordered ones (NaN).
ORDER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
UNORDERED = {"neu": "==", "ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
# Qualifiers that do not change the result of a load or store: cache hints and read-only hints.
CACHE = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "relaxed", "weak", "gpu", "sys", "L1", "L2"}

OTHERS = {"ld", "st", "cvt", "cvta", "setp", "atom", "shfl", "mma", "dp4a"}


class Unknown(Exception):
    pass


def size_of(kind):
    return 1 if kind == "pred" else int(kind[1:]) // 8


def plain(name):
    return name.lstrip("%").replace("$", "_").replace(".", "_")


class Function:
    """One kernel or function: the lines of C++ that it becomes."""

    def __init__(self, module, name, params, is_entry):
        self.module, self.name, self.params, self.is_entry = module, name, params, is_entry
        self.registers, self.used, self.lines, self.shared = [], {}, [], []
        self.symbols = {p[0] for p in params}
        self.threads = 0

    # ---- operands

    def register(self, name):
        """The type of a register, which is declared once it is used."""
        if name not in self.used:
            stem = re.match(r"%[A-Za-z]+", name).group(0)
            for declared, kind in self.registers:
                if declared in (name, stem):
                    self.used[name] = kind
                    break
            else:
                raise Unknown("register " + name)
        return self.used[name]

    def value(self, operand, kind):
        """The operand as a number of a type."""
        c = C_TYPE[kind]
        if operand in SPECIAL:
            return "(%s)%s" % (c, SPECIAL[operand])
        if operand.startswith("%"):
            held = self.register(operand)
            if C_TYPE[held] == c:
                return plain(operand)
            if "f" in (held[0], kind[0]):
                if size_of(held) != size_of(kind):
                    raise Unknown("%s taken as %s" % (held, kind))
                return "bits<%s>(%s)" % (c, plain(operand))
            return "(%s)%s" % (c, plain(operand))
        if re.match(r"0[fF][0-9A-Fa-f]{8}$", operand):
            if kind[0] == "f":
                return "bits<float>(0x%su)" % operand[2:]
            return "0x%su" % operand[2:]
        if re.match(r"-?(0x[0-9A-Fa-f]+|[0-9]+)U?$", operand):
            return "(%s)%s" % (c, operand.rstrip("U") + ("ull" if operand[0] != "-" else "ll"))
        return self.address_of(operand)

    def address_of(self, symbol):
        if symbol in self.module.shared:
            if symbol not in self.shared:
                self.shared.append(symbol)
            return plain(symbol)
        if symbol in self.symbols:
            return "(uint64_t)(uintptr_t)" + plain(symbol)
        raise Unknown("operand " + symbol)

    def put(self, operand, kind, expression):
        """The statement that gives a register a number of a type."""
        if operand == "_":
            return "(void)(%s);" % expression
        held = self.register(operand)
        if C_TYPE[held] == C_TYPE[kind] or kind[0] != "f" and held[0] != "f":
            return "%s = %s;" % (plain(operand), expression)
        if size_of(held) != size_of(kind):
            raise Unknown("%s put as %s" % (held, kind))
        return "%s = bits<%s>(%s);" % (plain(operand), C_TYPE[held], expression)

    def address(self, operand, space, size, stored):
        """Where [register or name + offset] is: a pointer."""
        m = re.match(r"\[\s*([%$\w.]+?)\s*(?:\+\s*(-?\d+)\s*)?\]$", operand)
        if not m:
            raise Unknown("address " + operand)
        base, offset = m.group(1), m.group(2) or "0"
        at = self.value(base, "u32" if space == "shared" else "u64") if base.startswith("%") else self.address_of(base)
        if space == "shared":
            return "block.at((uint32_t)(%s + %s), %d, %s)" % (at, offset, size, "true" if stored else "false")
        how = "there" if space in ("param", "local") else "stored" if stored else "loaded"
        return "%s(%s + %s, %d)" % (how, at, offset, size)

    # ---- instructions

    def compare(self, how, kind, a, b):
        x, y = self.value(a, kind), self.value(b, kind)
        if kind[0] == "f" and how in UNORDERED:
            return "!(%s %s %s)" % (x, UNORDERED[how], y)
        if kind[0] == "f" and how in ("ne", "equ"):
            return "%s(%s < %s || %s > %s)" % ("" if how == "ne" else "!", x, y, x, y)
        if kind[0] == "f" and how in ("num", "nan"):
            return "%s(%s != %s || %s != %s)" % ("" if how == "nan" else "!", x, x, y, y)
        if how not in ORDER:
            raise Unknown("comparison " + how)
        return "%s %s %s" % (x, ORDER[how], y)

    def memory(self, op, parts, args):
        """ld and st."""
        space, width = "generic", 1
        for part in parts[:-1]:
            if part in ("global", "shared", "local", "param"):
                space = part
            elif part in ("v2", "v4"):
                width = int(part[1])
            elif part not in CACHE:
                raise Unknown(op + "." + ".".join(parts))
        kind = parts[-1]
        there, names = (args[1], args[0]) if op == "ld" else (args[0], args[1])
        names = [n.strip() for n in names.strip("{}").split(",")]
        if len(names) != width:
            raise Unknown(op + " of %d" % len(names))
        c = C_TYPE[kind]
        at = self.address(there, space, size_of(kind) * width, op == "st")
        if op == "ld":
            return "{ const %s *from = (const %s *)%s; %s }" % (
                c, c, at, " ".join(self.put(n, kind, "from[%d]" % i) for i, n in enumerate(names)))
        return "{ %s *to = (%s *)%s; %s }" % (
            c, c, at, " ".join("to[%d] = %s;" % (i, self.narrow(n, kind)) for i, n in enumerate(names)))

    def narrow(self, operand, kind):
        """What a store takes of a register that may be wider."""
        if operand.startswith("%") and operand not in SPECIAL and self.register(operand)[0] != "f" and kind[0] != "f":
            return "(%s)%s" % (C_TYPE[kind], plain(operand))
        return self.value(operand, kind)

    def convert(self, parts, args):
        how = [p for p in parts[:-2] if p != "ftz"]
        to, of = parts[-2:]
        if to == "bf16x2" and of == "f32" and how == ["rn"]:
            return self.put(args[0], "b32", "bf16_pair(%s, %s)" % (self.value(args[1], of), self.value(args[2], of)))
        if to == "f16" and of == "f32" and how == ["rn"]:
            return self.put(args[0], "b16", "to_f16(%s)" % self.value(args[1], of))
        if to == "f32" and of == "f16" and not how:
            return self.put(args[0], to, "of_f16(%s)" % self.value(args[1], "b16"))
        x = self.narrow(args[1], of)
        if to[0] != "f" and of[0] != "f" and not how:
            return self.put(args[0], to, "(%s)%s" % (C_TYPE[to], x))
        if to == "f32" and of[0] != "f" and how == ["rn"]:
            return self.put(args[0], to, "(float)%s" % x)
        named = {("sat",): "saturated", ("rni",): "rintf", ("rzi",): "truncf", ("rmi",): "floorf", ("rpi",): "ceilf"}
        if to == "f32" and of == "f32" and tuple(how) in named:
            return self.put(args[0], to, "%s(%s)" % (named[tuple(how)], x))
        if to[0] in "su" and of == "f32" and tuple(how) in named and how != ["sat"]:
            return self.put(args[0], to, "to_whole<%s>(%s(%s))" % (C_TYPE[to], named[tuple(how)], x))
        raise Unknown("cvt." + ".".join(parts))

    def arithmetic(self, op, parts, args):
        """What gives one register one expression. None: it is no such instruction."""
        kind = parts[-1] if parts else ""
        mode = parts[:-1]
        if kind not in C_TYPE:
            return None
        c = C_TYPE[kind]
        if kind == "pred":
            x = [self.value(a, kind) for a in args[1:]]
            logic = {"and": "%s && %s", "or": "%s || %s", "xor": "%s != %s", "not": "!%s", "mov": "%s"}
            return self.put(args[0], kind, logic[op] % tuple(x)) if op in logic else None
        if kind == "f32":
            return self.floating(op, mode, args)
        unsigned = "u" + kind[1:]
        # The lower half of sums and products is the same for signed and unsigned numbers.
        if op in ("add", "sub", "and", "or", "xor") and not mode:
            sign = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}[op]
            return self.put(args[0], unsigned, "(%s)(%s %s %s)" % (
                C_TYPE[unsigned], self.value(args[1], unsigned), sign, self.value(args[2], unsigned)))
        if op in ("mul", "mad") and mode in (["lo"], ["wide"], ["hi"]):
            wide = {"2": "32", "4": "64"}.get(str(size_of(kind)))
            if mode == ["hi"] and size_of(kind) == 4:
                text = "(%s)((%s64_t)%s * %s >> 32)" % (c, c[:-4], self.value(args[1], kind), self.value(args[2], kind))
                result = kind
            elif mode == ["wide"] and wide:
                result = kind[0] + wide
                text = "(%s)%s * %s" % (C_TYPE[result], self.value(args[1], kind), self.value(args[2], kind))
            elif mode == ["lo"]:
                result = unsigned
                text = "(%s)(%s * %s)" % (C_TYPE[unsigned], self.value(args[1], unsigned), self.value(args[2], unsigned))
            else:
                raise Unknown(op + "." + ".".join(parts))
            if op == "mad":
                text = "(%s)(%s) + %s" % (C_TYPE["u" + result[1:]], text, self.value(args[3], "u" + result[1:]))
            return self.put(args[0], result, text)
        if op in ("div", "rem") and not mode:
            return self.put(args[0], kind, "%s(%s, %s)" % ("divided" if op == "div" else "rest",
                                                           self.value(args[1], kind), self.value(args[2], kind)))
        if op in ("min", "max") and not mode:
            return self.put(args[0], kind, "std::%s<%s>(%s, %s)" % (op, c, self.value(args[1], kind),
                                                                  self.value(args[2], kind)))
        if op in ("shl", "shr") and not mode:
            taken = unsigned if op == "shl" else kind
            return self.put(args[0], taken, "shifted_%s<%s>(%s, %s)" % (
                "left" if op == "shl" else "right", C_TYPE[taken], self.value(args[1], taken), self.value(args[2], "u32")))
        if op == "not" and not mode:
            return self.put(args[0], unsigned, "(%s)~%s" % (C_TYPE[unsigned], self.value(args[1], unsigned)))
        if op in ("neg", "abs") and not mode:
            x = self.value(args[1], unsigned)
            minus = "(%s)(0 - %s)" % (C_TYPE[unsigned], x)
            return self.put(args[0], unsigned, minus if op == "neg" else "(%s < 0 ? %s : %s)" % (self.value(args[1], kind), minus, x))
        if op == "mov" and not mode:
            return self.move(kind, args)
        if op == "selp" and not mode:
            return self.put(args[0], kind, "%s ? %s : %s" % (self.value(args[3], "pred"), self.value(args[1], kind),
                                                             self.value(args[2], kind)))
        if op == "popc" and kind == "b32":
            return self.put(args[0], "u32", "(uint32_t)__builtin_popcount(%s)" % self.value(args[1], "u32"))
        if (op, kind) in (("bfi", "b32"), ("bfe", "u32"), ("prmt", "b32")) and not mode:
            return self.put(args[0], kind, "%s(%s)" % (op, ", ".join(self.value(a, "u32") for a in args[1:])))
        return None

    def floating(self, op, mode, args):
        mode = [m for m in mode if m != "rn"]
        flushed = "ftz" in mode
        mode = [m for m in mode if m != "ftz"]
        x = [self.value(a, "f32") for a in args[1:]] if op != "selp" else []
        text = None
        if op == "selp":
            text = "%s ? %s : %s" % (self.value(args[3], "pred"), self.value(args[1], "f32"), self.value(args[2], "f32"))
        elif op == "mov" and not mode:
            text = x[0]
        elif op in ("ex2", "rcp", "lg2", "sqrt", "rsqrt") and mode == ["approx"]:
            text = ("flushed(%s(flushed(%s)))" if flushed else "%s(%s)") % ({
                "ex2": "exp2f", "rcp": "1.0f / ", "lg2": "log2f", "sqrt": "sqrtf", "rsqrt": "1.0f / sqrtf"}[op], x[0])
        elif flushed:
            text = None
        elif op in ("add", "sub", "mul", "div") and not mode:
            text = "%s %s %s" % (x[0], {"add": "+", "sub": "-", "mul": "*", "div": "/"}[op], x[1])
        elif op == "add" and mode == ["rz"]:
            text = "add_towards_zero(%s, %s)" % tuple(x)
        elif op == "fma" and not mode:
            text = "fmaf(%s, %s, %s)" % tuple(x)
        elif op == "fma" and mode == ["rm"]:
            text = "fma_downwards(%s, %s, %s)" % tuple(x)
        elif op in ("min", "max") and not mode:
            text = "%s_of(%s, %s)" % ("least" if op == "min" else "largest", x[0], x[1])
        elif op == "rcp" and not mode:
            text = "1.0f / %s" % x[0]
        elif op == "sqrt" and not mode:
            text = "sqrtf(%s)" % x[0]
        elif op == "abs" and not mode:
            text = "fabsf(%s)" % x[0]
        elif op == "neg" and not mode:
            text = "-%s" % x[0]
        elif op == "copysign" and not mode:
            text = "copysignf(%s, %s)" % (x[1], x[0])  # the sign of the first one
        return text and self.put(args[0], "f32", text)

    def move(self, kind, args):
        """mov, also of what has two halves."""
        half = {8: "b32", 4: "b16"}.get(size_of(kind))
        if args[0].startswith("{"):
            low, high = [a.strip() for a in args[0].strip("{}").split(",")]
            x = self.value(args[1], "u" + kind[1:])
            return "{ const auto both = %s; %s %s }" % (
                x, self.put(low, half, "(%s)both" % C_TYPE[half]),
                self.put(high, half, "(%s)(both >> %d)" % (C_TYPE[half], 8 * size_of(half))))
        if args[1].startswith("{"):
            low, high = [self.value(a.strip(), half) for a in args[1].strip("{}").split(",")]
            c = C_TYPE["u" + kind[1:]]
            return self.put(args[0], kind, "(%s)((%s)%s << %d | %s)" % (c, c, high, 8 * size_of(half), low))
        return self.put(args[0], kind, self.value(args[1], kind))

    def tile(self, name, args):
        known = {"m16n8k16.row.col.f32.bf16.bf16.f32": ("multiply_halves<false>", "f32"),
                 "m16n8k16.row.col.f32.f16.f16.f32": ("multiply_halves<true>", "f32"),
                 "m16n8k32.row.col.s32.s8.s8.s32": ("multiply_bytes", "s32")}
        call, kind = known[name]
        d, a, b, c = [[n.strip() for n in arg.strip("{}").split(",")] for arg in args]
        if (len(d), len(a), len(b), len(c)) != (4, 4, 2, 4):
            raise Unknown("mma of other fragments")
        return "{ const uint32_t word[6] = {%s}; %s sum[4] = {%s}; %s(sum, word); %s }" % (
            ", ".join(self.value(n, "b32") for n in a + b), C_TYPE[kind], ", ".join(self.value(n, kind) for n in c), call,
            " ".join(self.put(n, kind, "sum[%d]" % i) for i, n in enumerate(d)))

    def shuffle(self, how, args):
        d, _, p = args[0].partition("|")
        call = "shuffled(%s, %s, shuffle::%s, %s)" % (self.value(args[1], "b32"), self.value(args[2], "u32"), how,
                                                    ", ".join(self.value(a, "u32") for a in args[3:5]))
        return "{ const shuffle got = %s; %s %s }" % (call, self.put(d.strip(), "b32", "got.value"),
                                                    self.put(p.strip(), "pred", "got.is_other") if p else "")

    def other(self, op, parts, args):
        """What is for its effect."""
        name = ".".join([op] + parts)
        if op == "bra":
            return "goto %s;" % plain(args[0])
        if op == "ret" or op == "exit":
            return "return;"
        if op in ("ld", "st"):
            return self.memory(op, parts, args)
        if op == "cvt":
            return self.convert(parts, args)
        if op == "cvta":
            into = "to" in parts
            x = self.value(args[1], parts[-1])
            if "shared" in parts:
                x = "block.offset_of(%s)" % x if into else "block.address_of(%s)" % x
            return self.put(args[0], parts[-1], x)
        if op == "setp" and len(parts) in (2, 3):
            text = self.compare(parts[0], parts[-1], args[1], args[2])
            if len(parts) == 3:
                text = {"and": "(%s) && %s", "or": "(%s) || %s", "xor": "(%s) != %s"}[parts[1]] % (
                    text, self.value(args[3], "pred"))
            return self.put(args[0], "pred", text)
        if name in ("bar.sync", "barrier.sync") and args == ["0"]:
            return "__syncthreads();"
        if name == "bar.warp.sync":
            return "__syncwarp(%s);" % self.value(args[0], "u32")
        if op in ("membar", "fence") or name == "griddepcontrol.launch_dependents":
            return ";"
        if name == "prefetch.global.L2":
            return ";"
        if name == "griddepcontrol.wait":
            return "executor_await_before();"
        if op == "shfl" and parts[0] == "sync" and parts[2] == "b32":
            return self.shuffle(parts[1].upper(), args)
        if name.startswith("mma.sync.aligned."):
            return self.tile(name[len("mma.sync.aligned."):], args)
        if name == "cp.async.cg.shared.global" and args[2:] == ["16"]:
            return "executor_copy(%s, %s);" % (self.address(args[0], "shared", 16, True),
                                             self.address(args[1], "generic", 16, False))
        if name == "cp.async.commit_group":
            return "executor_end_copies();"
        if name == "cp.async.wait_group":
            return "executor_await_copies(%s);" % args[0]
        if name == "atom.global.add.u32":
            return "{ uint32_t *to = (uint32_t *)%s; const uint32_t before = *to; *to += %s; %s }" % (
                self.address(args[1], "global", 4, True), self.value(args[2], "u32"), self.put(args[0], "u32", "before"))
        if name == "dp4a.s32.s32":
            return self.put(args[0], "s32", "dp4a(%s, %s, %s)" % tuple(
                [self.value(a, "b32") for a in args[1:3]] + [self.value(args[3], "s32")]))
        raise Unknown(name)

    def instruction(self, text):
        guard = ""
        m = re.match(r"@(!?)(%\w+)\s+(.*)$", text, re.S)
        if m:
            guard, text = "if (%s%s) " % (m.group(1), self.value(m.group(2), "pred")), m.group(3)
        m = re.match(r"(\S+)\s*(.*)$", text, re.S)
        name, rest = m.group(1), m.group(2)
        if name.startswith("call"):
            return self.lines.append(guard + self.call(rest))
        parts = [p for p in re.split(r"\.|::", name) if p != "uni"]
        args = [a.strip() for a in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,])+", rest) if a.strip()]
        try:
            made = None if parts[0] in OTHERS else self.arithmetic(parts[0], parts[1:], args)
            made = made or self.other(parts[0], parts[1:], args)
        except (KeyError, IndexError, ValueError) as e:
            raise Unknown(text) from e
        self.lines.append(guard + made)

    def call(self, rest):
        m = re.match(r"([\w$]+)\s*,\s*\(([^)]*)\)$", rest)
        if not m or m.group(1) not in self.module.functions:
            raise Unknown("call of " + rest)
        return "run_%s(%s);" % (plain(m.group(1)), ", ".join(plain(a.strip()) for a in m.group(2).split(",")))

    def declare(self, text):
        """A directive in a body."""
        m = re.match(r"\.reg\s+\.(\w+)\s+(%\w+)(?:<\d+>)?$", text)
        if m:
            return self.registers.append((m.group(2), m.group(1)))
        if re.match(r"\.reg\s+\.b32\s+temp_param_reg$", text) or text.startswith(".pragma"):
            return None
        m = re.match(r"\.(shared|local|param)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?$", text)
        if not m:
            raise Unknown(text)
        space, name = m.group(1), m.group(4)
        align, size = extent(m.group(2), m.group(3), m.group(5))
        if space == "shared":
            self.module.shared[name] = (align, size)
        else:
            self.symbols.add(name)
            self.lines.append("alignas(%d) char %s[%d];" % (max(align, 8), plain(name), size))

    # ---- C++

    def write(self, out):
        args = "const char *all" if self.is_entry else ", ".join("const char *" + plain(p[0]) for p in self.params)
        if self.shared and not self.is_entry:
            raise Unknown("memory of a block in a function")
        out("static void run_%s(%s)\n{" % (plain(self.name), args))
        if self.is_entry:
            for name, _, _, offset in self.params:
                out("const char *const %s = all + %d;" % (plain(name), offset))
            out("const shared_memory block;" if self.shared else "")
        at, dynamic = 0, None
        for name in self.shared:
            align, size = self.module.shared[name]
            if size is None:
                dynamic = name
                continue
            at = (at + align - 1) // align * align
            out("enum { %s = %d };" % (plain(name), at))
            at += size
        at = (at + 15) // 16 * 16
        if dynamic:
            out("enum { %s = %d };" % (plain(dynamic), at))
        for name, kind in self.used.items():
            out("%s %s;" % (C_TYPE[kind], plain(name)))
        if self.is_entry and self.module.target < 90:
            out("executor_await_before();")  # such a GPU overlaps nothing
        for line in self.lines:
            out(line)
        out("}\n")
        if self.is_entry:
            out('extern "C" void %s();' % self.name)
            out("static const int sizes_%s[] = {%s};" % (self.name, ", ".join(
                str(n) for _, _, size, offset in self.params for n in (offset, size))))
            out("static const ptx_kernel kernel_%s((const void *)%s, \"%s\", run_%s, %d, sizes_%s, %d, %d);\n" % (
                self.name, self.name, self.name, self.name, len(self.params), self.name, at, self.threads))


def extent(align, kind, count):
    """What a variable takes: how it is aligned, and its bytes, None: what the launch says."""
    size = size_of(kind)
    if count == "":
        return int(align or size), None
    return int(align or size), size * int(count or 1)


class Module:
    def __init__(self, text):
        text = re.sub(r"//[^\n]*", "", text)
        self.target = int(re.search(r"\.target\s+sm_(\d+)", text).group(1))
        self.shared, self.functions, self.all = {}, set(), []
        for m in re.finditer(r"^\s*(?:\.extern\s+)?\.shared\s+\.align\s+(\d+)\s+\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?;", text, re.M):
            self.shared[m.group(3)] = extent(m.group(1), m.group(2), m.group(4))
        for m in re.finditer(r"^\s*((?:\.(?:visible|weak)\s+)?\.(entry|func))\s+([\w$]+)\s*\(([^)]*)\)(.*?)^\{(.*?)^\}", text,
                             re.M | re.S):
            self.function(m.group(2) == "entry", m.group(3), m.group(4), m.group(5), m.group(6))
        rest = re.sub(r"^\s*((?:\.(?:visible|weak)\s+)?\.(entry|func))\s+([\w$]+)\s*\(([^)]*)\)(.*?)^\{(.*?)^\}", "", text,
                      flags=re.M | re.S)
        for line in rest.split("\n"):
            line = line.strip()
            if line and not re.match(r"\.(version|target|address_size|(extern\s+)?\.?shared)\b", line):
                raise Unknown(line)

    def function(self, is_entry, name, params, directives, body):
        listed, offset = [], 0
        for text in [p.strip() for p in params.split(",") if p.strip()]:
            text = re.sub(r"\.ptr\s+(\.\w+\s+)?\.align\s+\d+\s+", "", text)  # of what a pointer points to
            m = re.match(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?$", text)
            if not m:
                raise Unknown(text)
            align, size = extent(m.group(1), m.group(2), m.group(4))
            offset = (offset + align - 1) // align * align
            listed.append((m.group(3), align, size, offset))
            offset += size
        f = Function(self, name, listed, is_entry)
        m = re.search(r"\.maxntid\s+(\d+)(?:,\s*(\d+),\s*(\d+))?", directives)
        f.threads = int(m.group(1)) * int(m.group(2) or 1) * int(m.group(3) or 1) if m else 0
        body = re.sub(r"^[ \t]*\{(.*;)[ \t]*\}[ \t]*$", r"\1", body, flags=re.M)  # of inline assembly
        body = re.sub(r"\btmp\b", "_", re.sub(r"\.reg \.b16 tmp;", "", body))  # a half that nobody takes
        body = re.sub(r"^[ \t]*([{}])[ \t]*$", r"\1;", body, flags=re.M)  # of a call
        body = re.sub(r"^[ \t]*([$\w]+:)[ \t]*$", r"\1;", body, flags=re.M)
        for text in [t.strip() for t in body.split(";") if t.strip()]:
            if text in ("{", "}"):
                f.lines.append(text)
            elif text.endswith(":"):
                f.lines.append(plain(text[:-1]) + ":;")
            elif text.startswith("."):
                f.declare(text)
            else:
                f.instruction(text)
        self.functions.add(name)
        self.all.append(f)


def main():
    try:
        module = Module(open(sys.argv[1]).read())
        lines = ['#include "tests/gpu/ptx.h"\n']
        for f in module.all:
            f.write(lines.append)
    except Unknown as e:
        sys.exit("ptx2cc.py: %s: not known: %s" % (sys.argv[1], e))
    print("\n".join(lines))


main()
