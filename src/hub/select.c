/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the files of a model, and globs. Out: those that are wanted.
 * Invariant: the default takes each weight once, whatever other formats the model has beside safetensors.
 */
#include "hub/select.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

enum { MAX_SHOWN = 12 };

/* Configuration, tokenizer, templates and licence; weights by is_weights. */
static const char *const side_files[] = {"*.json",    "*.txt",     "*.model",  "*.tiktoken", "*.jinja",
                                         "*LICENSE*", "*LICENCE*", "*NOTICE*", "*README.md"};
/* The same model again, for other programs. */
static const char *const duplicates[] = {"original/*", "onnx/*",  "openvino/*", "coreml/*",
                                         "gguf/*",     "metal/*", "*/.*",       ".*"};

static bool matches(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);
    if (n && pattern[n - 1] == '/')
        return !strncmp(name, pattern, n);
    return !fnmatch(pattern, name, FNM_NOESCAPE);
}

static bool matches_any(char *const *patterns, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (matches(patterns[i], name))
            return true;
    return false;
}

static bool is_among(const char *const *patterns, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (matches(patterns[i], name))
            return true;
    return false;
}

static bool is_duplicate(const char *name)
{
    return is_among(duplicates, sizeof duplicates / sizeof *duplicates, name);
}

static bool is_consolidated(const char *name)
{
    return matches("consolidated*", name);
}

static bool is_safetensors(const char *name)
{
    return matches("*.safetensors", name) && !is_duplicate(name);
}

static size_t count(const cake_hub_listing *l, const char *pattern, bool duplicates_too)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += matches(pattern, l->file[i]) && (duplicates_too || !is_duplicate(l->file[i]));
    return n;
}

/* Appends the names that match, one a line, not more than a screen has. */
static void add_names(const cake_hub_listing *l, const char *pattern, cake_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (matches(pattern, l->file[i]) && n++ < MAX_SHOWN)
            cake_buf_addf(out, "%s%s", n > 1 ? ", " : "", l->file[i]);
    if (n > MAX_SHOWN)
        cake_buf_addf(out, ", and %zu more", n - MAX_SHOWN);
}

/* Whether both names are parts of one split GGUF file: "NAME-00001-of-00003.gguf". */
static bool are_one_gguf(const char *a, const char *b)
{
    static const char shape[] = "*-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9].gguf";
    size_t n = strlen(a), tail = strlen("-00001-of-00003.gguf"), of = strlen("-of-00003.gguf");
    return n == strlen(b) && matches(shape, a) && matches(shape, b) && !strncmp(a, b, n - tail) &&
           !strcmp(a + n - of, b + n - of);
}

/* Of a model without safetensors: its one GGUF file, or a message. */
static cake_err choose_gguf(const char *id, cake_hub_listing *l)
{
    const char *first = NULL;
    cake_buf text = {0};
    for (size_t i = 0; i < l->n; i++) {
        if (!matches("*.gguf", l->file[i]))
            continue;
        l->wanted[i] = true;
        if (first && !are_one_gguf(first, l->file[i])) {
            add_names(l, "*.gguf", &text);
            cake_err err =
                cake_fail("hub", "%s has several GGUF files: choose by --include, as --include '%s' (%s)", id,
                          first, text.data);
            cake_buf_free(&text);
            return err;
        }
        first = first ? first : l->file[i];
    }
    if (first)
        return CAKE_OK;
    if (count(l, "*.bin", true) + count(l, "*.pth", true) + count(l, "*.pt", true))
        return cake_fail(
            "hub",
            "%s has weights as Python objects only (.bin, .pth), which may hold code and are not "
            "read; look for a repository with safetensors, or take them by --include '*.bin' and "
            "convert them",
            id);
    return cake_fail("hub", "%s has no weights in safetensors or GGUF; --include '*' takes all of its files",
                     id);
}

static cake_err choose_default(const char *id, cake_hub_listing *l)
{
    size_t n = 0, n_plain = 0;
    for (size_t i = 0; i < l->n; i++) {
        n += is_safetensors(l->file[i]);
        n_plain += is_safetensors(l->file[i]) && !is_consolidated(l->file[i]);
    }
    for (size_t i = 0; i < l->n; i++) {
        const char *name = l->file[i];
        bool again = is_duplicate(name) || (n_plain && is_consolidated(name));
        l->wanted[i] = !again && (is_safetensors(name) ||
                                  is_among(side_files, sizeof side_files / sizeof *side_files, name));
    }
    return n ? CAKE_OK : choose_gguf(id, l);
}

cake_err cake_hub_select(const char *id, const cake_hub_globs *globs, cake_hub_listing *l)
{
    cake_err err = CAKE_OK;
    size_t n = 0;
    for (size_t i = 0; i < l->n && globs->n_include; i++)
        l->wanted[i] = matches_any(globs->include, globs->n_include, l->file[i]);
    if (!globs->n_include)
        err = choose_default(id, l);
    for (size_t i = 0; i < l->n && !err; i++) {
        l->wanted[i] &= !matches_any(globs->exclude, globs->n_exclude, l->file[i]);
        n += l->wanted[i];
    }
    if (!err && !n) {
        cake_buf text = {0};
        add_names(l, "*", &text);
        err = cake_fail("hub", "%s: no file is left by --include and --exclude; it has %s", id, text.data);
        cake_buf_free(&text);
    }
    return err;
}
