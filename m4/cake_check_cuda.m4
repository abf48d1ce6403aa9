# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_CUDA
# nvcc for the kernels of GPUs, and the CUDA runtime, linked statically so that the program also starts where no CUDA is.
# --with-cuda[=DIR]: required; --without-cuda: not used; neither: used if found. CUDA_ARCH: the GPUs to make code for; later ones
# run the PTX of the last one. Sets cake_cuda for the table at the end.
AC_DEFUN([CAKE_CHECK_CUDA],
[AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [computes on NVIDIA GPUs, too; DIR holds bin/nvcc and include/ (default: if found in /usr/local/cuda)])],
  [], [with_cuda=auto])
AC_ARG_VAR([NVCC], [compiler for GPUs])
AC_ARG_VAR([NVCCFLAGS], [flags for it (default: -O3)])
AC_ARG_VAR([CUDA_ARCH], [capabilities of the GPUs that there is code for, "80 90a" (default: 75 80 89 90a 100 120, as far as nvcc has them)])
cake_cuda=no cake_cuda_lib= CUDA_CFLAGS= CUDA_LIBS= CUDA_CODE=
AS_CASE([$with_cuda], [auto|yes], [cake_cuda_dir=${CUDA_HOME:-/usr/local/cuda}], [cake_cuda_dir=$with_cuda])
: ${NVCC=$cake_cuda_dir/bin/nvcc} ${NVCCFLAGS=-O3}
AS_IF([test "x$with_cuda" != xno],
  [AC_MSG_CHECKING([for nvcc, the CUDA runtime and cublasLt.h in $cake_cuda_dir])
   cake_inspection=`$NVCC --list-gpu-code 2>/dev/null | tr '\n' ' '`
   for cake_lib in $cake_cuda_dir/lib64 $cake_cuda_dir/lib $cake_cuda_dir/targets/*/lib; do
     AS_IF([test $cake_cuda = no && test -n "$cake_inspection" && test -f "$cake_lib/libcudart_static.a" && test -f "$cake_cuda_dir/include/cublasLt.h"],
       [cake_save_CFLAGS=$CFLAGS cake_save_LIBS=$LIBS cake_cuda_lib=$cake_lib
        CUDA_CFLAGS="-isystem $cake_cuda_dir/include" CUDA_LIBS="$cake_lib/libcudart_static.a -lpthread -ldl -lrt"
        CFLAGS="$CFLAGS $CUDA_CFLAGS" LIBS="$CUDA_LIBS $LIBS"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>]], [[int n; return cudaGetDeviceCount(&n)]])],
          [AC_COMPUTE_INT([cake_cuda_version], [CUDART_VERSION], [#include <cuda_runtime_api.h>])
           AS_IF([test "$cake_cuda_version" -ge 12000],
            [cake_cuda="`expr $cake_cuda_version / 1000`.`expr $cake_cuda_version % 1000 / 10`"],
            [AC_MSG_WARN([CUDA before 12 is not taken])])])
        CFLAGS=$cake_save_CFLAGS LIBS=$cake_save_LIBS])
   done
   AC_MSG_RESULT([$cake_cuda])])
AS_IF([test "x$cake_cuda" = xno],
  [CUDA_CFLAGS= CUDA_LIBS=
   AS_CASE([$with_cuda], [auto|no], [],
     [AC_MSG_ERROR([no CUDA 12 or later (bin/nvcc, cuda_runtime_api.h, libcudart_static.a, cublasLt.h) in $cake_cuda_dir: give --with-cuda=DIR, or leave it away])])],
  [AC_MSG_CHECKING([for the capabilities of GPUs that there is code for])
   cake_archs= cake_last_layer=
   for cake_arch in ${CUDA_ARCH-75 80 89 90a 100 120}; do
     AS_CASE([" $cake_inspection"], [*" sm_`AS_ECHO([$cake_arch]) | tr -d af` "*],
       [cake_archs="$cake_archs $cake_arch" cake_last_layer=$cake_arch CUDA_CODE="$CUDA_CODE -gencode arch=compute_$cake_arch,code=sm_$cake_arch"],
       [AS_IF([test -n "$CUDA_ARCH"], [AC_MSG_ERROR([CUDA_ARCH: this nvcc has no $cake_arch; it has $cake_inspection])])])
   done
   AC_MSG_RESULT([$cake_archs])
   AS_CASE([$cake_last_layer], [*@<:@af@:>@], [], [CUDA_CODE="$CUDA_CODE -gencode arch=compute_$cake_last_layer,code=compute_$cake_last_layer"])
   cake_cuda_archs=$cake_archs
   AC_DEFINE_UNQUOTED([CUDA_LIB_DIR], ["$cake_cuda_lib"], [Where CUDA's libraries were at build time])
   AC_DEFINE([HAVE_CUDA], [1], [The kernels of GPUs and the CUDA runtime are linked])
   AC_DEFINE_UNQUOTED([CUDA_VERSION_TEXT], ["$cake_cuda"], [Version of the CUDA runtime])
   AC_DEFINE_UNQUOTED([CUDA_ARCHS_TEXT], ["$cake_archs"], [Capabilities of GPUs that there is code for])])
AC_SUBST([CUDA_CFLAGS])
AC_SUBST([CUDA_LIBS])
AC_SUBST([CUDA_CODE])
AM_CONDITIONAL([HAVE_CUDA], [test "x$cake_cuda" != xno])])
