/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tokenizer.json, then text or ids. Out: ids or text.
 * Invariant: a cake_tokenizer does not change once it is open, so threads may share it.
 */
#include "tokenizer/tokenizer.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"
#include "formats/model_files.h"
#include "tokenizer/import.h"
#include "tokenizer/internal.h"
#include "tokenizer/unsupported_fields.h"

#define MAX_TEXT     ((size_t)1 << 30) /* positions inside a piece have 32 bits */
#define LARGEST_FILE ((size_t)512 << 20)
#define MAX_SPARE    ((size_t)1 << 20) /* bytes kept for the next normalization */

/* Makes the table of tokens by id, so that decoding is one look-up: an added token hides a model's token of
 * the same id. */
static void list_known(cake_tokenizer *token)
{
    const cake_vocab *vocab = &token->words.vocab;
    token->count = vocab->count;
    for (size_t i = 0; i < token->added.n; i++)
        if (token->added.token[i].id >= token->count)
            token->count = token->added.token[i].id + 1;
    token->known = cake_alloc((size_t)token->count, sizeof *token->known);
    for (int32_t id = 0; id < vocab->count; id++)
        token->known[id].text = cake_vocab_text(vocab, id, &token->known[id].len);
    for (size_t i = 0; i < token->added.n; i++) {
        const cake_added_token *t = &token->added.token[i];
        /* The library decides whether the token is special by its decoded text. */
        const cake_added_token *same = cake_added_find(&token->added, t->shown, t->shown_len);
        token->known[t->id] =
            (cake_token_info){t->shown, t->shown_len, .added = true, .special = same && same->skipped};
    }
}

/* Ids that the post-processor adds must be ids of this model. */
static cake_err check_post(cake_tokenizer *token, const cake_json_path *place)
{
    const cake_ids *lists[] = {&token->post.before, &token->post.after, &token->post.pair[0],
                               &token->post.pair[1], &token->post.pair[2]};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; i < lists[l]->len; i++) {
            const int32_t id = lists[l]->id[i];
            const bool unknown = id >= token->count || !token->known[id].text;
            if (unknown && l < 2)
                return cake_json_path_fail(place, "it adds the id %d, which no token has", id);
            token->post.no_pair = token->post.no_pair || unknown;
        }
    return CAKE_OK;
}

/* The bytes of normalized text that a model's token stands for. */
static size_t token_bytes(const char *text, size_t len, bool spelled, cake_buf *bytes)
{
    cake_buf_cut(bytes, 0);
    if (spelled && cake_byte_level_read(text, len, bytes) >= 0)
        return bytes->len;
    return cake_byte_token(text, len) >= 0 ? 1 : len;
}

static size_t find_longest(const cake_tokenizer *token)
{
    bool spelled =
        cake_pre_tokenizers_spell(&token->splitters) || cake_normalizers_spell(&token->normalizers);
    size_t shrink = cake_normalizers_shrink(&token->normalizers), longest = 4; /* of an unknown character */
    bool endless = !shrink || cake_pre_tokenizers_drop(&token->splitters) ||
                   cake_tokenizer_model_drop(&token->words, spelled);
    cake_buf bytes = {0};
    for (int32_t id = 0; id < token->words.vocab.count; id++) {
        size_t len = 0;
        const char *text = cake_vocab_text(&token->words.vocab, id, &len);
        if (!text || len <= longest) /* as bytes it is no longer */
            continue;
        len = token_bytes(text, len, spelled, &bytes);
        longest = len > longest ? len : longest;
    }
    cake_buf_free(&bytes);
    for (size_t i = 0; i < token->added.n; i++) {
        const cake_added_token *t = &token->added.token[i];
        endless = endless || t->is.left || t->is.right; /* they include any amount of white space */
        longest = t->len > longest ? t->len : longest;
    }
    return endless || __builtin_mul_overflow(longest, shrink, &longest) ? SIZE_MAX : longest;
}

/* The id of a token by name; -1: there is none. */
static int32_t find_named(const cake_tokenizer *token, const cake_specials *specials, int index)
{
    const cake_special *s = specials->named.n ? &specials->named.at[index] : NULL;
    return s && s->text ? cake_tokenizer_find(token, s->text, s->len) : -1;
}

