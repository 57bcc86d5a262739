#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# One interface file as a test: random values of each of its types, against python's XDR.
# RXW_XG_VALUES: how many of each type (10000; a tenth of it where only the names of fields are others);
# RXW_TEST_SEED: where they begin.
#
# usage: roundtrip.sh FILE.xg    (in the build folder, by `make check`)

here=$(cd "$(dirname "$0")" && pwd) || exit 99
command -v python3 > /dev/null || { echo 'python3 is not installed'; exit 77; }
case $1 in
*/all-types.xg) libraries='short.so long.so' ;;
*) libraries=interfaces.so ;;
esac
. "$here/foreign.sh"
for l in $libraries; do
	! foreign "$(pwd)/src/tests/xg/$l" || exit 77
	count=${RXW_XG_VALUES:-10000}
	[ "$l" != long.so ] || count=$(((count + 9) / 10))
	python3 -B "$here/roundtrip.py" "$1" "$(pwd)/src/tests/xg/$l" --values "$count" \
		${RXW_TEST_SEED:+--seed "$RXW_TEST_SEED"} || exit 1
done
