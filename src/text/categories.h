/* SPDX-License-Identifier: Apache-2.0
 *
 * Unicode's general categories under their short names, with the numbers of utf8proc. Only for files whose
 * tables are full of them.
 */
#ifndef CAKE_TEXT_CATEGORIES_H
#define CAKE_TEXT_CATEGORIES_H

enum {
#define CATEGORY(name, long_name) name,
#include "text/categories.def"
#undef CATEGORY
};

#endif
