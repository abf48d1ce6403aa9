#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The layer test: compares every #include with the layers of docs/architecture.md, every foreign header with
# the one file that may include it, and calls of exit() and MPI_Abort() with the one file that may make them.
# tests/layers.sh [ROOT]: ROOT is a source tree, default $top_srcdir. Exit status 1 and a line per violation.
set -u
root=${1:-${top_srcdir:-.}}
cd "$root" || exit 2
files=$(find src kernels bench -name '*.[ch]' -o -name '*.cu' -o -name '*.def' | LC_ALL=C sort)
[ -n "$files" ] || { echo "layers: no source files below $root" >&2; exit 2; }

# shellcheck disable=SC2086
awk '
function wrong(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; n_wrong++ }
function row(folders, may,   f, i, n) { n = split(folders, f, " "); for (i = 1; i <= n; i++) allowed[f[i]] = " " may " " f[i] " " }
function inside(folder, rows,   r, f, i, j, n, m) { # `a.* b.h | c.c`: a file includes of its own folder what stands further left
    n = split(rows, r, "|")
    for (i = 1; i <= n; i++) {
        m = split(r[i], f, " ")
        for (j = 1; j <= m; j++)
            if (sub(/\.\*$/, "", f[j])) { place[folder "/" f[j] ".h"] = i; place[folder "/" f[j] ".c"] = i }
            else place[folder "/" f[j]] = i
    }
    ordered[folder] = 1
}
function door(header, files) { doors[header] = files }
BEGIN {
    row("base", "")
    row("types formats", "base types formats")
    row("kernels", "base types formats")
    row("text jinja", "base types formats text")
    row("tokenizer", "base types formats text")
    row("chat", "base types formats text jinja tokenizer")
    row("grammar", "base types formats text tokenizer")
    row("answer", "base types formats text tokenizer grammar")
    row("prompt sample record placement hub", "base types formats")
    row("config link", "base types formats kernels")
    row("tensors", "base types formats kernels")
    row("model", "base types formats kernels config tensors")
    row("embed slice logits", "base types formats kernels config tensors model")
    rest = "base types formats kernels text jinja tokenizer chat grammar answer prompt sample record placement hub config tensors model link embed slice logits"
    row("options schedule trace", rest); rest = rest " options schedule trace"
    row("request watch", rest); rest = rest " request watch"
    row("engine", rest); rest = rest " engine"
    row("dispatch", rest); rest = rest " dispatch"
    row("planner", rest); rest = rest " planner"
    row("report bundle", rest); rest = rest " report bundle"
    row("run", rest); rest = rest " run"
    row("bench", rest); rest = rest " bench"
    row("main", "base link options watch planner bundle run bench")
    inside("schedule", "prefix_tree.* | page_pool.* schedule.h | internal.h | budget.c changes.c kv_admission.c prefix_cache.c next_batch.c schedule.c")
    inside("engine", "mtp.* ngrams.* wave_times.* | progress.* speculation.* | stats.* request_queue.* sampler.* | engine.h | internal.h pipeline.* | admission.c buffer_bytes.c pooling.c predict.c engine.c")
    inside("planner", "planning.h topology_io.* consistency.* bundle_plan.* simulate.* rates_file.* | offload.* affinity.* cluster.* | gpu_assign.* | " \
                      "planning.c memory_plan.* estimate.* rank.h | partition.* calibrate.* transport.* | parallelism.* memory_fit.* | memory_check.* whatif_plan.* | rank.c")
    inside("record", "inflight.* line_index.* lock.* fsync_thread.* unpack.h | journal_format.* stream.* finalize.h | job.* inspect.h shards.h | " \
                     "record.h inspect.c | format.h hdf5.h recorder.h | format_simple.c format_openai.c format_txt.c line.c line_info.c logprobs.c embedding.c float_text.c message.c ranking.c response.c hdf5.c | " \
                     "finalize.c unpack.c shards.c journal_writer.c resume.c scored.c record.c")
    # Foreign headers: a regular expression of the files that may include them.
    door("jansson.h", "^src/formats/json\\.c$")
    door("hdf5.h", "^src/formats/h5(_read\\.c|_parts\\.h|\\.c)$")
    door("zlib.h", "^src/formats/gzip\\.c$")
    door("zstd.h", "^src/formats/zstd\\.c$")
    door("pcre2.h", "^src/text/pattern\\.c$")
    door("utf8proc.h", "^src/text/unicode\\.c$")
    door("yaml.h", "^src/formats/yaml\\.c$")
    door("hwloc.h", "^src/placement/(machine|core_kinds|pci_devices|pin|bind)\\.c$")
    door("mpi.h", "^src/link/(mpi|comm|cuda_aware)\\.c$")
    door("mpi-ext.h", "^src/link/cuda_aware\\.c$")
    door("nccl.h", "^src/link/nccl\\.c$")
    door("cuda_runtime_api.h", "^kernels/cuda/")
    door("cuda_runtime.h", "^kernels/cuda/")
    door("cuda_fp16.h", "^kernels/cuda/")
    door("cublasLt.h", "^kernels/cuda/cublaslt_api\\.h$")
    door("dlfcn.h", "^(kernels/cuda/(cublaslt_api|nvml)|src/link/nccl|src/hub/http)\\.c$")
    door("curl/curl.h", "^src/hub/http\\.c$")
    door("omp.h", "^kernels/")
    door("immintrin.h", "^kernels/cpu/")
    door("cpuid.h", "^kernels/cpu/")
    door("arm_neon.h", "^kernels/cpu/")
    door("arm_sve.h", "^kernels/cpu/")
    # The C library and POSIX: anybody.
    n = split("arpa/inet assert ctype dirent errno fcntl fenv float fnmatch getopt ifaddrs inttypes limits malloc locale math net/if netinet/in netinet/tcp poll pthread sched semaphore setjmp signal " \
              "stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib string strings sys/auxv sys/file sys/ioctl sys/mman sys/prctl " \
              "sys/resource sys/socket sys/stat sys/statvfs sys/syscall sys/sysinfo sys/time sys/types sys/utsname sys/wait " \
              "termios time unistd", libc, " ")
    for (i = 1; i <= n; i++) anybody[libc[i] ".h"] = 1
}
FNR == 1 {
    n_part = split(FILENAME, part, "/")
    folder = part[1] != "src" ? part[1] : n_part == 2 ? "main" : part[2]
    if (!(folder in allowed)) wrong("folder " folder " is in no row of the table")
    in_comment = 0
}
{
    code = $0
    if (in_comment) {
        if (!match(code, /\*\//)) next
        code = substr(code, RSTART + 2); in_comment = 0
    }
    is_include = code ~ /^[ \t]*#[ \t]*include/
    if (!is_include) gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
    while (match(code, /\/\*/)) {
        rest = substr(code, RSTART + 2); code = substr(code, 1, RSTART - 1)
        if (match(rest, /\*\//)) code = code " " substr(rest, RSTART + 2)
        else in_comment = 1
    }
    sub(/\/\/.*/, "", code)
}
is_include && match(code, /"[^"]*"/) {
    name = substr(code, RSTART + 1, RLENGTH - 2)
    if (name == "config.h" || name == "git-version.h") next
    if (!index(name, "/")) { wrong("\"" name "\" names no folder"); next }
    used = substr(name, 1, index(name, "/") - 1)
    if (name ~ /^kernels\/cuda\// && FILENAME !~ /^(kernels\/|src\/link\/nccl\.c)/) wrong(name " belongs to kernels; use kernels/device.h")
    own = FILENAME; sub(/^src\//, "", own)
    if (used == folder && folder in ordered) {
        if (!(own in place)) wrong(own " is in no row of its folder")
        else if (!(name in place)) wrong(name " is in no row of its folder")
        else if (place[name] >= place[own] && substr(name, 1, length(name) - 2) != substr(own, 1, length(own) - 2))
            wrong(own " may not include \"" name "\": it stands in the same row of the folder, or below")
    }
    if (folder in allowed && !index(allowed[folder], " " used " "))
        wrong(folder " may not include \"" name "\": it may use" allowed[folder])
}
is_include && match(code, /<[^>]*>/) {
    name = substr(code, RSTART + 1, RLENGTH - 2)
    if (name in anybody) next
    if (!(name in doors)) wrong("<" name "> is in no row of the table")
    else if (FILENAME !~ doors[name]) wrong("<" name "> has one door, and this is not it")
    else if (doors[name] !~ /\/$/ && doors[name] !~ /\(/ && owner[name] != "" && owner[name] != FILENAME)
        wrong("<" name "> has one door, and it is " owner[name])
    else owner[name] = FILENAME
}
code ~ /(^|[^A-Za-z0-9_])exit[ \t]*\(/ && FILENAME != "src/main.c" { wrong("exit() outside main.c") }
code ~ /(^|[^A-Za-z0-9_])MPI_Abort[ \t]*\(/ && FILENAME != "src/link/comm.c" { wrong("MPI_Abort() outside link/comm.c") }
code ~ /(^|[^A-Za-z0-9_])MPI_[A-Z]/ && FILENAME !~ /^src\/link\/(mpi|comm)\.c$/ { wrong("MPI outside link/mpi.c and link/comm.c") }
END { exit n_wrong > 0 }
' $files
