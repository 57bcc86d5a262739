# SPDX-License-Identifier: BSD-2-Clause
# Help and manual agree: each option that a program shows in its help is in its man page, each that is described
# there is in the help; each tunable is in rxwire.conf(5), with its range and default.

export LC_ALL=C
. "$top_srcdir/src/tests/tools/lib.sh"

man=$top_srcdir/doc/man

# options_of FILE: "--name" and "-x", one a line, of a help text above "Transport:".
options_of() {
	sed '/^Transport:/,$d' "$1" | sed -n 's/^  *\(-.*\)/\1/p' | sed 's/  .*//' |
		grep -oE -- '(^|[ ,])--?[A-Za-z][a-z-]*' | tr -d ' ,' | sort -u
}

# tags_of PAGE: the same of what stands behind .TP in a man page.
tags_of() {
	sed -n '/^\.TP$/{n;p;}' "$man/$1" | sed 's/\\f.//g; s/\\-/-/g' |
		grep -oE -- '(^|[ ",])--?[A-Za-z][a-z-]*' | tr -d ' ",' | sort -u
}

# check PAGE HELP...: help texts in files; the page has their options, and no others.
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
help rxwstat "$top_builddir/src/tools/rxwstat"
help rxwgen "$top_builddir/src/rxgen/rxwgen"
# What is accepted without effect stands in the last line there; two that are not accepted, in the manual alone.
sed -n 's/^Accepted and without effect.*: /  /p' "$work/rxwgen" > "$work/accepted"
echo '  -u, -p' >> "$work/accepted"
check rxperf.1 "$work/server" "$work/client"
check afscp.1 "$work/afscp"
check rxfsd.8 "$work/rxfsd"
check rxwstat.1 "$work/rxwstat"
check rxwgen.1 "$work/rxwgen" "$work/accepted"

# NAME DEFAULT of each tunable, by afscp's help; a text may go on in the next lines, which are indented further.
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
# Of the program: the class that its ELF header names.
program=${afscp%/*}/.libs/${afscp##*/}
[ -e "$program" ] || program=$afscp
bits=$(($(od -An -tu1 -j4 -N1 "$program") * 32))
while read -r name preset; do
	entry=$(grep "^ \.BR $name \"" "$work/entries") || { fail "the tunable $name is not in rxwire.conf.5"; continue; }
	said=$("$afscp" --check-config "--$name" '?' 2>&1)
	range=$(echo "$said" | sed -n 's/.* from \([0-9]*[KMG]*\) to \([0-9]*[KMG]*\)\( ([^)]*)\)*\(, or [a-z]*\)*$/From \1 to \2\4;/p')
	case $entry in
	*"$range"*) ;;
	# With 32 bits no size goes further; the page has the bounds of 64.
	*"${range%2147483647*}"*) [ "$bits" -eq 32 ] || fail "rxwire.conf.5 does not say of $name: $range" ;;
	*) fail "rxwire.conf.5 does not say of $name: $range" ;;
	esac
	[ -z "$preset" ] || echo "$entry" | grep -Eq "[Dd]efault $preset( \(|\.|$)" ||
		fail "rxwire.conf.5 does not say that $name is $preset by default"
done < "$work/tunables"
[ "$(wc -l < "$work/entries")" -eq "$(wc -l < "$work/tunables")" ] ||
	fail "rxwire.conf.5 has $(wc -l < "$work/entries") tunables, the help $(wc -l < "$work/tunables")"

result
