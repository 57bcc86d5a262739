#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# librxwire.so exports the functions of the public headers and nothing else, as RXWIRE_0, RXWIRE_STUB_0 or RXWIRE_AFS_0. All global names of the
# static library begin with rxw_. The same for librxafs.so, as RXAFS_0.

top=${top_srcdir:-$(dirname "$0")/../..}
build=${top_builddir:-.}
NM=${NM:-nm}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0

# Functions declared by the headers: a name before "(" outside comments, macros and the bodies of inline functions.
list_functions() {
	awk -v prefix="${2:-rxw_}" '
		{ text = text $0 "\n" }
		END {
			while ((p = index(text, "/*")) > 0) {
				rest = substr(text, p + 2)
				text = substr(text, 1, p - 1) " " substr(rest, index(rest, "*/") + 2)
			}
			gsub(/\\\n/, " ", text)
			n = split(text, lines, "\n")
			depth = 0
			for (i = 1; i <= n; i++) {
				line = lines[i]
				if (line ~ /^[ \t]*#/ || line ~ /extern "C"/)
					continue
				if (depth == 0)
					code = code " " line
				depth += gsub(/\{/, "{", line) - gsub(/\}/, "}", line)
				if (depth < 0)
					depth = 0
			}
			gsub(/static inline [^{;]*[{;]/, " ", code)
			gsub(/typedef [^;]*;/, " ", code)
			gsub(/rxw_code \(\*/, " (*", code) # types of functions
			while (match(code, "[ *]" prefix "[a-z0-9_]+[ ]*[(]")) {
				name = substr(code, RSTART + 1, RLENGTH - 2)
				gsub(/ /, "", name)
				print name
				code = substr(code, RSTART + RLENGTH)
			}
		}' "$1"
}
for h in "$top"/src/rx/include/rxwire/*.h; do
	[ "${h##*/}" = observe.h ] || list_functions "$h"
done | LC_ALL=C sort -u > "$dir/declared"
[ -s "$dir/declared" ] || { echo "no declaration found in src/rx/include/rxwire"; exit 1; }

# differ A B TEXT: reports each line of A that B lacks.
differ() {
	LC_ALL=C comm -23 "$1" "$2" > "$dir/diff"
	if [ -s "$dir/diff" ]; then
		sed "s|^|$3: |" "$dir/diff"
		status=1
	fi
}

sed -n 's/^[[:space:]]*\(rxw_[a-z0-9_]*\);.*/\1/p' "$top/src/rx/librxwire.map" |
	LC_ALL=C sort -u > "$dir/map"
differ "$dir/declared" "$dir/map" "declared in a public header, not in librxwire.map"
differ "$dir/map" "$dir/declared" "in librxwire.map, not declared in any public header"

# The package's list of symbols is that of the map.
sed -n 's/^ \(rxw_[a-z0-9_]*\)@.*/\1/p' "$top/debian/librxwire0.symbols" | LC_ALL=C sort -u > "$dir/package"
differ "$dir/map" "$dir/package" "in librxwire.map, not in debian/librxwire0.symbols"
differ "$dir/package" "$dir/map" "in debian/librxwire0.symbols, not in librxwire.map"

archive=$build/src/rx/.libs/librxwire.a
if [ -f "$archive" ]; then
	$NM -g --defined-only "$archive" 2> /dev/null |
		awk 'NF == 3 && $3 !~ /^(rxw_|__asan|__odr_asan|__tsan|__ubsan|__start_|__stop_|DW\.ref|_\.stapsdt\.base$|__x86\.get_pc_thunk)/ { print $3 }' |
		LC_ALL=C sort -u > "$dir/foreign"
	if [ -s "$dir/foreign" ]; then
		sed 's|^|librxwire.a defines a name without our prefix: |' "$dir/foreign"
		status=1
	fi
	what=static
fi

# librxwire-observe is static only. Its functions are those of its header, and a few that its files share.
list_functions "$top/src/rx/include/rxwire/observe.h" | LC_ALL=C sort -u > "$dir/observed"
archive=$build/src/observe/librxwire-observe.a
if [ -f "$archive" ]; then
	$NM -g --defined-only "$archive" 2> /dev/null |
		awk 'NF == 3 && $3 !~ /^(__asan|__odr_asan|__tsan|__ubsan|__start_|__stop_|DW\.ref|__x86\.get_pc_thunk)/ { print $3 }' |
		LC_ALL=C sort -u > "$dir/archived"
	differ "$dir/observed" "$dir/archived" "declared in observe.h, not in librxwire-observe.a"
	grep -v '^rxw_' "$dir/archived" > "$dir/foreign"
	if [ -s "$dir/foreign" ]; then
		sed 's|^|librxwire-observe.a defines a name without our prefix: |' "$dir/foreign"
		status=1
	fi
fi

library=$build/src/rx/.libs/librxwire.so
if [ -f "$library" ]; then
	# The version node itself (A) is not a function.
	$NM -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
		LC_ALL=C sort -u > "$dir/exported"
	differ "$dir/exported" "$dir/declared" "exported, but not public"
	differ "$dir/declared" "$dir/exported" "public, but not exported (not written yet?)"
	$NM -D --defined-only --with-symbol-versions "$library" 2> /dev/null |
		awk '$2 != "A" && $3 !~ /@@?RXWIRE_(STUB_|AFS_)?[0-9]+$/ { print $3 }' > "$dir/unversioned"
	if [ -s "$dir/unversioned" ] && grep -q @ "$dir/unversioned"; then
		sed 's|^|exported without a version of ours: |' "$dir/unversioned"
		status=1
	fi
	what="${what:+$what and }shared"
fi

# librxafs. rxafs/daemon.h is not installed.
for h in "$top"/src/client/include/rxafs/*.h; do
	[ "${h##*/}" = daemon.h ] || list_functions "$h" rxafs_
done | LC_ALL=C sort -u > "$dir/declared.rxafs"
[ -s "$dir/declared.rxafs" ] || { echo "no declaration found in src/client/include/rxafs"; exit 1; }
sed -n 's/^[[:space:]]*\(rxafs_[a-z0-9_]*\);.*/\1/p' "$top/src/client/librxafs.map" |
	LC_ALL=C sort -u > "$dir/map.rxafs"
differ "$dir/declared.rxafs" "$dir/map.rxafs" "declared in a public header, not in librxafs.map"
differ "$dir/map.rxafs" "$dir/declared.rxafs" "in librxafs.map, not declared in any public header"
sed -n 's/^ \(rxafs_[a-z0-9_]*\)@.*/\1/p' "$top/debian/librxafs0.symbols" | LC_ALL=C sort -u > "$dir/package"
differ "$dir/map.rxafs" "$dir/package" "in librxafs.map, not in debian/librxafs0.symbols"
differ "$dir/package" "$dir/map.rxafs" "in debian/librxafs0.symbols, not in librxafs.map"
library=$build/src/client/.libs/librxafs.so
if [ -f "$library" ]; then
	$NM -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
		LC_ALL=C sort -u > "$dir/exported"
	differ "$dir/exported" "$dir/declared.rxafs" "exported by librxafs, but not public"
	differ "$dir/declared.rxafs" "$dir/exported" "public, but librxafs does not export it"
fi

if [ $status -eq 0 ] && [ -z "$what" ]; then
	echo "SKIP: this build has no librxwire"
	exit 77
fi
[ $status -ne 0 ] ||
	echo "$(wc -l < "$dir/declared") and $(wc -l < "$dir/declared.rxafs") public functions, no other symbol (libraries looked at: $what)"
exit $status
