#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The types of generated Python modules, against an independent XDR. RXW_TEST_SEED: another seed.

. "$(dirname "$0")/lib.sh"
for file in "$top_srcdir"/src/afs/*.xg "$top_srcdir/src/tests/xg/all-types.xg"; do
	module "$file"
	python3 "$here/coders.py" "$file" "$work" 200 ${RXW_TEST_SEED:+"$RXW_TEST_SEED"} || exit 1
done
