# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_HDF5
# Recorded for `cake-mpi info`; nothing is linked. --with-hdf5[=DIR]: must be there, --without-hdf5: is not
# looked for, neither: if found. The version is read from the header's text: no compiler flags are needed for it.
# Sets cake_hdf5 for the table at the end.
AC_DEFUN([CAKE_CHECK_HDF5],
[AC_ARG_WITH([hdf5],
  [AS_HELP_STRING([--with-hdf5@<:@=DIR@:>@], [records HDF5 in `cake-mpi info`; DIR holds include/ (default: if found)])],
  [], [with_hdf5=auto])
cake_hdf5=no cake_dirs=
AS_CASE([$with_hdf5], [no], [], [auto|yes], [cake_dirs="/usr/include/hdf5/serial /usr/include /usr/local/include"], [cake_dirs=$with_hdf5/include])
AS_IF([test "x$with_hdf5" != xno],
  [AC_MSG_CHECKING([for H5public.h])
   for cake_dir in $cake_dirs; do
     AS_IF([test $cake_hdf5 = no && test -f "$cake_dir/H5public.h"],
       [cake_hdf5=
        for cake_macro in H5_VERS_MAJOR H5_VERS_MINOR H5_VERS_RELEASE; do
          cake_word=`sed -n "s/^#define@<:@@<:@:blank:@:>@@:>@*$cake_macro@<:@@<:@:blank:@:>@@:>@*\(@<:@0-9@:>@*\).*/\1/p" "$cake_dir/H5public.h" | head -n 1`
          cake_hdf5=$cake_hdf5${cake_hdf5:+.}$cake_word
        done])
   done
   AC_MSG_RESULT([$cake_hdf5])])
AS_IF([test "x$cake_hdf5" = xno],
  [AS_CASE([$with_hdf5], [auto|no], [],
     [AC_MSG_ERROR([no H5public.h in $cake_dirs: install libhdf5-dev (Debian, Ubuntu), give --with-hdf5=DIR, or leave it away])])],
  [AC_DEFINE([HAVE_HDF5], [1], [HDF5 was found])
   AC_DEFINE_UNQUOTED([HDF5_VERSION_TEXT], ["$cake_hdf5"], [Version of HDF5])])])
