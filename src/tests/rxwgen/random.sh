#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Code generated from random interfaces (interface.py) compiles without warnings and is formatted.
# RXW_TEST_SEED: the first seed; RXW_RUNS: the number of interfaces.

top=$(cd "${top_srcdir:-$(dirname "$0")/../../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
rxwgen=$build/src/rxwgen/rxwgen
CC=${CC:-cc}
status=0

python3 -c '' 2> /dev/null || { echo "no python3"; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
format=
for name in clang-format-14 clang-format; do
	if "$name" --version 2> /dev/null | grep -q 'version 14[.]'; then
		format="$name --style=file:$top/.clang-format"
	fi
done
first=${RXW_TEST_SEED:-$(date +%j%H%M)}
first=$(echo "$first" | sed 's/^0*//')
runs=${RXW_RUNS:-12}
echo "RXW_TEST_SEED=$first replays this run"

# With -w an unbounded array is a valid parameter, so that all shapes can be parameters.
seed=$first
while [ "$seed" -lt $((first + runs)) ]; do
	options=-w
	[ $((seed % 2)) -eq 0 ] || options="$options -b"
	[ $((seed / 2 % 2)) -eq 0 ] || options="$options -x"
	[ $((seed / 4 % 3)) -eq 0 ] || options="$options -n -P own"
	python3 -B "$top/src/tests/rxwgen/interface.py" "$seed" > x.xg || exit 99
	# shellcheck disable=SC2086 # options are words
	if ! "$rxwgen" $options x.xg > log 2>&1; then
		echo "FAIL: seed $seed, rxwgen $options: $(grep -A 2 error log)"
		status=1
	else
		for made in x.xdr.c x.cs.c x.ss.c; do
			$CC -std=gnu17 -Wall -Wextra -Wconversion -Wshadow -Werror -O1 -S -o /dev/null \
				-I"$top/src/rx/include" $made > log 2>&1 && continue
			echo "FAIL: seed $seed, rxwgen $options: $made does not compile"
			grep -E 'error|warning' log | head -n 5
			status=1
		done
		for made in x.h x.xdr.c x.cs.c x.ss.c; do
			[ -n "$format" ] || continue
			$format $made | cmp -s - $made && continue
			echo "FAIL: seed $seed, rxwgen $options: $made is not formatted"
			status=1
		done
	fi
	seed=$((seed + 1))
done
[ $status -ne 0 ] || echo "$runs random interfaces compile"
exit $status
