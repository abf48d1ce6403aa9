/* SPDX-License-Identifier: Apache-2.0
 *
 * In: messages of any thread. Out: a line on standard error, or in the capture.
 * Invariant: no control character of a message reaches the terminal.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "base/stderr.h"

static const char *const level_name[] = {"error: ", "warning: ", "", "debug: "};

/* Every folder is a topic, whether it logs or not. The others: `memory` (a failed allocation or lock),
 * `output` (a write to standard output or a stream fails) and `usage` (the command line). */
static const char *const topics[] = {
    "answer",    "base",    "bench",   "bundle", "chat",      "config",  "dispatch", "embed",
    "engine",    "formats", "grammar", "hub",    "jinja",     "kernels", "link",     "logits",
    "memory",    "model",   "options", "output", "placement", "planner", "prompt",   "record",
    "report",    "request", "run",     "sample", "schedule",  "slice",   "tensors",  "text",
    "tokenizer", "trace",   "types",   "usage",  "watch"};

enum { N_TOPIC = sizeof topics / sizeof *topics, UNSET = -1 };

static struct {
    _Atomic cake_level level;
    int of[N_TOPIC]; /* levels of topics, valid if has_topics; UNSET: the level of all */
    bool has_topics;
    int rank;
} state = {.level = CAKE_INFO};

/* A helper thread logs while the main thread captures, or the other way round. */
static _Thread_local bool hushed;
static _Thread_local cake_buf *capture;

static int number_of(const char *topic, size_t len)
{
    int i = 0;
    while (i < N_TOPIC && (strncmp(topics[i], topic, len) || topics[i][len]))
        i++;
    return i;
}

static cake_level level_of(const char *topic)
{
    int i = state.has_topics && topic ? number_of(topic, strlen(topic)) : N_TOPIC;
    if (hushed)
        return CAKE_ERROR;
    return i < N_TOPIC && state.of[i] != UNSET ? (cake_level)state.of[i] : state.level;
}

bool cake_log_wants(cake_level level, const char *topic)
{
    cake_level max = level_of(topic);
    return level <= max && (state.rank == 0 || level <= CAKE_WARN || max >= CAKE_DEBUG);
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7F;
}

void cake_log_escape(cake_buf *line)
{
    cake_buf safe = {0};
    for (size_t i = 0; i < line->len; i++) {
        unsigned char c = (unsigned char)line->data[i];
        if (is_control(c))
            cake_buf_addf(&safe, "\\x%02x", c);
        else
            cake_buf_addc(&safe, (char)c);
    }
    cake_buf_cut(line, 0);
    if (safe.len)
        cake_buf_add(line, safe.data, safe.len);
    cake_buf_free(&safe);
}

/* Whole lines, to where this thread's messages go. */
static void say(const char *lines, size_t len)
{
    if (capture)
        cake_buf_add(capture, lines, len);
    else
        cake_stderr_write(lines, len);
}

void cake_log(cake_level level, const char *topic, const char *fmt, ...)
{
    if (!cake_log_wants(level, topic))
        return;
    cake_buf line = {0};
    cake_buf_adds(&line, "cake-mpi: ");
    cake_buf_adds(&line, cake_stderr_origin());
    cake_buf_adds(&line, level_name[level]);
    if (topic)
        cake_buf_addf(&line, "%s: ", topic);
    va_list args;
    va_start(args, fmt);
    cake_buf_addv(&line, fmt, args);
    va_end(args);
    cake_log_escape(&line);
    cake_buf_addc(&line, '\n');
    say(line.data, line.len);
    cake_buf_free(&line);
}

void cake_log_now(cake_level level, const char *topic, const char *text)
{
    if (cake_log_wants(level, topic))
        cake_stderr_message(level_name[level], topic, text);
}

cake_level cake_log_level(cake_level level)
{
    cake_level before = state.level;
    state.level = level;
    return before;
}

/* The level of the name at text [len]; UNSET: it names none. */
static int level_named(const char *text, size_t len)
{
    static const char *const names[] = {
        [CAKE_ERROR] = "error", [CAKE_WARN] = "warn", [CAKE_INFO] = "info", [CAKE_DEBUG] = "debug"};
    for (int i = CAKE_ERROR; i <= CAKE_DEBUG; i++)
        if (strlen(names[i]) == len && !strncmp(names[i], text, len))
            return i;
    return UNSET;
}

static const char *all_topics(void)
{
    static cake_buf text;
    cake_buf_cut(&text, 0);
    for (int i = 0; i < N_TOPIC; i++)
        cake_buf_addf(&text, "%s%s", !i ? "topics are " : i < N_TOPIC - 1 ? ", " : " and ", topics[i]);
    cake_buf_adds(&text, ", as in info,planner=debug");
    return text.data;
}

const char *cake_log_levels(const char *text)
{
    int of[N_TOPIC], all = UNSET;
    for (int i = 0; i < N_TOPIC; i++)
        of[i] = UNSET;
    for (const char *at = text, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        size_t name = strcspn(at, "=,");
        const char *level = at[name] == '=' ? at + name + 1 : at;
        int found = level_named(level, (size_t)(end - level)),
            topic = level == at ? N_TOPIC : number_of(at, name);
        if (found == UNSET)
            return "levels are error, warn, info and debug, as in info,planner=debug";
        if (level != at && topic == N_TOPIC)
            return all_topics();
        if (level == at && at != text)
            return "the level of all topics comes first and once, as in info,planner=debug";
        *(level == at ? &all : &of[topic]) = found;
    }
    memcpy(state.of, of, sizeof of);
    state.has_topics = true;
    if (all != UNSET)
        state.level = (cake_level)all;
    return NULL;
}

bool cake_log_hush(bool on)
{
    bool before = hushed;
    hushed = on;
    return before;
}

void cake_log_rank(int rank, const char *host)
{
    state.rank = rank;
    cake_stderr_rank(rank, host);
}

cake_buf *cake_log_capture(cake_buf *into)
{
    cake_buf *before = capture;
    capture = into;
    return before;
}

void cake_log_captured(const cake_buf *lines)
{
    if (lines->len)
        say(lines->data, lines->len);
}
