# SPDX-License-Identifier: BSD-2-Clause
"""Timers, classes, DEBUG, the RPC layer, unvalidated peers and random input: C-045 to C-064, with a
server under test."""

import os
import random
import re
import struct
import time

import wire
from harness import COOKIE, ask_receive, ask_rpc, ask_send, test
from peer import LIMIT, Failed, Skipped, equal, want
from wire import ABORT, ACK, BUSY, CHALLENGE, CLIENT, DATA, DEBUG, LAST, REQUEST, RESPONSE, VERSION

ACTIVE = 2
SEALED = 0x5ea1     # `spare` of the class of the endpoint under test, index 252


def insist(t, c):
    """A call is finally served. Its request may be dropped without an answer while a flood takes
    each free slot, so it is retransmitted as by a client."""
    until = time.monotonic() + LIMIT
    p = None
    while p is None:
        c.data(1, 1, t.request())
        try:
            p = c.next(DATA, 1, limit=0.2)
        except Failed:
            if time.monotonic() > until:
                raise
    t.whole(p)


def ask_debug(sock, address, kind, index=0, flags=CLIENT | wire.LAST, limit=3.0):
    """The reply to one DEBUG request, repeated in case it was dropped. None: no answer."""
    for number in range(1, 4):
        p = wire.Packet(999, 0, random.getrandbits(31), 0, 0, DEBUG, flags,
                        body=struct.pack('>ii', kind, index))
        sock.send(p.encode(), address)
        try:
            return p, sock.next(lambda q: q.type == DEBUG and q.call == p.call, limit)
        except Failed:
            pass
    return None, None


def call_state(sock, address, cid, channel=0):
    """The state of a call according to DEBUG (2.6), or None if there is no such connection."""
    for i in range(1000):
        _, p = ask_debug(sock, address, 3, i)
        if p is None:
            raise Skipped('DEBUG is not answered')
        if p.body[4:8] == b'\xff' * 4:
            return None
        if p.body[4:8] == struct.pack('>I', cid):
            return p.body[40 + channel]
    return None


def sealed(c, call, seq, body, flags=LAST, **fields):
    """DATA of the class that the endpoint under test offers as service 148."""
    fields.setdefault('spare', SEALED)
    return c.data(call, seq, body + b'seal', flags, **fields)


def classed(t, server=None):
    """A connection to the service with CHALLENGEs."""
    t.need_ours('needs a service with the class of our tests')
    return t.conn(server, service=148, security=252)


def authenticated(t, server=None):
    c = classed(t, server)
    sealed(c, 1, 1, ask_rpc(4, 4))
    p = c.next(CHALLENGE)
    c.send(RESPONSE, 0, 0, p.body)
    equal(c.next(DATA, 1).body[-8:], COOKIE + b'seal', 'the reply')
    return c


@test(45, slow=25)
def test_C_045_a_silent_client(t):
    """A client that falls silent in mid-request is sent PINGs. Its call ends after the dead
    time."""
    t.need_perf()
    server = t.own(dead_ms=4000, listeners=1)
    c = t.proven(server)
    c.data(2, 1, ask_send(8), 0)
    for _ in range(3 if t.ours else 1):
        p = c.next(ACK, 2, wire.PING)
        c.ack(2, 1, wire.PING_RESPONSE, serial=p.serial)
    c.next(ACK, 2, wire.PING)
    until = time.monotonic() + 30
    while call_state(c.sock, c.to, c.cid) == ACTIVE:
        want(time.monotonic() < until, 'the call lives on')
        time.sleep(0.1)
    equal([str(p) for p in c.sock.packets if p.type == ABORT], [], 'ABORTs')


@test(46, slow=5)
def test_C_046_an_idle_request(t):
    """A client that answers PINGs and sends no data: -3 after the idle time."""
    server = t.server(dead_ms=3000, server_idle_ms=3000, listeners=1)
    c = t.proven(server)
    c.data(2, 1, ask_send(8), 0)
    while True:
        p = c.next(call=2, match=lambda q: q.type == ABORT or q.reason == wire.PING)
        if p.type == ABORT:
            break
        c.ack(2, 1, wire.PING_RESPONSE, serial=p.serial)
    equal(p.code, -3, 'the code')


