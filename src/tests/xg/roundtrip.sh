#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Test of an interface file: random values of each type pass the generated coders and equal python's XDR.
# RXW_XG_VALUES: values of each type, default 10000, and a tenth of it for long field names.
# RXW_TEST_SEED: the seed.
#
# usage: roundtrip.sh FILE.xg    (run by `make check` in the build folder)

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
