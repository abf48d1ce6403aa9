# SPDX-License-Identifier: Apache-2.0
# CAKE_EXACT_ARITHMETIC
# No compiler may compute otherwise than it is written: the kernels of all instruction sets, and one kernel for any number of
# rows, have the same bits only so. Some compilers do it unasked (icx: -fp-model=fast).
AC_DEFUN([CAKE_EXACT_ARITHMETIC],
[AC_MSG_CHECKING([that floating point is computed as it is written])
cake_exact=yes
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#if defined __FAST_MATH__ || defined __ASSOCIATIVE_MATH__ || defined __RECIPROCAL_MATH__
#error "not as it is written"
#endif]])], [], [cake_exact="no, by $CC $CFLAGS"])
AS_CASE([" $NVCCFLAGS "],
  [*use_fast_math*|*ftz=true*|*prec-div=false*|*prec-sqrt=false*], [cake_exact="no, by NVCCFLAGS=$NVCCFLAGS"])
AC_MSG_RESULT([$cake_exact])
AS_IF([test "x$cake_exact" != xyes],
  [AC_MSG_ERROR([answers would not have the same bits everywhere: leave -ffast-math, -Ofast (icx: add -fp-model=precise) and -use_fast_math away])])])
