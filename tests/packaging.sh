#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/packaging names this version and every library that configure.ac requires, with its options. Each file is accepted
# by the tool that it is written for, if that is installed: Python, tclsh and Environment Modules, Lua, EasyBuild, spython.
# With CAKE_PACKAGING=1 (tests/long.sh packaging) a missing tool is a failure.
. "$(dirname "$0")/shell.sh"

packaging=$root/docs/packaging
spack=$packaging/spack/packages/cake-mpi/package.py
version=$(sed -n 's/^AC_INIT(\[cake-mpi\], \[\([0-9.]*\)\].*/\1/p' "$root/configure.ac")
easyconfig=$(echo "$packaging"/easybuild/*.eb)
here() { # TOOL WHAT : whether there is one; if not, that is said
    command -v "$1" >/dev/null && return 0
    echo "  no $1: $2 is not tried"
    [ -z "${CAKE_PACKAGING:-}" ] || ok "$1 is here for $2" 1
    return 1
}

# pkg-config's name (of macros that ask otherwise: the macro's), then what Spack and EasyBuild call it.
cat >"$dir/names" <<'END'
jansson jansson Jansson
libpcre2-8 pcre2 PCRE2
libutf8proc utf8proc utf8proc
hwloc hwloc hwloc
zlib zlib-api zlib
libzstd zstd zstd
CAKE_CHECK_YAML libyaml libyaml
CAKE_CHECK_CUNIT cunit CUnit
CAKE_CHECK_HDF5 hdf5 HDF5
CAKE_CHECK_CURL curl cURL
END
# The requirements of configure.ac: name, minimum version, Debian's package.
sed -nE 's/^CAKE_CHECK_MODULE\(\[[A-Z0-9]*\], \[([^] ]*)( >= ([0-9.]*))?\], \[([^]]*)\].*/\1 \3 \4/p' "$root/configure.ac" >"$dir/asked"
[ "$(wc -l <"$dir/asked")" -ge 4 ]
ok "configure.ac asks for libraries" $?
while read -r name least package; do
    read -r _ in_spack in_eb < <(grep "^$name " "$dir/names") || { ok "tests/packaging.sh knows how others call $name" 1; continue; }
    grep -qF "depends_on(\"$in_spack@${least%.0}:\"" "$spack"
    ok "Spack: $in_spack from ${least%.0}" $?
    grep -q "^    ('$in_eb', '" "$easyconfig"
    ok "EasyBuild: $in_eb" $?
    grep -q "apt-get install .* $package\( \|\$\)" "$packaging/apptainer/cake-mpi.def"
    ok "Apptainer: $package" $?
done <"$dir/asked"
for name in $(sed -nE 's/^(CAKE_CHECK_[A-Z0-9]+)$/\1/p' "$root/configure.ac"); do
    case $name in
    *_MPI | *_VECTORS | *_CXX | *_CUDA | *_NCCL) continue ;; # every package's own; for tests; recipes are of CPUs
    esac
    read -r _ in_spack in_eb < <(grep "^$name " "$dir/names") || { ok "tests/packaging.sh knows what $name asks for" 1; continue; }
    grep -q "depends_on(\"$in_spack[@\"]" "$spack" && grep -q "^    ('$in_eb', '" "$easyconfig"
    ok "$in_spack" $?
done
for file in "$spack" "$easyconfig" "$packaging/apptainer/cake-mpi.def" "$packaging/modulefiles/cake-mpi/$version" "$packaging/modulefiles/cake-mpi/$version.lua"; do
    grep -qF "$version" "$file" 2>/dev/null
    ok "the version of ${file##*/}" $?
done

# The recipe's words by a stand-in: that it is Python, which directives it uses, what configure gets.
if here python3 "Spack's recipe"; then
    python3 - "$spack" >"$dir/out" 2>"$dir/err" <<'END'
import sys, types
calls = []
module = types.ModuleType("spack.package")
for name in "version variant depends_on license".split():
    setattr(module, name, lambda *a, _name=name, **k: calls.append((_name, a, k)))
class AutotoolsPackage: pass
module.AutotoolsPackage = AutotoolsPackage
sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": module})
space = {}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), space)
class Spec:
    mpicc, prefix = "/m/mpicc", "/p"
    def __init__(self, on): self.on = on
    def __getitem__(self, name): return self
    def satisfies(self, what): return (what in ("+hdf5",)) == self.on
package = space["CakeMpi"]()
for package.spec in Spec(True), Spec(False):
    print(*package.configure_args())
assert all(n != "depends_on" or isinstance(a[0], str) for n, a, k in calls)
END
    ok "Spack's recipe is Python" $?
    "$root/configure" --help >"$dir/help" 2>/dev/null || : >"$dir/help"
    [ "$(wc -l <"$dir/out")" = 2 ] && grep -q 'MPICC=/m/mpicc --with-hdf5=/p$' "$dir/out" && grep -q 'MPICC=/m/mpicc --without-hdf5$' "$dir/out"
    ok "what configure gets from it" $?
