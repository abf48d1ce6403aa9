/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files schema*.c and validate.c only: schema_list.c (references, lists, errors),
 * schema_values.c (values of enum), schema_object.c, schema_array.c, schema_string.c, schema_number.c and
 * schema_enum.c (one type of value each), and schema.c, which calls them; validate.c judges values by them.
 */
#ifndef CAKE_GRAMMAR_SCHEMA_PARTS_H
#define CAKE_GRAMMAR_SCHEMA_PARTS_H

#include "grammar/intersect.h"
#include "grammar/json_rules.h"
#include "grammar/numbers.h"
#include "grammar/schema.h"
#include "grammar/validate.h"

/* A schema, or what counts of it. */
typedef enum cake_schema_share {
    CAKE_SHARE_WHOLE, /* all of it */
    CAKE_SHARE_OWN,   /* its keywords without those that name other schemas for the same value */
    CAKE_SHARE_ANY,   /* its anyOf */
    CAKE_SHARE_ONE    /* its oneOf */
} cake_schema_share;

typedef struct cake_schema_part {
    const cake_json *schema;
    cake_schema_share share;
    int by; /* the part of the list that named it, while references are followed; -1: none */
} cake_schema_part;

/* Schemas that all hold for one value. */
typedef struct cake_schema_list {
    cake_schema_part *part; /* [n] owned */
    int n, cap;
    bool never; /* one of them is false */
} cake_schema_list;

/* A list that has a rule. */
typedef struct cake_schema_rule {
    cake_schema_list list;
    int rule;
} cake_schema_rule;

/* A value, and a number that equal values share. */
typedef struct cake_hashed_value {
    uint64_t hash;
    const cake_json *value;
} cake_hashed_value;

/* The values that a schema's enum and const allow. */
typedef struct cake_value_set {
    const cake_json *schema;
    cake_hashed_value *value; /* [n] sorted by hash */
    size_t n;
    int types; /* of all of them */
} cake_value_set;

/* A schema that has an $anchor. */
typedef struct cake_schema_anchor {
    const char *name;
    const cake_json *schema;
    size_t place; /* earlier ones count */
} cake_schema_anchor;

typedef struct cake_schema_compiler {
    const cake_json *root;
    const cake_schema_options *options;
    cake_automaton *automaton;
    cake_json_rules json;
    cake_exprs exprs;
    cake_schema_rule *known; /* [n_known] those from n_done on are still to be written */
    size_t n_known, cap_known, n_done;
    int32_t *slot; /* [n_slot] hash table of known: 1 + index */
    size_t n_slot;
    cake_value_set **set_slot; /* [n_set_slot] hash table, by schema */
    size_t n_set, n_set_slot;
    cake_schema_anchor *anchor; /* [n_anchor] sorted by name; NULL: not looked for yet */
    size_t n_anchor, cap_anchor;
    cake_validator *validator; /* NULL: none yet */
    cake_fault *fault;
} cake_schema_compiler;

/* CAKE_ERR_REQUEST, naming keyword and place. */
cake_err cake_schema_wrong(cake_schema_compiler *c, const cake_json *schema, const char *keyword,
                           const char *what);
/* The automaton is full because of a schema. */
cake_err cake_schema_too_large(cake_schema_compiler *c, const cake_json *schema);
/* Refuses keywords that are not supported. */
cake_err cake_schema_check_keywords(cake_schema_compiler *c, const cake_json *schema);
void cake_schema_list_add(cake_schema_list *list, const cake_json *schema);
/* Unless it is there. */
void cake_schema_list_add_part(cake_schema_list *list, const cake_json *schema, cake_schema_share share,
                               int by);
/* The rule of the values for which all schemas of the list hold; takes the list over. */
int cake_schema_rule_of(cake_schema_compiler *c, cake_schema_list *list);

/* The keyword's value as a number from 0 on; *count is unchanged if it is absent. */
cake_err cake_schema_count(cake_schema_compiler *c, const cake_json *schema, const char *keyword,
                           int64_t *count);
