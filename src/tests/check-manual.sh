#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each public function is named in a man page of section 3, and the synopses there are those of the headers.

top=${top_srcdir:-$(dirname "$0")/../..}
CC=${CC:-cc}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0

for page in "$top"/doc/man/rxw*.3; do
	awk '/^\.SH NAME/ { on = 1; next } /^\.SH/ { on = 0 } on' "$page"
done | tr -c 'a-z0-9_' '\n' | sort -u > "$dir/named"
functions=$(sed -n 's/^[[:space:]]*\(rxw_[a-z0-9_]*\);.*/\1/p' "$top/src/rx/librxwire.map")
for f in $functions; do
	if ! grep -qx "$f" "$dir/named"; then
		echo "FAIL: no man page in doc/man names $f"
		status=1
	fi
done

# A line of .BI is words of alternating fonts, joined without blanks; quotes keep blanks inside a word.
{
	echo '#include <rxwire/rxwire.h>'
	for page in "$top"/doc/man/rxw*.3; do
		awk '
			/^\.SH SYNOPSIS/ { on = 1; next }
			/^\.(SH|fi)/ { on = 0 }
			!on || /#include/ { next }
			/^\.B / { print substr($0, 4) }
			/^\.BI / {
				text = substr($0, 5)
				quoted = 0
				line = ""
				for (i = 1; i <= length(text); i++) {
					c = substr(text, i, 1)
					if (c == "\"")
						quoted = !quoted
					else if (c != " " || quoted)
						line = line c
				}
				print line
			}' "$page"
	done
} > "$dir/synopsis.c"
n=$(grep -c '(.*[,;]$' "$dir/synopsis.c")
if ! $CC -std=gnu17 -Wall -Werror -I"$top/src/rx" -fsyntax-only "$dir/synopsis.c" > "$dir/log" 2>&1; then
	echo "FAIL: the synopses of doc/man differ from the headers"
	cat "$dir/log"
	status=1
fi
[ "$n" -ge 60 ] || { echo "FAIL: only $n prototypes were found in doc/man"; status=1; }
[ $status -ne 0 ] || echo "man pages name $(echo "$functions" | wc -l) functions; $n prototypes agree"
exit $status
