/* SPDX-License-Identifier: Apache-2.0
 *
 * In: scores of pairs. Out: their lists in JSON: of a query's documents the best first, of other pairs in
 * their order.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "record/format.h"

typedef struct place {
    float score;
    int index;
} place;

/* Ties keep the order of the documents. */
static int compare(const void *x, const void *y)
{
    const place *a = x, *b = y;
    return a->score != b->score ? (a->score < b->score ? 1 : -1) : a->index - b->index;
}

static void add_results(const cake_record *record, cake_buf *out)
{
    place *places = cake_alloc((size_t)record->n_score, sizeof *places);
    for (int i = 0; i < record->n_score; i++)
        places[i] = (place){record->score[i], i};
    qsort(places, (size_t)record->n_score, sizeof *places, compare);
    cake_buf_adds(out, "\"results\": [");
    for (int i = 0; i < record->n_best; i++) {
        const char *document = record->document ? record->document[places[i].index] : NULL;
        cake_buf_addf(out, "%s{\"index\": %d, ", i ? ", " : "", places[i].index);
        if (document) {
            cake_buf_adds(out, "\"document\": {\"text\": ");
            cake_json_add_text(out, document, strlen(document));
            cake_buf_adds(out, "}, ");
        }
        cake_buf_adds(out, "\"relevance_score\": ");
        cake_line_float(places[i].score, out);
        cake_buf_addc(out, '}');
    }
    cake_buf_addc(out, ']');
    free(places);
}

static void add_data(const cake_record *record, cake_buf *out)
{
    cake_buf_adds(out, "\"data\": [");
    for (int i = 0; i < record->n_score; i++) {
        cake_buf_addf(out, "%s{\"index\": %d, \"object\": \"score\", \"score\": ", i ? ", " : "", i);
        cake_line_float(record->score[i], out);
        cake_buf_addc(out, '}');
    }
    cake_buf_addc(out, ']');
}

void cake_line_ranking(const cake_record *record, cake_buf *out)
{
    (record->ranked ? add_results : add_data)(record, out);
}