@test(48, slow=3)
def test_C_048_challenges(t):
    """A CHALLENGE is sent if a class needs one and DATA waits, and twice more with the same
    nonce."""
    c = classed(t)
    began = time.time()
    sealed(c, 1, 1, ask_rpc(400, 4))    # large enough for the CHALLENGEs and an ACK
    first = c.next(CHALLENGE)
    equal((first.call, first.seq, first.cid, first.flags), (0, 0, c.cid, 0), 'its header')
    again = [c.next(CHALLENGE) for _ in range(2)]
    equal([p.body for p in again], [first.body] * 2, 'the nonces of the others')
    want(again[1].at - began >= 1.25, 'the third came after %.3f s' % (again[1].at - began))
    sealed(c, 1, 1, ask_rpc(400, 4))
    equal([str(p) for p in c.sock.packets if p.type == DATA], [], 'DATA before the answer')
    c.send(RESPONSE, 0, 0, first.body)
    p = c.next(DATA, 1)
    equal((p.body[-8:], p.security), (COOKIE + b'seal', 252), 'the reply')
    sealed(c, 2, 1, ask_rpc(4, 4))
    c.next(DATA, 2)
    plain = t.conn(sock=c.sock)
    t.served(plain)
    equal([str(p) for p in c.sock.packets if p.type == CHALLENGE and
           (plain.mine(p) or p.at > c.sock.packets[-1].at)], [], 'CHALLENGEs to nobody')


@test(49)
def test_C_049_unasked_responses(t):
    """A RESPONSE without a CHALLENGE is ignored on any connection."""
    c = t.conn()
    for body in (b'', bytes(16), bytes(60), b'\xff' * 500):
        c.send(RESPONSE, 0, 0, body)
        c.send(RESPONSE, 0, 0, body, security=2)
    t.served(c)
    c.send(RESPONSE, 0, 0, bytes(60))
    t.served(c, 2)
    equal([str(p) for p in c.sock.packets if p.type == ABORT and p.code != -454], [], 'ABORTs')
    if t.ours:
        c = authenticated(t)
        c.send(RESPONSE, 0, 0, b'wrong')
        sealed(c, 2, 1, ask_rpc(4, 4))
        c.next(DATA, 2)
        equal([str(p) for p in c.sock.packets if p.type == ABORT], [], 'ABORTs after the right one')


@test(50)
def test_C_050_challenge_to_a_server(t):
    """A server ignores CHALLENGE and BUSY."""
    c = t.conn()
    t.served(c)
    c.send(CHALLENGE, 0, 0, bytes(16))
    if t.ours:
        c.send(CHALLENGE, 1, 0, bytes(16))
    c.send(BUSY, 1)
    equal([str(p) for p in c.fence() if p.type in (RESPONSE, ABORT)], [], 'what came')
    t.served(c, 2)


@test(56)
def test_C_056_comparisons(t):
    """Comparisons of secrets: nonces, checksums and MICs are compared in constant time. Since this
    is not observable from outside, the test checks the sources."""
    t.need_ours('a look at our sources')
    rx = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'rx')
    looked, careful = 0, 0
    for name in ('rxkad/rxkad_exchange.c', 'rxkad/rxkad_packet.c', 'rxkad/derive.c',
                 'rxgk/rxgk_exchange.c', 'rxgk/rxgk_packet.c', 'rxgk/crypto.c'):
        with open(os.path.join(rx, name)) as f:
            text = f.read()
        looked += 1
        careful += text.count('CRYPTO_memcmp(')
        equal(re.findall(r'(?<![A-Za-z_])(?:memcmp|bcmp|strcmp|strncmp)\(.*', text), [], name)
    want(looked == 6 and careful >= 7, 'only %d comparisons in %d files' % (careful, looked))


@test(57)
def test_C_057_forged_data(t):
    """DATA that fails verification is dropped silently. The genuine packet is then accepted."""
    c = authenticated(t)
    c.data(2, 1, ask_rpc(4, 4) + b'seal', LAST | REQUEST, spare=1)
    c.data(2, 1, ask_rpc(4, 4), LAST | REQUEST, spare=SEALED)
    c.data(2, 1, b'', LAST | REQUEST, spare=SEALED)
    sealed(c, 2, 1, ask_rpc(4, 4))
    c.next(DATA, 2)
    equal([str(p) for p in c.sock.packets if p.type == ABORT or p.call == 2 and p.reason in
           (wire.REQUESTED, wire.DUPLICATE)], [], 'what forged packets drew')


