/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/suite.h"

/* jansson takes no NUL in a key, and the token of byte 0 is a key of top_logprobs when it is among the
 * best. */
static void without_nuls(char *text)
{
    for (char *nul = text; (nul = strstr(nul, "\\u0000"));)
        nul[5] = '1';
}

static cake_json *read_lines(const char *path)
{
    static char chunk[1 << 16];
    cake_buf text = {0};
    FILE *f = fopen(path, "rb");
    cake_buf_addc(&text, '[');
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        cake_buf_add(&text, chunk, n);
    if (f)
        fclose(f);
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.data[i] == '\n')
            text.data[i] = ',';
    cake_buf_adds(&text, "]");
    without_nuls(text.data);
    cake_json *results = NULL;
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(cake_json_parse(text.data, text.len, &results, &fault), CAKE_OK);
    cake_buf_free(&text);
    return results;
}

int launch_command(int np, const char *arguments, cake_buf *said)
{
    static char chunk[1 << 12];
    const char *build = getenv("top_builddir");
    cake_buf command = {0};
    char log[256];
    snprintf(log, sizeof log, "%s/log", suite_tmp());
    cake_buf_addf(&command, "'%s' %d '%s/cake-mpi' %s >'%s' 2>&1 </dev/null", suite_path("mpirun.sh"), np,
                  build ? build : ".", arguments, log);
    suite_launches();
    int status = system(command.data);
    cake_buf_free(&command);
    cake_buf_cut(said, 0);
    FILE *f = fopen(log, "rb");
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        cake_buf_add(said, chunk, n);
    if (f)
        fclose(f);
    cake_buf_adds(said, "");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

cake_json *launch_run(const char *model, const char *requests, int np)
{
    cake_buf arguments = {0}, said = {0}; /* requests may live in the buffer of suite_path */
    char out[256];
    static int n_run;
    snprintf(out, sizeof out, "%s/run-%d.jsonl", suite_tmp(), n_run++);
    cake_buf_addf(&arguments, "run -m '%s' -i '%s' -o '%s' --progress none", model, requests, out);
    int status = launch_command(np, arguments.data, &said);
    CU_ASSERT_EQUAL(status, 0);
    if (status)
        printf("\n    %d ranks: status %d\n%s", np, status, said.data);
    cake_buf_free(&arguments);
    cake_buf_free(&said);
    return read_lines(out);
}

bool launch_same_ids(const cake_json *a, const cake_json *b)
{
    bool same = cake_json_size(a) == cake_json_size(b);
    for (size_t i = 0; same && i < cake_json_size(a); i++)
        same = cake_json_int(cake_json_at(a, i), -1) == cake_json_int(cake_json_at(b, i), -2);
    return same;
}
