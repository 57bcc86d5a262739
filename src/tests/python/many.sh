#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# many.sh [CALLS]: a client and a server with asyncio, in processes of their own, and so many calls (10,000) that wait
# at the same time. Neither may have more than 40 descriptors in all. Part of the complete check; calls.sh has 1,000.

. "$(dirname "$0")/lib.sh"
calls=${1:-10000}
descriptors=40
kib=$((calls * 40)) # of both processes; twice of what they need
title="asyncio: $calls calls at the same time"
available=$(sed -n 's/^MemAvailable:[^0-9]*\([0-9]*\).*/\1/p' /proc/meminfo)
[ "${available:-0}" -ge $kib ] || { echo "SKIP: $title (it needs $kib KiB of memory, $available are available)"; exit 77; }
ulimit -n $descriptors || { echo "SKIP: $title (the shell cannot set the limit of descriptors)"; exit 77; }
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

fail() {
	cat "$work"/*.out
	echo "FAIL: $title: $*"
	exit 1
}

cp "$top_srcdir/examples/python/echo.xg" "$here/many.py" "$work/"
cd "$work" || exit 99
module echo.xg
mkfifo port
python3 many.py serve "$calls" > port &
server=$!
exec 3< port
read -r line <&3
timeout 240 python3 many.py load "${line#port }" "$calls" > client.out 2>&1 || fail "the client ended with $?"
cat <&3 > server.out
wait "$server" || fail "the server ended with $?"
server=
grep -q "^$calls calls wait: 0 more descriptors" server.out || fail 'the server did not hold all calls without descriptors'
grep -q "^$calls good answers; 0 more descriptors" client.out || fail 'an answer is missing, or calls need descriptors'
sed 's/^/server: /' server.out
sed 's/^/client: /' client.out
echo "PASS: $title"
