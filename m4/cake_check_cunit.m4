# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_CUNIT
# CUnit is needed by `make check` only: without it the tests cannot be built, and `make check` says so.
AC_DEFUN([CAKE_CHECK_CUNIT],
[PKG_CHECK_MODULES([CUNIT], [cunit], [cake_have_cunit=yes],
  [cake_save_LIBS=$LIBS
   AC_CHECK_HEADER([CUnit/CUnit.h],
     [AC_CHECK_LIB([cunit], [CU_initialize_registry], [cake_have_cunit=yes CUNIT_LIBS=-lcunit], [cake_have_cunit=no])],
     [cake_have_cunit=no])
   LIBS=$cake_save_LIBS])
AM_CONDITIONAL([HAVE_CUNIT], [test "x$cake_have_cunit" = xyes])])
