#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Models from a hub: pull, list, rm and names for -m, against tests/run/hub.py, which does everything wrong that a hub can.
. "$(dirname "$0")/../shell.sh"

export HF_HOME=$dir/home CAKE_TEST_HUB_PAUSE=0.01 NO_PROXY='*' no_proxy='*'
unset HF_HUB_CACHE HF_TOKEN HF_TOKEN_PATH HF_HUB_OFFLINE HUGGINGFACE_HUB_CACHE
cache=$HF_HOME/hub
commit=0123456789abcdef0123456789abcdef01234567
secret=hf_secretOfTheTest

# Names without a cache, and what needs no hub.
expect "a name that is not there" 1 "hub: me/demo: there is no such directory here, and no such model in $cache; to download it, .*: cake-mpi pull me/demo$" \
    "$cake" -m me/demo -p x
expect "... with a revision" 1 'cake-mpi pull me/demo@v1$' "$cake" info -m me/demo@v1
expect "an empty cache" 0 "no models are in $cache" "$cake" list
expect "nothing to delete" 2 'no model in .* has a name that ends so' "$cake" rm demo --yes
expect "pull without a name" 2 'no model: give its name, owner/name' "$cake" pull
for name in demo ../b a/b@../x; do
    expect "no name: $name" 2 "is no name of a model: expected owner/name or owner/name@revision" "$cake" pull -- "$name"
done

# make NAME: a model in the cache, as Python leaves it: one file in a folder, one among those that models share.
make() {
    local folder file hash shared
    folder=$cache/models--${1/\//--}
    mkdir -p "$folder/blobs" "$folder/refs" "$folder/snapshots/$commit/1_Pooling"
    printf %s $commit >"$folder/refs/main"
    for file in "$model"/*; do
        hash=$(sha256sum "$file" | cut -c 1-64)
        cp "$file" "$folder/blobs/$hash"
        ln -s "../../blobs/$hash" "$folder/snapshots/$commit/${file##*/}"
    done
    ln -s "../../../blobs/$hash" "$folder/snapshots/$commit/1_Pooling/config.json"
    hash=$(basename "$(readlink "$folder/snapshots/$commit/model.safetensors")")
    shared=blobs/${hash:0:2}/$hash
    mkdir -p "$cache/${shared%/*}" && mv "$folder/blobs/$hash" "$cache/$shared" && ln -s "../../$shared" "$folder/blobs/$hash"
}

make our/own
folder=$cache/models--our--own
expect "a model in the cache" 0 '^37 \+ 45 = 82' "$cake" -m our/own -p 'What is 37 + 45?'
"$cake" -m "$model" -p 'What is 37 + 45?' -p 'Spell the word river.' -o "$dir/own.jsonl" --deterministic-ids -q
(cd "$dir" && "$cake" -m our/own -p 'What is 37 + 45?' -p 'Spell the word river.' -o named.jsonl --deterministic-ids -q)
alike <(sed 's/"model": "model"/"model": "own"/' "$dir/own.jsonl") "$dir/named.jsonl"
ok "... answers as its directory does" $?
expect "... on ranks that have no HF_HOME" 0 '^37 \+ 45 = 82' bash -c "cd '$dir' && '$root/tests/mpirun.sh' 2 bash -c '[ \$OMPI_COMM_WORLD_RANK\$PMI_RANK = 0 ] || unset HF_HOME; exec \"\$@\"' - '$cake' -m our/own@main -p 'What is 37 + 45?'"
for command in "tokenize -p x" "plan" "info" "stage -d $dir/bundles --ranks 1"; do
    # shellcheck disable=SC2086
    expect "${command%% *} by name" 0 '' "$cake" $command -m "our/own@$commit"
