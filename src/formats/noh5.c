/* SPDX-License-Identifier: Apache-2.0
 *
 * formats/h5.h in a build without HDF5: every open fails.
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

cake_h5_column *cake_h5_add(cake_h5 *file, const char *path, cake_h5_type type)
{
    (void)path, (void)type;
    CAKE_ASSERT(!file); /* there is no open file */
    return NULL;
}

void cake_h5_put(cake_h5_column *column, const void *values, size_t n)
{
    (void)values, (void)n;
    CAKE_ASSERT(!column);
}

void cake_h5_note_text(cake_h5 *file, const char *name, const char *text)
{
    (void)name, (void)text;
    CAKE_ASSERT(!file);
}

void cake_h5_note_long(cake_h5 *file, const char *name, int64_t value)
{
    (void)name, (void)value;
    CAKE_ASSERT(!file);
}

void cake_h5_note_real(cake_h5 *file, const char *name, double value)
{
    (void)name, (void)value;
    CAKE_ASSERT(!file);
}

int cake_h5_finish(cake_h5 *file)
{
    CAKE_ASSERT(!file);
    return ENOSYS;
}

cake_err cake_h5_open(const char *topic, const char *path, cake_h5 **out)
{
    (void)topic, (void)out;
    return cake_h5_known(path);
}

cake_h5_kind cake_h5_look(cake_h5 *file, const char *path)
{
    (void)path;
    CAKE_ASSERT(!file);
    return CAKE_H5_ABSENT;
}

cake_err cake_h5_get(cake_h5 *file, const char *path, cake_h5_column **out)
{
    (void)out;
    CAKE_ASSERT(!file);
    return cake_h5_known(path);
}

cake_err cake_h5_get_real(cake_h5 *file, const char *path, cake_h5_column **out)
{
    return cake_h5_get(file, path, out);
}

cake_h5_type cake_h5_type_of(const cake_h5_column *column)
{
    CAKE_ASSERT(!column);
    return CAKE_H5_TEXT;
}

bool cake_h5_signed(const cake_h5_column *column)
{
    CAKE_ASSERT(!column);
    return false;
}

int64_t cake_h5_length(const cake_h5_column *column)
{
    CAKE_ASSERT(!column);
    return 0;
}

const char *cake_h5_name(const cake_h5_column *column)
{
    CAKE_ASSERT(!column);
    return "";
}

cake_err cake_h5_read(cake_h5_column *column, int64_t from, size_t n, void *into)
{
    (void)from, (void)n, (void)into;
    CAKE_ASSERT(!column);
    return CAKE_ERR_FATAL;
}

cake_err cake_h5_read_text(cake_h5_column *column, int64_t row, size_t most, size_t *len, cake_buf *out)
{
    (void)row, (void)most, (void)len, (void)out;
    CAKE_ASSERT(!column);
    return CAKE_ERR_FATAL;
}

void cake_h5_close(cake_h5 *file)
{
    CAKE_ASSERT(!file);
}
