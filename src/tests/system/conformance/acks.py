# SPDX-License-Identifier: BSD-2-Clause
"""Acknowledgements, sent and received: C-026 to C-034 and C-044, with a server under test."""


import wire
from harness import (COOKIE, ask_receive, ask_send, test)
from peer import Failed, equal, want
from wire import ABORT, ACK, DATA, LAST, REQUEST, Ack

# Packets of this payload size keep the numbers small.
SIZE = 4


def open_request(t, c, call=1, packets=64):
    """The words of a request whose data, `packets` of SIZE bytes, follow later."""
    t.need_perf()
    c.data(call, 1, ask_send(packets * SIZE), 0)


def send_data(c, call, seq, packets=64, flags=0, **fields):
    """Packet `seq` (2..packets + 1) of such a request."""
    body = wire.pattern((seq - 2) * SIZE, SIZE)
    return c.data(call, seq, body, flags | (LAST if seq == packets + 1 else 0), **fields)


def until_hard(c, call, first):
    """Waits until all packets below `first` are hard-acknowledged."""
    return c.next(ACK, call, match=lambda p: p.ack.first >= first)


class Reader:
    """Receives a long reply packet by packet and sends the ACKs that the test asks for."""

    def __init__(self, t, packets=400, call=2, **fields):
        t.need_perf()
        self.c = t.proven(**fields)
        self.call, self.got, self.said = call, {}, (1, {})
        self.size = packets * 1000
        self.c.data(call, 1, ask_receive(self.size))
        self.gather(1)

    def take(self, limit=None):
        p = self.c.next(DATA, self.call, limit=limit)
        for seq, serial, flags, spare, body in p.members():
            self.got.setdefault(seq, (flags, body))
        return p

    def gather(self, last):
        """Waits for all packets up to seq `last`."""
        while not all(s in self.got for s in range(1, last + 1)):
            self.latest = self.take()
        return self.latest

    @property
    def top(self):
        return max(self.got)

    def settle(self, quiet=0.15):
        """Collects the packets in flight: all sent before the server processed our latest ACK
        (repeated with REQUEST_ACK, it is answered), and those that follow soon."""
        first, fields = self.said
        asked = self.c.ack(self.call, first, wire.PING, **fields).serial
        self.c.next(ACK, self.call, wire.PING_RESPONSE, match=lambda p: p.ack.serial == asked)
        try:
            while True:
                self.latest = self.take(quiet)
        except Failed:
            pass
        return self.top

    def ack(self, first, reason=wire.DELAY, **fields):
        fields.setdefault('serial', 0)
        if not fields.get('header'):
            self.said = first, {k: v for k, v in fields.items() if k in ('entries', 'trailer')}
        self.c.ack(self.call, first, reason, **fields)

    def finish(self):
        """Receives the rest and compares it."""
        while not any(flags & LAST for flags, _ in self.got.values()):
            self.latest = self.take()
            edge = next(s for s in range(1, self.top + 2) if s not in self.got)
            entries = bytes(s in self.got for s in range(edge, self.top + 1))
            self.ack(edge, wire.OUT_OF_SEQUENCE if entries else wire.IDLE, entries=entries[:255],
                     serial=self.latest.serial)
        last = next(s for s, (flags, _) in self.got.items() if flags & LAST)
        if all(s in self.got for s in range(1, last + 1)):
            self.ack(last + 1)
            stream = b''.join(self.got[s][1] for s in range(1, last + 1))
            equal(len(stream), self.size + 4, 'bytes of the reply')
            equal(stream[-4:], COOKIE, 'its end')
        else:
            raise Failed('packets are missing')