done
expect "bench by name" 0 'text\.' "$cake" bench text --smoke -m our/own
mkdir -p "$dir/here/our" && ln -s "$model" "$dir/here/our/own"
expect "a directory of that name comes first" 0 "qwen3" bash -c "cd '$dir/here' && HF_HOME=$dir/none '$cake' info -m our/own"
expect "another revision" 1 'no such model in .* \(only its revision main is there\).*cake-mpi pull our/own@v2' "$cake" info -m our/own@v2
for places in "HF_HUB_CACHE=$cache HF_HOME=/none" "HF_HOME= XDG_CACHE_HOME=$dir/xdg" "HF_HOME= XDG_CACHE_HOME= HOME=$dir/home"; do
    mkdir -p "$dir/xdg/huggingface" "$dir/home/.cache/huggingface" && ln -sfn "$cache" "$dir/xdg/huggingface/hub" && ln -sfn "$cache" "$dir/home/.cache/huggingface/hub"
    # shellcheck disable=SC2086
    expect "the cache of ${places%%=*}${places##*[ /]}" 0 'qwen3' env $places "$cake" info -m our/own
done
mkdir -p "$folder/refs/pr" && cp "$folder/refs/main" "$folder/refs/pr/1" && cp "$folder/refs/main" "$folder/refs/v1"
expect "list" 0 "^our/own@main pr/1 v1 +[0-9.]+ MiB  20[0-9-]+ [0-9:]+  $folder/snapshots/$commit\$" "$cake" list
expect "... as JSON" 0 "^\{\"name\": \"our/own\", \"commit\": \"$commit\", \"revisions\": \[\"main\", \"pr/1\", \"v1\"\], \"path\": \"$folder.*\"complete\": true\}\$" "$cake" list --json
expect "a revision with a slash" 0 'qwen3' "$cake" info -m our/own@pr/1

mv "$folder/blobs" "$folder/gone"
expect "blobs that are lost" 1 'config.json: is a link to' "$cake" info -m our/own
expect "... in list" 0 '\(7 files missing\)$' "$cake" list
mv "$folder/gone" "$folder/blobs"

# Links that lead out of the cache are neither read nor followed.
echo precious >"$dir/precious" && mkdir "$dir/keep" && echo kept >"$dir/keep/file"
evil=$cache/models--evil--links
cp -r "$folder" "$evil" && rm "$evil/snapshots/$commit/tokenizer_config.json"
for target in "$dir/precious" ../../blobs/../../../../precious ../../../models--our--own/blobs/x ../../blobs/.. ../../refs/main; do
    ln -sfn "$target" "$evil/snapshots/$commit/tokenizer_config.json"
    expect "a link out of the blobs: ${target#"$dir/"}" 1 "tokenizer_config.json: leads out of this model's blobs" "$cake" info -m evil/links
done
expect "... in list" 0 'evil/links.*has links that lead elsewhere' "$cake" list
ln -sfn ../../blobs/aa "$evil/snapshots/$commit/tokenizer_config.json"
for target in "$dir/precious" ../../../precious "../../blobs/aa/$(printf 'a%.0s' {1..63})/"; do
    ln -sfn "$target" "$evil/blobs/aa"
    expect "a blob that is a link: ${target#"$dir/"}" 1 "tokenizer_config.json: leads out of this model's blobs" "$cake" info -m evil/links
done
rm "$evil/snapshots/$commit/tokenizer_config.json" && ln -s "$dir/keep" "$evil/snapshots/$commit/more" && ln -s "$dir/keep" "$evil/blobs/folder"
ln -s "$dir/keep" "$evil/refs/tag" && ln -s "$dir/keep" "$cache/models--evil--outside"
expect "a model that is a link" 1 'is a symbolic link where the cache has a directory' "$cake" info -m evil/outside
mkdir -p "$cache/.locks" && ln -s "$dir/keep" "$cache/.locks/models--evil--links"
expect "rm follows no link" 0 'evil/links: deleted' "$cake" rm evil/links --yes
expect "... of a model that is one" 0 'evil/outside: deleted' "$cake" rm evil/outside --yes
[ ! -e "$evil" ] && [ ! -L "$cache/models--evil--outside" ] && [ "$(ls "$dir/keep")" = file ] && [ -s "$dir/precious" ] && [ "$(find "$cache/blobs" -type f | wc -l)" = 1 ]
ok "... and nothing outside is lost" $?

