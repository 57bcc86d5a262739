#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks that the tests named in doc/conformance.md exist, and that every MUST item has a row.

export LC_ALL=C
: "${top_srcdir:=.}"
doc=$top_srcdir/doc/conformance.md
tests=$top_srcdir/src/tests
status=0

fail() {
	echo "doc/conformance.md: $*" >&2
	status=1
}

# "FILE: NAME, NAME" in a cell, several with semicolons between: lines "FILE NAME" and "FILE".
names=$(awk -F '|' '/^\|/ {
	for (i = 2; i < NF; i++) {
		n = split($i, part, ";")
		for (k = 1; k <= n; k++) {
			p = part[k]
			gsub(/[` ]/, "", p)
			if (p !~ /^conformance_[a-z]+(:|$)/ && p !~ /^[a-z\/]*test_[a-z_0-9]+\.c(:|$)/ &&
			    p !~ /^conformance\/[a-z]+\.py(:|$)/)
				continue
			m = split(p, half, ":")
			print half[1]
			c = m > 1 ? split(half[2], name, ",") : 0
			for (j = 1; j <= c; j++)
				print half[1], name[j]
		}
	}
}' "$doc") || exit 1

while read -r file name; do
	case $file in
	conformance_*) set -- "$tests"/rx/*/test_"$file".c ;;
	src/*) set -- "$top_srcdir/$file" ;;
	conformance/*) set -- "$tests/system/$file" ;;
	sim/*) set -- "$tests/$file" ;;
	test_*) set -- "$tests"/*/"$file" ;;
	*) set -- "$tests/rx/$file" ;;
	esac
	if [ ! -f "$1" ]; then
		fail "no such test: $file"
	elif [ -n "$name" ] && ! grep -qE "^(START_TEST\($name\)|def $name\()" "$1"; then
		fail "$file has no test $name"
	fi
done <<EOF
$names
EOF

[ "$(echo "$names" | wc -l)" -gt 100 ] || fail "fewer than 100 test names found: has the table's format changed?"

i=1
while [ $i -le 64 ]; do
	item=$(printf 'C-%03d' $i)
	case $i in
	52 | 53 | 54 | 55) ;; # covered by the text above the table
	*) grep -q "^|.*$item" "$doc" || fail "$item is missing" ;;
	esac
	i=$((i + 1))
done

# The items and tests in the table of results are those of the scripted peer.
if command -v python3 > /dev/null; then
	python3 -B "$tests/system/conformance/table" check "$doc" || status=1
fi
exit $status
