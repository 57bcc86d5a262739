# SPDX-License-Identifier: BSD-2-Clause
# rxafsctl paths: the paths of a mount to a server with two addresses, before and after a large file.

link='none,rate=200Mbit,delay=5ms'
. "$top_srcdir/src/tests/tools/twolinks.sh"
rxafs=$top_builddir/src/rxafs/rxafs ctl=$top_builddir/src/rxafs/rxafsctl
[ -x "$rxafs" ] && [ -x "$ctl" ] || { echo "SKIP: rxafs or rxafsctl is not built"; exit 77; }
[ -w /dev/fuse ] || { echo "SKIP: no /dev/fuse"; exit 77; }

make_volume root.cell
start_far_server --store store --allow-anonymous-writes --advertise "$RXW_FAR4" --advertise "$RXW_FAR4_2"
head -c 16777216 /dev/urandom > big
$RXW_FAR "$afscp" -q -s 127.0.0.1:7003:7000 put big root.cell:/big || fail "put"
mkdir afs
"$rxafs" -f --cell test.example --servers "test.example=$RXW_FAR4:7003:7000" afs 2> rxafs.err &
daemon=$!
servers="$server $daemon"
tries=0
until mountpoint -q afs; do
	kill -0 $daemon 2> /dev/null && [ $((tries += 1)) -lt 1000 ] || { cat rxafs.err; echo "SKIP: rxafs did not start"; exit 77; }
	sleep 0.05
done

"$ctl" --mount afs --json paths > none || fail "paths: $?"
grep -q '"paths": \[\]' none || fail "paths of no server: $(cat none)"
cmp big afs/test.example/big || fail "the file differs"
"$ctl" --mount afs --json paths > both || fail "paths: $?"
python3 -c 'import json, os
paths = json.load(open("both"))["paths"]
got = sorted((p["local"], p["server"], p["cell"], p["state"]) for p in paths)
wanted = sorted((os.environ[a], os.environ[b] + ":7000", "test.example", "up") for a, b in (("RXW_NEAR4", "RXW_FAR4"), ("RXW_NEAR4_2", "RXW_FAR4_2")))
assert got == wanted, got
assert sum(p["bytes"] for p in paths) > 8000000 and {p["device"] for p in paths} == {"wire0", "wire1"}, paths' || fail "both: $(cat both)"
"$ctl" --mount afs paths > text || fail "paths: $?"
[ "$(grep -c "10.*:7000 test.example from 10.* by wire[01]: up, RTT .* ms, .* MB/s, .* MB, lost [0-9]* times" text)" -eq 2 ] || fail "text: $(cat text)"
result
