# SPDX-License-Identifier: BSD-2-Clause
"""A client under test, with a scripted server: its packets, and its handling of the server's."""

import struct

import wire
from basics import STRAY
from harness import COOKIE, reply, test
from peer import End, equal, want
from wire import ABORT, ACK, BUSY, CHALLENGE, CLIENT, DATA, LAST, REQUEST, RESPONSE


def ends_well(client, call, size=8):
    code, got = client.result(call)
    equal(code, 0, 'the code of the call')
    want(got in (size, size - 4), '%d bytes received' % got)    # with or without the cookie


def began(t, **options):
    """A small call whose request was received and not answered."""
    listener = t.listen()
    client = t.client(listener, **options)
    call = client.rpc()
    end, first = listener.request()
    return listener, client, call, end, first


@test(1, 'client')
def test_C_001_short_datagrams_to_a_client(t):
    """Datagrams shorter than a header do not disturb a call."""
    _, client, call, end, first = began(t)
    for size in (0, 1, 20, 27):
        end.sock.send(end.packet(DATA, 1, 1, flags=LAST).encode()[:size], end.to)
    reply(end, first)
    ends_well(client, call)


@test(2, 'client')
def test_C_002_headers_of_a_client(t):
    """A client sends known flags only, and ignores unknown ones."""
    _, client, call, end, first = began(t)
    equal((first.service, first.security, first.call, first.status), (147, 0, 1, 0), 'the header')
    end.data(1, 1, wire.pattern(0, 4) + COOKIE, LAST | 0xd0)
    ends_well(client, call)
    end.next(ACK, 1)
    for p in end.sock.packets:
        equal(wire.fault(p, True), None, str(p))


@test(3, 'client')
def test_C_003_spare_at_a_client(t):
    """`spare` of the server's packets is ignored without a class."""
    _, client, call, end, first = began(t)
    end.ack(1, 2, header={'spare': 0xdead})
    end.data(1, 1, wire.pattern(0, 4) + COOKIE, LAST, spare=0xbeef)
    ends_well(client, call)


@test(4, 'client')
def test_C_004_client_initiated(t):
    """Every client packet has CLIENT_INITIATED. A reply with it is dropped."""
    _, client, call, end, first = began(t)
    p = end.packet(DATA, 1, 1, b'wrong wrong', LAST)
    p.flags |= CLIENT
    end.sock.send(p.encode(), end.to)
    reply(end, first)
    ends_well(client, call)
    end.next(ACK, 1)
    equal([str(p) for p in end.sock.packets if not p.flags & CLIENT and p.code != -2], [],
          'packets without the bit')


@test(5, 'client')
def test_C_005_serials_of_a_client(t):
    """A client's serials count 1, 2, 3 ... over all packets of the connection."""
    listener = t.listen()
    client = t.client(listener)
    call = client.send(20000)
    end, first = listener.accept()
    got, members = set(), []
    while True:
        for seq, serial, flags, _, _ in first.members():
            got.add(seq)
            last = seq if flags & LAST else None
        if last and len(got) == last:
            break
        if first.seq % 2 == 0 or first.flags & REQUEST:
            end.ack(1, max(s for s in got if set(range(1, s + 1)) <= got) + 1, wire.REQUESTED,
                    serial=first.serial)
        first = end.next(DATA, 1)
    end.data(1, 1, COOKIE)
    ends_well(client, call, 4)
    end.next(ACK, 1)
    for p in end.sock.packets:
        members += [m[1] for m in p.members()] if p.type == DATA else [p.serial]
    equal(sorted(members), list(range(1, len(members) + 1)), 'serials')


@test(6, 'client')
def test_C_006_sequence_numbers_of_a_client(t):
    """A request counts from 1; DATA with seq 0 in a reply is dropped."""
    _, client, call, end, first = began(t)
    equal(first.seq, 1, 'the first seq')
    end.data(1, 0, b'nothing of it')
    reply(end, first)
    ends_well(client, call)


