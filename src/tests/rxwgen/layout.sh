#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The output of rxwgen for every interface file of the tree is formatted as by clang-format.

top=$(cd "${top_srcdir:-$(dirname "$0")/../../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
rxwgen=$build/src/rxwgen/rxwgen
status=0

clang_format=
for name in clang-format-14 clang-format; do
	if "$name" --version 2> /dev/null | grep -q 'version 14[.]'; then
		clang_format=$name
		break
	fi
done
if [ -z "$clang_format" ]; then
	echo "no clang-format 14 (Debian package: clang-format-14)"
	exit 77
fi

[ -x "$rxwgen" ] || { echo "no $rxwgen: build it first"; exit 99; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cp "$top/.clang-format" "$dir"
cd "$dir" || exit 99
for file in "$top"/src/afs/*.xg "$top"/src/tests/*/*.xg "$top"/src/tests/system/*/*.xg "$top"/src/tests/rxwgen/golden/*.xg; do
	for options in '' '-b -i -x --pool'; do
		# shellcheck disable=SC2086 # options are words
		if ! "$rxwgen" $options "$file"; then
			echo "FAIL: rxwgen $options $file"
			status=1
		fi
		for made in *.h *.c; do
			"$clang_format" "$made" > formatted
			if ! diff -u "$made" formatted; then
				echo "FAIL: $made of rxwgen $options is not formatted"
				status=1
			fi
			rm -f "$made"
		done
	done
done
exit $status
