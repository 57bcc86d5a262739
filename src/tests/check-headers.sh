#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each public header compiles alone, and all in any order, as C99 and later and as C++, without the flags of this
# build.

top=${top_srcdir:-$(dirname "$0")/../..}
CC=${CC:-cc}
CXX=${CXX:-c++}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0

# try COMPILER FLAGS FILE WHAT
try() {
	if ! $1 $2 -Wall -Wextra -Wshadow -Werror -I"$top/src/rx" -fsyntax-only "$3" > "$dir/log" 2>&1; then
		echo "FAIL: $4 with $1 $2"
		cat "$dir/log"
		status=1
	fi
}

echo 'int main() { return 0; }' > "$dir/probe.cc"
if $CXX -fsyntax-only "$dir/probe.cc" 2> /dev/null; then
	cxx=yes
else
	cxx=no
	echo "note: no C++ compiler ($CXX): the headers are tried as C only"
fi

: > "$dir/all.h"
for h in "$top"/src/rx/rxwire/*.h; do
	name=rxwire/${h##*/}
	printf '#include <%s>\n#include <%s>\nextern int rxw_unused;\n' "$name" "$name" > "$dir/one.c"
	cp "$dir/one.c" "$dir/one.cc"
	{ echo "#include <$name>"; cat "$dir/all.h"; } > "$dir/all.new"
	mv "$dir/all.new" "$dir/all.h"
	try "$CC" "-std=c99 -pedantic" "$dir/one.c" "$name"
	try "$CC" "-std=gnu17 -Wstrict-prototypes" "$dir/one.c" "$name"
	if [ $cxx = yes ]; then
		try "$CXX" "-std=c++11 -pedantic" "$dir/one.cc" "$name"
		try "$CXX" "-std=c++20 -pedantic" "$dir/one.cc" "$name"
	fi
done

# All of them together, in the reverse of their order.
cp "$dir/all.h" "$dir/all.c"
try "$CC" "-std=gnu17" "$dir/all.c" "all headers together"

[ $status -ne 0 ] || echo "each public header compiles alone, as C and (C++ compiler: $cxx) as C++"
exit $status
