# SPDX-License-Identifier: BSD-2-Clause
# Our rxperf client with a server on OpenAFS's library.

rxperf=
before_rxperf_client() {
	rxperf=$(need rxperf) || return
	launch server afsrx_server -p 7009 --fill --verify --udp-buffer 4M
	wait_port 7009 server
}

# ours COMMAND OPTIONS...: runs our client; JSON in out.json.
ours() {
	limited 60 "$rxperf" client -s 127.0.0.1 -p 7009 --json -c "$@" > out.json 2> err.txt ||
		fail "rxperf client $* ended with $?: $(head -n 1 err.txt)"
}

# server_total NAME: one of the foreign server's counters.
server_total() {
	local before
	before=$(wc -l < server.out)
	tell server USR1
	wait_for more_lines_than "$before" server.out
	tail -n 1 server.out > totals.json
	field "$1" totals.json
}

more_lines_than() {
	[ "$(wc -l < "$2")" -gt "$1" ]
}

# moved NAME COMMAND...: the growth of the server's counter during the command.
moved() {
	local name=$1 before
	shift
	before=$(server_total "$name")
	"$@"
	echo $(($(server_total "$name") - before))
}

test_rxperf_client_send() {
	local n got
	for n in 67108864 0 1 1411 1412 1413 65537; do
		got=$(moved bytes_in ours send -b $n) || exit
		[ "$got" = $n ] || fail "the OpenAFS server got $got bytes of $n"
		want_field totals.json bad_bytes 0
		want_field out.json bytes $n
		want_field out.json calls 1
	done
}

test_rxperf_client_recv() {
	local n
	for n in 67108864 0 1 1411 1412 1413 65537; do
		ours recv -b $n --verify
		want_field out.json bytes $n
		want_field out.json calls 1
	done
}

test_rxperf_client_rpc() {
	ours rpc -S 4 -R 4 -T 2000
	want_field out.json calls 2000
	want_positive out.json p50_us
	ours rpc -S 20000 -R 100000 -T 50 --verify
	want_field out.json calls 50
}

test_rxperf_client_file() {
	local got
	got=$(moved bytes_in ours file -f 4000,10000,0,1200000,28 -T 3) || exit
	[ "$got" = 42000 ] || fail "the OpenAFS server got $got bytes of 42000"
	want_field out.json calls 3
}

test_rxperf_client_parallel_send() {
	local got
	got=$(moved bytes_in ours send -b 2M -t 32 -C 4) || exit
	[ "$got" = 67108864 ] || fail "the OpenAFS server got $got bytes of 67108864"
	want_field totals.json bad_bytes 0
	want_field out.json calls 32
}

test_rxperf_client_parallel_recv() {
	ours recv -b 2M -t 32 -C 1 --verify
	want_field out.json calls 32
	want_field out.json bytes 67108864
}

test_rxperf_client_no_jumbo() {
	launch small afsrx_server -p 7019 --fill --no-jumbo --window 16
	wait_port 7019 small || fail "the second server did not start"
	ours recv -p 7019 -b 16M --verify
	want_field out.json bytes 16777216
	ours send -p 7019 -b 16M
	stop small || fail "the second server ended with $?"
	want_field small.out bytes_in 16777216
}

test_rxperf_client_lossy() {
	local seed port got
	for seed in 1 2; do
		port=$((7100 + seed))
		relay $port 7009 $seed || fail "the relay did not start"
		ours recv -p $port -b 4M --verify
		want_field out.json bytes 4194304
		got=$(moved bytes_in ours send -p $port -b 4M) || exit
		[ "$got" = 4194304 ] || fail "the OpenAFS server got $got bytes of 4194304"
		want_field totals.json bad_bytes 0
		ours rpc -p $port -S 5000 -R 9000 -T 4 -t 4 -C 4 --verify
		want_field out.json calls 16
		want_losses $port
	done
}

# Dead time is 12 s; a tool that waits much longer is wrong.
test_rxperf_client_dead_server() {
	local rc
	launch mute afsrx_server -p 7029
	wait_port 7029 mute || fail "the third server did not start"
	launch client limited 35 "$rxperf" client -s 127.0.0.1 -p 7029 -c recv -b 2047M
	sleep 0.5
	alive client || fail "the client ended at once: $(head -n 1 client.err)"
	tell mute STOP
	for ((i = 0; i < 400; i++)); do
		alive client || break
		sleep 0.1
	done
	tell mute KILL
	rc=$(cat client.status) || fail "the client does not end"
	[ "$rc" -ne 124 ] || fail "the client still waits for a server that has been dead for 34 s"
	[ "$rc" -eq 1 ] || fail "the client's status is $rc, not 1"
	want_one_error client.err
}
