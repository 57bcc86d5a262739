#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each bad/NAME.xg is rejected with the messages in bad/NAME.txt and without an output file. bad/NAME.args
# contains further options. RXW_UPDATE=1 writes the messages instead; review them before a commit.

top=$(cd "${top_srcdir:-$(dirname "$0")/../../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
rxwgen=$build/src/rxgen/rxwgen
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0
count=0

mkdir "$dir/out"
cd "$top/src/tests/rxgen/bad" || exit 99
for input in *.xg; do
	name=${input%.xg}
	args=
	[ ! -f "$name.args" ] || args=$(cat "$name.args")
	# shellcheck disable=SC2086 # args are words
	"$rxwgen" $args -h -o "$dir/out/x.h" -M "$dir/out/x.d" "$input" > "$dir/stdout" 2> "$dir/messages"
	code=$?
	if [ -n "$RXW_UPDATE" ]; then
		cp "$dir/messages" "$name.txt"
	elif ! diff -u "$name.txt" "$dir/messages"; then
		echo "FAIL: $input: messages differ from $name.txt"
		status=1
	fi
	[ $code -eq 1 ] || { echo "FAIL: $input: exit status $code, not 1"; status=1; }
	[ ! -s "$dir/stdout" ] || { echo "FAIL: $input: unexpected standard output"; status=1; }
	count=$((count + 1))
done
for file in "$dir"/out/* "$dir"/out/.[!.]*; do
	[ ! -e "$file" ] || { echo "FAIL: a rejected input left ${file##*/}"; status=1; }
done
[ $count -ge 100 ] || { echo "FAIL: only $count inputs in bad/"; status=1; }
[ $status -ne 0 ] || echo "$count invalid inputs are rejected with the expected messages"
exit $status
