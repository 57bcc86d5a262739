# SPDX-License-Identifier: BSD-2-Clause
# A client on OpenAFS's library with our rxperf server.

before_rxperf_server() {
	local p
	p=$(need rxperf) || return
	launch server "$p" server -p 7009 --verify
	wait_port 7009 server
}

port=7009
# afs COMMAND OPTIONS...: runs the foreign client; JSON in out.json.
afs() {
	limited 60 afsrx_client -s 127.0.0.1 -p "$port" --deadline 50 --udp-buffer 4M --fill -c "$@" \
		> out.json 2> err.txt || fail "the OpenAFS client ended with $?: $(head -n 1 err.txt)"
	want_field out.json error 0
}

test_rxperf_server_send() {
	afs send -b 64M
	want_field out.json bytes_sent 67108864
	want_field out.json calls 1
	# Lengths around the sizes of packets and buffers, and 0.
	for n in 0 1 1411 1412 1413 65535 65537; do
		afs send -b $n
		want_field out.json bytes_sent $n
	done
}

test_rxperf_server_recv() {
	afs recv -b 64M --verify
	want_field out.json bytes_received 67108864
	want_field out.json bad_bytes 0
	for n in 0 1 1411 1412 1413 65535 65537; do
		afs recv -b $n --verify
		want_field out.json bytes_received $n
		want_field out.json bad_bytes 0
	done
}

test_rxperf_server_rpc() {
	afs rpc -S 4 -R 4 -T 2000
	want_field out.json calls 2000
	afs rpc -S 20000 -R 100000 -T 50 --verify
	want_field out.json calls 50
	want_field out.json bytes 6000000
	want_field out.json bad_bytes 0
}

test_rxperf_server_file() {
	afs file -f 4000,10000,0,1200000,28 -T 3
	want_field out.json bytes_sent 42000
	want_field out.json bytes_received 3600084
}

test_rxperf_server_parallel_send() {
	afs send -b 2M -t 32 -C 4
	want_field out.json calls 32
	want_field out.json bytes_sent 67108864
}

test_rxperf_server_parallel_recv() {
	afs recv -b 2M -t 32 -C 1 --verify
	want_field out.json calls 32
	want_field out.json bytes_received 67108864
	want_field out.json bad_bytes 0
}

test_rxperf_server_no_jumbo() {
	afs send -b 16M --no-jumbo
	want_field out.json bytes_sent 16777216
	afs recv -b 16M --no-jumbo --window 16 --verify
	want_field out.json bytes_received 16777216
}

test_rxperf_server_lossy() {
	local seed
	for seed in 1 2; do
		relay $((7100 + seed)) 7009 $seed || fail "the relay did not start"
		port=$((7100 + seed))
		afs recv -b 4M --verify
		want_field out.json bytes_received 4194304
		want_field out.json bad_bytes 0
		afs send -b 4M
		want_field out.json bytes_sent 4194304
		afs rpc -S 5000 -R 9000 -T 4 -t 4 -C 4 --verify
		want_field out.json calls 16
		want_losses $port
	done
}

# After all tests the server still serves, stops on request, and prints its totals.
test_rxperf_server_refusals() {
	limited 20 afsrx_client -s 127.0.0.1 -p 7009 --deadline 15 --fill -c recv -b 10 -r 524288 -w 524288 \
		> out.json || fail "the largest sizes were refused"
	if limited 30 afsrx_client -s 127.0.0.1 -p 7009 --deadline 25 --fill -c rpc --service 148 > out.json 2> err.txt; then
		fail "a service that is not offered was served"
	fi
	want_field out.json error -2
	afs rpc
	stop server INT || fail "rxperf server ended with $? on SIGINT"
	[ -s server.out ] || fail "the server has printed nothing at its end"
}
