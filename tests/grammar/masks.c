/* SPDX-License-Identifier: Apache-2.0
 *
 * Masks against a check of every token at every step, on random walks; the texts that come out are those that
 * the grammar takes. Vocabularies of single bytes and of pieces that cross the borders of JSON's tokens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "grammar/grammar_parts.h"
#include "grammar/validate.h"
#include "tests/suite.h"

static const char *const pieces[] = {
    "{\"",      "\": \"",   "\",",    "\", \"", "\"}",      "}}",       "[[",
    "], [",     "true",     "null,",  " {",     " \"",      "  ",       "\n  ",
    "\n",       "\\\"",     "\\u00",  "\\n",    "name",     "na",       "e\": ",
    "12",       "345,",     "0.5",    "-1",     "e+",       "the ship", " rain",
    "\xC3\xA9", "\xE6\x9D", "\xB1\"", "a\xC3",  "\xF0\x9F", "\x98\x80", "yes",
    "yes, s",   "ab",       "abc",    "(((",    ")))",      "2024-",    "2024-02",
    "-29\"",    "{}",       "[]",     "[1",     "\"a\":",   "\": [\"",  "zzzzzzzzzzzzzzzzzzzz",
    " rain"};

enum { N_PIECE = sizeof pieces / sizeof *pieces, BYTES = 256, EOS = BYTES + N_PIECE, N_VOCAB = EOS + 3 };

static cake_vocabulary *vocabulary_of(bool strips)
{
    cake_buf bytes = {0};
    int32_t length[N_VOCAB];
    for (int32_t id = 0; id < N_VOCAB; id++) {
        const char byte = (char)id, *piece = id >= BYTES && id < EOS ? pieces[id - BYTES] : &byte;
        length[id] = id < BYTES ? 1 : id < EOS ? (int32_t)strlen(piece) : 0;
        cake_buf_add(&bytes, piece, (size_t)length[id]);
    }
    cake_vocabulary *v = cake_vocabulary_build(bytes.data, length, N_VOCAB, strips);
    cake_buf_free(&bytes);
    return v;
}

static bool has(const cake_mask *mask, int32_t id)
{
    for (int32_t i = 0; i < mask->n; i++)
        if (mask->id[i] == id)
            return mask->allowed;
    return !mask->allowed;
}

/* The state after the token, each byte by itself; a blank at the very beginning may be dropped. */
static int32_t after(cake_state_sets *sets, int32_t state, const cake_vocabulary *v, int32_t id, bool first)
{
    for (int64_t at = v->begin[id] + (first && v->strips && v->bytes[v->begin[id]] == ' ');
         at < v->begin[id + 1]; at++)
        state = cake_state_sets_next(sets, state, (uint8_t)v->bytes[at]);
    return state;
}

static uint32_t seed = 1;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

/* One random answer. */
static void walk_once(cake_grammar *g, const cake_vocabulary *v, int longest)
{
    const int32_t ends[] = {EOS, EOS + 1, EOS}; /* a request may repeat an end of the model */
    cake_constraint *c = cake_constraint_open(cake_grammar_share(g), v, ends, 3, true);
    cake_state_sets *sets = cake_state_sets_open(&g->automaton, g->root);
    int32_t state = CAKE_STATE_BEGIN;
    cake_buf text = {0};
    cake_buf_adds(&text, "");
    for (int step = 0; step < longest; step++) {
        const cake_mask mask = cake_constraint_mask(c);
        int32_t fit[N_VOCAB];
        uint32_t n = 0;
        CU_ASSERT_PTR_NULL(cake_constraint_stuck(c));
        for (int32_t i = 1; i < mask.n; i++)
            CU_ASSERT_FATAL(mask.id[i - 1] < mask.id[i]);
        for (int32_t id = 0; id < N_VOCAB; id++) {
            const bool end = id == EOS || id == EOS + 1, alone = !step && v->strips && id == ' ';
            /* a blank alone is dropped, and may come where the text may have one */
            const bool fits = end         ? cake_state_sets_ends(sets, state)
                              : id >= EOS ? false
                                          : after(sets, state, v, id, !step && !alone) != CAKE_STATE_NONE;
            if (has(&mask, id) != fits)
                fprintf(stderr, "    after \"%.*s\": token %d is %s\n", (int)text.len, text.data, id,
                        fits ? "forbidden" : "allowed");
            CU_ASSERT_EQUAL_FATAL(has(&mask, id), fits);
            if (fits)
                fit[n++] = id;
        }
        CU_ASSERT_FATAL(n > 0);
        const int32_t id = fit[draw(n)];
        CU_ASSERT_EQUAL(cake_constraint_complete(c), n <= 2 && fit[0] >= EOS);
        if (id >= EOS) {
            CU_ASSERT(cake_grammar_has(g, text.data, text.len));
            break;
        }
        const bool drops = !step && v->strips && v->bytes[v->begin[id]] == ' ';
        cake_buf_add(&text, v->bytes + v->begin[id] + drops,
                     (size_t)(v->begin[id + 1] - v->begin[id]) - drops);
        state = after(sets, state, v, id, !step);
        cake_constraint_add(c, id);
    }
    cake_state_sets_close(sets);
    cake_constraint_close(c);
    cake_buf_free(&text);
}