@test(7, 'client')
def test_C_007_epoch_and_cid(t):
    """The epoch has bit 31 and differs between processes. A cid does not reveal the next one."""
    listener = t.listen()
    seen = []
    for _ in range(3):
        client = t.client(listener)
        cids = []
        for i in range(3 if t.ours else 1):
            if i:
                client.program.tell('connect')
            call = client.rpc()
            end, first = listener.request()
            reply(end, first)
            ends_well(client, call)
            cids.append(first.cid)
            want(first.epoch & 0x80000000, 'epoch %08x has no bit 31' % first.epoch)
            equal(first.cid & 3, 0, 'the first channel')
            equal((first.call, first.seq, first.serial, first.status), (1, 1, 1, 0), 'the first packet')
        seen.append((first.epoch, cids))
    equal(len(set(e for e, _ in seen)), 3, 'different epochs')
    steps = [(b - a) & 0xffffffff for _, c in seen for a, b in zip(c, c[1:])]
    want(not steps or len(set(steps)) > 1 and 4 not in steps, 'cids go up by %s' % steps)


@test(7, 'client')
def test_C_007_cids_of_one_process(t):
    """The cids of one process's connections cannot be predicted from each other."""
    listener = t.listen()
    client = t.client(listener)
    cids = []
    if t.ours:
        epochs = set()
        for i in range(20):
            client.program.tell('connect')
            client.rpc()
            first = listener.request()[1]
            cids.append(first.cid)
            epochs.add(first.epoch)
        equal(len(epochs), 1, 'epochs of one process')
        near = [b for a, b in zip(cids, cids[1:]) if (b - a) & 0xffffffff < 1 << 20]
        want(len(near) <= 2, '%d of 20 cids are a little above the one before' % len(near))
    else:
        client.begin('-c', 'rpc', '-S', '4', '-R', '4', '-t', '4')
        for i in range(4):
            p = listener.sock.next(lambda q: q.type == DATA and q.cid not in cids)
            cids.append(p.cid)
    steps = [(b - a) & 0xffffffff for a, b in zip(sorted(cids), sorted(cids)[1:])]
    want(set(steps) != {4}, 'cids are %s' % ['%08x' % c for c in cids])


@test(9, 'client')
def test_C_009_refused_without_state(t):
    """A stateless ABORT is accepted with serviceId 0, displaced into `spare`, or without the
    class."""
    for service, spare in ((0, 147), (0, 0), (147, 0)):
        _, client, call, end, first = began(t)
        end.abort(-2, 1, serial=None, service=service, spare=spare)
        equal(client.result(call)[0], -2, 'the code for service %d' % service)


@test(10, 'client')
def test_C_010_a_client_aborts_nothing_unknown(t):
    """Packets without a connection or call of a client draw no answer."""
    listener, client, call, end, first = began(t)
    stranger = End(listener.sock, end.to, 147, False)
    for kind, body in STRAY + [(DATA, b'data')]:
        stranger.send(kind, 1, 1 if kind == DATA else 0, body)
        end.send(kind, 7, 1 if kind == DATA else 0, body)
        if kind in (wire.CHALLENGE, wire.RESPONSE, wire.PARAMS):
            end.send(kind, 0, 0, bytes(20))
    reply(end, first)
    ends_well(client, call)
    end.next(ACK, 1)
    wrong = [p for p in listener.sock.packets if p.type not in (DATA, ACK) or p.call != 1]
    equal([str(p) for p in wrong], [], 'what came')


@test(11, 'client')
def test_C_011_unknown_types_at_a_client(t):
    """Unknown types end nothing, for the live call or none."""
    _, client, call, end, first = began(t)
    for kind in (wire.PARAMS, 10, 11, 12, 0, 14, 255):
        end.send(kind, 1, 0, b'what?')
        end.send(kind, 0, 0, b'')
    reply(end, first)
    ends_well(client, call)
    equal([str(p) for p in end.sock.packets if p.type == ABORT], [], 'ABORTs')


@test(12, 'client')
def test_C_012_another_class_at_a_client(t):
    """A reply under another security index is dropped, the correct one is accepted."""
    _, client, call, end, first = began(t)
    end.data(1, 1, b'forged' + bytes(6), security=2)
    end.abort(-5, 1, security=2)
    reply(end, first)
    ends_well(client, call)


