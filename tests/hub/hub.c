/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hub's model pull rests on, without a network: sums, names, URLs, the list of files, the choice of
 * files.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "hub/listing.h"
#include "hub/name.h"
#include "hub/select.h"
#include "hub/sha.h"
#include "hub/url.h"
#include "tests/suite.h"

static const char *sum_of(cake_sha_kind kind, const char *text, size_t times, size_t step)
{
    static char hex[CAKE_SHA_HEX];
    cake_sha sha;
    size_t len = strlen(text);
    cake_sha_begin(&sha, kind);
    for (size_t i = 0; i < times; i++)
        for (size_t at = 0; at < len; at += step)
            cake_sha_add(&sha, text + at, len - at < step ? len - at : step);
    cake_sha_hex(&sha, hex);
    return hex;
}

/* The examples of FIPS 180-4, in parts of all sizes. */
static void check_sums_of(void)
{
    static const struct {
        const char *text;
        size_t times;
        const char *sum[2];
    } rows[] = {
        {"abc",
         1,
         {"a9993e364706816aba3e25717850c26c9cd0d89d",
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}},
        {"",
         1,
         {"da39a3ee5e6b4b0d3255bfef95601890afd80709",
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         1,
         {"84983e441c3bd26ebaae4aa1f95129e5e54670f1",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmno"
         "pqrstnopqrstu",
         1,
         {"a49b2446a02c645bf419f995b67091253a04a259",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"}},
        {"aaaaaaaaaaaaaaaaaaaa",
         50000, /* a million */
         {"34aa973cd4c4daa4f61eeb2bdbad27316534016f",
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t step = 1; step<130; step += rows[i].times> 1 ? 19 : 1)
            for (int kind = 0; kind < 2; kind++)
                CU_ASSERT_STRING_EQUAL(
                    sum_of(kind ? CAKE_SHA256 : CAKE_SHA1, rows[i].text, rows[i].times, step),
                    rows[i].sum[kind]);
}

static void check_sums(void)
{
    cake_sha_choose(true);
    check_sums_of();
    if (cake_sha_choose(false))
        check_sums_of();
    else
        printf("not checked here: the instructions for SHA-256 (this processor has none)\n");
}

static void check_names(void)
{
    static const char *const good[] = {
        "a/b",           "Qwen/Qwen3-0.6B", "a_b.c/d-e.f_g@main",
        "a/b@refs/pr/1", "a/b@v1.0+x",      "0/1@0123456789abcdef0123456789abcdef01234567"};
    static const char *const bad[] = {"",         "a",       "/a/b",       "a/b/c",    "a/",        "/b",
                                      "./b",      "a/.",     "../b",       "a/..",     ".a/b",      "a-/b",
                                      "a/b-",     "a--b/c",  "a/b..c",     "a/b.git",  "a b/c",     "a/b@",
                                      "a/b@/x",   "a/b@x/",  "a/b@a//b",   "a/b@../c", "a/b@.x",    "a/b@-x",
                                      "a/b@x/.y", "a/b@c\n", "\xc3\xa4/b", "a@b/c",    "models/a/b"};
    cake_hub_name name;
    char folder[CAKE_HUB_FOLDER], id[CAKE_HUB_ID], text[512];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CU_ASSERT_FATAL(cake_hub_name_read(good[i], &name));
        cake_hub_name_folder(name.id, folder);
        CU_ASSERT(!strchr(folder, '/') && cake_hub_name_of_folder(folder, id));
        CU_ASSERT_STRING_EQUAL(id, name.id);
        snprintf(text, sizeof text, "%s%s%s", name.id, name.has_revision ? "@" : "",
                 name.has_revision ? name.revision : "");
        CU_ASSERT_STRING_EQUAL(text, good[i]);
    }
    CU_ASSERT(cake_hub_name_read("a/b", &name) && !strcmp(name.revision, "main"));
    CU_ASSERT(cake_hub_name_read("a_b.c/d-e.f_g@main", &name));
    cake_hub_name_folder(name.id, folder);
    CU_ASSERT_STRING_EQUAL(folder, "models--a_b.c--d-e.f_g");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(!cake_hub_name_read(bad[i], &name));
    for (size_t len = 90; len < 400; len++) { /* of all lengths, nothing is written past an end */
        memset(text, 'x', len);
        memcpy(text, "a/", 2);
        text[len] = 0;
        CU_ASSERT(cake_hub_name_read(text, &name) == (len <= 98));
        memcpy(text, "a/b@", 4);
        CU_ASSERT(cake_hub_name_read(text, &name) == (len < CAKE_HUB_REVISION + 4));
    }
    CU_ASSERT(cake_hub_name_of_folder("models--gpt2", id) && !strcmp(id, "gpt2"));
    CU_ASSERT(!cake_hub_name_of_folder("models--", id) && !cake_hub_name_of_folder("models--a--b--c", id) &&
              !cake_hub_name_of_folder("datasets--a--b", id) &&
              !cake_hub_name_of_folder("models--a--..", id));
    CU_ASSERT(cake_hub_is_etag("0a") && cake_hub_is_etag("d41d8cd98f00b204e9800998ecf8427e-12"));
    CU_ASSERT(!cake_hub_is_etag("") && !cake_hub_is_etag("..") && !cake_hub_is_etag("a/b") &&
              !cake_hub_is_etag("a.incomplete"));
}

static void check_file_names(void)
{
    static const char *const good[] = {"a",   "a/b.json",   "a..b",    ".gitattributes",
                                       "...", "\xc3\xa4 b", "a/..b/c."};
    static const char *const bad[] = {"",     "/a",  "a/",  "a//b", ".",     "..",   "../a",      "a/../b",
                                      "a/..", "a/.", "./a", "a\nb", "a\x7f", "\xff", "\xc0\xae/a"};
    char text[1200];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CU_ASSERT_PTR_NULL(cake_hub_bad_file(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_PTR_NOT_NULL(cake_hub_bad_file(bad[i], strlen(bad[i])));
    CU_ASSERT_PTR_NOT_NULL(cake_hub_bad_file("a\0b", 3));
    memset(text, 'x', sizeof text);
    CU_ASSERT(!cake_hub_bad_file(text, 255) && cake_hub_bad_file(text, 256));
    for (size_t i = 100; i < sizeof text; i += 100)
        text[i] = '/';
    CU_ASSERT(!cake_hub_bad_file(text, 1024) && cake_hub_bad_file(text, 1025));
}

static void check_urls(void)
{
    static const char *const good[] = {"https://huggingface.co", "HTTP://a:8080/x?y#z", "http://[::1]:80/",
                                       "http://a_b.c-d/"};
    static const char *const bad[] = {"",
                                      "ftp://a/",
                                      "file:///etc/passwd",
                                      "http://",
                                      "http:///x",
                                      "http://a@b/",
                                      "http://a:b@c/",
                                      "http://a:0/",
                                      "http://a:65536/",
                                      "http://a:/",
                                      "http://a b/",
                                      "http://a/\n",
                                      "http://a\\b/",
                                      "http://[::1/",
                                      "http://[]/",
                                      "http://[::1]x/",
                                      "http://a:80x/",
                                      "http://\xc3\xa4/",
                                      "//a/",
                                      "a/b",
                                      "http:/a"};
    static const struct {
        const char *base, *location, *wanted;
    } joins[] = {
        {"https://a/b/c?d", "https://e/f?g", "https://e/f?g"},
        {"https://a:8/b/c?d", "/e", "https://a:8/e"},
        {"http://a/b/c", "//e/f", "http://e/f"},
        {"http://a/b/c?d", "e", "http://a/b/e"},
        {"http://a", "e", "http://a/e"},
        {"http://a/b?x", "?y", "http://a/b?y"},
        {"http://a/b", "/c#d", "http://a/c"},
        {"http://a/b", "file:///etc/passwd", NULL},
        {"http://a/b", "http://c@d/", NULL},
        {"http://a/b", "", NULL},
        {"http://a/b", "javascript:x", NULL},
        {"http://a/b", "//", NULL},
    };
    static const char *const same[][2] = {{"https://a/x", "https://A:443/y?z"}, {"http://a:80", "http://a/"}};
    static const char *const others[][2] = {{"https://a/", "http://a/"},
                                            {"https://a/", "https://a:444/"},
                                            {"https://a/", "https://ab/"},
                                            {"https://a.b/", "https://a.b.c/"},
                                            {"https://a/", "https://b/?https://a/"}};
    cake_buf out = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CU_ASSERT(cake_url_check(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(!cake_url_check(bad[i]));
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        cake_buf_cut(&out, 0);
        cake_buf_adds(&out, "");
        CU_ASSERT(cake_url_join(joins[i].base, joins[i].location, &out) == (joins[i].wanted != NULL));
        CU_ASSERT_STRING_EQUAL(out.data, joins[i].wanted ? joins[i].wanted : "");
    }
    for (size_t i = 0; i < 2; i++)
        CU_ASSERT(cake_url_same_origin(same[i][0], same[i][1]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CU_ASSERT(!cake_url_same_origin(others[i][0], others[i][1]));
    cake_buf_cut(&out, 0);
    cake_url_add_escaped("a b/c%\xc3\xa4", true, &out);
    cake_url_add_escaped("d/e", false, &out);
    CU_ASSERT_STRING_EQUAL(out.data, "a%20b/c%25%C3%A4d%2Fe");
    cake_buf_free(&out);
}

/* A list of these files, separated by spaces; what is wanted of it, or the message. */
static const char *choose(const char *files, const char *include, const char *exclude)
{
    static cake_buf out;
    cake_buf text = {0};
    cake_hub_listing listing;
    cake_fault fault;
    char *globs[2] = {(char *)include, (char *)exclude};
    cake_buf_adds(&text, "{\"sha\": \"0123456789abcdef0123456789abcdef01234567\", \"siblings\": [");
    for (const char *at = files; *at; at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' '))
        cake_buf_addf(&text, "%s{\"rfilename\": \"%.*s\"}", at > files ? ", " : "", (int)strcspn(at, " "),
                      at);
    cake_buf_adds(&text, "]}");
    cake_buf_cut(&out, 0);
    cake_buf_adds(&out, "");
    CU_ASSERT_FATAL(!cake_hub_listing_read(text.data, text.len, &listing, &fault));
    cake_log_capture(&out);
    cake_err err = cake_hub_select(
        "a/b", &(cake_hub_globs){globs, globs + 1, include != NULL, exclude != NULL}, &listing);
    cake_log_capture(NULL);
    for (size_t i = 0; i < listing.n && !err; i++)
        if (listing.wanted[i])
            cake_buf_addf(&out, "%s%s", out.len ? " " : "", listing.file[i]);
    cake_hub_listing_free(&listing);
    cake_buf_free(&text);
    return out.data;
}

static void check_choice(void)
{
    CU_ASSERT_STRING_EQUAL(
        choose("config.json model.safetensors pytorch_model.bin tf_model.h5 flax_model.msgpack", NULL, NULL),
        "config.json model.safetensors");
    CU_ASSERT_STRING_EQUAL(choose("consolidated.safetensors model-1.safetensors params.json "
                                  "original/consolidated.00.pth original/params.json",
                                  NULL, NULL),
                           "model-1.safetensors params.json");
    CU_ASSERT_STRING_EQUAL(choose("consolidated.safetensors params.json", NULL, NULL),
                           "consolidated.safetensors params.json");
    CU_ASSERT_STRING_EQUAL(
        choose("model.safetensors onnx/model.safetensors openvino/x.json a-Q4.gguf .gitattributes x.png",
               NULL, NULL),
        "model.safetensors");
    CU_ASSERT_STRING_EQUAL(
        choose(
            "1_Pooling/config.json modules.json model.safetensors additional_chat_templates/t.jinja LICENSE",
            NULL, NULL),
        "1_Pooling/config.json LICENSE additional_chat_templates/t.jinja model.safetensors modules.json");
    CU_ASSERT_STRING_EQUAL(choose("a.gguf README.md config.json", NULL, NULL),
                           "README.md a.gguf config.json");
    CU_ASSERT_STRING_EQUAL(choose("a-00001-of-00002.gguf a-00002-of-00002.gguf", NULL, NULL),
                           "a-00001-of-00002.gguf a-00002-of-00002.gguf");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(choose("a-00001-of-00002.gguf b-00002-of-00002.gguf", NULL, NULL), "several GGUF files"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(choose("a-00001-of-00002.gguf a-00001-of-00003.gguf", NULL, NULL), "several GGUF files"));
    CU_ASSERT_PTR_NOT_NULL(strstr(choose("a.gguf bc.gguf", NULL, NULL), "--include 'a.gguf'"));
    CU_ASSERT_STRING_EQUAL(choose("a-Q4.gguf a-Q8.gguf b/c-Q8.gguf", "*Q8*", NULL), "a-Q8.gguf b/c-Q8.gguf");
    CU_ASSERT_STRING_EQUAL(choose("a/b a/c ab", "a/", "a/c"), "a/b");
    CU_ASSERT_STRING_EQUAL(choose("config.json model.safetensors", NULL, "*.safetensors"), "config.json");
    CU_ASSERT_PTR_NOT_NULL(strstr(choose("pytorch_model.bin config.json", NULL, NULL), "may hold code"));
    CU_ASSERT_PTR_NOT_NULL(strstr(choose("README.md", NULL, NULL), "no weights in safetensors or GGUF"));
    CU_ASSERT_PTR_NOT_NULL(strstr(choose("a b", "c", NULL), "no file is left"));
}

static const char *refuse(const char *text)
{
    static cake_fault fault;
    cake_hub_listing listing;
    fault.message[0] = 0;
    CU_ASSERT(cake_hub_listing_read(text, strlen(text), &listing, &fault) == CAKE_ERR_REQUEST);
    CU_ASSERT(!listing.file && !listing.n);
    return fault.message;
}

#define SHA "{\"sha\": \"0123456789abcdef0123456789abcdef01234567\", "

static void check_listing(void)
{
    cake_buf many = {0};
    cake_hub_listing listing;
    cake_fault fault;
    CU_ASSERT_PTR_NOT_NULL(strstr(refuse("[]"), "names no commit"));
    CU_ASSERT_PTR_NOT_NULL(strstr(refuse("{\"sha\": \"main\"}"), "names no commit"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(refuse("{\"sha\": \"0123456789abcdef0123456789abcdef01234567\\u0000\"}"), "names no commit"));
    CU_ASSERT_PTR_NOT_NULL(strstr(refuse(SHA "\"siblings\": {}}"), "lists no files"));
    CU_ASSERT_PTR_NOT_NULL(strstr(refuse(SHA "\"siblings\": []}"), "lists no files"));
    CU_ASSERT_PTR_NOT_NULL(strstr(refuse(SHA "\"siblings\": [7]}"), "a file has no name"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(refuse(SHA "\"siblings\": [{\"rfilename\": \"a\\u0000\"}]}"), "control character"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(refuse(SHA "\"siblings\": [{\"rfilename\": \"a\"}, {\"rfilename\": \"../b\"}]}"),
               "\"../b\", leads out of the model"));
    CU_ASSERT_PTR_NOT_NULL(strstr(
        refuse(SHA "\"siblings\": [{\"rfilename\": \"a\"}, {\"rfilename\": \"a\"}]}"), "occurs twice"));
    for (int n = 100000; n < 100002; n++) {
        cake_buf_cut(&many, 0);
        cake_buf_adds(&many, SHA "\"siblings\": [");
        for (int i = 0; i < n; i++)
            cake_buf_addf(&many, "%s{\"rfilename\": \"%d\"}", i ? "," : "", i);
        cake_buf_adds(&many, "]}");
        cake_err err = cake_hub_listing_read(many.data, many.len, &listing, &fault);
        CU_ASSERT(n == 100000 ? !err
                              : err == CAKE_ERR_REQUEST && strstr(fault.message, "lists 100001 files"));
        cake_hub_listing_free(&listing);
    }
    cake_buf_free(&many);
}

int main(void)
{
    static const suite_test tests[] = {
        {"SHA-1 and SHA-256 are those of FIPS 180-4", check_sums},
        {"names of models", check_names},
        {"names of files stay below the model", check_file_names},
        {"URLs have one reading", check_urls},
        {"weights are taken once", check_choice},
        {"lists that are wrong are refused", check_listing},
    };
    return SUITE_MAIN("hub", tests);
}