# rm asks, and takes an ending.
make her/own
expect "rm of several" 2 'own is the end of several names: her/own, our/own; give more of one' "$cake" rm own --yes
expect "rm of a revision" 2 "give its name without @" "$cake" rm our/own@main --yes
expect "rm asks" 1 "Delete her/own, $cache/models--her--own, [0-9.]+ KiB\? \[y/N\] .*not deleted" "$cake" rm her/own
[ -e "$cache/models--her--own/refs/main" ]
ok "... and no answer is a no" $?
echo y | "$cake" rm r/own >"$dir/out" 2>"$dir/err"
[ $? = 2 ] && echo y | "$cake" rm er/own >"$dir/out" 2>"$dir/err" && [ ! -e "$cache/models--her--own" ] && [ -e "$folder/refs/main" ]
ok "... by a unique ending" $?

# The rest needs a hub.
if ! "$cake" info | grep -q '^libcurl  *[0-9]'; then
    expect "a build without libcurl" 1 'this build has no libcurl.*libcurl4-openssl-dev' "$cake" pull me/demo
    echo "not checked here: downloads (this build has no libcurl)"
    finish
fi
python=${CAKE_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    [ -z "${CI:-}" ] || ok "python3 is needed where CI is set" 1
    echo "not checked here: downloads (python3 is not installed)"
    finish
fi

# Models: the demo with what repositories have beside it, and small ones whose names say what is wrong with them.
models=$dir/models
demo=$models/me/demo
mkdir -p "$models/me" "$models/hers" && cp -rL "$model" "$demo"
mkdir "$demo/original" "$demo/extra"
for file in pytorch_model.bin consolidated.safetensors original/x.safetensors tf_model.h5 model.onnx extra/deep.json .gitattributes; do echo "$file" >"$demo/$file"; done
: >"$demo/added.json" # an empty file
for fault in gated refused busy patient down shaky circle file silent up absolute control twice inner headers broken nocommit huge other loose badtag sametag vast \
    plain breaks anew norange elsewhere wrong once endless short slow denied; do
    ln -s small "$models/me/$fault"
done
small=$models/me/small
mkdir "$small" && cp "$demo/config.json" "$demo/tokenizer_config.json" "$small" && head -c 200000 "$demo/model.safetensors" >"$small/model.safetensors"
ln -s ../me/demo "$models/hers/demo"
mkdir "$models/me/pickled" "$models/me/gguf" "$models/me/ggufs" "$models/me/split" "$models/me/empty"
echo x >"$models/me/pickled/pytorch_model.bin" && echo x >"$models/me/empty/README.md"
echo x >"$models/me/gguf/a-Q8_0.gguf" && echo a >"$models/me/ggufs/a-Q8_0.gguf" && echo b >"$models/me/ggufs/a-Q4_K_M.gguf"
for i in 1 2; do echo $i >"$models/me/split/a-0000$i-of-00002.gguf"; done
mkfifo "$dir/until"
"$python" -B "$root/tests/run/hub.py" "$models" "$dir/log" <"$dir/until" >"$dir/ports" 2>"$dir/hub.err" &
exec 9>"$dir/until"
for _ in $(seq 100); do [ -s "$dir/ports" ] && break; sleep 0.05; done
read -r port cdn <"$dir/ports"
export HF_ENDPOINT=http://127.0.0.1:$port
pull() { "$cake" pull --progress none "$@"; }

# What is downloaded, where it goes, and that it runs.
folder=$cache/models--me--demo
expect "pull" 0 "^$folder/snapshots/$commit\$" pull me/demo
(cd "$model" && find . -type f | sort) >"$dir/wanted"
printf '%s\n' ./added.json ./extra/deep.json >>"$dir/wanted"
(cd "$folder/snapshots/$commit" && find . ! -type d | sort) >"$dir/found"
sort "$dir/wanted" | diff - "$dir/found"
ok "... takes safetensors, configuration, tokenizer and templates, and nothing twice" $?
status=0
while read -r file; do
    cmp -s "$demo/$file" "$folder/snapshots/$commit/$file" || { echo "    $file differs"; status=1; }
    text=$(readlink "$folder/snapshots/$commit/$file") && [ "$(realpath "$folder/snapshots/$commit/$file")" = "$(realpath "$folder")/blobs/${text##*/}" ] || status=1
    case $file in
    *.safetensors) [ "${text##*/}" = "$(sha256sum "$demo/$file" | cut -c 1-64)" ] || status=1 ;;
    *) [ "${text##*/}" = "$(git hash-object "$demo/$file")" ] || status=1 ;;
    esac
    case $file in ./extra/*) [ "${text%/*}" = ../../../blobs ] ;; *) [ "${text%/*}" = ../../blobs ] ;; esac || status=1
done <"$dir/found"
ok "... as links to blobs, which are named by SHA-256 or git's SHA-1" $status
[ "$(cat "$folder/refs/main")" = $commit ] && [ "$(cd "$folder" && find blobs refs | grep -cE 'incomplete|tmp')" = 0 ]
ok "... with a ref, and nothing else" $?
: >"$dir/log"
expect "pull again" 0 "^$folder/snapshots/$commit\$" pull me/demo
[ "$(wc -l <"$dir/log")" = 1 ]
ok "... asks for the list only" $?
expect "pull of a tag" 0 "$commit" pull me/demo@v1.0 -q
expect "... which -m takes, too" 0 'qwen3' "$cake" info -m me/demo@v1.0
for host in $(few 127.0.0.1:1 '127.0.0.1:1 nohost.invalid'); do
    expect "no hub at $host" 75 "$host: (Failed to connect|Could not resolve).*, 5 times: start the same command again later.*login node" env "HF_ENDPOINT=http://$host" "$cake" pull me/demo
done
expect "another commit than the one that was asked for" 1 "answers with another commit than the one that was asked for, $commit" pull "me/demo@${commit//0/1}"
expect "a revision that is not there" 1 'me/demo: has no such branch, tag or commit \(revision nowhere\)' pull me/demo@nowhere
expect "HF_HUB_OFFLINE" 1 'HF_HUB_OFFLINE is set' env HF_HUB_OFFLINE=1 "$cake" pull me/demo

# Which files.
expect "--include" 0 '' pull hers/demo --include '*.bin' --include config.json --include extra/ --exclude '*model.b*' -q
(cd "$cache/models--hers--demo/snapshots/$commit" && find . ! -type d | sort | tr '\n' ' ') | grep -qxF './config.json ./extra/deep.json '
ok "... and --exclude are globs, which may be repeated" $?
expect "no file is left" 1 'no file is left by --include and --exclude; it has \.gitattributes, added.json' pull me/demo --include nothing
expect "weights as Python objects" 1 'has weights as Python objects only' pull me/pickled
expect "no weights" 1 'has no weights in safetensors or GGUF' pull me/empty
expect "one GGUF file" 0 '' pull me/gguf -q
expect "several" 1 "several GGUF files: choose by --include, as --include 'a-Q4_K_M.gguf' \(a-Q4_K_M.gguf, a-Q8_0.gguf\)" pull me/ggufs
expect "... one of them" 0 '' pull me/ggufs --include '*Q8_0*' -q
expect "a split one" 0 '' pull me/split -q
[ "$(ls "$cache/models--me--split/snapshots/$commit" | wc -l)" = 2 ]
ok "... is one" $?

# Who may read what, and who sees the token.
expect "a gated model" 1 "gives it only to those who accepted its terms \(status 401\): accept them at $HF_ENDPOINT/me/gated, and set HF_TOKEN" pull me/gated
: >"$dir/log"
expect "... with a token" 0 "$commit" env HF_TOKEN=$secret "$cake" pull me/gated --log debug
grep -q "^hub .* Bearer $secret" "$dir/log" && grep -q '^cdn GET' "$dir/log" && ! grep -q "^cdn.*Bearer" "$dir/log"
ok "... which only the hub sees" $?
! grep -rqF "$secret" "$dir/out" "$dir/err" "$HF_HOME"
ok "... and nobody reads" $?
mkdir -p "$HF_HOME" && echo $secret >"$HF_HOME/token" && rm -rf "$cache/models--me--gated"
expect "the token of Python's login" 0 "$commit" pull me/gated
rm "$HF_HOME/token"
expect "a token that may not" 1 'accept them at .*/me/refused, with the account that the token belongs to' env HF_TOKEN=$secret "$cake" pull me/refused
expect "a token that is none" 1 'HF_TOKEN holds no token' env HF_TOKEN=$'a\nb' "$cake" pull me/refused
expect "a private model" 1 'knows no such model, or it is private \(status 401\): check the name and HF_TOKEN' pull private/demo
expect "an unknown one" 1 'knows no such model or file \(status 404' pull me/nothing
expect "HF_ENDPOINT" 1 'HF_ENDPOINT is not the URL of a hub' env HF_ENDPOINT=ftp://x "$cake" pull me/demo

