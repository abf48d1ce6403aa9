/* SPDX-License-Identifier: Apache-2.0
 *
 * In: keywords about strings: minLength, maxLength, pattern, format. Out: edges over strings that obey all.
 *
 * Each keyword is a regular language over what stands between the quotes; their texts in common are what is
 * valid. Lengths alone need no product of languages.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/intersect.h"
#include "grammar/regex.h"
#include "grammar/schema_parts.h"
#include "grammar/string_formats.h"

enum { MOST_LENGTH = 100000 };

cake_err cake_schema_pattern(cake_schema_compiler *c, const cake_json *schema, const char *keyword,
                             const char *text, size_t len, cake_coding coding, cake_automaton *to, int *rule)
{
    cake_expr *e = NULL;
    cake_fault fault = {0};
    const bool whole = !strcmp(keyword, "format");
    if (cake_regex_parse(text, len, whole, &c->exprs, &e, &fault))
        return cake_schema_wrong(c, schema, keyword, fault.message);
    *rule = cake_automaton_rule(to);
    cake_automaton_expr(to, to->rule[*rule].begin, e, coding, to->rule[*rule].end);
    return CAKE_OK;
}

/* The smallest range of lengths. max -1: no limit. */
static cake_err read_lengths(cake_schema_compiler *c, const cake_schema_list *list, int64_t *min,
                             int64_t *max)
{
    cake_err err = CAKE_OK;
    *min = 0;
    *max = -1;
    for (int i = 0; i < list->n && !err; i++) {
        int64_t low = 0, high = -1;
        err = cake_schema_count(c, list->part[i].schema, "minLength", &low);
        if (!err)
            err = cake_schema_count(c, list->part[i].schema, "maxLength", &high);
        /* no answer is as long as that: more characters than all contexts of models have tokens, if each of
         * these is a character; so it says nothing */
        high = high > CAKE_AUTOMATON_STATES ? -1 : high;
        *min = low > *min ? low : *min;
        *max = *max < 0 || (high >= 0 && high < *max) ? high : *max;
        if (!err && low > MOST_LENGTH)
            return cake_schema_wrong(c, list->part[i].schema, "minLength", "expected at most 100000");
    }
    return err;
}

/* Edges over min to max characters. rule: of one character; -1: characters in their plain form. */
static void add_lengths(cake_automaton *a, int32_t from, int rule, int64_t min, int64_t max, int32_t to)
{
    if (max >= 0 && min > max) /* no text */
        return;
    for (int64_t i = 0; (max < 0 ? i < min : i < max) && !a->full; i++) {
        const int32_t next = cake_automaton_state(a);
        if (i >= min)
            cake_automaton_empty(a, from, to);
        if (rule >= 0)
            cake_automaton_call(a, from, rule, next);
        else
            cake_json_rules_plain(a, from, next);
        from = next;
    }
    const int32_t loop = cake_automaton_state(a);
    cake_automaton_empty(a, from, loop);
    cake_automaton_empty(a, loop, to);
    if (max < 0 && rule >= 0)
        cake_automaton_call(a, loop, rule, loop);
    else if (max < 0)
        cake_json_rules_plain(a, loop, loop);
}

/* The rule of min to max characters. */
static int length_rule(cake_automaton *rules, cake_coding coding, int64_t min, int64_t max)
{
    const int rule = cake_automaton_rule(rules);
    const cake_rule at = rules->rule[rule];
    if (coding == CAKE_CODING_JSON) {
        add_lengths(rules, at.begin, -1, min, max, at.end);
        return rule;
    }
    cake_chars any = {0};
    cake_chars_add(&any, 0, CAKE_LAST_CHAR);
    cake_chars_settle(&any);
    const int character = cake_automaton_rule(rules);
    cake_automaton_chars(rules, rules->rule[character].begin, &any, coding, rules->rule[character].end);
    cake_chars_free(&any);
    add_lengths(rules, at.begin, character, min, max, at.end);
    return rule;
}

/* The pattern of the list's only keyword about strings, a format; NULL: there are others, or none. */
static const char *only_format(const cake_schema_list *list)
{
    static const char *const others[] = {"pattern", "minLength", "maxLength"};
    const char *only = NULL;
    for (int i = 0; i < list->n; i++) {
        const char *format = cake_json_text(cake_json_get(list->part[i].schema, "format"), NULL);
        bool supported;
        const char *known = format ? cake_string_format(format, &supported) : NULL;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (cake_json_get(list->part[i].schema, others[k]))
                return NULL;
        if (only && known)
            return NULL;
        only = known ? known : only;
    }
    return only;
}

/* Whether texts of a format must be limited to so many characters: if max does not do so. Beside a pattern
 * that would multiply the states, which are soon too many; there it is left out. */
