# SPDX-License-Identifier: BSD-2-Clause
# The tables of src/bench/long from recorded transfers, and the program that the kernel's TCP is measured with.

python=${PYTHON3:-python3}
command -v "$python" > /dev/null || { echo "SKIP: python3 is not installed"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/rxw-long-XXXXXX") || exit 99
server=
trap 'rm -rf "$work"; [ -z "$server" ] || kill "$server" 2> /dev/null' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }

about='{"down_bps": 1000000000, "device_mtu": 1500, "rtt_ms": 100}'
link='{"down": {"entered": 1000, "left": 980, "lost": 5, "overflowed": 10, "dropped": 5}, "up": {"left": 20}, "late": 10}'
common="\"about\": $about, \"link\": $link, \"server_cpu\": 1.0, \"client_cpu\": 2.0, \"emulator_user\": 1, \"emulator_system\": 3,
	\"again\": 30, \"sent\": 1000"
{
	echo '{"type": "machine", "about": ["a machine"], "revision": "r1"}'
	for bytes in 1000000000 2000000000 4000000000; do
		echo "{\"type\": \"transfer\", \"profile\": \"p\", \"who\": \"cubic\", \"flows\": 1, \"bytes\": $bytes,
			\"seconds\": 20, \"fairness\": 1, $common}" | tr -d '\n\t'
		echo
	done
	echo "{\"type\": \"transfer\", \"profile\": \"p\", \"who\": \"rxwire\", \"flows\": 4, \"bytes\": 500000000,
		\"seconds\": 20, \"fairness\": 0.875, \"acks\": 10, \"data\": 640, \"others\": 0.25, $common}" | tr -d '\n\t'
	echo
	echo "{\"type\": \"calls\", \"profile\": \"p\", \"who\": \"rxwire\", \"size\": 100000000, \"call_seconds\": [3, 2],
		$common}" | tr -d '\n\t'
	echo
	echo "{\"type\": \"beside\", \"profile\": \"p\", \"who\": \"cubic\", \"bytes\": 1, \"seconds\": 60,
		\"flow_bps\": [3e8, 6e8], \"ends\": [{\"marks\": 7}, {}], \"others\": 0.5, $common}" | tr -d '\n\t'
	echo
	echo "{\"type\": \"rtts\", \"profile\": \"p\", \"who\": \"rxwire\", \"seconds\": 60, \"flow_bps\": [6e8, 2e8],
		\"others\": 0.5, $common}" | tr -d '\n\t'
	echo
	# The queue dropped four of the first 400 packets, the last of them after 0.4 s, and none later.
	echo "{\"type\": \"start\", \"profile\": \"p\", \"who\": \"rxwire\", \"others\": 0.5,
		\"start\": [[0.1, 10, 0], [0.2, 200, 3], [0.4, 400, 4], [0.6, 900, 4]], $common}" | tr -d '\n\t'
	echo
	echo '{"type": "skip", "why": "TCP, BBR: this kernel does not have it"}'
} > "$work/records"
"$python" -B "$top_srcdir/src/bench/long" --from "$work/records" > "$work/page" || fail "status $?"
# The median run: 2 GB in 20 s.
for row in '| `p` | 1 | TCP, CUBIC | 800.0 | 80.0 % | 0.50 | 1.00 | 2.00 | 3.00 % | 2.00 % | – | – | – | – |' \
	'| `p` | 4 | rxwire | 200.0 | 20.0 % | 2.00 | 4.00 | 8.00 | 3.00 % | 2.00 % | 64 | 0.875 | 0.25 | 1.00 % |' \
	'| `p` | TCP, CUBIC | 60 | 300.0 | 600.0 | 33 % | 90.0 % | 7 | 2.00 % | 0.50 | 1.00 % |' \
	'| `p` | rxwire | 600.0 | 200.0 | 0.25 | 80.0 % | 0.50 | 1.00 % |' \
	'| `p` | rxwire | 400 | 4 | 1.00 % | 0.4 | 0.50 | 1.00 % |' \
	'| `p`, 100 MB | rxwire | 3.00 | 2.00 | 0.80 |' 'a machine; revision r1.' \
	'Left out: TCP, BBR: this kernel does not have it.'; do
	grep -qFx -- "$row" "$work/page" || fail "no row $row in: $(cat "$work/page")"
done

# Over loopback: as many bytes as were asked for, flow by flow.
program=$top_builddir/src/bench/long_tcp
port=$("$python" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$program" server 127.0.0.1 "$port" > "$work/server" 2>&1 &
server=$!
tries=0
until grep -qs ready "$work/server"; do
	tries=$((tries + 1))
	[ $tries -lt 2000 ] && kill -0 $server || { echo "no server: $(cat "$work/server")"; exit 1; }
	sleep 0.01
done
"$program" calls 127.0.0.1 "$port" reno 1000000 3 > "$work/calls" || fail "calls: status $?"
"$program" flows 127.0.0.1 "$port" reno 3 0.2 > "$work/flows" || fail "flows: status $?"
"$program" flows 127.0.0.1 "$port" reno 0 1 > "$work/none" 2>&1 && fail "no flow is a number of flows"
"$python" - "$work" << 'END' || fail "not the figures of the transfers"
import json, sys
calls = json.load(open(sys.argv[1] + "/calls"))["call_seconds"]
flows = json.load(open(sys.argv[1] + "/flows"))
assert len(calls) == 3 and min(calls) > 0, calls
assert len(flows["flow_bytes"]) == 3 and min(flows["flow_bytes"]) > 0 and flows["seconds"] >= 0.2, flows
END
kill -TERM $server
wait $server || fail "server: status $?"
server=
tail -n 1 "$work/server" | "$python" -c 'import json, sys; r = json.load(sys.stdin); assert r["segments"] > 0, r' ||
	fail "server: $(cat "$work/server")"
exit $failed
