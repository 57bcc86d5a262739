# SPDX-License-Identifier: BSD-2-Clause
# Security class 2 in both directions and at each level: OpenAFS's library on one side, ours on the other.

ours=
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
wrong=ff02030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20

# Servers of each level: ours from port 7300 on, OpenAFS's from 7400 on.
before_rxkad() {
	local l
	ours=$(need rxkad_ours) || return
	for l in 0 1 2; do
		launch "ours$l" "$ours" server $((7300 + l)) $key $l
		launch "afs$l" afsrx_server -p $((7400 + l)) --fill --verify --udp-buffer 4M --rxkad $key:$l
	done
	for l in 0 1 2; do
		wait_port $((7300 + l)) "ours$l" && wait_port $((7400 + l)) "afs$l" || return
	done
}

# ours_to PORT LEVEL COMMAND BYTES CALLS
ours_to() {
	limited 60 "$ours" client 127.0.0.1 "$1" $key "$2" "$3" "$4" "$5" > out.txt 2> err.txt ||
		fail "our client, port $1, level $2, $3 of $4: $(tail -n 1 err.txt)"
	want_line out.txt "^calls $5 bytes $(($4 * $5)) "
}

# afs_to PORT LEVEL COMMAND OPTIONS...
afs_to() {
	local p=$1 l=$2
	shift 2
	limited 60 afsrx_client -s 127.0.0.1 -p "$p" --deadline 50 --udp-buffer 4M --fill --verify \
		--rxkad $key:"$l" -c "$@" > out.json 2> err.txt ||
		fail "the OpenAFS client, level $l, $*, ended with $?: $(head -n 1 err.txt)"
	want_field out.json error 0
	want_field out.json bad_bytes 0
}

# Bulk, and sizes around those of packets at each level.
our_client() {
	local l n
	for l in 0 1 2; do
		for n in 0 1 4 1400 1401 1408 1409 65537; do
			ours_to $(($1 + l)) $l send $n 1
			ours_to $(($1 + l)) $l recv $n 1
		done
		ours_to $(($1 + l)) $l send 16777216 1
		ours_to $(($1 + l)) $l recv 16777216 1
		ours_to $(($1 + l)) $l rpc 100 500
	done
}

test_rxkad_itself() { our_client 7300; }
test_rxkad_their_server() { our_client 7400; }

test_rxkad_their_client() {
	local l n
	for l in 0 1 2; do
		for n in 0 1 4 1400 1401 1408 1409 65537; do
			afs_to $((7300 + l)) $l send -b $n
			afs_to $((7300 + l)) $l recv -b $n
		done
		afs_to $((7300 + l)) $l send -b 16M
		want_field out.json bytes_sent 16777216
		afs_to $((7300 + l)) $l recv -b 16M
		want_field out.json bytes_received 16777216
		afs_to $((7300 + l)) $l rpc -S 100 -R 3000 -T 200
		want_field out.json calls 200
		afs_to $((7300 + l)) $l recv -b 1M -t 8 -C 4
		want_field out.json calls 8
		want_line "ours$l.out" "^call of tester@INTEROP.TEST, tester@INTEROP.TEST, level $l\$"
	done
}

test_rxkad_their_client_lossy() {
	local l
	for l in 1 2; do
		relay $((7500 + l)) $((7300 + l)) $l || fail "the relay did not start"
		afs_to $((7500 + l)) $l recv -b 2M
		afs_to $((7500 + l)) $l send -b 2M
		want_losses $((7500 + l))
	done
}

test_rxkad_their_server_lossy() {
	local l
	for l in 1 2; do
		relay $((7600 + l)) $((7400 + l)) $l || fail "the relay did not start"
		ours_to $((7600 + l)) $l recv 2097152 1
		ours_to $((7600 + l)) $l send 2097152 1
		want_losses $((7600 + l))
	done
}

# A stronger level is accepted, a weaker one is refused with 19270402, in both directions.
test_rxkad_levels() {
	ours_to 7400 2 rpc 100 3
	afs_to 7300 2 rpc -S 10 -R 10
	limited 30 "$ours" client 127.0.0.1 7402 $key 1 rpc 10 1 > out.txt 2> err.txt &&
		fail "their server accepted a weaker level"
	want_line err.txt 'code 19270402$'
	limited 30 afsrx_client -s 127.0.0.1 -p 7302 --deadline 20 --rxkad $key:1 -c rpc > out.json 2> err.txt &&
		fail "our server accepted a weaker level"
	want_field out.json error 19270402
}

test_rxkad_wrong_key() {
	limited 30 "$ours" client 127.0.0.1 7402 $wrong 2 rpc 10 1 > out.txt 2> err.txt &&
		fail "their server accepted a ticket under another key"
	want_line err.txt 'code 19270407$'
	limited 30 afsrx_client -s 127.0.0.1 -p 7302 --deadline 20 --rxkad $wrong:2 -c rpc > out.json 2> err.txt &&
		fail "our server accepted a ticket under another key"
	want_field out.json error 19270407
}

test_rxkad_end() {
	local l
	for l in 0 1 2; do
		stop "ours$l" || fail "our server of level $l ended with $?"
		stop "afs$l" || fail "their server of level $l ended with $?: wrong bytes"
	done
}