/* Adds to `automaton` rules of one string without its quotes, and appends them to language [*n]: what they
 * have in common are the texts for which all of the list's keywords hold. None: any text. */
cake_err cake_schema_string_rules(cake_schema_compiler *c, const cake_schema_list *list, cake_coding coding,
                                  cake_automaton *automaton, cake_language *language, int *n);
/* A pattern as a rule of an automaton. */
cake_err cake_schema_pattern(cake_schema_compiler *c, const cake_json *schema, const char *keyword,
                             const char *text, size_t len, cake_coding coding, cake_automaton *to, int *rule);

/* Add edges over the values of one type for which all schemas of the list, shares OWN only, hold. */
cake_err cake_schema_add_string(cake_schema_compiler *c, const cake_schema_list *list, int32_t from,
                                int32_t to);
cake_err cake_schema_add_number(cake_schema_compiler *c, const cake_schema_list *list, bool integer,
                                int32_t from, int32_t to);
cake_err cake_schema_add_array(cake_schema_compiler *c, const cake_schema_list *list, int32_t from,
                               int32_t to);
cake_err cake_schema_add_object(cake_schema_compiler *c, const cake_schema_list *list, int32_t from,
                                int32_t to);

/* Types of values, a bit each. */
enum {
    CAKE_TYPE_NULL = 1,
    CAKE_TYPE_BOOL = 2,
    CAKE_TYPE_INTEGER = 4,
    CAKE_TYPE_NUMBER = 8, /* numbers that are no integers */
    CAKE_TYPE_STRING = 16,
    CAKE_TYPE_ARRAY = 32,
    CAKE_TYPE_OBJECT = 64,
    CAKE_TYPE_ALL = 127
};

/* The types that a schema allows by itself. */
cake_err cake_schema_types(cake_schema_compiler *c, const cake_json *schema, int *types);
/* The type of a value. */
int cake_schema_type_of(const cake_json *value);
/* Whether values are equal: numbers by value, members in any order. Adds to *work what it looked at. */
bool cake_schema_equal(const cake_json *a, const cake_json *b, size_t *work);
/* Below 0: number a is smaller than b. */
int cake_schema_compare_numbers(const cake_json *a, const cake_json *b);
/* Equal values have equal numbers. Adds to *work, too. */
uint64_t cake_schema_hash(const cake_json *value, size_t *work);
/* The values that enum and const of a schema allow, made once; NULL: it has neither. */
const cake_value_set *cake_schema_values(cake_schema_compiler *c, const cake_json *schema);
bool cake_schema_has_value(cake_schema_compiler *c, const cake_value_set *set,
                           const cake_hashed_value *value);
void cake_schema_free_values(cake_schema_compiler *c);
/* Whether some schema of the list has enum or const; if so, edges over the values that they all have. */
bool cake_schema_has_enum(const cake_schema_list *list);
cake_err cake_schema_add_enum(cake_schema_compiler *c, const cake_schema_list *list, int types, int32_t from,
                              int32_t to);
/* Limits of all schemas of the list. */
cake_err cake_schema_number_limits(cake_schema_compiler *c, const cake_schema_list *list,
                                   cake_number_limits *limits);
/* Refuses keywords about numbers that are wrong, or that no rules express. */
cake_err cake_schema_check_numbers(cake_schema_compiler *c, const cake_schema_list *list);
/* Edges over the value, as text. */
void cake_schema_add_value(cake_schema_compiler *c, const cake_json *value, int32_t from, int32_t to);
/* Whether no value is valid for both schemas, as far as that is easy to see. */
bool cake_schema_disjoint(cake_schema_compiler *c, const cake_json *a, const cake_json *b);
/* The schema that a reference names; NULL: there is none. */
const cake_json *cake_schema_resolve(cake_schema_compiler *c, const char *reference);

/* A rule that takes what rule `item` takes between these; helpers of several files. */
int32_t cake_schema_byte(cake_schema_compiler *c, int32_t from, char byte);
int32_t cake_schema_call(cake_schema_compiler *c, int32_t from, int rule);
int32_t cake_schema_space(cake_schema_compiler *c, int32_t from);

#endif