# What passes, and what does not.
for name in busy shaky plain breaks norange once loose; do
    expect "$name" 0 "$commit" pull me/$name
    cmp -s "$small/model.safetensors" "$cache/models--me--$name/snapshots/$commit/model.safetensors"
    ok "... the same bytes" $?
done
grep -q 'no checksum of 3 files: only sizes are checked' "$dir/err"
ok "loose: said so" $?
grep -q 'cdn GET /cdn/me/breaks/model.safetensors?signature=secret bytes=' "$dir/log"
ok "... resumed in the middle" $?
rm -rf "$cache/models--me--plain" && : >"$dir/log"
expect "a file that is asked for in parts" 0 "$commit" env CAKE_TEST_HUB_RANGE=60000 "$cake" pull me/plain
cmp -s "$small/model.safetensors" "$cache/models--me--plain/snapshots/$commit/model.safetensors" && ! grep -q again "$dir/err" && [ "$(grep -c '^cdn GET' "$dir/log")" = 4 ]
ok "... has all of its bytes" $?
while IFS='|' read -r name status text; do
    expect "$name" "$status" "error: hub: .*$text" pull me/$name
    [ ! -e "$cache/models--me--$name/snapshots/$commit" ] && [ ! -e "$cache/models--me--$name/refs/main" ]
    ok "... leaves no snapshot" $?
