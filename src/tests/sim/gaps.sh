#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The protocol's work for acknowledgements must not grow with the window: instructions of src/rx for each packet of a
# bulk reply with 8,192 packets in flight, compared with a window of 255 without losses. At most 1.1 times as many with
# 1 % of the packets missing, and 1.5 times with 10 %. usage: gaps.sh; top_builddir is the build folder.

set -u
export LC_ALL=C
program=${top_builddir:-.}/src/tests/sim/gaps
command -v valgrind > /dev/null && command -v callgrind_annotate > /dev/null ||
	{ echo "SKIP: no program valgrind (package valgrind)"; exit 77; }
[ -x "$program" ] || { echo "SKIP: $program is not built"; exit 77; }
if nm "$program" 2> /dev/null | grep -q -e __asan_init -e __tsan_init; then
	echo "SKIP: the build has a sanitizer, which valgrind cannot run"
	exit 77
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/rxw-gaps-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# instructions WINDOW LOSS MEGABYTES: prints those for a megabyte.
instructions() {
	valgrind --tool=callgrind --callgrind-out-file="$work/out" "$program" "$@" > "$work/log" 2>&1 ||
		{ cat "$work/log" >&2; return 1; }
	callgrind_annotate --auto=no --threshold=100 "$work/out" |
		awk -v mb="$3" '/^ *[0-9,]+ \(.*src\/rx\// { gsub(",", "", $1); sum += $1 }
			END { printf "%d\n", sum / mb }'
}

narrow=$(instructions 255 0 15) || exit 1
few=$(instructions 8192 10 100) || exit 1
many=$(instructions 8192 100 80) || exit 1
echo "instructions for each MB: 255 without loss $narrow; 8,192 with 1 % $few, with 10 % $many"
[ "$narrow" -gt 0 ] || { echo "SKIP: the build has no debugging information"; exit 77; }
[ $((few * 10)) -le $((narrow * 11)) ] && [ $((many * 10)) -le $((narrow * 15)) ] ||
	{ echo "FAIL: more than 1.1 and 1.5 times the first"; exit 1; }
