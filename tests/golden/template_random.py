# SPDX-License-Identifier: Apache-2.0
"""Draws random templates from a small grammar, for template.py; the same seed gives the same templates."""
import random

NUMBERS = ["5", "-5", "0", "42", "1234567", "255", "true", "2.5", "-0.0", "1234.5678", "1e10", "1e22", "0.00001",
           "123456789.0", "100.0", "0.1", "9.9995", "65", "1e300*n*1e10", "-1e300*n*1e10"]
OTHERS = ["'ab'", "'h\xe9llo'", "''", "none", "[1]", "'<'|safe", "nope"]


def formats(seed, count):
    """Formats of all three kinds, most of them right."""
    draw = random.Random(seed)

    def one(*parts):
        return "".join(draw.choice(p) for p in parts)

    for _ in range(count):
        value = draw.choice(NUMBERS if draw.random() < .75 else OTHERS)
        if draw.random() < .5:
            spec = one(["", "", "<", ">", "^", "=", "*^", "\xe9>", "0="], ["", "", "", "+", "-", " "],
                       ["", "", "0"], ["", "", "5", "10", "20", "1"])
            kind = draw.choice(["", "", *"dsfegxXGEFrq"])
            spec += one(["", "", "", ".0", ".1", ".2", ".3", ".10", "."]) * (kind != "") + kind
            yield "{{ '{%s:%s}|'.format(%s) }}" % (draw.choice(["", "", "", "", "!r", "!s"]), spec, value)
        else:
            kind = draw.choice("diuxXeEfFgGrs%q")
            spec = "%" + one(["", "", "-", "0", "+", " ", "0-", "+0"], ["", "", "5", "10", "1"])
            spec += one(["", "", "", ".0", ".2", ".5", "."]) * (kind not in "diuxX") + kind
            yield "{{ '%s|' %% (%s,) }}" % (spec, value)


NAMES = "text spaces lines n x yes no nothing list words dict empty people messages obj nope a b i s ns.v loop.index".split()
TEXTS = ["'a'", "'Hello World'", "''", "'a,b,c'", "' x '", "'l'", "'1'", "'3.7'", "'\xe9\xdf'", "'<b>'", "'a\\nb\\n'",
         "'name'", "'age'", "text", "spaces", "lines", "words[0]", "messages[0].role"]
INTS = ["0", "1", "2", "3", "-1", "-2", "7", "n", "list[0]", "text|length", "10"]
LISTS = ["list", "words", "empty", "[1, 'a', none]", "range(4)", "people", "dict", "(1, 2)", "[[1, 2], [3]]", "text",
         "people|map(attribute='name')", "dict.items()", "dict.keys()", "[1.5, true, 2]", "['b', 'a', 'B']", "'cab'"]
TEXT_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "trim({t})", "length", "replace({t}, {t})",
                "replace({t}, {t}, {i})", "default({t})", "default({t}, true)", "e", "string", "tojson", "list",
                "indent({i})", "indent({i}, true)", "int",
                "int({i})", "float", "reverse", "first", "last", "safe", "join({t})", "unique|list", "sort|join",
                "format({e})", "abs", "round", "escape|upper", "safe|replace({t}, '<')"]
LIST_FILTERS = ["length", "first", "last", "join({t})", "join", "sort|list", "sort(reverse={b})", "unique|list", "reverse|list",
                "list", "min", "max", "sum",
                "map('upper')|list", "map('string')|join('|')", "map(attribute={t})|list", "map('length')|list",
                "select|list", "reject|list", "select('odd')|list", "reject('string')|list", "selectattr({t})|list",
                "selectattr('age', 'gt', {i})|list", "rejectattr('age', 'equalto', 31)|map(attribute='name')|list",
                "tojson", "tojson(indent={i})", "string", "default({e})", "dictsort", "items|list",
                "map('default', {e})|list", "map('int')|list", "map('first')|list", "sum(start={i})", "sort(attribute={t})",
                "select('in', {l})|list", "map('replace', {t}, {t})|list", "select('equalto', {e})|list"]
METHODS = [".upper()", ".lower()", ".strip()", ".strip({t})", ".lstrip({t})", ".rstrip()", ".split()", ".split({t})",
           ".split({t}, {i})", ".rsplit({t}, {i})", ".splitlines()", ".replace({t}, {t})", ".startswith({t})",
           ".endswith({t})", ".find({t})", ".rfind({t}, {i})", ".count({t})", ".title()", ".capitalize()", ".isdigit()",
           ".isalpha()", ".isalnum()", ".isupper()", ".islower()", ".isspace()", ".join({l})",
           ".partition({t})", ".rpartition({t})",
           ".removeprefix({t})", ".removesuffix({t})", ".index({t})"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "mapping", "sequence", "iterable", "boolean",
         "true", "false", "odd", "even", "divisibleby({i})", "equalto({e})", "in({l})", "lower", "upper", "callable",
         "sameas(none)", "gt({i})", "lt({e})", "ne({e})", "escaped"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "not in"]