done <<END
patient|75|asks to wait 4000 s: start the same command again then
down|75|answers with status 503, 5 times: start the same command again later
silent|75|5 times: start the same command again later
short|75|sent a part of the file only, 5 times
anew|75|5 times: start the same command again later
sametag|1|config.json has another size than the hub says: it gives the ETag .?same.? to several files
circle|1|redirects more than 10 times
file|1|redirects to what is not an http or https URL
up|1|the name of a file, "../../evil", leads out of the model
absolute|1|the name of a file, "/etc/passwd", is an absolute path
control|1|the name of a file, "a.x1b\[2Jb", has a control character
inner|1|the name of a file, "a/../../b", leads out of the model
twice|1|the name of a file, "config.json", occurs twice
broken|1|the hub's answer is not taken:
nocommit|1|it names no commit
headers|1|its headers are endless
huge|1|its list of files is longer than 32 MiB
other|1|of another commit than the one that was asked for
badtag|1|no tag \(ETag\) that could name a file
vast|1|are missing, but only .* are free in $cache
elsewhere|1|another part than it was asked for
wrong|1|model.safetensors has the wrong checksum \(SHA-256\), twice
endless|1|sends more than the [0-9]+ bytes that it announced
denied|1|localhost:$cdn answers with status 403 \(model.safetensors\)
END
! grep -rq 'signature=secret' "$dir/err" "$dir/out"
ok "signed URLs are not shown" $?