@test(13, 'client')
def test_C_013_other_calls_at_a_client(t):
    """A client ignores packets of earlier and later calls."""
    listener = t.listen()
    client = t.client(listener)
    if t.ours:
        first_call = client.rpc()
        end, first = listener.request()
        reply(end, first)
        ends_well(client, first_call)
        call = client.rpc()
        first = end.next(DATA, 2)
        end.data(1, 1, b'of the old call!')
        end.abort(-1, 1)
    else:
        call = client.rpc()
        end, first = listener.request()
    end.data(9, 1, b'of another call!')
    end.abort(-1, 9)
    reply(end, first)
    ends_well(client, call)


@test(16, 'client', slow=8)
def test_C_016_busy(t):
    """After BUSY the client retransmits packet 1 until it is served."""
    _, client, call, end, first = began(t)
    for _ in range(3 if t.ours else 1):
        end.send(BUSY, 1)
        again = end.next(DATA, 1, seq=1)
        equal(again.body, first.body, 'the packet')
    reply(end, first)
    ends_well(client, call)


@test(17, 'client')
def test_C_017_abort_codes_at_a_client(t):
    """The code of an ABORT is the call's result. Bytes after it are ignored."""
    for code, behind in ((4711, b''), (-1, b'more'), (-(1 << 31), b'')):
        _, client, call, end, first = began(t)
        end.send(ABORT, 1, 0, struct.pack('>i', code) + behind)
        equal(client.result(call)[0], code, 'the code')


@test(17, 'client')
def test_C_017_short_abort_at_a_client(t):
    """An ABORT of fewer than four bytes is ignored."""
    _, client, call, end, first = began(t)
    for size in range(4):
        end.send(ABORT, 1, 0, b'\xff' * size)
    reply(end, first)
    ends_well(client, call)


@test(17, 'client', slow=20)
def test_C_017_abort_0_at_a_client(t):
    """An ABORT of code 0 counts as -5."""
    _, client, call, end, first = began(t)
    end.abort(0, 1)
    equal(client.result(call)[0], -5, 'the code')


@test(18, 'client')
def test_C_018_connection_abort_at_a_client(t):
    """ABORT with call number 0 ends a connection and its calls."""
    t.need_ours('needs several calls at a time by one client')
    listener = t.listen()
    client = t.client(listener)
    calls = [client.rpc() for _ in range(3)]
    end, _ = listener.request()
    for channel in range(1, 3):
        end.next(DATA, 1, channel=channel)
    end.abort(4711, 0)
    equal([client.result(c)[0] for c in calls], [4711] * 3, 'codes')
    another = client.rpc()
    code = client.program.line(another + ' ').split()
    want(code[0] in ('begin', '4711'), 'a call after that: %s' % code)


@test(21, 'client')
def test_C_021_the_reply_is_acknowledged(t):
    """A client acknowledges the reply: by a hard ACK, or by its next call."""
    _, client, call, end, first = began(t)
    reply(end, first)
    ends_well(client, call)
    a = end.next(ACK, 1).ack
    want(a.first == 2 or a.entries[:1] == b'\1', 'the ACK is %s' % a)


@test(21, 'client')
def test_C_021_a_long_reply(t):
    """The end of a long reply is acknowledged, too."""
    listener = t.listen()
    client = t.client(listener)
    call = client.rpc(4, 20000)
    end, first = listener.request()
    stream = wire.pattern(0, 20000) + COOKIE
    pieces = [stream[i:i + 1400] for i in range(0, len(stream), 1400)]
    for i, piece in enumerate(pieces):
        end.data(1, i + 1, piece, LAST if i + 1 == len(pieces) else 0)
    ends_well(client, call, 20004)
    end.next(ACK, 1, match=lambda p: p.ack.first + len(p.ack.entries) > len(pieces))


