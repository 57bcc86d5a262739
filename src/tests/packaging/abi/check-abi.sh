#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The binary interfaces: a program compiled against the older headers kept here (old.c) runs with this librxwire, and
# abidiff compares librxwire, librxafs and librxwire-classic with the baselines LIBRARY-ARCH.abi, the interfaces of
# the last release. Until there is a release, a baseline is of the day it was made. Added functions are permitted.
#
#   check-abi.sh                     compare
#   check-abi.sh --renew LIBRARY     write a new baseline of librxwire, librxafs or librxwire-classic, from a default build:
#                                    at a release, or for a break that NEWS announces

top=${top_srcdir:-$(dirname "$0")/../../../..}
build=${top_builddir:-.}
here=$top/src/tests/packaging/abi
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# choose LIBRARY: sets library, baseline, headers.
choose() {
	case $1 in
	librxwire)
		library=$build/src/rx/.libs/librxwire.so
		headers=$top/src/rx/include/rxwire
		;;
	librxafs)
		library=$build/src/client/.libs/librxafs.so
		headers=$top/src/client/include/rxafs
		;;
	librxwire-classic)
		library=$build/src/classic/.libs/librxwire-classic.so
		headers=$top/src/classic/rx
		;;
	*)
		echo "usage: check-abi.sh [--renew librxwire|librxafs|librxwire-classic]"
		exit 2
		;;
	esac
	baseline=$here/$1-$(uname -m).abi
}

# describe FILE: writes the interface of the chosen library.
describe() {
	abidw --no-show-locs --no-corpus-path --no-comp-dir-path --type-id-style hash --drop-private-types \
		--exported-interfaces-only --headers-dir "$headers" --out-file "$1" "$library"
}

# shorten: a description, with a line for each function, enumeration and member.
shorten() {
	sed -e '/<elf-needed>/,/<\/elf-needed>/d' -e '/<\(function-decl\|function-type\|data-member\|array-type-def\|enum-decl\) .*[^/]>$/{
		:more
		N
		s/\n */ /
		/<\/\(function-decl\|function-type\|data-member\|array-type-def\|enum-decl\)>$/!b more
	}'
}

# layout FILE: a line for each member of a structure with its offset and type, and for each constant. Types are
# described by their structure, since abidw's ids differ between its releases. Declared types without a definition
# have no members, and opaque objects (see suppressions) may change.
layout() {
	sed 's/> </>\n</g' "$1" | awk -v q="'" '
		function value(key,   at, rest) {
			at = index($0, key "=" q)
			if (!at)
				return ""
			rest = substr($0, at + length(key) + 2)
			return substr(rest, 1, index(rest, q) - 1)
		}
		# type(ID): "const rxw_config*"; for anonymous types and arrays, the size.
		function type(id,   kind) {
			kind = kinds[id]
			if (kind == "pointer-type-def")
				return type(target[id]) "*"
			if (kind == "qualified-type-def")
				return quality[id] type(target[id])
			if (kind == "array-type-def")
				return type(target[id]) "[]" size[id]
			if (kind == "function-type")
				return "function"
			return name[id] == "" ? "anonymous" size[id] : name[id]
		}
		/<[a-z-]* .* id=/ {
			id = value(" id")
			kinds[id] = substr($1, 2)
			target[id] = value(" type-id")
			size[id] = value("size-in-bits")
			name[id] = value("is-anonymous") == "yes" ? "" : value(" name")
			quality[id] = (value("const") == "yes" ? "const " : "") (value("volatile") == "yes" ? "volatile " : "")
		}
		/<class-decl / { owner = value("name") }
		/<enum-decl / { owner = value("name") }
		/<data-member / { place = value("layout-offset-in-bits") }
		/<var-decl / && place != "" {
			line[++n] = owner " " value("name") " " place
			of[n] = value("type-id")
			place = ""
		}
		/<enumerator / && value("name") !~ /_COUNT$/ { print owner, value("name"), value("value") }
		END { for (i = 1; i <= n; i++) print line[i], type(of[i]) }' |
		grep -E '^(rxw|rxafs)_' | grep -Ev '^(rxw_(engine|queue|security|service|keys|key|key_list|key_source|rpcstats|rpcstats_(shard|table|peer|key|id))|rxafs_(hooks|counts)) ' | LC_ALL=C sort -u
}

if [ "$1" = --renew ]; then
	choose "$2"
	describe "$dir/new" && shorten < "$dir/new" > "$baseline"
	exit
fi

# compare STRUCTURE: the chosen library with its baseline; the structure is one that both have. abidiff's
# report is in $dir/diff.
compare() {
	describe "$dir/now" || exit 1
	grep -q "class-decl name=.$1." "$dir/now" ||
		{ echo "no types in the library (built without -g): only names could be compared"; exit 77; }
	abidiff --no-added-syms --suppressions "$here/suppressions" "$baseline" "$dir/now" > "$dir/diff" 2>&1 && return
	cat "$dir/diff"
	return 1
}

# different: ends the test.
different() {
	echo "FAIL: the binary interface differs from ${baseline##*/} (doc/soname.md says what may change and how)"
	exit 1
}

"$build/src/tests/packaging/abi/old" || { echo "FAIL: the program built with older headers"; exit 1; }

choose librxwire
[ -f "$library" ] || { echo "this build has no shared library to compare with the baseline"; exit 0; }
[ -f "$baseline" ] || { echo "no baseline for $(uname -m)"; exit 0; }
case $SANITIZERS in no | '') ;; *) echo "an instrumented library is not compared"; exit 0 ;; esac
command -v abidiff > /dev/null || { echo "SKIP: abidiff is not installed (Debian package: abigail-tools)"; exit 77; }

# compare_places STRUCTURE: as compare; suppressions for growth also hide moved members, so compare offsets too.
compare_places() {
	compare "$1"
	rc=$?
	layout "$baseline" > "$dir/then"
	layout "$dir/now" > "$dir/today"
	LC_ALL=C comm -23 "$dir/then" "$dir/today" > "$dir/moved"
	[ -s "$dir/then" ] || { echo "no structure found in ${baseline##*/}"; exit 1; }
	sed 's/^/moved, changed or gone: /' "$dir/moved"
	if [ $rc -ne 0 ] || [ -s "$dir/moved" ]; then different; fi
	echo "the binary interface is that of ${baseline##*/}, or has grown in permitted ways" \
		"($(wc -l < "$dir/then") members and constants in place)"
}

compare_places rxw_config
choose librxafs
[ ! -f "$library" ] || compare_places rxafs_request

# Structures of classic Rx have no size member, so none may change.
choose librxwire-classic
compare rx_statistics || different
echo "the binary interface is that of ${baseline##*/}, or has additional functions"
