# SPDX-License-Identifier: BSD-2-Clause
"""rxwplot: a transfer with losses is traced and drawn; captures made by hand; damaged files.
usage: python3 plot.py RXWPLOT RXPERF FOLDER. Status 0 if all is right."""
import contextlib
import glob
import importlib.machinery
import importlib.util
import io
import json
import os
import random
import re
import selectors
import socket
import struct
import subprocess
import sys
import threading
import xml.etree.ElementTree as tree

program, rxperf, work = sys.argv[1:4]
failures = 0
loader = importlib.machinery.SourceFileLoader("rxwplot", program)
rxwplot = importlib.util.module_from_spec(importlib.util.spec_from_loader("rxwplot", loader))
sys.dont_write_bytecode = True
loader.exec_module(rxwplot)

BYTES = 1_500_000
LARGE = 1000               # bytes of a datagram that may be dropped
EVERY = 100                # of these
SVG = "{http://www.w3.org/2000/svg}"


def check(right, what):
    global failures
    if not right:
        failures += 1
        print(f"FAIL: {what}")


def run(*args):
    """Run rxwplot in this process: status, standard output, messages. An exception is a failure."""
    out, err, status = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO(), 0
    sys.argv = ["rxwplot", *args]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = rxwplot.main()
        except SystemExit as e:
            status = e.code
    out.flush()
    return status, out.buffer.getvalue().decode(), err.getvalue()


def titles(svg, kind):
    root = tree.fromstring(svg)
    return [p.find(SVG + "title").text for p in root.iter(SVG + "path")
            if kind in p.get("class", "").split() and p.find(SVG + "title") is not None]


def numbers(texts):
    """The sequence numbers that texts of marks name."""
    found = set()
    for text in texts:
        first, last = re.match(r"packets? (\d+)(?: to (\d+))?", text).groups()
        found.update(range(int(first), int(last or first) + 1))
    return found


# ---- a transfer with losses ----

