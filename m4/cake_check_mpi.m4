# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_MPI
# MPI_CFLAGS and MPI_LIBS from the wrapper compiler MPICC (Open MPI, MPICH, Intel: `-show`), or nothing where
# the compiler itself knows MPI (Cray's cc). Only the files that speak MPI are compiled with them.
AC_DEFUN([CAKE_CHECK_MPI],
[AC_ARG_VAR([MPICC], [MPI wrapper compiler, asked for its flags])
AC_ARG_VAR([MPIRUN], [MPI launcher that `make check` uses])
AC_CHECK_PROGS([MPICC], [mpicc cc])
# The launcher that goes with the wrapper: mpirun.mpich with mpicc.mpich, with a path the one in the same folder.
cake_mpirun=`AS_ECHO(["$MPICC"]) | sed 's/mpicc\(@<:@^/@:>@*\)$/mpirun\1/'`
AC_CHECK_PROGS([MPIRUN], [$cake_mpirun mpirun mpiexec srun])
AC_MSG_CHECKING([for the flags of $MPICC])
MPI_CFLAGS= MPI_LIBS=
for cake_word in `$MPICC -show 2>/dev/null`; do
  AS_CASE([$cake_word],
    [-I*|-D*], [MPI_CFLAGS="$MPI_CFLAGS $cake_word"],
    [-L*|-l*|-Wl,*|-pthread|*.a|*.so], [MPI_LIBS="$MPI_LIBS $cake_word"])
done
AC_MSG_RESULT([$MPI_CFLAGS $MPI_LIBS])
cake_save_CFLAGS=$CFLAGS cake_save_LIBS=$LIBS
CFLAGS="$CFLAGS $MPI_CFLAGS" LIBS="$MPI_LIBS $LIBS"
AC_MSG_CHECKING([whether an MPI program links])
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#if MPI_VERSION < 3
#error "MPI-3 is needed"
#endif]], [[MPI_Init(0, 0)]])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
   AC_MSG_ERROR([MPI-3 is needed: install libopenmpi-dev openmpi-bin (Debian, Ubuntu), or set MPICC])])
CFLAGS=$cake_save_CFLAGS LIBS=$cake_save_LIBS
AC_SUBST([MPI_CFLAGS])
AC_SUBST([MPI_LIBS])])
