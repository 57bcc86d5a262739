#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks that the tests named in SECURITY.md exist.

export LC_ALL=C
: "${top_srcdir:=.}"
doc=$top_srcdir/SECURITY.md
status=0

# "`FILE`: NAME, NAME" in the cells of the advisories: lines "FILE NAME", and "FILE".
names=$(awk -F '|' '/^\| (OPENAFS|CVE)/ {
	n = split($4, part, ";")
	for (k = 1; k <= n; k++) {
		if (!match(part[k], /`[a-z_\/0-9]+\.c`/))
			continue
		file = substr(part[k], RSTART + 1, RLENGTH - 2)
		print file
		rest = substr(part[k], RSTART + RLENGTH)
		if (rest !~ /^:/)
			continue
		c = split(substr(rest, 2), name, ",")
		for (j = 1; j <= c; j++) {
			gsub(/ /, "", name[j])
			if (name[j] ~ /^[a-z_]+$/ && name[j] !~ /^also/)
				print file, name[j]
		}
	}
}' "$doc") || exit 1
[ "$(echo "$names" | wc -l)" -gt 20 ] || { echo "$doc: too few test names: has the table's format changed?" >&2; exit 1; }

while read -r file name; do
	path=$top_srcdir/src/tests/$file
	if [ ! -f "$path" ]; then
		echo "SECURITY.md: no such file: $file" >&2
		status=1
	elif [ -n "$name" ] && ! grep -q "START_TEST($name)" "$path"; then
		echo "SECURITY.md: $file has no test $name" >&2
		status=1
	fi
done << END
$names
END
[ $status -ne 0 ] || echo "the tests that SECURITY.md names exist"
exit $status
