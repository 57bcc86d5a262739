# SPDX-License-Identifier: BSD-2-Clause
"""Calls, their numbers and their ends: C-013 to C-025 and C-036, with a server under test."""

import struct

import wire
from harness import (ABORT_BEHIND, ABORT_WITH, COOKIE, COUNT, ECHO, NOTHING, ask, ask_receive,
                     ask_send, test)
from peer import equal, want
from wire import ABORT, ACK, ACKALL, BUSY, DATA, LAST


def work_begins(t, c, call=1):
    """A call whose handler has the words of its request and waits for the data that they
    announce."""
    t.need_perf()
    c.data(call, 1, ask_send(8), 0)
    # A hard acknowledgement: the handler has read the data.
    c.next(ACK, call, match=lambda p: p.ack.first == 2)


def repeated(c, call, seq=1, channel=None, count=2):
    """Waits for `n` copies of a DATA packet."""
    for _ in range(count):
        c.next(DATA, call, seq=seq, channel=channel)


@test(13)
def test_C_013_lower_call_numbers(t):
    """A packet of an earlier call of the channel is dropped."""
    c = t.conn()
    t.served(c, 5)
    c.sock.drain()
    c.data(4, 1, t.request())
    c.ping(3)
    c.abort(-1, 2)
    equal([str(p) for p in c.fence(5)], [], 'what came for call 4 and below')
    t.served(c, 6)


@test(13, harm=True)
def test_C_013_busy_while_a_handler_works(t):
    """DATA of a higher call while a handler runs: BUSY for the new call, and the old one is
    aborted."""
    c = t.conn()
    work_begins(t, c)
    c.data(2, 1, t.request())
    p = c.next(BUSY)
    equal((p.call, p.body), (2, b''), 'the refused call')
    for _ in range(100):
        c.data(2, 1, t.request())
        p = c.next(match=lambda q: q.type in (BUSY, DATA) and q.call == 2)
        if p.type == DATA:
            break
    equal(p.type, DATA, 'what a retry gets in the end')


@test(13)
def test_C_013_a_jump_acknowledges(t):
    """DATA of a much higher call while a reply waits for its ACK: served at once."""
    c = t.conn()
    t.served(c, 2)
    t.served(c, 10)
    c.sock.drain()
    c.data(2, 1, t.request())
    equal([str(p) for p in c.fence(10)], [], 'what came for the old call')


@test(13, harm=True)
def test_C_013_other_types_begin_nothing(t):
    """A packet of a higher call other than DATA is dropped. The current call continues."""
    c = t.conn()
    work_begins(t, c)
    c.ping(2)
    c.send(ACKALL, 3, 0)
    c.abort(-1, 4)
    c.send(wire.PARAMS, 5, 0)
    c.data(1, 2, wire.pattern(0, 8))
    p = c.next(DATA, 1)
    equal(p.body, COOKIE, 'the reply')
    equal([str(q) for q in c.sock.packets if q.call > 1], [], 'packets for higher calls')


@test(14, slow=5)
def test_C_014_the_next_call_acknowledges(t):
    """DATA of the next call acknowledges the old reply. Otherwise the reply is retransmitted."""
    t.need_perf()
    control, c = t.proven(), t.conn()
    t.served(control, 2)
    t.served(c)
    t.served(c, 2)
    c.ack(2, 2)
    repeated(control, 2, count=1)
    c.sock.drain(0.2)
    equal(len([p for p in c.sock.packets if p.type == DATA and p.call == 1]), 1, 'copies of the reply')


@test(15, harm=True)
def test_C_015_busy_is_a_header(t):
    """BUSY is 28 bytes and carries the number of the refused call on its channel."""
    c = t.conn()
    t.need_perf()
    c.data(7, 1, ask_send(8), 0, channel=3)
    c.next(ACK, 7, match=lambda p: p.ack.first == 2)
    refused = 9 if t.ours else 8    # OpenAFS's library sends 8 for any higher number
    c.data(refused, 1, t.request(), channel=3)
    p = c.next(BUSY)
    equal((p.size, p.call, p.channel, p.seq, p.flags), (28, refused, 3, 0, 0), 'BUSY')


