#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# examples/notes and examples/afs build with CMake and with Meson, which find the libraries and rxwgen by pkg-config, the second one also
# with the static libraries.

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
[ -f "$build/src/rx/.libs/librxwire.so" ] && [ -f "$build/src/client/.libs/librxafs.so" ] || { echo "SKIP: this build has no shared libraries"; exit 77; }
command -v pkg-config > /dev/null 2>&1 || { echo "SKIP: pkg-config was not found"; exit 77; }

# The packages of this build instead of installed ones.
sed -e "s|^libdir=.*|libdir=$build/src/rx/.libs|" -e "s|^includedir=.*|includedir=$top/src/rx/include|" \
	-e "s|^rxwgen=.*|rxwgen=$build/src/rxwgen/rxwgen|" "$build/rxwire.pc" > "$dir/rxwire.pc"
sed -e "s|^libdir=.*|libdir=$build/src/client/.libs|" -e "s|^includedir=.*|includedir=$top/src/client/include|" \
	"$build/rxafs.pc" > "$dir/rxafs.pc"
export PKG_CONFIG_PATH="$dir" CC LD_LIBRARY_PATH="$build/src/rx/.libs:$build/src/client/.libs"
for example in notes afs; do
	cp -R "$top/examples/$example" "$dir/$example" && chmod -R u+w "$dir/$example" || exit 99
done

# try EXAMPLE NAME COMMAND PROGRAM...: builds the programs in $dir/NAME.
try() {
	example=$1 name=$2 command=$3
	shift 3
	tried=yes
	if (cd "$dir/$example" && eval "$command") > "$dir/log" 2>&1 && (cd "$dir/$name" && ls "$@") > /dev/null; then
		echo "PASS: examples/$example: $command" | sed "s|$dir/||g"
	else
		echo "FAIL: examples/$example: $command"
		cat "$dir/log"
		status=1
	fi
}
notes="notes-server notes-client notes-key" afs="afs-list afs-watch"

# starts PROGRAM: it is linked, and says that there is no such cell.
starts() {
	AFSCELL=nowhere.invalid "$1" /afs/nowhere.invalid > "$dir/log" 2>&1
	grep -q nowhere.invalid "$dir/log" && return
	echo "FAIL: $1: $(cat "$dir/log")"
	status=1
}

if command -v cmake > /dev/null 2>&1; then
	# shellcheck disable=SC2086 # lists
	try notes cmake "cmake -B '$dir/cmake' && cmake --build '$dir/cmake'" $notes
	# shellcheck disable=SC2086
	try afs cmake-afs "cmake -B '$dir/cmake-afs' && cmake --build '$dir/cmake-afs'" $afs
	starts "$dir/cmake-afs/afs-list"
else
	echo "left out: cmake was not found (Debian package: cmake)"
fi
if command -v meson > /dev/null 2>&1 && command -v ninja > /dev/null 2>&1; then
	# shellcheck disable=SC2086
	try notes meson "meson setup '$dir/meson' && ninja -C '$dir/meson'" $notes
	# shellcheck disable=SC2086
	try afs meson-afs "meson setup '$dir/meson-afs' && ninja -C '$dir/meson-afs'" $afs
	starts "$dir/meson-afs/afs-list"
	unset LD_LIBRARY_PATH
	# shellcheck disable=SC2086
	try afs meson-static "meson setup -Dprefer_static=true '$dir/meson-static' && ninja -C '$dir/meson-static'" $afs
	starts "$dir/meson-static/afs-list"
	! readelf -d "$dir/meson-static/afs-list" | grep 'NEEDED.*librx' || status=1
else
	echo "left out: meson or ninja was not found (Debian package: meson)"
fi
[ -n "$tried" ] || { echo "SKIP: neither cmake nor meson was found"; exit 77; }
exit $status