static const cake_constraint_source sources[] = {
    {.kind = CAKE_CONSTRAINT_OBJECT},
    {.kind = CAKE_CONSTRAINT_OBJECT, .compact = true},
    {.kind = CAKE_CONSTRAINT_REGEX, .text = (char *)"(yes|no|yes, sir)[a-z ]{0,30}"},
    {.kind = CAKE_CONSTRAINT_REGEX, .text = (char *)".{3,12}"},
    {.kind = CAKE_CONSTRAINT_REGEX, .text = (char *)"[^a]*b"},
    {.kind = CAKE_CONSTRAINT_CHOICE, .text = (char *)"[\"yes\", \"yes, sir\", \"\xE6\x9D\xB1\", \" rain\"]"},
    {.kind = CAKE_CONSTRAINT_CHOICE, .text = (char *)"[\" a\", \"  a\"]"},
    {.kind = CAKE_CONSTRAINT_CHOICE, .text = (char *)"[\" \"]"},
    {.kind = CAKE_CONSTRAINT_REGEX, .text = (char *)" +x"},
    {.kind = CAKE_CONSTRAINT_GRAMMAR, .text = (char *)"root ::= \"(\" root \")\" | \"ab\" root | [0-9]+"},
    {.kind = CAKE_CONSTRAINT_SCHEMA, .text = (char *)"{\"type\": \"string\"}"},
    {.kind = CAKE_CONSTRAINT_SCHEMA, .text = (char *)"{\"type\": \"string\", \"maxLength\": 40}"},
    {.kind = CAKE_CONSTRAINT_SCHEMA,
     .text = (char *)"{\"type\": \"string\", \"maxLength\": 10, \"pattern\": \"a\"}"},
    {.kind = CAKE_CONSTRAINT_SCHEMA,
     .text = (char *)"{\"anyOf\": [{\"format\": \"date\", \"type\": \"string\"}, {\"type\": \"number\"}]}"},
    {.kind = CAKE_CONSTRAINT_SCHEMA,
     .text = (char *)"{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, \"na\": "
                     "{\"type\": \"integer\", \"maximum\": 345}, "
                     "\"next\": {\"anyOf\": [{\"$ref\": \"#\"}, {\"type\": \"null\"}]}}, \"required\": "
                     "[\"name\"], \"additionalProperties\": {\"type\": \"boolean\"}}"},
};

static void test_masks(void)
{
    for (int strips = 0; strips < 2; strips++) {
        cake_vocabulary *v = vocabulary_of(strips);
        for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
            cake_constraint_source source = sources[i];
            cake_grammar *g = NULL;
            cake_fault fault = {0};
            source.len = source.text ? strlen(source.text) : 0;
            CU_ASSERT_FATAL(!cake_grammar_open(&source, &g, &fault));
            for (int round = 0; round < (suite_all() ? 200 : 12); round++)
                walk_once(g, v, 60);
            cake_grammar_close(g);
        }
        cake_vocabulary_close(v);
    }
}

/* A finished answer; NULL: it was not finished. */
static cake_json *answer_once(cake_grammar *g, const cake_vocabulary *v)
{
    const int32_t end = EOS;
    cake_constraint *c = cake_constraint_open(cake_grammar_share(g), v, &end, 1, true);
    cake_buf text = {0};
    cake_json *root = NULL;
    cake_fault fault = {0};
    bool over = false;
    for (int step = 0; step < 200 && !over && !cake_constraint_stuck(c); step++) {
        const cake_mask mask = cake_constraint_mask(c);
        int32_t fit[N_VOCAB];
        uint32_t n = 0;
        for (int32_t id = 0; id < N_VOCAB; id++)
            if (has(&mask, id))
                fit[n++] = id;
        const int32_t id = n ? fit[draw(n)] : 0;
        over = n && id == EOS;
        if (!n || over)
            continue;
        cake_buf_add(&text, v->bytes + v->begin[id], (size_t)(v->begin[id + 1] - v->begin[id]));
        cake_constraint_add(c, id);
    }
    if (over)
        CU_ASSERT(!cake_json_parse(text.data, text.len, &root, &fault));
    cake_constraint_close(c);
    cake_buf_free(&text);
    return root;
}

