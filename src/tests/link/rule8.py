# SPDX-License-Identifier: BSD-2-Clause
"""ECN by rule 8 of rx-wide-windows: the scripted peer of the conformance tests at side a, an rxperf server at side b.

usage: rule8.py RXPERF, from within lab. The peer shares no code with librxwire, and both ends have different hosts."""
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system/conformance"))
import peer  # noqa: E402
import wire  # noqa: E402
from harness import ask_receive, ask_send  # noqa: E402
from peer import equal, want  # noqa: E402

SERVICE, SIZE = 147, 4
NOT, ECT1, ECT0, CE = range(4)


class Socket(peer.Socket):
    """Also notes the ECN bits of what it receives, and sends with those of `bits`."""

    def __init__(self, far):
        super().__init__(far, bind=os.environ["RXW_NEAR4"])
        self.s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)

    def mark(self, bits):
        self.s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, bits)

    def read(self, seconds):
        if not peer.select.select([self.s], [], [], max(0.0, seconds))[0]:
            return False
        datagram, control, _, address = self.s.recvmsg(65536, 256)
        p = wire.Packet.decode(datagram, time.time(), address)
        for level, kind, data in control:
            if level == socket.IPPROTO_IP and kind == socket.IP_TOS and p:
                p.ecn = data[0] & 3
        if p:
            self.packets.append(p)
            self.waiting.append(p)
        return True


def counts(p):
    """(CE, ECT(0)) of an ACK; None: it has no fifth word."""
    if p.ack.padding[1] < 5:
        return None
    word = int.from_bytes(p.ack.tail[:4], "big")
    return word >> 16, word & 0xffff


class Client(peer.End):
    """`ce`, `ect0`: what its ACKs report; None: they do not offer wide windows."""

    def __init__(self, far):
        super().__init__(Socket(far), (far, 7009), SERVICE)
        self.report = None

    def say(self, call, first, reason=wire.DELAY, **fields):
        if self.report is None:
            return self.ack(call, first, reason, **fields)
        ce, ect0 = self.report
        return self.ack(call, first, reason, flags=wire.EXTENDED, padding=bytes((0, 5, 0)), space=0,
                        trailer=[1444, 1444, 8192, 1, ce << 16 | ect0], **fields)

    def ask(self, call, first=1):
        """The answer to a PING."""
        asked = self.say(call, first, wire.PING).serial
        return self.next(wire.ACK, call, wire.PING_RESPONSE, match=lambda p: p.ack.serial == asked)


def check_receiver(far):
    """The server counts marks: not before the peer offers wide windows, no duplicate, and each packet by its bits."""
    c = Client(far)
    c.data(1, 1, ask_send(64 * SIZE), 0)
    equal(counts(c.ask(1)), None, "counts before the offer")
    c.report = 0, 0
    c.ask(1)  # may be answered before the offer is read
    equal(counts(c.ask(1)), (0, 0), "counts after the offer")
    for bits, numbers in ((ECT0, (2, 3, 4)), (CE, (5, 6)), (ECT1, (7,)), (NOT, (8,)), (CE, (5, 3)), (ECT0, (9,))):
        c.sock.mark(bits)
        for seq in numbers:
            c.data(1, seq, wire.pattern((seq - 2) * SIZE, SIZE), 0)
    c.sock.mark(NOT)
    equal(counts(c.ask(1)), (2, 4), "counts")
    c.abort(-6, 1)


class Reader:
    """Takes the DATA of a reply and answers PINGs, so that the server may send."""

    def __init__(self, c):
        self.c, self.marks, self.edge, self.seen, self.again = c, {}, 1, 0, []
        c.data(1, 1, ask_receive(4000 * 1000))

    def take(self, seconds=0.4):
        """What comes until nothing has come for a while."""
        while self.c.sock.read(seconds):
            for p in self.c.sock.waiting:
                if p.type == wire.DATA and p.seq in self.marks:
                    self.again.append((p.seq, p.ecn))
                elif p.type == wire.DATA:
                    self.marks[p.seq] = p.ecn
                elif p.type == wire.ACK and p.reason == wire.PING:
                    self.c.say(1, self.edge, wire.PING_RESPONSE, serial=p.serial)
            self.c.sock.waiting.clear()
        while self.edge in self.marks:
            self.edge += 1

    def new(self):
        """The bits of the packets since the last time."""
        new = [self.marks[s] for s in sorted(self.marks) if s > self.seen]
        self.seen = max(self.marks, default=0)
        return new

    def say(self, hole=None):
        """Acknowledges all, or all but one of the last flight. The count of marks lacks that one, too."""
        if self.c.report is not None:
            self.c.report = 0, sum(b == ECT0 for s, b in self.marks.items() if s != hole)
        serial = max((p.serial for p in self.c.sock.packets if p.type == wire.DATA), default=0)
        if hole is None:
            self.c.say(1, self.edge, serial=serial, previous=self.edge - 1)
            return
        entries = bytes(s != hole for s in range(hole, self.edge))
        self.c.say(1, hole, wire.OUT_OF_SEQUENCE, serial=serial, previous=self.edge - 1, entries=entries)

    def round(self, **fields):
        """An ACK, and what it causes: new packets, or one that is sent again."""
        before, again = len(self.marks), len(self.again)
        self.say(**fields)
        end = time.monotonic() + peer.LIMIT
        self.take()
        while (len(self.again) == again if fields else len(self.marks) < before + 11) and time.monotonic() < end:
            self.take()
        return self.new()


def check_sender(far):
    """The server marks ten packets once the peer counts, all when these have arrived marked, none that is sent again."""
    c = Client(far)
    r = Reader(c)
    r.take()
    before = r.new() + r.round()
    want(before and set(before) == {NOT}, f"before the offer: {before}")
    c.report = 0, 0
    test = r.round()
    want(test[:10] == [ECT0] * 10 and set(test[10:]) == {NOT}, f"the test: {test}")
    for what in ("a report", "another one"):
        marked = r.round()
        want(len(marked) > 10 and set(marked) == {ECT0}, f"after {what}: {marked}")
    # The first packet of this flight is missing: its repetition has no mark.
    r.again.clear()
    r.round(hole=r.edge - len(marked))
    want(r.again and {b for _, b in r.again} == {NOT}, f"sent again: {r.again}")
    # Old ACKs again: from then on, nothing is marked.
    c.report = None
    r.say()
    r.take()
    r.new()
    later = r.round()
    want(later and set(later) == {NOT}, f"after an ACK without counts: {later}")
    c.abort(-6, 1)


def main():
    rxperf, far = sys.argv[1], os.environ["RXW_FAR4"]
    log = os.path.join(os.environ["RXW_LINK"], "server")
    with open(log, "w", encoding="utf-8") as out:
        server = subprocess.Popen([*os.environ["RXW_FAR"].split(), rxperf, "server", "--listen", far, "-p", "7009"],
                                  stdout=out, stderr=subprocess.STDOUT)
    try:
        while "ready" not in open(log, encoding="utf-8").read():
            want(server.poll() is None, "no server")
            time.sleep(0.01)
        check_receiver(far)
        check_sender(far)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(peer.LIMIT)


main()
