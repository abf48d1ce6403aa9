/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "chat/chat.h"
#include "formats/json.h"
#include "rows.h"
#include "tests/suite.h"
#include "tokenizer/tokenizer.h"

static void write_file(const char *name, const char *bytes, size_t len)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", suite_tmp(), name);
    FILE *f = fopen(path, "wb");
    CU_ASSERT_FATAL(f && fwrite(bytes, 1, len, f) == len && !fclose(f));
}

static void remove_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", suite_tmp(), name);
    CU_ASSERT(!remove(path));
}

/* SentencePiece's and tiktoken's files, as transformers has them. */
static void test_files(void)
{
    cake_json *golden = rows_load(suite_path("golden/files.json"));
    const cake_json *list = cake_json_get(golden, "tokenizers"), *shared = cake_json_get(golden, "bytes");
    size_t rows = 0;
    for (size_t i = 0; i < cake_json_size(list); i++) {
        const cake_json *entry = cake_json_at(list, i), *cases = cake_json_get(entry, "cases");
        const char *name = cake_json_text(cake_json_get(entry, "name"), NULL);
        const char *file = cake_json_text(cake_json_get(entry, "file"), NULL);
        const char *which = cake_json_text(cake_json_get(entry, "bytes"), NULL);
        const char *hex = cake_json_text(cake_json_get(shared, which), NULL);
        const cake_json *beside = cake_json_get(entry, "files");
        cake_buf bytes = {0};
        unsigned byte;
        for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
            cake_buf_addc(&bytes, (char)byte);
        write_file(file, bytes.data, bytes.len);
        for (void *it = cake_json_first(beside); it; it = cake_json_next(beside, it)) {
            cake_buf text = {0};
            cake_json_add_node(&text, cake_json_value(it));
            write_file(cake_json_key(it, NULL), text.data, text.len);
            cake_buf_free(&text);
        }
        cake_tokenizer *token = NULL;
        CU_ASSERT_FATAL(!cake_tokenizer_open(suite_tmp(), &token));
        for (size_t k = 0; k < cake_json_size(cases); k++, rows++)
            CU_ASSERT(rows_check(token, name, cake_json_at(cases, k)));
        cake_tokenizer_close(token);
        remove_file(file);
        for (void *it = cake_json_first(beside); it; it = cake_json_next(beside, it))
            remove_file(cake_json_key(it, NULL));
        cake_buf_free(&bytes);
    }
    CU_ASSERT(rows > 200);
    cake_json_free(golden);
}

