# SPDX-License-Identifier: BSD-2-Clause
# Generated stubs, in both directions: interop.xg by rxwgen on librxwire, and by OpenAFS's rxgen on its library.
#
# For each kind: three servers, one of which refuses a call with 4711, and a port without a server.

ours=
before_stubs() {
	local i
	ours=$(need stubs_ours) || return
	for i in 0 1 2; do
		launch "ours$i" "$ours" server $((7300 + i)) "server$i"
		launch "afs$i" stubs_afs server $((7400 + i)) "server$i"
	done
	launch ours3 "$ours" server 7303 server3 4711
	launch afs3 stubs_afs server 7403 server3 4711
	for i in 0 1 2 3; do
		wait_port $((7300 + i)) "ours$i" && wait_port $((7400 + i)) "afs$i" || return
	done
}

# client TEST PORT PROGRAM...
client() {
	local test=$1 p=$2
	shift 2
	limited 60 "$@" client "$test" "$p" $((p + 1)) $((p + 2)) $((p + 3)) $((p + 99)) 2> err.txt ||
		fail "$(basename "$1") client $test, servers from port $p, ended with $?: $(tail -n 1 err.txt)"
}

# Our client with their server, and their client with ours.
both() {
	client "$1" 7400 "$ours"
	client "$1" 7300 stubs_afs
}

test_stubs_itself() {
	local t
	for t in plain aborts wrong store fetch exchange refused-data multi; do
		client $t 7300 "$ours"
	done
}

test_stubs_plain() { both plain; }
test_stubs_aborts() { both aborts; }
test_stubs_wrong() { both wrong; }
test_stubs_split_store() { both store; }
test_stubs_split_fetch() { both fetch; }
test_stubs_split_exchange() { both exchange; }
test_stubs_split_refused() { both refused-data; }
test_stubs_multi() { both multi; }

# Through a network that drops, duplicates and delays.
test_stubs_lossy() {
	local t
	relay 7501 7300 11 && relay 7502 7400 12 || fail "the relay did not start"
	for t in store fetch exchange; do
		client $t 7502 "$ours"
		client $t 7501 stubs_afs
	done
	want_losses 7501
	want_losses 7502
}

test_stubs_end() {
	local i
	for i in 0 1 2 3; do
		stop "ours$i" || fail "our server $i ended with $?"
		stop "afs$i" || fail "their server $i ended with $?"
	done
}
