/* SPDX-License-Identifier: Apache-2.0
 *
 * In: macros from configure. Out: text for --version, info, reports and journals. No other file prints these
 * macros.
 */
#include "base/version.h"

#include "config.h"
#include "git-version.h" /* made by the Makefile: CAKE_GIT_VERSION, "" where it is unknown */

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#ifdef HAVE_X86_KERNELS
#define KERNELS "ref, AVX2, AVX-512, AVX512-BF16; int8 with and without VNNI"
#elif defined(HAVE_ARM_KERNELS)
#ifdef HAVE_SVE_KERNELS
#define KERNELS "ref, NEON, SVE of 256 and 512 bits, NEON-BF16; int8 with and without SDOT, and with SMMLA"
#else
#define KERNELS "ref, NEON, NEON-BF16; int8 with and without SDOT, and with SMMLA"
#endif
#else
#define KERNELS "ref"
#endif

#ifdef HAVE_CUDA
#define CUDA_TEXT CUDA_VERSION_TEXT ", code for GPUs of capability" CUDA_ARCHS_TEXT
#else
#define CUDA_TEXT "not built in: this program computes on CPUs only"
#endif

#ifdef HAVE_NCCL
#define NCCL_TEXT NCCL_VERSION_TEXT " at build time"
#else
#define NCCL_TEXT "not built in: waves go from GPU to GPU through the hosts' memory"
#endif

#ifdef HAVE_HDF5
#define HDF5_TEXT HDF5_VERSION_TEXT " at build time"
#else
#define HDF5_TEXT "not built in: .h5 files are neither read nor written"
#endif

#ifdef HAVE_CURL
#define CURL_TEXT CURL_VERSION_TEXT " at build time"
#else
#define CURL_TEXT "not built in: pull downloads nothing"
#endif

const char *cake_version(void)
{
    return CAKE_GIT_VERSION[0] ? PACKAGE_VERSION " (" CAKE_GIT_VERSION ")" : PACKAGE_VERSION;
}

void cake_build_describe(cake_buf *out)
{
    cake_buf_adds(out, "compiler    " COMPILER "\n"
                       "kernels     " KERNELS "\n"
                       "CUDA        " CUDA_TEXT "\n"
                       "NCCL        " NCCL_TEXT "\n"
                       "HDF5        " HDF5_TEXT "\n"
                       "libcurl     " CURL_TEXT "\n");
}
