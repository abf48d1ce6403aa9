/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns enter, an HDF5 file leaves, and the other way round. Called by record and prompt. Invariant: what
 * is held of a column is less than a chunk that is not written yet, so chunks are deflated once each, or a
 * window of what is read; a file that is read is never believed: what its values are is checked before they
 * are asked for.
 */
#include "base/h5.h"

#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define DEFLATE 4

struct cake_h5_column {
    cake_h5 *file;
    cake_h5_type type;
    hid_t set;    /* -1: it could not be made */
    char *waits;  /* [chunk] values: written, those that wait for it; read, a window of the file */
    size_t n;     /* values in waits */
    hsize_t done; /* values of the column before those in waits */

    /* Read only. */
    char *name; /* owned */
    hid_t memory;
    int rank, along; /* dimensions, and the one that is not 1 */
    hsize_t size[2];
    size_t bytes, fixed; /* of a value in the file; of a string, if all have the same, else 0 */
    bool padded;         /* by blanks */
    bool sign;           /* numbers below 0 are possible */
    size_t excess; /* bytes of a string of any length that was refused, and is all of the window; 0: none */
    void **taken;  /* [n_taken] memory that the library was given since a read began, or NULL */
    size_t n_taken;
};

struct cake_h5 {
    hid_t id, word, text;    /* the file; types */
    cake_h5_column **column; /* [n] */
    size_t n;
    int why;           /* written: errno of the first failure */
    char *path;        /* read; owned */
    const char *topic; /* borrowed */
};

/* Elements of a chunk: some 128 KiB, large enough to deflate well. */
static const struct {
    size_t bytes, chunk;
} types[] = {[CAKE_H5_BYTE] = {1, 1 << 18},
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

/* Messages of the library's own go nowhere, and it is not asked to close at exit what it could not close
 * before. */
static void begin(void)
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

/* File systems of clusters often have no locks, and our own lock file stands beside the file. */
static hid_t access_list(void)
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
    begin();
    errno = 0;
    hid_t list = access_list();
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
    switch (type) {
    case CAKE_H5_BYTE:
        return H5T_STD_U8LE;
    case CAKE_H5_INT:
        return H5T_STD_I32LE;
    case CAKE_H5_LONG:
        return H5T_STD_I64LE;
    case CAKE_H5_REAL:
        return H5T_IEEE_F32LE;
    case CAKE_H5_WORD:
        return file->word;
    default:
        return file->text;
    }
}

static hid_t in_memory(const cake_h5 *file, cake_h5_type type)
{
    switch (type) {
    case CAKE_H5_BYTE:
        return H5T_NATIVE_UINT8;
    case CAKE_H5_INT:
        return H5T_NATIVE_INT32;
    case CAKE_H5_LONG:
        return H5T_NATIVE_INT64;
    case CAKE_H5_REAL:
        return H5T_NATIVE_FLOAT;
    default:
        return stored(file, type);
    }
}

