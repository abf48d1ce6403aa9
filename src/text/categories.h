/* SPDX-License-Identifier: Apache-2.0
 *
 * Unicode's general categories under their short names, with the numbers of utf8proc. Only for files whose
 * tables are full of them.
 */
#ifndef CAKE_TEXT_CATEGORIES_H
#define CAKE_TEXT_CATEGORIES_H

enum {
    CN,
    LU,
    LL,
    LT,
    LM,
    LO,
    MN,
    MC,
    ME,
    ND,
    NL,
    NO,
    PC,
    PD,
    PS,
    PE,
    PI,
    PF,
    PO,
    SM,
    SC,
    SK,
    SO,
    ZS,
    ZL,
    ZP,
    CC,
    CF
};

#endif