/* Files of neither kind and broken files have a message. */
static void test_broken_files(void)
{
#define SPM(bytes) bytes, sizeof bytes - 1
    static const struct {
        const char *bytes;
        size_t len;
        const char *said;
    } cases[] = {
        {SPM("\x0A\x05\x0A\x01"), "FILE: this is no SentencePiece model: it is cut short at byte 2"},
        {SPM("\x0A\x02\x0A\x07"), "a piece is cut short"},
        {SPM("\x0A\x03\x0A\x01\xFF"), "FILE: piece 0 is not UTF-8"},
        {SPM("\x0A\x03\x0A\x01"
             "a\x0A\x03\x0A\x01"
             "a"),
         "FILE: piece 1, \"a\", is a duplicate"},
        {SPM("\x0A\x03\x0A\x01"
             "a\x12\x02\x18\x04"),
         "model_type 4 is not supported"},
        {SPM("\x0A\x03\x0A\x01"
             "a\x12\x03\xC0\x02\x05"),
         "FILE: model.unk_id: 5 is out of range"},
        {SPM(""), "FILE: the file holds no token"},
        {SPM("YQ== 0\nYg==\n"), "FILE: line 2 is not a token in base64, a space and its rank"},
        {SPM("YQ== 0\nYQ== 1\n"), "FILE: line 2: the token or its rank 1 is a duplicate"},
        {SPM("YQ== 99999999\n"), "FILE: line 1: rank 99999999 is out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf said = {0};
        cake_tokenizer *token = NULL;
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(cake_tokenizer_import(cases[i].bytes, cases[i].len, "FILE", &token), CAKE_ERR_FATAL);
        cake_log_capture(NULL);
        bool good = said.data && strstr(said.data, cases[i].said);
        if (!good)
            printf("\n  expected: %s\n  found: %s\n", cases[i].said, said.data ? said.data : "nothing");
        CU_ASSERT(good);
        cake_buf_free(&said);
        cake_tokenizer_close(token);
    }
}

/* A class that reads a model in a way that is not known here is named; tiktoken's ids stay where they are
 * listed. */
static void test_hints(void)
{
    static const char model[] = "\x0A\x05\x0A\x03<u>\x0A\x03\x0A\x01"
                                "a\x12\x02\x18\x02";
    static const char config[] = "{\"tokenizer_class\":\"T5TokenizerFast\"}";
    static const char listed[] =
        "{\"added_tokens_decoder\":{\"5\":{\"content\":\"<|end|>\",\"special\":true}}}";
    cake_buf said = {0};
    cake_tokenizer *token = NULL;
    write_file("tokenizer.model", model, sizeof model - 1);
    write_file("tokenizer_config.json", config, sizeof config - 1);
    cake_log_capture(&said);
    CU_ASSERT_EQUAL(cake_tokenizer_open(suite_tmp(), &token), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT(said.data && strstr(said.data, "a SentencePiece model of T5TokenizerFast"));
    cake_buf_free(&said);
    remove_file("tokenizer.model");
    write_file("x.tiktoken", "YQ== 0\nYg== 1\n", 14);
    write_file("tokenizer_config.json", listed, sizeof listed - 1);
    CU_ASSERT_FATAL(!cake_tokenizer_open(suite_tmp(), &token));
    CU_ASSERT_EQUAL(cake_tokenizer_find(token, "<|end|>", 7), 5);
    CU_ASSERT_EQUAL(cake_tokenizer_find(token, "<|reserved_token_2|>", 20), 2);
    CU_ASSERT_EQUAL(cake_tokenizer_count(token), 6);
    cake_tokenizer_close(token);
    remove_file("x.tiktoken");
    remove_file("tokenizer_config.json");
}

#define POINTER "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 13984112\n"

/* A clone without git-lfs has files of three lines in place of large ones, or of any. */
static void test_pointers(void)
{
    static const char *const names[] = {
        "tokenizer.model",     "x.tiktoken",         "special_tokens_map.json", "added_tokens.json",
        "chat_template.jinja", "chat_template.json", "tokenizer_config.json",   "tokenizer.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cake_buf said = {0};
        cake_tokenizer *token = NULL;
        cake_chat *chat = NULL;
        char expected[128];
        write_file(names[i], POINTER, sizeof POINTER - 1);
        cake_log_capture(&said);
        cake_err err = strncmp(names[i], "chat", 4) ? cake_tokenizer_open(suite_tmp(), &token)
                                                    : cake_chat_open(suite_tmp(), &chat);
        cake_log_capture(NULL);
        snprintf(expected, sizeof expected, "/%s: is a git-lfs pointer, not the file: run `git lfs pull`",
                 names[i]);
        CU_ASSERT_EQUAL(err, CAKE_ERR_FATAL);
        CU_ASSERT(said.data && strstr(said.data, expected));
        if (!said.data || !strstr(said.data, expected))
            printf("\n  expected: %s\n  found: %s\n", expected, said.data ? said.data : "nothing");
        CU_ASSERT(said.len && strchr(said.data, '\n') == said.data + said.len - 1);
        remove_file(names[i]);
        if (i == 1) /* the others are beside one */
            write_file("x.tiktoken", "YQ== 0\nYg== 1\n", 14);
        cake_buf_free(&said);
    }
    remove_file("x.tiktoken");
    for (int pointer = 0; pointer < 2; pointer++) { /* files that are not read are looked at where none is */
        cake_buf said = {0};
        cake_tokenizer *token = NULL;
        write_file("vocab.json", pointer ? POINTER : "{}", pointer ? sizeof POINTER - 1 : 2);
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(cake_tokenizer_open(suite_tmp(), &token), CAKE_ERR_FATAL);
        cake_log_capture(NULL);
        CU_ASSERT(said.data && strstr(said.data, pointer ? "/vocab.json: is a git-lfs pointer"
                                                         : "; found vocab.json: save it with transformers'"));
        CU_ASSERT(said.len && strchr(said.data, '\n') == said.data + said.len - 1);
        cake_buf_free(&said);
    }
    remove_file("vocab.json");
}

int main(void)
{
    static const suite_test tests[] = {
        {"tokenizer.model and .tiktoken as transformers has them", test_files},
        {"what the files beside them say", test_hints},
        {"pointers of git-lfs", test_pointers},
        {"broken ones are told what is wrong", test_broken_files},
    };
    return SUITE_MAIN("files", tests);
}
