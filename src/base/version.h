/* SPDX-License-Identifier: Apache-2.0
 *
 * Which program this is and what it was built with.
 */
#ifndef CAKE_BASE_VERSION_H
#define CAKE_BASE_VERSION_H

#include "base/buf.h"

const char *cake_version(void); /* "0.2.0 (3f2a91c)": release and, where known, commit */
/* Lines for info: compiler, kernels compiled in, optional libraries found or not and what that means. */
void cake_build_describe(cake_buf *out);

#endif
