# SPDX-License-Identifier: BSD-2-Clause
# Every option that a program shows in its help is in its man page; every tunable in rxwire.conf(5).

. "$top_srcdir/src/tests/tools/lib.sh"

# check HELP_COMMAND PAGE: the options above "Transport:".
check() {
	$1 --help > "$work/help" || fail "$1 --help ended with $?"
	sed '/^Transport:/,$d' "$work/help" | grep -o -- ' --[a-z-]*' | sort -u > "$work/options"
	[ -s "$work/options" ] || fail "$1 --help shows no options"
	while read -r option; do
		text=$(echo "$option" | sed 's/-/\\-/g')
		grep -qF -- "$text" "$top_srcdir/doc/man/$2" || fail "$option of $1 is not in $2"
	done < "$work/options"
}
check "$rxperf client" rxperf.1
check "$rxperf server" rxperf.1
check "$afscp" afscp.1

"$afscp" --help | sed '1,/^Transport:/d' | grep -o -- '^ *--[a-z-]*' | sed 's/^ *--//' > "$work/tunables"
[ "$(wc -l < "$work/tunables")" -gt 20 ] || fail "too few tunables in the help"
while read -r name; do
	text=$(echo "$name" | sed 's/-/\\-/g')
	grep -qF -- ".BR $text \"" "$top_srcdir/doc/man/rxwire.conf.5" ||
		fail "the tunable $name is not in rxwire.conf.5"
done < "$work/tunables"

result
