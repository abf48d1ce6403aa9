/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: an HDF5 file as prompts and as RESULTS. The bytes determine its datasets: names, types, shapes,
 * chunks, filters, values, links. The file itself is intact, since bugs of the HDF5 library with broken files
 * are not ours to fix. It refers to no other file, because the test would write there.
 */
#include <fcntl.h>
#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "prompt/prompt.h"
#include "record/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of the input. */
typedef struct left {
    const uint8_t *at;
    size_t n;
} left;

static unsigned take(left *l)
{
    if (!l->n)
        return 0;
    l->n--;
    return *l->at++;
}

enum { VALUES = 4096, STRING = 24, ROWS = 1000 };

static hid_t string_of(size_t len, unsigned pad)
{
    static const H5T_str_t pads[] = {H5T_STR_NULLTERM, H5T_STR_NULLPAD, H5T_STR_SPACEPAD};
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, len);
    if (len != H5T_VARIABLE)
        H5Tset_strpad(type, pads[pad % 3]);
    return type;
}

static hid_t type_of(unsigned which)
{
    switch (which % 16) {
    case 0:
        return H5Tcopy(H5T_STD_U8LE);
    case 1:
        return H5Tcopy(H5T_STD_I8LE);
    case 2:
        return H5Tcopy(H5T_STD_I16BE);
    case 3:
        return H5Tcopy(H5T_STD_I32LE);
    case 4:
        return H5Tcopy(H5T_STD_U64LE);
    case 5:
        return H5Tcopy(H5T_IEEE_F32LE);
    case 6:
        return H5Tcopy(H5T_IEEE_F64BE);
    case 7:
        return string_of(H5T_VARIABLE, 0);
    case 8:
        return string_of(1 + which / 16, which);
    case 9:
        return H5Tcopy(H5T_STD_B16LE);
    case 10:
        return H5Tarray_create2(H5T_STD_I32LE, 1, &(hsize_t){3});
    case 11:
        return H5Tvlen_create(H5T_STD_I32LE);
    default:
        return H5Tcopy(H5T_STD_I64LE);
    }
}

/* Values of n elements: numbers are bytes with a sign, but for 0x80, which says that a number follows
 * whole. */
static void write_numbers(hid_t set, size_t n, left *values)
{
    int64_t *number = cake_alloc(n, sizeof *number);
    for (size_t i = 0; i < n; i++) {
        unsigned byte = take(values);
        number[i] = (int8_t)byte;
        for (int k = 0; byte == 0x80 && k < 8; k++)
            number[i] = (int64_t)((uint64_t)number[i] << 8 | take(values));
    }
    H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, number);
    free(number);
}

/* Strings end at 0xFE, and have at most STRING bytes. */
static void write_strings(hid_t set, hid_t type, size_t n, left *values)
{
    size_t bytes = H5Tis_variable_str(type) > 0 ? 0 : H5Tget_size(type);
    char *text = cake_alloc(n, bytes > STRING ? bytes : STRING), **list = cake_alloc(n, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = text + i * (bytes ? bytes : STRING);
        for (size_t k = 0; k + 1 < STRING && (!bytes || k < bytes); k++) {
            unsigned byte = take(values);
            if (byte == 0xFE)
                break;
            list[i][k] = (char)byte;
        }
    }
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes ? (void *)text : (void *)list);
    free(list);
    free(text);
}

/* Chunks may be larger than what they are of, and than memory; *light: not if their values are written.
 * Filters stand in the order in which they pack: scaleoffset takes whole elements only, and the library does
 * not look. */
static hid_t layout_of(int rank, left *l, bool *light)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    unsigned how = take(l), filters = take(l);
    hsize_t chunk[3] = {1 + how, 1 + filters % 4, 1};
    if (how % 8 == 7)
        chunk[0] = (hsize_t)1 << how / 8;
    *light = chunk[0] <= VALUES;
    if (how % 8 == 5)
        H5Pset_layout(list, H5D_COMPACT);
    else if (how % 8 && how % 8 != 6 && rank > 0)
        H5Pset_chunk(list, rank, chunk);
    if ((filters & 24) == 24)
        H5Pset_scaleoffset(list, H5Z_SO_INT, 0);
    if (filters & 1)
        H5Pset_shuffle(list);
    if (filters & 2)
        H5Pset_deflate(list, 1);
    if (filters & 4)
        H5Pset_fletcher32(list);
    return list;
}

static void write_some(hid_t set, hid_t type, size_t n, left *values)
{
    H5T_class_t class = H5Tget_class(type);
    if (class == H5T_STRING)
        write_strings(set, type, n, values);
    else if (class == H5T_INTEGER || class == H5T_FLOAT)
        write_numbers(set, n, values);
}

