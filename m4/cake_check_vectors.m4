# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_VECTORS
# Whether the compiler can make the kernels of the processor that it compiles for: AVX2, AVX-512 and AVX512-BF16, or NEON
# with and without products of bytes and of BF16, and SVE with registers of known width. Which of them run is asked of the
# CPU at start. A -march of the user's comes behind ours in make, and so here. Sets cake_vectors to their names, or no.
AC_DEFUN([CAKE_CHECK_VECTORS],
[AC_ARG_ENABLE([vector-kernels],
  [AS_HELP_STRING([--disable-vector-kernels], [only the plain C kernels (default: those of the processor too, where the compiler can)])],
  [], [enable_vector_kernels=yes])
AC_MSG_CHECKING([for vector instructions in the compiler])
cake_vectors=no cake_save_CFLAGS=$CFLAGS
CFLAGS="$cake_save_CFLAGS -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512bf16"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <immintrin.h>
__m512 f(__m512 a, __m512bh b) { return _mm512_dpbf16_ps(_mm512_fmadd_ps(a, a, a), b, b); }]], [])],
  [cake_vectors="AVX2 AVX-512 AVX512-BF16"])
CFLAGS="-march=armv8.2-a+dotprod+bf16+i8mm $cake_save_CFLAGS"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#ifndef __aarch64__
#error "no 64-bit Arm"
#endif
#include <arm_neon.h>
int32x4_t f(int32x4_t a, int8x16_t b) { return vmmlaq_s32(vdotq_s32(a, b, b), b, b); }
float32x4_t g(float32x4_t a, bfloat16x8_t b) { return vbfdotq_f32(a, b, b); }]], [])],
  [cake_vectors="NEON NEON-BF16"])
CFLAGS="-march=armv8.2-a+sve -msve-vector-bits=512 $cake_save_CFLAGS"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <arm_sve.h>
typedef svfloat32_t vec __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)));
vec f(vec a) { return svadd_f32_x(svptrue_b32(), a, svext_f32(a, a, 8)); }]], [])],
  [AS_CASE([$cake_vectors], [NEON*], [cake_vectors="$cake_vectors SVE"])])
CFLAGS=$cake_save_CFLAGS
AS_IF([test "x$enable_vector_kernels" = xno], [cake_vectors=no])
AC_MSG_RESULT([$cake_vectors])
AS_CASE(["$cake_vectors $enable_vector_kernels $CFLAGS"],
  [*SVE*|*AVX*|"no no"*], [],
  [*-march=*|*-mcpu=*], [AC_MSG_WARN([-march or -mcpu in CFLAGS leaves out kernels, which choose their own instructions: leave it away, the CPU is asked at start])])
AS_CASE([$cake_vectors],
  [AVX*], [AC_DEFINE([HAVE_X86_KERNELS], [1], [AVX2, AVX-512 and AVX512-BF16 kernels are built])],
  [NEON*], [AC_DEFINE([HAVE_ARM_KERNELS], [1], [NEON kernels are built])])
AM_CONDITIONAL([HAVE_X86_KERNELS], [AS_CASE([$cake_vectors], [AVX*], [true], [false])])
AS_CASE([$cake_vectors],
  [NEON*SVE], [AC_DEFINE([HAVE_SVE_KERNELS], [1], [SVE kernels are built])])
AM_CONDITIONAL([HAVE_ARM_KERNELS], [AS_CASE([$cake_vectors], [NEON*], [true], [false])])
AM_CONDITIONAL([HAVE_SVE_KERNELS], [AS_CASE([$cake_vectors], [NEON*SVE], [true], [false])])])
