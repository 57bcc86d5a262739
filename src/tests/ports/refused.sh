#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The suites of loopback and streams on kernels that lack something: one thing each, and all of them. Part of
# `make port-check`; what the endpoint does without is in test_refused.

: "${top_builddir:?}"
tests=$top_builddir/src/tests
refusing=$tests/ports/refusing
[ -x "$tests/rx/face/test_stream" ] || { echo "SKIP: the unit tests were left out"; exit 77; }
"$refusing" all true
rc=$?
[ $rc -ne 77 ] || { echo "SKIP: system calls cannot be refused here"; exit 77; }
[ $rc -eq 0 ] || exit 1

log=$(mktemp) || exit 99
trap 'rm -f "$log"' EXIT
status=0
# The size at which sanitizers run: what is looked at is another way, not how long it lasts.
export RXW_TEST_SMALL=1
for what in gso gro steer mmsg gso,gro,steer,mmsg; do
	for suite in test_loopback test_stream; do
		if "$refusing" "$what" "$tests/rx/face/$suite" > "$log" 2>&1; then
			echo "PASS: without $what: $suite"
		else
			cat "$log"
			echo "FAIL: without $what: $suite"
			status=1
		fi
	done
done
exit $status
