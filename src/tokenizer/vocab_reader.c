/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the text of a tokenizer.json. Out: its vocabulary and merges, or its scores.
 * Invariant: anything unexpected ends the reading, silently.
 */
#include "tokenizer/vocab_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tokenizer/parse_score.h"

typedef struct cursor {
    const char *at, *end;
    cake_buf *spare; /* for decoding a string with escapes */
} cursor;

typedef struct span {
    const char *text;
    size_t len;
} span;

static char look(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
    return c->at < c->end ? *c->at : 0;
}

static bool take(cursor *c, char what)
{
    if (look(c) != what)
        return false;
    c->at++;
    return true;
}

static bool read_hex(cursor *c, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *hit = c->at < c->end && *c->at ? strchr(digits, *c->at) : NULL;
        if (!hit)
            return false;
        *code = *code << 4 | (uint32_t)(hit - digits > 15 ? hit - digits - 6 : hit - digits);
    }
    return true;
}

/* Reads an escape after its backslash. */
static bool read_escape(cursor *c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char letter = c->at < c->end ? *c->at++ : 0, bytes[4];
    const char *hit = letter ? strchr(from, letter) : NULL;
    uint32_t code, low;
    if (hit) {
        cake_buf_addc(c->spare, to[hit - from]);
        return true;
    }
    if (letter != 'u' || !read_hex(c, &code) || !code || (code >= 0xDC00 && code <= 0xDFFF))
        return false;
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (c->end - c->at < 6 || c->at[0] != '\\' || c->at[1] != 'u')
            return false;
        c->at += 2;
        if (!read_hex(c, &low) || low < 0xDC00 || low > 0xDFFF)
            return false;
        code = 0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00);
    }
    cake_buf_add(c->spare, bytes, (size_t)cake_utf8_put(bytes, code));
    return true;
}

/* Reads a string; *out points into the text, or into spare, where it is valid until the next string. */
static bool read_string(cursor *c, span *out)
{
    if (!take(c, '"'))
        return false;
    const char *begin = c->at;
    while (c->at < c->end && *c->at != '"' && *c->at != '\\' && (unsigned char)*c->at >= 0x20)
        c->at++;
    *out = (span){begin, (size_t)(c->at - begin)};
    if (c->at < c->end && *c->at == '"')
        return c->at++, true;
    cake_buf_cut(c->spare, 0);
    cake_buf_add(c->spare, begin, out->len);
    while (c->at < c->end && *c->at != '"') {
        if ((unsigned char)*c->at < 0x20)
            return false;
        if (*c->at != '\\')
            cake_buf_addc(c->spare, *c->at++);
        else if (c->at++, !read_escape(c))
            return false;
    }
    *out = (span){c->spare->data, c->spare->len};
    return take(c, '"');
}

/* Skips a value without validating it. */
static bool skip_value(cursor *c)
{
    int depth = 0;
    do {
        char next = look(c);
        span ignored;
        if (next == '"') {
            if (!read_string(c, &ignored))
                return false;
            continue;
        }
        depth += next == '{' || next == '[' ? 1 : next == '}' || next == ']' ? -1 : 0;
        if (!next || depth < 0)
            return false;
        c->at++;
        while (!depth && c->at < c->end && !strchr(",}] \n\t\r", *c->at)) /* the rest of a number or word */
            c->at++;
    } while (depth);
    return true;
}

/* Reads an object at the cursor: for each member, `read` gets the cursor at its value and moves on to its
 * end. The name may change once it reads a string. */
static bool read_members(cursor *c, bool (*read)(void *self, span name, cursor *c), void *self)
{
    span name;
    if (!take(c, '{'))
        return false;
    do
        if (!read_string(c, &name) || !take(c, ':') || !look(c) || !read(self, name, c))
            return false;
    while (take(c, ','));
    return take(c, '}');
}

static bool is_named(span name, const char *key)
{
    return name.len == strlen(key) && !memcmp(name.text, key, name.len);
}

/* The value of a key, which the object must have exactly once. */
typedef struct member {
    const char *key;
    span value;
    int found;
} member;

static bool look_for(void *self, span name, cursor *c)
{
    member *m = self;
    bool same = is_named(name, m->key);
    const char *begin = c->at;
    if (!skip_value(c))
        return false;
    if (same)
        m->value = (span){begin, (size_t)(c->at - begin)};
    m->found += same;
    return true;
}

static bool find_member(cursor c, const char *key, span *value)
{
    member m = {.key = key};
    bool good = read_members(&c, look_for, &m) && m.found == 1;
    *value = m.value;
    return good;
}

static bool read_token(void *self, span token, cursor *c)
{
    int32_t id = 0;
    int digits = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9' && digits < 9; digits++)
        id = 10 * id + (*c->at++ - '0');
    return digits && (digits == 1 || c->at[-digits] != '0') && id < CAKE_MAX_VOCAB &&
           cake_vocab_add(self, token.text, token.len, id) == id;
}

