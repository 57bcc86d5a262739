#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The benchmark's analysis of time lines and of the block layer's trace: it finds the thread that waited.

set -u
python=${PYTHON3:-python3}
command -v "$python" >/dev/null || { echo "SKIP: no python3"; exit 77; }
exec "$python" -B - "$top_srcdir/src/bench" <<'END'
import sys

sys.path.insert(0, sys.argv[1])
import disk
import diskline

MIB = 1 << 20


def read(offset, posted, begin, end, what="ahead"):
    return {"send": 1, "what": what, "offset": offset * MIB, "bytes": MIB, "posted_ns": posted,
            "begin_ns": begin, "end_ns": end}


def sent(offset, begin, end, ahead, allowed):
    return {"send": 1, "what": "send", "offset": offset * MIB, "bytes": MIB, "begin_ns": begin,
            "end_ns": end, "ahead": ahead, "allowed": allowed}


def expect(found, wanted, what):
    if found != wanted:
        sys.exit(f"FAIL: {what}: {found!r}, not {wanted!r}")


# Two buffers: the third read is posted as soon as the first piece is sent.
good = [read(0, 1, 2, 10), read(1, 1, 3, 20), sent(0, 11, 30, 2, 2), read(2, 31, 32, 50),
        sent(1, 33, 40, 2, 2), sent(2, 51, 60, 1, 1)]
expect(diskline.waits(good), [], "nobody waited")
expect(diskline.unread(good), [], "all was read first")
expect(diskline.delays(good), [1, 1, 2], "delays")
expect(diskline.split(good), 
       {"cached": 0, "direct": 0, "ahead": 3 * MIB, "dropped": 0, "send": 3 * MIB}, "bytes")

# The third read only after the second send: detected, although the server does not report it.
late = [dict(x) for x in good]
late[3]["posted_ns"] = 41
expect(diskline.waits(late), [late[4]], "a read that waited for a send")
said = [dict(x) for x in good]
said[4]["ahead"] = 1
expect(diskline.waits(said), [said[4]], "a server that admits it")

# A read that was posted but no longer needed when its turn came.
cut = [dict(x) for x in good[:5]]
cut[3]["what"] = "dropped"
expect(diskline.waits(cut), [], "a read that was dropped")
expect(diskline.unread(cut), [], "a read that was dropped was not sent")

# Reads of other sends do not count.
other = [dict(x) for x in good]
other[3]["send"] = 2
expect(len(diskline.waits(other)), 2, "reads of another send")

# Bytes that were sent before they were read.
early = [dict(x) for x in good]
early[1]["end_ns"] = 34
expect(diskline.unread(early), [early[4]], "sent unread")
expect(len(diskline.unread(good[1:])), 1, "a read that is missing")

# The trace: lines of two disks, a write, a request that did not end.
trace = """# tracer: nop
 rxw-9 [000] ..... 100.000001: block_rq_issue: 254,0 R 1048576 () 2048 + 2048 none,0,0 [0]
 rxw-9 [000] ..... 100.000002: block_rq_issue: 254,16 R 4096 () 8 + 8 none,0,0 [0]
 kworker/0-1 [000] ..... 100.000003: block_rq_issue: 254,0 WS 4096 () 8 + 8 none,0,0 [0]
 rxw-9 [000] ..... 100.000004: block_rq_issue: 254,0 RA 4096 () 9000 + 8 none,0,0 [0]
 <idle>-0 [001] d.h.. 100.000010: block_rq_complete: 254,0 R () 2048 + 2048 none,0,0 [0]
 <idle>-0 [001] d.h.. 100.000012: block_rq_complete: 254,0 RA () 9000 + 8 none,0,0 [0]
 rxw-9 [000] ..... 100.000020: block_rq_issue: 254,0 RA 524288 () 50000 + 1024 none,0,0 [0]
"""
requests = disk.parse_trace(trace.splitlines(), (254, 0))
expect([(b - a, n) for a, b, n in requests], [(9000, MIB), (8000, 4096)], "requests")
count, mean, large = diskline.sizes(requests)
expect((count, mean), (2, (MIB + 4096) / 2), "sizes")
expect(round(large, 3), 0.996, "share of the large ones")
base = requests[0][0]
expect(diskline.idle([(base, base + 10, 1), (base + 5, base + 20, 1), (base + 60, base + 100, 1)]),
       0.4, "idle")
points = diskline.curves(good, [(0, 5, MIB)], 45)
expect([s["label"] for s in points],
       ["asked of the disk", "had from the disk", "read by rxfsd", "sent"], "series")
expect(points[3]["points"][-1], [0.0, round(2 * MIB / 1e6, 3)], "what was sent within the excerpt")
END
