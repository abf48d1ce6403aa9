/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts. Out: a tree of states over them.
 */
#include "grammar/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

static int by_bytes(const void *a, const void *b)
{
    const cake_text *x = a, *y = b;
    const int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Adds what follows the first `at` bytes, from state[at] on; state [len + 1]: after each character. */
static void add_rest(cake_automaton *a, const cake_text *text, size_t at, cake_coding coding, int32_t *state)
{
    while (at < text->len && !a->full) {
        uint32_t code;
        const int size = cake_utf8_next(text->text + at, text->len - at, &code);
        if (size <= 0)
            return;
        cake_char_range range = {code, code};
        const int32_t next = cake_automaton_state(a);
        cake_automaton_chars(a, state[at], &(cake_chars){.range = &range, .n = 1}, coding, next);
        at += (size_t)size;
        state[at] = next;
    }
}

void cake_texts_add(cake_automaton *a, int32_t from, cake_text *texts, size_t n, cake_coding coding,
                    int32_t to)
{
    size_t longest = 0;
    for (size_t i = 0; i < n; i++)
        longest = texts[i].len > longest ? texts[i].len : longest;
    int32_t *state = cake_alloc(longest + 1, sizeof *state);
    state[0] = from;
    if (n)
        qsort(texts, n, sizeof *texts, by_bytes);
    for (size_t i = 0; i < n && !a->full; i++) {
        const cake_text own = texts[i], before = i ? texts[i - 1] : (cake_text){"", 0};
        size_t common = 0;
        while (common < own.len && common < before.len && own.text[common] == before.text[common])
            common++;
        cake_automaton_spend(a, 8 + common / 8);
        if (i && common == own.len && common == before.len)
            continue;
        while (common && common < own.len && ((unsigned char)own.text[common] & 0xC0) == 0x80)
            common--; /* to a character's beginning */
        add_rest(a, &own, common, coding, state);
        if (!a->full)
            cake_automaton_empty(a, state[own.len], to);
    }
    free(state);
}

void cake_text_add(cake_automaton *a, int32_t from, const char *text, size_t len, cake_coding coding,
                   int32_t to)
{
    cake_texts_add(a, from, &(cake_text){text, len}, 1, coding, to);
}