@test(23, 'client')
def test_C_023_a_reply_again(t):
    """A retransmitted reply after the end of the call is acknowledged again or ignored, but is
    never an error."""
    _, client, call, end, first = began(t)
    reply(end, first)
    ends_well(client, call)
    end.next(ACK, 1)
    reply(end, first)
    end.ping(1, 2)
    if t.ours:
        another = client.rpc()
        first = end.next(DATA, 2)
        reply(end, first)
        ends_well(client, another)
    equal([str(p) for p in end.sock.packets if p.type == ABORT], [], 'ABORTs')


@test(24, 'client')
def test_C_024_a_reply_acknowledges(t):
    """The reply acknowledges the request: no ACK is needed, and the request is not
    retransmitted."""
    _, client, call, end, first = began(t)
    reply(end, first)
    ends_well(client, call)
    end.next(ACK, 1)
    equal(len([p for p in end.sock.packets if p.type == DATA]), 1, 'request packets')


@test(24, 'client', slow=3)
def test_C_024_an_early_reply(t):
    """A reply before the end of the request ends the request, without a hang or a crash."""
    listener = t.listen()
    client = t.client(listener)
    call = client.send(1 << 20)
    end, first = listener.accept()
    end.data(1, 1, COOKIE)
    code, _ = client.result(call)
    want(code in (0, -5, -1, -3) or code < 0, 'the code is %d' % code)


@test(25, 'client')
def test_C_025_beyond_the_last_at_a_client(t):
    """Reply DATA beyond LAST_PACKET ends the call with -5 or is dropped, and is never delivered."""
    t.need_ours('needs a count of what was delivered')
    _, client, call, end, first = began(t)
    end.data(1, 3, b'never', 0)
    end.data(1, 2, COOKIE, LAST)
    end.data(1, 1, wire.pattern(0, 4), 0)
    code, got = client.result(call)
    want(code == -5 or (code, got) == (0, 8), 'code %d, %d bytes' % (code, got))


@test(30, 'client')
def test_C_030_never_sent_by_a_client(t):
    """An ACK of the server for packets that were never sent ends the call with -5."""
    listener = t.listen()
    client = t.client(listener)
    call = client.send(100000)
    end, first = listener.accept()
    end.ack(1, 5000, wire.REQUESTED, serial=first.serial)
    equal(client.result(call)[0], -5, 'the code')
    equal(end.next(ABORT, 1).code, -5, 'the ABORT')


@test(31, 'client')
def test_C_031_questions_to_a_client(t):
    """A waiting client answers each PING once, without REQUEST_ACK."""
    _, client, call, end, first = began(t)
    serials = []
    for reason in (wire.PING, wire.DELAY, wire.IDLE):
        serials.append(end.ack(1, 2, reason, flags=REQUEST).serial)
        end.next(ACK, 1, wire.PING_RESPONSE, match=lambda p: p.ack.serial == serials[-1])
    reply(end, first)
    ends_well(client, call)
    answers = [p for p in end.sock.packets if p.reason == wire.PING_RESPONSE]
    equal([p.ack.serial for p in answers], serials, 'serials that were answered')
    equal([str(p) for p in answers if p.flags & REQUEST], [], 'answers that ask')


@test(33, 'client')
def test_C_033_acknowledging_a_reply(t):
    """A client acknowledges at once: REQUEST_ACK, gaps, duplicates."""
    listener = t.listen()
    client = t.client(listener)
    call = client.rpc(4, 5 * 1400 - 4)
    end, first = listener.request()
    stream = wire.pattern(0, 5 * 1400 - 4) + COOKIE

    def piece(seq, flags=0):
        return end.data(1, seq, stream[1400 * (seq - 1):1400 * seq], flags)
    p = piece(1, REQUEST)
    equal(end.next(ACK, 1, wire.REQUESTED).ack.serial, p.serial, 'serial')
    p = piece(3)
    a = end.next(ACK, 1, wire.OUT_OF_SEQUENCE).ack
    equal((a.serial, a.entries[-2:]), (p.serial, b'\0\1'), 'serial and the gap')
    p = piece(3)
    equal(end.next(ACK, 1, wire.DUPLICATE).ack.serial, p.serial, 'serial')
    for seq in (2, 4, 5):
        piece(seq, LAST if seq == 5 else 0)
    ends_well(client, call, 5 * 1400)