class Relay(threading.Thread):
    """Relays UDP on loopback and drops every EVERYth large datagram. Ends when `stop` is closed."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.front, self.back = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "12")
        for s in (self.front, self.back):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            s.bind(("127.0.0.1", 0))
        self.port = self.front.getsockname()[1]
        self.stop, self.stopped = socket.socketpair()
        self.dropped = 0

    def run(self):
        wait, client, large = selectors.DefaultSelector(), None, 0
        for source in (self.front, self.back, self.stopped):
            wait.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in wait.select():
                if key.fileobj is self.stopped:
                    return
                try:
                    data, sender = key.fileobj.recvfrom(65536)
                except OSError:    # an ICMP error: the other end has gone
                    continue
                client = sender if key.fileobj is self.front else client
                large += len(data) >= LARGE
                if len(data) >= LARGE and large % EVERY == 0:
                    self.dropped += 1
                elif key.fileobj is self.front:
                    self.back.sendto(data, self.server)
                elif client:
                    self.front.sendto(data, client)


def transfer(folder):
    """Traces of a server and a client; the number of datagrams dropped between them."""
    options = ("--trace-dir", folder, "--trace-size", "64M")
    server = subprocess.Popen([rxperf, "server", "-p", "0", "--listen", "127.0.0.1", "--trace-start",
                               *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    relay = None
    try:
        ready = next((line for line in server.stdout if "ready on" in line), "")
        port = int(re.search(r":(\d+)$", ready.strip())[1])
        relay = Relay(("127.0.0.1", port))
        relay.start()
        done = subprocess.run([rxperf, "client", "-c", "recv", "-s", "127.0.0.1", "-p",
                               str(relay.port), "-b", str(BYTES), *options], capture_output=True,
                              text=True, timeout=120)
        check(done.returncode == 0, f"rxperf: {done.stderr}")
    finally:
        if relay:
            relay.stop.close()
            relay.join()
        server.terminate()
        server.communicate()
    own = glob.glob(os.path.join(folder, f"rxwire-{port}-*.pcapng"))
    other = [f for f in glob.glob(os.path.join(folder, "*.pcapng")) if f not in own]
    return own[0], other[0], relay.dropped


def sent_twice(path):
    """The sequence numbers in two outbound DATA packets of the longest call of a trace of ours."""
    data = open(path, "rb").read()
    at, calls = 0, {}
    while at < len(data):
        kind, size = struct.unpack_from("=II", data, at)
        if kind == 6:
            kept = struct.unpack_from("=I", data, at + 20)[0]
            udp = data[at + 28 + 20:at + 28 + kept]
            flags = data[at + 28 + (kept + 3) // 4 * 4 + 4]
            seq, kind = struct.unpack_from(">I4xB", udp, 8 + 12)
            if kind == 1 and flags == 2:
                seen, twice = calls.setdefault(udp[8:8 + 12], (set(), set()))
                (twice if seq in seen else seen).add(seq)
        at += size
    return max(calls.values(), key=lambda c: len(c[0]))[1]


def drawn(path):
    status, svg, err = run(path)
    check(status == 0 and not err, f"{path}: {status} {err}")
    return svg


def check_transfer(folder):
    server, client, dropped = transfer(folder)
    twice, svg = sent_twice(server), drawn(server)
    check(dropped and twice, f"{dropped} dropped, {len(twice)} packets sent twice")
    again, spurious = titles(svg, "again"), titles(svg, "spurious")
    check(numbers(again + spurious) == twice, f"sent again: {again + spurious}, not {twice}")
    check(numbers(titles(svg, "lost")) >= numbers(again), "lost packets are not those sent again")
    check(len(numbers(again)) >= dropped // 2, f"{len(again)} sent again, {dropped} dropped")
    for text in ("edge of the peer's window", "acknowledged", "congestion window", "in flight",
                 "smoothed", "trace of the sender", "succeeded", "by the serial of an ACK"):
        check(text in svg, f"the drawing lacks {text}")
    check(re.search(r"<title>[a-z]+: [a-z-]+</title></rect>", svg), "no phase")
    check(" onload" not in svg and "<script" not in svg, "there is a script")
    received = drawn(client)
    check("trace of the receiver" in received and "congestion window" not in received,
          "the trace of the receiver")
    return server


def check_choice(path):
    status, out, err = run("--list", path)
    check(status == 0 and not err, f"--list: {err}")
    name = re.search(r"[0-9a-f]{8}/[0-9a-f]{8}/\d+", out)[0]
    number = out.splitlines()[1].split()[0]
    for call in (name, number):
        status, svg, _ = run("--call", call, path)
        check(status == 0 and name in svg, f"--call {call}")
    target = os.path.join(work, "out.svg")
    check(run("-o", target, "--from", "0.001", "--to", "0.01", path)[0] == 0, "-o --from --to")
    tree.parse(target)
    status, svg, _ = run("--direction", "request", path)
    check(status == 0 and "request from" in svg, "--direction")
    for args in (("--call", "9999"), ("--call", "0"), ("--call", "1/2/3"), ("--call", "x")):
        status, out, err = run(*args, path)
        check(status == 1 and not out and err.count("\n") == 1, f"{args}: {status} {err}")
    for args in (("--from", "2", "--to", "1"), ("--to", "nan"), ("--direction", "up")):
        check(run(*args, path)[0] == 2, f"{args} is not refused")


# ---- captures made by hand ----

def rx(kind, seq, serial, flags, body=b"", call=1):
    return struct.pack(">IIIIIBBBBHH", 0x80000001, 0x1000, call, seq, serial, kind, flags, 0, 0, 0,
                       7) + body


def ethernet(data, reply, ecn=0):
    ends = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
    ports = (5000, 7009)
    if reply:
        ends, ports = ends[::-1], ports[::-1]
    udp = struct.pack(">HHHH", *ports, 8 + len(data), 0) + data
    ip = struct.pack(">BBHHHBBH", 0x45, ecn, 20 + len(udp), 0, 0, 64, 17, 0) + ends[0] + ends[1]
    return bytes(12) + b"\x08\x00" + ip + udp


def pcap(packets, link=1, magic=0xa1b23c4d, order=">"):
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for ms, data in packets:
        out += struct.pack(order + "IIII", 5, ms * 1_000_000, len(data), len(data)) + data
    return out


def ack_body(first, previous, serial, reason, table, words, more=(), extended=True):
    """An ACK; `table` of up to 256 bytes, further tables in `more`."""
    count = min(255, len(table))
    last = table[255] if len(table) == 256 else 0
    return struct.pack(">IIIIBB", 0, first, previous, serial, reason, count) + bytes(table[:count]) + \
        bytes((last, len(words) if extended else 0, len(more))) + \
        b"".join(struct.pack(">I", w) for w in words) + b"".join(more)


def marked(tables, numbers_of):
    """Set the bits of these packets, counted from firstPacket, in zeroed tables."""
    made = [bytearray(256) for _ in range(tables)]
    for i in numbers_of:
        made[i // 2048][i % 256] |= 1 << i // 256 % 8
    return [bytes(t) for t in made]


def taken(*args, flags=8):
    packet = rxwplot.Packet(0, 0, 1, 0, 1, 2, flags, 0, ack_body(*args), 0, None, None)
    return rxwplot.acknowledgement(packet)


def check_acks():
    plain = taken(10, 12, 5, 2, (1, 0, 1), (1444, 1444, 300, 1), (), False, flags=0)
    check((plain.first, plain.serial, plain.reason, plain.window, plain.missing) == (10, 5, 2, 255, 1),
          f"plain ACK: {plain}")
    holes = {7, 300, 2047}
    table = marked(1, set(range(2048)) - holes)[0]
    wide = taken(1, 2048, 5, 8, table, (1444, 1444, 8192, 1))
    check((wide.window, wide.missing) == (8192, 3), f"2,048 packets: {wide}")
    # A tail without holes is not sent: 255 bytes or more, but more packets than they describe.
    tables = marked(3, set(range(5000)) - {1, 2500, 4999})
    wide = taken(1, 5000, 5, 8, tables[0], (1, 1, 65535, 1), tables[1:])
    check((wide.window, wide.missing) == (65535, 3), f"three tables: {wide}")
    marks = taken(1, 0, 5, 8, (), (1, 1, 9, 1, 0x00070008))
    check((marks.window, marks.marks, marks.missing) == (9, 7, 0), f"marks: {marks}")
    # Another part of the window: table 1 and, from the sixth word on, table 4 of the window.
    part = marked(6, set(range(11000)) - {5, 4 * 2048 + 9})
    wide = taken(1, 11000, 5, 8, part[0], (1, 1, 20000, 1, 0, 4), part[4:5])
    check(wide.missing == 2, f"a part: {wide}")
    short = rxwplot.Packet(0, 0, 1, 0, 1, 2, 8, 0, ack_body(1, 5000, 5, 8, tables[0], (1, 1, 9999, 1),
                                                            tables[1:])[:300], 0, None, None)
    check(rxwplot.acknowledgement(short).missing is None, "an ACK that is cut short")
    check(rxwplot.acknowledgement(short._replace(body=bytes(10))) is None, "a malformed ACK")


def hand_made(path):
    """Ethernet: 20 packets, of which the kernel sent 8 as one; 5 is lost, 9 needlessly repeated."""
    full = bytes(1400)
    frames = [(0, ethernet(b"".join(rx(1, n, n, 1, full) for n in range(1, 9)), False))]
    frames += [(n, ethernet(rx(1, n, n, 1, full), False)) for n in range(9, 21)]
    frames += [(25, ethernet(rx(2, 0, 1, 8, ack_body(5, 20, 20, 3, (0,) + (1,) * 15, (1, 1, 700, 1))),
                             True)),
               (30, ethernet(rx(1, 5, 21, 1, full), False)),
               (31, ethernet(rx(1, 9, 22, 1, full), False)),
               (40, ethernet(rx(2, 0, 2, 8, ack_body(21, 20, 21, 1, (), (1, 1, 700, 1))), True)),
               (41, ethernet(rx(2, 0, 3, 8, ack_body(21, 20, 22, 2, (), (1, 1, 700, 1))), True))]
    for order, magic in ((">", 0xa1b23c4d), ("<", 0xa1b23c4d)):
        with open(path, "wb") as f:
            f.write(pcap(frames, 1, magic, order))
        svg = drawn(path)
        check(numbers(titles(svg, "again")) == {5}, f"again: {titles(svg, 'again')}")
        check(numbers(titles(svg, "lost")) == {5}, f"lost: {titles(svg, 'lost')}")
        check(numbers(titles(svg, "spurious")) == {9}, f"needless: {titles(svg, 'spurious')}")
        check("22 DATA packets, 2 sent again" in svg and "10.0.0.1:5000 to 10.0.0.2:7009" in svg,
              f"facts: {tree.fromstring(svg).find(SVG + 'desc').text}")


def check_marks(path):
    """Marks (ECN): by the counts of ACKs, modulo 2^16, or by the packets where those have them."""
    def counts(ce):
        return (1, 1, 700, 1, ce << 16)

    full = bytes(1400)
    acks = [(10, 5, 3, 0xfffe), (11, 6, 4, 1), (12, 6, 5, 0xffff), (13, 9, 8, 2)]
    frames = [(n, ethernet(rx(1, n, n, 1, full), False, 2)) for n in range(1, 9)]
    # The first count is too high to be one of new marks, the third was overtaken.
    frames += [(ms, ethernet(rx(2, 0, n, 8, ack_body(first, first, serial, 8, (), counts(ce))), True))
               for n, (ms, first, serial, ce) in enumerate(acks, 1)]
    with open(path, "wb") as f:
        f.write(pcap(frames))
    svg = drawn(path)
    check(titles(svg, "marked") == [f"1 packet was marked, by this ACK, 0.0{ms}000 s" for ms in (10, 12)],
          f"marks by ACKs: {titles(svg, 'marked')}")
    check("2 marked (ECN)" in svg and "marked by the network (ECN)" in svg, "the number of marks")
    frames[2] = (3, ethernet(rx(1, 3, 3, 1, full), False, 3))
    with open(path, "wb") as f:
        f.write(pcap(frames))
    svg = drawn(path)
    check(titles(svg, "marked") == ["packet 3 is marked, 0.002000 s"], f"marked packets: {titles(svg, 'marked')}")


def check_jumbogram(path):
    frames = [(0, ethernet(rx(1, 1, 1, 0x21, bytes(1412 + 4 + 1412 + 4 + 10)), False)),
              (1, ethernet(rx(1, 4, 4, 1, bytes(10)), False))]
    with open(path, "wb") as f:
        f.write(pcap(frames))
    check(">4 DATA packets" in drawn(path), "a jumbogram of three packets")


# ---- files that are none ----

def check_damage(good, path):
    data = open(good, "rb").read()[:60000]
    source = random.Random(25)
    cases = [b"", b"x", b"\n\r\r\n", data[:8], data[4:], bytes(100), pcap([])[:20], pcap([]),
             pcap([(0, b"")]), pcap([(0, ethernet(b"", False)[:n]) for n in range(45)])]
    cases += [data[:source.randrange(len(data))] for _ in range(40)]
    for _ in range(120):
        broken = bytearray(data[:source.randrange(200, 20000)])
        for _ in range(source.randrange(1, 40)):
            broken[source.randrange(len(broken))] = source.choice((0, 1, 0x7f, 0x80, 0xff))
        cases.append(bytes(broken))
    for n, case in enumerate(cases):
        with open(path, "wb") as f:
            f.write(case)
        for args in ((path,), ("--list", path)):
            status, out, err = run(*args)
            check(status in (0, 1) and (status == 0) == (not err), f"case {n}: {status} {err}")
            check("Traceback" not in err and len(err) < 1000, f"case {n}: {err}")
            if out.startswith("<?xml"):
                tree.fromstring(out)
    status, out, err = run(os.path.join(work, "nowhere"))
    check(status == 1 and "No such file" in err, f"no file: {err}")
    with open(path, "wb") as f:
        f.write(data)
    status, out, err = run(path)
    check(status == 1 and "the file ends within" in err and out.startswith("<?xml"), "a file cut short")
    with open(path, "wb") as f:
        f.write(data[:struct.unpack_from("=I", data, 4)[0]] + struct.pack("=II", 6, 1 << 30) + data)
    check("impossible size" in run(path)[2], "a huge block")


def check_paths(path):
    """The report of a copy over two paths, of which one dies; and reports that are none."""
    report = {"paths": [{"server": "10.0.0.1:7000", "device": "a<b", "local": "", "changes": [{"ms": 100, "state": "joined"}]},
                        {"server": "10.0.1.1:7000", "device": "b", "local": "", "changes": [{"ms": 150.5, "state": "dead"}]}],
              "path_samples": [[100, 0], [150, 50000, 0], [200, 250000, 100000], [250, 260000, 90000]]}

    def plot(content):
        with open(path, "w", encoding="ascii") as out:
            out.write(content)
        return run(path)
    status, svg, messages = plot(json.dumps(report))
    check(status == 0 and not messages, f"a report: {status}, {messages}")
    root = tree.fromstring(svg)
    texts = [e.text for e in root.iter() if e.text]
    check("10.0.0.1:7000 by a<b" in texts and "dead" in texts and "joined" in texts, f"texts of a report: {texts}")
    check(sum("fill-opacity" in e.get("style", "") for e in root.iter()) == 2, "a report has an area for each path")
    check(any("0.3 MB" in x and "74 %" in x for x in texts), f"facts of a report: {texts}")
    for bad, why in (({}, "one path only"), ({**report, "path_samples": [[2, 0], [1, 0]]}, "in no order"),
                     ({**report, "path_samples": [["x", 0], [1, 0]]}, "no report"), ({**report, "paths": [7]}, "no report")):
        status, _, messages = plot(json.dumps(bad))
        check(status == 1 and why in messages, f"{bad}: {messages}")
    status, _, messages = plot("{")
    check(status == 1 and "no report" in messages, f"half a report: {messages}")


hand = os.path.join(work, "hand.pcap")
check_paths(os.path.join(work, "report.json"))
check_acks()
hand_made(hand)
check_jumbogram(hand)
check_marks(hand)
trace = check_transfer(work)
check_choice(trace)
check_damage(trace, hand)
print(f"{failures} checks failed" if failures else "all checks passed")
sys.exit(failures > 0)
