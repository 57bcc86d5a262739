#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""rxwplot: draws a call of a packet trace as SVG. See rxwplot(1)."""
import argparse
import array
import collections
import ipaddress
import json
import math
import os
import re
import struct
import sys
from xml.sax.saxutils import escape

VERSION = "@VERSION@"

# Limits, so that no file takes more memory than some hundred megabytes.
BLOCK_MOST = 1 << 20       # bytes of a block
INTERFACES_MOST = 1024
CALLS_MOST = 65536
POINTS_MOST = 1_000_000    # packets, ACKs and events of the call that is drawn, each
MARKS_MOST = 4000          # retransmissions with a text of their own
COMMENT_MOST = 512
TIME_MOST = 1 << 62        # ns
REPORT_MOST = 8 << 20      # bytes of a report of afscp

SECOND = 1_000_000_000
DATA, ACK = 1, 2
CE = 3                     # in the ECN bits of an IP header: marked by the network
CLIENT_INITIATED, LAST_PACKET, EXTENDED, JUMBO = 0x01, 0x04, 0x08, 0x20
HEADER = struct.Struct(">IIIIIBBBBHH")
JUMBO_PAYLOAD = 1412
TABLE = 256                # bytes of a table of an ACK, each for eight packets
REASONS = {1: "REQUESTED", 2: "DUPLICATE", 3: "OUT_OF_SEQUENCE", 4: "EXCEEDS_WINDOW", 5: "NOSPACE",
           6: "PING", 7: "PING_RESPONSE", 8: "DELAY", 9: "IDLE"}
# ACKs that leave at once, so that their time is a round trip.
PROMPT = {1, 2, 3, 4, 7}


class Damaged(Exception):
    """The file is no trace, or is damaged."""


class CutShort(Exception):
    """The file ends within a block: what precedes it is good."""


# ---- files: pcapng and pcap ----

Frame = collections.namedtuple("Frame", "time link data comments direction")
Interface = collections.namedtuple("Interface", "link ticks offset")


def take(file, size, what):
    data = file.read(size)
    if len(data) < size:
        raise CutShort(f"the file ends within {what}, {size - len(data)} bytes are missing")
    return data


def options(data, order):
    """The (code, value) of the options of a block; stops where they are damaged."""
    at = 0
    while at + 4 <= len(data):
        code, size = struct.unpack_from(order + "HH", data, at)
        if code == 0 or at + 4 + size > len(data):
            return
        yield code, data[at + 4:at + 4 + size]
        at += 4 + (size + 3) // 4 * 4


def interface(body, order):
    if len(body) < 8:
        raise Damaged("the description of an interface is too short")
    ticks, offset = 1_000_000, 0
    for code, value in options(body[8:], order):
        if code == 9 and value:
            power = value[0] & 0x7f
            if power > (63 if value[0] & 0x80 else 18):
                raise Damaged(f"the resolution of timestamps, {value[0]}, is impossible")
            ticks = 2 ** power if value[0] & 0x80 else 10 ** power
        elif code == 14 and len(value) == 8:
            offset = struct.unpack(order + "q", value)[0]
    return Interface(struct.unpack_from(order + "H", body)[0], ticks, offset)