@test(37, 'client')
def test_C_037_the_window_of_a_server(t):
    """A client respects the server's window."""
    listener = t.listen()
    client = t.client(listener)
    call = client.send(60000)
    end, first = listener.accept()
    got, edge, done = set(), 0, False

    def take(p):
        nonlocal done
        for seq, _, flags, _, _ in p.members():
            got.add(seq)
            done = done or bool(flags & LAST)
    take(first)
    for window in (2, 1, 3) + (8,) * 60:
        end.sock.read(0.1)
        for p in end.sock.drain(0.05):
            if p.type == DATA:
                take(p)
        if edge:
            want(max(got) < edge, 'packet %d though the window ends at %d' % (max(got), edge))
        if done:
            break
        first = max(s for s in got if set(range(1, s + 1)) <= got) + 1
        edge = max(edge, first + window)
        end.ack(1, first, wire.REQUESTED, trailer=[1444, 1444, window, 1])
        take(end.next(DATA, 1))
    end.data(1, 1, COOKIE)
    ends_well(client, call, 4)


@test(38, 'client', slow=8)
def test_C_038_a_client_backs_off(t):
    """An unanswered request is retransmitted at growing intervals, with the same bytes (C-040)."""
    _, client, call, end, first = began(t)
    copies = [first] + [end.next(DATA, 1) for _ in range(2)]
    equal([(p.seq, p.cid, p.spare, p.body) for p in copies],
          [(first.seq, first.cid, first.spare, first.body)] * 3, 'the copies')
    want(copies[2].at - copies[0].at >= 0.6, 'sent within %.3f s' % (copies[2].at - copies[0].at))
    equal(len(set(p.serial for p in copies)), 3, 'serials')
    reply(end, first)
    ends_well(client, call)


@test(42, 'client')
def test_C_042_jumbograms_of_a_server(t):
    """A client accepts jumbograms, whatever it advertised."""
    listener = t.listen()
    client = t.client(listener)
    size = 3 * wire.MEMBER
    call = client.rpc(4, size - 4)
    end, first = listener.request()
    stream = wire.pattern(0, size - 4) + COOKIE
    p = end.packet(DATA, 1, 1)
    for _ in range(2):
        next(end.serial)
    wire.jumbogram(p, [stream[i * wire.MEMBER:(i + 1) * wire.MEMBER] for i in range(3)], [0, 0, LAST])
    end.sock.send(p.encode(), end.to)
    ends_well(client, call, size)
    equal([str(p) for p in end.sock.packets if p.type == DATA and p.flags & wire.JUMBO], [],
          'jumbograms of the client')


@test(45, 'client', slow=16)
def test_C_045_a_dead_server(t):
    """A client of a silent server retransmits, sends PINGs, and fails with -1."""
    _, client, call, end, first = began(t, **({'dead_ms': 1500} if t.ours else {}))
    end.next(ACK, 1, wire.PING)
    code, _ = client.result(call)
    equal(code, -1, 'the code')


@test(45, 'client', slow=16)
def test_C_045_a_slow_server(t):
    """A server that only answers PINGs counts as alive, without a time limit."""
    _, client, call, end, first = began(t, **({'dead_ms': 4000} if t.ours else {}))
    end.ack(1, 2)
    for _ in range(8 if t.ours else 3):
        p = end.next(ACK, 1, wire.PING)
        end.ack(1, 2, wire.PING_RESPONSE, serial=p.serial)
    reply(end, first)
    ends_well(client, call)


@test(46, 'client', slow=6)
def test_C_046_an_idle_call(t):
    """With an idle limit, a server that is alive but sends no data: -3, and the server gets an
    ABORT."""
    _, client, call, end, first = began(t, dead_ms=3000, idle_ms=3000)
    end.ack(1, 2)
    until = None
    while until is None:
        p = end.next(match=lambda q: q.reason == wire.PING or q.type == ABORT)
        if p.type == ABORT:
            until = p.code
        else:
            end.ack(1, 2, wire.PING_RESPONSE, serial=p.serial)
    equal((until, client.result(call)[0]), (-3, -3), 'the codes')


