/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/chat.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "tests/suite.h"

static cake_json *parse(const char *text)
{
    cake_json *root = NULL;
    cake_fault fault;
    if (cake_json_parse(text, strlen(text), &root, &fault))
        CU_FAIL_FATAL("the test's own JSON is broken");
    return root;
}

/* A model's folder with these files; NULL: not there. */
static const char *folder(const char *jinja, const char *json, const char *config)
{
    static char dir[128];
    static int n;
    const char *const names[] = {"chat_template.jinja", "chat_template.json", "tokenizer_config.json"};
    const char *const texts[] = {jinja, json, config};
    snprintf(dir, sizeof dir, "%s/model%d", suite_tmp(), n++);
    mkdir(dir, 0777);
    for (int i = 0; i < 3; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        FILE *f = texts[i] ? fopen(path, "w") : NULL;
        if (f) {
            fputs(texts[i], f);
            fclose(f);
        }
    }
    return dir;
}

/* Renders an input with the chat template of dir; out is emptied first. */
static cake_err say(const char *dir, const char *messages, const char *tools, const char *kwargs, bool more,
                    cake_buf *out, cake_fault *fault)
{
    cake_chat *chat = NULL;
    CU_ASSERT_FATAL(!cake_chat_open(dir, &chat));
    cake_json *m = parse(messages), *t = tools ? parse(tools) : NULL, *k = kwargs ? parse(kwargs) : NULL;
    cake_chat_input input = {.messages = m,
                             .tools = t,
                             .kwargs = k,
                             .add_generation_prompt = !more,
                             .continue_final_message = more};
    cake_buf_cut(out, 0);
    cake_buf_adds(out, "");
    cake_err err = cake_chat_render(chat, &input, out, fault);
    cake_json_free(m);
    cake_json_free(t);
    cake_json_free(k);
    cake_chat_close(chat);
    return err;
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_FATAL(f != NULL);
    fputs(text, f);
    fclose(f);
}

/* additional_chat_templates/, special_tokens_map.json, and a list that has only tool_use. */
static void test_further_files(cake_buf *out)
{
    static const char one[] = "[{\"role\":\"user\",\"content\":\"x\"}]";
    cake_fault fault = {0};
    char path[256];
    const char *dir = folder("D{{ bos_token }}", NULL, "{\"bos_token\":\"<s>\"}");
    snprintf(path, sizeof path, "%s/additional_chat_templates", dir);
    mkdir(path, 0777);
    put(path, "tool_use.jinja", "T{{ tools|length }}");
    put(path, "rag.jinja", "{% nope %}");
    put(dir, "special_tokens_map.json", "{\"bos_token\":{\"content\":\"<map>\"}}");
    CU_ASSERT(!say(dir, one, "[1]", NULL, false, out, &fault));
    CU_ASSERT_STRING_EQUAL(out->data, "T1");
    CU_ASSERT(!say(dir, one, NULL, NULL, false, out, &fault));
    CU_ASSERT_STRING_EQUAL(out->data, "D<map>");
    put(dir, "tokenizer_config.json", "{\"bos_token\":\"<s>\",\"added_tokens_decoder\":{}}");
    CU_ASSERT(!say(dir, one, NULL, NULL, false, out, &fault));
    CU_ASSERT_STRING_EQUAL(out->data, "D<s>");
    dir = folder(NULL, NULL, "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"T\"}]}");
    CU_ASSERT(!say(dir, one, "[1]", NULL, false, out, &fault));
    CU_ASSERT_EQUAL(say(dir, one, NULL, NULL, false, out, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "for requests with tools"));
}