fi
# Options that it and the others give are configure's.
if [ -s "$dir/help" ]; then
    grep -hoE -- '--with(out)?-[a-z0-9]+' "$spack" "$easyconfig" "$packaging/apptainer/cake-mpi.def" | sed -E 's/--with(out)?-//' | sort -u | while read -r option; do
        grep -qE -- "--with(out)?-$option" "$dir/help" || echo "$option"
    done >"$dir/unknown"
    unknown=$(cat "$dir/unknown")
    [ -z "$unknown" ]
    ok "configure knows their options $unknown" $?
fi

if here tclsh "the Tcl modulefile"; then
    cat >"$dir/try.tcl" <<'END'
foreach word {module-whatis conflict prereq} { proc $word args {} }
proc prepend-path {name value} { puts "$name $value" }
source [lindex $argv 0]
END
    tclsh "$dir/try.tcl" "$packaging/modulefiles/cake-mpi/$version" >"$dir/tcl" 2>"$dir/err" && grep -qx "PATH /opt/cake-mpi/$version/bin" "$dir/tcl"
    ok "the Tcl modulefile" $?
fi
lua=$(command -v lua5.3 lua5.4 lua | head -n 1)
if here "${lua:-lua}" "the Lua modulefile"; then
    cat >"$dir/try.lua" <<'END'
function help() end whatis, conflict, prereq = help, help, help
function pathJoin(a, b) return a .. "/" .. b end
function prepend_path(name, value) print(name .. " " .. value) end
dofile(arg[1])
END
    "$lua" "$dir/try.lua" "$packaging/modulefiles/cake-mpi/$version.lua" >"$dir/lua" 2>"$dir/err"
    ok "the Lua modulefile" $?
    [ ! -e "$dir/tcl" ] || cmp "$dir/tcl" "$dir/lua"
    ok "both say the same" $?
fi
# Checks that need further tools run in the long tests only.
[ -n "${CAKE_PACKAGING:-}" ] || finish
modules=/usr/share/modules/init/bash
if [ -e $modules ]; then
    cat >"$dir/load" <<'END'
. "$1" && module use "$2" && module load cake-mpi && echo ":$PATH:$MANPATH:" && module unload cake-mpi && echo ":$PATH:$MANPATH:"
END
    bash "$dir/load" $modules "$packaging/modulefiles" >"$dir/out" 2>&1 && sed -n 1p "$dir/out" | grep -F ":/opt/cake-mpi/$version/bin:" | grep -qF ":/opt/cake-mpi/$version/share/man:"
    ok "Environment Modules load it" $?
    [ "$(wc -l <"$dir/out")" = 2 ] && ! sed -n 2p "$dir/out" | grep -q cake-mpi
    ok "... and unload it" $?
else
    ok "there are no Environment Modules" 1
fi
# Tools of PyPI are in the folder of $CAKE_PYTHON.
python=${CAKE_PYTHON:-$(command -v python3)}
PATH=$(dirname "$python"):$PATH
export EASYBUILD_MODULES_TOOL=EnvironmentModules EASYBUILD_MODULE_SYNTAX=Tcl EB_PYTHON=$python
if here eb "the easyconfig"; then
    easybuild() { # OPTION...
        # shellcheck disable=SC1090
        (set +u && . $modules && eb --allow-use-as-root-and-accept-consequences --prefix="$dir/eb" "$@" "$easyconfig") >"$dir/out" 2>&1
    }
    easybuild --check-style && grep -q 'All style checks PASS' "$dir/out"
    status=$?
    [ $status = 0 ] || tail -n 9 "$dir/out"
    ok "EasyBuild has nothing to say of its style" $status
    easybuild --dry-run --robot &&
        grep -q "cake-mpi/$version" "$dir/out" && grep -q '/HDF5-' "$dir/out" && grep -q '/OpenMPI-' "$dir/out"
    status=$?
    [ $status = 0 ] || tail -n 5 "$dir/out"
    ok "EasyBuild finds everything that the easyconfig asks for" $status
fi
if here spython "Apptainer's definition"; then
    spython recipe --parser singularity "$packaging/apptainer/cake-mpi.def" >"$dir/out" 2>&1 && grep -q '^FROM debian:12' "$dir/out" &&
        grep -q "^ADD cake-mpi-$version.tar.gz" "$dir/out" && grep -q '^RUN make install' "$dir/out" && grep -q 'expected.jsonl.*tests.sh' "$dir/out"
    ok "Apptainer's definition has its parts" $?
    sed -n '/^%post/,/^%test/p' "$packaging/apptainer/cake-mpi.def" | sed '1d;$d' | sh -n
    ok "... and its script is one" $?
fi
finish
