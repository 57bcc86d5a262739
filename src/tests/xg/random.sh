#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Round trips as in roundtrip.sh for the types of random interfaces (src/tests/rxwgen/interface.py).
# RXW_TEST_SEED: the first seed; RXW_RUNS: the number of interfaces.

here=$(cd "$(dirname "$0")" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
command -v python3 > /dev/null || { echo 'python3 is not installed'; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99

. "$here/foreign.sh"
echo 'int one(void) { return 1; }' > one.c
${CC:-cc} -shared -fPIC -o one.so one.c || exit 99
! foreign "$dir/one.so" || exit 77

first=${RXW_TEST_SEED:-$(date +%j%H%M)}
first=$(echo "$first" | sed 's/^0*\(.\)/\1/')
runs=${RXW_RUNS:-8}
echo "RXW_TEST_SEED=$first replays this run"

# round SEED [-b]: prints the reason and returns 1 on failure.
round() {
	# shellcheck disable=SC2086 # $2 may be empty
	"$build/src/rxwgen/rxwgen" -w -x $2 x.xg > log 2>&1 &&
		${CC:-cc} -w -std=gnu17 -D_GNU_SOURCE -O0 -fPIC -shared -I"$here/../../rx/include" -I"$here/../../rx" \
			-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free -o x.so \
			"$here/heap.c" "$here/../../rx/base/xdr.c" x.xdr.c >> log 2>&1 &&
		python3 -B "$here/roundtrip.py" x.xg "$dir/x.so" --values 100 --seed "$1" >> log 2>&1 &&
		return
	echo "FAIL: interface $1, rxwgen $2"
	tail -n 20 log | cut -c1-1000
	return 1
}

status=0
seed=$first
while [ "$seed" -lt $((first + runs)) ]; do
	python3 -B "$here/../rxwgen/interface.py" "$seed" > x.xg || exit 99
	{ round "$seed" && round "$seed" -b; } || status=1
	seed=$((seed + 1))
done
[ $status -ne 0 ] || echo "$runs random interfaces pass the round trips"
exit $status
