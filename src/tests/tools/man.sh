# SPDX-License-Identifier: BSD-2-Clause
# Help texts and manual agree: each option in a program's help is in its man page and vice versa; each tunable is in
# rxwire.conf(5), with its range and default.

export LC_ALL=C
. "$top_srcdir/src/tests/tools/lib.sh"

man=$top_srcdir/doc/man

# options_of FILE: "--name" and "-x", one a line, of a help text above "Transport:".
options_of() {
	sed '/^Transport:/,$d' "$1" | sed -n 's/^  *\(-.*\)/\1/p' | sed 's/  .*//' |
		grep -oE -- '(^|[ ,])--?[A-Za-z][a-z-]*' | tr -d ' ,' | sort -u
}

# tags_of PAGE: the same from the tags after .TP in a man page.
tags_of() {
	sed -n '/^\.TP$/{n;p;}' "$man/$1" | sed 's/\\f.//g; s/\\-/-/g' |
		grep -oE -- '(^|[ ",])--?[A-Za-z][a-z-]*' | tr -d ' ",' | sort -u
}

# check PAGE HELP...: the page has the options of these help texts, and no others.
check() {
	page=$1
	shift
	: > "$work/options"
	for help; do
		options_of "$help" >> "$work/options"
	done
	sort -u -o "$work/options" "$work/options"
	tags_of "$page" > "$work/tags"
	[ "$(wc -l < "$work/options")" -ge 10 ] || fail "$page: the help shows too few options"
	for option in $(comm -23 "$work/options" "$work/tags"); do
		fail "$option is in the help, not in $page"
	done
	for option in $(comm -13 "$work/options" "$work/tags"); do
		fail "$option is in $page, not in the help"
	done
}

# help NAME COMMAND...
help() {
	name=$1
	shift
	"$@" --help > "$work/$name" || fail "$* --help ended with $?"
}
help server "$rxperf" server
help client "$rxperf" client
help afscp "$afscp"
help rxfsd "$rxfsd"
help rxwstat "$top_builddir/src/rxwstat/rxwstat"
python=${PYTHON3:-python3}
! command -v "$python" > /dev/null || help rxwplot "$python" -B "$top_builddir/src/rxwplot/rxwplot"
help rxpt "$top_builddir/src/rxpt/rxpt"
help rxvol "$top_builddir/src/rxvol/rxvol"
# Without libfuse they are not built.
if [ -x "$top_builddir/src/rxafs/rxafsctl" ]; then
	help rxafs "$top_builddir/src/rxafs/rxafs"
	help rxafsctl "$top_builddir/src/rxafs/rxafsctl"
fi
help rxwgen "$top_builddir/src/rxwgen/rxwgen"
# Options that are accepted without effect are in the last line there; two that are not accepted are only in the
# manual.
sed -n 's/^Accepted and without effect.*: /  /p' "$work/rxwgen" > "$work/accepted"
echo '  -u, -p' >> "$work/accepted"
check rxperf.1 "$work/server" "$work/client"
check afscp.1 "$work/afscp"
check rxfsd.8 "$work/rxfsd"
check rxwstat.1 "$work/rxwstat"
[ ! -e "$work/rxwplot" ] || check rxwplot.1 "$work/rxwplot"
check rxpt.8 "$work/rxpt"
check rxvol.8 "$work/rxvol"
if [ -e "$work/rxafsctl" ]; then
	check rxafs.1 "$work/rxafs"
	check rxafsctl.1 "$work/rxafsctl"
fi
check rxwgen.1 "$work/rxwgen" "$work/accepted"

# NAME DEFAULT of each tunable, from afscp's help; a text may continue in lines that are indented further.
sed '1,/^Transport:/d; /^Transport, /d; /^$/d' "$work/afscp" | awk '
	function show() {
		split(line, word, " ")
		preset = ""
		if (match(line, /\([^()]*\)$/))
			preset = substr(line, RSTART + 1, RLENGTH - 2)
		sub(/ .*/, "", preset)
		if (line != "")
			print substr(word[1], 3), preset
	}
	/^      --/ { show(); line = "" }
	{ line = line $0 }
	END { show() }' > "$work/tunables"
[ "$(wc -l < "$work/tunables")" -ge 20 ] || fail "too few tunables in the help"

# The entry of each tunable in one line, without fonts.
sed -n '/^\.SH TUNABLES/,/^\.SH EXAMPLE/p' "$man/rxwire.conf.5" | sed 's/\\f.//g; s/\\-/-/g' | awk '
	/^\.(TP|S)/ { if (entry ~ /^ \.BR/) print entry; entry = ""; next }
	{ entry = entry " " $0 }
	END { if (entry ~ /^ \.BR/) print entry }' > "$work/entries"
# Of the program: the class in its ELF header.
program=${afscp%/*}/.libs/${afscp##*/}
[ -e "$program" ] || program=$afscp
bits=$(($(od -An -tu1 -j4 -N1 "$program") * 32))
while read -r name preset; do
	entry=$(grep "^ \.BR $name \"" "$work/entries") || { fail "the tunable $name is not in rxwire.conf.5"; continue; }
	said=$("$afscp" --check-config "--$name" '?' 2>&1)
	range=$(echo "$said" | sed -n 's/.* from \([0-9]*[KMG]*\) to \([0-9]*[KMG]*\)\( ([^)]*)\)*\(, or [a-z]*\)*$/From \1 to \2\4;/p')
	case $entry in
	*"$range"*) ;;
	# With 32 bits no size exceeds that; the page has the bounds of 64 bits.
	*"${range%2147483647*}"*) [ "$bits" -eq 32 ] || fail "rxwire.conf.5 lacks the range of $name: $range" ;;
	*) fail "rxwire.conf.5 lacks the range of $name: $range" ;;
	esac
	[ -z "$preset" ] || echo "$entry" | grep -Eq "[Dd]efault $preset( \(|\.|$)" ||
		fail "rxwire.conf.5 lacks the default of $name, $preset"
done < "$work/tunables"
[ "$(wc -l < "$work/entries")" -eq "$(wc -l < "$work/tunables")" ] ||
	fail "rxwire.conf.5 has $(wc -l < "$work/entries") tunables, the help $(wc -l < "$work/tunables")"

result
