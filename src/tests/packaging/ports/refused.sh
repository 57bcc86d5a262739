#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Suites on kernels without certain features: loopback and streams without each one, and all tests that open sockets
# of the library ($REFUSED_TESTS) without all of them. Part of `make port-check`. test_refused checks how the endpoint
# adapts. A test that needs a refused feature says so, and is counted with its suite.

: "${top_builddir:?}" "${REFUSED_TESTS:?}"
tests=$top_builddir/src/tests
refusing=$tests/packaging/ports/refusing
runner=${PORTS_RUN_WITH:-}
[ -x "$tests/rx/api/test_stream" ] || { echo "SKIP: the unit tests were left out"; exit 77; }
"$refusing" all true
rc=$?
[ $rc -ne 77 ] || { echo "SKIP: this machine cannot refuse system calls"; exit 77; }
[ $rc -eq 0 ] || exit 1

log=$(mktemp) || exit 99
trap 'rm -f "$log"' EXIT
status=0
# The transfer size of sanitizer builds: another code path is tested, not its speed.
export RXW_TEST_SMALL=1

# without WHAT SUITE: runs the suite
without() {
	# shellcheck disable=SC2086 # words
	if $runner timeout -k 10 300 "$refusing" "$1" "$top_builddir/$2" > "$log" 2>&1; then
		needed=$(sed -n 's/^SKIP: a test that needs //p' "$log" | sort | uniq -c |
			sed 's/^ *\([0-9]*\) \(.*\)/\1 left out: needs \2/' | paste -sd ';')
		echo "PASS: without $1: ${2#src/tests/}${needed:+ ($needed)}"
	else
		cat "$log"
		echo "FAIL: without $1: ${2#src/tests/}"
		status=1
	fi
}

for what in gso gro steer reuseport mmsg; do
	without $what src/tests/rx/api/test_loopback
	without $what src/tests/rx/api/test_stream
done
for suite in $REFUSED_TESTS; do without all "$suite"; done
exit $status
