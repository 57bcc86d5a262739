# SPDX-License-Identifier: BSD-2-Clause
# Every option that a program shows in its help is in its man page; every tunable in rxwire.conf(5).

. "$top_srcdir/src/tests/tools/lib.sh"

# check PAGE COMMAND...: the options above "Transport:".
check() {
	page=$1
	shift
	"$@" --help > "$work/help" || fail "$* --help ended with $?"
	sed '/^Transport:/,$d' "$work/help" | grep -o -- ' --[a-z-]*' | sort -u > "$work/options"
	[ -s "$work/options" ] || fail "$* --help shows no options"
	while read -r option; do
		text=$(echo "$option" | sed 's/-/\\-/g')
		grep -qF -- "$text" "$top_srcdir/doc/man/$page" || fail "$option of $* is not in $page"
	done < "$work/options"
}
check rxperf.1 "$rxperf" client
check rxperf.1 "$rxperf" server
check afscp.1 "$afscp"
check rxwstat.1 "$top_builddir/src/tools/rxwstat"

"$afscp" --help | sed '1,/^Transport:/d' | grep -o -- '^ *--[a-z-]*' | sed 's/^ *--//' > "$work/tunables"
[ "$(wc -l < "$work/tunables")" -gt 20 ] || fail "too few tunables in the help"
while read -r name; do
	text=$(echo "$name" | sed 's/-/\\-/g')
	grep -qF -- ".BR $text \"" "$top_srcdir/doc/man/rxwire.conf.5" ||
		fail "the tunable $name is not in rxwire.conf.5"
done < "$work/tunables"

result
