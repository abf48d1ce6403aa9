# SPDX-License-Identifier: Apache-2.0
# CAKE_CHECK_YAML
# libyaml reads topology files: YAML_CFLAGS and YAML_LIBS.
AC_DEFUN([CAKE_CHECK_YAML],
[CAKE_CHECK_MODULE([YAML], [yaml-0.1 >= 0.2.1], [libyaml-dev])])
