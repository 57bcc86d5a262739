#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# examples/notes builds with CMake and with Meson, which find the library and the compiler by pkg-config.

export LC_ALL=C
top=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
CC=${CC:-cc}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0
tried=

case $SANITIZERS in no | '') ;; *)
	echo "SKIP: the example is built without sanitizers"
	exit 77
	;;
esac
[ -f "$build/src/rx/.libs/librxwire.so" ] || { echo "SKIP: this build has no shared librxwire"; exit 77; }
command -v pkg-config > /dev/null 2>&1 || { echo "SKIP: pkg-config was not found"; exit 77; }

# The package of this build instead of an installed one.
sed -e "s|^libdir=.*|libdir=$build/src/rx/.libs|" -e "s|^includedir=.*|includedir=$top/src/rx/include|" \
	-e "s|^rxwgen=.*|rxwgen=$build/src/rxwgen/rxwgen|" "$build/rxwire.pc" > "$dir/rxwire.pc"
export PKG_CONFIG_PATH="$dir" CC
cp -R "$top/examples/notes" "$dir/notes" && chmod -R u+w "$dir/notes" || exit 99

# try NAME COMMAND: builds in $dir/NAME
try() {
	tried="$tried $1"
	if (cd "$dir/notes" && eval "$2") > "$dir/log" 2>&1 && [ -x "$dir/$1/notes-server" ] &&
		[ -x "$dir/$1/notes-client" ] && [ -x "$dir/$1/notes-key" ]; then
		echo "PASS: $1 builds examples/notes"
	else
		echo "FAIL: $1 does not build examples/notes"
		cat "$dir/log"
		status=1
	fi
}

if command -v cmake > /dev/null 2>&1; then
	try cmake "cmake -B '$dir/cmake' && cmake --build '$dir/cmake'"
else
	echo "left out: cmake was not found (Debian package: cmake)"
fi
if command -v meson > /dev/null 2>&1 && command -v ninja > /dev/null 2>&1; then
	try meson "meson setup '$dir/meson' && ninja -C '$dir/meson'"
else
	echo "left out: meson or ninja was not found (Debian package: meson)"
fi
[ -n "$tried" ] || { echo "SKIP: neither cmake nor meson was found"; exit 77; }
exit $status