class Grammar:
    def __init__(self, seed):
        self.draw = random.Random(seed)

    def pick(self, options):
        return self.draw.choice(options)

    def fill(self, pattern, depth):
        out = pattern
        for mark, make in (("{t}", lambda: self.pick(TEXTS)), ("{i}", lambda: self.pick(INTS)),
                           ("{l}", lambda: self.pick(LISTS)), ("{b}", lambda: self.pick(["true", "false"])),
                           ("{e}", lambda: self.expression(depth - 1))):
            while mark in out:
                out = out.replace(mark, make(), 1)
        return out

    def atom(self):
        return self.pick([self.pick(NAMES), self.pick(TEXTS), self.pick(INTS), self.pick(LISTS), "none", "true", "2.5", "{}"])

    def expression(self, depth):
        if depth <= 0:
            return self.atom()
        kind = self.draw.randrange(13)
        if kind < 2:
            return self.atom()
        if kind < 4:
            return "%s|%s" % (self.pick(TEXTS), self.fill(self.pick(TEXT_FILTERS), depth))
        if kind < 6:
            return "(%s)|%s" % (self.pick(LISTS), self.fill(self.pick(LIST_FILTERS), depth))
        if kind == 6:
            return "%s%s" % (self.pick(TEXTS), self.fill(self.pick(METHODS), depth))
        if kind == 7:
            return "(%s) is %s%s" % (self.expression(depth - 1), self.pick(["", "not "]), self.fill(self.pick(TESTS), depth))
        if kind < 10:
            return "(%s %s %s)" % (self.expression(depth - 1), self.pick(OPERATORS), self.expression(depth - 1))
        if kind == 10:
            return "(%s if %s else %s)" % tuple(self.expression(depth - 1) for _ in range(3))
        if kind == 11:
            index = self.pick(["%s", "%s:", ":%s", "::%s", "1:%s"]) % self.pick(INTS)
            return "%s[%s]" % (self.pick(["text", "list", "words", "lines", "(1, 2, 3)", "range(5)", "messages"]), index)
        return "%s|%s|%s" % (self.pick(TEXTS + LISTS[:4]), self.fill(self.pick(TEXT_FILTERS), depth),
                             self.fill(self.pick(TEXT_FILTERS + LIST_FILTERS), depth))

    def tag(self, text):
        return "{%" + self.pick(["", "", "", "-", "+"]) + " " + text + " " + self.pick(["", "", "", "-", "+"]) + "%}"

    def data(self):
        return self.pick(["", " ", "\n", "a", "  \n  ", "\n\n", "x y", "\t", "b \n", "  ", "\n\n  "])

    def body(self, depth, loop=False):
        return "".join(self.data() + self.statement(depth, loop) for _ in range(self.draw.randrange(1, 4))) + self.data()

    def statement(self, depth, loop):
        kind = self.draw.randrange(6 if depth <= 0 else 17)
        e = lambda: self.expression(self.draw.randrange(3))
        inside = lambda in_loop=loop: self.body(depth - 1, in_loop)
        if kind < 3:
            return "{{" + self.pick(["", "", "-"]) + " " + e() + " " + self.pick(["", "", "-"]) + "}}"
        if kind == 3:
            return self.tag("set %s = %s" % (self.pick(["a", "b", "s", "ns.v", "i"]), e()))
        if kind == 4:
            return self.tag(self.pick(["break", "continue"])) if loop and self.draw.random() < .4 else self.data()
        if kind == 5:
            return "{#" + self.pick(["", "-", "+"]) + " c " + self.pick(["", "-", "+"]) + "#}"
        if kind < 9:
            other = self.tag("else") + inside() if self.draw.random() < .4 else ""
            return self.tag("if " + e()) + inside() + other + self.tag("endif")
        if kind < 12:
            head = "for %s in %s" % (self.pick(["i", "i", "a", "a, b"]), self.pick(LISTS))
            head += " if " + e() if self.draw.random() < .2 else ""
            other = self.tag("else") + inside() if self.draw.random() < .2 else ""
            return self.tag(head) + self.pick(["", "{{ i }}", "{{ loop.index }}"]) + inside(True) + other + self.tag("endfor")
        if kind == 12:
            filters = self.pick(["", "", "|upper", "|trim|length"])
            return self.tag("set s" + filters) + inside() + self.tag("endset") + "{{ s }}"
        if kind == 13:
            return self.tag("filter " + self.pick(["upper", "trim", "indent(2)", "replace('a', 'o')"])) + inside() + self.tag("endfilter")
        if kind == 14:
            return self.tag("with a = %s, b = n" % e()) + inside() + self.tag("endwith")
        if kind == 15:
            called = "{{ m(%s) }}" % ", ".join(e() for _ in range(self.draw.randrange(3)))
            return self.tag("macro m(a, b=%s)" % self.pick(INTS)) + self.body(depth - 1) + self.tag("endmacro") + called
        call = self.tag("macro w(a)") + "[{{ caller() }}]" + self.tag("endmacro")
        return call + self.tag("call w(1)") + self.body(depth - 1) + self.tag("endcall")


def templates(seed, count):
    """Whole templates and single expressions, in turn."""
    grammar = Grammar(seed)
    for i in range(count):
        if i % 2:
            yield "{{ " + grammar.expression(3) + " }}"
        else:
            yield "{% set ns = namespace(v=0) %}" + grammar.body(3)
