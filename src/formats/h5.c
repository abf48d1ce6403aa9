/* SPDX-License-Identifier: Apache-2.0
 *
 * In: columns. Out: an HDF5 file.
 * Invariant: of each column less than one chunk waits in memory, so that a chunk is deflated only once.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/h5_parts.h"

#define DEFLATE 4

const cake_h5_size cake_h5_sizes[] = {[CAKE_H5_BYTE] = {1, 1 << 18},
                                      [CAKE_H5_INT] = {4, 1 << 15},
                                      [CAKE_H5_LONG] = {8, 1 << 14},
                                      [CAKE_H5_REAL] = {4, 1 << 15},
                                      [CAKE_H5_WORD] = {CAKE_H5_WORD_LEN, 1 << 14},
                                      [CAKE_H5_TEXT] = {sizeof(char *), 1 << 12}};

cake_err cake_h5_known(const char *path)
{
    (void)path;
    return CAKE_OK;
}

void cake_h5_begin(void)
{
    static bool begun;
    if (!begun) {
        H5dont_atexit();
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    }
    begun = true;
}

static void check(cake_h5 *file, bool good)
{
    if (!good && !file->why)
        file->why = errno ? errno : EIO;
}

static hid_t text_type(size_t len)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, len);
    H5Tset_strpad(type, len == H5T_VARIABLE ? H5T_STR_NULLTERM : H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

hid_t cake_h5_access_list(void)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 11, 0))
    H5Pset_file_locking(list, false, true);
#endif
    return list;
}

cake_h5 *cake_h5_create(const char *path)
{
    cake_h5_begin();
    errno = 0;
    hid_t list = cake_h5_access_list();
    hid_t id = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    int why = errno;
    H5Pclose(list);
    if (id < 0) {
        errno = why ? why : EIO;
        return NULL;
    }
    cake_h5 *file = cake_alloc(1, sizeof *file);
    *file = (cake_h5){.id = id, .word = text_type(CAKE_H5_WORD_LEN), .text = text_type(H5T_VARIABLE)};
    return file;
}

static hid_t stored(const cake_h5 *file, cake_h5_type type)
{
    const hid_t types[] = {
        [CAKE_H5_BYTE] = H5T_STD_U8LE,   [CAKE_H5_INT] = H5T_STD_I32LE, [CAKE_H5_LONG] = H5T_STD_I64LE,
        [CAKE_H5_REAL] = H5T_IEEE_F32LE, [CAKE_H5_WORD] = file->word,   [CAKE_H5_TEXT] = file->text};
    return types[type];
}

static hid_t in_memory(const cake_h5 *file, cake_h5_type type)
{
    const hid_t types[] = {[CAKE_H5_BYTE] = H5T_NATIVE_UINT8, [CAKE_H5_INT] = H5T_NATIVE_INT32,
                           [CAKE_H5_LONG] = H5T_NATIVE_INT64, [CAKE_H5_REAL] = H5T_NATIVE_FLOAT,
                           [CAKE_H5_WORD] = file->word,       [CAKE_H5_TEXT] = file->text};
    return types[type];
}

cake_h5_column *cake_h5_add(cake_h5 *file, const char *path, cake_h5_type type)
{
    hsize_t none = 0, any = H5S_UNLIMITED, chunk = cake_h5_sizes[type].chunk;
    errno = 0;
    hid_t space = H5Screate_simple(1, &none, &any);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_chunk(create, 1, &chunk);
    H5Pset_shuffle(create);
    H5Pset_deflate(create, DEFLATE);
    H5Pset_obj_track_times(create, false); /* the same results make the same file */
    H5Pset_create_intermediate_group(link, 1);
    cake_h5_column *column = cake_alloc(1, sizeof *column);
    *column = (cake_h5_column){.file = file, .type = type};
    column->set = H5Dcreate2(file->id, path, stored(file, type), space, link, create, H5P_DEFAULT);
    check(file, column->set >= 0);
    H5Pclose(link);
    H5Pclose(create);
    H5Sclose(space);
    file->column = cake_grow(file->column, file->n + 1, sizeof(cake_h5_column *));
    return file->column[file->n++] = column;
}

/* Values of a chunk of rows: about as many as of a column. */
static size_t rows_of_chunk(size_t width)
{
    const size_t n = cake_h5_sizes[CAKE_H5_REAL].chunk / width;
    return n ? n : 1;
}

cake_h5_column *cake_h5_add_rows(cake_h5 *file, const char *path, size_t width)
{
    const hsize_t none[2] = {0, width}, any[2] = {H5S_UNLIMITED, H5S_UNLIMITED},
                  chunk[2] = {rows_of_chunk(width), width};
    const float nothing = NAN;
    errno = 0;
    hid_t space = H5Screate_simple(2, none, any), create = H5Pcreate(H5P_DATASET_CREATE),
          link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_chunk(create, 2, chunk);
    H5Pset_fill_value(create, H5T_NATIVE_FLOAT, &nothing); /* not deflated: embeddings hardly shrink */
    H5Pset_obj_track_times(create, false);
    H5Pset_create_intermediate_group(link, 1);
    cake_h5_column *column = cake_alloc(1, sizeof *column);
    *column = (cake_h5_column){.file = file, .type = CAKE_H5_REAL, .width = width};
    column->set = H5Dcreate2(file->id, path, H5T_IEEE_F32LE, space, link, create, H5P_DEFAULT);
    check(file, column->set >= 0);
    H5Pclose(link);
    H5Pclose(create);
    H5Sclose(space);
    file->column = cake_grow(file->column, file->n + 1, sizeof(cake_h5_column *));
    return file->column[file->n++] = column;
}

