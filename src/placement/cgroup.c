/* SPDX-License-Identifier: Apache-2.0
 *
 * In: /proc/self/cgroup and /proc/self/mountinfo, the limits of each group from this process's own up to the
 * mount. Out: a cake_cgroup. A limit that cannot be read does not count.
 */
#include "placement/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

/* The mount of a controller and this process's group there. */
typedef struct controller_group {
    int version;    /* 0: not found */
    cake_buf mount; /* with the prefix root */
    cake_buf group; /* this process's group, below mount */
} controller_group;

static bool is_listed(const char *list, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list, *end = list + len; at < end; at += strcspn(at, ",") + 1)
        if ((size_t)(end - at) >= n && !strncmp(at, name, n) && (at + n == end || at[n] == ','))
            return true;
    return false;
}

/* A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH, that of version 2 "0::PATH". */
static int find_group(const char *root, const char *controller, cake_buf *path)
{
    cake_buf name = {0};
    char line[4096];
    int version = 0;
    cake_buf_addf(&name, "%s/proc/self/cgroup", root);
    FILE *f = fopen(name.data, "r");
    while (f && version != 1 && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':'), *at = list ? strchr(list + 1, ':') : NULL;
        line[strcspn(line, "\n")] = 0;
        if (!at)
            continue;
        bool own = is_listed(list + 1, (size_t)(at - list) - 1, controller);
        if (!own && at != list + 1)
            continue;
        cake_buf_cut(path, 0);
        cake_buf_adds(path, at + 1);
        version = own ? 1 : 2;
    }
    if (f)
        fclose(f);
    cake_buf_free(&name);
    return version;
}

/* mountinfo writes a space as \040. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        unsigned code = 0;
        if (*from == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
            *to++ = (char)code;
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
}

/* A line of mountinfo: ID PARENT DEVICE ROOT MOUNT ... - TYPE SOURCE OPTIONS. */
static bool read_mount(char *line, int version, const char *controller, char **below, char **mount)
{
    char *field[6] = {0}, *rest = strstr(line, " - ");
    char type[64] = "", options[1024] = "";
    if (!rest || sscanf(rest, " - %63s %*s %1023s", type, options) != 2)
        return false;
    if (strcmp(type, version == 2 ? "cgroup2" : "cgroup") ||
        (version == 1 && !is_listed(options, strlen(options), controller)))
        return false;
    *rest = 0;
    field[0] = strtok(line, " ");
    for (int i = 1; i < 5 && field[i - 1]; i++)
        field[i] = strtok(NULL, " ");
    if (!field[4])
        return false;
    unescape(field[3]);
    unescape(field[4]);
    *below = field[3];
    *mount = field[4];
    return true;
}

/* Appends the group's path below the mount. The mount may show only a part of the hierarchy, as in a
 * container; a group outside of it adds nothing. */
static void add_group(cake_buf *out, const char *path, const char *below)
{
    size_t len = strcmp(below, "/") ? strlen(below) : 0;
    if (!strncmp(path, "/..", 3) || (len && (strncmp(path, below, len) || (path[len] && path[len] != '/'))))
        return;
    cake_buf_adds(out, strcmp(path + len, "/") ? path + len : "");
}

static void find_controller_group(const char *root, const char *controller, controller_group *p)
{
    cake_buf name = {0}, path = {0};
    char line[4096], *below, *mount;
    p->version = find_group(root, controller, &path);
    cake_buf_addf(&name, "%s/proc/self/mountinfo", root);
    FILE *f = p->version ? fopen(name.data, "r") : NULL;
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!(found = read_mount(line, p->version, controller, &below, &mount)))
            continue;
        cake_buf_addf(&p->mount, "%s%s", root, mount);
        cake_buf_adds(&p->group, "");
        add_group(&p->group, path.data, below);
    }
    p->version = found ? p->version : 0;
    if (f)
        fclose(f);
    cake_buf_free(&name);
    cake_buf_free(&path);
}

static int64_t read_number(const controller_group *p, const char *file, const char *key)
{
    cake_buf path = {0};
    cake_buf_addf(&path, "%s%s/%s", p->mount.data, p->group.data, file);
    int64_t found = cake_file_number(path.data, key);
    cake_buf_free(&path);
    return found;
}

/* Lowers *left to the memory left in this group. Page cache counts as free: the kernel drops it when
 * needed. */
static void apply_memory_limit(const controller_group *p, int64_t *left)
{
    static const struct {
        const char *limit, *used, *inactive, *active;
    } files[] = {
        {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ", "total_active_file "},
        {"memory.max", "memory.current", "inactive_file ", "active_file "},
        {"memory.high", "memory.current", "inactive_file ", "active_file "},
    };
    for (int i = p->version == 1 ? 0 : 1; i < (p->version == 1 ? 1 : 3); i++) {
        int64_t limit = read_number(p, files[i].limit, NULL), used = read_number(p, files[i].used, NULL);
        int64_t inactive = read_number(p, "memory.stat", files[i].inactive);
        int64_t active = read_number(p, "memory.stat", files[i].active);
        if (limit < 0 || used < 0)
            continue;
        used -= (inactive > 0 ? inactive : 0) + (active > 0 ? active : 0);
        int64_t here = used < 0 ? limit : limit > used ? limit - used : 0;
        *left = *left < 0 || here < *left ? here : *left;
    }
}

static void apply_cpu_quota(const controller_group *p, double *cpus)
{
    cake_buf path = {0};
    long long quota = -1, period = 0;
    if (p->version == 1) {
        quota = read_number(p, "cpu.cfs_quota_us", NULL);
        period = read_number(p, "cpu.cfs_period_us", NULL);
    } else {
        cake_buf_addf(&path, "%s%s/cpu.max", p->mount.data, p->group.data);
        FILE *f = fopen(path.data, "r");
        if (f && fscanf(f, "%lld %lld", &quota, &period) != 2) /* "max" in place of a number */
            quota = -1;
        if (f)
            fclose(f);
        cake_buf_free(&path);
    }
    double here = quota > 0 && period > 0 ? (double)quota / (double)period : 0;
    if (here > 0 && (*cpus <= 0 || here < *cpus))
        *cpus = here;
}

/* Applies the limits of all groups from this process's own upwards. */
static void apply_limits(const char *root, const char *controller, cake_cgroup *out)
{
    controller_group p = {0};
    find_controller_group(root, controller, &p);
    while (p.version) {
        if (!strcmp(controller, "memory"))
            apply_memory_limit(&p, &out->memory);
        else
            apply_cpu_quota(&p, &out->cpus);
        char *slash = strrchr(p.group.data, '/');
        if (!slash)
            break;
        cake_buf_cut(&p.group, (size_t)(slash - p.group.data));
        cake_buf_adds(&p.group, "");
    }
    cake_buf_free(&p.mount);
    cake_buf_free(&p.group);
}

void cake_cgroup_read(const char *root, cake_cgroup *out)
{
    *out = (cake_cgroup){.memory = -1};
    apply_limits(root, "memory", out);
    apply_limits(root, "cpu", out);
}