/* Adds the named token to the post-processor. */
static void add_named(const cake_tokenizer *token, const cake_specials *specials, int index, cake_ids *ids)
{
    int32_t id = find_named(token, specials, index);
    if (id >= 0)
        cake_ids_add(ids, id);
}

/* Warns of fields in tokenizer_config.json that are not followed. transformers cleans up spaces, but for BPE
 * only if two fields ask for it. */
static void check_config(const cake_tokenizer *token, const cake_specials *specials)
{
    cake_buf file = {0};
    const char *slash = strrchr(token->where, '/');
    cake_buf_add(&file, token->where, slash ? (size_t)(slash - token->where) + 1 : 0);
    cake_buf_adds(&file, "tokenizer_config.json");
    cake_unsupported_check(cake_unsupported_tokenizer, NULL, specials->config, "tokenizer", file.data, "");
    if (cake_json_bool(cake_json_get(specials->config, "clean_up_tokenization_spaces"), false) &&
        !cake_tokenizer_model_bpe(&token->words))
        cake_log(CAKE_WARN, "tokenizer", "%s: clean_up_tokenization_spaces true is not applied", file.data);
    cake_buf_free(&file);
}

/* specials: from the files next to it. */
static cake_err open_parts(const cake_json_path *root, cake_vocab_reader *lists,
                           const cake_specials *specials, cake_tokenizer *token)
{
    cake_json_path model = cake_json_path_key(root, "model"),
                   normalizer = cake_json_path_key(root, "normalizer");
    cake_json_path splitter = cake_json_path_key(root, "pre_tokenizer"),
                   added = cake_json_path_key(root, "added_tokens");
    cake_json_path post = cake_json_path_key(root, "post_processor"),
                   decoder = cake_json_path_key(root, "decoder");
    cake_err err = cake_json_path_need(root, CAKE_JSON_OBJECT, "an object");
    if (!err)
        err = cake_normalizers_open(&normalizer, &token->normalizers);
    if (!err)
        err = cake_pre_tokenizers_open(&splitter, &token->splitters);
    if (!err)
        err = cake_post_processor_open(&post, &token->post);
    if (!err)
        err = cake_stages_open(&decoder, &token->stages);
    if (!err)
        err = cake_tokenizer_model_open(&model, lists, &token->words);
    if (!err)
        err = cake_added_read(&added, &token->words.vocab, &token->added);
    if (!err)
        err = cake_added_specials(&token->added, &token->words.vocab, specials, token->where);
    if (!err)
        err = cake_added_finish(&token->added, &added, &token->normalizers);
    if (err)
        return err;
    token->bos = specials->given[CAKE_BOS] ? find_named(token, specials, CAKE_BOS) : -1;
    token->eos = specials->given[CAKE_EOS] ? find_named(token, specials, CAKE_EOS) : -1;
    check_config(token, specials);
    if (specials->bos)
        add_named(token, specials, CAKE_BOS, &token->post.before);
    if (specials->eos)
        add_named(token, specials, CAKE_EOS, &token->post.after);
    list_known(token);
    token->longest = find_longest(token);
    return check_post(token, &post);
}

static cake_err open_json(const cake_json *json, cake_vocab_reader *lists, const cake_specials *specials,
                          const char *where, cake_tokenizer **out)
{
    cake_tokenizer *token = cake_alloc(1, sizeof *token);
    token->where = cake_copy(where, strlen(where));
    cake_json_path root = cake_json_path_root(token->where, json);
    cake_err err = open_parts(&root, lists, specials, token);
    if (err)
        cake_tokenizer_close(token);
    else
        *out = token;
    return err;
}

/* own: the library's own format, with scores as the library reads them; scores written by our converters are
 * exact. */
