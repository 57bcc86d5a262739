# SPDX-License-Identifier: BSD-2-Clause
# The same programs and stubs of OpenAFS's rxgen on its library and on librxwire-classic, in all four pairings.

key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
wrong=ff02030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
stubs_tests='plain aborts wrong store fetch exchange refused-data multi'

# Servers, librxwire-classic's on ports 7300 to 7349, OpenAFS's 100 above: stubs as in stubs.bash, transfers without
# security, and with it at each level.
before_classic() {
	local i
	for i in 0 1 2 3; do
		launch "stubs-classic$i" stubs_classic server $((7300 + i)) "server$i" $((i == 3 ? 4711 : 0))
		launch "stubs-afs$i" stubs_afs server $((7400 + i)) "server$i" $((i == 3 ? 4711 : 0))
	done
	launch classic classic_server -p 7310 --fill --verify --udp-buffer 4M
	launch afs afsrx_server -p 7410 --fill --verify --udp-buffer 4M
	for i in 0 1 2; do
		launch "classic$i" classic_server -p $((7320 + i)) --fill --verify --rxkad $key:$i
		launch "afs$i" afsrx_server -p $((7420 + i)) --fill --verify --rxkad $key:$i
	done
	for i in 0 1 2 3; do
		wait_port $((7300 + i)) "stubs-classic$i" && wait_port $((7400 + i)) "stubs-afs$i" || return
	done
	wait_port 7310 classic && wait_port 7410 afs || return
	for i in 0 1 2; do
		wait_port $((7320 + i)) "classic$i" && wait_port $((7420 + i)) "afs$i" || return
	done
}

# stubs CLIENT PORT [TEST...]: the client's tests, or these, with the servers from a port on.
stubs() {
	local program=$1 p=$2 t
	shift 2
	# shellcheck disable=SC2086 # names of tests are words
	[ $# -gt 0 ] || set -- $stubs_tests
	for t in "$@"; do
		limited 60 "$program" client "$t" "$p" $((p + 1)) $((p + 2)) $((p + 3)) $((p + 99)) 2> err.txt ||
			fail "$program client $t, servers from port $p, ended with $?: $(tail -n 1 err.txt)"
	done
}

test_classic_itself() { stubs stubs_classic 7300; }
test_classic_their_client() { stubs stubs_afs 7300; }
test_classic_their_server() { stubs stubs_classic 7400; }
# If this fails, librxwire-classic is not the cause.
test_classic_theirs() { stubs stubs_afs 7400; }

test_classic_lossy() {
	relay 7501 7300 11 && relay 7502 7400 12 || fail "the relay did not start"
	stubs stubs_afs 7501 store fetch exchange
	stubs stubs_classic 7501 store fetch exchange
	stubs stubs_classic 7502 store fetch exchange
	want_losses 7501
	want_losses 7502
}

# transfer CLIENT PORT OPTIONS...: a call or more; its figures in out.json.
transfer() {
	local program=$1 p=$2
	shift 2
	limited 60 "$program" -s 127.0.0.1 -p "$p" --deadline 50 --udp-buffer 4M --fill --verify "$@" \
		> out.json 2> err.txt || fail "$program, port $p, $*, ended with $?: $(head -n 1 err.txt)"
	want_field out.json error 0
	want_field out.json bad_bytes 0
}

# pairs COMMAND...: runs it with each client and server but OpenAFS's with OpenAFS's.
pairs() {
	"$1" classic_client 7310 "${@:2}"
	"$1" afsrx_client 7310 "${@:2}"
	"$1" classic_client 7410 "${@:2}"
}

# much CLIENT PORT BYTES OPTIONS...: much data in each direction.
much() {
	local program=$1 p=$2 n=$3
	shift 3
	transfer "$program" "$p" "$@" -c send -b "$n"
	want_field out.json bytes_sent "$n"
	transfer "$program" "$p" "$@" -c recv -b "$n"
	want_field out.json bytes_received "$n"
}

# Requests and replies of sizes around those of packets; much data; and many calls.
bulk() {
	local n
	for n in 0 1 4 1411 1412 1413 65535 65537; do
		transfer "$1" "$2" -c rpc -S $n -R $n
	done
	much "$1" "$2" 16777216
	transfer "$1" "$2" -c rpc -S 100 -R 3000 -T 200
	want_field out.json calls 200
}
test_classic_bulk() { pairs bulk; }

lists() {
	transfer "$1" "$2" -c file -f 4000,80000,0,120000
	want_field out.json bytes 204000
}
test_classic_lists() { pairs lists; }

parallel() {
	transfer "$1" "$2" -c recv -b 1M -t 16 -C 4
	want_field out.json calls 16
	want_field out.json bytes_received 16777216
}
test_classic_parallel() { pairs parallel; }

# secure CLIENT PORT LEVEL: the same with security.
secure() {
	local n
	for n in 0 1 4 1400 1401 1408 1409 65537; do
		transfer "$1" "$2" --rxkad "$key:$3" -c rpc -S $n -R $n
	done
	much "$1" "$2" 4194304 --rxkad "$key:$3"
	transfer "$1" "$2" --rxkad "$key:$3" -c rpc -S 100 -R 3000 -T 100
	want_field out.json calls 100
}

test_classic_rxkad() {
	local l
	for l in 0 1 2; do
		secure classic_client $((7320 + l)) $l
		secure afsrx_client $((7320 + l)) $l
		secure classic_client $((7420 + l)) $l
	done
}

# refused CLIENT PORT KEY:LEVEL CODE
refused() {
	limited 30 "$1" -s 127.0.0.1 -p "$2" --deadline 20 --rxkad "$3" -c rpc > out.json 2> err.txt &&
		fail "$1: the server on port $2 accepted it"
	want_field out.json error "$4"
}

# A stronger level is accepted, a weaker one is refused with 19270402.
test_classic_rxkad_levels() {
	transfer classic_client 7320 --rxkad $key:2 -c rpc
	transfer afsrx_client 7320 --rxkad $key:2 -c rpc
	transfer classic_client 7420 --rxkad $key:2 -c rpc
	refused classic_client 7322 $key:1 19270402
	refused afsrx_client 7322 $key:1 19270402
	refused classic_client 7422 $key:1 19270402
}

test_classic_rxkad_wrong_key() {
	refused classic_client 7322 $wrong:2 19270407
	refused afsrx_client 7322 $wrong:2 19270407
	refused classic_client 7422 $wrong:2 19270407
}

# A server of transfers ends with status 1 if bytes were wrong.
test_classic_end() {
	local i
	for i in 0 1 2 3; do
		stop "stubs-classic$i" || fail "server $i on librxwire-classic ended with $?: $(tail -n 1 "stubs-classic$i.err")"
		stop "stubs-afs$i" || fail "server $i on OpenAFS's library ended with $?"
	done
	stop classic || fail "the server on librxwire-classic ended with $?"
	stop afs || fail "the server on OpenAFS's library ended with $?"
	for i in 0 1 2; do
		stop "classic$i" || fail "the server on librxwire-classic of level $i ended with $?"
		stop "afs$i" || fail "the server on OpenAFS's library of level $i ended with $?"
	done
}
