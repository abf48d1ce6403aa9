/* SPDX-License-Identifier: Apache-2.0
 *
 * formats/h5.h in a build without HDF5: every open fails, so nothing else is ever called.
 */
#include <errno.h>

#include "formats/h5.h"

cake_err cake_h5_known(const char *path)
{
    return cake_fail_usage(
        "%s: this build has no HDF5; expected .jsonl or .txt, or configure it without --without-hdf5", path);
}

cake_h5 *cake_h5_create(const char *path)
{
    (void)path;
    errno = ENOSYS;
    return NULL;
}

cake_err cake_h5_open(const char *topic, const char *path, cake_h5 **out)
{
    (void)topic, (void)out;
    return cake_h5_known(path);
}

void cake_h5_close(cake_h5 *file)
{
    CAKE_ASSERT(!file);
}

/* A function that needs an open file. */
#define NEVER(result, name, ...)                                                                             \
    result name(__VA_ARGS__)                                                                                 \
    {                                                                                                        \
        cake_die(#name ": there is no HDF5 file");                                                           \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

NEVER(cake_h5_column *, cake_h5_add, cake_h5 *file, const char *path, cake_h5_type type)
NEVER(void, cake_h5_put, cake_h5_column *column, const void *values, size_t n)
NEVER(cake_h5_column *, cake_h5_add_rows, cake_h5 *file, const char *path, size_t width)
NEVER(void, cake_h5_put_row, cake_h5_column *column, const float *values, size_t n)
NEVER(void, cake_h5_note_text, cake_h5 *file, const char *name, const char *text)
NEVER(void, cake_h5_note_long, cake_h5 *file, const char *name, int64_t value)
NEVER(void, cake_h5_note_real, cake_h5 *file, const char *name, double value)
NEVER(int, cake_h5_finish, cake_h5 *file)
NEVER(cake_h5_kind, cake_h5_look, cake_h5 *file, const char *path)
NEVER(cake_err, cake_h5_get, cake_h5 *file, const char *path, cake_h5_column **out)
NEVER(cake_err, cake_h5_get_real, cake_h5 *file, const char *path, cake_h5_column **out)
NEVER(cake_err, cake_h5_get_rows, cake_h5 *file, const char *path, size_t *width, cake_h5_column **out)
NEVER(cake_err, cake_h5_read_row, cake_h5_column *column, int64_t row, float *into)
NEVER(cake_h5_type, cake_h5_type_of, const cake_h5_column *column)
NEVER(bool, cake_h5_signed, const cake_h5_column *column)
NEVER(int64_t, cake_h5_length, const cake_h5_column *column)
NEVER(const char *, cake_h5_name, const cake_h5_column *column)
NEVER(cake_err, cake_h5_read, cake_h5_column *column, int64_t from, size_t n, void *into)
NEVER(cake_err, cake_h5_read_text, cake_h5_column *column, int64_t row, size_t most, size_t *len,
      cake_buf *out)