static cake_err parse(const char *json, size_t len, bool own, const cake_specials *specials,
                      const char *where, cake_tokenizer **out)
{
    cake_json *root = NULL;
    cake_vocab_reader lists;
    cake_buf rest = {0};
    cake_fault fault;
    cake_err err;
    bool listed = cake_vocab_reader_read(json, len, &lists, &rest) &&
                  !cake_json_parse(rest.data, rest.len, &root, &fault);
    if (listed)
        err = open_json(root, &lists, specials, where, out);
    else if (cake_json_parse(json, len, &root, &fault))
        err = cake_fail("tokenizer", "%s: %s", where, fault.message);
    else
        err = open_json(root, own && cake_vocab_reader_scores(json, len, &lists) ? &lists : NULL, specials,
                        where, out);
    cake_vocab_reader_free(&lists);
    cake_buf_free(&rest);
    cake_json_free(root);
    return err;
}

cake_err cake_tokenizer_parse(const char *json, size_t len, const char *where, cake_tokenizer **out)
{
    return parse(json, len, true, &CAKE_SPECIALS_NONE, where, out);
}

/* Opens another format, converted to JSON. */
static cake_err import(const char *bytes, size_t len, const char *where, cake_specials *specials,
                       cake_tokenizer **out)
{
    cake_buf json = {0};
    /* A model begins with a piece, 0x0A; ranks begin with base64. */
    cake_err err = len && bytes[0] == '\n' ? cake_sentencepiece_convert(bytes, len, where, specials, &json)
                                           : cake_tiktoken_convert(bytes, len, where, specials, &json);
    if (!err)
        err = parse(json.data, json.len, false, specials, where, out);
    cake_buf_free(&json);
    return err;
}

cake_err cake_tokenizer_import(const char *bytes, size_t len, const char *where, cake_tokenizer **out)
{
    cake_specials specials = CAKE_SPECIALS_NONE;
    cake_err err = import(bytes, len, where, &specials, out);
    cake_specials_close(&specials);
    return err;
}

/* The name of the only file in dir that ends in .tiktoken; CAKE_END: none. */
static cake_err find_tiktoken(const char *dir, cake_buf *name)
{
    static const char ending[] = ".tiktoken";
    DIR *list = opendir(dir);
    cake_err err = CAKE_OK;
    for (struct dirent *entry; list && !err && (entry = readdir(list));) {
        size_t n = strlen(entry->d_name);
        if (n < sizeof ending || strcmp(entry->d_name + n - (sizeof ending - 1), ending) != 0)
            continue;
        if (name->len)
            err = cake_fail("tokenizer", "%s: both %s and %s could be the tokenizer; leave one", dir,
                            name->data, entry->d_name);
        cake_buf_adds(name, entry->d_name);
    }
    if (list)
        closedir(list);
    return err || name->len ? err : CAKE_END;
}

/* Opens tokenizer.model or a .tiktoken file; CAKE_END: neither exists. */
static cake_err open_other(const char *dir, cake_tokenizer **out)
{
    cake_buf path = {0}, name = {0}, bytes = {0};
    cake_specials specials = CAKE_SPECIALS_NONE;
    cake_buf_addf(&path, "%s/tokenizer.model", dir);
    cake_err err = cake_model_files_read("tokenizer", dir, "tokenizer.model", LARGEST_FILE, &bytes);
    if (err == CAKE_END && !(err = find_tiktoken(dir, &name))) {
        cake_buf_cut(&path, 0);
        cake_buf_addf(&path, "%s/%s", dir, name.data);
        err = cake_file_read("tokenizer", path.data, false, LARGEST_FILE, &bytes);
    }
    if (!err)
        err = cake_specials_open(dir, "", 0, &specials);
    if (!err)
        err = import(bytes.data ? bytes.data : "", bytes.len, path.data, &specials, out);
    cake_specials_close(&specials);
    cake_buf_free(&bytes);
    cake_buf_free(&path);
    cake_buf_free(&name);
    return err;
}

/* Opens tokenizer.json with the files next to it; its post-processor decides what is put around a text. */
static cake_err open_own(const char *dir, const char *path, const cake_buf *text, cake_tokenizer **out)
{
    const char *json = text->data ? text->data : "";
    cake_specials specials;
    cake_err err = cake_specials_open(dir, json, text->len, &specials);
    specials.bos = specials.eos = false;
    if (!err)
        err = parse(json, text->len, true, &specials, path, out);
    cake_specials_close(&specials);
    return err;
}

