# SPDX-License-Identifier: BSD-2-Clause
# For configure.ac of a project with .xg files: finds rxwgen. Used with rxwgen.am.

# RXW_PROG_RXWGEN([ACTION-IF-NOT-FOUND])
# --------------------------------------
# Sets and substitutes RXWGEN: the user's value, or the program of the rxwire that pkg-config finds
# (below PKG_CONFIG_SYSROOT_DIR, if set), or the first one in PATH that runs on this machine. Declares
# RXWGENFLAGS for the user's flags. Without ACTION-IF-NOT-FOUND, a missing program is an error.
AC_DEFUN([RXW_PROG_RXWGEN], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_REQUIRE([AC_PROG_MKDIR_P])
AC_ARG_VAR([RXWGEN], [interface compiler of rxwire, instead of the one that pkg-config finds])
AC_ARG_VAR([RXWGENFLAGS], [more flags for rxwgen])
AC_MSG_CHECKING([for rxwgen])
AS_IF([test -z "$RXWGEN"], [
	rxw_rxwgen=`$PKG_CONFIG --variable=rxwgen rxwire 2>/dev/null`
	for rxw_try in "$PKG_CONFIG_SYSROOT_DIR$rxw_rxwgen" "$rxw_rxwgen" rxwgen; do
		AS_IF([test -n "$rxw_try" && "$rxw_try" --version >/dev/null 2>&1],
			[RXWGEN=$rxw_try
			break])
	done
])
AC_MSG_RESULT([${RXWGEN:-no}])
AS_IF([test -z "$RXWGEN"], [m4_default([$1],
	[AC_MSG_ERROR([rxwgen was not found: install the development files of rxwire, or set RXWGEN=...])])])
])