@test(26)
def test_C_026_layout(t):
    """An ACK has three bytes of padding, zero but for an offer of wide windows, then four words: 65
    bytes plus one per entry."""
    c = t.conn()
    open_request(t, c)
    for seq in (3, 5, 6, 9):
        p = send_data(c, 1, seq)
    a = c.next(ACK, 1, match=lambda q: q.ack.serial == p.serial)
    equal(a.ack.entries, b'\0\1\0\1\1\0\0\1', 'entries') if a.ack.first == 2 else \
        equal(a.ack.entries, b'\1\0\1\0\1\1\0\0\1', 'entries')
    equal(a.size, 65 + len(a.ack.entries), 'its size')
    equal((a.ack.padding, a.ack.tail, a.ack.space, len(a.ack.trailer)), (wire.padding(a), b'', 0, 4), 'layout')
    equal((a.flags & ~wire.EXTENDED, a.seq), (wire.SLOW_START_OK, 0), 'flags, seq')
    largest, natural, window, jumbo = a.ack.trailer
    want(largest >= 1444 and 576 <= natural <= largest and 1 <= window <= 255 and 1 <= jumbo <= 47,
         'the trailer is %s' % a.ack.trailer)


@test(27)
def test_C_027_entries(t):
    """Entries begin at firstPacket, are 0 or 1, and fit the window. Only bit 0 of received entries
    counts."""
    c = t.conn()
    t.need_perf()
    for seq in (16, 2, 7):
        p = send_data(c, 1, seq)
        a = c.next(ACK, 1, match=lambda q: q.ack.serial == p.serial).ack
    equal((a.first, a.entries.hex()), (1, '00010000000001' + '00' * 8 + '01'), 'the answer')
    r = Reader(t)
    top = r.settle()
    while top < 3:
        r.ack(1, wire.REQUESTED, entries=b'\1' * top, serial=r.latest.serial)
        r.gather(top + 1)
        top = r.settle()
    # Bit 0 reports packet 1 as missing, although all other bits are set.
    r.c.sock.drain()
    r.ack(1, wire.OUT_OF_SEQUENCE, entries=b'\xfe' + b'\xff' * (top - 1), serial=r.latest.serial)
    r.c.next(DATA, r.call, seq=1)
    r.finish()


@test(28)
def test_C_028_short_ones(t):
    """An ACK shorter than its entries is ignored."""
    r = Reader(t)
    top = r.settle()
    r.c.sock.drain()
    whole = Ack(first=top + 1, reason=wire.DELAY, serial=r.latest.serial).encode()
    for size in (0, 1, 17):
        r.c.send(ACK, r.call, 0, whole[:size], wire.SLOW_START_OK)
    r.c.send(ACK, r.call, 0, Ack(first=top + 1, count=255, serial=r.latest.serial).encode(),
             wire.SLOW_START_OK)
    r.c.send(ACK, r.call, 0, Ack(first=1, entries=b'\1' * 10, count=60, trailer=[]).encode(),
             wire.SLOW_START_OK)
    # Packets in flight may still arrive, within the first window.
    known = 16 if t.ours else top + 1
    new = [p for p in r.c.fence(r.call) if p.type == DATA and p.seq > known]
    equal([str(p) for p in new], [], 'what the short ones opened')
    r.finish()


@test(28)
def test_C_028_trailers_by_their_length(t):
    """A trailer of three words may only shrink the window, one of four sets it, shorter ones are
    ignored."""
    r = Reader(t)
    top = r.settle()
    want(top <= 16, '%d packets before the first window was known' % top)
    r.ack(top + 1, trailer=[1444, 1444, 3])
    r.gather(top + (3 if t.ours else 1))
    edge = r.settle()
    want(edge <= top + 3, 'window 3 by three words: %d packets' % (edge - top))
    r.ack(edge + 1, trailer=[1444, 1444, 2, 1])
    r.gather(edge + 2)
    top, edge = edge, r.settle()
    want(edge <= top + 2, 'window 2 by four words: %d packets' % (edge - top))
    for words in ([], [1444], [1444, 1444]):
        r.ack(edge + 1, trailer=words)
        r.gather(edge + 1)
        top, edge = edge, r.settle()
        want(edge <= top + 16, 'with %d words: %d packets' % (len(words), edge - top))
    r.finish()


