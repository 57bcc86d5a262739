#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks that everything that documents, man pages and their HTML refer to exists, that options, tunables, defaults,
# ranges and metrics in documents agree with the manual, and that plots and tables of results agree with their data.

top=${top_srcdir:-$(dirname "$0")/../..}
status=0

if ! command -v python3 > /dev/null 2>&1; then
	echo "SKIP: python3 was not found (Debian package: python3)"
	exit 77
fi
python3 "$top/src/tests/documents.py" "$top" || status=1
python3 "$top/src/tests/mentions.py" "$top" || status=1
python3 -B "$top/src/bench/charts" --check "$top" || status=1
for tool in cmark-gfm mandoc; do
	if ! command -v $tool > /dev/null 2>&1; then
		echo "left out: rendered pages, since $tool was not found (Debian package: $tool)"
		exit $status
	fi
done
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
python3 "$top/doc/make-html" "$top" "$dir/one" 0 && python3 "$top/src/tests/documents.py" --html "$dir/one" || status=1
# The same input gives the same bytes in any output folder.
LC_ALL=C TZ=UTC-14 python3 "$top/doc/make-html" "$top" "$dir/elsewhere/two" 0 > "$dir/log" &&
	diff -r "$dir/one" "$dir/elsewhere/two" || { echo "FAIL: rendered twice, the pages differ"; status=1; }
exit $status
