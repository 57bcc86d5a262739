# SPDX-License-Identifier: BSD-2-Clause
"""Run by lab at side a: a transfer from side b through a queue that marks, traced at both ends and drawn.

usage: traced.py BUILD_DIR ADDRESS_VARIABLE PYTHON. What the traces say of marks must be what the link did."""
import glob
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

PATIENCE = 120
BYTES = 12 << 20


def marked(path, six):
    """DATA packets of a trace by the ECN bits of their IP headers, and all comments."""
    counts, comments, at = [0] * 4, [], 0
    with open(path, "rb") as f:
        data = f.read()
    while at < len(data):
        kind, size = struct.unpack_from("=II", data, at)
        if kind == 6:
            kept = struct.unpack_from("=I", data, at + 20)[0]
            ip = data[at + 28:at + 28 + kept]
            bits = ip[1] >> 4 & 3 if six else ip[1] & 3
            if ip[(48 if six else 28) + 20] == 1:
                counts[bits] += 1
            comments += re.findall(rb"[ -~]{6,}", data[at + 28 + kept:at + size])
        at += size
    return counts, b"\n".join(comments).decode()


def main():
    build, address, python = sys.argv[1], os.environ[sys.argv[2]], sys.argv[3]
    six, link = ":" in address, os.environ["RXW_LINK"]
    if six and not os.path.exists("/proc/net/if_inet6"):
        print("no IPv6")
        return
    rxperf, rxwplot = (os.path.join(build, "src", p, p) for p in ("rxperf", "rxwplot"))
    folders = [os.path.join(link, side) for side in ("near", "far")]
    for f in folders:
        os.mkdir(f, 0o700)
    log = os.path.join(link, "server")
    with open(log, "w", encoding="utf-8") as out:
        server = subprocess.Popen([*os.environ["RXW_FAR"].split(), rxperf, "server", "--listen", address, "-p", "7009",
                                   "--json", "--trace-start", "--trace-dir", folders[1], "--trace-size", "64M"],
                                  stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + PATIENCE
        while "ready" not in open(log, encoding="utf-8").read():
            assert time.monotonic() < end and server.poll() is None, "no server"
            time.sleep(0.01)
        done = subprocess.run([rxperf, "client", "-c", "recv", "-s", address, "-p", "7009", "-b", str(BYTES), "--json",
                               "--trace-dir", folders[0], "--trace-size", "64M"],
                              capture_output=True, text=True, timeout=PATIENCE, check=True)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE)
    near, far = (glob.glob(os.path.join(f, "*.pcapng"))[0] for f in folders)
    client = json.loads(done.stdout)["transport"]
    with open(log, encoding="utf-8") as f:
        said = f.read()
    sender = json.loads(said[said.index("{"):])["transport"]
    at_receiver, _ = marked(near, six)
    at_sender, comments = marked(far, six)
    print(f"CE {client['marks_received']}; in the traces: received {at_receiver}, sent {at_sender}; "
          f"reactions {sender['mark_events']}")
    assert client["marks_received"] > 0 and at_receiver[3] == client["marks_received"], at_receiver
    assert at_sender[2] == sender["marks_sent"] and at_sender[3] == at_sender[1] == 0, at_sender
    reactions = re.findall(r"ECN: capable, (\d+) packets marked, the sender reacts", comments)
    assert len(reactions) == sender["mark_events"] > 0, (reactions, sender["mark_events"])
    assert "ECN: capable, 0 packets marked" in comments, comments[:2000]
    for path, kind, what in ((far, "marked", "by this ACK"), (near, "marked", "is marked"), (far, "ecn", "ECN: capable")):
        svg = subprocess.run([python, "-B", rxwplot, path], capture_output=True, text=True, check=True).stdout
        titles = re.findall(rf'<path class="mark {kind}" d="[^"]*"><title>([^<]*)</title>', svg)
        assert any(what in t for t in titles), (path, kind, titles[:5])
        assert f"{client['marks_received']:,} marked (ECN)" in svg, re.findall("<desc>.*</desc>", svg)


main()
