#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each public header compiles alone, and all in any order, as C99 and later and as C++, without the flags of this
# build. Compilers warn of results that must be used.

top=${top_srcdir:-$(dirname "$0")/../..}
CC=${CC:-cc}
CXX=${CXX:-c++}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0

# try COMPILER FLAGS FILE WHAT
try() {
	if ! $1 $2 -Wall -Wextra -Wshadow -Werror -I"$top/src/rx/include" -I"$top/src/client/include" -fsyntax-only "$3" > "$dir/log" 2>&1; then
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

# A structure that is declared inside another one is unknown outside to C++.
compat=
echo 'struct a { int b; };' > "$dir/probe.c"
$CC -Wc++-compat -Werror -fsyntax-only "$dir/probe.c" 2> /dev/null && compat=-Wc++-compat

: > "$dir/all.h"
for h in "$top"/src/rx/include/rxwire/*.h "$top"/src/client/include/rxafs/*.h; do
	name=$(basename "${h%/*}")/${h##*/}
	printf '#include <%s>\n#include <%s>\nextern int rxw_unused;\n' "$name" "$name" > "$dir/one.c"
	cp "$dir/one.c" "$dir/one.cc"
	{ echo "#include <$name>"; cat "$dir/all.h"; } > "$dir/all.new"
	mv "$dir/all.new" "$dir/all.h"
	try "$CC" "-std=c99 -pedantic" "$dir/one.c" "$name"
	try "$CC" "-std=gnu17 -Wstrict-prototypes $compat" "$dir/one.c" "$name"
	if [ $cxx = yes ]; then
		try "$CXX" "-std=c++11 -pedantic" "$dir/one.cc" "$name"
		try "$CXX" "-std=c++20 -pedantic" "$dir/one.cc" "$name"
	fi
done

# A compiler warns of a lost result, and of nothing else; in C++17 a cast to void says that it is on purpose.
ignored() {
	printf '#include <rxwire/rxwire.h>\nvoid f(rxw_call *c)\n{\n\t%s;\n}\n' "$4" > "$dir/$3"
	if $1 $2 -Wall -Werror -I"$top/src/rx/include" -c -o "$dir/lost.o" "$dir/$3" > "$dir/log" 2>&1; then
		[ "$5" = warned ] && echo "FAIL: $1 $2 does not warn: $4" && status=1
	else
		[ "$5" = warned ] && grep -qi 'unused-result' "$dir/log" && return
		echo "FAIL: $1 $2: $4"
		cat "$dir/log"
		status=1
	fi
}
for standard in c99 gnu17 c2x; do
	ignored "$CC" -std=$standard lost.c 'rxw_call_write(c, "", 1)' warned
	ignored "$CC" -std=$standard lost.c 'rxw_call_flush(c)' quiet
done
if [ $cxx = yes ]; then
	ignored "$CXX" -std=c++11 lost.cc 'rxw_call_write(c, "", 1)' warned
	ignored "$CXX" -std=c++17 lost.cc 'rxw_call_write(c, "", 1)' warned
	ignored "$CXX" -std=c++17 lost.cc '(void)rxw_call_write(c, "", 1)' quiet
	ignored "$CXX" -std=c++17 lost.cc 'rxw_call_flush(c)' quiet
fi

# All of them together, in the reverse of their order.
cp "$dir/all.h" "$dir/all.c"
try "$CC" "-std=gnu17" "$dir/all.c" "all headers together"

[ $status -ne 0 ] || echo "each public header compiles alone, as C and (C++ compiler: $cxx) as C++"
exit $status
