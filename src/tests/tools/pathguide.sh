# SPDX-License-Identifier: BSD-2-Clause
# Each command of doc/paths.md, over two emulated links to a server with two addresses.

link='none,rate=100Mbit,delay=2ms'
. "$top_srcdir/src/tests/tools/twolinks.sh"
guide=$(readlink -f "$top_srcdir/doc/paths.md")

make_volume home
head -c 9000000 /dev/urandom > big
sed -n 's/^    //p' "$guide" > commands
# The server comes first, since the other commands need it.
{ grep '^rxfsd' commands && grep -v '^rxfsd' commands; } > ordered
while read -r program arguments <&3; do
	echo "$program $arguments"
	rm -f copy
	# shellcheck disable=SC2086 # words
	case $program in
	rxfsd)
		$RXW_FAR "$rxfsd" $arguments --require none --allow-anonymous-writes --port 7000 --vl-port 7003 --vol-port 0 > rxfsd.out 2> rxfsd.err &
		servers=$!
		wait_for rxfsd.out 'fs .* vl ' $servers || { cat rxfsd.out rxfsd.err; fail "rxfsd did not start"; break; }
		$RXW_FAR "$afscp" -q -s 127.0.0.1:7003:7000 put big home:/big > put.out 2>&1 || fail "put: $(head -n 3 put.out)"
		;;
	afscp)
		"$afscp" -q -s "$RXW_FAR4:7003:7000" $arguments > out 2>&1 || fail "$(head -n 3 out)"
		cmp -s big copy || fail "the copy differs"
		paths=$(grep -c '^  path  .* by wire' out)
		case $arguments in
		*'--paths 1'*) [ "$paths" -eq 0 ] || fail "--paths 1 has $paths paths" ;;
		*) [ "$paths" -ge 2 ] || fail "$paths paths: $(cat out)" ;;
		esac
		;;
	ip)
		# Without the route of a later command there is none by the second interface.
		ip $arguments > out 2>&1 || grep -q 'unreachable' out || fail "$(cat out)"
		;;
	*) fail "the guide has a command that this test does not know" ;;
	esac
done 3< ordered
[ "$(wc -l < ordered)" -ge 6 ] || fail "the commands were not found in the guide"
ip route get "$RXW_FAR4" oif wire1 > out 2>&1 || fail "no route by wire1: $(cat out)"
result
