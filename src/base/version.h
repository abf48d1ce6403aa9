/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's version and build.
 */
#ifndef CAKE_BASE_VERSION_H
#define CAKE_BASE_VERSION_H

#include "base/buf.h"

const char *cake_version(void); /* "0.2.0 (3f2a91c)": release and, where known, commit */
/* Lines for `info`: compiler, kernels, and the optional libraries with the consequence of their absence. */
void cake_build_describe(cake_buf *out);

#endif
