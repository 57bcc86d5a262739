#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares two recordings of one exchange: what does an old peer see of wide windows?

usage: offer.py client|server NARROW WIDE [--lockstep | --loose]     (which end is ours)

NARROW was recorded with a window of 255 packets, WIDE with a larger one, by offer_relay.py. In WIDE, each ACK of ours
has the flag 0x08 and the octets 0, 4, 0 after its table, in NARROW none has them. Else nothing differs: the length of
an ACK follows from nAcks, rwind does not exceed 255, trailers and flags are those of NARROW, and the DATA of each call
has the same lengths, flags and bytes. The peer's packets have the same forms in both, where both have some of that
type. With --lockstep, all packets of both ends are also the same, one by one, apart from serial numbers, cids and
epochs, and from delayed ACKs, which a busy machine writes. With --loose, the calls need not be the same: only the
forms of all packets are compared.

Which ACKs are written depends on time in a live exchange, so their number is not compared, except with --lockstep.
Prints a line of counts, and a line for each difference; the status is 1 if there is one.
"""
import struct
import sys

DATA, BUSY, ABORT, ACK, VERSION = 1, 3, 4, 2, 13
CLIENT, REQUEST_ACK, LAST, MORE, SLOW = 1, 2, 4, 8, 0x20
EXTENDED = 0x08
DELAY = 8
found = []


def wrong(text):
    if len(found) < 20:
        print("difference:", text)
    found.append(text)


class Packet:
    def __init__(self, up, data):
        (self.epoch, self.cid, self.call, self.seq, self.serial, self.type, self.flags, self.status, self.security,
         self.spare, self.service) = struct.unpack(">IIIIIBBBBHH", data[:28])
        self.up, self.size, self.body = up, len(data), data[28:]
        if self.type == ACK and len(self.body) >= 18:
            (self.space, self.skew, self.first, self.previous, self.about, self.reason,
             self.n) = struct.unpack(">HHIIIBB", self.body[:18])
            self.table = self.body[18:18 + self.n]
            self.octets = tuple(self.body[18 + self.n:21 + self.n])
            rest = self.body[21 + self.n:]
            self.trailer = struct.unpack(">%dI" % (len(rest) // 4), rest[:len(rest) // 4 * 4])


def read(name):
    data, at, packets = open(name, "rb").read(), 24, []
    while at < len(data):
        size = struct.unpack("<I", data[at + 8:at + 12])[0]
        ip = data[at + 16:at + 16 + size]
        if len(ip) >= 56:
            p = Packet(ip[15] == 2, ip[28:])
            if p.type != VERSION:
                packets.append(p)
        at += 16 + size
    return packets


def check_ack(p, wide):
    """An ACK of ours."""
    what = "ACK of packet %d, reason %d" % (p.first, p.reason)
    if p.octets != ((0, 4, 0) if wide else (0, 0, 0)):
        wrong("%s: octets %s" % (what, p.octets))
    if bool(p.flags & EXTENDED) != wide:
        wrong("%s: flags %#x" % (what, p.flags))
    if p.flags & ~(EXTENDED | CLIENT | REQUEST_ACK | SLOW):
        wrong("%s: flags %#x" % (what, p.flags))
    padded = p.reason == 6 and p.size > 65 + p.n and not any(p.body[37 + p.n:])
    if p.size != 65 + p.n and not padded:
        wrong("%s: %d bytes with %d entries" % (what, p.size, p.n))
    if any(b > 1 for b in p.table):
        wrong("%s: table %s" % (what, p.table.hex()))
    if not 1 <= p.trailer[2] <= 255:
        wrong("%s: rwind %d" % (what, p.trailer[2]))


def forms(packets, ours):
    """What packets of one end look like, apart from what depends on time."""
    out = set()
    for p in packets:
        if p.type == ACK:
            out.add(("ACK", p.size - p.n if p.reason != 6 else 65, p.flags & ~(EXTENDED if ours else 0) & ~REQUEST_ACK,
                     p.space, p.security, p.service, p.trailer[:2] + p.trailer[3:]))
        elif p.type == DATA:
            out.add(("DATA", p.flags & ~(REQUEST_ACK | LAST | MORE), p.security, p.service))
        else:
            out.add((p.type, p.size, p.flags, p.security, p.service))
    return out


def streams(packets):
    """Of each call, in order: its DATA by sequence number. Flags that depend on time are left out."""
    calls, order = {}, []
    for p in packets:
        if p.type != DATA:
            continue
        key = p.epoch, p.cid, p.call, p.up
        if key not in calls:
            calls[key] = {}
            order.append(key)
        calls[key].setdefault(p.seq, (p.flags & (CLIENT | LAST), p.body, p.security, p.service))
    return [calls[key] for key in order]


def flight(packets, ours_up):
    """The most packets that the peer had sent beyond the first of our latest ACK."""
    first, most = {}, 0
    for p in packets:
        key = p.epoch, p.cid, p.call
        if p.type == ACK and p.up == ours_up:
            first[key] = max(first.get(key, 1), p.first)
        elif p.type == DATA and p.up != ours_up:
            most = max(most, p.seq - first.get(key, 1) + 1)
    return most


def shape(p, ours_up):
    """For --lockstep."""
    if p.type != ACK:
        return p.up, p.type, p.call, p.seq, p.flags, p.security, p.service, p.body
    own = p.up == ours_up
    return (p.up, p.type, p.call, p.flags & ~(EXTENDED if own else 0), p.first, p.previous, p.reason, p.table,
            p.octets[::2] if own else p.octets, p.trailer)


def lockstep(narrow, wide, ours_up):
    a, b = ([shape(p, ours_up) for p in packets if p.type != ACK or p.reason != DELAY] for packets in (narrow, wide))
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            wrong("packet %d: %s, then %s" % (i, x, y))
            return
    if len(a) != len(b):
        wrong("%d packets, then %d" % (len(a), len(b)))


def main():
    ours_up = sys.argv[1] == "client"
    both = [read(name) for name in sys.argv[2:4]]
    acks, theirs = [0, 0], [0, 0]
    for i, packets in enumerate(both):
        for p in packets:
            if p.type == ACK and p.up == ours_up:
                check_ack(p, i == 1)
                acks[i] += 1
            theirs[i] += p.type == ACK and p.up != ours_up
        if flight(packets, ours_up) > 255:
            wrong("the peer has more than 255 packets in flight")
    for up in (False, True):
        a, b = (forms([p for p in packets if p.up == up], up == ours_up) for packets in both)
        differ = a ^ b
        if up != ours_up:
            # Time also decides whether the peer sends any ACK at all, where it sends one or two.
            both_have = {f[0] for f in a} & {f[0] for f in b} & {"ACK", "DATA"}
            differ = {f for f in differ if f[0] in both_have}
        for form in differ:
            wrong("%s only: %s" % ("narrow" if form in a else "wide", form))
    a, b = (streams(packets) for packets in both)
    count = len(a), len(b)
    if "--loose" in sys.argv:
        a = b = []
    if len(a) != len(b):
        wrong("%d streams, then %d" % (len(a), len(b)))
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            wrong("stream %d: other DATA from packet %s on" % (i, min(k for k in x.keys() | y.keys()
                                                                    if x.get(k) != y.get(k))))
    if "--lockstep" in sys.argv:
        lockstep(both[0], both[1], ours_up)
    print("packets %d %d, ACKs of ours %d %d, of the peer %d %d, streams %d %d, the peer's flight %d %d" % (
        len(both[0]), len(both[1]), *acks, *theirs, *count, flight(both[0], ours_up), flight(both[1], ours_up)))
    if not acks[1]:
        wrong("no ACK of ours")
    sys.exit(1 if found else 0)


main()
