/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a descriptor and names below it. Out: what is there, or is made or deleted there.
 * Invariant: every path is walked part by part, with O_NOFOLLOW.
 */
#include "hub/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

enum { MAX_DEPTH = 64, DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

int cake_folder_open(int parent, const char *name, bool make)
{
    if (make && mkdirat(parent, name, 0777) && errno != EEXIST)
        return -1;
    return openat(parent, name, DIRECTORY);
}

int cake_folder_open_parent(int top, const char *path, bool make, const char **last)
{
    char part[NAME_MAX + 1];
    int at = dup(top);
    for (const char *slash; at >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        size_t len = (size_t)(slash - path);
        int next = -1;
        if (len < sizeof part) {
            snprintf(part, sizeof part, "%.*s", (int)len, path);
            next = cake_folder_open(at, part, make);
        } else {
            errno = ENAMETOOLONG;
        }
        int error = errno;
        close(at);
        errno = error;
        at = next;
    }
    *last = path;
    return at;
}

bool cake_folder_has(int parent, const char *name)
{
    struct stat info;
    return !fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW);
}

bool cake_folder_read_link(int parent, const char *name, cake_buf *out)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(parent, name, text, sizeof text);
    if (n <= 0 || (size_t)n == sizeof text || memchr(text, 0, (size_t)n))
        return false;
    cake_buf_add(out, text, (size_t)n);
    return true;
}

bool cake_folder_read(int parent, const char *name, size_t max, cake_buf *out)
{
    struct stat info;
    int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool good = fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode);
    if (good) {
        size_t len = (uint64_t)info.st_size < max ? (size_t)info.st_size : max, from = out->len;
        cake_buf_room(out, from + len);
        good = cake_io_read_at(fd, out->data + from, len, 0);
        if (!good)
            cake_buf_cut(out, from);
    }
    if (fd >= 0)
        close(fd);
    return good;
}

/* A name for something that will be renamed; processes that share the cache must differ in it. */
static void name_temporary(char name[64])
{
    char host[24] = "";
    gethostname(host, sizeof host - 1);
    snprintf(name, 64, ".%s.%ld.tmp", host, (long)getpid());
}

static bool rename_over(int folder, const char *from, const char *to, bool made)
{
    bool good = made && !renameat(folder, from, folder, to);
    int error = errno;
    if (made && !good)
        unlinkat(folder, from, 0);
    errno = error;
    return good;
}

static bool make_link(int folder, const char *name, const char *text)
{
    return !symlinkat(text, folder, name);
}

static bool make_file(int folder, const char *name, const char *text)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    bool good = fd >= 0 && cake_io_write(fd, text, strlen(text)) && !fsync(fd);
    if (fd >= 0 && close(fd))
        good = false;
    return good;
}

/* Makes it under a temporary name, which is then renamed: path never holds half of it. */
static bool replace(int top, const char *path, bool (*make)(int, const char *, const char *),
                    const char *text)
{
    const char *last;
    char temporary[64];
    int folder = cake_folder_open_parent(top, path, true, &last);
    if (folder < 0)
        return false;
    name_temporary(temporary);
    unlinkat(folder, temporary, 0);
    bool good = rename_over(folder, temporary, last, make(folder, temporary, text));
    close(folder);
    return good;
}

bool cake_folder_link(int top, const char *path, const char *text)
{
    return replace(top, path, make_link, text);
}

bool cake_folder_write(int top, const char *path, const char *text)
{
    return replace(top, path, make_file, text);
}

/* Calls `each` for every entry of a directory. False: it cannot be read, or `each` returned false. */
static bool for_each_entry(int parent, const char *name,
                           bool (*each)(int folder, const char *name, int depth, void *own), int depth,
                           void *own)
{
    int fd = depth < MAX_DEPTH ? cake_folder_open(parent, name, false) : -1;
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    bool good = list;
    if (!list && fd >= 0)
        close(fd);
    for (struct dirent *entry; good && (errno = 0, entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            good = each(dirfd(list), entry->d_name, depth, own);
    if (good && errno)
        good = false;
    int error = errno;
    if (list)
        closedir(list);
    errno = error;
    return good;
}

static bool is_directory(int parent, const char *name, struct stat *info)
{
    return !fstatat(parent, name, info, AT_SYMLINK_NOFOLLOW) && S_ISDIR(info->st_mode);
}

static bool remove_entry(int folder, const char *name, int depth, void *own)
{
    struct stat info;
    if (!is_directory(folder, name, &info))
        return !unlinkat(folder, name, 0) || errno == ENOENT;
    return for_each_entry(folder, name, remove_entry, depth + 1, own) &&
           (!unlinkat(folder, name, AT_REMOVEDIR) || errno == ENOENT);
}

bool cake_folder_remove(int parent, const char *name)
{
    return remove_entry(parent, name, 0, NULL);
}

static bool add_bytes(int folder, const char *name, int depth, void *own)
{
    struct stat info;
    int64_t *sum = own;
    if (is_directory(folder, name, &info))
        for_each_entry(folder, name, add_bytes, depth + 1, own);
    else if (S_ISREG(info.st_mode))
        *sum += info.st_size;
    return true;
}

int64_t cake_folder_bytes(int parent, const char *name)
{
    int64_t sum = 0;
    add_bytes(parent, name, 0, &sum);
    return sum;
}