@test(29)
def test_C_029_clamps(t):
    """Extreme trailers: a window of 0 counts as 1, one of 2^32 - 1 as at most 255, and packet sizes
    stay within the usual range."""
    r = Reader(t, 600)
    r.settle()
    r.ack(r.top + 1, trailer=[0, 0, 0, 0])
    top = r.top
    r.gather(top + 1)
    edge = r.settle()
    equal(edge, top + 1, 'the last packet with a window of 0')
    largest = 0xffffffff
    for _ in range(12):
        r.ack(edge + 1, trailer=[largest] * 4, serial=r.latest.serial)
        top, edge = edge, r.settle(0.05)
        want(edge <= top + 255, '%d packets at once' % (edge - top))
        if any(flags & LAST for flags, _ in r.got.values()):
            break
    r.finish()
    sizes = [p.size for p in r.c.sock.packets if p.type == DATA and not p.flags & LAST]
    full = [s for s in sizes if s >= 520]
    want(max(sizes) <= 16384 and 2 * len(full) > len(sizes), 'sizes are %s' % sorted(set(sizes)))


@test(30)
def test_C_030_stale_ones(t):
    """A lower firstPacket changes nothing. An older ACK of the same firstPacket retracts
    nothing."""
    r = Reader(t)
    r.settle()
    top = r.top
    r.ack(top + 1)
    r.gather(top + 1)
    edge = r.settle()
    r.c.sock.drain()
    # Its window would stop all sending.
    r.ack(top, trailer=[1444, 1444, 1, 1])
    r.ack(edge + 1)
    r.gather(edge + 2)
    edge = r.settle()
    old = next(r.c.serial)
    r.ack(edge - 1, entries=b'\1', serial=r.latest.serial)
    r.ack(edge - 1, entries=b'\0', header={'serial': old}, trailer=[1444, 1444, 1, 1])
    r.ack(edge + 1)
    r.gather(edge + 2)
    r.finish()


@test(30, harm=True)
def test_C_030_for_what_was_never_sent(t):
    """firstPacket beyond the sent packets ends the call with -5."""
    r = Reader(t)
    r.settle()
    r.ack(r.top + 1000, serial=r.latest.serial)
    equal(r.c.next(ABORT, r.call).code, -5, 'the code')


@test(31)
def test_C_031_questions_are_answered_once(t):
    """Each ACK with REQUEST_ACK draws one PING_RESPONSE with its serial, without REQUEST_ACK."""
    c = t.conn()
    open_request(t, c)
    until_hard(c, 1, 2)
    asked = []
    for reason in (wire.PING, wire.DELAY, wire.REQUESTED, wire.IDLE, wire.PING_RESPONSE, wire.DUPLICATE):
        asked.append(c.ack(1, 1, reason, flags=REQUEST).serial)
        c.next(ACK, 1, wire.PING_RESPONSE, match=lambda p: p.ack.serial == asked[-1])
    c.fence()
    answers = [p for p in c.sock.packets if p.reason == wire.PING_RESPONSE]
    equal([p.ack.serial for p in answers][:len(asked)], asked, 'serials answered')
    equal(len(answers), len(asked) + 1, 'answers')
    equal([str(p) for p in answers if p.flags & REQUEST], [], 'answers that ask')


@test(31)
def test_C_031_without_the_flag(t):
    """A PING without the flag is answered, too (3.3)."""
    c = t.conn()
    open_request(t, c)
    until_hard(c, 1, 2)
    p = c.send(ACK, 1, 0, Ack(reason=wire.PING).encode(), wire.SLOW_START_OK)
    c.next(ACK, 1, wire.PING_RESPONSE, match=lambda q: q.ack.serial == p.serial)


@test(32)
def test_C_032_serials(t):
    """An ACK names the serial of the packet that it answers, or 0 if a timer sent it."""
    c = t.conn()
    open_request(t, c)
    a = until_hard(c, 1, 2)
    # A PING of a slow server acknowledges as well, and answers nothing.
    want(a.ack.serial == 0 and a.reason in (wire.DELAY, wire.IDLE, wire.PING) or a.ack.serial == c.last_serial,
         'after one packet: %s' % a)
    for reason, seq, flags in ((wire.REQUESTED, 2, REQUEST), (wire.OUT_OF_SEQUENCE, 4, 0),
                               (wire.DUPLICATE, 4, 0), (wire.EXCEEDS_WINDOW, 900, 0)):
        p = send_data(c, 1, seq, flags=flags, serial=1000 + 7 * reason)
        a = c.next(ACK, 1, reason)
        equal(a.ack.serial, p.serial, 'serial of an ACK of reason %d' % reason)


