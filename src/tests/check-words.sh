#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Spelling (British, -ise; doc/words.txt has the project's own words) and style of documents, man pages and NEWS.
#
#   check-words.sh            all of them, but for the style of the files that words.py lists
#   check-words.sh FILE...    these, each completely

top=${top_srcdir:-$(dirname "$0")/../..}

if ! command -v python3 > /dev/null 2>&1; then
	echo "SKIP: python3 was not found (Debian package: python3)"
	exit 77
fi
if ! command -v aspell > /dev/null 2>&1; then
	echo "SKIP: aspell was not found (Debian packages: aspell, aspell-en)"
	exit 77
fi
if ! aspell dicts | grep -q '^en_GB-ise$'; then
	echo "SKIP: aspell has no British dictionary, en_GB-ise (Debian package: aspell-en)"
	exit 77
fi
exec python3 -B "$top/src/tests/words.py" "$top" "$@"
