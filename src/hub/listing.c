/* SPDX-License-Identifier: Apache-2.0
 *
 * In: JSON of GET /api/models/NAME/revision/REVISION. Out: commit and names of files, or what is wrong.
 */
#include "hub/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "formats/json.h"

enum { MAX_FILES = 100000 };

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The name as a message may show it. */
static cake_err refuse_file(const char *name, size_t len, const char *why, cake_fault *fault)
{
    cake_buf shown = {0};
    cake_buf_add(&shown, name, len < 80 ? len : 80);
    cake_log_escape(&shown);
    cake_err err = cake_fault_set(fault, NULL, "the name of a file, \"%s\", %s", shown.data, why);
    cake_buf_free(&shown);
    return err;
}

static cake_err read_files(const cake_json *list, cake_hub_listing *out, cake_fault *fault)
{
    size_t n = cake_json_size(list);
    if (cake_json_kind(list) != CAKE_JSON_ARRAY || !n)
        return cake_fault_set(fault, NULL, "it lists no files (`siblings`)");
    if (n > MAX_FILES)
        return cake_fault_set(fault, NULL, "it lists %zu files, %d at most are taken", n, MAX_FILES);
    out->file = cake_alloc(n, sizeof *out->file);
    out->wanted = cake_alloc(n, sizeof *out->wanted);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *name = cake_json_text(cake_json_get(cake_json_at(list, i), "rfilename"), &len);
        if (!name)
            return cake_fault_set(fault, NULL, "a file has no name (`rfilename`)");
        const char *why = cake_hub_bad_file(name, len);
        if (why)
            return refuse_file(name, len, why, fault);
        out->file[out->n++] = cake_copy(name, len);
    }
    qsort(out->file, n, sizeof *out->file, compare_names);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(out->file[i], out->file[i - 1]))
            return refuse_file(out->file[i], strlen(out->file[i]), "occurs twice", fault);
    return CAKE_OK;
}

cake_err cake_hub_listing_read(const char *text, size_t len, cake_hub_listing *out, cake_fault *fault)
{
    cake_json *root = NULL;
    cake_hub_listing found = {0};
    *out = found;
    cake_err err = cake_json_parse(text, len, &root, fault);
    size_t n_commit = 0;
    const char *commit = err ? NULL : cake_json_text(cake_json_get(root, "sha"), &n_commit);
    if (!err && (!commit || strlen(commit) != n_commit || !cake_hub_is_commit(commit)))
        err = cake_fault_set(fault, NULL, "it names no commit (`sha`)");
    if (!err)
        memcpy(found.commit, commit, sizeof found.commit);
    if (!err)
        err = read_files(cake_json_get(root, "siblings"), &found, fault);
    cake_json_free(root);
    if (err)
        cake_hub_listing_free(&found);
    else
        *out = found;
    return err;
}

void cake_hub_listing_free(cake_hub_listing *listing)
{
    for (size_t i = 0; i < listing->n; i++)
        free(listing->file[i]);
    free(listing->file);
    free(listing->wanted);
    *listing = (cake_hub_listing){0};
}
