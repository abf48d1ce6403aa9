# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_X86
# Whether the compiler can make the AVX2, AVX-512 and AVX512-BF16 kernels. Which of them run is asked of the CPU at start.
AC_DEFUN([CAKE_CHECK_X86],
[AC_ARG_ENABLE([x86-kernels],
  [AS_HELP_STRING([--disable-x86-kernels], [only the plain C kernels (default: AVX2, AVX-512 and AVX512-BF16 too, where the compiler can)])],
  [], [enable_x86_kernels=yes])
AC_MSG_CHECKING([for AVX2 and AVX-512 in the compiler])
cake_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512bf16"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <immintrin.h>
__m512 f(__m512 a, __m512bh b) { return _mm512_dpbf16_ps(_mm512_fmadd_ps(a, a, a), b, b); }]], [])],
  [cake_have_x86=yes], [cake_have_x86=no])
CFLAGS=$cake_save_CFLAGS
AS_IF([test "x$enable_x86_kernels" = xno], [cake_have_x86=no])
AC_MSG_RESULT([$cake_have_x86])
AS_IF([test $cake_have_x86 = yes], [AC_DEFINE([HAVE_X86_KERNELS], [1], [AVX2, AVX-512 and AVX512-BF16 kernels are built])])
AM_CONDITIONAL([HAVE_X86_KERNELS], [test $cake_have_x86 = yes])])