/* Fails since dir has no supported file; the message lists what it has of a tokenizer. */
static cake_err fail_missing(const char *dir, const char *path)
{
    static const char *const others[] = {"vocab.json", "merges.txt", "vocab.txt", "tekken.json",
                                         "spiece.model"};
    cake_buf found = {0}, bytes = {0};
    cake_err err = CAKE_OK;
    for (size_t i = 0; i < sizeof others / sizeof *others && !err; i++) {
        cake_buf other = {0};
        cake_buf_addf(&other, "%s/%s", dir, others[i]);
        cake_buf_cut(&bytes, 0);
        if (!cake_file_peek(other.data, LARGEST_FILE, &bytes)) {
            cake_buf_adds(&found, found.len ? ", " : "; found ");
            cake_buf_adds(&found, others[i]);
            err =
                bytes.len ? cake_file_check_pointer("tokenizer", other.data, bytes.data, bytes.len) : CAKE_OK;
        }
        cake_buf_free(&other);
    }
    if (found.len)
        cake_buf_adds(&found, ": save it with transformers' save_pretrained, which writes tokenizer.json");
    if (!err)
        err = cake_fail("tokenizer",
                        "%s: cannot be opened: "
                        "No such file or directory, and no tokenizer.model or .tiktoken file either%s",
                        path, found.len ? found.data : "");
    cake_buf_free(&found);
    cake_buf_free(&bytes);
    return err;
}

cake_err cake_tokenizer_open(const char *dir, cake_tokenizer **out)
{
    cake_buf path = {0}, text = {0};
    cake_buf_addf(&path, "%s/tokenizer.json", dir);
    cake_err err = cake_model_files_read("tokenizer", dir, "tokenizer.json", LARGEST_FILE, &text);
    if (err == CAKE_END)
        err = open_other(dir, out);
    else if (!err)
        err = open_own(dir, path.data, &text, out);
    if (err == CAKE_END)
        err = fail_missing(dir, path.data);
    cake_buf_free(&text);
    cake_buf_free(&path);
    return err;
}

void cake_tokenizer_close(cake_tokenizer *token)
{
    if (!token)
        return;
    cake_normalizers_close(&token->normalizers);
    cake_pre_tokenizers_close(&token->splitters);
    cake_tokenizer_model_close(&token->words);
    cake_added_close(&token->added);
    cake_post_processor_close(&token->post);
    cake_stages_close(&token->stages);
    free(token->known);
    free(token->where);
    free(token);
}

int cake_tokenizer_count(const cake_tokenizer *token)
{
    return token->count;
}

int32_t cake_tokenizer_find(const cake_tokenizer *token, const char *text, size_t len)
{
    const cake_added_token *added = cake_added_find(&token->added, text, len);
    return added ? added->id : cake_vocab_find(&token->words.vocab, text, len);
}

int32_t cake_tokenizer_eos(const cake_tokenizer *token)
{
    return token->eos;
}

int32_t cake_tokenizer_first(const cake_tokenizer *token)
{
    return token->bos >= 0 ? token->bos : token->eos;
}

bool cake_tokenizer_begins(const cake_tokenizer *token, const char *text, size_t len)
{
    const int32_t first = cake_tokenizer_first(token);
    cake_buf bytes = {0};
    if (first >= 0)
        cake_tokenizer_bytes(token, first, &bytes);
    const bool begins = bytes.len && bytes.len <= len && !memcmp(text, bytes.data, bytes.len);
    cake_buf_free(&bytes);
    return begins;
}

bool cake_tokenizer_is_special(const cake_tokenizer *token, int32_t id)
{
    return id >= 0 && id < token->count && token->known[id].special;
}

size_t cake_tokenizer_longest(const cake_tokenizer *token)
{
    return token->longest;
}

void cake_tokenizer_bytes(const cake_tokenizer *token, int32_t id, cake_buf *out)
{
    if (id < 0 || id >= token->count || !token->known[id].text)
        return;
    const cake_token_info *known = &token->known[id];
    if (known->added)
        cake_buf_add(out, known->text, known->len);
    else
        cake_stages_bytes(&token->stages, known->text, known->len, out);
}

