/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an HDF5 file. Out: columns.
 * Invariant: of each column only a window is held in memory; the file is not trusted: types and sizes are
 * checked before values are read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/h5_parts.h"

enum { WINDOW = 1 << 16, TEXTS = 16 }; /* values; strings of any length */
static const hsize_t longest = (hsize_t)1 << 40, largest_chunk = (hsize_t)64 << 20;

static herr_t keep_first(unsigned n, const H5E_error2_t *error, void *out)
{
    if (n == 0)
        cake_buf_adds(out, error->desc ? error->desc : "");
    return 0;
}

static cake_err fail(cake_h5 *file, const char *object, const char *what)
{
    cake_buf why = {0};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &why);
    if (why.len) /* a newer library may accept it */
        cake_buf_addf(&why, " (HDF5 %d.%d.%d)", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
    cake_err err = cake_fail(file->topic, "%s: %s%s%s%s%s", file->path, object, object[0] ? ": " : "", what,
                             why.len ? ": " : "", why.len ? why.data : "");
    H5Eclear2(H5E_DEFAULT);
    cake_buf_free(&why);
    return err;
}

cake_err cake_h5_open(const char *topic, const char *path, cake_h5 **out)
{
    cake_err err = cake_file_check(topic, path);
    if (err)
        return err;
    cake_h5_begin();
    cake_h5 *file = cake_alloc(1, sizeof *file);
    *file = (cake_h5){.topic = topic, .path = cake_copy(path, strlen(path)), .word = -1, .text = -1};
    hid_t list = cake_h5_access_list();
    file->id = H5Fopen(path, H5F_ACC_RDONLY, list);
    err = file->id < 0 ? fail(file, "", "cannot be read as HDF5") : CAKE_OK;
    H5Pclose(list);
    if (err) {
        cake_h5_close(file);
        return err;
    }
    *out = file;
    return CAKE_OK;
}

/* By opening the object, which works in all versions of HDF5: H5Oget_info got other arguments in 1.12. */
static H5I_type_t type_of(cake_h5 *file, const char *path)
{
    hid_t object = H5Oopen(file->id, path, H5P_DEFAULT);
    if (object < 0)
        return H5I_BADID;
    H5I_type_t type = H5Iget_type(object);
    H5Oclose(object);
    return type;
}

/* Links to other files and within this one are not followed: each step of the path must be the object
 * itself. */