@test(57, slow=3)
def test_C_057_a_wrong_response(t):
    """A wrong RESPONSE ends the connection one second later, by an ABORT with the class's code."""
    c = classed(t)
    sealed(c, 1, 1, ask_rpc(4, 4))
    p = c.next(CHALLENGE)
    began = time.time()
    c.send(RESPONSE, 0, 0, bytes([p.body[0] ^ 1]) + p.body[1:])
    p = c.next(ABORT)
    equal((p.call, p.code, p.size), (0, 4712, 32), 'the ABORT')
    want(p.at - began >= 0.999, 'the ABORT came after %.3f s' % (p.at - began))
    equal([str(q) for q in c.sock.packets if q.type == DATA], [], 'DATA')


@test(58)
def test_C_058_version(t):
    """VERSION is answered only with CLIENT_INITIATED, by the same header and 65 bytes of text."""
    sock = t.socket()
    for body in (b'\0', b''):
        p = wire.Packet(1, 2, 3, 4, 5, VERSION, CLIENT, 8, 7, 9, 6, body)
        sock.send(p.encode(), t.shared.address)
        a = sock.next(lambda q: q.type == VERSION, what='the answer')
        p.flags = 0
        equal(a.encode()[:28], p.encode()[:28], 'the header')
        want(1 <= len(a.body) <= 65 and a.body.rstrip(b'\0'), '%d bytes' % len(a.body))
    p.flags = wire.LAST
    sock.send(p.encode(), t.shared.address)
    c = t.conn(sock=sock)
    t.served(c)
    equal([str(q) for q in sock.packets[2:] if q.type == VERSION], [], 'answers without the flag')


@test(58)
def test_C_058_debug(t):
    """DEBUG replies: sizes by type, the header echoed, -8 for unknown types."""
    c = t.conn()
    t.served(c)
    for kind, size in ((1, 56), (2, 176), (3, 176), (4, 284), (5, 132), (77, 8), (0, 8)):
        asked, p = ask_debug(c.sock, c.to, kind)
        if p is None:
            raise Skipped('DEBUG is not answered to us')
        asked.flags &= ~CLIENT
        equal(p.encode()[:28], asked.encode()[:28], 'the header')
        equal(len(p.body), size, 'bytes of a reply of type %d' % kind)
        if size == 8:
            equal(p.body, struct.pack('>ii', -8, -8), 'the reply')
    want(ask_debug(c.sock, c.to, 1)[1].body[14:15] >= b'Q', 'the version letter')
    _, p = ask_debug(c.sock, c.to, 1, flags=wire.LAST, limit=0.3)
    equal(p, None, 'the answer without CLIENT_INITIATED')


@test(58)
def test_C_058_access(t):
    """Access control: no request is answered if inspection is off."""
    server = t.server(listeners=1, debug_clients='off')
    c = t.conn(server)
    _, p = ask_debug(c.sock, server.address, 1, limit=0.1)
    t.served(c)
    equal([str(q) for q in c.sock.packets if q.type == DEBUG], [], 'answers')


def stub_call(t, c, call, body):
    """The code of a request to service 40 (interop.xg), or 0 for a reply."""
    pieces = [body[i:i + 1400] for i in range(0, len(body), 1400)] or [b'']

    def send():
        for seq, piece in enumerate(pieces, 1):
            c.data(call, seq, piece, LAST if seq == len(pieces) else 0)

    send()
    p = t.outlive_busy(c, 0, send, lambda q: q.call == call and q.type in (ABORT, DATA))
    return p.code if p.type == ABORT else 0


@test(59)
def test_C_059_bounds_of_xdr(t):
    """Lengths beyond their bound or the data, and strings with a NUL, are refused with -453."""
    server = t.stubs()
    c = t.conn(server, service=40)
    good = struct.pack('>I4sI8s', 4, b'name', 7, b'changed\0')
    equal(stub_call(t, c, 1, struct.pack('>I', 3) + good), 0, 'a good call')
    bad = [struct.pack('>I', n) + b'x' * 80 + good
           for n in (65, 1 << 16, 0x7fffffff, 0x80000000, 0xffffffff)]
    bad += [struct.pack('>I', 60) + b'short', struct.pack('>I8s', 5, b'a\0bcd\0\0\0') + good[8:]]
    for i, body in enumerate(bad):
        equal(stub_call(t, c, 2 + i, struct.pack('>I', 3) + body), -453, 'text %d' % i)
    block = bytes(16)
    blobs = [(1001, 0), (0xfffffffc, 0), (0xffffffff, 0), (4, 41), (4, 0x20000000), (4, 0xffffffff)]
    for i, (size, points) in enumerate(blobs):
        body = (struct.pack('>II', 4, size) + bytes(4 if size == 4 else 1004) + block +
                struct.pack('>I', points))
        equal(stub_call(t, c, 20 + i, body + bytes(400)), -453, 'blob of %d, %d points' % (size, points))
    equal(stub_call(t, c, 40, struct.pack('>I', 3) + good), 0, 'a good call after that')