/* Names that are not listed are counted; none counts twice, whichever way it is written. */
static void test_names(void)
{
    const char *schema =
        "{\"type\": \"object\", \"minProperties\": 3, \"maxProperties\": 3, \"propertyNames\": {\"pattern\": "
        "\"^[ab\\n]?$\"}, \"additionalProperties\": {\"anyOf\": [{\"const\": 1}, {\"type\": \"object\", "
        "\"minProperties\": 2, \"propertyNames\": {\"pattern\": \"^.?$\"}, \"additionalProperties\": "
        "{\"const\": 1}}]}}";
    const cake_constraint_source source = {
        .kind = CAKE_CONSTRAINT_SCHEMA, .compact = true, .text = (char *)schema, .len = strlen(schema)};
    cake_vocabulary *v = vocabulary_of(false);
    cake_grammar *g = NULL;
    cake_json *root = NULL;
    cake_fault fault = {0};
    int n = 0;
    CU_ASSERT_FATAL(!cake_json_parse(schema, strlen(schema), &root, &fault));
    CU_ASSERT_FATAL(!cake_grammar_open(&source, &g, &fault));
    for (int round = 0; round < 2000; round++) {
        cake_json *answer = answer_once(g, v);
        n += answer != NULL;
        CU_ASSERT(!answer || cake_schema_valid(root, answer));
        cake_json_free(answer);
    }
    CU_ASSERT(n > 300);
    cake_json_free(root);
    cake_grammar_close(g);
    cake_vocabulary_close(v);
}

static cake_grammar *get(cake_grammar_cache *cache, cake_constraint_kind kind, const char *text)
{
    const cake_constraint_source source = {.kind = kind, .text = (char *)text, .len = strlen(text)};
    return cake_grammar_cache_get(cache, &source);
}

/* Equal sources are compiled once, with mistakes and without, in a thread and without; the cache forgets the
 * oldest. */
