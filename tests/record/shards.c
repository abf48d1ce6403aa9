/* SPDX-License-Identifier: Apache-2.0 */
#include "record/shards.h"

#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "records.h"

/* An input in which every `blank`th line is blank. */
enum { LINES = 60 };

typedef struct made {
    int which, of;
    const char *isa;
    int blank; /* 0: none */
    int lines; /* of the input */
    int stop;  /* results after which the run stops; 0: it ends */
    int swap;  /* results of this index and the next one of the shard are exchanged */
    int64_t created;
} made;

static const made plain = {.of = 1, .isa = "ref", .lines = LINES, .swap = -100, .created = 1700000000};

static const char *name_of(char *name, int i)
{
    snprintf(name, 256, "%s/part-%d.jsonl", suite_tmp(), i);
    return name;
}

/* Writes part i as run --shard does. */
static void make(int i, const made *m)
{
    char name[256], identity[128], whole[32];
    snprintf(whole, sizeof whole, "\"%d/%d\"", m->which, m->of);
    snprintf(identity, sizeof identity, "{\"isa\": \"%s\", \"shard\": %s, \"output\": \"jsonl\"}", m->isa,
             m->of > 1 ? whole : "null");
    cake_record_options options = options_of(name_of(name, i));
    options.identity = identity;
    options.created = m->created;
    options.resume = CAKE_RESUME_NEVER;
    options.force = true;
    cake_recorder *recorder;
    cake_fault fault;
    cake_fault_set(&fault, "n", "no");
    CU_ASSERT_EQUAL_FATAL(cake_record_open(&options, &recorder), CAKE_OK);
    int requests = 0, order = 0;
    for (int index = 0; index < m->lines; index++) {
        if (m->blank && index % m->blank == 0)
            continue;
        requests++;
        if (index % m->of != m->which || (m->stop && order == m->stop))
            continue;
        cake_record r = answer_of(index, "answer");
        r.index += index == m->swap ? m->of : index == m->swap + m->of ? -m->of : 0;
        r.order = order++;
        r.form = index % 4 == 1 ? CAKE_FORM_BATCH_CHAT : CAKE_FORM_SIMPLE;
        r.id = index % 4 == 1 ? "\"custom-7\"" : NULL;
        r.fault = index % 10 == 3 ? &fault : NULL;
        cake_record_read_to(recorder, (cake_input_checkpoint){requests, index + 1, (uint32_t)m->lines});
        CU_ASSERT_EQUAL(cake_record_add(recorder, &r), CAKE_OK);
    }
    cake_record_read_to(recorder, (cake_input_checkpoint){requests, m->lines, (uint32_t)m->lines});
    if (!m->stop)
        CU_ASSERT_EQUAL(cake_record_finish(recorder), CAKE_OK);
    cake_record_close(recorder);
}

static bool matches(const cake_buf *said, const char *pattern)
{
    regex_t wanted;
    bool found = !regcomp(&wanted, pattern, REG_EXTENDED | REG_NOSUB) && said->data &&
                 !regexec(&wanted, said->data, 0, NULL, 0);
    regfree(&wanted);
    if (!found)
        printf("  expected: %s\n  said: %s\n", pattern, said->data ? said->data : "");
    return found;
}

static cake_err open_parts(int n, cake_shards **out, cake_buf *said)
{
    char names[8][256], *paths[8];
    for (int i = 0; i < n; i++)
        paths[i] = (char *)name_of(names[i], i);
    cake_buf_cut(said, 0);
    cake_log_capture(said);
    cake_err err = cake_shards_open(paths, n, NULL, out);
    cake_log_capture(NULL);
    return err;
}

