#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Suites on kernels that lack something: loopback and streams without one thing each, and all that opens sockets
# of the library ($REFUSED_TESTS) without any of them. Part of `make port-check`; what the endpoint does without is
# in test_refused. A test that needs what is refused says so, and is counted with its suite.

: "${top_builddir:?}" "${REFUSED_TESTS:?}"
tests=$top_builddir/src/tests
refusing=$tests/ports/refusing
runner=${PORTS_RUN_WITH:-}
[ -x "$tests/rx/api/test_stream" ] || { echo "SKIP: the unit tests were left out"; exit 77; }
"$refusing" all true
rc=$?
[ $rc -ne 77 ] || { echo "SKIP: system calls cannot be refused here"; exit 77; }
[ $rc -eq 0 ] || exit 1

log=$(mktemp) || exit 99
trap 'rm -f "$log"' EXIT
status=0
# The size at which sanitizers run: what is looked at is another way, not how long it lasts.
export RXW_TEST_SMALL=1

# without WHAT SUITE
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
