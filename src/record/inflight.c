/* SPDX-License-Identifier: Apache-2.0
 *
 * In: tokens and scores. Out: JSON, and back. Scores are stored as the bits of their floats, so that a later
 * run writes the same numbers.
 */
#include "record/inflight.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/json.h"
#include "types/params.h"

void cake_inflight_free(cake_inflight *inflight)
{
    cake_ids_free(&inflight->ids);
    free(inflight->logprobs);
    *inflight = (cake_inflight){0};
}

void cake_inflight_add(const cake_inflight *part, cake_buf *out)
{
    cake_buf_addf(out, "{\"order\": %" PRId64, part->order);
    if (part->choice)
        cake_buf_addf(out, ", \"choice\": %d", part->choice);
    cake_buf_addf(out, ", \"at\": %" PRId64 ", \"ids\": [", part->at);
    for (size_t i = 0; i < part->ids.len; i++)
        cake_buf_addf(out, "%s%" PRId32, i ? ", " : "", part->ids.id[i]);
    cake_buf_addf(out, "], \"width\": %d, \"scores\": [", part->width);
    for (size_t i = 0; i < part->ids.len * (size_t)part->width; i++) {
        uint32_t bits;
        memcpy(&bits, &part->logprobs[i].logprob, sizeof bits);
        cake_buf_addf(out, "%s%" PRId32 ", %" PRIu32, i ? ", " : "", part->logprobs[i].id, bits);
    }
    cake_buf_adds(out, "]}");
}

static bool read_ids(const cake_json *array, cake_ids *ids)
{
    for (size_t i = 0; i < cake_json_size(array); i++) {
        int64_t id = cake_json_int(cake_json_at(array, i), -1);
        if (id < 0 || id > INT32_MAX)
            return false;
        cake_ids_add(ids, (int32_t)id);
    }
    return ids->len > 0;
}

static bool read_scores(const cake_json *array, size_t n, cake_token_logprob *logprobs)
{
    for (size_t i = 0; i < n; i++) {
        int64_t id = cake_json_int(cake_json_at(array, 2 * i), -1);
        int64_t bits = cake_json_int(cake_json_at(array, 2 * i + 1), -1);
        if (id < 0 || id > INT32_MAX || bits < 0 || bits > UINT32_MAX)
            return false;
        uint32_t low = (uint32_t)bits;
        logprobs[i].id = (int32_t)id;
        memcpy(&logprobs[i].logprob, &low, sizeof low);
    }
    return true;
}

bool cake_inflight_parse(const cake_json *object, cake_inflight *part)
{
    cake_inflight parsed = {.order = cake_json_int(cake_json_get(object, "order"), -1),
                            .at = cake_json_int(cake_json_get(object, "at"), -1)};
    int64_t width = cake_json_int(cake_json_get(object, "width"), -1);
    const cake_json *which = cake_json_get(object, "choice");
    int64_t choice = which ? cake_json_int(which, -1) : 0;
    const cake_json *scores = cake_json_get(object, "scores");
    bool right = parsed.order >= 0 && parsed.at >= 0 && choice >= 0 && choice < CAKE_MAX_CHOICE &&
                 width >= 0 && width <= 1 + CAKE_MAX_TOP &&
                 read_ids(cake_json_get(object, "ids"), &parsed.ids) &&
                 cake_json_size(scores) == parsed.ids.len * (size_t)width * 2;
    parsed.choice = right ? (int)choice : 0;
    if (right && width) {
        parsed.width = (int)width;
        parsed.logprobs = cake_alloc(parsed.ids.len * (size_t)width, sizeof *parsed.logprobs);
        right = read_scores(scores, parsed.ids.len * (size_t)width, parsed.logprobs);
    }
    if (right)
        *part = parsed;
    else
        cake_inflight_free(&parsed);
    return right;
}

/* Index of the entry, or where to insert it. */
static size_t find(const cake_inflights *all, int64_t order, int choice)
{
    size_t low = 0, high = all->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const cake_inflight *r = &all->entry[middle];
        if (r->order < order || (r->order == order && r->choice < choice))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const cake_inflights *all, size_t at, int64_t order)
{
    return at < all->n && all->entry[at].order == order;
}

static void append(cake_inflight *known, const cake_inflight *part)
{
    size_t before = known->ids.len * (size_t)known->width, more = part->ids.len * (size_t)part->width;
    for (size_t i = 0; i < part->ids.len; i++)
        cake_ids_add(&known->ids, part->ids.id[i]);
    if (more) {
        known->logprobs = cake_grow(known->logprobs, before + more, sizeof *known->logprobs);
        memcpy(known->logprobs + before, part->logprobs, more * sizeof *part->logprobs);
    }
}

void cake_inflights_put(cake_inflights *all, cake_inflight *part)
{
    size_t at = find(all, part->order, part->choice);
    bool known = is_at(all, at, part->order) && all->entry[at].choice == part->choice;
    if (known && !part->at) {
        cake_inflight_free(&all->entry[at]);
        all->entry[at] = *part;
        *part = (cake_inflight){0};
    } else if (!known && !part->at) {
        CAKE_RESERVE(all->entry, all->n, all->cap);
        memmove(&all->entry[at + 1], &all->entry[at], (all->n++ - at) * sizeof *all->entry);
        all->entry[at] = *part;
        *part = (cake_inflight){0};
    } else if (known && part->at == (int64_t)all->entry[at].ids.len && part->width == all->entry[at].width) {
        append(&all->entry[at], part);
    }
    cake_inflight_free(part);
}

static size_t count(const cake_inflights *all, size_t at, int64_t order)
{
    size_t n = 0;
    while (is_at(all, at + n, order))
        n++;
    return n;
}

const cake_inflight *cake_inflights_get(const cake_inflights *all, int64_t order, int *n)
{
    size_t at = find(all, order, 0);
    *n = (int)count(all, at, order);
    return *n ? &all->entry[at] : NULL;
}

size_t cake_inflights_requests(const cake_inflights *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += !i || all->entry[i].order != all->entry[i - 1].order;
    return n;
}

void cake_inflights_drop(cake_inflights *all, int64_t order)
{
    size_t at = find(all, order, 0), n = count(all, at, order);
    if (!n)
        return;
    for (size_t i = at; i < at + n; i++)
        cake_inflight_free(&all->entry[i]);
    all->n -= n;
    memmove(&all->entry[at], &all->entry[at + n], (all->n - at) * sizeof *all->entry);
}

void cake_inflights_free(cake_inflights *all)
{
    for (size_t i = 0; i < all->n; i++)
        cake_inflight_free(&all->entry[i]);
    free(all->entry);
    *all = (cake_inflights){0};
}
