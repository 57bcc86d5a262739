# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's rxdebug with an rxperf server under the load of a foreign client: the figures are plausible.

before_rxdebug() {
	local p
	p=$(need rxperf) || return
	launch server "$p" server -p 7009
	wait_port 7009 server || return
	# More than the client can transfer during the tests, in four concurrent calls over two connections.
	launch load afsrx_client -p 7009 -c recv -b 512M -t 4 -C 2 -T 100 --deadline 80 --udp-buffer 4M
	sleep 0.5
}

# ask OPTIONS...: runs rxdebug; its output goes to out.txt.
ask() {
	alive server || fail "the server has ended"
	limited 20 rxdebug 127.0.0.1 7009 "$@" > out.txt 2>&1 || fail "rxdebug $* ended with $?: $(tail -n 1 out.txt)"
}

# number PATTERN: the number in rxdebug's output in the place of the # in this text.
number() {
	sed -n "s/^\(.*[^0-9]\)\{0,1\}${1/\#/\\([0-9][0-9]*\\)}.*/\2/p" out.txt | head -n 1
}

# want_number PATTERN LOW HIGH
want_number() {
	local n
	n=$(number "$1")
	[ -n "$n" ] || fail "no \"$1\" in: $(tr '\n' '|' < out.txt | cut -c1-200)"
	{ [ "$n" -ge "$2" ] && [ "$n" -le "$3" ]; } || fail "\"$1\" is $n, not within $2..$3"
}

test_rxdebug_version() {
	ask -version
	want_line out.txt '^AFS version: .*[A-Za-z]'
}

test_rxdebug_rxstats() {
	local sent
	ask -rxstats -noconns
	want_line out.txt '^Free packets: [0-9]+'
	want_number 'packets read: data #' 4 1000
	want_number 'ack # busy' 10 2000000000
	want_number 'other send counters: ack [0-9]*, data #' 1000 2000000000
	want_number '# server connections' 1 2
	want_number '# peer structs' 1 2
	want_number '# call structs' 4 1000
	# Only a loopback RTT is plausible; negative numbers and garbage are not.
	want_line out.txt 'Average rtt is 0\.[0-9]{3}, with [0-9]+ samples'
	want_line out.txt 'Minimum rtt is 0\.[0-9]{3}, maximum is [0-9]\.[0-9]{3}'
	sent=$(number 'other send counters: ack [0-9]*, data #')
	sleep 0.5
	ask -rxstats -noconns
	[ "$(number 'other send counters: ack [0-9]*, data #')" -gt "$sent" ] ||
		fail "packets are being sent, but the counter stays at $sent"
}

test_rxdebug_connections() {
	ask -allconnections
	[ "$(grep -c '^Connection from host 127.0.0.1, port [0-9]*, Cuid [0-9a-f]*/[0-9a-f]*$' out.txt)" -eq 2 ] ||
		fail "not two connections: $(grep -c '^Connection' out.txt)"
	[ "$(grep -c 'call [0-3]: # [1-9][0-9]*, state active, mode: sending' out.txt)" -ge 2 ] ||
		fail "of four calls only $(grep -c 'state active, mode: sending' out.txt) are shown as sending"
	want_number 'serial #' 100 4294967295
	want_number 'natMTU #' 576 65535
	want_line out.txt 'security index 0, server conn'
	want_line out.txt '^Done\.'
	ask
	want_line out.txt 'state active, mode: sending'
}

test_rxdebug_peers() {
	ask -peers -noconns
	want_line out.txt '^Peer at host 127.0.0.1, port [1-9][0-9]*'
	want_number 'ifMTU #' 576 65535
	want_number 'natMTU #' 576 65535
	want_number 'maxMTU #' 576 65535
	want_number 'packets sent #' 1000 4294967295
	want_line out.txt 'bytes sent high [0-9]+ low [1-9][0-9]*'
	want_line out.txt 'bytes received high 0 low [1-9][0-9]*'
	want_number 'rtt # msec' 0 5000
	want_line out.txt '^Done\.'
}

test_rxdebug_long() {
	ask -peers -long -noconns
	want_number 'congestion window #' 1 65535
	want_number 'MTU #' 576 65535
	want_line out.txt 'current/if/max jumbogram size: [0-9]+/[0-9]+/[0-9]+'
	ask -long -allconnections
	want_line out.txt 'state active, mode: sending'
	# After all these queries the load still runs, and the server ends on request.
	alive load || fail "the load ended: $(head -n 1 load.err)"
	tell load KILL
	stop server || fail "rxperf server ended with $?"
}