static bool limits_format(const cake_schema_list *list, int64_t max, int most)
{
    bool pattern = false;
    for (int i = 0; i < list->n; i++)
        pattern = pattern || cake_json_get(list->part[i].schema, "pattern");
    return most && !pattern && (max < 0 || max > most);
}

cake_err cake_schema_string_rules(cake_schema_compiler *c, const cake_schema_list *list, cake_coding coding,
                                  cake_automaton *rules, cake_language *language, int *n)
{
    int64_t min, max;
    cake_err err = read_lengths(c, list, &min, &max);
    for (int i = 0; i < list->n && !err; i++) {
        const cake_json *schema = list->part[i].schema, *pattern = cake_json_get(schema, "pattern");
        const char *format = cake_json_text(cake_json_get(schema, "format"), NULL), *known = NULL;
        size_t len = 0;
        bool supported = true;
        const char *text = cake_json_text(pattern, &len);
        if (pattern && !text)
            return cake_schema_wrong(c, schema, "pattern", "expected a string");
        if (format)
            known = cake_string_format(format, &supported);
        if (!supported)
            return cake_schema_wrong(c, schema, "format", "this format is not supported");
        if (*n + 4 >= CAKE_MAX_LANGUAGE && (text || known))
            return cake_schema_wrong(c, schema, text ? "pattern" : "format",
                                     "too many of these hold for one value");
        if (text)
            err = cake_schema_pattern(c, schema, "pattern", text, len, coding, rules, &language[(*n)++].rule);
        if (!err && known)
            err = cake_schema_pattern(c, schema, "format", known, strlen(known), coding, rules,
                                      &language[(*n)++].rule);
        const int most = !err && known ? cake_string_format_most(format) : 0;
        if (limits_format(list, max, most))
            language[(*n)++].rule = length_rule(rules, coding, 0, most);
    }
    const bool needed =
        *n || coding != CAKE_CODING_JSON; /* else the caller adds characters as JSON has them */
    if (!err && needed && (min || max >= 0))
        language[(*n)++].rule = length_rule(rules, coding, min, max);
    return err;
}

cake_err cake_schema_add_text(const cake_json *root, const cake_json *schema, cake_automaton *a, int32_t from,
                              int32_t to, bool *any, cake_fault *fault)
{
    cake_schema_compiler c = {.root = root, .automaton = a, .fault = fault};
    cake_schema_list list = {0};
    cake_automaton rules = {0};
    cake_language language[CAKE_MAX_LANGUAGE] = {{0}};
    int n = 0;
    cake_schema_list_add(&list, schema);
    cake_err err = cake_schema_string_rules(&c, &list, CAKE_CODING_PLAIN, &rules, language, &n);
    *any = !n;
    if (!err && n)
        cake_intersect(&rules, language, n, a, from, to);
    cake_automaton_free(&rules);
    cake_exprs_free(&c.exprs);
    free(list.part);
    return err;
}

static cake_err write_string(cake_schema_compiler *c, const cake_schema_list *list, int32_t from, int32_t to);

cake_err cake_schema_add_string(cake_schema_compiler *c, const cake_schema_list *list, int32_t from,
                                int32_t to)
{
    cake_automaton *a = c->automaton;
    const char *format = only_format(list);
    int known = 0;
    while (known < a->n_kept && a->kept[known].key != format)
        known++;
    if (!format || known == CAKE_MAX_KEPT)
        return write_string(c, list, from, to);
    if (known == a->n_kept) { /* some need many states, and schemas have the same ones often */
        const int rule = cake_automaton_rule(a);
        cake_err err = write_string(c, list, a->rule[rule].begin, a->rule[rule].end);
        if (err)
            return err;
        a->kept[a->n_kept++] = (cake_kept_rule){format, rule};
    }
    cake_automaton_call(a, from, a->kept[known].rule, to);
    return CAKE_OK;
}

static cake_err write_string(cake_schema_compiler *c, const cake_schema_list *list, int32_t from, int32_t to)
{
    cake_automaton rules = {0};
    cake_language language[CAKE_MAX_LANGUAGE] = {{0}};
    int n = 0;
    int64_t min, max;
    cake_err err = cake_schema_string_rules(c, list, CAKE_CODING_JSON, &rules, language, &n);
    if (!err)
        err = read_lengths(c, list, &min, &max);
    if (!err && !n && !min && max < 0) {
        cake_automaton_call(c->automaton, from, c->json.string, to);
    } else if (!err) {
        const int32_t begin = cake_schema_byte(c, from, '"'), end = cake_automaton_state(c->automaton);
        cake_automaton_bytes(c->automaton, end, '"', '"', to);
        if (n)
            cake_intersect(&rules, language, n, c->automaton, begin, end);
        else
            add_lengths(c->automaton, begin, c->json.character, min, max, end);
    }
    cake_automaton_free(&rules);
    return err;
}
