# SPDX-License-Identifier: BSD-2-Clause
# The scripted peer of src/tests/system/conformance against OpenAFS's library: its results for each item differ from the
# specification exactly where openafs.known lists it.

peer=$here/../conformance/run
before_conformance() {
	command -v python3 > /dev/null || return 0
	# Many tests that are known to differ end only by their time limit.
	RXW_CONFORMANCE_LIMIT=20 limited 130 python3 -B "$peer" --openafs "$programs" \
		--known "$here/../conformance/openafs.known" > conformance.txt 2>&1
	cat conformance.txt
	return 0
}

# conform ROLE: runs the tests of a server or of a client.
conform() {
	local t bad= good=0
	command -v python3 > /dev/null || skip "python3 is not installed"
	grep -q ' passed, ' conformance.txt || fail "it ended early: $(tail -n 1 conformance.txt)"
	for t in $(python3 -B "$peer" --list --openafs "$programs" --role "$1"); do
		! grep -q "^FAIL: $t" conformance.txt || bad="$bad $(grep "^FAIL: $t" conformance.txt)"
		! grep -q "^PASS: $t" conformance.txt || good=$((good + 1))
	done
	[ -z "$bad" ] || fail "$bad"
	[ "$good" -gt 20 ] || fail "only $good tests passed"
}

test_conformance_server() {
	conform server
}

test_conformance_client() {
	conform client
}

# One of our handlers works for 10 s, nearly as long as OpenAFS's client waits for a dead server: its PINGs are
# answered, although its address is not validated and may be sent little.
test_conformance_slow_handler() {
	local p at
	p=$(need src/tests/system/conformance/endpoint) || exit
	mkfifo slow.in
	launch slow sh -c '"$1" server delay=10000 < slow.in' sh "$p"
	exec 7> slow.in
	wait_for grep -q port slow.out || fail "the server has not begun"
	at=$(sed -n 's/^port //p' slow.out)
	limited 60 afsrx_client -s 127.0.0.1 -p "$at" --deadline 50 -c rpc -S 4 -R 3000 > slow.json ||
		fail "the OpenAFS client ended with $?"
	exec 7>&-
	want_field slow.json error 0
	want_field slow.json calls 1
}