@test(60)
def test_C_060_opcodes(t):
    """No opcode: -454; an unknown one: -455; missing arguments: -453."""
    server = t.stubs()
    c = t.conn(server, service=40)
    cases = [(b'', -454), (b'\0\0', -454), (struct.pack('>I', 0), -455),
             (struct.pack('>I', 9999), -455),
             (struct.pack('>I', 0xffffffff), -455), (struct.pack('>I', 2), -453),
             (struct.pack('>II', 3, 4), -453), (struct.pack('>I', 1), 0)]
    for i, (body, code) in enumerate(cases):
        equal(stub_call(t, c, 1 + i, body), code, 'the code for %s' % (body.hex() or 'nothing'))


@test(61)
def test_C_061_no_stale_bytes(t):
    """In all packets that a server sends, unused fields and padding are zero."""
    c = t.conn()
    t.served(c)
    c.data(2, 3, b'gap!', spare=0xdead)
    c.data(2, 3, b'gap!', spare=0xdead)
    c.data(2, 900, b'far!', 0)
    c.ping(2, header={'spare': 0xbeef}, tail=b'\xff' * 200, padding=b'\1\2\3')
    c.next(ACK, 2, wire.PING_RESPONSE)
    c.data(3, 1, b'', spare=0xdead)
    c.next(match=lambda p: p.type in (ABORT, BUSY) and p.call == 3)
    unknown = t.conn(sock=c.sock, service=4711)
    unknown.data(1, 1, b'', spare=0xdead, status=7)
    unknown.next(ABORT)
    for p in c.sock.packets:
        equal(wire.fault(p, False), None, str(p))


@test(61)
def test_C_061_probes(t):
    """Path MTU probes are padded with zeros, up to 4,000 bytes and more."""
    server = t.server(listeners=1, path_mtu='on')
    c = t.proven(server)
    c.data(2, 1, ask_receive(1 << 30))
    first, largest = 1, 0
    while largest < 4000:
        p = c.next(call=2, match=lambda q: q.type == DATA or q.reason == wire.PING)
        if p.type == DATA:
            first += p.seq == first
        else:
            equal(p.body[21 + len(p.ack.entries) + 16:].strip(b'\0'), b'', 'bytes of a probe')
            largest = max(largest, p.size)
        c.ack(2, first, wire.REQUESTED if p.type == DATA else wire.PING_RESPONSE, serial=p.serial,
              trailer=[16384, 1444, 32, 1])
    c.abort(7, 2)


@test(62, harm=True, slow=3)
def test_C_062_bounded_state(t):
    """Connections of unvalidated peers are limited: 2,000 first packets leave at most the limit."""
    server = t.server(listeners=1, unvalidated_max=64)
    sock = t.socket()
    for i in range(2000):
        c = t.conn(server, sock)
        c.data(1, 2, b'late', 0)    # behind a hole: it gets no worker
        if i % 50 == 49:
            ask_debug(sock, server.address, 1)      # no faster than the server reads
    _, p = ask_debug(sock, server.address, 4)
    connections = struct.unpack('>71i', p.body)[56]
    # Callers of this host may take twice the limit.
    want(connections <= 2 * 64 + 8, '%d connections of a server' % connections)
    server.program.tell('memory')
    memory = int(server.program.line('memory'))
    want(memory < 64 << 20, '%d bytes of buffers' % memory)
    insist(t, t.conn(server, t.socket()))