static void test_order(void)
{
    cake_buf said = {0};
    for (int of = 1; of <= 7; of += 2)
        for (int blank = 0; blank <= 7; blank += 7) {
            cake_shards *s;
            cake_entry entry;
            const char *line;
            size_t len;
            for (int i = 0; i < of; i++) { /* named in another order than theirs */
                made m = plain;
                m.of = of;
                m.which = (i + 2) % of;
                m.blank = blank;
                m.created += m.which ? 9 : 4;
                make(i, &m);
            }
            CU_ASSERT_EQUAL_FATAL(open_parts(of, &s, &said), CAKE_OK);
            CU_ASSERT_EQUAL(cake_shards_header(s)->created, 1700000004);
            CU_ASSERT_STRING_EQUAL(cake_shards_header(s)->identity,
                                   "{\"isa\": \"ref\", \"shard\": null, \"output\": \"jsonl\"}");
            int64_t order = 0, failed = 0;
            for (int index = 0; index < LINES; index++) {
                char want[64];
                if (blank && index % blank == 0)
                    continue;
                CU_ASSERT_EQUAL_FATAL(cake_shards_next(s, &entry, &line, &len), CAKE_OK);
                if (index % 4 == 1)
                    snprintf(want, sizeof want, "\"batch_req-%016x-%d\"", 0xABC, index);
                else
                    snprintf(want, sizeof want, "{\"id\": null, \"index\": %d,", index);
                CU_ASSERT(line[len - 1] == '\n' && memmem(line, len, want, strlen(want)));
                CU_ASSERT_EQUAL(entry.order, order++);
                CU_ASSERT_EQUAL(entry.failed, index % 10 == 3);
                failed += entry.failed;
            }
            CU_ASSERT_EQUAL(cake_shards_next(s, &entry, &line, &len), CAKE_END);
            CU_ASSERT(cake_shards_count(s) == order && cake_shards_failed(s) == failed);
            CU_ASSERT(cake_shards_checkpoint(s).requests == order && cake_shards_checkpoint(s).line == LINES);
            cake_shards_close(s);
        }
    cake_buf_free(&said);
}

/* Three shards, one of which differs, and the message about it. */
static void test_wrong(void)
{
    static const struct {
        made m; /* of the second one */
        const char *says;
    } cases[] = {
        {{1, 3, "avx2", 0, LINES, 0, -100, 1},
         "part-1.jsonl: belongs to another job than .*isa was \"ref\" and is \"avx2\""},
        {{1, 4, "ref", 0, LINES, 0, -100, 1}, "part-1.jsonl: is shard 1 of 4, but .* one of 3"},
        {{7, 9, "ref", 0, LINES, 0, -100, 1}, "part-1.jsonl: is shard 7 of 9, but .* one of 3"},
        {{2, 3, "ref", 0, LINES, 0, -100, 1}, "both are shard 2/3: its requests would appear twice"},
        {{2, 3, "ref", 0, LINES, 0, -100, 1},
         "shard 1/3 is missing: the requests whose index modulo 3 is 1 have no results"},
        {{1, 3, "ref", 0, LINES + 6, 0, -100, 1},
         "part-1.jsonl: belongs to an input of 66 requests, .* of 60;"},
        {{1, 3, "ref", 0, LINES, 5, -100, 1},
         "part-1.jsonl.partial: shard 1/3 is not finished: it has 5 results, and none of index 16 to 58; "
         "give "
         "its `run` command again"},
        {{1, 3, "ref", 4, LINES, 5, -100, 1}, "none of index 4, 16, 22 to 58"},
        {{1, 3, "ref", 0, LINES, 0, 13, 1}, "line 5 \\(from 0\\) has index 13 after 16"},
        {{1, 3, "ref", 30, LINES, 0, -100, 1}, "belongs to an input of 58 requests, .* of 60"},
    };
    cake_buf said = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cake_shards *s = NULL;
        made m = plain;
        m.of = 3;
        make(0, &m);
        m.which = 2;
        make(2, &m);
        make(1, &cases[i].m);
        CU_ASSERT_EQUAL(open_parts(3, &s, &said), CAKE_ERR_FATAL);
        CU_ASSERT(matches(&said, cases[i].says));
    }
    cake_buf_free(&said);
}