/* --- encoding --- */

typedef struct encoding {
    const cake_tokenizer *token;
    cake_encode_ws scratch;
    cake_ids *ids;
    cake_fault *fault;
} encoding;

static cake_err encode_piece(void *own, const char *piece, size_t len)
{
    encoding *e = own;
    return cake_tokenizer_model_run(&e->token->words, piece, len, e->token->splitters.raw, &e->scratch,
                                    e->ids, e->fault);
}

/* Encodes normalized text; first: it is the beginning of the input. */
static cake_err encode_plain(encoding *e, const char *text, size_t len, bool first)
{
    if (!len)
        return CAKE_OK;
    return cake_pre_tokenizers_run(&e->token->splitters, text, len, first, &e->scratch,
                                   &(cake_split_sink){e, encode_piece}, e->fault);
}

typedef cake_err (*encode_rest)(encoding *e, const char *text, size_t len, bool first);

/* Encodes added tokens of one trie; the text between them goes to `rest`. */
static cake_err encode_added(encoding *e, const cake_trie *trie, const char *text, size_t len, bool first,
                             encode_rest rest)
{
    cake_err err = CAKE_OK;
    size_t from = 0, at = 0;
    while (!err) {
        cake_added_match match = cake_added_next(&e->token->added, trie, text, len, from, &at);
        if (match.start > from)
            err = rest(e, text + from, match.start - from, first && !from);
        if (!match.token)
            break;
        if (!err)
            cake_ids_add(e->ids, match.token->id);
        from = match.end;
    }
    return err;
}

static cake_err encode_normalized(encoding *e, const char *text, size_t len, bool first)
{
    const cake_trie *trie = &e->token->added.normalized;
    cake_buf *normal = &e->scratch.normal;
    if (!e->token->normalizers.n)
        return encode_added(e, trie, text, len, first, encode_plain);
    cake_buf_cut(normal, 0);
    cake_buf_add(normal, text, len);
    cake_err err = cake_normalizers_run(&e->token->normalizers, &e->scratch, e->fault);
    if (e->scratch.spare.cap > MAX_SPARE)
        cake_buf_free(&e->scratch.spare);
    return err || !normal->len
               ? err
               : encode_added(e, trie, normal->data, normal->len, first && !e->scratch.moved, encode_plain);
}

cake_err cake_tokenizer_encode(const cake_tokenizer *token, const char *text, size_t len, bool post,
                               cake_ids *ids, cake_fault *fault)
{
    if (len > MAX_TEXT)
        return cake_fault_set(fault, NULL, "the text has %zu bytes; expected at most %zu", len, MAX_TEXT);
    size_t valid = cake_utf8_check(text, len);
    if (valid < len)
        return cake_fault_set(fault, NULL, "the text is not UTF-8: byte %zu is 0x%02X", valid,
                              (unsigned char)text[valid]);
    encoding e = {.token = token, .ids = ids, .fault = fault};
    for (size_t i = 0; post && i < token->post.before.len; i++)
        cake_ids_add(ids, token->post.before.id[i]);
    cake_err err = encode_added(&e, &token->added.raw, text, len, true, encode_normalized);
    for (size_t i = 0; post && !err && i < token->post.after.len; i++)
        cake_ids_add(ids, token->post.after.id[i]);
    cake_encode_ws_free(&e.scratch);
    return err;
}

cake_err cake_tokenizer_pair(const cake_tokenizer *token, const cake_ids *a, const cake_ids *b, cake_ids *ids,
                             int *second, cake_fault *fault)
{
    const cake_post_processor *post = &token->post;
    const cake_ids *lists[] = {&post->pair[0], a, &post->pair[1], b, &post->pair[2]};
    if (post->no_pair)
        return cake_fault_set(fault, NULL,
                              "this model's tokenizer has no pairs of texts, or such as are not supported");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (i == 2)
            *second = (int)ids->len + (post->second >= 0 ? post->second : 0);
        cake_ids_append(ids, lists[i]->id, lists[i]->len);
    }
    if (post->second < 0)
        *second = (int)ids->len;
    return CAKE_OK;
}