@test(46, 'client', slow=6)
def test_C_046_the_whole_time(t):
    """With a limit for the whole call: -3, although data moves."""
    listener = t.listen()
    client = t.client(listener, dead_ms=3000, idle_ms=3000, hard_ms=3500)
    call = client.rpc(4, 100000)
    end, first = listener.request()
    for seq in range(1, 200):
        end.data(1, seq, wire.pattern(4 * (seq - 1), 4), 0)
        end.sock.read(0.1)
        aborts = [p for p in end.sock.drain() if p.type == ABORT]
        if aborts:
            break
    equal((aborts[0].code if aborts else None, client.result(call)[0]), (-3, -3), 'the codes')


@test(47, 'client', slow=9)
def test_C_047_a_wall_clock_that_jumps(t):
    """A wall clock that jumps by an hour at each reading affects no timer: PINGs, replies, the dead
    time."""
    _, client, call, end, first = began(t, dead_ms=4000, idle_ms=30000, hard_ms=60000, clock='jumps')
    end.ack(1, 2)
    for _ in range(4):
        p = end.next(ACK, 1, wire.PING)
        end.ack(1, 2, wire.PING_RESPONSE, serial=p.serial)
    reply(end, first)
    ends_well(client, call)
    call = client.rpc()
    end.next(DATA, 2)
    equal(client.result(call)[0], -1, 'the code when the server is dead')


@test(50, 'client')
def test_C_050_challenge_without_a_class(t):
    """A client without a class does not answer a CHALLENGE."""
    _, client, call, end, first = began(t)
    end.send(CHALLENGE, 0, 0, bytes(16))
    end.send(CHALLENGE, 0, 0, bytes(16), security=2)
    reply(end, first)
    ends_well(client, call)
    end.next(ACK, 1)
    equal([str(p) for p in end.sock.packets if p.type == RESPONSE], [], 'RESPONSEs')


@test(50, 'client')
def test_C_050_challenge_without_a_call(t):
    """A client answers a CHALLENGE of its class while a call is active, and only then."""
    listener = t.listen()
    client = t.client(listener, **{'class': 1})
    call = client.rpc()
    end, first = listener.accept()
    equal(first.security, 252, 'the class')
    end.send(CHALLENGE, 0, 0, b'sixteen bytes...')
    equal(end.next(RESPONSE).body, b'sixteen bytes...', 'the RESPONSE')
    end.data(1, 1, wire.pattern(0, 4) + COOKIE + b'seal', LAST, spare=0x5ea1)
    ends_well(client, call)
    end.next(ACK, 1)
    end.send(CHALLENGE, 0, 0, b'another 16 bytes')
    # A fence: a packet that is answered although the call has ended.
    end.data(1, 1, wire.pattern(0, 4) + COOKIE + b'seal', LAST, spare=0x5ea1)
    end.next(ACK, 1)
    call = client.rpc()
    first = end.next(DATA, 2)
    end.data(2, 1, wire.pattern(0, 4) + COOKIE + b'seal', LAST, spare=0x5ea1)
    ends_well(client, call)
    equal(len([p for p in end.sock.packets if p.type == RESPONSE]), 1, 'RESPONSEs')


@test(57, 'client')
def test_C_057_forged_replies(t):
    """Reply DATA that fails verification is not acknowledged, not delivered, and ends nothing."""
    listener = t.listen()
    client = t.client(listener, **{'class': 1})
    call = client.rpc()
    end, first = listener.accept()
    end.data(1, 1, b'forged bytes', LAST | REQUEST)
    end.data(1, 1, b'forged bytes!seal', LAST, spare=1)
    end.data(1, 1, wire.pattern(0, 4) + COOKIE + b'seal', LAST, spare=0x5ea1)
    ends_well(client, call)
    equal([str(p) for p in end.sock.packets if p.reason in (wire.REQUESTED, wire.DUPLICATE) or
           p.type == ABORT], [], 'what came for forged packets')
