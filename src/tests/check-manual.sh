#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each public function is in a man page of section 3, with its prototype. The synopses agree with the headers. Each
# public constant is in some page. Neither groff nor mandoc reports a fault in a page.

export LC_ALL=C
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

# The page that names a function also has its prototype.
for page in "$top"/doc/man/rxw*.3; do
	awk '/^\.SH SYNOPSIS/ { on = 1; next } /^\.SH/ { on = 0 } on' "$page" > "$dir/synopsis"
	for f in $(awk '/^\.SH NAME/ { on = 1; next } /^\.SH/ { on = 0 } on { sub(/\\-.*/, ""); print }' "$page" |
		tr -c 'a-z0-9_' '\n' | grep '^rxw_'); do
		echo "$functions" | grep -qx "$f" || continue
		if ! grep -q "[ *\"]$f(" "$dir/synopsis"; then
			echo "FAIL: ${page##*/} names $f without its prototype"
			status=1
		fi
	done
done

# Constants of the public headers: enumerations and macros, without include guards and counts of entries.
cat "$top"/doc/man/* | sed 's/\\-/-/g' | tr -c 'A-Z0-9_' '\n' | sort -u > "$dir/words"
constants=$(cat "$top"/src/rx/rxwire/*.h | awk '
	/^#define RXWIRE_|^#define [A-Z0-9_]*\(/ { next }
	/^#define RXW_/ { print $2; next }
	/^enum .*\{/ { on = 1 }
	on && match($0, /^[ \t]+RXW_[A-Z0-9_]+/) { name = substr($0, RSTART, RLENGTH); gsub(/[ \t]/, "", name); print name }
	/\};/ { on = 0 }' | grep -v '_COUNT$' | sort -u)
for name in $constants; do
	if ! grep -qx "$name" "$dir/words"; then
		echo "FAIL: no page in doc/man explains $name"
		status=1
	fi
done
[ "$(echo "$constants" | wc -l)" -ge 100 ] || { echo "FAIL: too few constants found"; status=1; }

# Any warning of a formatter is a failure.
for page in "$top"/doc/man/*; do
	if command -v mandoc > /dev/null 2>&1; then
		mandoc -Tlint -Wwarning "$page" 2>&1 | grep . && status=1
	fi
	if command -v groff > /dev/null 2>&1; then
		groff -t -man -Tutf8 -ww -rLL=100n "$page" 2>&1 > /dev/null | sed "s|^|${page##*/}: |" |
			grep . && status=1
	fi
done
for tool in mandoc groff; do
	command -v $tool > /dev/null 2>&1 || echo "left out: $tool was not found (Debian package: $tool)"
done

# A .BI line is words in alternating fonts, joined without blanks; quotes keep blanks inside a word.
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
[ "$n" -ge 60 ] || { echo "FAIL: only $n prototypes found in doc/man"; status=1; }
[ $status -ne 0 ] || echo "man pages name $(echo "$functions" | wc -l) functions, $n prototypes agree;" \
	"they explain $(echo "$constants" | wc -l) constants"
exit $status
