# SPDX-License-Identifier: BSD-2-Clause
"""Headers and dropped packets: C-001 to C-012, with a server under test."""

import struct

import wire
from harness import ask_receive, test
from peer import End, equal, want
from wire import ABORT, ACK, CLIENT, DATA, LAST

# Types and bodies other than requests, for a packet without a connection.
STRAY = [(wire.ACK, wire.Ack().encode()), (wire.ACK, wire.Ack(reason=wire.PING).encode()),
         (wire.BUSY, b''), (wire.ABORT, struct.pack('>i', -1)), (wire.ACKALL, b''),
         (wire.CHALLENGE, bytes(16)), (wire.RESPONSE, bytes(60)), (wire.PARAMS, b''), (10, b''),
         (11, b''), (12, b''), (14, b''), (0, b''), (255, b'')]


@test(1)
def test_C_001_short_datagrams(t):
    """A datagram shorter than a header draws no answer and does no harm."""
    c = t.conn()
    t.served(c)
    c.sock.drain()
    for size in (0, 1, 4, 20, 27):
        c.sock.send(c.packet(DATA, 2, 1, flags=LAST).encode()[:size], c.to)
    equal(c.fence(), [], 'what came for short datagrams')


@test(2)
def test_C_002_byte_order_and_unknown_flags(t):
    """Fields are big-endian both ways. Unknown flags are ignored and never sent."""
    t.need_perf()
    c = t.conn(epoch=0x81020304, cid=0x05060708 + End.random.getrandbits(20) * 256)
    c.data(0x01020304, 1, t.request(), LAST | 0xd0, channel=1, serial=0x0a0b0c0d)
    p = t.answer(c, 0x01020304, 1)
    equal((p.epoch, p.cid, p.service), (c.epoch, c.cid | 1, c.service), 'epoch, cid, service')
    serial = c.ping(0x01020304, channel=1, flags=0xd0, header={'serial': 0x0a0b0c0e}).serial
    a = c.next(ACK, reason=wire.PING_RESPONSE)
    equal(a.ack.serial, serial, 'serial of the answer')
    for p in c.sock.packets:
        equal(wire.fault(p, False), None, str(p))


@test(3)
def test_C_003_spare_is_ignored(t):
    """`spare` is ignored in ACK and ABORT, and in DATA without a class."""
    t.need_perf()
    c = t.conn()
    t.served(c, spare=0xbeef)
    c.ping(header={'spare': 0xdead})
    c.next(ACK, reason=wire.PING_RESPONSE)
    c.data(2, 1, b'\0\0\0\3', 0)
    c.abort(-6, 2, spare=0xffff)
    t.served(c, 3)


@test(4)
def test_C_004_who_began_it(t):
    """The server never sends CLIENT_INITIATED. A client's packet without it begins no call."""
    c = t.conn()
    p = c.packet(DATA, 1, 1, t.request(), LAST)
    p.flags &= ~CLIENT
    c.sock.send(p.encode(), c.to)
    t.served(c)
    c.data(2, 1, b'', 0)
    c.ping(2)
    c.next(ACK, 2, wire.PING_RESPONSE)
    c.abort(-6, 2)
    t.served(c, 3)
    equal([str(p) for p in c.sock.packets if p.flags & CLIENT], [], 'packets with the bit')
    equal(len([p for p in c.sock.packets if p.type == DATA or p.code == -454]), 2, 'answers')


@test(5, slow=2)
def test_C_005_serials(t):
    """The server's serials count 1, 2, 3 ... over all packets and channels, retransmissions
    included. A PING that validates the address has an unpredictable serial."""
    t.need_perf()
    c = t.proven()
    for channel in range(1, 4):
        p = t.served(c, 1, channel)
        c.ping(first=2, channel=channel, serial=p.serial)
    c.data(2, 1, ask_receive(8000))
    c.next(DATA, 2, seq=1)
    again = c.next(DATA, 2, match=lambda p: any(
        q is not p and q.type == DATA and (q.call, q.seq, q.cid) == (p.call, p.seq, p.cid)
        for q in c.sock.packets))
    first = next(q for q in c.sock.packets
                 if (q.call, q.seq, q.cid) == (again.call, again.seq, again.cid))
    want(again.serial != first.serial, 'a repeated packet has its old serial')
    c.abort(-6, 2)
    c.sock.drain(0.1)
    serials = []
    for p in c.sock.packets:
        if p.reason == wire.PING and p.serial >= 1 << 24:
            continue
        serials += [m[1] for m in p.members()] if p.type == DATA else [p.serial]
    equal(sorted(serials), list(range(1, len(serials) + 1)), 'serials')


