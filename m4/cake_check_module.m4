# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_MODULE(NAME, PKG-CONFIG SPEC, DEBIAN PACKAGE)
# A required library: NAME_CFLAGS and NAME_LIBS, or a message that says what to install.
AC_DEFUN([CAKE_CHECK_MODULE],
[PKG_CHECK_MODULES([$1], [$2], [],
  [AC_MSG_ERROR([$2 is needed: install $3 (Debian, Ubuntu) or set $1_CFLAGS and $1_LIBS])])])