@test(17)
def test_C_017_codes(t):
    """ABORT carries a code of four bytes, not 0."""
    c = t.conn()
    c.data(1, 1, b'')
    p = c.next(ABORT, 1)
    equal(p.size, 32, 'its size')
    want(p.code != 0, 'its code is 0')
    if t.ours:
        for i, code in enumerate((-1, 1, 4711, -(1 << 31), (1 << 31) - 1)):
            c.data(2 + i, 1, ask(ABORT_WITH, code))
            equal(c.next(ABORT, 2 + i).code, code, 'the code')


@test(17)
def test_C_017_codes_received(t):
    """An ABORT of 0 to 3 bytes is ignored. In a longer one the first four count."""
    c = t.conn()
    t.need_perf()
    c.data(1, 1, ask_send(8), 0)
    for size in range(4):
        c.send(ABORT, 1, 0, bytes(size))
    c.data(1, 2, wire.pattern(0, 8))
    equal(c.next(DATA, 1).body, COOKIE, 'the reply')
    c.data(2, 1, ask_send(8), 0)
    c.send(ABORT, 2, 0, struct.pack('>i', 77) + b'more')
    c.data(2, 2, wire.pattern(0, 8))
    equal(c.next(ABORT, 2).code, 77, 'what later DATA draws')


@test(18)
def test_C_018_connection_abort(t):
    """ABORT with call number 0 ends all calls. Later packets of the connection draw the same
    code."""
    c = t.conn()
    t.need_perf()
    c.data(1, 1, ask_send(8), 0)
    c.data(1, 1, ask_send(8), 0, channel=1)
    c.abort(4711, 0)
    c.data(1, 2, wire.pattern(0, 8))
    p = c.next(ABORT)
    equal((p.call, p.code, p.channel), (0, 4711, 0), 'the answer to DATA of an old call')
    c.sock.drain(0.25)
    c.data(9, 1, t.request(), channel=2)
    p = c.next(ABORT)
    equal((p.call, p.code), (0, 4711), 'the answer to a new call')
    c.sock.drain(0.25)
    c.abort(-1, 0)
    c.abort(-1, 1)
    other = t.conn(sock=c.sock)
    t.served(other)
    equal([str(q) for q in c.sock.waiting if c.mine(q)], [], 'what ABORTs drew')


@test(19)
def test_C_019_failures(t):
    """A result other than 0 is sent as an ABORT with that code, without DATA."""
    c = t.conn()
    t.need_perf()
    c.data(1, 1, ask(77, 5))
    equal(c.next(ABORT, 1).code, -1, 'the code')
    if t.ours:
        c.data(2, 1, ask(ABORT_BEHIND, 4712, 100))
        equal(c.next(ABORT, 2).code, 4712, 'the code after output')
    t.served(c, 3)
    equal([str(p) for p in c.sock.packets if p.type == DATA and p.call < 3], [], 'output of failed calls')


@test(20)
def test_C_020_success(t):
    """A result of 0 sends at least one DATA packet, and the last one has LAST_PACKET."""
    c = t.conn()
    if t.ours:
        c.data(1, 1, ask(NOTHING))
        p = c.next(DATA, 1)
        equal((p.seq, p.body, p.flags & LAST), (1, b'', LAST), 'an empty reply')
    t.need_perf()
    c.data(2, 1, ask_send(0))
    p = c.next(DATA, 2)
    equal((p.seq, p.body, p.flags & LAST), (1, COOKIE, LAST), 'a short reply')


@test(22)
def test_C_022_duplicates(t):
    """A repeated request draws an ACK DUPLICATE beyond it, and is not served again."""
    t.need_perf()
    c = t.conn()
    if t.ours:
        c.data(1, 1, ask(COUNT))
        count = c.next(DATA, 1).body
    else:
        t.served(c)
    for _ in range(3):
        p = c.data(1, 1, ask(COUNT) if t.ours else t.request())
        a = c.next(ACK, 1, wire.DUPLICATE).ack
        equal((a.first, a.serial, a.entries), (2, p.serial, b''), 'firstPacket, serial, entries')
    if t.ours:
        c.data(2, 1, ask(COUNT))
        before, now = struct.unpack('>II', count + c.next(DATA, 2).body)
        equal(now, before + 1, 'calls that were served')


