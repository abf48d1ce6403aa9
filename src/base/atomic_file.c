/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a name, and what the caller writes to the open file. Out: the complete file, or a message.
 * Invariant: a regular file is written as PATH.tmp and renamed only after everything was written without
 * error.
 */
#include "base/atomic_file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static cake_err fail(const char *what, const char *path, int error)
{
    return cake_fail("output", "the %s cannot be written to %s: %s", what, path, strerror(error));
}

/* The temporary name. */
static void first_name(const char *path, cake_buf *name)
{
    struct stat info;
    bool there_itself = !lstat(path, &info) && !S_ISREG(info.st_mode);
    cake_buf_addf(name, there_itself ? "%s" : "%s.tmp", path);
}

cake_err cake_atomic_file_check(const char *what, const char *path)
{
    cake_buf name = {0};
    struct stat info;
    cake_err err = CAKE_OK;
    first_name(path, &name);
    bool exists = !lstat(name.data, &info);
    FILE *f = exists && !S_ISREG(info.st_mode) ? NULL : fopen(name.data, "a");
    if (f && !exists)
        unlink(name.data);
    if (!f && !(exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)))
        err = fail(what, path, exists ? EISDIR : errno);
    if (f)
        fclose(f);
    cake_buf_free(&name);
    return err;
}

cake_err cake_atomic_file_open(const char *what, const char *path, cake_atomic_file *out)
{
    *out = (cake_atomic_file){.what = what, .path = path};
    first_name(path, &out->first);
    out->file = fopen(out->first.data, "w");
    if (out->file)
        return CAKE_OK;
    cake_err err = fail(what, path, errno);
    cake_buf_free(&out->first);
    return err;
}

cake_err cake_atomic_file_close(cake_atomic_file *w)
{
    bool temporary = strcmp(w->first.data, w->path);
    int error = fflush(w->file) ? errno : ferror(w->file) ? EIO : 0;
    if (fclose(w->file) && !error)
        error = errno;
    if (!error && temporary && rename(w->first.data, w->path))
        error = errno;
    if (error && temporary)
        unlink(w->first.data);
    cake_err err = error ? fail(w->what, w->path, error) : CAKE_OK;
    cake_buf_free(&w->first);
    return err;
}

void cake_atomic_file_drop(cake_atomic_file *w)
{
    struct stat info;
    bool temporary = strcmp(w->first.data, w->path);
    if (!temporary && !fstat(fileno(w->file), &info) && S_ISREG(info.st_mode))
        (void)!ftruncate(fileno(w->file), 0); /* PATH is a link to a regular file */
    fclose(w->file);
    if (temporary)
        unlink(w->first.data);
    cake_buf_free(&w->first);
}
