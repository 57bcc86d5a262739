#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Each public function is in a man page of section 3, with its prototype. The synopses agree with the headers. Each
# public constant is in some page. The members of public structures are shown as in the headers. rxwire(3) lists the
# functions by page. Neither groff nor mandoc reports a fault in a page.

export LC_ALL=C
top=${top_srcdir:-$(dirname "$0")/../..}
CC=${CC:-cc}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0

# Names that a page describes.
names() {
	awk '/^\.SH NAME/ { on = 1; next } /^\.SH/ { on = 0 } on { sub(/\\-.*/, ""); print }' "$1" |
		tr -c 'a-z0-9_' '\n' | grep '^rxw_'
}

for page in "$top"/doc/man/rxw*.3; do
	names "$page"
done | sort -u > "$dir/named"
functions=$(sed -n 's/^[[:space:]]*\(rxw_[a-z0-9_]*\);.*/\1/p' "$top/src/rx/librxwire.map"
	sed -n 's/^\(RXW_MUST_USE int\|void\) \(rxw_[a-z0-9_]*\)(.*/\2/p' "$top/src/rx/include/rxwire/observe.h")
for f in $functions; do
	if ! grep -qx "$f" "$dir/named"; then
		echo "FAIL: no man page in doc/man names $f"
		status=1
	fi
done

# The page that names a function also has its prototype.
for page in "$top"/doc/man/rxw*.3; do
	awk '/^\.SH SYNOPSIS/ { on = 1; next } /^\.SH/ { on = 0 } on' "$page" > "$dir/synopsis"
	for f in $(names "$page"); do
		if grep -q "[ *\"]$f(" "$dir/synopsis"; then
			base=${page##*/}
			echo "${base%.3} $f" >> "$dir/pages"
		elif echo "$functions" | grep -qx "$f"; then
			echo "FAIL: ${page##*/} names $f without its prototype"
			status=1
		fi
	done
done

# Constants of the public headers: enumerations and macros, without include guards and counts of entries.
cat "$top"/doc/man/* | sed 's/\\-/-/g' | tr -c 'A-Z0-9_' '\n' | sort -u > "$dir/words"
constants=$(cat "$top"/src/rx/include/rxwire/*.h | awk '
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

# prototypes PAGE...: those of the synopses. A .BI line is words in alternating fonts, joined without blanks; quotes keep
# blanks inside a word.
prototypes() {
	for page in "$@"; do
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
}
{
	printf '#include <rxwire/rxwire.h>\n#include <rxwire/observe.h>\n'
	echo '#include <rxwire/afs.h>'
	echo '#include <rxwire/stub.h>'
	prototypes "$top"/doc/man/rxw*.3
} > "$dir/synopsis.c"
n=$(grep -c '(.*[,;]$' "$dir/synopsis.c")
if ! $CC -std=gnu17 -Wall -Werror -I"$top/src/rx/include" -fsyntax-only "$dir/synopsis.c" > "$dir/log" 2>&1; then
	echo "FAIL: the synopses of doc/man differ from the headers"
	cat "$dir/log"
	status=1
fi
[ "$n" -ge 60 ] || { echo "FAIL: only $n prototypes found in doc/man"; status=1; }

# Members of structures, one a line: "FILE STRUCTURE MEMBER". Comments and layout do not count.
members() {
	awk '
		FNR == 1 { name = "" }
		/^struct rxw_[a-z_]* \{/ { name = $2; text = ""; next }
		name != "" && /^\};/ {
			gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ", text)
			gsub(/[ \t\n]+/, " ", text)
			gsub(/ ?\* ?/, "*", text)
			gsub(/ ?\( ?/, "(", text)
			gsub(/ ?\) ?/, ")", text)
			gsub(/ ?, ?/, ",", text)
			file = FILENAME
			sub(/.*\//, "", file)
			n = split(text, member, / ?; ?/)
			for (i = 1; i < n; i++) {
				sub(/^ /, "", member[i])
				print file, name, member[i]
			}
			name = ""
		}
		name != "" { text = text " " $0 }' "$@"
}

# A man page shows each public structure as its header declares it. The members of rxw_xdr are private.
members "$top"/src/rx/include/rxwire/*.h > "$dir/declared"
for page in "$top"/doc/man/rxw*.3; do
	sed 's/\\-/-/g; s/\\e/\\/g' "$page" > "$dir/${page##*/}"
	members "$dir/${page##*/}"
