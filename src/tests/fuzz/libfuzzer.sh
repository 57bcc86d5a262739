#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds the fuzz targets for libFuzzer with clang, in a new temporary folder, and runs each of them.
# usage: libfuzzer.sh [SECONDS for each target, default 60] [TARGET...]
# Findings stay in the folder that is printed; `fuzz_NAME FILE` of `make check` replays one.

top=$(cd "$(dirname "$0")/../../.." && pwd) || exit 99
seconds=${1:-60}
[ $# -eq 0 ] || shift
CLANG=${CLANG:-clang}
dir=$(mktemp -d "${TMPDIR:-/tmp}/rxwire-fuzz-XXXXXX") || exit 99

if [ $# -eq 0 ]; then
	for f in "$top"/src/tests/fuzz/fuzz_*.c; do
		f=${f##*/fuzz_}
		set -- "$@" "${f%.c}"
	done
fi
flags="-g -O1 -std=gnu17 -D_GNU_SOURCE -DHAVE_SYS_RANDOM_H -DHAVE_GETRANDOM -I$top/src/rx -I$top/src"
status=0
for name in "$@"; do
	compiler=
	[ "$name" != xg ] || compiler=$(ls "$top"/src/rxgen/read.c "$top"/src/rxgen/[a-z]*/*.c)
	# shellcheck disable=SC2086 # flags and sources are words
	$CLANG $flags -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o "$dir/$name" \
		"$top/src/tests/fuzz/fuzz_$name.c" "$top"/src/rx/base/*.c \
		"$top"/src/rx/proto/*.c $compiler || exit 1
	mkdir "$dir/corpus-$name"
	(cd "$dir" && "./$name" -max_total_time="$seconds" -artifact_prefix="$name-" -print_final_stats=1 \
		"corpus-$name" "$top/src/tests/fuzz/corpus/$name" > "$name.log" 2>&1) || status=1
	grep -E 'stat::number_of_executed_units|ERROR|SUMMARY|does not hold' "$dir/$name.log" |
		sed "s/^/$name: /"
done
if [ $status -eq 0 ]; then
	rm -rf "$dir"
else
	echo "findings and logs: $dir"
fi
exit $status
