#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# layers.sh, style.sh and circles.sh must pass a small good tree and find each of the faults that are put into it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# The good tree: one file per folder that matters, and this project's layout rules.
fresh() {
    rm -rf "$tree"
    mkdir -p "$tree/src/base" "$tree/src/link" "$tree/src/run" "$tree/src/tokenizer" "$tree/src/slice" "$tree/kernels/cpu" "$tree/tests"
    cp "$here/../.clang-format" "$tree/"
    local head='/* SPDX-License-Identifier: Apache-2.0 */'
    printf '%s\n#include <stdio.h>\n' "$head" >"$tree/src/base/base.c"
    printf '%s\n#include <mpi.h>\n\n#include "base/base.h"\n' "$head" >"$tree/src/link/comm.c"
    printf '%s\n#include "link/comm.h"\n#include "tokenizer/tokenizer.h"\n' "$head" >"$tree/src/run/cmd_run.c"
    printf '%s\n#include "base/base.h"\n/* exit(1) in a comment, and MPI_Abort() */\n' "$head" >"$tree/src/tokenizer/tokenizer.c"
    printf '%s\n#include "model/model.h"\nconst char *text = "exit(1)";\n' "$head" >"$tree/src/slice/slice.c"
    printf '%s\n#include <immintrin.h>\n' "$head" >"$tree/kernels/cpu/cpu.c"
    printf '%s\n#include "run/run.h"\n\nint main(void)\n{\n    exit(0);\n}\n' "$head" >"$tree/src/main.c"
}

# must GATE WANTED_STATUS NAME
must() {
    local gate=$1 wanted=$2 name=$3 got
    top_srcdir=. "$here/$gate.sh" "$tree" >"$tree/log" 2>&1
    got=$?
    if [ "$got" -ne "$wanted" ]; then
        echo "FAILED: $gate.sh: $name: status $got, expected $wanted"
        sed 's/^/    /' "$tree/log"
        failed=1
    fi
}

# layer NAME FILE LINE: the line is added to the file of a good tree, and layers.sh must find it.
layer() {
    fresh
    printf '%s\n' "$3" >>"$tree/$2"
    must layers 1 "$1"
}
style() {
    fresh
    printf '%b\n' "$3" >>"$tree/$2"
    must style 1 "$1"
}

# retired NAME FILE LINE: style.sh must find a retired word in it.
retired() {
    style "a retired word in $1" "$2" "$3"
    grep -q "retired word" "$tree/log" || { echo "FAILED: style.sh: $1: not for its retired word"; failed=1; }
}

fresh
must layers 0 "the good tree"
must style 0 "the good tree"
layer "base includes a folder above it" src/base/base.c '#include "tokenizer/tokenizer.h"'
layer "siblings" src/tokenizer/tokenizer.c '#include "sample/sample.h"'
layer "siblings in row 2 with kernels" src/link/comm.c '#include "model/model.h"'
layer "link is no business of slice" src/slice/slice.c '#include "link/link.h"'
layer "kernels include the model" kernels/cpu/cpu.c '#include "model/model.h"'
layer "main goes around run" src/main.c '#include "tokenizer/tokenizer.h"'
layer "an include without a folder" src/run/cmd_run.c '#include "run.h"'
layer "mpi.h in run" src/run/cmd_run.c '#include <mpi.h>'
layer "jansson outside its door" src/tokenizer/tokenizer.c '#include <jansson.h>'
layer "a second door" src/base/base.c '#include <pcre2.h>'
layer "a header in no row" src/base/base.c '#include <openssl/sha.h>'
fresh
mkdir -p "$tree/src/schedule" && printf '%s\n#include "schedule/internal.h"\n' '/* SPDX */' >"$tree/src/schedule/page_pool.c"
must layers 1 "upwards inside a folder"
layer "exit() outside main.c" src/base/base.c 'void f(void) { exit(1); }'
layer "MPI_Abort() outside comm.c" src/run/cmd_run.c 'void f(void) { MPI_Abort(MPI_COMM_WORLD, 1); }'
layer "a call of MPI elsewhere" src/slice/slice.c 'void f(void) { MPI_Barrier(0); }'
mkdir -p "$tree/src/util" && printf '/* SPDX */\n' >"$tree/src/util/util.c"
must layers 1 "a folder in no row"

