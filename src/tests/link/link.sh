# SPDX-License-Identifier: BSD-2-Clause
# The program `link` between two network namespaces: delay, rate, losses, queue, MTU, NAT, TCP and rxperf.

. "$top_srcdir/src/tests/link/needs.sh"
failed=0

# check NAME SETTINGS: one check of probe.py
check() {
	# The counters are exact where the kernel sends nothing of its own.
	RXW_LAB_IPV4=1
	[ "$1" != tcp ] || RXW_LAB_IPV4=
	export RXW_LAB_IPV4
	bash "$here/lab" "$top_builddir" "$2" "$python" -B "$here/probe.py" "$1" && return
	echo "FAIL: $1 with $2"
	failed=1
}

check delay none,delay=20ms
check rate none,rate=10Mbit,queue=300packets
check loss none,loss=50%
check disorder none,delay=5ms,reorder=10%,duplicate=5%
check queue none,rate=2Mbit,queue=10packets
check mtu none,mtu=1280
check hole none,mtu=1280,icmp=no
check nat none,nat=10.93.1.101\ 10.93.1.102
check tcp none,rate=10Mbit,delay=5ms,queue=200ms,discipline=step,step=2ms,loss=0.5%

# For the scripts at side a: a server of rxperf at side b, with options.
cat > lab-serve.$$ << 'END'
serve() {
	$RXW_FAR "$rxperf" server --listen "$RXW_FAR4" -p 7009 "$@" > "$RXW_LINK/server" 2>&1 &
	server=$!
	tries=0
	until grep -qs ready "$RXW_LINK/server"; do
		tries=$((tries + 1))
		[ $tries -lt 2000 ] || { cat "$RXW_LINK/server"; exit 1; }
		sleep 0.01
	done
}
END

# Every byte of transfers by rxperf, over a long way whose packets are lost and overtaken.
cat > lab-rxperf.$$ << 'END'
rxperf=$1
. "$2"
serve --verify
for way in send recv; do
	"$rxperf" client -c $way -s "$RXW_FAR4" -p 7009 -b 200K -t 2 --verify > "$RXW_LINK/client" 2>&1 ||
		{ cat "$RXW_LINK/client"; exit 1; }
done
kill -INT $server && wait $server
END
RXW_LAB_IPV4='' bash "$here/lab" "$top_builddir" reorder-40 sh "$PWD/lab-rxperf.$$" "$top_builddir/src/rxperf/rxperf" \
	"$PWD/lab-serve.$$" ||
	{ echo "FAIL: rxperf"; failed=1; }
rm -f "lab-rxperf.$$"

# A caller that waits for a long stream does not poll the socket: system calls in proportion to the packets.
cat > lab-polls.$$ << 'END'
rxperf=$1
. "$2"
serve
"$rxperf" client -c recv -s "$RXW_FAR4" -p 7009 -b 5M --json > "$RXW_LINK/client" 2>&1 || { cat "$RXW_LINK/client"; exit 1; }
kill -INT $server && wait $server
# The figures of the client come first, then those of the server.
figure() { sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p" "$RXW_LINK/client" | head -n 1; }
packets=$(figure packets.received.data) receives=$(figure syscalls.receive)
echo "$packets packets, $receives system calls to receive them"
[ "$packets" -gt 3000 ] && [ "$receives" -lt $((packets * 20)) ]
END
RXW_LAB_IPV4=1 bash "$here/lab" "$top_builddir" none,rate=20Mbit,delay=10ms,queue=200ms \
	sh "$PWD/lab-polls.$$" "$top_builddir/src/rxperf/rxperf" "$PWD/lab-serve.$$" || { echo "FAIL: a caller polls"; failed=1; }
rm -f "lab-polls.$$"

# Calls behind a NAT that gives the client another address and port in the middle, with each class.
cat > lab-moved.$$ << 'END'
rxperf=$1 keys=$3
. "$2"
serve --verify --key-file "$keys"
for way in send recv; do
	for class in null 'rxkad --level crypt' 'rxgk --level crypt'; do
		# shellcheck disable=SC2086 # words
		"$rxperf" client -c $way -s "$RXW_FAR4" -p 7009 -b 3M --verify --key-file "$keys" -x $class \
			> "$RXW_LINK/client" 2>&1 || { echo "$way, $class"; cat "$RXW_LINK/client"; exit 1; }
	done
done
kill -INT $server && wait $server
END
RXW_LAB_IPV4=1 bash "$here/lab" "$top_builddir" \
	'none,rate=20Mbit,delay=10ms,queue=200ms,nat=10.93.1.101 10.93.1.102,rebind=1s' \
	sh "$PWD/lab-moved.$$" "$top_builddir/src/rxperf/rxperf" "$PWD/lab-serve.$$" "$PWD/lab-keys.$$" || { echo "FAIL: moved"; failed=1; }
rm -f "lab-moved.$$" "lab-keys.$$" "lab-serve.$$"

# Mistakes.
link=$top_builddir/src/tests/link/link
for words in '--rate 5 --describe' '--profile nothing --describe' '--profile' '--rate 1Gbit' 'describe'; do
	# shellcheck disable=SC2086 # words
	"$link" $words > /dev/null 2>&1
	[ $? = 2 ] || { echo "FAIL: link $words: not status 2"; failed=1; }
done
"$link" --a /nowhere --b /nowhere 2>&1 | grep -q '/nowhere: No such file' || { echo "FAIL: no reason"; failed=1; }
"$link" --profile codel --describe | grep -q '"up_queue_bytes": 25000000' || { echo "FAIL: --describe"; failed=1; }
exit $failed
