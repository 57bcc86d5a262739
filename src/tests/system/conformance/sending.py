# SPDX-License-Identifier: BSD-2-Clause
"""Sending by a server: C-035, C-037 to C-043, and received jumbograms."""

import wire
from acks import Reader, open_request, until_hard
from harness import COOKIE, ask_receive, ask_send, test
from peer import equal, want
from wire import DATA, JUMBO, LAST, MEMBER


@test(35)
def test_C_035_a_soft_ack_may_be_withdrawn(t):
    """Soft-acknowledged packets are kept: when retracted, they are retransmitted with the same
    bytes."""
    r = Reader(t)
    top = r.settle()
    r.ack(1, wire.REQUESTED, entries=b'\1' * top, serial=r.latest.serial)
    r.settle()
    kept = r.got[1]
    r.c.sock.drain()
    r.ack(1, wire.OUT_OF_SEQUENCE, entries=b'\0' + b'\1' * (r.top - 1), serial=r.latest.serial)
    p = r.c.next(DATA, r.call, seq=1)
    equal(p.body, kept[1], 'the bytes')
    r.finish()


@test(37)
def test_C_037_the_window(t):
    """No DATA at or beyond firstPacket + rwind: 16 before the first ACK, then as advertised, down
    to one."""
    r = Reader(t)
    edge = r.settle()
    want(edge <= 16, '%d packets before a window was known' % edge)
    for window in (1, 5, 2, 16, 1):
        first = r.settle(0.05) + 1
        r.ack(first, trailer=[1444, 1444, window, 1], serial=r.latest.serial)
        r.gather(first)
        top = r.settle()
        want(top < first + window, 'packet %d with first %d, window %d' % (top, first, window))
    r.finish()


@test(38, slow=8)
def test_C_038_retransmission_backs_off(t):
    """An unacknowledged reply is retransmitted after 200 ms or more, at growing intervals."""
    t.need_perf()
    c = t.proven()
    first = t.served(c, 2)
    times = [first.at] + [c.next(DATA, 2).at for _ in range(3 if t.ours else 2)]
    # A probe, and then a timeout of 200 ms or more that doubles: a second or so in all. A busy
    # machine may be late with the first, so half of that is enough.
    want(times[-1] - times[0] >= 0.5, 'sent after %s s' % [round(x - times[0], 3) for x in times])
    c.ack(2, 2)


@test(38)
def test_C_038_the_first_flight(t):
    """The initial congestion window is at most ten packets, and grows with ACKs."""
    r = Reader(t)
    top = r.settle()
    want(top <= 11, 'the first flight has %d packets' % top)
    r.ack(top + 1, wire.REQUESTED, serial=r.latest.serial)
    r.gather(top + 1)
    r.finish()


@test(39)
def test_C_039_window_excess_is_no_loss(t):
    """EXCEEDS_WINDOW: the packet is kept and retransmitted when there is room."""
    r = Reader(t)
    top = r.settle()
    r.c.sock.drain()
    r.ack(top, wire.EXCEEDS_WINDOW, entries=b'\0', serial=r.latest.serial, trailer=[1444, 1444, 1, 1])
    r.ack(top, wire.DELAY, trailer=[1444, 1444, 32, 1])
    r.c.next(DATA, r.call, seq=top)
    r.finish()


@test(40, slow=8)
def test_C_040_repeated_packets(t):
    """A retransmission has the same call, seq, channel, LAST_PACKET, spare and bytes."""
    t.need_perf()
    c = t.proven()
    c.data(2, 1, ask_receive(2000))
    # The first is not acknowledged, so it is retransmitted; then the same for the last.
    for _ in range(2):
        c.next(DATA, 2, seq=1)
    c.ack(2, 2)
    for _ in range(2):
        p = c.next(DATA, 2, match=lambda q: q.flags & LAST)
    c.ack(2, p.seq + 1)
    copies = {}
    for p in c.sock.packets:
        if p.type == DATA and p.call == 2:
            for seq, serial, flags, spare, body in p.members():
                copies.setdefault(seq, []).append((p.cid, p.status, flags & LAST, spare, body))
    for seq, seen in copies.items():
        equal(len(set(seen)), 1, 'different copies of packet %d' % seq)
    want(len(copies[1]) > 1 and len(copies[max(copies)]) > 1, 'nothing came twice')


@test(41)
def test_C_041_members_of_a_jumbogram(t):
    """Jumbograms sent: members of 1412 bytes, each preceded by its flags; retransmitted as single
    packets."""
    r = Reader(t, 300)
    top = r.settle()
    r.ack(top + 1, wire.REQUESTED, serial=r.latest.serial, trailer=[5692, 1444, 32, 4])
    r.gather(top + 1)
    r.finish()
    seen = set()
    for p in r.c.sock.packets:
        if p.type != DATA:
            continue
        members = list(p.members())
        for seq, _, flags, _, body in members[:-1]:
            equal((len(body), flags & (LAST | wire.REQUEST)), (MEMBER, 0), 'member %d' % seq)
        want(not members[-1][2] & JUMBO, 'the last member announces another')
        for seq, *_ in members:
            want((p.call, seq) not in seen or len(members) == 1, 'a jumbogram repeats packet %d' % seq)
            seen.add((p.call, seq))


@test(42)
def test_C_042_jumbograms_are_taken(t):
    """Jumbograms of two to five members are accepted, whatever was advertised. None is sent before
    an ACK that allows them."""
    t.need_perf()
    c = t.conn()
    seq, size = 2, 14 * MEMBER
    c.data(1, 1, ask_send(size), 0)
    at = 0
    for n in (2, 3, 4, 5):
        p = c.packet(DATA, 1, seq)
        for _ in range(n - 1):
            next(c.serial)
        flags = [wire.CLIENT] * (n - 1) + [wire.CLIENT | wire.REQUEST | (LAST if n == 5 else 0)]
        wire.jumbogram(p, [wire.pattern(at + i * MEMBER, MEMBER) for i in range(n)], flags)
        c.sock.send(p.encode(), c.to)
        seq, at = seq + n, at + n * MEMBER
        if n < 5:
            until_hard(c, 1, seq)
    equal(c.next(DATA, 1).body, COOKIE, 'the reply')
    c.data(2, 1, ask_receive(60000))
    c.ack(2, 1, wire.DELAY, trailer=[1444, 1444, 8, 1])
    c.next(DATA, 2, seq=1)
    c.sock.drain(0.2)
    equal([str(p) for p in c.sock.packets if p.type == DATA and p.flags & JUMBO], [], 'jumbograms')
    c.abort(-6, 2)


@test(43)
def test_C_043_truncated_jumbograms(t):
    """A truncated jumbogram: no read beyond its end, complete members are kept."""
    t.need_perf()
    c = t.conn()
    open_request(t, c, packets=(2 * MEMBER) // 4)
    until_hard(c, 1, 2)
    for body in (b'', b'x', bytes(1411), bytes(1412), bytes(1415)):
        c.data(1, 3, body, JUMBO)
    p = c.packet(DATA, 1, 2, flags=JUMBO)
    p.body = wire.pattern(0, MEMBER) + b'\x20\0\0\0' + b'short'
    c.sock.send(p.encode(), c.to)
    c.fence()
    c.data(1, 3, wire.pattern(MEMBER, MEMBER))
    p = c.next(match=lambda q: q.type == DATA or q.code is not None)
    # The truncated tail may have been accepted. Then the bytes are wrong, and the test reports it.
    want(p.body == COOKIE or p.code in (-1, -5), 'the answer is %s' % p)
    t.served(c, 2)
    if t.ours:
        equal(p.body, COOKIE, 'the reply')
