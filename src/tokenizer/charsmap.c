/* SPDX-License-Identifier: Apache-2.0
 *
 * Precompiled: the normal forms in SentencePiece's models. In: the map in base64, then text. Out: the text
 * with its grapheme clusters replaced.
 *
 * The map is a little-endian uint32, the size of a trie; the trie, a double array of uint32 as written by
 * Darts-clone; and the replacements, each ended by a NUL, to which the trie's values are offsets. For a
 * cluster of less than six bytes the shortest entry that it begins with replaces all of it. Other clusters,
 * and those without an entry, are looked up character by character.
 * Invariant: every index is checked against the array; replacements are valid UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/unicode.h"
#include "tokenizer/internal.h"

#define WHOLE 6 /* bytes from which a cluster is looked up by characters */

struct cake_charsmap {
    uint32_t *unit; /* [n_unit] the double array */
    size_t n_unit;
    char *text; /* [len] the replacements, followed by a NUL */
    size_t len;
    bool ascii[0x80]; /* whether the character has an entry */
};

/* The distance from a node of the double array to its children. */
static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* The replacement of the shortest entry that text begins with, or NULL. */
static const char *look_up(const cake_charsmap *map, const char *text, size_t len)
{
    size_t node = map->n_unit ? offset_of(map->unit[0]) : 0;
    for (size_t i = 0; i < len && text[i]; i++) {
        unsigned char byte = (unsigned char)text[i];
        node ^= byte;
        if (node >= map->n_unit || (map->unit[node] & (1u << 31 | 0xFF)) != byte)
            return NULL;
        bool leaf = map->unit[node] >> 8 & 1;
        node ^= offset_of(map->unit[node]);
        if (!leaf)
            continue;
        uint32_t value = node < map->n_unit ? map->unit[node] & INT32_MAX : UINT32_MAX;
        return value < map->len ? map->text + value : NULL;
    }
    return NULL;
}

static cake_err read_map(const cake_json_path *path, const cake_buf *bytes, cake_charsmap *map)
{
    const unsigned char *b = (const unsigned char *)bytes->data;
    size_t size =
        bytes->len < 4 ? SIZE_MAX : b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
    if (size == SIZE_MAX || size > bytes->len - 4 || size % 4)
        return cake_json_path_fail(
            path, "the map has %zu bytes, too few for its trie, or the trie's size is odd", bytes->len);
    map->len = bytes->len - 4 - size;
    map->text = cake_copy(bytes->data + 4 + size, map->len);
    size_t bad = cake_utf8_check(map->text, map->len);
    if (bad < map->len)
        return cake_json_path_fail(path, "the replacements are not UTF-8: byte %zu of the map is 0x%02X",
                                   4 + size + bad, (unsigned char)map->text[bad]);
    map->n_unit = size / 4;
    map->unit = cake_alloc(map->n_unit, sizeof *map->unit);
    for (size_t i = 0; i < map->n_unit; i++) {
        const unsigned char *u = b + 4 + 4 * i;
        map->unit[i] = u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
    }
    for (char c = 1; c > 0 && c < 0x7F; c++)
        map->ascii[(int)c] = look_up(map, &c, 1) != NULL;
    return CAKE_OK;
}

cake_err cake_charsmap_open(const cake_json_path *path, cake_charsmap **out)
{
    cake_buf bytes = {0};
    size_t len = 0;
    cake_err err = cake_json_path_need(path, CAKE_JSON_STRING, "a string in base64");
    const char *text = err ? NULL : cake_json_text(path->node, &len);
    size_t good = err ? 0 : cake_buf_read_base64(text, len, &bytes);
    if (!err && good < len)
        err = cake_json_path_fail(path, "byte %zu is 0x%02X, which is no base64", good,
                                  (unsigned char)text[good]);
    if (!err) {
        *out = cake_alloc(1, sizeof **out);
        err = read_map(path, &bytes, *out);
    }
    cake_buf_free(&bytes);
    return err;
}

void cake_charsmap_close(cake_charsmap *map)
{
    if (!map)
        return;
    free(map->unit);
    free(map->text);
    free(map);
}

static bool is_plain(const cake_charsmap *map, const char *text, size_t len, size_t at)
{
    unsigned char c = (unsigned char)text[at];
    return c < 0x7F && c != '\r' && !map->ascii[c] && (at + 1 == len || (unsigned char)text[at + 1] < 0x80);
}

void cake_charsmap_run(const cake_charsmap *map, const char *text, size_t len, cake_buf *out)
{
    for (size_t at = 0, n; at < len && out->len <= CAKE_MAX_GROWN; at += n) {
        for (n = 0; at + n < len && is_plain(map, text, len, at + n);)
            n++;
        if (n) {
            cake_buf_add(out, text + at, n);
            continue;
        }
        n = cake_grapheme_next(text + at, len - at);
        const char *whole = n < WHOLE ? look_up(map, text + at, n) : NULL;
        if (whole) {
            cake_buf_adds(out, whole);
            continue;
        }
        for (size_t i = 0, k; i < n; i += k) {
            k = (size_t)cake_utf8_next(text + at + i, n - i, NULL);
            const char *one = look_up(map, text + at + i, k);
            cake_buf_add(out, one ? one : text + at + i, one ? strlen(one) : k);
        }
    }
}
