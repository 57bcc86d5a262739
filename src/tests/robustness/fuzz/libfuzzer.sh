#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# All fuzz targets under address and undefined sanitizers: with libFuzzer where clang has it, else by
# mutations without coverage. Those of generated code (types, stubs) are built by ../../xg/libfuzzer.sh.
#
# usage: libfuzzer.sh BUILD [SECONDS for each target, default 20] [TARGET...]
# BUILD is configured and built. RXW_FUZZ_JOBS of them run at a time (1). RXW_FUZZ_SEED makes a run
# that can be repeated (else each is another one). RXW_FUZZ_CORPUS=FOLDER keeps what was found there,
# a folder for each target. RXW_FUZZ_CLASS_SECONDS: for each target of the security classes, where that is
# more. A finding stays in BUILD/fuzz, and
# `src/tests/robustness/fuzz/fuzz_NAME FILE` of a build replays it.

export LC_ALL=C
top=$(cd "$(dirname "$0")/../../../.." && pwd) || exit 99
[ -f "${1:-}/config.h" ] || { echo "usage: libfuzzer.sh BUILD [SECONDS] [TARGET...]" >&2; exit 99; }
build=$(cd "$1" && pwd) || exit 99
. "$top/src/tests/robustness/fuzz/links.sh"
usual=${2:-20}
shift
[ $# -eq 0 ] || shift
: "${RXW_FUZZ_JOBS:=1}" "${ASAN_OPTIONS:=detect_leaks=1}" "${UBSAN_OPTIONS:=print_stacktrace=1}"
export ASAN_OPTIONS UBSAN_OPTIONS
dir=$build/fuzz
rm -rf "$dir" && mkdir -p "$dir/obj" || exit 99
corpus=${RXW_FUZZ_CORPUS:-$dir/corpus}
if [ $# -eq 0 ]; then
	for f in "$top"/src/tests/robustness/fuzz/fuzz_*.c; do
		f=${f##*/fuzz_}
		set -- "$@" "${f%.c}"
	done
	set -- "$@" types
fi

flags="-g -O1 -std=gnu17 -D_GNU_SOURCE -include $build/config.h -fno-strict-aliasing -fno-sanitize-recover=all
	-I$top/src/rx/include -I$top/src/client/include -I$top/src/rx -I$top/src -I$build/src -DRXW_TEST_SRCDIR=\"$top/src/tests\"
	-DTOOLS_SERVER_CONFIG=\"/dev/null\""
wrap=-Wl,--wrap=clock_gettime,--wrap=nanosleep,--wrap=pthread_create,--wrap=rxw_random
crypto=$(pkg-config --libs libcrypto krb5 krb5-gssapi 2> /dev/null || echo -lcrypto -lkrb5 -lgssapi_krb5)
inih=$(pkg-config --libs inih 2> /dev/null || echo -linih)
jansson=$(pkg-config --libs jansson 2> /dev/null || echo -ljansson)

# compile COMPILER FLAGS...: what the targets look into, each file once.
compile() {
	cd "$dir/obj" || return
	# shellcheck disable=SC2086 # flags are words
	for f in $(find "$top"/src/rx/base "$top"/src/rx/proto "$top"/src/rx/engine "$top"/src/rx/io \
			"$top"/src/rx/rpc "$top"/src/rx/keys "$top"/src/rx/rxkad "$top"/src/rx/rxgk "$top"/src/rx/token -name '*.c') \
		"$top/src/afs/dir.c" "$top/src/client/cache/names.c" "$top/src/fileserver/guard/acl.c" "$top/src/volume/acl.c" \
		"$top/src/volume/dump/dump_read.c" "$top/src/volume/store/data/data_map.c" \
		"$top/src/volume/store/db/record.c" "$top/src/volume/store/dir/pages.c" \
		"$top"/src/volume/store/disk/[!l]*.c "$top/src/volume/store/format.c" \
		"$top/src/tests/volume/store/crashdisk.c" \
		"$top"/src/program/options.c \
		"$top"/src/program/number.c "$top"/src/program/message.c \
		"$top"/src/rxwgen/[a-z]*/*.c "$top/src/tests/robustness/fuzz/world.c" \
		"$top/src/tests/support/host.c"; do
		o=${f#"$top/src/"}
		"$@" $flags -c -o "$(echo "${o%.c}" | tr / -).o" "$f" || return
	done
}

# objects NAME: of the files above those that the target needs.
objects() {
	case $1 in
	acl) echo "$dir/obj/fileserver-guard-acl.o" "$dir/obj/volume-acl.o" ;;
	conn) echo "$dir"/obj/rx-base-*.o "$dir"/obj/rx-proto-*.o "$dir/obj/tests-support-host.o" ;;
	config) echo "$dir"/obj/rx-*.o "$dir"/obj/program-*.o "$inih" "$crypto" -pthread ;;
	dir) echo "$dir/obj/afs-dir.o" "$dir/obj/rx-base-hash.o" ;;
	dump) echo "$dir/obj/afs-dir.o" "$dir/obj/rx-base-hash.o" "$dir/obj/volume-acl.o" "$dir/obj/volume-dump-dump_read.o" ;;
	meta)
		echo "$dir/obj/afs-dir.o" "$dir/obj/rx-base-hash.o" "$dir/obj/volume-acl.o" "$dir"/obj/volume-store-*.o \
			"$dir/obj/tests-volume-store-crashdisk.o" -lsqlite3 -pthread
		;;
	endpoint | live)
		echo "$dir"/obj/rx-base-*.o "$dir"/obj/rx-proto-*.o "$dir"/obj/rx-engine-*.o \
			"$dir/obj/rx-io-io_set.o" \
			"$dir/obj/tests-robustness-fuzz-world.o" $wrap -pthread
		;;
	keytab | rxgk | rxkad) echo "$dir"/obj/rx-*.o "$crypto" -pthread ;;
	names) echo "$dir/obj/afs-dir.o" "$dir/obj/client-cache-names.o" "$dir/obj/rx-base-hash.o" ;;
	xg) echo "$dir"/obj/rxwgen-*.o "$dir/obj/rx-base-hash.o" "$jansson" ;;
	*) echo "$dir"/obj/rx-base-*.o "$dir"/obj/rx-proto-*.o ;;
	esac
}

# fuzzer NAME: with coverage.
fuzzer() {
	mkdir -p "$corpus/$1"
	python3 -B "$top/src/tests/robustness/fuzz/inputs.py" unpack "$1" "$dir/inputs/$1" || return
	# A run of a whole endpoint has thousands of features: looking for rare ones among them was a third of
	# the time.
	entropic=1
	case $1 in
	endpoint | live | conn) entropic=0 ;;
	esac
	# shellcheck disable=SC2046,SC2086
	$clang $flags -fsanitize=fuzzer,address,undefined -o "$dir/$1" "$top/src/tests/robustness/fuzz/fuzz_$1.c" \
		$(objects "$1") &&
		(cd "$dir" && "./$1" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=2048 \
			-artifact_prefix="$1-" -print_final_stats=1 -entropic=$entropic \
			${RXW_FUZZ_SEED:+-seed="$RXW_FUZZ_SEED"} "$corpus/$1" "inputs/$1")
}

# mutations NAME: without.
mutations() {
	# shellcheck disable=SC2046,SC2086
	${CC:-cc} $flags -fsanitize=address,undefined -o "$dir/$1" "$top/src/tests/robustness/fuzz/fuzz_$1.c" \
		"$top/src/tests/robustness/fuzz/replay.c" $(objects "$1") &&
		RXW_FUZZ_SECONDS=$seconds RXW_FUZZ_KEEP=$dir/$1-input "$dir/$1"
}

# target NAME: one target, from compiling to its verdict.
target() {
	seconds=$usual
	case $1 in
	keytab | rxgk | rxkad) [ "${RXW_FUZZ_CLASS_SECONDS:-0}" -le "$usual" ] || seconds=$RXW_FUZZ_CLASS_SECONDS ;;
	esac
	if [ "$1" = types ]; then
		sh "$top/src/tests/xg/libfuzzer.sh" "$build" "$seconds"
	else
		$way "$1"
	fi > "$dir/$1.log" 2>&1
	status=$?
	if [ $status -eq 0 ]; then
		echo "PASS: $1 ($(sed -n 's/.*stat::number_of_executed_units: */ /p; s/.* inputs, / /p' \
			"$dir/$1.log" | tr -d '\n' | sed 's/^ //') inputs, $seconds s)"
	else
		tail -n 60 "$dir/$1.log"
		echo "FAIL: $1, status $status: $dir/$1.log, $dir/$1-*"
	fi
	return $status
}

clang=${CLANG:-clang}
if links_targets "$clang" "$dir/obj/there" > "$dir/compile.log" 2>&1 &&
	compile "$clang" -fsanitize=fuzzer-no-link,address,undefined > "$dir/compile.log" 2>&1; then
	way=fuzzer
else
	echo "no libFuzzer here ($(grep -m 1 error "$dir/compile.log")): mutations without coverage instead"
	way=mutations
	compile "${CC:-cc}" -fsanitize=address,undefined > "$dir/compile.log" 2>&1 || {
		tail -n 20 "$dir/compile.log"
		exit 1
	}
fi
# The last of RXW_FUZZ_JOBS lines takes each so many-th target.
lane=0
while [ $lane -lt "$RXW_FUZZ_JOBS" ]; do
	(
		i=0 bad=0
		for name in "$@"; do
			[ $((i % RXW_FUZZ_JOBS)) -ne $lane ] || target "$name" || bad=1
			i=$((i + 1))
		done
		exit $bad
	) &
	lanes="${lanes:-} $!"
	lane=$((lane + 1))
done
status=0
for pid in $lanes; do
	wait "$pid" || status=1
done
exit $status