static void test_sources(void)
{
    static const char one[] = "[{\"role\":\"user\",\"content\":\"x\"}]";
    static const char named[] =
        "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"T{{ tools|length }}\"},"
        "{\"name\":\"rag\",\"template\":\"{% nope %}\"},"
        "{\"name\":\"default\",\"template\":\"D{{ tools }}\"}]}";
    cake_buf out = {0};
    cake_fault fault;
    const char *config =
        "{\"chat_template\":\"config\",\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"},"
        "\"pad_token\":null}";
    CU_ASSERT(
        !say(folder("jinja", "{\"chat_template\":\"json\"}", config), one, NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "jinja");
    CU_ASSERT(
        !say(folder(NULL, "{\"chat_template\":\"json\"}", config), one, NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "json");
    CU_ASSERT(!say(folder(NULL, NULL, config), one, NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "config");
    CU_ASSERT(!say(folder(NULL, NULL, named), one, NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "DNone");
    CU_ASSERT(!say(folder(NULL, NULL, named), one, "[1,2]", NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "T2");
    const char *all =
        "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}{{ add_generation_prompt }}{{ k }}"
        "{{ documents }}{{ messages[0].content }}";
    CU_ASSERT(!say(folder(all, NULL, config), one, NULL, "{\"k\":[1]}", false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "<s></s>FalseTrue[1]Nonex");
    CU_ASSERT(!say(folder(all, NULL, config), one, NULL, "{\"bos_token\":\"B\"}", false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "B</s>FalseTrueNonex");
    CU_ASSERT_EQUAL(say(folder(all, NULL, config), one, NULL, "{\"documents\":[1]}", false, &out, &fault),
                    CAKE_ERR_REQUEST);
    CU_ASSERT_STRING_EQUAL(fault.param, "chat_template_kwargs.documents");
    static const char more[] =
        "{\"chat_template\":\"{{ image_token }}{{ x_token }}{{ own }}\",\"x_token\":5,\"image_token\":\"I\","
        "\"extra_special_tokens\":{\"own\":\"O\"}}";
    CU_ASSERT(!say(folder(NULL, NULL, more), one, NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "IO");
    test_further_files(&out);
    cake_chat *chat = NULL;
    CU_ASSERT(!cake_chat_open(folder(NULL, NULL, "{}"), &chat));
    CU_ASSERT(!cake_chat_has(chat));
    cake_chat_close(chat);
    CU_ASSERT_EQUAL(say(folder(NULL, NULL, NULL), one, NULL, NULL, false, &out, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "no chat template"));
    cake_buf_free(&out);
}

static void test_source_errors(void)
{
    static const struct {
        const char *config, *said;
    } cases[] = {
        {"{\"chat_template\":5}",
         "tokenizer_config.json: chat_template: found an integer, expected a string"},
        {"{\"chat_template\":[{\"name\":\"x\",\"template\":\"\"}]}",
         "none of the templates is named default or tool_use"},
        {"{\"chat_template\":[5]}", "chat_template[0]: expected an object"},
        {"{\"chat_template\":\"a\\n{{ b|c }}\"}", "tokenizer_config.json: chat_template:2: the filter \"c\""},
        {"{", "tokenizer_config.json: invalid JSON"},
        {"null", "tokenizer_config.json: found null, expected an object"},
        {"[]", "tokenizer_config.json: found an array, expected an object"},
        {"3", "tokenizer_config.json: found an integer, expected an object"},
        {"\"x\"", "tokenizer_config.json: found a string, expected an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_buf said = {0};
        cake_chat *chat = NULL;
        const char *dir = folder(NULL, NULL, cases[i].config);
        cake_log_capture(&said);
        CU_ASSERT_EQUAL(cake_chat_open(dir, &chat), CAKE_ERR_FATAL);
        cake_log_capture(NULL);
        CU_ASSERT(said.data && strstr(said.data, cases[i].said));
        cake_buf_free(&said);
    }
}

/* The error message of opening dir, which must fail; owned. */
static char *complaint(const char *dir)
{
    cake_buf said = {0};
    cake_chat *chat = NULL;
    cake_log_capture(&said);
    cake_err err = cake_chat_open(dir, &chat);
    cake_log_capture(NULL);
    CU_ASSERT_EQUAL(err, CAKE_ERR_FATAL);
    cake_chat_close(chat);
    return said.data;
}

static void test_file_errors(void)
{
    char path[256];
    char *said = complaint(folder(NULL, "[]", NULL));
    CU_ASSERT(said && strstr(said, "chat_template.json: found an array, expected an object"));
    free(said);
    const char *dir = folder(NULL, NULL, NULL);
    snprintf(path, sizeof path, "%s/chat_template.jinja", dir);
    CU_ASSERT_FATAL(!mkfifo(path, 0666));
    said = complaint(dir); /* and does not wait for a writer */
    CU_ASSERT(said && strstr(said, "chat_template.jinja: is a FIFO; expected a regular file"));
    free(said);
    dir = folder("", NULL, NULL);
    snprintf(path, sizeof path, "%s/chat_template.jinja", dir);
    CU_ASSERT_FATAL(!truncate(path, (off_t)1 << 36));
    said = complaint(dir);
    CU_ASSERT(said && strstr(said, "chat_template.jinja: is too large: at most 4194304 bytes"));
    free(said);
}

static void test_messages(void)
{
    static const char dump[] = "{{ messages|tojson }}";
    cake_buf out = {0};
    cake_fault fault;
    const char *dir = folder(dump, NULL, NULL);
    CU_ASSERT(
        !say(dir,
             "[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":"
             "\"{\\\"b\\\": 1.5, \\\"a\\\": null}\"}},{\"function\":{\"arguments\":\"[1]\"}},{\"function\":"
             "{\"arguments\":\"{\"}},{\"function\":7},8]}]",
             NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(
        out.data,
        "[{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": "
        "{\"b\": 1.5, \"a\": null}}}, {\"function\": {\"arguments\": \"[1]\"}}, {\"function\": "
        "{\"arguments\": \"{\"}}, {\"function\": 7}, 8]}]");
    CU_ASSERT(!say(dir, "[{\"reasoning\":\"r\",\"content\":\"c\"}]", NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "[{\"thinking\": \"r\", \"reasoning\": \"r\", \"content\": \"c\", "
                                     "\"reasoning_content\": \"r\"}]");
    static const char parts[] =
        "[{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]";
    CU_ASSERT(!say(dir, parts, NULL, NULL, false, &out, &fault)); /* the template knows no parts */
    CU_ASSERT_STRING_EQUAL(out.data, "[{\"content\": \"ab\"}]");
    dir = folder("{% for p in messages[0].content %}<{{ p.text }}>{% endfor %}", NULL, NULL);
    CU_ASSERT(!say(dir, parts, NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "<a><b>");
    CU_ASSERT_EQUAL(say(dir, "{}", NULL, NULL, false, &out, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_EQUAL(say(dir, "[5]", NULL, NULL, false, &out, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_STRING_EQUAL(fault.message, "message 0: found an integer, expected an object");
    CU_ASSERT_EQUAL(say(dir, "[]", NULL, NULL, false, &out, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "there are no messages"));
    /* what is null is absent, one level deep; other fields go through */
    CU_ASSERT(!say(
        folder(dump, NULL, NULL),
        "[{\"role\":\"tool\",\"content\":null,\"tool_call_id\":\"c\",\"name\":\"n\",\"x\":{\"y\":null}}]",
        NULL, NULL, false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "[{\"role\": \"tool\", \"tool_call_id\": \"c\", \"name\": \"n\", "
                                     "\"x\": {\"y\": null}}]");
    cake_buf_free(&out);
}

static void test_continue(void)
{
    static const char two[] = "[{\"content\":\"q\"},{\"content\":\"half a s \"}]";
    cake_buf out = {0};
    cake_fault fault;
    CU_ASSERT(!say(folder("{% for m in messages %}<{{ m.content }}>{% endfor %}", NULL, NULL), two, NULL,
                   NULL, true, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "<q><half a s ");
    CU_ASSERT(!say(folder("{% for m in messages %}<{{ m.content|trim }}>{% endfor %}", NULL, NULL), two, NULL,
                   NULL, true, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "<q><half a s");
    CU_ASSERT_EQUAL(say(folder("nothing", NULL, NULL), two, NULL, NULL, true, &out, &fault),
                    CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "does not read contents"));
    CU_ASSERT_EQUAL(say(folder("no content", NULL, NULL), two, NULL, NULL, true, &out, &fault),
                    CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "drops or changes the end of the last message"));
    static const char cut[] = "{% for m in messages %}{{ m.content[2:] }}{% endfor %}";
    CU_ASSERT_EQUAL(say(folder(cut, NULL, NULL), two, NULL, NULL, true, &out, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_PTR_NOT_NULL(strstr(fault.message, "drops or changes"));
    static const char part[] = "[{\"content\":[{\"type\":\"text\",\"text\":\"a\\u3000\"},{\"type\":\"x\"}]}]";
    CU_ASSERT(!say(folder("{{ messages[0].content[0].text|trim }}...", NULL, NULL), part, NULL, NULL, true,
                   &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "a");
    CU_ASSERT_EQUAL(say(folder("content", NULL, NULL), "[{\"content\":[{\"type\":\"x\"}]}]", NULL, NULL, true,
                        &out, &fault),
                    CAKE_ERR_REQUEST);
    CU_ASSERT_EQUAL(say(folder("", NULL, NULL), "[]", NULL, NULL, true, &out, &fault), CAKE_ERR_REQUEST);
    CU_ASSERT_EQUAL(say(folder("", NULL, NULL), "[{}]", NULL, NULL, true, &out, &fault), CAKE_ERR_REQUEST);
    cake_buf_free(&out);
}

static void test_demo(void)
{
    cake_buf out = {0};
    cake_fault fault;
    CU_ASSERT(!say(suite_path("jobs/demo/model"), "[{\"role\":\"user\",\"content\":\" 2 + 2 \"}]", NULL, NULL,
                   false, &out, &fault));
    CU_ASSERT_STRING_EQUAL(out.data, "<|im_start|>user\n2 + 2<|im_end|>\n<|im_start|>assistant\n");
    CU_ASSERT_EQUAL(
        say(suite_path("jobs/demo/model"), "[{\"role\":\"user\"}]", NULL, NULL, false, &out, &fault),
        CAKE_OK); /* an undefined content is an empty one to trim */
    cake_buf_free(&out);
}

static void *render_often(void *shared)
{
    cake_buf *out = cake_alloc(1, sizeof *out);
    cake_fault fault;
    cake_json *messages =
        parse("[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]");
    cake_chat_input input = {.messages = messages, .add_generation_prompt = true};
    for (int i = 0; i < 500; i++) {
        cake_buf_cut(out, 0);
        if (cake_chat_render(shared, &input, out, &fault))
            cake_buf_cut(out, 0);
    }
    cake_json_free(messages);
    return out;
}

static void test_threads(void)
{
    cake_chat *chat = NULL;
    pthread_t threads[4];
    CU_ASSERT_FATAL(!cake_chat_open(suite_path("jobs/demo/model"), &chat));
    for (int i = 0; i < 4; i++)
        CU_ASSERT_FATAL(!pthread_create(&threads[i], NULL, render_often, chat));
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        cake_buf *out = result;
        CU_ASSERT_STRING_EQUAL(out->data,
                               "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
                               "<|im_start|>assistant\n");
        cake_buf_free(out);
        free(out);
    }
    cake_chat_close(chat);
}

/* Contents with and without parts, in templates that take texts and in one that reads parts: as transformers
 * 5.24 renders them, but that of a template that takes texts it would print the list. */
static void test_contents(void)
{
    static const char *const templates[] = {
        "{% for m in messages %}{{ m.content | trim }};{% endfor %}",
        "{% for m in messages %}{{ '[' + m['content'] + ']' if m.content is defined else '-' }};{% endfor %}",
        "{% for m in messages %}{% if m.content %}{{ m.content }}{% else %}-{% endif %};{% endfor %}",
        "{% for m in messages %}{% if m.content is string %}S{{ m.content }}{% else %}"
        "{% for c in m.content %}{% if c.type == 'text' %}<{{ c.text }}>{% endif %}{% endfor %}{% endif %};"
        "{% endfor %}"};
    static const struct {
        const char *content;
        const char *expected[4];
    } cases[] = {
        {"", {";", "-;", "-;", ";"}},
        {"\"content\":null,", {";", "-;", "-;", ";"}},
        {"\"content\":\"\",", {";", "[];", "-;", "S;"}},
        {"\"content\":[],", {";", "[];", "-;", ";"}},
        {"\"content\":[{\"type\":\"text\",\"text\":\"\"}],", {";", "[];", "-;", "<>;"}},
        {"\"content\":[{\"type\":\"text\",\"text\":\"a \"},{\"type\":\"text\",\"text\":\"b\"}],",
         {"a b;", "[a b];", "a b;", "<a ><b>;"}},
        {"\"content\":\" a\",", {"a;", "[ a];", " a;", "S a;"}},
    };
    cake_buf out = {0}, messages = {0};
    cake_fault fault;
    for (size_t t = 0; t < sizeof templates / sizeof *templates; t++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            cake_buf_cut(&messages, 0);
            cake_buf_addf(&messages, "[{%s\"role\":\"assistant\",\"tool_calls\":[{\"function\":{}}]}]",
                          cases[i].content);
            CU_ASSERT(!say(folder(templates[t], NULL, NULL), messages.data, NULL, NULL, false, &out, &fault));
            CU_ASSERT_STRING_EQUAL(out.data, cases[i].expected[t]);
            if (strcmp(out.data, cases[i].expected[t]))
                printf("\n    template %zu, %s: %s\n", t, cases[i].content, out.data);
        }
    cake_buf_free(&out);
    cake_buf_free(&messages);
}

int main(void)
{
    static const suite_test tests[] = {
        {"where the template comes from, and its variables", test_sources},
        {"broken sources are told where and why", test_source_errors},
        {"files that are no templates", test_file_errors},
        {"messages: tool calls, reasoning, parts", test_messages},
        {"contents: none, empty, of parts", test_contents},
        {"the last message is continued", test_continue},
        {"the demo's template", test_demo},
        {"threads share a template", test_threads},
    };
    return SUITE_MAIN("chat", tests);
}
