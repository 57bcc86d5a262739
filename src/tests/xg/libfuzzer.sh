#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The fuzz target over all decoders, under address and undefined sanitizers: with libFuzzer where
# clang has it, else by mutations without coverage.
#
# usage: libfuzzer.sh BUILD [SECONDS, default 60]
# BUILD is configured and built: its generated code is used. A finding stays in BUILD/fuzz-types.

top=$(cd "$(dirname "$0")/../../.." && pwd) || exit 99
build=$(cd "$1" && pwd) || exit 99
seconds=${2:-60}
dir=$build/fuzz-types
rm -rf "$dir" && mkdir -p "$dir/corpus" || exit 99
make -s -C "$build" src/tests/xg/types.h src/tests/xg/short/all-types.xdr.c > "$dir/make.log" 2>&1 || {
	tail -n 20 "$dir/make.log"
	exit 1
}

: "${ASAN_OPTIONS:=detect_leaks=1}"
: "${UBSAN_OPTIONS:=print_stacktrace=1}"
export ASAN_OPTIONS UBSAN_OPTIONS

# compile NAME COMPILER FLAGS...
compile() {
	name=$1
	shift
	"$@" -g -O1 -std=gnu17 -D_GNU_SOURCE -include "$build/config.h" -fno-sanitize-recover=all \
		-I"$top/src/rx" -I"$top/src" -I"$top/src/tests/xg" -I"$build/src" -I"$build/src/tests/xg" -I"$build" \
		-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free -o "$dir/$name" \
		"$top"/src/tests/xg/fuzz_types.c "$top"/src/tests/xg/decoders.c "$top"/src/tests/xg/heap.c \
		"$top"/src/tests/xg/stream.c "$top"/src/rx/base/xdr.c "$top"/src/rx/rpc/window.c \
		"$build"/src/afs/*.xdr.c "$build"/src/tests/xg/short/all-types.xdr.c
}

cd "$dir" || exit 99
if compile fuzzer "${CLANG:-clang}" -fsanitize=fuzzer,address,undefined > compile.log 2>&1; then
	./fuzzer -max_total_time="$seconds" -max_len=4096 -artifact_prefix="$dir/" -print_final_stats=1 \
		corpus "$top/src/tests/fuzz/corpus/types" > run.log 2>&1
	status=$?
	grep -E 'stat::number_of_executed_units|ERROR|SUMMARY|does not hold' run.log
	[ $status -eq 0 ] || tail -n 40 run.log
	exit $status
fi
echo "no libFuzzer here ($(tail -n 1 compile.log)): mutations without coverage instead"
compile mutations "${CC:-cc}" -fsanitize=address,undefined "$top/src/tests/fuzz/replay.c" \
	"$top/src/rx/base/hash.c" -DRXW_TEST_SRCDIR="\"$top/src/tests\"" > compile.log 2>&1 || {
	tail -n 20 compile.log
	exit 1
}
RXW_FUZZ_SECONDS=$seconds RXW_FUZZ_KEEP=$dir/input ./mutations