done > "$dir/shown"
for name in $(awk '{ print $2 }' "$dir/declared" | uniq); do
	case $name in rxw_xdr) continue ;; esac
	if ! grep -q "^[^ ]* $name " "$dir/shown"; then
		echo "FAIL: no page in doc/man shows the members of struct $name"
		status=1
	fi
done
for shown in $(awk '{ print $1 "/" $2 }' "$dir/shown" | uniq); do
	page=${shown%/*} name=${shown#*/}
	grep "^[^ ]* $name " "$dir/declared" | sed 's/^[^ ]* //' > "$dir/a"
	grep "^$page $name " "$dir/shown" | sed 's/^[^ ]* //' > "$dir/b"
	if ! diff "$dir/a" "$dir/b" > "$dir/log"; then
		echo "FAIL: struct $name in $page (>) differs from its header (<)"
		cat "$dir/log"
		status=1
	fi
done
structures=$(awk '{ print $2 }' "$dir/shown" | sort -u | wc -l)
[ "$structures" -ge 25 ] || { echo "FAIL: only $structures structures found in doc/man"; status=1; }

# rxwire(3) lists each function with the page that has it.
awk '
	/^\.SH FUNCTIONS/ { on = 1; next }
	/^\.SH/ { on = 0 }
	!on { next }
	/ \(3\)$/ { page = $(NF - 1) }
	/^\.BR rxw_[a-z0-9_]* \(\)/ { print page, $2 }' "$top/doc/man/rxwire.3" | sort > "$dir/listed"
sort "$dir/pages" > "$dir/a"
if ! diff "$dir/a" "$dir/listed" > "$dir/log"; then
	echo "FAIL: the list of functions in rxwire.3 (>) differs from the pages (<)"
	cat "$dir/log"
	status=1
fi

# librxafs(3) has all functions of its library with their prototypes, and all constants.
{
	echo '#include <rxafs/rxafs.h>'
	prototypes "$top/doc/man/librxafs.3"
} > "$dir/librxafs.c"
if ! $CC -std=gnu17 -Wall -Werror -I"$top/src/rx/include" -I"$top/src/client/include" -fsyntax-only "$dir/librxafs.c" > "$dir/log" 2>&1; then
	echo "FAIL: the synopsis of librxafs.3 differs from the headers"
	cat "$dir/log"
	status=1
fi
for f in $(sed -n 's/^[[:space:]]*\(rxafs_[a-z0-9_]*\);.*/\1/p' "$top/src/client/librxafs.map"); do
	grep -q "[ *]$f(" "$dir/librxafs.c" || { echo "FAIL: librxafs.3 has no prototype of $f"; status=1; }
done
tr -c 'A-Z0-9_' '\n' < "$top/doc/man/librxafs.3" | sort -u > "$dir/words"
for name in $(cat "$top"/src/client/include/rxafs/queue.h "$top"/src/client/include/rxafs/object.h |
	sed -n 's/^[[:space:]]*\(RXAFS_[A-Z_]*\).*/\1/p'); do
	grep -qx "$name" "$dir/words" || { echo "FAIL: librxafs.3 does not explain $name"; status=1; }
done

[ $status -ne 0 ] || echo "man pages name $(echo "$functions" | wc -l) functions, $n prototypes agree;" \
	"they explain $(echo "$constants" | wc -l) constants and show $structures structures"
exit $status
