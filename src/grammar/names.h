/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of members in a JSON text that grows: whether an object gets one twice, which no automaton sees.
 */
#ifndef CAKE_GRAMMAR_NAMES_H
#define CAKE_GRAMMAR_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cake_names_level {
    int from; /* its first name */
    bool object;
} cake_names_level;

/* Zeros are an empty text. Texts that are no JSON are followed as far as they look like it. */
typedef struct cake_names {
    cake_names_level *open; /* [n_open] objects and arrays that are not closed */
    int n_open, cap_open;
    uint64_t *name; /* [n_name] hashes of the names of open objects */
    int n_name, cap_name;
    bool awaits; /* a string that begins now is a name */
    bool string, key, escape;
    int hex; /* digits of \uXXXX that are missing */
    uint32_t code, high;
    uint64_t hash;
    bool repeated; /* an object has a name twice */
} cake_names;

void cake_names_add(cake_names *names, const char *bytes, size_t n);
/* Whether an object would have a name twice with these bytes. trial: scratch, which the caller frees. */
bool cake_names_would_repeat(const cake_names *names, const char *bytes, size_t n, cake_names *trial);
void cake_names_free(cake_names *names);

#endif
