#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The headers of librxwire-classic: each compiles alone, as C and C++, and refuses programs for LWP; and the library
# exports the functions and variables that they declare and nothing else. Other global names of the static library
# begin with classic_.

top=${top_srcdir:-$(dirname "$0")/../../..}
build=${top_builddir:-.}
CC=${CC:-cc}
CXX=${CXX:-c++}
NM=${NM:-nm}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0

# complain TEXT: and shows the log.
complain() {
	echo "FAIL: $1"
	head -n 20 "$dir/log"
	status=1
}

echo 'int main() { return 0; }' > "$dir/probe.cc"
cxx=no
$CXX -fsyntax-only "$dir/probe.cc" 2> /dev/null && cxx=yes

: > "$dir/all.c"
flags="-DAFS_PTHREAD_ENV -I$top/src/classic -fsyntax-only"
for h in "$top"/src/classic/rx/*.h; do
	name=rx/${h##*/}
	printf '#include <%s>\n#include <%s>\nextern int unused;\n' "$name" "$name" > "$dir/one.c"
	echo "#include <$name>" | cat - "$dir/all.c" > "$dir/all.new"
	mv "$dir/all.new" "$dir/all.c"
	cp "$dir/one.c" "$dir/one.cc"
	for standard in gnu99 gnu17; do
		$CC -std=$standard -Wall -Wextra -Werror $flags "$dir/one.c" > "$dir/log" 2>&1 || complain "$name as $standard"
	done
	[ $cxx = no ] || $CXX -std=c++11 -Wall -Wextra -Werror $flags "$dir/one.cc" > "$dir/log" 2>&1 ||
		complain "$name as C++"
done
$CC -std=gnu17 -Wall -Wextra -Werror $flags "$dir/all.c" > "$dir/log" 2>&1 || complain "all headers, in reverse order"
echo '#include <rx/rx.h>' > "$dir/lwp.c"
$CC "-I$top/src/classic" -fsyntax-only "$dir/lwp.c" > "$dir/log" 2>&1 && complain "a program for LWP is not refused"
grep -q 'compile with -DAFS_PTHREAD_ENV' "$dir/log" || complain "the refusal of programs for LWP does not say what to do"

# What the headers declare: names before "(" or at the end of declarations that begin with extern, in their own lines.
$CC -E -DAFS_PTHREAD_ENV "-I$top/src/classic" "$dir/all.c" |
	awk '
		/^# [0-9]+ "/ { ours = $3 ~ /\/src\/classic\/rx\//; next }
		ours { text = text " " $0 }
		END {
			n = split(text, parts, ";")
			for (i = 1; i <= n; i++) {
				line = parts[i]
				sub(/.*[{}]/, "", line)
				if (line !~ /^ *extern /)
					continue
				gsub(/__attribute__ *\(\(.*\)\)/, "", line)
				first = index(line, "(")
				if (first && match(substr(line, first), /^\( *\*[a-z_]+ *\)/)) # a pointer to a function
					line = substr(line, first, RLENGTH)
				else if (first)
					line = substr(line, 1, first - 1)
				sub(/\[.*/, "", line)
				gsub(/[()*]/, "", line)
				sub(/ +$/, "", line)
				sub(/.* /, "", line)
				print line
			}
		}' | LC_ALL=C sort -u > "$dir/declared"
[ "$(wc -l < "$dir/declared")" -gt 150 ] || { echo "FAIL: few declarations were found in the headers"; exit 1; }

# differ A B TEXT: reports each line of A that B lacks.
differ() {
	LC_ALL=C comm -23 "$1" "$2" > "$dir/diff"
	if [ -s "$dir/diff" ]; then
		sed "s|^|FAIL: $3: |" "$dir/diff"
		status=1
	fi
}

sed -n 's/^[[:space:]]*\([a-zA-Z0-9_]*\);.*/\1/p' "$top/src/classic/librxwire-classic.map" |
	LC_ALL=C sort -u > "$dir/map"
differ "$dir/declared" "$dir/map" "declared in a header, not in librxwire-classic.map"
differ "$dir/map" "$dir/declared" "in librxwire-classic.map, not declared in any header"

# The package's list of symbols is that of the map.
sed -n 's/^ \([a-zA-Z0-9_]*\)@.*/\1/p' "$top/debian/librxwire-classic0.symbols" | grep -v '^RXWIRE_CLASSIC_' |
	LC_ALL=C sort -u > "$dir/package"
differ "$dir/map" "$dir/package" "in librxwire-classic.map, not in debian/librxwire-classic0.symbols"
differ "$dir/package" "$dir/map" "in debian/librxwire-classic0.symbols, not in librxwire-classic.map"

library=$build/src/classic/.libs/librxwire-classic.so
if [ -e "$library" ]; then
	$NM -D --defined-only "$library" | sed -n 's/.* [TBDRV] \([^@]*\).*/\1/p' | LC_ALL=C sort -u > "$dir/exported"
	differ "$dir/declared" "$dir/exported" "declared, but the library does not define it"
	differ "$dir/exported" "$dir/declared" "exported, but not declared"
else
	echo "note: there is no shared library: its exports were not compared"
fi

archive=$build/src/classic/.libs/librxwire-classic.a
if [ -f "$archive" ]; then
	$NM -g --defined-only "$archive" 2> /dev/null |
		awk 'NF == 3 && $3 !~ /^(classic_|__asan|__odr_asan|__tsan|__ubsan|DW\.ref|__x86\.get_pc_thunk)/ { print $3 }' |
		LC_ALL=C sort -u > "$dir/global"
	differ "$dir/global" "$dir/declared" "librxwire-classic.a defines a name that is neither public nor begins with classic_"
	differ "$dir/declared" "$dir/global" "declared, but librxwire-classic.a does not define it"
fi

[ $status -ne 0 ] || echo "$(wc -l < "$dir/declared") names; each header compiles alone (C++: $cxx)"
exit $status