cake_h5_column *cake_h5_add(cake_h5 *file, const char *path, cake_h5_type type)
{
    hsize_t none = 0, any = H5S_UNLIMITED, chunk = types[type].chunk;
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

static void write_out(cake_h5_column *c)
{
    hsize_t from = c->done, n = c->n, all = from + n;
    bool good = !c->file->why && c->n;
    errno = 0;
    if (good && (good = H5Dset_extent(c->set, &all) >= 0)) {
        hid_t there = H5Dget_space(c->set), here = H5Screate_simple(1, &n, NULL);
        good = H5Sselect_hyperslab(there, H5S_SELECT_SET, &from, NULL, &n, NULL) >= 0 &&
               H5Dwrite(c->set, in_memory(c->file, c->type), here, there, H5P_DEFAULT, c->waits) >= 0;
        H5Sclose(here);
        H5Sclose(there);
    }
    check(c->file, good || !c->n);
    for (size_t i = 0; c->type == CAKE_H5_TEXT && i < c->n; i++)
        free(((char **)(void *)c->waits)[i]);
    c->done = all;
    c->n = 0;
}

void cake_h5_put(cake_h5_column *c, const void *values, size_t n)
{
    size_t bytes = types[c->type].bytes, chunk = types[c->type].chunk;
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

/* ---- reading */

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
    begin();
    cake_h5 *file = cake_alloc(1, sizeof *file);
    *file = (cake_h5){.topic = topic, .path = cake_copy(path, strlen(path)), .word = -1, .text = -1};
    hid_t list = access_list();
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

/* By opening it, which all versions of HDF5 do alike: H5Oget_info has other arguments since 1.12. */
static H5I_type_t type_of(cake_h5 *file, const char *path)
{
    hid_t object = H5Oopen(file->id, path, H5P_DEFAULT);
    if (object < 0)
        return H5I_BADID;
    H5I_type_t type = H5Iget_type(object);
    H5Oclose(object);
    return type;
}

/* Links to other files and around in this one are not followed: each step of the path is the object
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
        else if ((type = type_of(file, part)) != H5I_GROUP)
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
    if (good && c->rank == 2) /* a row or a column of a matrix */
        good = c->size[0] == 1 || c->size[1] == 1;
    if (!good)
        return fail(c->file, c->name, "is not of one dimension; expected a list of values");
    c->along = c->rank == 2 && c->size[0] == 1;
    if (c->size[c->along] > longest)
        return fail(c->file, c->name, "has more values than can be");
    return CAKE_OK;
}

static cake_err check_filters(cake_h5_column *c, hid_t list)
{
    int n = H5Pget_nfilters(list);
    for (int i = 0; i < n; i++) {
        unsigned flags, config;
        size_t none = 0;
        H5Z_filter_t filter = H5Pget_filter2(list, (unsigned)i, &flags, &none, NULL, 0, NULL, &config);
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
            return fail(c->file, c->name,
                        "is packed by a filter that is not known here; "
                        "expected deflate (gzip), shuffle or fletcher32: h5repack -f GZIP=4 changes it");
    }
    return CAKE_OK;
}

/* A chunk is unpacked once while the values of a column are read in order, so one has room in the cache. */
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

/* Deflate makes a byte of 1,032 at most (RFC 1951: 258 values in two bits), so what a file says to hold is
 * bounded by what it has: a few bytes can say of a list that it is endless, and its values are all read as
 * nothing. */
static cake_err check_written(cake_h5_column *c)
{
    const hsize_t few = 1 << 20, n = c->size[c->along], stored = H5Dget_storage_size(c->set);
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
    if (!c->bytes || c->bytes > largest_chunk)
        return H5Tclose(type), fail(c->file, c->name, "holds strings of more than 64 MiB");
    c->memory = c->type == CAKE_H5_TEXT
                    ? H5Tcopy(type)
                    : H5Tcopy(c->type == CAKE_H5_REAL   ? H5T_NATIVE_FLOAT
                              : c->type != CAKE_H5_BYTE ? H5T_NATIVE_INT64
                              : c->sign ? H5T_NATIVE_INT8 /* text is the same bytes either way */
                                        : H5T_NATIVE_UINT8);
    H5Tclose(type);
    return CAKE_OK;
}

static cake_err get(cake_h5 *file, const char *path, bool real, cake_h5_column **out)
{
    cake_h5_column *c = cake_alloc(1, sizeof *c);
    *c = (cake_h5_column){.file = file, .name = cake_copy(path, strlen(path)), .memory = -1, .set = -1};
    file->column = cake_grow(file->column, file->n + 1, sizeof(cake_h5_column *));
    file->column[file->n++] = c;
    cake_h5_kind kind = cake_h5_look(file, path);
    if (kind != CAKE_H5_COLUMN)
        return fail(file, path,
                    kind == CAKE_H5_ABSENT  ? "is not there"
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
    return get(file, path, false, out);
}

cake_err cake_h5_get_real(cake_h5 *file, const char *path, cake_h5_column **out)
{
    return get(file, path, true, out);
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

/* Strings that are too long, in a file that may lie about their length, do not take the memory. What the
 * library was given for others before it came to one of them is lost to it. */
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
    hid_t there = H5Dget_space(c->set), here = H5Screate_simple(1, &n, NULL),
          list = H5Pcreate(H5P_DATASET_XFER);
    bool good = H5Sselect_hyperslab(there, H5S_SELECT_SET, begin, NULL, count, NULL) >= 0 &&
                H5Pset_vlen_mem_manager(list, take, c, give, c) >= 0 &&
                H5Dread(c->set, c->memory, here, there, list, into) >= 0;
    for (size_t i = 0; !good && i < c->n_taken; i++)
        free(c->taken[i]);
    H5Pclose(list);
    H5Sclose(here);
    H5Sclose(there);
    return good;
}

static cake_err read_range(cake_h5_column *c, hsize_t from, hsize_t n, void *into)
{
    return try_range(c, from, n, into) ? CAKE_OK : fail(c->file, c->name, "cannot be read");
}

static void drop_texts(cake_h5_column *c)
{
    for (size_t i = 0; c->type == CAKE_H5_TEXT && !c->fixed && i < c->n; i++)
        free(((char **)(void *)c->waits)[i]);
    c->n = 0;
}

/* The window holds the value at `row` afterwards. */
static cake_err move_window(cake_h5_column *c, hsize_t row, size_t bytes)
{
    hsize_t most = c->type != CAKE_H5_TEXT ? WINDOW
                   : c->fixed              ? WINDOW / 64
                                           : TEXTS,
            left = c->size[c->along] - row;
    if (c->fixed && most > largest_chunk / c->fixed)
        most = 1;
    hsize_t n = left < most ? left : most;
    if (c->n && row >= c->done && row < c->done + c->n)
        return CAKE_OK;
    drop_texts(c);
    if (!c->waits)
        c->waits = cake_alloc((size_t)most, bytes);
    bool good = try_range(c, row, n, c->waits);
    if (!good && c->excess && n > 1) /* one of them is too long: which, shows when it stands alone */
        good = try_range(c, row, n = 1, c->waits);
    if (!good && c->excess)
        *(char **)(void *)c->waits = NULL;
    c->done = row;
    c->n = good || c->excess ? (size_t)n : 0;
    return c->n ? CAKE_OK : fail(c->file, c->name, "cannot be read");
}

cake_err cake_h5_read(cake_h5_column *c, int64_t from, size_t n, void *into)
{
    size_t bytes = types[c->type].bytes;
    CAKE_ASSERT(c->type != CAKE_H5_TEXT && from >= 0 && from <= cake_h5_length(c) &&
                n <= (size_t)(cake_h5_length(c) - from));
    if (n > WINDOW)
        return read_range(c, (hsize_t)from, n, into);
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

cake_err cake_h5_read_text(cake_h5_column *c, int64_t row, size_t most, size_t *len, cake_buf *out)
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
    if (*len <= most)
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
