#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the fuzz targets of all decoders and all stubs with address and undefined sanitizers: with
# libFuzzer if clang has it, otherwise by mutations without coverage.
#
# usage: libfuzzer.sh BUILD [SECONDS]
# SECONDS is the time for the decoders, default 60; the stubs get a third of it. BUILD must be built:
# its generated code is used. Findings are stored in BUILD/fuzz-xg.

top=$(cd "$(dirname "$0")/../../.." && pwd) || exit 99
build=$(cd "$1" && pwd) || exit 99
. "$top/src/tests/robustness/fuzz/links.sh"
seconds=${2:-60}
dir=$build/fuzz-xg
rm -rf "$dir" && mkdir -p "$dir/corpus-types" "$dir/corpus-stubs" || exit 99
make -s -C "$build" src/tests/xg/types.h src/tests/xg/stubs.h src/tests/xg/short/all-types.xdr.c \
	src/tests/xg/short/all-types.cs.c src/tests/xg/short/all-types.ss.c > "$dir/make.log" 2>&1 || {
	tail -n 20 "$dir/make.log"
	exit 1
}

: "${ASAN_OPTIONS:=detect_leaks=1}"
: "${UBSAN_OPTIONS:=print_stacktrace=1}"
export ASAN_OPTIONS UBSAN_OPTIONS

# compile OBJECTS COMPILER FLAGS...: the files that both targets share.
compile() {
	objects=$1
	shift
	mkdir "$dir/$objects" && cd "$dir/$objects" || return
	"$@" $flags -c "$top"/src/tests/xg/decoders.c "$top"/src/tests/xg/heap.c "$top"/src/tests/xg/stream.c \
		"$top"/src/rx/base/xdr.c "$top"/src/rx/base/hash.c "$top"/src/rx/rpc/*.c \
		"$build"/src/afs/*.xdr.c "$build"/src/afs/*.cs.c "$build"/src/afs/*.ss.c \
		"$build"/src/tests/xg/short/all-types.*.c
}
flags="-g -O1 -std=gnu17 -D_GNU_SOURCE -include $build/config.h -fno-sanitize-recover=all -I$top/src/rx/include -I$top/src/rx
	-I$top/src -I$top/src/tests/xg -I$build/src -I$build/src/tests/xg -I$build"
wrap=-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free

# fuzzer TARGET SECONDS: libFuzzer.
fuzzer() {
	python3 -B "$top/src/tests/robustness/fuzz/inputs.py" unpack "$1" "$dir/inputs-$1" || return
	# shellcheck disable=SC2086
	$clang $flags -fsanitize=fuzzer,address,undefined $wrap -o "$dir/$1" "$top/src/tests/xg/fuzz_$1.c" \
		"$dir"/fuzzer/*.o -pthread || return
	"$dir/$1" -max_total_time="$2" -max_len=4096 -artifact_prefix="$dir/$1-" -print_final_stats=1 \
		"$dir/corpus-$1" "$dir/inputs-$1" > "$dir/$1.log" 2>&1
	status=$?
	grep -E 'stat::number_of_executed_units|ERROR|SUMMARY|does not hold' "$dir/$1.log" | sed "s/^/$1: /"
	[ $status -eq 0 ] || tail -n 40 "$dir/$1.log"
	return $status
}

# mutations TARGET SECONDS: mutations without coverage.
mutations() {
	# shellcheck disable=SC2086
	${CC:-cc} $flags -fsanitize=address,undefined $wrap -DRXW_TEST_SRCDIR="\"$top/src/tests\"" \
		-o "$dir/$1" "$top/src/tests/xg/fuzz_$1.c" "$top/src/tests/robustness/fuzz/replay.c" \
		"$dir"/mutations/*.o -pthread &&
		RXW_FUZZ_SECONDS=$2 RXW_FUZZ_KEEP=$dir/$1-input "$dir/$1"
}

clang=${CLANG:-clang}
if links_targets "$clang" "$dir/there" > "$dir/compile.log" 2>&1 &&
	compile fuzzer "$clang" -fsanitize=fuzzer-no-link,address,undefined > "$dir/compile.log" 2>&1; then
	way=fuzzer
else
	echo "no libFuzzer here ($(tail -n 1 "$dir/compile.log")): mutations without coverage instead"
	way=mutations
	# shellcheck disable=SC2086
	compile mutations ${CC:-cc} -fsanitize=address,undefined > "$dir/compile.log" 2>&1 || {
		tail -n 20 "$dir/compile.log"
		exit 1
	}
fi
cd "$dir" && $way types "$seconds" && $way stubs $(((seconds + 2) / 3))
