# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_HDF5
# HDF5 reads and writes .h5 files, the serial library: HDF5_CFLAGS and HDF5_LIBS. --without-hdf5 does without.
# --with-hdf5=DIR: DIR has include/ and lib/. Sets cake_hdf5 for the table at the end.
AC_DEFUN([CAKE_CHECK_HDF5],
[AC_ARG_WITH([hdf5],
  [AS_HELP_STRING([--without-hdf5], [neither reads nor writes .h5 files; --with-hdf5=DIR: HDF5 is in DIR/include and DIR/lib])],
  [], [with_hdf5=yes])
cake_hdf5=no
AS_CASE([$with_hdf5],
  [no], [HDF5_CFLAGS= HDF5_LIBS=],
  [yes], [PKG_CHECK_MODULES([HDF5], [hdf5-serial >= 1.10], [],
            [PKG_CHECK_MODULES([HDF5], [hdf5 >= 1.10], [], [HDF5_CFLAGS= HDF5_LIBS=-lhdf5])])],
  [HDF5_CFLAGS=-I$with_hdf5/include HDF5_LIBS="-L$with_hdf5/lib -Wl,-rpath,$with_hdf5/lib -lhdf5"])
AS_IF([test "x$with_hdf5" != xno],
  [cake_save_CPPFLAGS=$CPPFLAGS cake_save_LIBS=$LIBS
   CPPFLAGS="$CPPFLAGS $HDF5_CFLAGS" LIBS="$HDF5_LIBS $LIBS"
   AC_MSG_CHECKING([for HDF5])
   AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hdf5.h>]], [[return H5open() < 0;]])],
     [AC_COMPUTE_INT([cake_major], [H5_VERS_MAJOR], [[#include <hdf5.h>]])
      AC_COMPUTE_INT([cake_minor], [H5_VERS_MINOR], [[#include <hdf5.h>]])
      AC_COMPUTE_INT([cake_release], [H5_VERS_RELEASE], [[#include <hdf5.h>]])
      cake_hdf5=$cake_major.$cake_minor.$cake_release])
   AC_MSG_RESULT([$cake_hdf5])
   CPPFLAGS=$cake_save_CPPFLAGS LIBS=$cake_save_LIBS
   AS_IF([test "$cake_hdf5" = no],
     [AC_MSG_ERROR([HDF5 1.10 or later is needed: install libhdf5-dev (Debian, Ubuntu) or hdf5-devel (Fedora), give --with-hdf5=DIR, or do without .h5 files by --without-hdf5])])
   AC_DEFINE([HAVE_HDF5], [1], [HDF5 is linked])
   AC_DEFINE_UNQUOTED([HDF5_VERSION_TEXT], ["$cake_hdf5"], [Version of HDF5])])
AC_SUBST([HDF5_CFLAGS])
AC_SUBST([HDF5_LIBS])
AM_CONDITIONAL([HAVE_HDF5], [test "x$cake_hdf5" != xno])])
