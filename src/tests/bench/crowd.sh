#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The benchmark of crowds on a tiny volume: each contestant that can run here sends all files to all clients.

python=${PYTHON3:-python3}
command -v "$python" > /dev/null || { echo "SKIP: python3 is not installed"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/rxw-crowd-XXXXXX") || exit 99
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null; rm -rf "$work"' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }

# measure OPTIONS...: a run whose records are in $work/records.
measure() {
	rm -f "$work/records"
	"$python" -B "$top_srcdir/src/bench/crowd" --source "$top_srcdir" --build "$top_builddir" --folder "$work/bench" \
		--out "$work/records" --volume-bytes 17M --clients 3 --rounds 1 --seconds 300 --check "$@" \
		> "$work/page" 2> "$work/err" || fail "crowd $*: status $?: $(tail -n 3 "$work/err") $(grep '^- ' "$work/page")"
}

# arrived NAMES: each contestant has sent three times the volume, or could not take part. Prints the reasons.
arrived() {
	"$python" - "$work/records" "$@" << 'END' || fail "not the records of the contestants: $(cat "$work/records")"
import json, sys
records = [json.loads(line) for line in open(sys.argv[1])]
cells = {r["contestant"]: r for r in records if r["type"] == "cell"}
skips = [r["why"] for r in records if r["type"] == "skip"]
for name in sys.argv[2:]:
    why = next((w for w in skips if name.startswith(w.split(":")[0])), None)
    if why:
        print("SKIP", why)
        continue
    cell = cells[name]
    assert cell["bytes"] == 3 * (17 << 20) and not cell["stopped"], cell
    assert cell["server_cpu_s"] > 0 and cell["threads"] > 0, cell
END
}

measure --only directory --only store --only nginx --only datagrams
arrived 'rxfsd, directory' 'rxfsd, store' 'nginx, sendfile' 'plain datagrams'
"$python" -B "$top_srcdir/src/bench/crowd" --from "$work/records" > "$work/again" || fail "--from: status $?"
cmp -s "$work/page" "$work/again" || fail "the records make another page: $(cat "$work/again")"

# OpenAFS's file server, unless its packages would have to be fetched first.
if [ -f "$top_builddir/interop-openafs/complete" ] ||
	{ [ -x /usr/lib/openafs/fileserver ] && [ -f /usr/include/rx/rx.h ]; }; then
	measure --only openafs
	arrived "OpenAFS's file server" "OpenAFS's file server, jumbograms"
else
	echo "SKIP OpenAFS's file server: its packages are not here (make interop fetches them)"
fi

# Datagrams that are lost are asked for again.
measure --only datagrams --lose 20
arrived 'plain datagrams'
grep -q '"sent_again": [1-9]' "$work/records" || fail "nothing was sent again: $(cat "$work/records")"

# Phases of overload, with a server that 50 fetches fit. Their figures mean nothing here.
measure --overload --only directory --clients 50 --seconds 1 --phase 'twice as many' --phase 'no acknowledgements' \
	--phase 'beside one socket'
if grep -q '"why": "no network namespace' "$work/records"; then
	echo "SKIP overload: no network namespace can be made"
else
	"$python" - "$work/records" << 'END' || fail "not the records of the phases: $(cat "$work/records")"
import json, sys
phases = {r["phase"]: r for r in map(json.loads, open(sys.argv[1])) if r["type"] == "overload"}
assert {name: r["clients"] for name, r in phases.items()} == \
    {"twice as many": 100, "no acknowledgements": 45, "beside one socket": 5}, phases
assert all(r["bytes"] > 0 and r["peak_MiB"] > 0 for r in phases.values()), phases
END
fi

# Bytes other than those of the file end the program.
mkdir "$work/files" "$work/others"
head -c 300000 /dev/urandom > "$work/files/f00000"
{ head -c 200000 "$work/files/f00000"; head -c 100000 /dev/zero; } > "$work/others/f00000"
"$python" - > "$work/ports" << 'END'
import socket
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))
END
read -r port status < "$work/ports"
"$top_builddir/src/bench/crowd_raw_server" 127.0.0.1 "$port" "$status" "$work/files" 1 &
server=$!
for one in "$port" "$status"; do
	until grep -qi ":$(printf %04X "$one") " /proc/net/udp; do
		kill -0 "$server" 2> /dev/null || break
		sleep 0.05
	done
done
load() { "$top_builddir/src/bench/crowd_load" -d "$port" -q "$status" -t 60 "$@" > "$work/load" 2> "$work/err"; }
load -k "$work/files" || fail "the same files: status $?: $(cat "$work/err")"
load -k "$work/others" && fail "other bytes were accepted"
grep -q '^crowd_load: f00000: other bytes' "$work/err" || fail "no message about other bytes: $(cat "$work/err")"
exit $failed
