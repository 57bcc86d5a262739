#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The loopback suites under security classes: RXW_TEST_CLASS sets the class of all connections.
#
# usage: suites.sh [CLASS...]   all suites under each of these; "all": under every class
#        suites.sh              each short suite under one class, distributed so that every class has some
set -u
: "${top_builddir:=.}"
cd "$top_builddir" || exit 99
classes='rxkad-clear rxkad-auth rxkad-crypt rxgk-clear rxgk-auth rxgk-crypt'
# Start the longest suites together with short ones.
suites='api/test_stream api/test_service api/test_endpoint api/test_limits api/test_stats
	api/test_loopback engine/test_receive engine/test_overload engine/test_memory
	engine/test_senders engine/test_inspect rpc/test_procedure rpc/test_window rpc/test_multi
	engine/test_admit engine/test_many api/test_async
	engine/test_lookup'
long='api/test_matrix engine/test_transmit engine/test_bursts'
# Suites that move much data move only a part of it.
RXW_TEST_SMALL=1
# They wait for events, with time limits; several run at once here.
: "${CK_TIMEOUT_MULTIPLIER:=5}"
export RXW_TEST_SMALL CK_TIMEOUT_MULTIPLIER
folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
failed=0 ran=0

# one CLASS SUITE
one() {
	ran=$((ran + 1))
	if RXW_TEST_CLASS=$1 "src/tests/rx/$2" > "$folder/log" 2>&1; then
		echo "PASS: $2 under $1"
		grep '^SKIP:' "$folder/log"
	else
		echo "FAIL: $2 under $1"
		cat "$folder/log"
		failed=$((failed + 1))
	fi
}

[ -x src/tests/rx/api/test_stream ] || { echo 'the suites are not built'; exit 77; }
if [ "${1:-}" = all ]; then
	# split into words on purpose
	set -- $classes
fi
if [ $# -gt 0 ]; then
	for class; do
		for suite in $suites $long; do
			one "$class" "$suite"
		done
	done
else
	# Every suite runs with another class than its neighbour: five of each six lists.
	for suite in $suites; do
		# shellcheck disable=SC2086
		set -- $classes
		shift $((ran % 6))
		one "$1" "$suite"
	done
fi
echo "$ran runs, $failed failed"
[ "$failed" -eq 0 ]
