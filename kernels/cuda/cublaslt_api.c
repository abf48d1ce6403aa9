/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the system's libraries. Out: cuBLASLt, opened on first use, so that the program also starts without it.
 */
#include "kernels/cuda/cublaslt_api.h"
#include "config.h"

#include <dlfcn.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define NAME       "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)

const cake_lt *cake_cublaslt_api_find(cake_buf *why)
{
    static cake_lt found;
    void *library = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen(CUDA_LIB_DIR "/" NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        cake_buf_addf(why, "%s", dlerror());
        return NULL;
    }
    const char *lacks = NULL;
#define FIND(name)                                                                                           \
    *(void **)&found.name = dlsym(library, "cublasLt" #name);                                                \
    lacks = found.name ? lacks : "cublasLt" #name;
    CAKE_LT_FUNCTIONS(FIND)
    if (lacks) {
        cake_buf_addf(why, NAME " has no %s", lacks);
        dlclose(library);
        return NULL;
    }
    return &found;
}
