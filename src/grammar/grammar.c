/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the source of a constraint. Out: a grammar.
 * Invariant: until a grammar is compiled, only the thread that compiles it touches more of it than source,
 * step and references.
 */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "grammar/gbnf.h"
#include "grammar/grammar_parts.h"
#include "grammar/json_rules.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/structure.h"
#include "grammar/texts.h"

enum { MOST_BYTES = 8 << 20 };

/* ---- sources */

static cake_err add_object(cake_grammar *g, const cake_constraint_source *source, cake_fault *fault)
{
    cake_json_rules rules;
    (void)fault;
    cake_json_rules_add(&g->automaton, source->compact, &rules);
    g->root = rules.object;
    return CAKE_OK;
}

static cake_err add_schema(cake_grammar *g, const cake_constraint_source *source, cake_fault *fault)
{
    const cake_schema_options options = {.compact = source->compact, .closed = source->closed};
    cake_json *schema = NULL;
    cake_err err = cake_json_parse(source->text, source->len, &schema, fault);
    if (!err)
        err = cake_schema_add(schema, &options, &g->automaton, &g->root, fault);
    cake_json_free(schema);
    return err;
}

static cake_err add_structure(cake_grammar *g, const cake_constraint_source *source, cake_fault *fault)
{
    const cake_schema_options options = {.compact = source->compact, .closed = source->closed};
    cake_json *structure = NULL;
    cake_err err = cake_json_parse(source->text, source->len, &structure, fault);
    if (!err)
        err = cake_structure_add(structure, &options, &g->automaton, &g->root, fault);
    cake_json_free(structure);
    return err;
}

static cake_err add_choice(cake_grammar *g, const cake_constraint_source *source, cake_fault *fault)
{
    cake_json *list = NULL;
    cake_err err = cake_json_parse(source->text, source->len, &list, fault);
    g->root = cake_automaton_rule(&g->automaton);
    const cake_rule root = g->automaton.rule[g->root];
    const size_t n = cake_json_size(list);
    cake_text *texts = cake_alloc(n + 1, sizeof *texts);
    for (size_t i = 0; i < n; i++)
        if (!(texts[i].text = cake_json_text(cake_json_at(list, i), &texts[i].len)))
            texts[i] = (cake_text){"", 0};
    cake_texts_add(&g->automaton, root.begin, texts, n, CAKE_CODING_PLAIN, root.end);
    free(texts);
    cake_json_free(list);
    return err;
}

static cake_err add_regex(cake_grammar *g, const cake_constraint_source *source, cake_fault *fault)
{
    cake_exprs exprs = {0};
    cake_expr *e = NULL;
    cake_err err = cake_regex_parse(source->text, source->len, true, &exprs, &e, fault);
    g->root = cake_automaton_rule(&g->automaton);
    const cake_rule root = g->automaton.rule[g->root];
    if (!err)
        cake_automaton_expr(&g->automaton, root.begin, e, CAKE_CODING_PLAIN, root.end);
    cake_exprs_free(&exprs);
    return err;
}

static cake_err add_grammar(cake_grammar *g, const cake_constraint_source *source, cake_fault *fault)
{
    return cake_gbnf_parse(source->text, source->len, &g->automaton, &g->root, fault);
}

static cake_err compile(cake_grammar *g, const cake_constraint_source *source, cake_fault *fault)
{
    static cake_err (*const add[])(cake_grammar *, const cake_constraint_source *, cake_fault *) = {
        [CAKE_CONSTRAINT_SCHEMA] = add_schema,   [CAKE_CONSTRAINT_OBJECT] = add_object,
        [CAKE_CONSTRAINT_CHOICE] = add_choice,   [CAKE_CONSTRAINT_REGEX] = add_regex,
        [CAKE_CONSTRAINT_GRAMMAR] = add_grammar, [CAKE_CONSTRAINT_STRUCTURE] = add_structure};
    cake_err err = add[source->kind](g, source, fault);
    if (!err)
        err = cake_automaton_check(&g->automaton, "", fault);
    if (!err && cake_automaton_finish(&g->automaton) >= 0)
        err = cake_fault_set(fault, NULL,
                             "a rule of the grammar begins with itself (left recursion), so that no "
                             "text ends it; let it begin with something else");
    g->distinct = !err && g->automaton.counted && g->automaton.rule[g->automaton.counted - 1].taken;
    if (g->distinct && source->kind == CAKE_CONSTRAINT_STRUCTURE)
        err = cake_fault_set(
            fault, NULL,
            "minProperties above 1 counts members with any names, which is supported only where "
            "the whole answer is JSON: not with reasoning, tool calls or other text; list them "
            "in properties, with additionalProperties false");
    if (!err && !g->automaton.rule[g->root].taken)
        err = cake_fault_set(fault, NULL,
                             "the constraint allows no answer at all: what it demands contradicts itself");
    return err;
}