@test(33)
def test_C_033_when_to_acknowledge(t):
    """Sent at once: ACKs for REQUEST_ACK, a gap, a filled gap, a duplicate, window excess and a
    second packet. A single packet is acknowledged by timer."""
    c = t.conn()
    open_request(t, c)
    until_hard(c, 1, 2)
    send_data(c, 1, 2, flags=REQUEST)
    c.next(ACK, 1, wire.REQUESTED)
    send_data(c, 1, 4)
    equal(c.next(ACK, 1, wire.OUT_OF_SEQUENCE).ack.entries[-2:], b'\0\1', 'the gap')
    send_data(c, 1, 4)
    c.next(ACK, 1, wire.DUPLICATE)
    send_data(c, 1, 900)
    c.next(ACK, 1, wire.EXCEEDS_WINDOW)
    c.sock.drain()
    send_data(c, 1, 3)
    until_hard(c, 1, 5)
    send_data(c, 1, 5)
    send_data(c, 1, 6)
    c.next(ACK, 1, match=lambda p: p.ack.first + len(p.ack.entries) > 6)
    send_data(c, 1, 7)
    until_hard(c, 1, 8)


@test(33)
def test_C_033_consumed_packets(t):
    """While the application reads, a hard ACK is sent after at most eight packets."""
    c = t.conn()
    open_request(t, c)
    for last in range(9, 66, 8):
        for seq in range(last - 7, last + 1):
            send_data(c, 1, seq)
        if last < 65:
            until_hard(c, 1, last - 7)
    equal(c.next(DATA, 1).body, COOKIE, 'the reply')


@test(34)
def test_C_034_one_ack_for_a_jumbogram(t):
    """A jumbogram draws one ACK, with the serial of its last member (after the first 128
    packets)."""
    t.need_perf()
    c = t.conn()
    size = 200 * SIZE + 4 * wire.MEMBER
    c.data(1, 1, ask_send(size), 0)
    for seq in range(2, 202):
        c.data(1, seq, wire.pattern((seq - 2) * SIZE, SIZE), REQUEST if seq % 8 == 0 else 0)
        if seq % 8 == 0:
            until_hard(c, 1, seq - 7)
    c.fence()
    c.sock.drain(0.3)
    until = c.ping().serial
    c.next(ACK, 1, wire.PING_RESPONSE, match=lambda p: p.ack.serial == until)
    p = c.packet(DATA, 1, 202)
    for _ in range(3):
        next(c.serial)
    payloads = [wire.pattern(200 * SIZE + i * wire.MEMBER, wire.MEMBER) for i in range(4)]
    wire.jumbogram(p, payloads, [wire.CLIENT] * 3 + [wire.CLIENT | LAST])
    c.sock.send(p.encode(), c.to)
    equal(c.next(DATA, 1).body, COOKIE, 'the reply')
    c.fence(first=2)
    acks = [q for q in c.sock.packets if q.type == ACK and p.serial <= q.ack.serial <= p.serial + 3]
    want(len(acks) <= 1, '%d ACKs' % len(acks))
    want(not acks or acks[0].ack.serial == p.serial + 3, 'the serial of another member')


@test(44)
def test_C_044_padded_ones(t):
    """A padded ACK of any size is accepted. The answer has the usual size."""
    c = t.conn()
    open_request(t, c)
    until_hard(c, 1, 2)
    for size in (1, 100, 1379, 1500, 5000) + ((16000,) if t.ours else ()):
        serial = c.ping(1, 1, tail=bytes(size)).serial
        a = c.next(ACK, 1, wire.PING_RESPONSE, match=lambda p: p.ack.serial == serial)
        want(a.size <= 65 + len(a.ack.entries), '%d bytes answer %d' % (a.size, size + 65))
    c.data(1, 2, wire.pattern(0, 64 * SIZE))
    equal(c.next(DATA, 1).body, COOKIE, 'the reply')