static void add_set(hid_t file, const char *name, left *l)
{
    static const hsize_t any[3] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
    hid_t type = type_of(take(l)), link = H5Pcreate(H5P_LINK_CREATE);
    unsigned shape = take(l);
    int rank = shape % 8 < 6 ? 1 : shape % 8 == 6 ? 2 : (int)(shape / 8 % 4);
    hsize_t size[3] = {take(l), 1, 1};
    bool light;
    if (rank > 1)
        size[shape / 8 % 2] = take(l) % 8;
    hid_t create = layout_of(rank, l, &light);
    bool grows = H5Pget_layout(create) == H5D_CHUNKED;
    hid_t space = H5Screate_simple(rank, size, grows ? any : NULL);
    size_t n = (size_t)(rank ? size[0] * (rank > 1 ? size[1] : 1) : 1), some = take(l);
    some = some < l->n ? some : l->n;
    left values = {l->at, some};
    H5Pset_create_intermediate_group(link, 1);
    hid_t set = H5Dcreate2(file, name, type, space, link, create, H5P_DEFAULT);
    if (set >= 0 && n && n <= VALUES && light)
        write_some(set, type, n, &values);
    l->at += some;
    l->n -= some;
    if (set >= 0)
        H5Dclose(set);
    H5Sclose(space);
    H5Pclose(create);
    H5Pclose(link);
    H5Tclose(type);
}

static void add(hid_t file, left *l)
{
    static const char *const names[] = {"prompt",
                                        "prompt/data",
                                        "prompt/offsets",
                                        "prompt_tokens/data",
                                        "prompt_tokens/offsets",
                                        "tokens/data",
                                        "tokens/offsets",
                                        "text/data",
                                        "text/offsets",
                                        "logprobs/data",
                                        "logprobs/offsets",
                                        "lines/data",
                                        "lines/offsets",
                                        "requests/first_choice",
                                        "requests/choices",
                                        "requests/id",
                                        "id",
                                        "tokens"};
    unsigned what = take(l);
    const char *name = names[what % 32 % (sizeof names / sizeof *names)];
    if (what < 224)
        add_set(file, name, l);
    else if (what < 232)
        H5Lcreate_soft("/prompt", file, name, H5P_DEFAULT, H5P_DEFAULT);
    else if (what < 240)
        H5Lcreate_hard(file, "/", file, name, H5P_DEFAULT, H5P_DEFAULT);
    else {
        hid_t type = H5Tcopy(H5T_STD_I32LE);
        H5Tcommit2(file, name, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Tclose(type);
    }
}

/* A file at path of what the bytes say. */
static void make(left *l, const char *path)
{
    enum { SETS = 24 };
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, false);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    hid_t file = H5Fcreate("fuzz", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    for (int i = 0; i < SETS && l->n; i++)
        add(file, l);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    ssize_t n = H5Fget_file_image(file, NULL, 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (n <= 0 || fd < 0)
        abort();
    char *image = cake_alloc((size_t)n, 1);
    if (H5Fget_file_image(file, image, (size_t)n) != n || write(fd, image, (size_t)n) != n)
        abort();
    free(image);
    close(fd);
    H5Fclose(file);
}

static void read_prompts(const char *path, unsigned how, const cake_buf *said)
{
    static const cake_names names[] = {
        {NULL, NULL}, {"prompt_tokens", NULL}, {"text", "choices/request"}, {NULL, "id"}};
    cake_prompt *prompt = NULL;
    cake_request r;
    cake_err err = cake_prompt_open(path, CAKE_PROMPT_HDF5, &prompt);
    if (!err)
        err = cake_prompt_name(prompt, &names[how % 4]);
    for (int64_t i = 0; !err && i < ROWS && !(err = cake_prompt_next(prompt, &r)); i++) {
        CAKE_ASSERT(r.order == i && r.index == i);
        CAKE_ASSERT(r.err ? r.err == CAKE_ERR_REQUEST && r.fault.message[0]
                          : (r.text != NULL) + (r.ids.len > 0) == 1);
        cake_request_free(&r);
    }
    CAKE_ASSERT(!err || err == CAKE_END || said->len > 0);
    cake_prompt_close(prompt);
}

static void read_results(const char *path, int64_t lines, const cake_buf *said)
{
    static cake_unpack_to to = {.fd = -1};
    int64_t len = -1;
    if (to.fd < 0 && cake_unpack_open(NULL, &to))
        abort();
    cake_err err = cake_unpack(path, lines, &to, &len);
    CAKE_ASSERT(err ? said->len > 0 : len >= 0 && lseek(to.fd, 0, SEEK_END) == (off_t)len);
    if (ftruncate(to.fd, 0))
        abort();
}

static char folder[] = "/tmp/cake-fuzz-XXXXXX";

static void remove_folder(void)
{
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cake_buf said;
    static bool begun;
    left l = {data, size};
    char path[64];
    unsigned how = take(&l);
    if (!begun && (!mkdtemp(folder) || atexit(remove_folder)))
        abort();
    begun = true;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    snprintf(path, sizeof path, "%s/file.h5", folder);
    make(&l, path);
    cake_log_capture(&said);
    cake_buf_cut(&said, 0);
    read_prompts(path, how, &said);
    cake_buf_cut(&said, 0);
    read_results(path, how / 4 % 8, &said);
    cake_log_capture(NULL);
    CAKE_ASSERT(!said.data || !strstr(said.data, "cannot be read as HDF5")); /* or nothing is tested */
    unlink(path);
    return 0;
}
