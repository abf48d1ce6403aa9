/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of models, files and revisions on a hub, and of their places in the cache. Everything that comes from
 * a server or a user and becomes a part of a path is checked here first.
 */
#ifndef CAKE_HUB_NAME_H
#define CAKE_HUB_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum {
    CAKE_HUB_ID = 200,
    CAKE_HUB_REVISION = 200,
    CAKE_HUB_COMMIT = 41,
    CAKE_HUB_FOLDER = 216,
    CAKE_HUB_ETAG = 130
};

/* "owner/name@revision" */
typedef struct cake_hub_name {
    char id[CAKE_HUB_ID];             /* "owner/name" */
    char revision[CAKE_HUB_REVISION]; /* branch, tag or commit; "main" if none was given */
    bool has_revision;                /* one was given */
} cake_hub_name;

/* False: it is no such name. */
bool cake_hub_name_read(const char *text, cake_hub_name *out);
/* The model's folder in the cache: "models--owner--name". */
void cake_hub_name_folder(const char *id, char folder[CAKE_HUB_FOLDER]);
/* The name of a folder in the cache; it may lack an owner. False: it is no model's. */
bool cake_hub_name_of_folder(const char *folder, char id[CAKE_HUB_ID]);
bool cake_hub_is_commit(const char *text); /* 40 hexadecimal digits */
bool cake_hub_is_hex(const char *text, size_t n);
/* Whether a server's tag may be the name of a file in blobs/. */
bool cake_hub_is_etag(const char *text);
/* NULL, or why the file of a model must not have this name ("leads out of the model"). */
const char *cake_hub_bad_file(const char *name, size_t len);

#endif
