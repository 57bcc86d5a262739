#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Names of functions and files, and assertions: runs check-names.py on the sources.

export LC_ALL=C
top=${top_srcdir:-$(dirname "$0")/../..}
command -v python3 > /dev/null 2>&1 || { echo "SKIP: python3 was not found (Debian package: python3)"; exit 77; }
exec python3 -B "$top/src/tests/check-names.py" "$top" "$@"