/* "a b", or ["a", "b"]. */
static bool read_pair(cursor *c, const cake_vocab *vocab, cake_pair *out)
{
    span left, right;
    bool list = take(c, '[');
    if (!read_string(c, &left))
        return false;
    if (list) {
        out->left = cake_vocab_find(vocab, left.text, left.len);
        if (!take(c, ',') || !read_string(c, &right) || !take(c, ']'))
            return false;
    } else {
        const char *space = memchr(left.text, ' ', left.len);
        if (!space)
            return false;
        right = (span){space + 1, left.len - (size_t)(space + 1 - left.text)};
        left.len = (size_t)(space - left.text);
        if (memchr(right.text, ' ', right.len))
            return false;
        out->left = cake_vocab_find(vocab, left.text, left.len);
    }
    out->right = cake_vocab_find(vocab, right.text, right.len);
    return out->left >= 0 && out->right >= 0;
}

static bool read_merges(cursor *c, cake_vocab_reader *out)
{
    size_t room = 0;
    if (!take(c, '[') || look(c) == ']')
        return false;
    do {
        if (out->n == room)
            out->pair = cake_grow(out->pair, room = room ? 2 * room : 1024, sizeof *out->pair);
        if (out->n >= UINT32_MAX / 4 || !read_pair(c, &out->vocab, &out->pair[out->n++]))
            return false;
    } while (take(c, ','));
    return take(c, ']');
}

/* What was read of a file, in one pass where the vocabulary comes before the merges. */
typedef struct found_lists {
    cake_vocab_reader *out;
    span vocab, merges; /* their text; NULL: not met yet */
    bool model;
} found_lists;

static bool read_list(void *self, span name, cursor *c)
{
    found_lists *l = self;
    bool vocab = is_named(name, "vocab"), merges = is_named(name, "merges");
    const char *begin = c->at;
    if (vocab ? l->vocab.text : merges ? l->merges.text : NULL)
        return false;
    if (vocab) {
        cake_vocab_expect(&l->out->vocab, (size_t)(c->end - begin) / 48);
        if (!read_members(c, read_token, &l->out->vocab))
            return false;
    } else if (merges && l->vocab.text ? !read_merges(c, l->out) : !skip_value(c)) {
        return false;
    }
    if (vocab || merges)
        *(vocab ? &l->vocab : &l->merges) = (span){begin, (size_t)(c->at - begin)};
    return true;
}

static bool read_model(void *self, span name, cursor *c)
{
    found_lists *l = self;
    if (!is_named(name, "model"))
        return skip_value(c);
    if (l->model)
        return false;
    l->model = true;
    return read_members(c, read_list, l);
}

/* Appends the text with the two spans, in either order, emptied. */
static void add_rest(const char *json, size_t len, span vocab, span merges, cake_buf *rest)
{
    bool swapped = merges.text < vocab.text;
    span first = swapped ? merges : vocab, second = swapped ? vocab : merges;
    const char *after = first.text + first.len, *end = second.text + second.len;
    cake_buf_add(rest, json, (size_t)(first.text - json));
    cake_buf_adds(rest, swapped ? "[]" : "{}");
    cake_buf_add(rest, after, (size_t)(second.text - after));
    cake_buf_adds(rest, swapped ? "{}" : "[]");
    cake_buf_add(rest, end, len - (size_t)(end - json));
}

bool cake_vocab_reader_read(const char *json, size_t len, cake_vocab_reader *out, cake_buf *rest)
{
    cake_buf spare = {0};
    found_lists l = {.out = out};
    *out = (cake_vocab_reader){0};
    bool good = cake_utf8_check(json, len) == len &&
                read_members(&(cursor){json, json + len, &spare}, read_model, &l) && l.vocab.text &&
                l.merges.text;
    if (good && !out->n) /* they came first */
        good = read_merges(&(cursor){l.merges.text, l.merges.text + l.merges.len, &spare}, out);
    cake_buf_free(&spare);
    if (good)
        add_rest(json, len, l.vocab, l.merges, rest);
    else
        cake_vocab_reader_free(out);
    return good;
}

/* [["a", -1.5], ...] */
static bool read_scores(span text, cake_buf *spare, cake_vocab_reader *out)
{
    cursor c = {text.text, text.text + text.len, spare};
    size_t room = 0;
    if (!take(&c, '[') || look(&c) == ']')
        return false;
    do {
        span token;
        size_t n;
        if (out->n_scores == room)
            out->score = cake_grow(out->score, room = room ? 2 * room : 64, sizeof *out->score);
        if (!take(&c, '[') || !read_string(&c, &token) || !take(&c, ',') || !look(&c) ||
            !(n = cake_parse_score(c.at, (size_t)(c.end - c.at), &out->score[out->n_scores++])))
            return false;
        c.at += n;
    } while (take(&c, ']') && take(&c, ','));
    return c.at[-1] == ']' && take(&c, ']') && c.at == c.end;
}

bool cake_vocab_reader_scores(const char *json, size_t len, cake_vocab_reader *out)
{
    cake_buf spare = {0};
    span model, vocab;
    *out = (cake_vocab_reader){0};
    bool good = cake_utf8_check(json, len) == len &&
                find_member((cursor){json, json + len, &spare}, "model", &model) &&
                find_member((cursor){model.text, model.text + model.len, &spare}, "vocab", &vocab) &&
                read_scores(vocab, &spare, out);
    cake_buf_free(&spare);
    if (!good)
        cake_vocab_reader_free(out);
    return good;
}

void cake_vocab_reader_free(cake_vocab_reader *lists)
{
    cake_vocab_free(&lists->vocab);
    free(lists->pair);
    free(lists->score);
    *lists = (cake_vocab_reader){0};
}