static void check_cache(bool threaded)
{
    cake_grammar_cache *cache = cake_grammar_cache_open();
    cake_fault fault = {0}, same = {0};
    if (threaded)
        cake_grammar_cache_start(cache);
    cake_grammar *first = get(cache, CAKE_CONSTRAINT_REGEX, "ab"),
                 *wrong = get(cache, CAKE_CONSTRAINT_REGEX, "a("),
                 *again = get(cache, CAKE_CONSTRAINT_REGEX, "ab"),
                 *other = get(cache, CAKE_CONSTRAINT_CHOICE, "[\"ab\"]"),
                 *wrong_again = get(cache, CAKE_CONSTRAINT_REGEX, "a(");
    CU_ASSERT(first == again && wrong == wrong_again && other != first);
    CU_ASSERT(!cake_grammar_wait(first, &fault) && !cake_grammar_wait(again, &fault));
    CU_ASSERT(cake_grammar_is_compiled(first));
    CU_ASSERT_EQUAL(cake_grammar_wait(wrong, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_EQUAL(cake_grammar_wait(wrong_again, &same), CAKE_ERR_REQUEST);
    CU_ASSERT_STRING_EQUAL(fault.message, same.message);
    for (int i = 0; i < 1000; i++) {
        char text[16];
        snprintf(text, sizeof text, "x%d", i);
        cake_grammar_close(get(cache, CAKE_CONSTRAINT_REGEX, text));
    }
    cake_grammar *late = get(cache, CAKE_CONSTRAINT_REGEX, "ab");
    CU_ASSERT(late != first);
    CU_ASSERT(!cake_grammar_wait(late, &fault));
    cake_grammar_cache_close(cache); /* with some that nobody has compiled */
    CU_ASSERT(cake_grammar_has(first, "ab", 2) && cake_grammar_has(late, "ab", 2));
    cake_grammar_close(first);
    cake_grammar_close(wrong);
    cake_grammar_close(again);
    cake_grammar_close(other);
    cake_grammar_close(wrong_again);
    cake_grammar_close(late);
}

static void test_cache(void)
{
    check_cache(false);
    check_cache(true);
}

/* Much memory of states is dropped, and answers go on. */
static void test_forgetting(void)
{
    cake_vocabulary *v = vocabulary_of(false);
    cake_constraint_source source = {.kind = CAKE_CONSTRAINT_REGEX,
                                     .text = (char *)"([ab]*a[ab]{14}c|[ab]*)*"};
    cake_grammar *g = NULL;
    cake_fault fault = {0};
    source.len = strlen(source.text);
    CU_ASSERT_FATAL(!cake_grammar_open(&source, &g, &fault));
    g->most_bytes = (size_t)64 << 10;
    cake_constraint *c = cake_constraint_open(cake_grammar_share(g), v, NULL, 0, true);
    for (int i = 0; i < 8000; i++) {
        const cake_mask mask = cake_constraint_mask(c);
        CU_ASSERT_FATAL(has(&mask, 'a') && has(&mask, 'b') && !has(&mask, 'd'));
        cake_constraint_add(c, draw(2) ? 'a' : 'b');
    }
    CU_ASSERT(g->era > 0);
    cake_constraint_close(c);
    cake_grammar_close(g);
    cake_vocabulary_close(v);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A set that takes more steps than are allowed is not made; with more it is, and is the right one. */
static void test_steps(void)
{
    cake_constraint_source source = {.kind = CAKE_CONSTRAINT_GRAMMAR,
                                     .text = (char *)"root ::= \"(\" root (a | b) | \"x\"\n"
                                                     "a ::= \")\" | \")\" \";\"\nb ::= \")\" | a a"};
    cake_grammar *g = NULL;
    cake_fault fault = {0};
    source.len = strlen(source.text);
    CU_ASSERT_FATAL(!cake_grammar_open(&source, &g, &fault));
    cake_state_sets *some = cake_state_sets_open(&g->automaton, g->root),
                    *all = cake_state_sets_open(&g->automaton, g->root);
    int32_t a = CAKE_STATE_BEGIN, b = CAKE_STATE_BEGIN;
    int n_over = 0;
    for (const char *at = "((((((x))))));)"; *at; at++) {
        int32_t next = CAKE_STATE_NONE;
        cake_state_sets_allow(some, 3);
        for (int64_t work = 3; next = cake_state_sets_next(some, a, (uint8_t)*at), cake_state_sets_over(some);
             work *= 2, n_over++) {
            CU_ASSERT_EQUAL(next, CAKE_STATE_NONE);
            CU_ASSERT_EQUAL(cake_state_sets_next(some, a, (uint8_t)*at), CAKE_STATE_NONE);
            cake_state_sets_allow(some, work);
        }
        a = next;
        b = cake_state_sets_next(all, b, (uint8_t)*at);
        CU_ASSERT_EQUAL(a, b);
        CU_ASSERT_EQUAL(cake_state_sets_ends(some, a), cake_state_sets_ends(all, b));
    }
    CU_ASSERT(a != CAKE_STATE_NONE && n_over > 20);
    cake_state_sets_close(some);
    cake_state_sets_close(all);
    cake_grammar_close(g);
}

/* What would take too long is said so, in time. */
static void test_bombs(void)
{
    cake_vocabulary *v = vocabulary_of(false);
    static const struct {
        cake_constraint_kind kind;
        const char *text;
    } bombs[] = {{CAKE_CONSTRAINT_REGEX, "(.{0,200}){0,100}x"},
                 {CAKE_CONSTRAINT_REGEX, "((a?){300}){100}b"},
                 {CAKE_CONSTRAINT_REGEX, "(.*.*.*.*.*.*){50}"},
                 /* calls that are joined, again and again below others */
                 {CAKE_CONSTRAINT_GRAMMAR, "root ::= s\ns ::= \"a\" s s s s | \"a\" s s | \"a\" | \"\""},
                 {CAKE_CONSTRAINT_GRAMMAR, "root ::= s\ns ::= t t t t\nt ::= \"a\" s | \"b\" s | \"\""}};
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        const cake_constraint_source source = {
            .kind = bombs[i].kind, .text = (char *)(uintptr_t)bombs[i].text, .len = strlen(bombs[i].text)};
        cake_grammar *g = NULL;
        cake_fault fault = {0};
        CU_ASSERT_FATAL(!cake_grammar_open(&source, &g, &fault));
        cake_constraint *c = cake_constraint_open(g, v, NULL, 0, true);
        bool stuck = false;
        for (int step = 0; step < 30 && !stuck; step++) {
            const double begin = seconds();
            cake_constraint_mask(c);
            stuck = cake_constraint_stuck(c);
            cake_constraint_add(c, 'a');
            const double took = seconds() - begin;
            if (took > 2)
                fprintf(stderr, "    %s: step %d takes %.2f s\n", bombs[i].text, step, took);
            CU_ASSERT(took < 20); /* a second or so; machines of tests are slow */
        }
        CU_ASSERT(!stuck || strstr(cake_constraint_stuck(c), "too ambiguous"));
        cake_constraint_close(c);
    }
    cake_vocabulary_close(v);
}

int main(void)
{
    static const suite_test tests[] = {{"masks are those of a check of every token", test_masks},
                                       {"equal constraints are compiled once", test_cache},
                                       {"no object gets a name twice", test_names},
                                       {"states are dropped and found again", test_forgetting},
                                       {"steps are limited", test_steps},
                                       {"bombs", test_bombs}};
    return SUITE_MAIN("masks", tests);
}
