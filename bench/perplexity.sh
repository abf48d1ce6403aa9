#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/perplexity.sh CAKE_MPI MODEL TEXT... [-- OPTION...]
# Perplexity of texts under a model whose matrices are kept in each dtype: exp of minus the mean logprob of every
# token of every piece but the piece's first. Pieces are whole lines of about PIECE bytes (default 700), at most PIECES
# of them (default 400), spread evenly over the texts. DTYPES (default "f32 bf16 int8"): the ratio is to the one before
# the last. OPTIONs go to each run. Exit status 1 if the last one's perplexity is more than LIMIT (default 1.01) times
# that of the one before it.
set -eu
[ $# -ge 3 ] || {
    sed -n '3s/^# /usage: /p' "$0" >&2
    exit 2
}
export LC_ALL=C
cake=$1 model=$2
shift 2
texts=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    texts+=("$1")
    shift
done
[ $# -eq 0 ] || shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Pieces as requests that generate nothing and score their own tokens.
awk -v size="${PIECE:-700}" '
function flush() { if (length(piece) >= size / 2) printf "{\"prompt\": \"%s\", \"echo\": true, \"logprobs\": 0, \"max_tokens\": 0}\n", piece; piece = "" }
FNR == 1 { flush() }
{
    gsub(/[\001-\037]/, ""); gsub(/\\/, "\\\\"); gsub(/"/, "\\\"")
    if (length(piece) + length($0) > size) flush()
    piece = piece $0 "\\n"
}
END { flush() }' "${texts[@]}" >"$dir/all.jsonl"
awk -v n="$(wc -l <"$dir/all.jsonl")" -v most="${PIECES:-400}" \
    'BEGIN { step = n > most ? n / most : 1 } NR > next_one && n_out++ < most { print; next_one += step }' "$dir/all.jsonl" >"$dir/in.jsonl"

echo "$(wc -l <"$dir/in.jsonl") pieces, $model"
for dtype in ${DTYPES:-f32 bf16 int8}; do
    "$cake" run -m "$model" -i "$dir/in.jsonl" -o "$dir/out.jsonl" --force -q --progress none --dtype "$dtype" "$@" || [ $? -eq 3 ]
    awk -v dtype="$dtype" '
    match($0, /"token_logprobs": *\[[^]]*\]/) {
        n = split(substr($0, RSTART, RLENGTH), value, /[],[]/)
        for (i = 3; i < n; i++) { sum += value[i]; count++ }
        next
    }
    { failed++ }
    END { printf "%-5s perplexity %.4f over %d tokens, %d pieces failed\n", dtype, exp(-sum / count), count, failed }' \
        "$dir/out.jsonl" | tee -a "$dir/found"
done
awk -v limit="${LIMIT:-1.01}" '{ before = last; last = $3; is = $1; was = at; at = $1 }
    END { printf "%s / %s = %.5f\n", is, was, last / before; exit last / before > limit }' "$dir/found"