/* A changed byte in a result file or its companions; missing files. */
static void test_damage(void)
{
    cake_buf said = {0};
    char name[256];
    cake_shards *s = NULL;
    made m = plain;
    m.of = 2;
    make(0, &m);
    m.which = 1;
    make(1, &m);
    int fd = open(name_of(name, 1), O_RDWR);
    CU_ASSERT_FATAL(fd >= 0 && pwrite(fd, "X", 1, 30) == 1);
    CU_ASSERT_EQUAL(open_parts(2, &s, &said), CAKE_ERR_FATAL);
    CU_ASSERT(matches(&said, "part-1.jsonl: (was changed since it was written|line 0)"));
    CU_ASSERT(!ftruncate(fd, 100) && open_parts(2, &s, &said) == CAKE_ERR_FATAL);
    CU_ASSERT(matches(&said, "part-1.jsonl: was changed since it was written"));
    close(fd);
    unlink(name);
    CU_ASSERT_EQUAL(open_parts(2, &s, &said), CAKE_ERR_FATAL);
    CU_ASSERT(matches(&said, "part-1.jsonl: does not exist, nor does its .partial"));
    make(1, &m);
    strcat(name, ".job");
    unlink(name);
    CU_ASSERT_EQUAL(open_parts(2, &s, &said), CAKE_ERR_FATAL);
    CU_ASSERT(matches(&said, "part-1.jsonl: .*part-1.jsonl.job, which identifies its job, is missing"));
    CU_ASSERT(!strstr(said.data, "is missing: the requests"));
    made run = plain;
    run.of = 1;
    run.stop = 1;
    make(0, &run);
    CU_ASSERT_EQUAL(open_parts(1, &s, &said), CAKE_ERR_FATAL);
    CU_ASSERT(matches(
        &said, "part-0.jsonl.partial: the run is not finished: it has 1 result, .*none of index 1 to"));
    m.which = 0;
    make(0, &m);
    m.which = 1;
    static const char *const hostile[][4] = {/* bytes, requests, and the input's: requests, lines */
                                             {"10", "60", "60", "60"},
                                             {"0", "4294967296", "4294967296", "4294967296"},
                                             {"0", "0", "60", "9223372036854775807"},
                                             {"0", "9", "8", "8"}};
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        FILE *f = fopen(name, "w");
        fprintf(f, "{\"cake_job\": 1, \"created\": 1, \"job\": \"0000000000000abc\", \"model\": \"m\", ");
        fprintf(f,
                "\"identity\": {\"isa\": \"ref\", \"shard\": \"1/2\", \"output\": \"jsonl\"}, \"crc\": 0, ");
        fprintf(f, "\"bytes\": %s, \"requests\": %s, \"failed\": 0, \"read\": [[%s, %s, 60]]}", hostile[i][0],
                hostile[i][1], hostile[i][2], hostile[i][3]);
        fclose(f);
        CU_ASSERT_EQUAL(open_parts(2, &s, &said), CAKE_ERR_FATAL);
    }
    /* changed between the two readings */
    make(1, &m);
    CU_ASSERT_EQUAL_FATAL(open_parts(2, &s, &said), CAKE_OK);
    cake_entry entry;
    const char *line;
    size_t len;
    cake_err err;
    fd = open(name_of(name, 1), O_RDWR);
    CU_ASSERT(fd >= 0 && pwrite(fd, "X", 1, 30) == 1);
    close(fd);
    cake_log_capture(&said);
    while (!(err = cake_shards_next(s, &entry, &line, &len)))
        ;
    cake_log_capture(NULL);
    CU_ASSERT_EQUAL(err, CAKE_ERR_FATAL);
    cake_shards_close(s);
    cake_buf_free(&said);
}

static void test_words(void)
{
    static const char *const wrong[] = {"",     "1",   "1/",        "/2",   "2/2",
                                        "-1/2", "0/0", "0/1048577", "0/2 ", "0/99999999999999999999"};
    cake_shard s = {5, 9};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_ASSERT(!cake_shard_read(wrong[i], &s) && s.which == 5 && s.of == 9);
    CU_ASSERT(cake_shard_read("7/8", &s) && s.which == 7 && s.of == 8);
    CU_ASSERT(cake_shard_has(&s, 15) && !cake_shard_has(&s, 16));
    CU_ASSERT(cake_shard_has(&(cake_shard){0}, 16));
}

int main(void)
{
    static const suite_test tests[] = {{"I/N", test_words},
                                       {"lines come in the order of the input", test_order},
                                       {"what keeps shards from being one job", test_wrong},
                                       {"files that are changed or gone", test_damage}};
    return SUITE_MAIN("shards", tests);
}
