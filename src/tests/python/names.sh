#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxwgen --python renames what Python reserves.

. "$(dirname "$0")/lib.sh"
module "$here/renamed.xg" || exit 1
cd "$work" || exit 99
python3 "$here/names.py"
