/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the backends of this build. Out: the GPUs of the first one that has any.
 */
#include "kernels/device.h"

#include <stddef.h>
#include <string.h>

static const cake_backend *backend_of(cake_buf *why)
{
    for (int i = 0; cake_backends[i]; i++)
        if (cake_backends[i]->count(NULL) > 0)
            return cake_backends[i];
    if (why && cake_backends[0])
        cake_backends[0]->count(why);
    else if (why)
        cake_buf_adds(why, "this program was built without CUDA");
    return NULL;
}

bool cake_device_built(void)
{
    return cake_backends[0] != NULL;
}

void cake_device_describe(cake_buf *out)
{
    cake_buf why = {0};
    const cake_backend *backend = backend_of(&why);
    if (backend)
        backend->describe(out);
    else
        cake_buf_addf(out, "none: %s\n", why.data);
    cake_buf_free(&why);
}

int cake_device_count(cake_buf *why)
{
    const cake_backend *backend = backend_of(why);
    return backend ? backend->count(NULL) : 0;
}

bool cake_device_outdated(void)
{
    bool outdated = false;
    for (int i = 0; cake_backends[i]; i++)
        outdated = outdated || cake_backends[i]->outdated();
    return outdated;
}

bool cake_device_card(int i, cake_card *card)
{
    const cake_backend *backend = backend_of(NULL);
    *card = (cake_card){0};
    return backend && backend->card(i, card);
}

int64_t cake_device_memory(const char *bus)
{
    const cake_backend *backend = backend_of(NULL);
    return backend ? backend->memory(bus) : 0;
}

static const cake_backend *opened; /* the backend of the open GPU; NULL: none is open */

cake_gpu_launch cake_gpu_launch_of(const char *name)
{
    static const char *const names[] = {"auto", "graphs", "overlap", "plain", "ordered"};
    int i = CAKE_N_GPU_LAUNCH - 1;
    while (i && strcmp(name, names[i]))
        i--;
    return (cake_gpu_launch)i;
}

cake_err cake_device_open(int i, int number, cake_gpu_launch launch, const cake_kernels **kernels)
{
    cake_buf why = {0};
    const cake_backend *backend = backend_of(&why);
    cake_err err = backend ? backend->open(i, number, launch, kernels)
                           : cake_fail("kernels", "GPU %d cannot be used: %s", number, why.data);
    opened = err ? NULL : backend;
    cake_buf_free(&why);
    return err;
}

void cake_device_close(void)
{
    if (opened)
        opened->close();
    opened = NULL;
}

int64_t cake_device_free(void)
{
    return opened ? opened->free() : 0;
}

double cake_device_joules(void)
{
    return opened ? opened->joules() : -1;
}

double cake_device_rate(cake_peak_kind kind)
{
    return opened ? opened->rate(kind) : 0;
}
