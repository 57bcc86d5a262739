# SPDX-License-Identifier: BSD-2-Clause
# What OpenAFS sees of wide windows: the same exchanges with a window of 255 packets and with a wide one, through a
# relay that records them (offer_relay.py). offer.py compares the recordings.

rxperf=
before_offer() {
	rxperf=$(need rxperf) || return
	launch narrow "$rxperf" server -p 7101 --window 255 && wait_port 7101 narrow || return
	launch wide "$rxperf" server -p 7102 --window 8192 && wait_port 7102 wide || return
	launch theirs afsrx_server -p 7103 --fill --udp-buffer 4M && wait_port 7103 theirs
}

# recorded NAME SERVER_PORT LOST COMMAND...: runs the command while a relay at port 7200 records; NAME.pcap.
recorded() {
	local name=$1 port=$2 lost=$3
	shift 3
	rm -f relay.pcap
	launch relay python3 "$here/offer_relay.py" 127.0.0.1:7200 "127.0.0.1:$port" relay.pcap "$lost"
	wait_for grep -q ready relay.out || fail "the relay did not start: $(head -n 1 relay.err)"
	limited 60 "$@" > out.json 2> err.txt || fail "$1 ended with $?: $(head -n 1 err.txt)"
	stop relay || fail "the relay ended with $?"
	mv relay.pcap "$name.pcap"
}

# compared END OPTIONS...
compared() {
	python3 "$here/offer.py" "$1" narrow.pcap wide.pcap "${@:2}" > offer.txt || fail "$(grep -m 1 . offer.txt)"
	tail -n 1 offer.txt
}

# as_server LOST COMMAND OPTIONS...: OpenAFS's client, our server.
as_server() {
	local lost=$1 w
	shift
	for w in narrow wide; do
		recorded $w $([ $w = narrow ] && echo 7101 || echo 7102) "$lost" afsrx_client -s 127.0.0.1 -p 7200 --deadline 50 \
			--udp-buffer 4M --fill -c "$@"
		want_field out.json error 0
	done
}

# as_client LOST COMMAND OPTIONS...: our client, OpenAFS's server.
as_client() {
	local lost=$1 w
	shift
	for w in 255 8192; do
		recorded $([ $w = 255 ] && echo narrow || echo wide) 7103 "$lost" "$rxperf" client -s 127.0.0.1 -p 7200 --json \
			--window $w -c "$@"
	done
}

test_offer_server_recv() { as_server 0 recv -b 4M && compared server; }
test_offer_server_send() { as_server 0 send -b 4M && compared server; }
test_offer_server_rpc() { as_server 0 rpc -S 200 -R 900 -T 200 && compared server --lockstep; }
test_offer_server_lost_recv() { as_server 13 recv -b 1M && compared server; }
test_offer_server_lost_send() { as_server 13 send -b 1M && compared server; }
test_offer_client_recv() { as_client 0 recv -b 4M && compared client; }
test_offer_client_send() { as_client 0 send -b 4M && compared client; }
test_offer_client_rpc() { as_client 0 rpc -S 200 -R 900 -T 200 && compared client --lockstep; }
test_offer_client_lost_recv() { as_client 13 recv -b 1M && compared client; }
test_offer_client_lost_send() { as_client 13 send -b 1M && compared client; }
