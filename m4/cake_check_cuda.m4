# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_CUDA
# The CUDA runtime, linked statically so that the program also starts where no CUDA is. --with-cuda[=DIR]: must be
# there; --without-cuda: is not looked for; neither: used if found. Sets cake_cuda for the table at the end.
AC_DEFUN([CAKE_CHECK_CUDA],
[AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [names the GPUs in `cake-mpi info`; DIR holds include/ (default: if found in /usr/local/cuda)])],
  [], [with_cuda=auto])
cake_cuda=no CUDA_CFLAGS= CUDA_LIBS=
AS_CASE([$with_cuda], [auto|yes], [cake_cuda_dir=${CUDA_HOME:-/usr/local/cuda}], [cake_cuda_dir=$with_cuda])
AS_IF([test "x$with_cuda" != xno],
  [AC_MSG_CHECKING([for the CUDA runtime in $cake_cuda_dir])
   for cake_lib in $cake_cuda_dir/lib64 $cake_cuda_dir/lib $cake_cuda_dir/targets/*/lib; do
     AS_IF([test $cake_cuda = no && test -f "$cake_lib/libcudart_static.a"],
       [cake_save_CFLAGS=$CFLAGS cake_save_LIBS=$LIBS
        CUDA_CFLAGS="-isystem $cake_cuda_dir/include" CUDA_LIBS="$cake_lib/libcudart_static.a -lpthread -ldl -lrt"
        CFLAGS="$CFLAGS $CUDA_CFLAGS" LIBS="$CUDA_LIBS $LIBS"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>]], [[int n; return cudaGetDeviceCount(&n)]])],
          [AC_COMPUTE_INT([cake_cuda_version], [CUDART_VERSION], [#include <cuda_runtime_api.h>])
           cake_cuda="`expr $cake_cuda_version / 1000`.`expr $cake_cuda_version % 1000 / 10`"])
        CFLAGS=$cake_save_CFLAGS LIBS=$cake_save_LIBS])
   done
   AC_MSG_RESULT([$cake_cuda])])
AS_IF([test "x$cake_cuda" = xno],
  [CUDA_CFLAGS= CUDA_LIBS=
   AS_CASE([$with_cuda], [auto|no], [],
     [AC_MSG_ERROR([no CUDA runtime (cuda_runtime_api.h, libcudart_static.a) in $cake_cuda_dir: give --with-cuda=DIR, or leave it away])])],
  [AC_DEFINE([HAVE_CUDA], [1], [The CUDA runtime is linked])
   AC_DEFINE_UNQUOTED([CUDA_VERSION_TEXT], ["$cake_cuda"], [Version of the CUDA runtime])])
AC_SUBST([CUDA_CFLAGS])
AC_SUBST([CUDA_LIBS])
AM_CONDITIONAL([HAVE_CUDA], [test "x$cake_cuda" != xno])])