# A pull that is killed goes on; two at once help each other.
: >"$dir/log"
"$cake" pull me/slow -q >"$dir/first" 2>&1 &
first=$!
for _ in $(seq 100); do ls "$cache"/models--me--slow/blobs/*.incomplete >/dev/null 2>&1 && [ -s "$(ls "$cache"/models--me--slow/blobs/*.incomplete)" ] && break; sleep 0.02; done
expect "rm while it is pulled" 1 'a process downloads it now' "$cake" rm me/slow --yes
kill -9 $first && wait $first 2>/dev/null
expect "list shows what is not complete" 0 'me/slow  .*\(not complete: cake-mpi pull me/slow goes on\)' "$cake" list
"$cake" pull me/slow -q >"$dir/first" 2>&1 &
first=$!
expect "two pulls at once" 0 "$commit" pull me/slow
wait $first
ok "... both work" $?
cmp -s "$small/model.safetensors" "$cache/models--me--slow/snapshots/$commit/model.safetensors" && grep -qE '^cdn GET [^ ]*slow/model.safetensors[^ ]* bytes=[1-9]' "$dir/log"
ok "... from where the killed one was" $?

# Nothing is written through links.
mkdir -p "$models/evil" && ln -s ../me/small "$models/evil/outside" && ln -s ../me/small "$models/evil/blobs" && ln -s ../me/small "$models/evil/part"
ln -s "$dir/keep" "$cache/models--evil--outside"
expect "a model that is a link" 1 'has a symbolic link or a file where a directory belongs' pull evil/outside
mkdir -p "$cache/models--evil--blobs" "$cache/models--evil--part/blobs" && ln -s "$dir/keep" "$cache/models--evil--blobs/blobs"
expect "blobs that are one" 1 'has a symbolic link or a file where a directory belongs' pull evil/blobs
ln -s "$dir/precious" "$cache/models--evil--part/blobs/$(sha256sum "$small/model.safetensors" | cut -c 1-64).incomplete"
ln -s "$dir/precious" "$cache/models--evil--part/blobs/$(git hash-object "$small/config.json")"
expect "a part that is one" 0 "$commit" pull evil/part -q
cmp -s "$small/model.safetensors" "$cache/models--evil--part/snapshots/$commit/model.safetensors" && [ "$(cat "$dir/precious")" = precious ] && [ "$(ls "$dir/keep")" = file ]
ok "... is replaced" $?

# Python's tools find what we pull, and the reverse.
if "$python" -c 'import huggingface_hub' 2>/dev/null; then
    export HF_HOME=$dir/python HF_HUB_DISABLE_XET=1
    cache=$HF_HOME/hub
    snapshot=$cache/models--me--demo/snapshots/$commit
    pull me/demo -q >/dev/null && pull me/demo@v1.0 -q >/dev/null
    HF_HUB_OFFLINE=1 "$python" - >"$dir/out" 2>"$dir/err" <<'END'
from huggingface_hub import hf_hub_download, scan_cache_dir, snapshot_download
print(snapshot_download("me/demo"), snapshot_download("me/demo", revision="v1.0"), hf_hub_download("me/demo", "extra/deep.json"))
cache = scan_cache_dir()
print([(r.repo_id, [v.commit_hash for v in r.revisions], sorted(r.refs)) for r in cache.repos], len(cache.warnings))
END
    printf '%s\n' "$snapshot $snapshot $snapshot/extra/deep.json" "[('me/demo', ['$commit'], ['main', 'v1.0'])] 0" | diff - "$dir/out"
    ok "huggingface_hub finds what was pulled, without network" $?
    [ "$("$python" -c 'from huggingface_hub import snapshot_download as f; print(f("me/plain"))' 2>"$dir/err")" = "$cache/models--me--plain/snapshots/$commit" ]
    ok "what huggingface_hub pulls" $?
    expect "... is listed" 0 "^me/plain@main  .*snapshots/$commit\$" "$cake" list
    : >"$dir/log"
    expect "... and complete" 0 "$commit" pull me/plain
    [ "$(wc -l <"$dir/log")" = 1 ]
    ok "... so that nothing is downloaded" $?
    expect "... -m finds it" 1 'me--plain/snapshots' "$cake" info -m me/plain
else
    echo "not checked here: the cache as Python's huggingface_hub reads and writes it"
fi
exec 9>&-
finish