style "a function of 81 lines" src/base/base.c "\nvoid f(void)\n{\n$(printf '    f();\\n%.0s' $(seq 81))}"
style "a file of 651 lines" src/base/base.c "$(printf 'int x;\\n%.0s' $(seq 650))"
retired "a public function" src/base/base.c "int cake_mail_open(void);"
retired "a type" src/base/base.c "typedef struct seat { int n; } seat;"
retired "a static function" src/base/base.c "static int open_desk(void);"
retired "a local" src/base/base.c "\nint f(void)\n{\n    int n_stretch = 1;\n    return n_stretch;\n}"
retired "a field" src/base/base.c "struct x {\n    int starved_s;\n};"
retired "a field, of a word that a local may have" src/base/base.c "int n = f(x)->room;"
retired "a macro" src/base/base.c "#define CAKE_MAX_PARCELS 3"
style "a retired name" src/base/base.c "int cake_schedule_push(int change);"
retired "the topic of a message" src/base/base.c "int n = f(1, \"conductor\", \"text\");"
retired "a local after a comment" src/base/base.c "/* one\n * two */ int desk;"
retired "a kernel" kernels/cpu/cpu.c "int n_portion;"
retired "the name of a file" src/base/outpost_io.c "/* SPDX-License-Identifier: Apache-2.0 */"
fresh
printf '%s\n' '' '/* a seat of one,' ' * a desk of another */' 'int desktop, best; /* seat */' \
    'const char *text = "a desk and a \"seat\"";' >>"$tree/src/base/base.c"
must style 0 "retired words in comments and texts"
style "a status of a command in a text" tests/base.sh 'true; ok "at $''(date)" $?'
style "something unfinished" src/base/base.c "/* TO""DO: later */"
fresh
sed -i 1d "$tree/src/base/base.c"
must style 1 "no licence line"
fresh
mkdir "$tree/docs"
# shellcheck disable=SC2016
printf '%s\n' '`src/base/base.c`, `base/base.c`, `base.c` and `cpu/NAME.h`, not gone.c' >"$tree/docs/page.md"
must style 0 "a page that names files as they are"
# shellcheck disable=SC2016
printf '%s\n' '`slice/base.c`' >>"$tree/docs/page.md"
must style 1 "a page that names a file that is gone"
# The layout can be judged where clang-format 14 is; where it must be there, style.sh says so.
fresh
must style 0 "the good tree again"
if grep -q 'not checked here: the layout' "$tree/log"; then
    echo "not checked here: whether a wrong layout is found (clang-format 14 is not installed)"
else
    style "a function of 80 lines is fine, the layout is not" src/base/base.c "\nvoid f(void) {\n        f(); }"
fi

# circle WANTED_STATUS NAME FILE=LINE...: these files alone, compiled, are what circles.sh judges.
circle() {
    local wanted=$1 name=$2 file
    fresh
    shift 2
    for file in "$@"; do
        mkdir -p "$tree/$(dirname "${file%%=*}")"
        printf '%s\n' "${file#*=}" >"$tree/${file%%=*}.c"
        "${CC:-cc}" -c "$tree/${file%%=*}.c" -o "$tree/$(dirname "${file%%=*}")/libcake_a-$(basename "${file%%=*}").o" || exit 2
    done
    top_builddir=$tree must circles "$wanted" "$name"
}
if command -v "${CC:-cc}" >/dev/null; then
    circle 0 "one way" "src/base/a=void b(void); void a(void) { b(); }" "src/base/b=void b(void) {}"
    circle 1 "two files need each other" "src/base/a=void b(void); void a(void) { b(); }" \
        "src/base/b=void a(void); void b(void) { a(); }"
    circle 1 "three files in a circle" "src/base/a=void b(void); void a(void) { b(); }" \
        "src/base/b=void c(void); void b(void) { c(); }" "src/base/c=void a(void); void c(void) { a(); }"
    circle 1 "two folders, four files" "src/base/a=void b(void); void a(void) { b(); }" "src/link/b=void b(void) {}" \
        "src/link/c=void d(void); void c(void) { d(); }" "src/base/d=void d(void) {}"
    circle 0 "a circle that is listed" "src/slice/layer=void b(void); void a(void) { b(); }" \
        "src/slice/mlp=void a(void); void b(void) { a(); }"
    circle 1 "a listed circle that is gone" "src/slice/layer=void b(void); void a(void) { b(); }" \
        "src/slice/mlp=void b(void) {}"
else
    echo "not checked here: whether circles.sh finds a circle (no compiler ${CC:-cc})"
fi
# Every folder of src has a rule to run its tests, and is a topic of messages.
for folder in "$here"/../src/*/; do
    folder=$(basename "$folder")
    grep -q "^check-.*\\bcheck-$folder\\b\|^check-$folder\\b" "$here/local.am" || { echo "FAILED: tests/local.am has no check-$folder"; failed=1; }
    grep -q "[{ ]\"$folder\"[,}]" "$here/../src/base/log.c" || { echo "FAILED: src/base/log.c has no topic $folder"; failed=1; }
done
# The pages of these folders name every file there.
for page in bench tests/gpu tests/run; do
    for file in "$here/../$page"/*.{c,cc,gp,py,sh}; do
        name=$(basename "$file")
        [ ! -e "$file" ] || grep -qF "\`$name\`" "$here/../$page/README.md" || { echo "FAILED: $page/README.md has no $name"; failed=1; }
    done
done
exit $failed
