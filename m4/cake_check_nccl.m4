# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_NCCL
# Recorded for `cake-mpi info`; nothing is linked. --with-nccl[=DIR]: must be there, --without-nccl: is not
# looked for, neither: if found. The version is read from the header's text: no compiler flags are needed for it.
# Sets cake_nccl for the table at the end.
AC_DEFUN([CAKE_CHECK_NCCL],
[AC_ARG_WITH([nccl],
  [AS_HELP_STRING([--with-nccl@<:@=DIR@:>@], [records NCCL in `cake-mpi info`; DIR holds include/ (default: if found)])],
  [], [with_nccl=auto])
cake_nccl=no cake_dirs=
AS_CASE([$with_nccl], [no], [], [auto|yes], [cake_dirs="${CUDA_HOME:-/usr/local/cuda}/include /usr/local/include /usr/include"], [cake_dirs=$with_nccl/include])
AS_IF([test "x$with_nccl" != xno],
  [AC_MSG_CHECKING([for nccl.h])
   for cake_dir in $cake_dirs; do
     AS_IF([test $cake_nccl = no && test -f "$cake_dir/nccl.h"],
       [cake_nccl=
        for cake_macro in NCCL_MAJOR NCCL_MINOR NCCL_PATCH; do
          cake_word=`sed -n "s/^#define@<:@@<:@:blank:@:>@@:>@*$cake_macro@<:@@<:@:blank:@:>@@:>@*\(@<:@0-9@:>@*\).*/\1/p" "$cake_dir/nccl.h" | head -n 1`
          cake_nccl=$cake_nccl${cake_nccl:+.}$cake_word
        done])
   done
   AC_MSG_RESULT([$cake_nccl])])
AS_IF([test "x$cake_nccl" = xno],
  [AS_CASE([$with_nccl], [auto|no], [],
     [AC_MSG_ERROR([no nccl.h in $cake_dirs: install libnccl-dev (Debian, Ubuntu), give --with-nccl=DIR, or leave it away])])],
  [AC_DEFINE([HAVE_NCCL], [1], [NCCL was found])
   AC_DEFINE_UNQUOTED([NCCL_VERSION_TEXT], ["$cake_nccl"], [Version of NCCL])])])