@test(23)
def test_C_023_ping_for_a_finished_call(t):
    """A PING for a finished and acknowledged call draws a PING_RESPONSE."""
    t.need_perf()
    c = t.conn()
    p = t.served(c)
    if p.type == DATA:
        c.ack(1, 2, serial=p.serial)
    serial = c.ping(1, 2 if p.type == DATA else 1).serial
    equal(c.next(ACK, 1, wire.PING_RESPONSE).ack.serial, serial, 'its serial')


@test(25)
def test_C_025_beyond_the_last(t):
    """DATA beyond LAST_PACKET ends the call with -5 or is dropped. Its bytes are never
    delivered."""
    t.need_ours('needs a service that returns what it got')
    c = t.conn()
    c.data(1, 2, b'tail')
    c.data(1, 3, b'never', 0)
    c.data(1, 1, ask(ECHO), 0)
    p = c.next(match=lambda q: q.type in (DATA, ABORT))
    want(p.code == -5 or p.body == b'tail', 'the answer is %s, %s' % (p, p.body))
    c.data(2, 2, b'tail')
    c.data(2, 3, b'never', LAST)
    c.data(2, 1, ask(ECHO), 0)
    p = c.next(call=2, match=lambda q: q.type in (DATA, ABORT))
    want(p.code == -5 or p.body == b'tail', 'the answer is %s, %s' % (p, p.body))
    c.data(3, 3, b'tail')
    c.data(3, 2, b'two', LAST)
    c.data(3, 1, ask(ECHO), 0)
    p = c.next(call=3, match=lambda q: q.type in (DATA, ABORT))
    equal(p.code, -5, 'the code for two ends')


@test(25)
def test_C_025_an_end_without_its_flag(t):
    """A copy of the last packet without LAST_PACKET does not move the end."""
    t.need_perf()
    c = t.conn()
    c.data(1, 2, wire.pattern(0, 8))
    c.data(1, 2, wire.pattern(0, 8), 0)
    c.data(1, 1, ask_send(8), 0)
    p = c.next(match=lambda q: q.type in (DATA, ABORT))
    want(p.code == -5 or p.body == COOKIE, 'the answer is %s' % p)
    t.served(c, 2)


@test(36, slow=5)
def test_C_036_how_a_reply_ends(t):
    """After a soft ACK of all packets, ACKALL or a hard ACK the reply is not retransmitted.
    Otherwise it is."""
    t.need_perf()
    control, soft, hard, all_of_it = [t.proven()] + [t.conn() for _ in range(3)]
    for c in (soft, hard, all_of_it):
        t.served(c)
    t.served(control, 2)
    soft.ack(1, 1, wire.REQUESTED, entries=b'\1', serial=1)
    hard.ack(1, 2)
    all_of_it.send(ACKALL, 1)
    repeated(control, 2, count=1)
    for what, c in (('soft', soft), ('hard', hard), ('ACKALL', all_of_it)):
        c.sock.drain(0.1)
        equal(len([p for p in c.sock.packets if p.type == DATA]), 1, 'copies after ' + what)


@test(36)
def test_C_036_soft_for_a_part_is_not_enough(t):
    """After a soft ACK of part of the reply the rest is retransmitted."""
    t.need_perf()
    c = t.proven()
    c.data(2, 1, ask_receive(4000))
    got = {}
    while not any(p.flags & LAST for p in got.values()):
        p = c.next(DATA, 2)
        got[p.seq] = p
        if len(got) < 2:
            c.ack(2, 1, wire.REQUESTED, entries=b'\1', serial=p.serial)
    last = max(got)
    c.ack(2, 1, wire.DELAY, entries=b'\1' * (last - 1))
    c.next(DATA, 2, seq=last)
    c.ack(2, last + 1)
