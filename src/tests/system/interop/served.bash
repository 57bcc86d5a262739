# SPDX-License-Identifier: BSD-2-Clause
# A file server's, a location server's and a volume server's interfaces, with server stubs by OpenAFS's rxgen on
# librxwire-classic (served.c), and OpenAFS's clients.

before_served() {
	head -c 3000001 /dev/urandom > first
	head -c 20000003 /dev/urandom > second
	cp first data
	launch served served_classic "$address" data
	wait_port 7000 served && wait_port 7003 served && wait_port 7005 served
}

# tool COMMAND...: runs an OpenAFS program; output in out.txt, errors in err.txt.
tool() {
	alive served || fail "the server has ended: $(head -n 1 served.err)"
	limited 40 "$@" > out.txt 2> err.txt || fail "$* ended with $?: $(head -n 1 err.txt)"
}

fid=536870912.2.1

test_served_vldb() {
	tool vos listvldb -noauth -cell "$cell_name"
	want_line out.txt '^served *$'
	want_line out.txt 'RWrite: 536870912'
	want_line out.txt "server ($address|afs\.$cell_name) partition /vicepa RW Site"
	want_line out.txt 'Total entries: 1'
}

test_served_volumes() {
	tool vos listvol "$address" -noauth -cell "$cell_name"
	want_line out.txt '^served +536870912 RW +2929 K On-line'
	tool vos examine served -noauth -cell "$cell_name"
	want_line out.txt '^served +536870912 RW +2929 K +On-line'
	want_line out.txt 'MaxQuota +5000 K'
	# No handler: the stub's code -455.
	! limited 40 vos partinfo "$address" -noauth -cell "$cell_name" > out.txt 2> err.txt ||
		fail "a call without a handler succeeded"
	want_line err.txt '455|opcode'
}

test_served_read() {
	tool afsio fidread -fid $fid -cell "$cell_name"
	same_file first out.txt
}

test_served_write() {
	# It may overwrite.
	limited 40 afsio fidwrite -vnode $fid -cell "$cell_name" -force < second > out.txt 2> err.txt ||
		fail "afsio ended with $?: $(head -n 1 err.txt)"
	[ ! -s err.txt ] || fail "afsio says: $(head -n 1 err.txt)"
	same_file second data
	tool afsio fidread -fid $fid -cell "$cell_name"
	same_file second out.txt
	rm -f out.txt
}

test_served_parallel() {
	local i
	for i in 1 2 3 4; do
		launch "reader$i" afsio fidread -fid $fid -cell "$cell_name"
	done
	for i in 1 2 3 4; do
		wait_for test -f "reader$i.status" || fail "reader $i does not end"
		same_file second "reader$i.out"
		rm -f "reader$i.out"
	done
}

# transfer fetch|store VNODE LENGTH: by the calls with 64 bits, which afsio does not use; its figures in err.txt.
transfer() {
	limited 40 "$client" "$address" "$@" > out.bin 2> err.txt < "${input:-/dev/null}" ||
		fail "$client $* ended with $?: $(head -n 1 err.txt)"
}

# clients COMMAND: with the client on OpenAFS's library, and on librxwire-classic.
clients() {
	local client
	for client in served_client served_client_classic; do
		"$1"
	done
}

# A new client is called back on three connections at a time, before its call is answered.
fetch64() {
	transfer fetch 2 99999999
	want_field err.txt code 0
	want_field err.txt length 20000003
	want_field err.txt probes 3
	same_file second out.bin
}
test_served_fetch64() { clients fetch64; }

# A client whose promise is broken hears of it before its store is answered, whose packets had the status byte 1.
store64() {
	input=first transfer store 2 3000001
	want_field err.txt code 0
	want_field err.txt length 3000001
	want_field err.txt breaks 3
	want_field err.txt broken_vnode 2
	want_field err.txt status_byte 1
	same_file first data
}
test_served_store64() { clients store64; }

# The second time the server answers without reading.
refused() {
	transfer fetch 8 100
	want_field err.txt code 102
	input=second transfer store 8 20000003
	want_field err.txt code 102
	same_file first data
}
test_served_refused() { clients refused; }

# Another thread of the server interrupts the call while it is being answered.
interrupt() {
	transfer fetch 4 1099511627776
	want_field err.txt announced 1099511627776
	want_field err.txt code 106
	transfer fetch 2 99999999
	same_file first out.bin
}
test_served_interrupt() { clients interrupt; }

# The server gives up an offer of rx_WritevAlloc() and returns EIO after all that exists.
short() {
	transfer fetch 6 99999999
	want_field err.txt announced 3001001
	want_field err.txt code 5
}
test_served_short() { clients short; }

# shown NAME: the number before a name in out.txt.
shown() {
	sed -n "s/^[[:space:]]*\([0-9]*\) $1\$/\1/p" out.txt | head -n 1
}

# The server has sent the second file six times, about 14200 packets each.
test_served_xstat() {
	tool xstat_fs_test "$address" -collID 1 -onceonly
	[ "$(shown rx_dataPacketsSent)" -ge 50000 ] || fail "$(shown rx_dataPacketsSent) packets sent"
	[ "$(shown rx_dataPacketsRead)" -ge 10000 ] || fail "$(shown rx_dataPacketsRead) packets read"
	[ "$(shown rx_nServerConns)" -ge 1 ] || fail "$(shown rx_nServerConns) connections"
	# The stubs have counted: the 37th procedure is FetchData64.
	tool afsrx_stats "$address" 7000 process
	want_line out.txt 'server interface 7 function 36 of 43 calls 10 '
	want_line out.txt 'client interface 6 function 2 of 18 calls [1-9]'
}

test_served_rxdebug() {
	tool rxdebug "$address" 7000 -rxstats -noconns
	want_line out.txt 'packets read: data [1-9]'
	want_line out.txt 'other send counters: ack [0-9]+, data [1-9]'
	tool rxdebug "$address" 7000 -allconnections
	want_line out.txt "^Connection from host $address, port [0-9]+, Cuid"
	want_line out.txt 'security index 0, server conn'
	# Those for callbacks leave from the same port.
	want_line out.txt 'security index 0, client conn'
	tool rxdebug "$address" 7005 -version
	want_line out.txt '^AFS version: .*[A-Za-z]'
}

# same_counts NAME NAME FACTOR: one of the server's counts is not 0, and the other one is its multiple.
same_counts() {
	local a b
	a=$(field "$1" served.out)
	b=$(field "$2" served.out)
	{ [ "$a" -gt 0 ] && [ "$b" -eq $((a * $3)) ]; } || fail "$1 is $a, $2 is $b"
}

# What the handlers have seen; values of connections were destroyed.
test_served_end() {
	stop served || fail "the server ended with $?: $(tail -n 1 served.err)"
	same_counts connections_made connections_destroyed 1
	same_counts clients_made clients_destroyed 1
	same_counts clients_made probes 3
	same_counts stores breaks 3
	same_counts before after 1
	# Both forms of the call that had no handler.
	want_field served.out after_failed 2
	want_field served.out interrupts 2
	want_field served.out interrupted_writes 2
	want_positive served.out read_slices
	want_positive served.out written_slices
	[ ! -s served.err ] || fail "it says: $(head -n 1 served.err)"
}
