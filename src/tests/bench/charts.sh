#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Plots and tables of the pages of results: --check finds a changed figure, and drawing again makes it pass.

top=${top_srcdir:-$(dirname "$0")/../../..}
python=${PYTHON3:-python3}
command -v "$python" > /dev/null || { echo 'SKIP: python3 was not found (Debian package: python3)'; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT

fail() {
	echo "$*" >&2
	exit 1
}

charts() {
	"$python" -B "$top/src/bench/charts" "$@" > "$dir/out" 2>&1
}

mkdir -p "$dir/doc"
cp -R "$top/doc/performance" "$dir/doc" && cp "$top"/doc/*.md "$dir/doc" && chmod -R u+w "$dir" || exit 99
charts --check "$dir" || fail "the pages differ from their data: $(cat "$dir/out")"

# A figure that only the data contain.
sed 's/^peak,3069,3069,/peak,3069,3068.25,/' "$dir/doc/performance/overload.csv" > "$dir/csv"
cmp -s "$dir/csv" "$dir/doc/performance/overload.csv" && fail 'the figure is not in the data'
cp "$dir/csv" "$dir/doc/performance/overload.csv"
charts --check "$dir" && fail '--check passed with a changed figure'
grep -q 'overload.svg does not agree' "$dir/out" || fail "not the plot: $(cat "$dir/out")"
grep -q 'overload.md does not agree' "$dir/out" || fail "not the table: $(cat "$dir/out")"
grep -q '3,068.25' "$dir/doc/overload.md" && fail '--check changed a file'
charts "$dir" || fail "not drawn: $(cat "$dir/out")"
grep -q '3,068.25' "$dir/doc/overload.md" || fail 'the table lacks the figure'
grep -q '>3,068.25<' "$dir/doc/performance/overload.svg" || fail 'the plot lacks the figure'
charts --check "$dir" || fail "still different after drawing: $(cat "$dir/out")"

# A page without its table.
grep -v '<!-- table attacks -->' "$top/doc/attacks.md" > "$dir/doc/attacks.md"
charts --check "$dir" && fail '--check passed with a page without its table'
grep -q 'has no table attacks' "$dir/out" || fail "table: $(cat "$dir/out")"
exit 0
