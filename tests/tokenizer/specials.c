/* SPDX-License-Identifier: Apache-2.0
 *
 * The companion files of a tokenizer: the tokens they define, and their names in templates.
 */
#include "tokenizer/specials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "chat/chat.h"
#include "rows.h"
#include "tests/suite.h"
#include "tokenizer/tokenizer.h"

static const char *const names[] = {"tokenizer.json",    "tokenizer_config.json", "special_tokens_map.json",
                                    "added_tokens.json", "config.json",           "chat_template.jinja"};

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", suite_tmp(), name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(path_of(name), "w");
    CU_ASSERT_FATAL(f && fputs(text, f) >= 0 && !fclose(f));
}

static void clear(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
}

static void put_node(const char *name, const cake_json *node)
{
    cake_buf text = {0};
    cake_json_add_node(&text, node);
    put(name, text.data);
    cake_buf_free(&text);
}

/* A tokenizer.json: the base with these added tokens. */
static void put_tokenizer(const cake_json *base, const cake_json *tokens)
{
    cake_buf text = {0};
    cake_json_add_node(&text, base);
    cake_buf_cut(&text, text.len - 1);
    cake_buf_adds(&text, ",\"added_tokens\":");
    cake_json_add_node(&text, cake_json_get(tokens, "added_tokens"));
    cake_buf_adds(&text, "}");
    put("tokenizer.json", text.data);
    cake_buf_free(&text);
}

static void check_variables(const char *name, const char *expected)
{
    cake_chat *chat = NULL;
    cake_json *messages = NULL;
    cake_buf out = {0};
    cake_fault fault = {0};
    CU_ASSERT_FATAL(!cake_json_parse("[{\"role\":\"user\",\"content\":\"x\"}]", 31, &messages, &fault));
    CU_ASSERT_FATAL(!cake_chat_open(suite_tmp(), &chat));
    CU_ASSERT(!cake_chat_render(chat, &(cake_chat_input){.messages = messages}, &out, &fault));
    bool good = out.data && !strcmp(out.data, expected);
    if (!good)
        printf("\n  %s: variables are %s, expected %s\n", name, out.data ? out.data : fault.message,
               expected);
    CU_ASSERT(good);
    cake_buf_free(&out);
    cake_json_free(messages);
    cake_chat_close(chat);
}

static void test_directories(void)
{
    cake_json *golden = rows_load(suite_path("golden/specials.json"));
    const cake_json *list = cake_json_get(golden, "directories"), *bases = cake_json_get(golden, "bases");
    size_t rows = 0;
    for (size_t i = 0; i < cake_json_size(list); i++) {
        const cake_json *entry = cake_json_at(list, i), *cases = cake_json_get(entry, "cases");
        const cake_json *files = cake_json_get(entry, "files");
        const char *base = cake_json_text(cake_json_get(entry, "base"), NULL);
        char name[64];
        snprintf(name, sizeof name, "directory %zu", i);
        clear();
        put_tokenizer(cake_json_get(bases, base), cake_json_get(entry, "tokenizer"));
        put("chat_template.jinja", cake_json_text(cake_json_get(golden, "template"), NULL));
        for (void *it = cake_json_first(files); it; it = cake_json_next(files, it))
            put_node(cake_json_key(it, NULL), cake_json_value(it));
        cake_tokenizer *token = NULL;
        CU_ASSERT_FATAL(!cake_tokenizer_open(suite_tmp(), &token));
        for (size_t k = 0; k < cake_json_size(cases); k++, rows++)
            CU_ASSERT(rows_check(token, name, cake_json_at(cases, k)));
        cake_tokenizer_close(token);
        check_variables(name, cake_json_text(cake_json_get(entry, "variables"), NULL));
    }
    CU_ASSERT(rows >= 300);
    clear();
    cake_json_free(golden);
}