@test(6, harm=True)
def test_C_006_sequence_numbers(t):
    """seq counts from 1 without gaps. DATA with seq 0 begins no call and is ignored."""
    t.need_perf()
    c = t.conn()
    c.data(1, 0, t.request())
    t.prove(c, t.served(c))
    c.data(2, 1, ask_receive(20000))
    got = {}
    while not any(p.flags & LAST for p in got.values()):
        p = c.next(DATA, 2)
        for seq, _, flags, _, payload in p.members():
            got[seq] = p
        c.ack(2, max(got) + 1, serial=p.serial)
    equal(sorted(got), list(range(1, len(got) + 1)), 'sequence numbers')
    equal([str(p) for p in c.sock.packets if p.type == DATA and p.seq == 0], [], 'DATA with seq 0')
    equal([str(p) for p in c.sock.packets if p.reason == wire.DUPLICATE], [], 'answers to seq 0')


@test(8)
def test_C_008_unknown_service(t):
    """DATA for an unknown service or class draws one ABORT -2 that echoes it. Other types draw no
    answer."""
    for service, security in ((4242, 0), (t.service, 9)):
        c = t.conn(service=service, security=security)
        for kind, body in STRAY:
            c.send(kind, 7, 0, body)
            if kind in (wire.CHALLENGE, wire.RESPONSE, wire.PARAMS, 12):
                c.send(kind, 0, 0, body)
        for kind in range(256) if t.ours else ():
            if kind not in (DATA, wire.DEBUG, wire.VERSION):
                c.send(kind, kind % 2, 0, t.request())
        if t.ours:
            p = c.packet(DATA, 1, 1, t.request(), LAST)
            p.flags &= ~CLIENT      # to the client of such a connection
            c.sock.send(p.encode(), c.to)
        c.data(7, 1, b'abcd', channel=2, status=5, spare=99)
        p = c.next()
        equal((p.type, p.code, p.call, p.cid), (ABORT, -2, 7, c.cid | 2), 'the answer')
        equal((p.serial, p.seq, p.flags, p.status, p.security), (0, 0, 0, 0, security), 'its header')
        equal(p.size, 32, 'its size')
        other = t.conn(sock=c.sock)
        t.served(other)
        equal([str(q) for q in c.sock.drain(0.1) if c.mine(q)], [], 'what else came')


@test(8)
def test_C_008_position_of_the_service_id(t):
    """The ABORT names the service in bytes 26 and 27, and `spare` is 0."""
    c = t.conn(service=4243)
    c.data(1, 1, b'abcd', spare=77)
    p = c.next(ABORT)
    equal((p.service, p.spare), (4243, 0), 'service and spare')


@test(8, harm=True)
def test_C_008_rate_of_refusals(t):
    """Refusals are rate-limited."""
    import time
    t.need_ours('only ours can be given a small limit')
    s = t.server(listeners=1, abort_rate=5)
    c = t.conn(s, service=4244)
    began = time.monotonic()
    for call in range(1, 201):
        c.data(call, 1, b'abcd')
    known = t.conn(s, c.sock)
    t.served(known)
    count = len([p for p in c.sock.packets if p.type == ABORT])
    seconds = time.monotonic() - began
    want(1 <= count <= 10 + 5 * seconds, '%d refusals in %.1f s' % (count, seconds))


@test(10)
def test_C_010_never_an_abort_for_these(t):
    """ABORT, BUSY, DEBUG, VERSION, CHALLENGE and RESPONSE never draw an ABORT, nor do packets
    without a call."""
    c = t.conn()
    t.served(c)
    stranger = t.conn(sock=c.sock)
    for end, call in ((stranger, 1), (stranger, 0), (c, 9), (c, 0)):
        for kind, body in STRAY:
            if call or kind in (wire.CHALLENGE, wire.RESPONSE, wire.PARAMS, 10, 11):
                if not (end is c and kind == wire.ABORT):
                    end.send(kind, call, 0, body, channel=1)
    for kind in (wire.DEBUG, wire.VERSION):
        c.send(kind, 1, 0, bytes(8))
    c.abort(-1, 1)
    t.served(c, 2)
    equal([str(p) for p in c.sock.packets if p.type == ABORT and p.code != -454], [], 'ABORTs')


@test(11)
def test_C_011_unknown_types(t):
    """Types 0, 9 to 12 and above 13 are dropped, with or without a live call, and end nothing."""
    c = t.conn()
    for kind in (wire.PARAMS, 10, 11, 12, 0, 14, 15, 200, 255):
        c.send(kind, 0, 0, b'')
    c.data(1, 1, b'', 0)
    for kind in (wire.PARAMS, 10, 11, 12, 0, 14, 15, 200, 255):
        c.send(kind, 1, 0, b'what?')
    c.data(1, 2, t.request())
    t.answer(c)
    t.served(c, 2)
    equal([str(p) for p in c.sock.packets if p.type == ABORT and p.code != -454], [], 'ABORTs')


@test(12)
def test_C_012_another_class(t):
    """A packet of a known connection under another security index is dropped."""
    c = t.conn()
    t.served(c)
    c.sock.drain()
    c.data(2, 1, t.request(), security=2)
    c.ping(header={'security': 2})
    c.abort(-6, 0, security=2)
    equal([str(p) for p in c.fence() if p.type != ACK or p.reason == wire.PING_RESPONSE], [],
          'what came')
    t.served(c, 3)


