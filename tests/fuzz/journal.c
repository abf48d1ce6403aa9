/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: RESULTS.partial as an earlier run may have left it. Accepted groups lie inside the file and
 * are whole lines.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "record/journal_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const cake_journal *j, const uint8_t *data, size_t size)
{
    enum { LOOKED = 1 << 20 }; /* a place may be four thousand millions further */
    int64_t n = 0, failed = 0;
    CAKE_ASSERT(j->end > 0 && j->torn >= 0 && j->lost >= 0 && j->end + j->torn == (int64_t)size);
    CAKE_ASSERT(j->header.identity && j->header.model && j->header.created >= 0);
    for (int64_t i = 0; i < j->lines.end && i < LOOKED && n < j->lines.n; i++) {
        cake_line_span place = cake_line_index_get(&j->lines, i);
        if (!place.len)
            continue;
        CAKE_ASSERT(place.offset > 0 && place.offset + place.len <= j->end);
        CAKE_ASSERT(data[place.offset + place.len - 1] == '\n'); /* the byte before may be damaged */
        n++;
        failed += place.failed;
    }
    CAKE_ASSERT(j->lines.end > LOOKED || (n == j->lines.n && failed == j->failed));
    for (size_t i = 0; i < j->inflights.n; i++) {
        const cake_inflight *r = &j->inflights.entry[i];
        CAKE_ASSERT(r->ids.len > 0 && r->width >= 0 && !cake_line_index_get(&j->lines, r->order).len);
        CAKE_ASSERT(r->order > (i ? r[-1].order : -1) && r->order < j->marks[j->n_mark - 1].requests);
    }
    for (size_t i = 1; i < j->n_mark; i++)
        CAKE_ASSERT(j->marks[i].requests > j->marks[i - 1].requests);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    cake_journal j;
    int fd = memfd_create("journal", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    cake_buf_cut(&said, 0);
    cake_log_capture(&said);
    cake_err err = cake_journal_read(fd, "FILE", &j);
    if (!err) {
        check(&j, data, size);
        cake_journal_free(&j);
    } else {
        CAKE_ASSERT(err == CAKE_END || said.len > 0);
    }
    cake_log_capture(NULL);
    close(fd);
    return 0;
}