cake_grammar *cake_grammar_new(const cake_constraint_source *source)
{
    cake_grammar *g = cake_alloc(1, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->compiled, NULL);
    g->references = 1;
    g->most_bytes = MOST_BYTES;
    g->source = *source;
    g->source.text = cake_copy(source->text ? source->text : "", source->len);
    return g;
}

void cake_grammar_compile(cake_grammar *g)
{
    pthread_mutex_lock(&g->lock);
    const bool mine = g->step == CAKE_GRAMMAR_NEW;
    if (mine)
        g->step = CAKE_GRAMMAR_COMPILING;
    pthread_mutex_unlock(&g->lock);
    if (!mine)
        return;
    const cake_err err = compile(g, &g->source, &g->fault); /* others see nothing of it meanwhile */
    pthread_mutex_lock(&g->lock);
    g->err = err;
    g->step = CAKE_GRAMMAR_COMPILED;
    if (err)
        cake_automaton_free(&g->automaton);
    else
        g->sets = cake_state_sets_open(&g->automaton, g->root);
    pthread_cond_broadcast(&g->compiled);
    pthread_mutex_unlock(&g->lock);
}

bool cake_grammar_is_compiled(cake_grammar *g)
{
    pthread_mutex_lock(&g->lock);
    const bool compiled = g->step == CAKE_GRAMMAR_COMPILED;
    pthread_mutex_unlock(&g->lock);
    return compiled;
}

cake_err cake_grammar_wait(cake_grammar *g, cake_fault *fault)
{
    cake_grammar_compile(g);
    pthread_mutex_lock(&g->lock);
    while (g->step != CAKE_GRAMMAR_COMPILED)
        pthread_cond_wait(&g->compiled, &g->lock);
    pthread_mutex_unlock(&g->lock);
    if (g->err)
        *fault = g->fault;
    return g->err;
}

const char *cake_grammar_missing(const cake_grammar *g, const cake_vocabulary *vocabulary)
{
    const cake_buf *list = &g->automaton.special;
    for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1)
        if (!cake_vocabulary_has_special(vocabulary, list->data + at))
            return list->data + at;
    return NULL;
}

cake_err cake_grammar_open(const cake_constraint_source *source, cake_grammar **out, cake_fault *fault)
{
    cake_grammar *g = cake_grammar_new(source);
    cake_err err = cake_grammar_wait(g, fault);
    if (err)
        cake_grammar_close(g);
    else
        *out = g;
    return err;
}

/* ---- references */

cake_grammar *cake_grammar_share(cake_grammar *g)
{
    pthread_mutex_lock(&g->lock);
    g->references++;
    pthread_mutex_unlock(&g->lock);
    return g;
}

void cake_grammar_release_mask(cake_shared_mask *mask)
{
    if (mask && !--mask->references)
        free(mask);
}

void cake_grammar_drop_masks(cake_grammar *g)
{
    for (size_t i = 0; i < g->n_mask; i++)
        cake_grammar_release_mask(g->mask[i]);
    free(g->mask);
    g->mask = NULL;
    g->n_mask = g->mask_bytes = 0;
}

void cake_grammar_close(cake_grammar *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    const int left = --g->references;
    pthread_mutex_unlock(&g->lock);
    if (left)
        return;
    cake_grammar_drop_masks(g);
    cake_state_sets_close(g->sets);
    cake_automaton_free(&g->automaton);
    free(g->bits);
    free(g->quote);
    free(g->source.text);
    pthread_cond_destroy(&g->compiled);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

size_t cake_grammar_bytes(cake_grammar *g)
{
    pthread_mutex_lock(&g->lock);
    size_t bytes = g->source.len;
    if (g->step == CAKE_GRAMMAR_COMPILED && !g->err)
        bytes += g->automaton.cap_edge * sizeof *g->automaton.edge +
                 (size_t)g->automaton.n_state * 2 * sizeof(int32_t) + cake_state_sets_bytes(g->sets) +
                 g->mask_bytes + g->n_mask * sizeof *g->mask;
    pthread_mutex_unlock(&g->lock);
    return bytes;
}

bool cake_grammar_has(cake_grammar *g, const char *text, size_t len)
{
    int32_t at = CAKE_STATE_BEGIN;
    pthread_mutex_lock(&g->lock);
    cake_state_sets_allow(g->sets, CAKE_STATE_SETS_WORK);
    for (size_t i = 0; i < len; i++)
        at = cake_state_sets_next(g->sets, at, (uint8_t)text[i]);
    const bool has = cake_state_sets_ends(g->sets, at);
    pthread_mutex_unlock(&g->lock);
    return has;
}
