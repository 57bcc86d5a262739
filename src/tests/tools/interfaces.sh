# SPDX-License-Identifier: BSD-2-Clause
# afscp get of a large file from a server with one address, by a client with two interfaces that have a route to it: both carry
# it, one goes and comes back meanwhile, and one never answers. No other interface is used beside a tunnel.

link='none,rate=60Mbit,delay=5ms'
export RXW_LAB_ROUTED=1
. "$top_srcdir/src/tests/tools/twolinks.sh"

make_volume home
start_far_server --store store --allow-anonymous-writes --advertise "$RXW_FAR4"

cp_() { "$afscp" -q -s "$RXW_FAR4:7003:7000" "$@" 2> err < /dev/null; }
# received LINK: bytes that a link has brought so far.
received() { awk -v d="$1:" '$1 == d { print $2 }' /proc/net/dev; }
# sent INTERFACE: packets.
sent() { awk -v d="$1:" '$1 == d { print $11 }' /proc/net/dev; }
# get NAME: the copy is whole. Leaves the bytes that came by the links in $first and $second.
get() {
	first=$(received wire0) second=$(received wire1)
	cp_ get --json home:/big copy > "$1" || fail "$1: get ended with $?: $(head -n 3 err)"
	first=$(($(received wire0) - first)) second=$(($(received wire1) - second))
	cmp -s big copy || fail "$1: the copy differs"
	rm -f copy
}
when_begun() {
	tries=0
	until [ "$(stat -c %s .copy.* 2> /dev/null | tail -n 1)" -ge "$2" ] 2> /dev/null; do
		kill -0 "$1" 2> /dev/null && [ $((tries += 1)) -lt 3000 ] || { fail "the copy has not begun"; return 1; }
		sleep 0.02
	done
}

head -c 17825793 /dev/urandom > big
$RXW_FAR "$afscp" -q -s "127.0.0.1:7003:7000" put big home:/big > put.out 2>&1 || fail "put: $(head -n 3 put.out)"

# Interfaces of the links are tunnels: one that is none is not used beside them, although it has a route.
beside=
{ ip link add beside0 type dummy || ip link add beside0 type veth peer name beside1; } 2> /dev/null &&
	{ ! ip link set beside1 up 2> /dev/null || :; } && ip link set beside0 up && ip addr add 10.93.3.1/24 dev beside0 &&
	ip route add default dev beside0 metric 200 && beside=$(sent beside0)

get both

[ "$first" -gt 1000000 ] && [ "$second" -gt 1000000 ] || fail "bytes of the links: $first $second"
[ -z "$beside" ] || {
	[ "$(sent beside0)" -eq "$beside" ] || fail "$(($(sent beside0) - beside)) packets beside the tunnels"
	ip link del beside0
}

# An interface goes in the middle: the rest comes by the other one, until it is back, with its address and its route.
cp_ get home:/big copy &
get=$!
if when_begun $get 2000000; then
	ip link set wire1 down
	when_begun $get 5000000
	ip link set wire1 up && ip route add default dev wire1 metric 100 || fail "wire1 does not come back"
	second=$(received wire1)
	until [ $(($(received wire1) - second)) -gt 1000000 ] || ! kill -0 $get 2> /dev/null; do sleep 0.02; done
fi
wait $get || fail "late: get ended with $?: $(head -n 3 err)"
cmp -s big copy || fail "late: the copy differs"
rm -f copy
[ $(($(received wire1) - second)) -gt 1000000 ] || fail "late: the second link brought $(($(received wire1) - second)) bytes"

# The second interface has a route, but nothing comes back: the copy takes the first one.
echo 'hole yes' > "$RXW_LINK/commands2"
get silent
[ "$first" -gt 17825793 ] || fail "silent: $first"
echo 'hole no' > "$RXW_LINK/commands2"
result