@test(63)
def test_C_063_three_times(t):
    """An unvalidated address gets at most three times the bytes it sent, PINGs included."""
    t.need_perf()
    c = t.conn()
    c.data(1, 1, ask_receive(200000))
    sent = 28 + 48
    ping = c.next(ACK, 1, wire.PING)
    c.sock.drain(0.7)
    got = sum(28 + p.size for p in c.sock.packets)
    want(got <= 3 * sent, '%d bytes for %d' % (got, sent))
    c.ack(1, 1, wire.PING_RESPONSE, serial=ping.serial)
    c.next(DATA, 1, match=lambda p: 28 + p.size > 0 and p.seq >= 3)
    c.abort(-6)


@test(63, ours=True)
def test_C_063_the_smallest_packets(t):
    """Packets without a payload draw at most three bytes per byte: duplicates, holes, later calls,
    PINGs, ABORTs, packets without a connection."""
    c = t.conn(t.own())
    c.data(1, 1, ask_receive(100000))
    sent = 28 + len(c.packet(DATA, 1, 1, ask_receive(100000)).encode())
    c.sock.waiting.append(c.next(ACK, 1, wire.PING))
    for i in range(300):
        p = (c.packet(DATA, 1, 1, flags=LAST),
             c.packet(DATA, 1, 3 + i % 7, flags=REQUEST, channel=1),
             c.packet(DATA, i, 1, flags=LAST, channel=2),
             t.conn(sock=c.sock, service=4711).packet(DATA, 1, 1, flags=LAST),
             c.packet(ACK, 1, 0, wire.Ack(reason=wire.PING).encode(), REQUEST),
             c.packet(ABORT, 1, 0, channel=3))[i % 6]
        c.sock.send(p.encode(), c.to)
        sent += 28 + p.size
        c.sock.drain(0.3 if i == 299 else 0)
        got = sum(28 + q.size for q in c.sock.packets)
        want(got <= 3 * sent, '%d bytes for %d' % (got, sent))
    want(any(q.type == ABORT for q in c.sock.packets), 'no ABORT came')
    equal([str(q) for q in c.sock.packets if q.type == DATA], [], 'DATA')
    asked = [q for q in c.sock.packets if c.mine(q) and q.reason == wire.PING][-1]
    c.ack(1, 1, wire.PING_RESPONSE, serial=asked.serial)
    for _ in range(4):
        c.next(DATA, 1)


@test(63, slow=3)
def test_C_063_challenges(t):
    """A CHALLENGE has at most 48 bytes. One is sent per packet, plus two unsolicited ones."""
    c = classed(t)
    for _ in range(3):
        sealed(c, 1, 1, ask_rpc(4, 4))
    for _ in range(2):
        p = c.next(CHALLENGE)
        want(p.size <= 48, '%d bytes' % p.size)
    c.sock.drain(1.5)
    count = len([p for p in c.sock.packets if p.type == CHALLENGE])
    want(count <= 5, '%d CHALLENGEs for 3 packets' % count)


@test(64, harm=True, slow=4)
def test_C_064_noise(t):
    """Three thousand datagrams, random or nearly valid, during calls: no failures, no growth."""
    server = t.own()
    rng = random.Random(20260731)
    c = t.conn(server)
    t.served(c)
    noise = t.conn(server, t.socket())
    seeds = [noise.packet(DATA, 1, 1, t.request(), LAST), noise.packet(DATA, 2, 3, bytes(900), 0),
             noise.packet(ACK, 1, 0, wire.Ack(first=2, entries=b'\1\0\1').encode(), REQUEST),
             noise.packet(ABORT, 1, 0, bytes(4)), noise.packet(RESPONSE, 0, 0, bytes(80)),
             noise.packet(DATA, 3, 1, bytes(3000), wire.JUMBO),
             wire.Packet(999, 0, 1, 0, 0, DEBUG, CLIENT, body=bytes(8))]
    for i in range(3000):
        b = bytearray(rng.choice(seeds).encode())
        for _ in range(rng.choice((1, 1, 2, 5, 40))):
            b[rng.randrange(len(b))] = rng.randrange(256)
        if rng.random() < 0.2:
            b = b[:rng.randrange(len(b) + 1)]
        if rng.random() < 0.1:
            b = bytes(rng.getrandbits(8) for _ in range(rng.randrange(200)))
        noise.sock.s.sendto(bytes(b), server.address)
        if i % 100 == 99:
            t.served(c, 2 + i // 100)
            noise.sock.drain()
    if t.ours:
        server.program.tell('memory')
        memory = int(server.program.line('memory'))
        want(memory < 64 << 20, '%d bytes of buffers' % memory)
