#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Calls between Python and C, and with asyncio.

. "$(dirname "$0")/lib.sh"
modules=
for file in "$top_srcdir"/src/afs/*.xg "$top_srcdir/src/tests/xg/all-types.xg"; do
	module "$file"
	name=$(basename "$file" .xg)
	modules="$modules $(echo "$name" | tr - _)"
done
cd "$work" || exit 99
# shellcheck disable=SC2086 # a list
python3 -X faulthandler "$here/calls.py" "$top_builddir/src/tests/python/peer" $modules
