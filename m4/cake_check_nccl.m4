# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_NCCL
# nccl.h, after CAKE_CHECK_CUDA: nothing is linked, the program opens libnccl.so.2 when two ranks have GPUs. --with-nccl[=DIR]:
# required, --without-nccl: not used, neither: used if found. The version is read from the header's text: no compiler
# flags are needed for it. Sets cake_nccl for the table at the end.
AC_DEFUN([CAKE_CHECK_NCCL],
[AC_ARG_WITH([nccl],
  [AS_HELP_STRING([--with-nccl@<:@=DIR@:>@], [waves go from GPU to GPU by NCCL, 2.17 or later; DIR holds include/ (default: if found)])],
  [], [with_nccl=auto])
cake_nccl=no cake_dirs= NCCL_CFLAGS=
AS_CASE([$with_nccl], [no], [], [auto|yes], [cake_dirs="${cake_cuda_dir:-/usr/local/cuda}/include /usr/local/include /usr/include"], [cake_dirs=$with_nccl/include])
AS_IF([test "x$with_nccl" != xno && test "x$cake_cuda" != xno],
  [AC_MSG_CHECKING([for nccl.h])
   for cake_dir in $cake_dirs; do
     AS_IF([test $cake_nccl = no && test -f "$cake_dir/nccl.h"],
       [cake_nccl= NCCL_CFLAGS="-isystem $cake_dir"
        for cake_macro in NCCL_MAJOR NCCL_MINOR NCCL_PATCH; do
          cake_word=`sed -n "s/^#define@<:@@<:@:blank:@:>@@:>@*$cake_macro@<:@@<:@:blank:@:>@@:>@*\(@<:@0-9@:>@*\).*/\1/p" "$cake_dir/nccl.h" | head -n 1`
          cake_nccl=$cake_nccl${cake_nccl:+.}$cake_word
        done
        AS_CASE([$cake_nccl], [2.?.*|2.1@<:@0-6@:>@.*|1.*], [cake_nccl=no NCCL_CFLAGS=])])
   done
   AC_MSG_RESULT([$cake_nccl])])
AS_IF([test "x$cake_nccl" = xno],
  [AS_CASE([$with_nccl], [auto|no], [],
     [AS_IF([test "x$cake_cuda" = xno], [AC_MSG_ERROR([NCCL is of no use without CUDA: see --with-cuda])],
       [AC_MSG_ERROR([no nccl.h of version 2.17 or later in $cake_dirs: install libnccl-dev (Debian, Ubuntu), give --with-nccl=DIR, or leave it away])])])],
  [AC_DEFINE([HAVE_NCCL], [1], [NCCL was found, and CUDA])
   AC_DEFINE_UNQUOTED([NCCL_VERSION_TEXT], ["$cake_nccl"], [Version of NCCL])])
AC_SUBST([NCCL_CFLAGS])
AM_CONDITIONAL([HAVE_NCCL], [test "x$cake_nccl" != xno])])