def packet_block(body, order, interfaces):
    if len(body) < 20:
        raise Damaged("a packet block is too short")
    index, high, low, kept, _ = struct.unpack_from(order + "IIIII", body)
    if index >= len(interfaces):
        raise Damaged(f"a packet names interface {index}, which is not described")
    if kept > len(body) - 20:
        raise Damaged(f"a packet has {kept} bytes, its block only {len(body) - 20}")
    face, comments, direction = interfaces[index], [], 0
    for code, value in options(body[20 + (kept + 3) // 4 * 4:], order):
        if code == 1:
            comments.append(re.sub("[^ -~]", "?", value[:COMMENT_MOST].decode("latin-1")))
        elif code == 2 and len(value) == 4:
            direction = struct.unpack(order + "I", value)[0] & 3
    time = (high << 32 | low) * SECOND // face.ticks + face.offset * SECOND
    if not 0 <= time < TIME_MOST:
        raise Damaged(f"a packet has an impossible time, {time // SECOND} s")
    return Frame(time, face.link, body[20:20 + kept], comments, direction)


def pcapng(file):
    """Frames; None at the beginning of each section."""
    order, interfaces = "<", []
    while True:
        at = file.tell()
        head = file.read(8)
        if not head:
            return
        where = f"the block at byte {at}"
        head += take(file, 12 - len(head), where)
        if head[:4] == b"\n\r\r\n":
            orders = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
            order = orders.get(head[8:12])
            if order is None:
                raise Damaged(f"{where} begins a section, but its byte order is unknown")
            interfaces = []
            yield None
        kind, size = struct.unpack_from(order + "II", head)
        if size < 12 or size % 4 or size > BLOCK_MOST:
            raise Damaged(f"{where} has the impossible size {size}")
        block = head[8:] + take(file, size - 12, where)
        if struct.unpack(order + "I", block[-4:])[0] != size:
            raise Damaged(f"the two sizes of {where} differ")
        if kind == 1:
            if len(interfaces) == INTERFACES_MOST:
                raise Damaged(f"more than {INTERFACES_MOST} interfaces")
            interfaces.append(interface(block[:-4], order))
        elif kind == 6:
            yield packet_block(block[:-4], order, interfaces)


def pcap(file, order, ticks):
    link = struct.unpack(order + "20xI", take(file, 24, "the head of the file"))[0] & 0xfffffff
    yield None
    while True:
        at = file.tell()
        head = file.read(16)
        if not head:
            return
        where = f"the packet at byte {at}"
        head += take(file, 16 - len(head), where)
        seconds, part, kept, _ = struct.unpack(order + "IIII", head)
        if kept > BLOCK_MOST:
            raise Damaged(f"{where} has the impossible size {kept}")
        yield Frame(seconds * SECOND + part * SECOND // ticks, link, take(file, kept, where), [], 0)


def frames(file):
    file.seek(0)
    magic = file.read(4)
    file.seek(0)
    if magic == b"\n\r\r\n":
        return pcapng(file)
    for order in "<>":
        for ticks, number in ((1_000_000, 0xa1b2c3d4), (SECOND, 0xa1b23c4d)):
            if magic == struct.pack(order + "I", number):
                return pcap(file, order, ticks)
    raise Damaged("this is neither a pcapng nor a pcap file" if magic else "the file is empty")


# ---- datagrams and packets ----

Datagram = collections.namedtuple("Datagram", "source target size data ecn")
Packet = collections.namedtuple(
    "Packet", "epoch cid call seq serial kind flags service body size source target ecn",
    defaults=(0,))


def to_network(link, data):
    """What follows the link layer."""
    if link == 1:
        at = 12
        while data[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        return data[at + 2:] if data[at:at + 2] in (b"\x08\x00", b"\x86\xdd") else b""
    skip = {0: 4, 108: 4, 113: 16, 276: 20, 101: 0, 12: 0, 14: 0, 228: 0, 229: 0}.get(link)
    return b"" if skip is None else data[skip:]


def datagram(link, data):
    """The UDP datagram of a frame, or None: something else, or a fragment."""
    data = to_network(link, data)
    version = data[0] >> 4 if data else 0
    if version == 4 and len(data) >= 20:
        at, protocol, ecn = (data[0] & 15) * 4, data[9], data[1] & 3
        if struct.unpack_from(">H", data, 6)[0] & 0x3fff:
            return None
        ends = data[12:16], data[16:20]
    elif version == 6 and len(data) >= 40:
        at, protocol, ecn = 40, data[6], data[1] >> 4 & 3
        ends = data[8:24], data[24:40]
    else:
        return None
    if protocol != 17 or at < 20 or len(data) < at + 8:
        return None
    source, target, size = struct.unpack_from(">HHH", data, at)
    # A size of 0: the kernel had not cut the datagrams of a batch apart.
    size = size - 8 if size >= 8 else len(data) - at - 8
    return Datagram((ends[0], source), (ends[1], target), size, data[at + 8:at + 8 + size], ecn)


def batch(data):
    """Packets that the kernel sends together (GSO) are one datagram in a capture of the sender."""
    at, size = 0, len(data)
    while True:
        prefix, seq = data[at:at + 12], int.from_bytes(data[at + 12:at + 16], "big")
        more = data.find(prefix, at + HEADER.size) if size - at > 2 * HEADER.size else -1
        if more < 0 or int.from_bytes(data[more + 12:more + 16], "big") != seq + 1:
            yield at, size
            return
        yield at, more
        at = more


def jumbogram(packet):
    """The members of a jumbogram; all but the last one are full."""
    yield packet
    if packet.kind != DATA or not packet.flags & JUMBO:
        return
    more = packet.size - HEADER.size - JUMBO_PAYLOAD
    for i in range(1, 1 + min(64, -(-more // (JUMBO_PAYLOAD + 4)))):
        yield packet._replace(seq=packet.seq + i, serial=packet.serial + i, body=b"")


def packets(gram):
    """The Rx packets of calls in a datagram."""
    if gram is None or len(gram.data) < HEADER.size or gram.size < HEADER.size:
        return
    whole = gram.size == len(gram.data)
    for begin, end in batch(gram.data) if gram.data[20] == DATA else ((0, len(gram.data)),):
        if end - begin < HEADER.size:
            return
        epoch, cid, call, seq, serial, kind, flags, _, _, _, service = \
            HEADER.unpack_from(gram.data, begin)
        if kind not in (DATA, ACK) or not call or not serial or (kind == DATA) != (seq > 0):
            return
        size = end - begin if whole else gram.size
        yield from jumbogram(Packet(epoch, cid, call, seq, serial, kind, flags, service,
                                    gram.data[begin + HEADER.size:end], size,
                                    gram.source, gram.target, gram.ecn))


Acknowledgement = collections.namedtuple("Acknowledgement",
                                         "first serial reason window missing marks")


def missing_of(first, previous, body, count, after, words):
    """Packets below the highest one received that an extended ACK says are missing; None: unknown."""
    described = min(previous - first + 1, 8 * TABLE * (1 + body[after + 2]))
    if described <= count or count < 255:
        return count - sum(b & 1 for b in body[18:18 + count])
    tables = [body[18:18 + TABLE]]    # the first octet of the padding is its last byte
    begin, base = after + 3 + 4 * words, 1
    if words >= 6:
        base = int.from_bytes(body[after + 3 + 20:after + 3 + 24], "big")
    for i in range(body[after + 2]):
        tables.append(body[begin + i * TABLE:begin + (i + 1) * TABLE])
    if any(len(t) < TABLE for t in tables) or base > 31:
        return None
    missing = 0
    for i, table in enumerate(tables):
        number = 0 if i == 0 else base + i - 1
        here = max(0, min(8 * TABLE, previous - first + 1 - number * 8 * TABLE))
        bits = 0
        for k in range(8):
            row = bytes(b >> k & 1 for b in table[:max(0, min(TABLE, here - k * TABLE))])
            bits += sum(row)
        missing += here - bits
    return missing


def acknowledgement(packet):
    """None: malformed."""
    body = packet.body
    if len(body) < 18:
        return None
    first, previous, serial = struct.unpack_from(">III", body, 4)
    reason, count = body[16], body[17]
    after = 18 + count
    if not first or len(body) < after:
        return None
    window = marks = None
    extended = packet.flags & EXTENDED and len(body) >= after + 3 and body[after + 1] >= 4
    if len(body) >= after + 3 + 12:
        window = int.from_bytes(body[after + 11:after + 15], "big")
        window = max(1, min(window, 65535 if extended else 255))
    words = body[after + 1] if extended else 0
    missing = count - sum(b & 1 for b in body[18:after])
    if extended and previous >= first:
        missing = missing_of(first, previous, body, count, after, words)
    if words >= 5 and len(body) >= after + 3 + 20:
        marks = int.from_bytes(body[after + 19:after + 21], "big")
    return Acknowledgement(first, serial, reason, window, missing, marks)


# ---- the calls of a file ----

class Summary:
    """What the list shows of a call."""

    def __init__(self, packet, time):
        self.begin = self.end = time
        self.service = packet.service
        self.client = self.server = None
        self.count = [0, 0]      # DATA of the request, of the reply
        self.late = [0, 0]       # of those, packets not above all earlier ones
        self.highest = [0, 0]

    def take(self, packet, time):
        reply = 0 if packet.flags & CLIENT_INITIATED else 1
        ends = (packet.source, packet.target)
        self.client, self.server = ends if not reply else ends[::-1]
        self.begin, self.end = min(self.begin, time), max(self.end, time)
        if packet.kind == DATA:
            self.count[reply] += 1
            self.late[reply] += packet.seq <= self.highest[reply]
            self.highest[reply] = max(self.highest[reply], packet.seq)

    def main_direction(self):
        return 1 if self.count[1] > self.count[0] else 0


def walk(file, note):
    """Yield (packet, frame, origin); comments come with the first packet of their frame. The
    origin is the time of the first packet of the section."""
    origin = None
    try:
        for frame in frames(file):
            if frame is None:
                origin = None
                continue
            origin = frame.time if origin is None else origin
            none = True
            for packet in packets(datagram(frame.link, frame.data)):
                yield packet, frame, origin
                none = False
                frame = frame._replace(comments=())
            if none and frame.comments:
                yield None, frame, origin
    except CutShort as e:
        note(str(e))


def summaries(file, note):
    """{(epoch, cid, call): Summary} of the calls with DATA, in the order of their first packets."""
    calls, full = {}, False
    for packet, frame, _ in walk(file, note):
        if packet is None:
            continue
        key = packet.epoch, packet.cid, packet.call
        if key not in calls:
            if len(calls) == CALLS_MOST:
                full = True
                continue
            calls[key] = Summary(packet, frame.time)
        calls[key].take(packet, frame.time)
    if full:
        note(f"the file has more than {CALLS_MOST} calls; the rest are left out")
    return {k: s for k, s in calls.items() if sum(s.count)}


def address(end):
    if end is None:
        return "?"
    host = ipaddress.ip_address(end[0])
    return f"[{host}]:{end[1]}" if host.version == 6 else f"{host}:{end[1]}"


def name_of(key):
    return f"{key[0]:08x}/{key[1]:08x}/{key[2]}"


def print_list(calls):
    print("  No. EPOCH/CID/CALL              CLIENT > SERVER                              "
          "SERVICE REQUEST   REPLY  LATE    SECONDS")
    for number, (key, s) in enumerate(calls.items(), 1):
        ends = f"{address(s.client)} > {address(s.server)}"
        print(f"{number:5} {name_of(key):27} {ends:44} {s.service:7} {s.count[0]:7} {s.count[1]:7} "
              f"{sum(s.late):5} {(s.end - s.begin) / SECOND:10.6f}")


def chosen(calls, text):
    """The key of a call by its name or its number in the list; by default, the longest one."""
    if not calls:
        raise Damaged("it has no Rx call with DATA packets")
    if text is None:
        return max(calls, key=lambda key: sum(calls[key].count))
    name = re.fullmatch(r"([0-9a-fA-F]{1,8})[/.]([0-9a-fA-F]{1,8})[/#]([0-9]{1,10})", text)
    if name:
        key = int(name[1], 16), int(name[2], 16), int(name[3])
        if key in calls:
            return key
        raise Damaged(f"it has no call {text}; --list shows its calls")
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= len(calls):
        raise Damaged(f"it has no call number {text}, but 1 to {len(calls)}")
    return list(calls)[int(text) - 1]


# ---- one call ----

EVENT = re.compile(r"(-?)([0-9]{1,9})\.([0-9]{9}) call ([0-9a-f]{8})\.([0-9a-f]{8}) #([0-9]{1,10}) (.*)")
WINDOW = re.compile(r"congestion window ([0-9]{1,10}), ssthresh ([0-9]{1,10}), the peer's window "
                    r"([0-9]{1,10}), in flight ([0-9]{1,10})(.*)")
MORE = re.compile(r", RTT ([0-9]{1,15}) us, least ([0-9]{1,15}) us, paced ([0-9]{1,15}) packets/s, "
                  r"([a-z0-9-]{1,20}): ([a-z0-9-]{1,20})")
UNLIMITED = 1 << 24        # a larger threshold or window is none


def ints():
    return array.array("q")


class Call:
    """Points of the direction that is drawn; times in ns."""

    def __init__(self, key, reply):
        self.key, self.reply = key, reply
        self.sent_at, self.seq, self.serial = ints(), ints(), ints()
        self.latest = {}            # seq: index of its latest transmission
        self.again = {}             # index of a retransmission: index of the one before
        self.spurious = set()       # indices of retransmissions
        self.reordered = 0
        self.by_serial = {}         # serial: index
        self.highest = self.highest_serial = 0
        self.acks = {k: ints() for k in ("at", "first", "edge", "missing")}
        self.rtt = [ints(), ints()]
        self.window = {k: ints() for k in ("at", "cwnd", "ssthresh", "flight", "rtt", "least")}
        self.phases = []            # (time, text), where they change
        self.happened = []          # (time, text) of timeouts and false losses
        self.marks = 0              # packets that the network has marked (ECN), by the ACKs
        self.last_marks = 0         # the latest count, modulo 2^16
        self.marked = []            # (time, sequence number, text)
        self.ecn = []               # (time, text), where the state of ECN changes
        self.ours = None            # True: the trace is the sender's; False: the receiver's
        self.last_ack = self.edge = 0
        self.end_text = ""
        self.overflow = False

    def take(self, packet, frame, origin):
        for text in frame.comments:
            self.comment(text, origin)
        if packet is None or (packet.epoch, packet.cid, packet.call) != self.key:
            return
        forward = bool(packet.flags & CLIENT_INITIATED) != self.reply
        if packet.kind == DATA and forward:
            if frame.direction:
                self.ours = frame.direction == 2
            self.data(packet, frame.time)
        elif packet.kind == ACK and not forward:
            a = acknowledgement(packet)
            if a:
                self.ack(a, frame.time)

    def room(self, points):
        self.overflow = self.overflow or len(points) >= POINTS_MOST
        return len(points) < POINTS_MOST

    def data(self, packet, time):
        if not self.room(self.seq):
            return
        index = len(self.seq)
        self.sent_at.append(time)
        self.seq.append(packet.seq)
        self.serial.append(packet.serial)
        before = self.latest.get(packet.seq)
        if before is not None:
            if self.serial[before] == packet.serial:
                pass                # the network duplicated it
            else:
                self.again[index] = before
                if self.ours is False:
                    self.spurious.add(index)
        elif packet.seq < self.highest:
            if packet.serial < self.highest_serial:
                self.reordered += 1
            else:
                self.again[index] = None
        if packet.ecn == CE and self.ours is not True and self.room(self.marked):
            self.marked.append((time, packet.seq, f"packet {packet.seq} is marked"))
        self.latest[packet.seq] = index
        self.by_serial[packet.serial] = index
        self.highest = max(self.highest, packet.seq)
        self.highest_serial = max(self.highest_serial, packet.serial)

    def ack(self, a, time):
        if not self.room(self.acks["at"]):
            return
        if a.marks is not None:
            self.count_marks(a, time)
        index = self.by_serial.get(a.serial)
        if index is not None and a.reason == 2 and index in self.again:
            self.spurious.add(index)
        if index is not None and a.reason in PROMPT and self.ours is not False and \
                time >= self.sent_at[index]:
            self.rtt[0].append(time)
            self.rtt[1].append(time - self.sent_at[index])
        if a.first < self.last_ack:
            return                  # reordered
        self.last_ack = a.first
        if a.window is not None:
            self.edge = a.first + a.window
        for name, value in (("at", time), ("first", a.first), ("edge", self.edge),
                            ("missing", -1 if a.missing is None else a.missing)):
            self.acks[name].append(value)

    def count_marks(self, a, time):
        """The count of an ACK is modulo 2^16; that of an overtaken one is lower."""
        more = (a.marks - self.last_marks) & 0xffff
        if not 0 < more < 0x8000:
            return
        self.marks += more
        self.last_marks = a.marks
        if self.ours is not False and self.room(self.marked):
            packets = "1 packet was" if more == 1 else f"{more} packets were"
            self.marked.append((time, max(a.first, self.last_ack), f"{packets} marked, by this ACK"))

    def comment(self, text, origin):
        found = EVENT.fullmatch(text)
        if not found or (int(found[4], 16), int(found[5], 16), int(found[6])) != self.key:
            return
        ns = int(found[2]) * SECOND + int(found[3])
        time, what = origin + (-ns if found[1] else ns), found[7]
        window = WINDOW.fullmatch(what)
        if window:
            self.window_event(time, window)
        elif what.startswith(("retransmission timeout", "false loss")):
            if self.room(self.happened):
                self.happened.append((time, what))
        elif what.startswith("ECN: "):
            if self.room(self.ecn):
                self.ecn.append((time, what))
        elif what.startswith(("succeeded", "failed")):
            self.end_text = what

    def window_event(self, time, found):
        if not self.room(self.window["at"]):
            return
        more = MORE.fullmatch(found[5])
        values = (time, int(found[1]), int(found[2]), int(found[4]),
                  int(more[1]) * 1000 if more else 0, int(more[2]) * 1000 if more else 0)
        for series, value in zip(self.window.values(), values):
            series.append(value)
        if more:
            text = f"{more[4]}: {more[5]}"
            if not self.phases or self.phases[-1][1] != text:
                if self.room(self.phases):
                    self.phases.append((time, text))

    def lost(self):
        """Indices of transmissions that were followed by a needed retransmission."""
        return {before for index, before in self.again.items()
                if before is not None and index not in self.spurious}


def read_call(file, key, reply, note):
    call = Call(key, reply)
    for packet, frame, origin in walk(file, note):
        call.take(packet, frame, origin)
    if call.ours is False:
        # What a receiver's trace says of windows is about its own packets.
        call.window = {k: ints() for k in call.window}
        call.phases, call.happened, call.ecn = [], [], []
    if any("by this ACK" not in what for _, _, what in call.marked):
        # The packets themselves show it, at the place where the trace was made.
        call.marked = [m for m in call.marked if "by this ACK" not in m[2]]
    if call.overflow:
        note(f"the call has more than {POINTS_MOST} packets, ACKs or events; the rest are left out")
    return call


# ---- drawing ----

WIDTH, LEFT, RIGHT = 1100, 78, 20
STYLES = {                 # class: (light, dark)
    "data": ("#2b6cb0", "#63b3ed"), "again": ("#dd6b20", "#f6ad55"), "lost": ("#c53030", "#fc8181"),
    "spurious": ("#805ad5", "#b794f4"), "ack": ("#2f855a", "#68d391"), "edge": ("#718096", "#a0aec0"),
    "cwnd": ("#2b6cb0", "#63b3ed"), "ssthresh": ("#718096", "#a0aec0"), "flight": ("#2f855a", "#68d391"),
    "missing": ("#c53030", "#fc8181"), "rtt": ("#2b6cb0", "#63b3ed"), "smooth": ("#dd6b20", "#f6ad55"),
    "least": ("#2f855a", "#68d391"), "event": ("#c53030", "#fc8181"),
    "marked": ("#b83280", "#f687b3"), "ecn": ("#b83280", "#f687b3"),
}
STATIC = """\
svg{font:12px system-ui,'DejaVu Sans',sans-serif}.back{fill:#fff}
text{fill:#1a202c}.head{font-size:15px;font-weight:600}.small{fill:#4a5568}
.grid{stroke:#e2e8f0;stroke-width:1}.frame{stroke:#a0aec0;fill:none}.band{fill:#edf2f7}.band2{fill:#cbd5e0}
.line{fill:none;stroke-width:1.4}.dots{fill:none;stroke-width:2;stroke-linecap:round}
.mark{fill:none;stroke-width:1.6}.dash{stroke-dasharray:5 3}"""
DARK = """\
.back{fill:#171923}text{fill:#edf2f7}.small{fill:#cbd5e0}.grid{stroke:#2d3748}.frame{stroke:#4a5568}
.band{fill:#2d3748}.band2{fill:#4a5568}"""


def style():
    light = "\n".join(f".{c}{{stroke:{v[0]}}}" for c, v in STYLES.items())
    dark = "".join(f".{c}{{stroke:{v[1]}}}" for c, v in STYLES.items())
    return f"<style>{STATIC}\n{light}\n@media (prefers-color-scheme:dark){{{DARK}\n{dark}}}</style>"


def short(number):
    return f"{number:.1f}".rstrip("0").rstrip(".") if number % 1 else f"{number:.0f}"


def steps(low, high, about):
    """Round numbers from low to high."""
    span = (high - low) or 1
    size = 10 ** math.floor(math.log10(span / about))
    size *= next(k for k in (1, 2, 5, 10) if span / (size * k) <= about)
    n = math.ceil(low / size - 1e-9)
    while n * size <= high + size * 1e-9:
        yield n * size
        n += 1


def label(value, step_text="{:g}"):
    return f"{value:,.0f}" if abs(value) >= 1000 else step_text.format(round(value, 9))


class Panel:
    """A plot with a time axis, in a drawing of the given top and height."""

    def __init__(self, out, top, height, span, high, title):
        self.out, self.top, self.height = out, top, height
        self.begin, self.end = span
        self.high = high or 1
        self.legend_at = LEFT + 8
        unit = (1, "s") if self.end - self.begin >= SECOND else (1000, "ms") \
            if self.end - self.begin >= 1_000_000 else (1_000_000, "µs")
        self.scale, self.unit = unit
        self.axes(title)

    def x(self, time):
        return LEFT + (time - self.begin) * (WIDTH - LEFT - RIGHT) / (self.end - self.begin)

    def y(self, value):
        return self.top + self.height - value * self.height / self.high

    def axes(self, title):
        bottom, right = self.top + self.height, WIDTH - RIGHT
        for value in steps(0, self.high, max(2, self.height // 45)):
            y = short(self.y(value))
            self.out.append(f'<path class="grid" d="M{LEFT} {y}H{right}"/>'
                            f'<text class="small" x="{LEFT - 6}" y="{y}" dy=".35em" '
                            f'text-anchor="end">{label(value)}</text>')
        low, high = (0, (self.end - self.begin) * self.scale / SECOND)
        low += self.offset()
        high += self.offset()
        for value in steps(low, high, 12):
            x = short(self.x(self.begin + (value - self.offset()) * SECOND / self.scale))
            self.out.append(f'<path class="grid" d="M{x} {self.top}V{bottom}"/><text class="small" '
                            f'x="{x}" y="{bottom + 15}" text-anchor="middle">{label(value)}</text>')
        self.out.append(f'<rect class="frame" x="{LEFT}" y="{self.top}" width="{right - LEFT}" '
                        f'height="{self.height}"/><text x="14" y="{self.top + self.height / 2:.0f}" '
                        f'text-anchor="middle" transform="rotate(-90 14 '
                        f'{self.top + self.height / 2:.0f})">{escape(title)}</text>')

    zero = 0

    def offset(self):
        return (self.begin - Panel.zero) * self.scale / SECOND

    def legend(self, kind, text, shape="line"):
        x, y = self.legend_at, self.top - 9
        sample = {"line": f'<path class="line {kind}" d="M{x} {y}h18"/>',
                  "dots": f'<path class="dots {kind}" d="M{x + 4} {y}h0M{x + 9} {y}h0M{x + 14} {y}h0"/>',
                  "cross": f'<path class="mark {kind}" d="{cross(x + 9, y)}"/>',
                  "ring": f'<path class="mark {kind}" d="{ring(x + 9, y)}"/>',
                  "tick": f'<path class="mark {kind}" d="{tick(x + 9, y)}"/>'}[shape]
        self.out.append(f'{sample}<text x="{x + 24}" y="{y}" dy=".35em">{escape(text)}</text>')
        self.legend_at += 40 + 6.4 * len(text)

    def line(self, kind, times, values, text, stepped=True):
        """A line, thinned to four points for each half of a pixel."""
        columns = {}
        before = None
        for time, value in zip(times, values):
            if value < 0:
                continue
            if time < self.begin:
                before = value
            elif time <= self.end:
                column = columns.setdefault(int(self.x(time) * 2), [value] * 4)
                column[1:] = [min(column[1], value), max(column[2], value), value]
        points = [(x / 2, v) for x, column in sorted(columns.items()) for v in column]
        if before is not None:
            points.insert(0, (LEFT, before))
        if not points:
            return
        path, last = [f"M{short(points[0][0])} {short(self.y(points[0][1]))}"], points[0]
        for x, value in points[1:]:
            if x != last[0] and stepped:
                path.append(f"H{short(x)}")
            elif x != last[0]:
                path.append(f"L{short(x)} {short(self.y(value))}")
            if value != last[1] and (stepped or x == last[0]):
                path.append(f"V{short(self.y(value))}")
            last = x, value
        if stepped:
            path.append(f"H{WIDTH - RIGHT}")
        self.out.append(f'<path class="line {kind}" clip-path="url(#c{self.top})" d="{"".join(path)}"/>')
        self.legend(kind, text)

    def clip(self):
        self.out.append(f'<clipPath id="c{self.top}"><rect x="{LEFT}" y="{self.top}" '
                        f'width="{WIDTH - LEFT - RIGHT}" height="{self.height}"/></clipPath>')

    def dots(self, kind, points, text):
        """A dot for each (time, value); those that touch in a column become a line."""
        columns = collections.defaultdict(set)
        for time, value in points:
            if self.begin <= time <= self.end and value <= self.high:
                columns[int(self.x(time) * 2)].add(int(self.y(value) * 2))
        if not columns:
            return
        path = []
        for column, ys in sorted(columns.items()):
            first = last = None
            for y in sorted(ys):
                if last is not None and y > last + 2:
                    path.append(f"M{short(column / 2)} {short(first / 2)}V{short(last / 2)}")
                    first = None
                first = y if first is None else first
                last = y
            path.append(f"M{short(column / 2)} {short(first / 2)}V{short(last / 2)}")
        self.out.append(f'<path class="dots {kind}" d="{"".join(path)}"/>')
        self.legend(kind, text, "dots")

    def marks(self, kind, runs, text, shape):
        """Marks with a text each: (time, value, text)."""
        draw = {"cross": cross, "ring": ring, "tick": tick}[shape]
        rest, any_mark = [], False
        for n, (time, value, what) in enumerate(runs):
            if not self.begin <= time <= self.end or value > self.high:
                continue
            any_mark = True
            d = draw(self.x(time), self.y(value))
            if n < MARKS_MOST:
                self.out.append(f'<path class="mark {kind}" d="{d}"><title>{escape(what)}</title></path>')
            else:
                rest.append(d)
        if rest:
            self.out.append(f'<path class="mark {kind}" d="{"".join(rest[:100 * MARKS_MOST])}"/>')
        if any_mark:
            self.legend(kind, text, shape)


def cross(x, y):
    return f"M{short(x - 3)} {short(y - 3)}l6 6m0-6l-6 6"


def tick(x, y):
    return f"M{short(x)} {short(y - 5)}v10"


def ring(x, y):
    return f"M{short(x - 3)} {short(y)}a3 3 0 1 0 6 0a3 3 0 1 0-6 0"


def runs(call, indices, what, begin):
    """Consecutive packets that were sent together, as one mark each: (time, middle, text)."""
    run = []

    def made():
        first, last = call.seq[run[0]], call.seq[run[-1]]
        name = f"packet {first}" if first == last else f"packets {first} to {last}"
        time = call.sent_at[run[0]]
        return time, (first + last) / 2, f"{name} {what}, {(time - begin) / SECOND:.6f} s"

    for index in sorted(indices):
        if run and (call.seq[index] != call.seq[run[-1]] + 1 or
                    call.sent_at[index] - call.sent_at[run[0]] > 1_000_000):
            yield made()
            run = []
        run.append(index)
    if run:
        yield made()


def sequence_panel(out, call, top, height, span, begin):
    shown = [i for i, t in enumerate(call.sent_at) if span[0] <= t <= span[1]]
    high = max((call.seq[i] for i in shown), default=1)
    edges = [e for t, e in zip(call.acks["at"], call.acks["edge"]) if span[0] <= t <= span[1]]
    high = max(high, min(max(edges, default=0), high * 1.15 + 10))
    panel = Panel(out, top, height, span, high * 1.02, "sequence number")
    panel.clip()
    panel.line("edge dash", call.acks["at"], call.acks["edge"], "edge of the peer's window")
    panel.line("ack", call.acks["at"], call.acks["first"], "acknowledged")
    lost = call.lost()
    panel.dots("data", ((call.sent_at[i], call.seq[i]) for i in shown if i not in call.again),
               "sent" if call.ours is not False else "received")
    panel.marks("lost", runs(call, lost, "lost", begin), "lost", "cross")
    needed = [i for i in call.again if i not in call.spurious]
    panel.marks("again", runs(call, needed, "sent again", begin), "sent again", "ring")
    panel.marks("spurious", runs(call, call.spurious, "sent again needlessly", begin),
                "sent again needlessly", "ring")
    panel.marks("marked", ((t, seq, f"{what}, {(t - begin) / SECOND:.6f} s") for t, seq, what in call.marked),
                "marked by the network (ECN)", "tick")
    events = ((t, panel.high * 0.97, f"{what}, {(t - begin) / SECOND:.6f} s")
              for t, what in call.happened)
    panel.marks("event", events, "timeout or false loss", "cross")
    states = ((t, panel.high * 0.93, f"{what}, {(t - begin) / SECOND:.6f} s") for t, what in call.ecn)
    panel.marks("ecn", states, "state of ECN, or a reaction to marks", "ring")


def most(series, times, span):
    return max((v for t, v in zip(times, series) if span[0] <= t <= span[1] and v < UNLIMITED),
               default=0)


def in_flight(call):
    """Packets sent and not acknowledged, from the packets alone: times, numbers."""
    times, numbers, at, highest = ints(), ints(), 0, 0
    for i, time in enumerate(call.acks["at"]):
        while at < len(call.seq) and call.sent_at[at] <= time:
            highest = max(highest, call.seq[at])
            at += 1
        times.append(time)
        numbers.append(max(0, highest + 1 - call.acks["first"][i]))
    return times, numbers


def window_panel(out, call, top, height, span):
    w, at = call.window, call.window["at"]
    flight = (at, w["flight"]) if at else in_flight(call)
    high = max(most(w["cwnd"], at, span), most(flight[1], flight[0], span),
               most(call.acks["missing"], call.acks["at"], span))
    threshold = [v if v < UNLIMITED else -1 for v in w["ssthresh"]]
    high = max(high, min(most(threshold, at, span), high * 1.5)) * 1.06
    panel = Panel(out, top, height, span, high, "packets")
    panel.clip()
    bands(panel, call.phases)
    panel.line("ssthresh dash", at, threshold, "threshold of slow start")
    panel.line("cwnd", at, w["cwnd"], "congestion window")
    panel.line("flight", *flight, "in flight" if at else "sent and not acknowledged")
    if any(v > 0 for v in call.acks["missing"]):
        panel.line("missing", call.acks["at"], call.acks["missing"], "missing, by the ACKs")


def bands(panel, phases):
    """A strip below the top of the panel: the phases of congestion control."""
    last = WIDTH - RIGHT
    for i, (time, text) in enumerate(phases[:MARKS_MOST]):
        end = phases[i + 1][0] if i + 1 < len(phases) else panel.end
        if end < panel.begin or time > panel.end:
            continue
        x, until = panel.x(max(time, panel.begin)), min(panel.x(end), last)
        panel.out.append(f'<rect class="{"band2" if i % 2 else "band"}" x="{short(x)}" y="{panel.top}" '
                         f'width="{short(max(0.5, until - x))}" height="16"><title>{escape(text)}'
                         '</title></rect>')
        if until - x > 7 * len(text):
            panel.out.append(f'<text class="small" x="{short(x + 4)}" y="{panel.top + 12}">'
                             f'{escape(text)}</text>')


def rtt_panel(out, call, top, height, span):
    w = call.window
    high = max(most_ms(call.rtt[1], call.rtt[0], span), most_ms(w["rtt"], w["at"], span)) * 1.1
    panel = Panel(out, top, height, span, high, "round trip, ms")
    panel.clip()
    panel.dots("rtt", ((t, v / 1e6) for t, v in zip(*call.rtt)), "by the serial of an ACK")
    for name, kind, text in (("rtt", "smooth", "smoothed"), ("least", "least", "shortest")):
        panel.line(kind, w["at"], [v / 1e6 if v else -1 for v in w[name]], text)


def most_ms(series, times, span):
    return max((v for t, v in zip(times, series) if span[0] <= t <= span[1]), default=0) / 1e6


def headline(call, summary):
    way = "reply" if call.reply else "request"
    again, spurious = len(call.again), len(call.spurious)
    parts = [f"{len(call.seq):,} DATA packets", f"{again:,} sent again"]
    if spurious:
        parts.append(f"{spurious:,} of them needlessly")
    if call.reordered:
        parts.append(f"{call.reordered:,} reordered")
    if call.marks:
        parts.append(f"{call.marks:,} marked (ECN)")
    if call.end_text:
        parts.append(call.end_text)
    ends = (summary.client, summary.server)[::-1 if call.reply else 1]
    seen = {None: "", True: ", trace of the sender", False: ", trace of the receiver"}[call.ours]
    return (f"Call {name_of(call.key)}, service {summary.service}: {way} from {address(ends[0])} to "
            f"{address(ends[1])}{seen}", ", ".join(parts))


def svg(title, facts, body, height, span, since):
    unit = "s" if span[1] - span[0] >= SECOND else "ms" if span[1] - span[0] >= 1_000_000 else "µs"
    return "\n".join([
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><desc>{escape(facts)}</desc>", style(),
        f'<rect class="back" width="{WIDTH}" height="{height}"/>',
        f'<text class="head" x="14" y="26">{escape(title)}</text>',
        f'<text class="small" x="14" y="48">{escape(facts)}</text>', *body,
        f'<text x="{(LEFT + WIDTH - RIGHT) // 2}" y="{height - 10}" text-anchor="middle">'
        f"time since {since}, {unit}</text>", "</svg>", ""])


def drawing(call, summary, limits):
    """The text of the SVG file."""
    times = (call.sent_at, call.acks["at"], call.window["at"])
    begin = min(min(t) for t in times if t)
    end = max(max(t) for t in times if t)
    Panel.zero = begin
    span = (begin if limits[0] is None else begin + round(limits[0] * SECOND),
            end if limits[1] is None else begin + round(limits[1] * SECOND))
    span = (span[0], max(span[1], span[0] + 1000))
    title, facts = headline(call, summary)
    body, tops = [], [(96, 420), (566, 200), (816, 120)]
    sequence_panel(body, call, *tops[0], span, begin)
    window_panel(body, call, *tops[1], span)
    last = tops[1]
    if call.rtt[0] or any(call.window["rtt"]):
        last = tops[2]
        rtt_panel(body, call, *last, span)
    height = sum(last) + 46
    return svg(title, facts, body, height, span, "the first packet")


# ---- a transfer over several paths: the report of afscp --json ----

COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#bab0ac")


def path_report(file):
    """Names, rows of [ns, bytes of each path], and (ns, path, change); or None if the file is no report."""
    if file.read(1) != b"{":
        file.seek(0)
        return None
    file.seek(0)
    try:
        report = json.loads(file.read(REPORT_MOST))
        paths, rows = report.get("paths", []), report.get("path_samples", [])
        if not 1 <= len(paths) <= len(COLOURS) or len(rows) < 2:
            raise Damaged("the report has no samples of paths: the copy had one path only")
        names = [f"{p['server']} by {p['device'] or p['local']}" for p in paths]
        rows = [[round(row[0] * 1e6), *(float(v) for v in row[1:]), *[0.0] * (1 + len(paths) - len(row))] for row in rows]
        changes = [(round(c["ms"] * 1e6), i, str(c["state"])) for i, p in enumerate(paths) for c in p["changes"]]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError):
        raise Damaged("it is no report of afscp --json") from None
    if any(len(row) != 1 + len(paths) for row in rows) or not all(a[0] < b[0] < TIME_MOST for a, b in zip(rows, rows[1:])):
        raise Damaged("its samples are in no order")
    return names, rows, changes


def path_drawing(names, rows, changes, limits):
    """Rates over time, one upon the other; deaths are marked."""
    begin, end = rows[0][0], rows[-1][0]
    Panel.zero = begin
    span = (begin if limits[0] is None else begin + round(limits[0] * SECOND),
            end if limits[1] is None else begin + round(limits[1] * SECOND))
    span = (span[0], max(span[1], span[0] + 1000))
    # What is dropped makes numbers smaller: that is no rate.
    rates = [(a[0], b[0], [max(0.0, y - x) * 1000 / (b[0] - a[0]) for x, y in zip(a[1:], b[1:])]) for a, b in zip(rows, rows[1:])
             if b[0] > span[0] and a[0] < span[1]]
    body, top, height = [], 96, 420
    panel = Panel(body, top, height, span, 1.05 * max((sum(r) for _, _, r in rates), default=1), "MB/s")
    clip = lambda time: short(panel.x(min(max(time, span[0]), span[1])))
    for i, name in enumerate(names):
        low, high = [], []
        for start, stop, r in rates:
            for points, value in ((low, sum(r[:i])), (high, sum(r[:i + 1]))):
                points += [f"{clip(start)} {short(panel.y(value))}", f"{clip(stop)} {short(panel.y(value))}"]
        if high:
            body.append(f'<path style="stroke:none;fill:{COLOURS[i]};fill-opacity:.75" d="M{"L".join(high + low[::-1])}Z">'
                        f'<title>{escape(name)}</title></path>')
        x = LEFT + 8 + i * (WIDTH - LEFT - RIGHT) // len(names)
        body.append(f'<rect style="fill:{COLOURS[i]}" x="{x}" y="{top - 16}" width="18" height="12"/><text x="{x + 24}" '
                    f'y="{top - 9}" dy=".35em">{escape(name)}</text>')
    for at, i, change in changes[:MARKS_MOST]:
        if span[0] <= at <= span[1] and change in ("dead", "back", "joined", "parked"):
            x, y = short(panel.x(at)), top + 14 + 14 * i
            dashes = "none" if change == "dead" else "2 4"
            body.append(f'<path style="stroke:{COLOURS[i]};stroke-width:1.5;stroke-dasharray:{dashes}" d="M{x} {top}V{top + height}"/>'
                        f'<text class="small" x="{x}" y="{y}" dx="3">{escape(change)}</text>')
    total = sum(rows[-1][1:])
    facts = ", ".join(f"{name} {100 * v / (total or 1):.0f} %" for name, v in zip(names, rows[-1][1:]))
    return svg("Bytes of a transfer by path", f"{total / 1e6:,.1f} MB: {facts}", body, top + height + 46, span, "the first sample")


# ---- the command ----

def arguments():
    p = argparse.ArgumentParser(
        prog="rxwplot", description="Draw a call of a packet trace as SVG: sequence numbers, windows, "
        "losses and round-trip times.")
    p.add_argument("trace", metavar="TRACE", help="a pcapng or pcap file, or a report of afscp --json")
    p.add_argument("-l", "--list", action="store_true", help="list the calls of the trace")
    p.add_argument("-c", "--call", metavar="CALL",
                   help="EPOCH/CID/CALL, or a number of the list (the call with the most packets)")
    p.add_argument("-d", "--direction", choices=("request", "reply"),
                   help="the DATA packets to draw (the direction that has more)")
    p.add_argument("-o", "--output", metavar="FILE", help="the SVG file (standard output)")
    p.add_argument("--from", dest="begin", metavar="SECONDS", type=float, help="begin of the drawing")
    p.add_argument("--to", dest="end", metavar="SECONDS", type=float, help="end of the drawing")
    p.add_argument("-V", "--version", action="version", version=f"rxwplot (rxwire) {VERSION}")
    a = p.parse_args()
    if a.list and (a.call, a.direction, a.output, a.begin, a.end) != (None,) * 5:
        p.error("--list draws nothing: it takes none of the other options")
    for value in (a.begin, a.end):
        if value is not None and not 0 <= value <= 1e9:
            p.error("--from and --to take seconds from 0 on")
    if a.begin is not None and a.end is not None and a.begin >= a.end:
        p.error("--from must be below --to")
    return a


def write(text, path):
    if path is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def run(a, note):
    with open(a.trace, "rb") as file:
        if not file.seekable():
            raise Damaged("it is read twice, so it must be a file and not a pipe")
        report = path_report(file)
        if report:
            write(path_drawing(*report, (a.begin, a.end)), a.output)
            return
        calls = summaries(file, note)
        if a.list:
            print_list(calls)
            return
        key = chosen(calls, a.call)
        reply = calls[key].main_direction() if a.direction is None else int(a.direction == "reply")
        if not calls[key].count[reply]:
            raise Damaged(f"the call has no DATA packets of the {a.direction}")
        call = read_call(file, key, bool(reply), note)
    write(drawing(call, calls[key], (a.begin, a.end)), a.output)


def main():
    a = arguments()
    notes = []

    def note(text):
        if text not in notes:
            notes.append(text)
            print(f"rxwplot: {a.trace}: {text}", file=sys.stderr)

    try:
        sys.stdout.reconfigure(encoding="utf-8")
        run(a, note)
    except Damaged as e:
        print(f"rxwplot: {a.trace}: {e}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except OSError as e:
        print(f"rxwplot: {e.filename or a.trace}: {e.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if notes else 0


if __name__ == "__main__":
    sys.exit(main())
