# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_CXX
# A compiler for C++17, which the tests of the kernels for GPUs need (tests/gpu); the program is C. Sets cake_have_cxx for the
# table at the end.
AC_DEFUN([CAKE_CHECK_CXX],
[AC_LANG_PUSH([C++])
AC_MSG_CHECKING([for a C++17 compiler])
cake_save_CXXFLAGS=$CXXFLAGS
CXXFLAGS="$CXXFLAGS -std=c++17"
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <functional>]], [[std::function<int()> f = [] { return 0; }; return f()]])],
  [cake_have_cxx=yes], [cake_have_cxx=no])
CXXFLAGS=$cake_save_CXXFLAGS
AC_MSG_RESULT([$cake_have_cxx])
AC_LANG_POP([C++])
AM_CONDITIONAL([HAVE_CXX], [test $cake_have_cxx = yes])])
