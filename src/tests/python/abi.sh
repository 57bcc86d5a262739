#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What the Python package knows about the C interface is what the headers say.

. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2086 # CC may have options
python3 "$here/abi.py" "$top_srcdir" ${CC:-cc}