static void write_rows(cake_h5_column *c)
{
    const hsize_t from[2] = {c->done, 0}, n[2] = {c->n, c->width}, all[2] = {c->done + c->n, c->width};
    bool good = !c->file->why;
    errno = 0;
    if (good && (good = H5Dset_extent(c->set, all) >= 0)) {
        hid_t in_file = H5Dget_space(c->set), here = H5Screate_simple(2, n, NULL);
        good = H5Sselect_hyperslab(in_file, H5S_SELECT_SET, from, NULL, n, NULL) >= 0 &&
               H5Dwrite(c->set, H5T_NATIVE_FLOAT, here, in_file, H5P_DEFAULT, c->waits) >= 0;
        H5Sclose(here);
        H5Sclose(in_file);
    }
    check(c->file, good);
    c->done += c->n;
    c->n = 0;
}

void cake_h5_put_row(cake_h5_column *c, const float *values, size_t n)
{
    CAKE_ASSERT(n <= CAKE_H5_WIDEST);
    if (c->n && (n > c->width || c->n == c->capacity))
        write_rows(c);
    if (n > c->width || !c->waits) {
        c->width = n > c->width ? n : c->width;
        c->capacity = rows_of_chunk(c->width);
        free(c->waits);
        c->waits = cake_alloc(c->capacity * c->width, sizeof(float));
    }
    float *into = (float *)(void *)c->waits + c->n++ * c->width;
    for (size_t i = 0; i < c->width; i++)
        into[i] = i < n ? values[i] : NAN;
}

static void write_out(cake_h5_column *c)
{
    if (c->width) {
        if (c->n)
            write_rows(c);
        return;
    }
    hsize_t from = c->done, n = c->n, all = from + n;
    bool good = !c->file->why && c->n;
    errno = 0;
    if (good && (good = H5Dset_extent(c->set, &all) >= 0)) {
        hid_t in_file = H5Dget_space(c->set), here = H5Screate_simple(1, &n, NULL);
        good = H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &from, NULL, &n, NULL) >= 0 &&
               H5Dwrite(c->set, in_memory(c->file, c->type), here, in_file, H5P_DEFAULT, c->waits) >= 0;
        H5Sclose(here);
        H5Sclose(in_file);
    }
    check(c->file, good || !c->n);
    for (size_t i = 0; c->type == CAKE_H5_TEXT && i < c->n; i++)
        free(((char **)(void *)c->waits)[i]);
    c->done = all;
    c->n = 0;
}

void cake_h5_put(cake_h5_column *c, const void *values, size_t n)
{
    size_t bytes = cake_h5_sizes[c->type].bytes, chunk = cake_h5_sizes[c->type].chunk;
    const char *from = values;
    if (!c->waits)
        c->waits = cake_alloc(chunk, bytes);
    while (n > 0) {
        size_t piece = chunk - c->n < n ? chunk - c->n : n;
        char *into = c->waits + c->n * bytes;
        memcpy(into, from, piece * bytes);
        for (size_t i = 0; c->type == CAKE_H5_TEXT && i < piece; i++) {
            const char *text = ((const char *const *)(const void *)from)[i];
            ((char **)(void *)into)[i] = cake_copy(text, strlen(text));
        }
        c->n += piece;
        if (c->n == chunk)
            write_out(c);
        from += piece * bytes;
        n -= piece;
    }
}

static void note(cake_h5 *file, const char *name, hid_t type, const void *value)
{
    errno = 0;
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t id = H5Acreate2(file->id, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    check(file, id >= 0 && H5Awrite(id, type, value) >= 0);
    H5Aclose(id);
    H5Sclose(space);
}

void cake_h5_note_text(cake_h5 *file, const char *name, const char *text)
{
    note(file, name, file->text, &text);
}

void cake_h5_note_long(cake_h5 *file, const char *name, int64_t value)
{
    note(file, name, H5T_NATIVE_INT64, &value);
}

void cake_h5_note_real(cake_h5 *file, const char *name, double value)
{
    note(file, name, H5T_NATIVE_DOUBLE, &value);
}

int cake_h5_finish(cake_h5 *file)
{
    for (size_t i = 0; i < file->n; i++) {
        cake_h5_column *c = file->column[i];
        write_out(c);
        errno = 0;
        check(file, H5Dclose(c->set) >= 0);
        free(c->waits);
        free(c);
    }
    H5Tclose(file->word);
    H5Tclose(file->text);
    errno = 0;
    check(file, H5Fclose(file->id) >= 0);
    int why = file->why;
    free(file->column);
    free(file);
    return why;
}
