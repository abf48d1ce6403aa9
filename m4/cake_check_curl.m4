# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_CURL
# curl/curl.h, by which `pull` downloads models: nothing is linked, the program opens libcurl.so.4 when it pulls.
# --with-curl[=DIR]: required, --without-curl: not used, neither: used if found. Sets cake_curl for the table at the end.
AC_DEFUN([CAKE_CHECK_CURL],
[AC_ARG_WITH([curl],
  [AS_HELP_STRING([--with-curl@<:@=DIR@:>@], [downloads models by libcurl, 7.61 or later; it is in DIR/include and DIR/lib (default: if found)])],
  [], [with_curl=auto])
cake_curl=no
AS_CASE([$with_curl],
  [no], [CURL_CFLAGS=],
  [auto|yes], [PKG_CHECK_MODULES([CURL], [libcurl >= 7.61], [cake_curl_lib=`$PKG_CONFIG --variable=libdir libcurl`],
                 [CURL_CFLAGS= cake_curl_lib=/usr/lib])],
  [CURL_CFLAGS=-I$with_curl/include cake_curl_lib=$with_curl/lib])
AS_IF([test "x$with_curl" != xno],
  [cake_save_CPPFLAGS=$CPPFLAGS
   CPPFLAGS="$CPPFLAGS $CURL_CFLAGS"
   AC_MSG_CHECKING([for curl/curl.h])
   AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <curl/curl.h>
#if LIBCURL_VERSION_NUM < 0x073d00
#error "libcurl 7.61 is needed"
#endif]], [[]])],
     [AC_COMPUTE_INT([cake_major], [LIBCURL_VERSION_MAJOR], [[#include <curl/curl.h>]])
      AC_COMPUTE_INT([cake_minor], [LIBCURL_VERSION_MINOR], [[#include <curl/curl.h>]])
      AC_COMPUTE_INT([cake_patch], [LIBCURL_VERSION_PATCH], [[#include <curl/curl.h>]])
      cake_curl=$cake_major.$cake_minor.$cake_patch])
   AC_MSG_RESULT([$cake_curl])
   CPPFLAGS=$cake_save_CPPFLAGS])
AS_IF([test "x$cake_curl" = xno],
  [CURL_CFLAGS=
   AS_CASE([$with_curl], [auto|no], [],
     [AC_MSG_ERROR([libcurl 7.61 or later was not found: install libcurl4-openssl-dev (Debian, Ubuntu) or libcurl-devel (Fedora), give --with-curl=DIR, or leave it away])])],
  [AC_SEARCH_LIBS([dlopen], [dl])
   AC_DEFINE([HAVE_CURL], [1], [The headers of libcurl were found])
   AC_DEFINE_UNQUOTED([CURL_LIB_DIR], ["$cake_curl_lib"], [Where libcurl was at build time])
   AC_DEFINE_UNQUOTED([CURL_VERSION_TEXT], ["$cake_curl"], [Version of libcurl])])
AC_SUBST([CURL_CFLAGS])
AM_CONDITIONAL([HAVE_CURL], [test "x$cake_curl" != xno])])