/* The class that a directory is read with, as AutoTokenizer 5.23 has it. */
static void test_classes(void)
{
    static const struct {
        const char *config, *model;
        bool bytes;
        const char *name;
    } cases[] = {
        {"{}", "{}", false, "TokenizersBackend"},
        {"{}", "{\"model_type\":\"qwen3\"}", false, "Qwen2Tokenizer"},
        {"{}", "{\"model_type\":\"qwen3_5_text\"}", false, "Qwen3_5Tokenizer"},
        {"{}", "{\"model_type\":\"gemma3\"}", false, "GemmaTokenizer"},
        {"{}", "{\"model_type\":\"llama\"}", false, "TokenizersBackend"},
        {"{}", "{\"model_type\":\"mistral\"}", false, "TokenizersBackend"},
        {"{}", "{\"model_type\":\"t5\"}", false, "another"},
        {"{}", "{\"model_type\":\"qwe\"}", false, "TokenizersBackend"},
        {"{\"tokenizer_class\":\"LlamaTokenizerFast\"}", "{}", false, "LlamaTokenizer"},
        {"{\"tokenizer_class\":\"LlamaTokenizer\"}", "{}", true, "TokenizersBackend"},
        {"{\"tokenizer_class\":\"LlamaTokenizer\"}", "{\"model_type\":\"mistral\"}", false,
         "TokenizersBackend"},
        {"{\"tokenizer_class\":\"LlamaTokenizer\"}", "{\"model_type\":\"gemma2\"}", false, "LlamaTokenizer"},
        {"{\"tokenizer_class\":\"LlamaTokenizerFast\"}", "{\"model_type\":\"qwen2\"}", true,
         "Qwen2Tokenizer"},
        {"{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", "{\"model_type\":\"qwen3\"}", true,
         "TokenizersBackend"},
        {"{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", "{\"model_type\":\"qwen2\"}", true,
         "Qwen2Tokenizer"},
        {"{\"tokenizer_class\":\"Qwen2Tokenizer\",\"auto_map\":{\"AutoTokenizer\":[\"x\",null]}}",
         "{\"model_type\":\"olmo2\"}", true, "Qwen2Tokenizer"},
        {"{\"tokenizer_class\":\"Nope\"}", "{\"model_type\":\"llama\"}", true, "TokenizersBackend"},
        {"{\"tokenizer_class\":\"T5TokenizerFast\"}", "{}", true, "another"},
        {"{}", "{\"tokenizer_class\":\"GemmaTokenizer\"}", true, "GemmaTokenizer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_json *config = NULL, *model = NULL;
        cake_fault fault;
        CU_ASSERT_FATAL(!cake_json_parse(cases[i].config, strlen(cases[i].config), &config, &fault));
        CU_ASSERT_FATAL(!cake_json_parse(cases[i].model, strlen(cases[i].model), &model, &fault));
        CU_ASSERT_STRING_EQUAL(cake_tokenizer_class_find(config, model, cases[i].bytes)->name, cases[i].name);
        cake_json_free(config);
        cake_json_free(model);
    }
}

/* Messages about broken files name the place and the reason; a broken config.json is ignored here. */
static void test_broken(void)
{
    static const struct {
        const char *file, *text, *said;
    } cases[] = {
        {"tokenizer_config.json", "{\"eos_token\":7}",
         "tokenizer_config.json: eos_token: found an integer, expected a string or an object with a content"},
        {"tokenizer_config.json", "{\"eos_token\":{}}",
         "tokenizer_config.json: eos_token.content: found nothing, expected a string"},
        {"tokenizer_config.json", "{\"added_tokens_decoder\":[]}",
         "tokenizer_config.json: added_tokens_decoder: found an array, expected an object"},
        {"tokenizer_config.json", "{\"added_tokens_decoder\":{\"x\":{\"content\":\"a\"}}}",
         "tokenizer_config.json: added_tokens_decoder.x: \"x\" is no id from 0 to"},
        {"tokenizer_config.json", "{\"added_tokens_decoder\":{\"99999999\":{\"content\":\"a\"}}}",
         "is no id from 0 to"},
        {"tokenizer_config.json", "{\"added_tokens_decoder\":{\"5\":{\"content\":\"a\",\"lstrip\":1}}}",
         "added_tokens_decoder.5.lstrip: found an integer, expected true or false"},
        {"tokenizer_config.json", "{\"extra_special_tokens\":\"a\"}",
         "extra_special_tokens: found a string, expected an array"},
        {"tokenizer_config.json", "{\"additional_special_tokens\":[1]}",
         "additional_special_tokens[0]: found an integer"},
        {"special_tokens_map.json", "{\"bos_token\":[]}",
         "special_tokens_map.json: bos_token: found an array"},
        {"special_tokens_map.json", "[]", "special_tokens_map.json: found an array, expected an object"},
        {"added_tokens.json", "{\"a\":\"b\"}",
         "added_tokens.json: a: found a string, expected an id from 0 to"},
        {"config.json", "{\"model_type\":", NULL},
        {"config.json", "[1]", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf said = {0};
        cake_tokenizer *token = NULL;
        clear();
        put("tokenizer.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}");
        put(cases[i].file, cases[i].text);
        cake_log_capture(&said);
        cake_err err = cake_tokenizer_open(suite_tmp(), &token);
        cake_log_capture(NULL);
        bool good = cases[i].said ? err && said.data && strstr(said.data, cases[i].said) : !err && !said.len;
        if (!good)
            printf("\n  expected: %s\n  found: %s\n", cases[i].said ? cases[i].said : "nothing",
                   said.data ? said.data : "nothing");
        CU_ASSERT(good);
        cake_buf_free(&said);
        cake_tokenizer_close(token);
    }
    clear();
}

/* Fields that are not applied cause a message; all else opens silently. The eos token is known if a file
 * names it. */
static void test_fields(void)
{
    static const char bpe[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"<e>\":1},\"merges\":[]}}";
    static const char unigram[] =
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",0],[\"<e>\",0]]}}";
    static const struct {
        const char *model, *config, *said; /* NULL: nothing */
        int32_t eos;
    } cases[] = {
        {bpe, "{\"eos_token\":\"<e>\"}", NULL, 1},
        {bpe, "{\"eos_token\":null,\"tokenizer_class\":\"LlamaTokenizer\"}", NULL, -1},
        {bpe, "{\"tokenizer_class\":\"Qwen2Tokenizer\"}", NULL, -1}, /* the class's own is no file's */
        {bpe, "{\"fix_mistral_regex\":true}", "tokenizer_config.json: fix_mistral_regex true is not applied",
         -1},
        {bpe, "{\"fix_mistral_regex\":false}", NULL, -1},
        {bpe, "{\"clean_up_tokenization_spaces\":true}", NULL, -1},
        {unigram, "{\"clean_up_tokenization_spaces\":true}",
         "tokenizer_config.json: clean_up_tokenization_spaces true is not applied", -1},
        {unigram, "{\"clean_up_tokenization_spaces\":false,\"add_eos_token\":true,\"do_lower_case\":true}",
         NULL, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf said = {0};
        cake_tokenizer *token = NULL;
        clear();
        put("tokenizer.json", cases[i].model);
        put("tokenizer_config.json", cases[i].config);
        cake_log_capture(&said);
        CU_ASSERT_FATAL(!cake_tokenizer_open(suite_tmp(), &token));
        cake_log_capture(NULL);
        CU_ASSERT(cases[i].said ? said.data && strstr(said.data, cases[i].said) : !said.len);
        CU_ASSERT_EQUAL(cake_tokenizer_eos(token), cases[i].eos);
        cake_buf_free(&said);
        cake_tokenizer_close(token);
    }
    clear();
}

int main(void)
{
    static const suite_test tests[] = {
        {"directories as AutoTokenizer has them", test_directories},
        {"the class that a directory is read with", test_classes},
        {"fields of tokenizer_config.json that are not done", test_fields},
        {"broken files are told where and why", test_broken},
    };
    return SUITE_MAIN("specials", tests);
}
