/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what a request says about its answers. Out: a grammar that is being compiled, then one for the engine.
 */
#include "request/constrain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cake_err cake_constrain_answer(const cake_preparation *preparation, cake_request *r, const cake_buf *text)
{
    const cake_answer_form *form = &preparation->form;
    const bool called = form->tools && r->tool_choice != CAKE_TOOLS_NONE && cake_json_size(r->tools);
    r->begin = cake_answer_begins(form, text->data ? text->data : "", text->len, r->continue_final_message);
    r->is_message = form->reasoning || called;
    if (called) {
        cake_buf tools = {0};
        cake_json_add_node(&tools, r->tools);
        r->tools_text = tools.data;
    }
    return r->tool_choice >= CAKE_TOOLS_REQUIRED
               ? cake_answer_require(form, r->begin, r->tools, r->tool_name, !r->one_call, &r->constraint,
                                     &r->fault)
               : cake_answer_constrain(form, r->begin, &r->constraint, &r->fault);
}

/* Finds the tool whose parameters cannot be compiled. */
static cake_err blame_tool(cake_grammar_cache *grammars, const cake_json *tools, const cake_fault *whole,
                           cake_request *r)
{
    const char *within = r->form == CAKE_FORM_BATCH_RESPONSE ? "" : "function.";
    for (size_t i = 0; i < cake_json_size(tools); i++) {
        const cake_json *function = cake_json_get(cake_json_at(tools, i), "function"),
                        *parameters = cake_json_get(function, "parameters");
        cake_fault fault = {0};
        cake_buf text = {0};
        char place[64];
        if (cake_json_kind(parameters) != CAKE_JSON_OBJECT)
            continue;
        cake_json_add_node(&text, parameters);
        const cake_constraint_source source = {
            .kind = CAKE_CONSTRAINT_SCHEMA, .closed = true, .text = text.data, .len = text.len};
        cake_grammar *grammar = cake_grammar_cache_get(grammars, &source);
        const cake_err err = cake_grammar_wait(grammar, &fault);
        cake_buf_free(&text);
        cake_grammar_close(grammar);
        snprintf(place, sizeof place, "tools[%zu].%sparameters", i, within);
        if (err)
            return cake_fault_set(&r->fault, place, "%s: %s", place, fault.message);
    }
    return cake_fault_set(&r->fault, "tool_choice", "tool_choice: %s", whole->message);
}

/* The fault of a request whose constraint does not compile. */
static cake_err blame(cake_grammar_cache *grammars, const cake_fault *fault, cake_request *r)
{
    cake_json *tools = NULL;
    if (r->tool_choice < CAKE_TOOLS_REQUIRED || !r->tools_text)
        return cake_fault_set(&r->fault, r->constraint_field, "%s: %s", r->constraint_field, fault->message);
    cake_json_parse(r->tools_text, strlen(r->tools_text), &tools, &r->fault); /* its own text */
    cake_err err = blame_tool(grammars, tools, fault, r);
    cake_json_free(tools);
    return err;
}

void cake_constrain_check(cake_grammar_cache *grammars, cake_request *r)
{
    cake_fault fault = {0};
    if (r->err || !r->constraint.kind)
        return;
    cake_grammar *grammar = cake_grammar_cache_get(grammars, &r->constraint);
    if (cake_grammar_wait(grammar, &fault))
        r->err = blame(grammars, &fault, r);
    cake_grammar_close(grammar);
}

void cake_constrain_begin(cake_grammar_cache *grammars, cake_sequence *lead)
{
    if (!lead->request.err && lead->request.constraint.kind)
        lead->grammar = cake_grammar_cache_get(grammars, &lead->request.constraint);
}

bool cake_constrain_end(cake_grammar_cache *grammars, cake_sequence *lead)
{
    cake_fault fault = {0};
    if (!lead->grammar || lead->vocabulary)
        return true;
    if (!cake_grammar_is_compiled(lead->grammar))
        return false;
    const cake_vocabulary *vocabulary = cake_grammar_cache_vocabulary(grammars);
    cake_err err = cake_grammar_wait(lead->grammar, &fault);
    const char *missing = !err && vocabulary ? cake_grammar_missing(lead->grammar, vocabulary) : NULL;
    if (missing)
        err = cake_fault_set(&fault, NULL,
                             "structural tag: token: %.80s is no special token of this model, or it ends an "
                             "answer",
                             missing);
    if (err)
        lead->request.err = blame(grammars, &fault, &lead->request);
    if (err || !cake_sequence_generates(lead)) {
        cake_grammar_close(lead->grammar);
        lead->grammar = NULL;
    } else {
        lead->vocabulary = vocabulary;
    }
    return true;
}