cake_h5_kind cake_h5_look(cake_h5 *file, const char *path)
{
    char *part = cake_copy(path, strlen(path));
    cake_h5_kind kind = CAKE_H5_GROUP;
    H5I_type_t type;
    for (size_t i = path[0] == '/'; kind == CAKE_H5_GROUP; i++) {
        H5L_info_t link;
        i += strcspn(path + i, "/");
        part[i] = 0;
        if (H5Lexists(file->id, part, H5P_DEFAULT) <= 0)
            kind = CAKE_H5_ABSENT;
        else if (H5Lget_info(file->id, part, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
            kind = CAKE_H5_OTHER;
        else if ((type = type_of(file, part)) == H5I_BADID)
            kind = CAKE_H5_BROKEN;
        else if (type != H5I_GROUP)
            kind = path[i] || type != H5I_DATASET ? CAKE_H5_OTHER : CAKE_H5_COLUMN;
        part[i] = path[i];
        if (!path[i])
            break;
    }
    free(part);
    H5Eclear2(H5E_DEFAULT);
    return kind;
}

static cake_err check_space(cake_h5_column *c)
{
    hid_t space = H5Dget_space(c->set);
    c->rank = H5Sget_simple_extent_ndims(space);
    bool good = (c->rank == 1 || c->rank == 2) && H5Sget_simple_extent_dims(space, c->size, NULL) >= 0;
    H5Sclose(space);
    if (good && c->width) {
        good = c->rank == 2 && c->size[1] >= 1 && c->size[1] <= CAKE_H5_WIDEST;
        c->width = good ? (size_t)c->size[1] : 0;
    } else if (good && c->rank == 2) { /* a row or a column of a matrix */
        good = c->size[0] == 1 || c->size[1] == 1;
        c->along = c->size[0] == 1;
    }
    if (!good)
        return fail(c->file, c->name,
                    c->width ? "is no matrix; expected rows of values"
                             : "is not of one dimension; expected a list of values");
    if (c->size[c->along] > longest)
        return fail(c->file, c->name, "has an impossible number of values");
    return CAKE_OK;
}

static cake_err check_filters(cake_h5_column *c, hid_t list)
{
    int n = H5Pget_nfilters(list);
    for (int i = 0; i < n; i++) {
        unsigned flags, config;
        size_t none = 0;
        char name[64] = "", text[256];
        H5Z_filter_t filter =
            H5Pget_filter2(list, (unsigned)i, &flags, &none, NULL, sizeof name, name, &config);
        if (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_FLETCHER32)
            continue;
        snprintf(text, sizeof text,
                 "is packed by filter %d%s%.63s, which is not known here; "
                 "expected deflate (gzip), shuffle or fletcher32: h5repack -f GZIP=4 changes it",
                 (int)filter, name[0] ? ", " : "", name);
        return fail(c->file, c->name, text);
    }
    return CAKE_OK;
}

/* While the values of a column are read in order each chunk is unpacked once, so room for one in the cache is
 * enough. */
static cake_err widen(cake_h5_column *c, size_t chunk)
{
    enum { USUAL = 1 << 20 };
    if (chunk <= USUAL)
        return CAKE_OK;
    hid_t list = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(list, 521, chunk, 1);
    H5Dclose(c->set);
    c->set = H5Dopen2(c->file->id, c->name, list);
    H5Pclose(list);
    return c->set < 0 ? fail(c->file, c->name, "cannot be opened") : CAKE_OK;
}

static cake_err check_layout(cake_h5_column *c)
{
    hid_t list = H5Dget_create_plist(c->set);
    H5D_layout_t layout = H5Pget_layout(list);
    cake_err err = CAKE_OK;
    hsize_t chunk[2] = {1, 1};
    if (layout != H5D_CHUNKED && layout != H5D_CONTIGUOUS && layout != H5D_COMPACT)
        err = fail(c->file, c->name, "lies in other files (a virtual dataset); expected its values here");
    else if (H5Pget_external_count(list) != 0)
        err = fail(c->file, c->name, "lies in other files (external storage); expected its values here");
    else if (layout == H5D_CHUNKED && H5Pget_chunk(list, 2, chunk) != c->rank)
        err = fail(c->file, c->name, "has broken chunks");
    else if (layout == H5D_CHUNKED && (!chunk[0] || !chunk[1] || chunk[0] > largest_chunk / chunk[1] ||
                                       chunk[0] * chunk[1] > largest_chunk / c->bytes))
        err = fail(c->file, c->name, "has chunks of more than 64 MiB: h5repack -l CHUNK=65536 changes them");
    else
        err = check_filters(c, list);
    H5Pclose(list);
    return err ? err : widen(c, (size_t)(chunk[0] * chunk[1]) * c->bytes);
}

/* Deflate expands a byte to at most 1,032 (RFC 1951: 258 values in two bits), so the size of the file bounds
 * the values in it. Otherwise a few bytes could claim an endless list, whose missing values would all be read
 * as 0. */
static cake_err check_written(cake_h5_column *c)
{
    const hsize_t few = 1 << 20, n = c->size[c->along] * (c->width ? c->width : 1),
                  stored = H5Dget_storage_size(c->set);
    if (n <= few || n <= stored / c->bytes || n / 1032 <= stored / c->bytes)
        return CAKE_OK;
    cake_buf text = {0};
    cake_buf_addf(&text, "has %llu values, of which no more than %llu bytes were ever written",
                  (unsigned long long)n, (unsigned long long)stored);
    cake_err err = fail(c->file, c->name, text.data);
    cake_buf_free(&text);
    return err;
}

static cake_err check_type(cake_h5_column *c, bool real)
{
    hid_t type = H5Dget_type(c->set);
    H5T_class_t class = H5Tget_class(type);
    c->bytes = H5Tget_size(type);
    c->type = real                  ? CAKE_H5_REAL
              : class == H5T_STRING ? CAKE_H5_TEXT
              : c->bytes == 1       ? CAKE_H5_BYTE
                                    : CAKE_H5_LONG;
    bool any = class == H5T_STRING && H5Tis_variable_str(type) > 0;
    c->fixed = class == H5T_STRING && !any ? c->bytes : 0;
    c->padded = c->fixed && H5Tget_strpad(type) == H5T_STR_SPACEPAD;
    c->sign = class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
    if (c->type == CAKE_H5_REAL ? class != H5T_FLOAT : class != H5T_STRING && class != H5T_INTEGER)
        return H5Tclose(type),
               fail(c->file, c->name,
                    c->type == CAKE_H5_REAL ? "holds no floating-point numbers"
                    : class == H5T_FLOAT    ? "holds floating-point numbers; expected integers or strings"
                                            : "holds neither integers nor strings");
    if (class == H5T_INTEGER && c->bytes > sizeof(int64_t))
        return H5Tclose(type), fail(c->file, c->name, "holds integers of more than 64 bits");
    if (!c->bytes || c->bytes > largest_chunk)
        return H5Tclose(type), fail(c->file, c->name, "holds strings of more than 64 MiB");
    c->memory = c->type == CAKE_H5_TEXT
                    ? H5Tcopy(type)
                    : H5Tcopy(c->type == CAKE_H5_REAL   ? H5T_NATIVE_FLOAT
                              : c->type != CAKE_H5_BYTE ? c->sign ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64
                              : c->sign ? H5T_NATIVE_INT8 /* text is the same bytes either way */
                                        : H5T_NATIVE_UINT8);
    H5Tclose(type);
    return CAKE_OK;
}

/* width 0: a column; else a matrix. */
static cake_err get(cake_h5 *file, const char *path, bool real, size_t width, cake_h5_column **out)
{
    cake_h5_column *c = cake_alloc(1, sizeof *c);
    *c = (cake_h5_column){
        .width = width, .file = file, .name = cake_copy(path, strlen(path)), .memory = -1, .set = -1};
    file->column = cake_grow(file->column, file->n + 1, sizeof(cake_h5_column *));
    file->column[file->n++] = c;
    cake_h5_kind kind = cake_h5_look(file, path);
    if (kind != CAKE_H5_COLUMN && kind != CAKE_H5_BROKEN) /* cake_h5_get logs the reason */
        return fail(file, path,
                    kind == CAKE_H5_ABSENT  ? "is absent"
                    : kind == CAKE_H5_GROUP ? "is a group; expected a dataset"
                                            : "is a link, or no dataset; expected the values themselves");
    c->set = H5Dopen2(file->id, path, H5P_DEFAULT);
    if (c->set < 0)
        return fail(file, path, "cannot be opened");
    cake_err err = check_space(c);
    if (!err)
        err = check_type(c, real);
    if (!err)
        err = check_layout(c);
    if (!err)
        err = check_written(c);
    if (!err)
        *out = c;
    return err;
}

cake_err cake_h5_get(cake_h5 *file, const char *path, cake_h5_column **out)
{
    return get(file, path, false, 0, out);
}

cake_err cake_h5_get_real(cake_h5 *file, const char *path, cake_h5_column **out)
{
    return get(file, path, true, 0, out);
}

cake_err cake_h5_get_rows(cake_h5 *file, const char *path, size_t *width, cake_h5_column **out)
{
    cake_err err = get(file, path, true, 1, out);
    if (!err)
        *width = (*out)->width;
    return err;
}

cake_err cake_h5_read_row(cake_h5_column *c, int64_t row, float *into)
{
    CAKE_ASSERT(c->width && row >= 0 && row < cake_h5_length(c));
    const hsize_t begin[2] = {(hsize_t)row, 0}, count[2] = {1, c->width};
    hid_t in_file = H5Dget_space(c->set), here = H5Screate_simple(2, count, NULL);
    bool good = H5Sselect_hyperslab(in_file, H5S_SELECT_SET, begin, NULL, count, NULL) >= 0 &&
                H5Dread(c->set, c->memory, here, in_file, H5P_DEFAULT, into) >= 0;
    H5Sclose(here);
    H5Sclose(in_file);
    return good ? CAKE_OK : fail(c->file, c->name, "cannot be read");
}

cake_h5_type cake_h5_type_of(const cake_h5_column *column)
{
    return column->type;
}

bool cake_h5_signed(const cake_h5_column *column)
{
    return column->sign;
}

int64_t cake_h5_length(const cake_h5_column *c)
{
    return (int64_t)c->size[c->along];
}

const char *cake_h5_name(const cake_h5_column *column)
{
    return column->name;
}

/* Refuses overlong strings before they take memory, since a file may lie about their length. Strings that the
 * library read before one of them are lost to it, so this file frees them. */
static void *take(size_t size, void *column)
{
    cake_h5_column *c = column;
    if (size > (size_t)largest_chunk + 1) {
        c->excess = size - 1;
        return NULL;
    }
    c->taken = cake_grow(c->taken, c->n_taken + 1, sizeof *c->taken);
    return c->taken[c->n_taken++] = malloc(size);
}

static void give(void *memory, void *column)
{
    cake_h5_column *c = column;
    for (size_t i = 0; i < c->n_taken; i++)
        c->taken[i] = c->taken[i] == memory ? NULL : c->taken[i];
    free(memory);
}

static bool try_range(cake_h5_column *c, hsize_t from, hsize_t n, void *into)
{
    hsize_t begin[2] = {0}, count[2] = {1, 1};
    begin[c->along] = from;
    count[c->along] = n;
    c->excess = c->n_taken = 0;
    hid_t in_file = H5Dget_space(c->set), here = H5Screate_simple(1, &n, NULL),
          list = H5Pcreate(H5P_DATASET_XFER);
    bool good = H5Sselect_hyperslab(in_file, H5S_SELECT_SET, begin, NULL, count, NULL) >= 0 &&
                H5Pset_vlen_mem_manager(list, take, c, give, c) >= 0 &&
                H5Dread(c->set, c->memory, here, in_file, list, into) >= 0;
    for (size_t i = 0; !good && i < c->n_taken; i++)
        free(c->taken[i]);
    H5Pclose(list);
    H5Sclose(here);
    H5Sclose(in_file);
    return good;
}

static void drop_texts(cake_h5_column *c)
{
    for (size_t i = 0; c->type == CAKE_H5_TEXT && !c->fixed && i < c->n; i++)
        free(((char **)(void *)c->waits)[i]);
    c->n = 0;
}

/* Moves the window so that it holds the value at `row`. */
static cake_err move_window(cake_h5_column *c, hsize_t row, size_t bytes)
{
    hsize_t max = c->type != CAKE_H5_TEXT ? WINDOW
                  : c->fixed              ? WINDOW / 64
                                          : TEXTS,
            left = c->size[c->along] - row;
    if (c->fixed && max > largest_chunk / c->fixed)
        max = 1;
    hsize_t n = left < max ? left : max;
    if (c->n && row >= c->done && row < c->done + c->n)
        return CAKE_OK;
    drop_texts(c);
    if (!c->waits)
        c->waits = cake_alloc((size_t)max, bytes);
    bool good = try_range(c, row, n, c->waits);
    if (!good && c->excess && n > 1) /* a string is too long: reading one by one shows which */
        good = try_range(c, row, n = 1, c->waits);
    if (!good && c->excess)
        *(char **)(void *)c->waits = NULL;
    c->done = row;
    c->n = good || c->excess ? (size_t)n : 0;
    return c->n ? CAKE_OK : fail(c->file, c->name, "cannot be read");
}

cake_err cake_h5_read(cake_h5_column *c, int64_t from, size_t n, void *into)
{
    size_t bytes = cake_h5_sizes[c->type].bytes;
    CAKE_ASSERT(c->type != CAKE_H5_TEXT && from >= 0 && from <= cake_h5_length(c) &&
                n <= (size_t)(cake_h5_length(c) - from));
    if (n > WINDOW)
        return try_range(c, (hsize_t)from, n, into) ? CAKE_OK : fail(c->file, c->name, "cannot be read");
    for (char *to = into; n > 0;) {
        cake_err err = move_window(c, (hsize_t)from, bytes);
        if (err)
            return err;
        size_t at = (size_t)((hsize_t)from - c->done), piece = c->n - at < n ? c->n - at : n;
        memcpy(to, c->waits + at * bytes, piece * bytes);
        to += piece * bytes;
        from += (int64_t)piece;
        n -= piece;
    }
    return CAKE_OK;
}

cake_err cake_h5_read_text(cake_h5_column *c, int64_t row, size_t max, size_t *len, cake_buf *out)
{
    CAKE_ASSERT(c->type == CAKE_H5_TEXT && row >= 0 && row < cake_h5_length(c));
    cake_err err = move_window(c, (hsize_t)row, c->fixed ? c->fixed : sizeof(char *));
    if (err)
        return err;
    size_t at = (size_t)((hsize_t)row - c->done);
    const char *text = c->fixed ? c->waits + at * c->fixed : ((char **)(void *)c->waits)[at];
    *len = !text ? c->excess : c->fixed ? strnlen(text, c->fixed) : strlen(text);
    while (c->padded && *len && text[*len - 1] == ' ')
        --*len;
    if (*len <= max)
        cake_buf_add(out, text ? text : "", *len);
    return CAKE_OK;
}

void cake_h5_close(cake_h5 *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < file->n; i++) {
        cake_h5_column *c = file->column[i];
        drop_texts(c);
        if (c->memory >= 0)
            H5Tclose(c->memory);
        if (c->set >= 0)
            H5Dclose(c->set);
        free(c->waits);
        free(c->taken);
        free(c->name);
        free(c);
    }
    if (file->id >= 0)
        H5Fclose(file->id);
    free(file->column);
    free(file->path);
    free(file);
}
