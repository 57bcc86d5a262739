# SPDX-License-Identifier: BSD-2-Clause
# afscp get of a large file from a server with two addresses, over two emulated links: both carry it, one dies, never
# answers or has a long round trip, and the file changes meanwhile.

link='none,rate=60Mbit,delay=5ms'
. "$top_srcdir/src/tests/tools/twolinks.sh"

make_volume home
start_far_server --store store --allow-anonymous-writes --advertise "$RXW_FAR4" --advertise "$RXW_FAR4_2"

cp_() { "$afscp" -q -s "$RXW_FAR4:7003:7000" "$@" 2> err < /dev/null; }
here() { $RXW_FAR "$afscp" -q -s "127.0.0.1:7003:7000" "$@" > put.out 2>&1 || fail "afscp $*: $(head -n 3 put.out)"; }
# get REPORT: the copy is whole.
get() {
	cp_ get --json home:/big copy > "$1" || fail "get ended with $?: $(head -n 3 err)"
	cmp -s big copy || fail "$1: the copy differs"
	rm -f copy
}
# when_begun PID LENGTH: waits until the copy is so long.
when_begun() {
	tries=0
	until [ "$(stat -c %s .copy.* 2> /dev/null | tail -n 1)" -ge "$2" ] 2> /dev/null; do
		kill -0 "$1" 2> /dev/null && [ $((tries += 1)) -lt 3000 ] || { fail "the copy has not begun"; return 1; }
		sleep 0.02
	done
}
links() { echo "$2" > "$RXW_LINK/$1"; }
leftovers() { [ -z "$(ls -d .copy* copy* 2> /dev/null)" ] || fail "$1: left: $(ls -d .copy* copy* 2> /dev/null)"; }

head -c 17825793 /dev/urandom > big
here put big home:/big

# Both carry it.
get both
set -- $(uses both bytes)
[ "$1" -gt 1500000 ] && [ "$2" -gt 1500000 ] && [ $(($1 + $2)) -eq 17825793 ] || fail "bytes of the paths: $*"

# One path on request: as without several addresses.
cp_ get --json --paths 1 home:/big copy > one || fail "get --paths 1 ended with $?: $(head -n 3 err)"
cmp -s big copy || fail "one: the copy differs"
rm -f copy
[ "$(uses one bytes)" = "none none" ] || fail "one: $(uses one bytes)"

# A path dies in the middle: the first, or the second. The other one takes longer than until that is noticed.
for which in commands commands2; do
	other=$([ $which = commands ] && echo commands2 || echo commands)
	cp_ get --json home:/big copy > died &
	get=$!
	when_begun $get 4000000 && links $which 'hole yes' && links $other 'rate 15Mbit'
	wait $get || fail "$which: get ended with $?: $(head -n 3 err)"
	links $which 'hole no'
	links $other 'rate 60Mbit'
	cmp -s big copy || fail "$which: the copy differs"
	rm -f copy
	set -- $(uses died losses)
	[ $(($1 + $2)) -ge 1 ] || fail "$which: no loss was noticed: $*"
	leftovers $which
done

# The second one never answers.
links commands2 'hole yes'
get silent
set -- $(uses silent bytes)
[ "$1" -eq 17825793 ] || fail "silent: $*"
links commands2 'hole no'

# The second one needs longer for an answer than probes of it are apart.
links commands2 'delay 160ms'
get slow
set -- $(uses slow bytes)
[ "$2" -gt 100000 ] && [ $(($1 + $2)) -eq 17825793 ] || fail "slow: $*"
links commands2 'delay 5ms'

# A signal in the middle leaves nothing.
"$afscp" -q -s "$RXW_FAR4:7003:7000" get home:/big copy 2> err < /dev/null &
get=$!
when_begun $get 4000000 && kill $get
wait $get 2> /dev/null && fail "get ended well in spite of SIGTERM"
leftovers SIGTERM

# The file changes meanwhile: the copy is one version, or there is none.
head -c 17825793 /dev/zero | tr '\0' n > new
for round in 1 2; do
	cp_ get home:/big copy &
	get=$!
	when_begun $get 3000000 && here put new home:/big
	if wait $get; then
		cmp -s big copy || cmp -s new copy || fail "round $round: the copy mixes two versions"
		rm -f copy
	fi
	leftovers "round $round"
	mv big old && mv new big && mv old new
done
result
