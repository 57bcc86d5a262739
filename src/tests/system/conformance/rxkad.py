# SPDX-License-Identifier: BSD-2-Clause
"""rxkad (7.3): the scripted peer plays either end, and has the service's key."""

import hmac
import json
import os
import struct
import time

from harness import COOKIE, ask_rpc, test
from kerberos import Enctype
from peer import Failed, equal, want
from wire import ABORT, ACK, CHALLENGE, DATA, LAST, REQUEST, RESPONSE
import wire

SERVICE = 151           # of the endpoint under test, with the option rxkad
KVNO = 3
KEY = bytes(range(1, 33))
BASE = 19270400
(INCONSISTENCY, PACKETSHORT, LEVELFAIL, TICKETLEN, OUTOFSEQUENCE, NOAUTH, BADKEY, BADTICKET, UNKNOWNKEY,
 EXPIRED, SEALEDINCON) = range(BASE, BASE + 11)
VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'vectors')
DAY = 86400


def primitives():
    with open(os.path.join(VECTORS, 'rxkad-primitives.json')) as f:
        return json.load(f)


class Fcrypt:
    boxes = [bytes.fromhex(primitives()['fcryptSboxes']['S%d' % i]) for i in range(4)]

    def __init__(self, key):
        k, self.k = 0, []
        for b in key:
            k = k << 7 | b >> 1
        for _ in range(16):
            self.k.append(k & 0xffffffff)
            k = (k >> 11 | k << 45) & (1 << 56) - 1

    def f(self, x):
        s0, s1, s2, s3 = self.boxes
        w = s3[x & 255] << 24 | s2[x >> 8 & 255] << 16 | s0[x >> 24] << 8 | s1[x >> 16 & 255]
        return (w >> 5 | w << 27) & 0xffffffff

    def block(self, data, back=False):
        left, right = struct.unpack('>II', data)
        for i in range(14, -1, -2) if back else range(0, 16, 2):
            if back:
                right ^= self.f(self.k[i + 1] ^ left)
                left ^= self.f(self.k[i] ^ right)
            else:
                left ^= self.f(self.k[i] ^ right)
                right ^= self.f(self.k[i + 1] ^ left)
        return struct.pack('>II', left, right)

    def pcbc(self, iv, data, back=False):
        x, out = iv, b''
        for at in range(0, len(data), 8):
            p = data[at:at + 8]
            c = xor(self.block(p, True), x) if back else self.block(xor(p, x))
            x, out = xor(p, c), out + c
        return out


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def derive(key):
    """7.3.6, for session keys without parity bits. None of those used here is weak."""
    d = hmac.new(key, b'\1rxkad\0\0\0\0\x40', 'md5').digest()[:8]
    return bytes(b & 0xfe | (bin(b >> 1).count('1') + 1) & 1 for b in d)


def der(tag, *parts):
    body = b''.join(parts)
    size = len(body)
    head = bytes([size]) if size < 128 else b'\x81' + bytes([size]) if size < 256 else \
        b'\x82' + struct.pack('>H', size)
    return bytes([tag]) + head + body


def integer(n, value):
    return der(0xa0 + n, der(2, value.to_bytes(value.bit_length() // 8 + 1, 'big')))


def moment(n, t):
    return der(0xa0 + n, der(0x18, time.strftime('%Y%m%d%H%M%SZ', time.gmtime(t)).encode()))


def encrypted(kvno, cipher, enctype=18):
    return der(0x30, integer(0, enctype), integer(1, kvno), der(0xa2, der(4, cipher)))


class Keys:
    """State shared by both ends, to seal and open packets."""

    def __init__(self, key, level, epoch, cid):
        self.key, self.level, self.epoch, self.cid = key, level, epoch, cid
        self.cipher = Fcrypt(key)
        self.pre = self.cipher.pcbc(key, struct.pack('>IIII', epoch, cid, 0, 2))[8:]

    def spare(self, call, seq, channel=0):
        block = xor(struct.pack('>II', call, channel << 30 | seq & 0x3fffffff), self.pre)
        return struct.unpack('>H', self.cipher.block(block)[4:6])[0] or 1

    def seal(self, data, call=1, seq=1):
        word = struct.pack('>HH', (seq ^ call) & 0xffff, len(data))
        if self.level == 0:
            return data
        if self.level == 1:
            text = (word + data).ljust(8, b'\0')
            return self.cipher.block(text[:8]) + text[8:]
        text = word + bytes(4) + data
        return self.cipher.pcbc(self.key, text + bytes(-len(text) % 8))

    def open(self, p):
        """The data of a packet, which must verify."""
        equal(p.spare, self.spare(p.call, p.seq, p.channel), 'the header checksum')
        if self.level == 0:
            return p.body
        if self.level == 1:
            text, head = self.cipher.block(p.body[:8], True) + p.body[8:], 4
        else:
            equal(len(p.body) % 8, 0, 'bytes beyond whole blocks')
            text, head = self.cipher.pcbc(self.key, p.body, True), 8
            equal(text[4:8], bytes(4), 'the second word')
        label, size = struct.unpack('>HH', text[:4])
        equal(label, (p.seq ^ p.call) & 0xffff, 'the label of a packet')
        equal(text[head + size:].strip(b'\0'), b'', 'the padding')
        return text[head:head + size]


class Client:
    """A client of the server under test that may deviate as told by arguments with a leading
    underscore."""

    def __init__(self, t, server, level=2, enctype=17, form=213, _kvno=KVNO, _key=KEY, _start=-60, _end=3600,
                 _name=(b'alice',), _flags=0, _type=18, _session=None):
        self.c = t.conn(server, service=SERVICE, security=2)
        session = _session or os.urandom(16 if enctype == 17 else 32)
        key = session if enctype == 1 else derive(session)
        self.keys = Keys(key, level, self.c.epoch, self.c.cid)
        now = int(time.time())
        names = b''.join(der(0x1b, n) for n in _name)
        part = der(0x63, der(
            0x30, der(0xa0, der(3, b'\0' + struct.pack('>I', _flags))),
            der(0xa1, der(0x30, integer(0, enctype), der(0xa1, der(4, session)))),
            der(0xa2, der(0x1b, b'REALM')),
            der(0xa3, der(0x30, integer(0, 1), der(0xa1, der(0x30, names)))),
            der(0xa4, der(0x30, integer(0, 0), der(0xa1, der(4, b'')))),
            moment(5, now + _start), moment(7, now + _end)))
        self.ticket = encrypted(_kvno, Enctype(18).encrypt(_key, 2, part), _type)
        self.form = form
        if form == 256:
            service = der(0x30, integer(0, 1), der(0xa1, der(0x30, der(0x1b, b'afs'))))
            self.ticket = der(0x61, der(0x30, integer(0, 5), der(0xa1, der(0x1b, b'REALM')),
                                        der(0xa2, service), der(0xa3, self.ticket)))

    def data(self, call=1, seq=1, body=None, flags=LAST | REQUEST, channel=0):
        body = ask_rpc(4, 4) if body is None else body
        self.c.data(call, seq, self.keys.seal(body, call, seq), flags, channel=channel,
                    spare=self.keys.spare(call, seq, channel))

    def respond(self, challenge, _version=2, _nonce=1, _level=None, _calls=(1, 0, 0, 0), _cid=0, _epoch=0,
                _index=2, _sum=0, _ticket=None, _length=None, _cut=None, _tail=b''):
        k = self.keys
        ticket = self.ticket if _ticket is None else _ticket
        nonce = (struct.unpack('>I', challenge.body[4:8])[0] + _nonce) & 0xffffffff
        clear = struct.pack('>IIIIII4IIIII', _version, 0, k.epoch ^ _epoch, k.cid ^ _cid, 0, _index, *_calls,
                            nonce, k.level if _level is None else _level, self.form,
                            len(ticket) if _length is None else _length)
        c = 1000003
        for b in clear:
            c = (c * 0x10204081 + b) & 0xffffffff
        clear = clear[:16] + struct.pack('>I', c ^ _sum) + clear[20:]
        body = clear[:8] + k.cipher.pcbc(k.key, clear[8:48]) + clear[48:] + ticket + _tail
        self.c.send(RESPONSE, 0, 0, body[:_cut])

    def begin(self, **deviation):
        """The exchange, after a request in call 1."""
        self.data()
        p = self.c.next(CHALLENGE)
        equal((len(p.body), p.call, p.seq, p.cid & 3), (16, 0, 0, 0), 'the CHALLENGE')
        equal((p.body[:4], p.body[8:]), (struct.pack('>I', 2), bytes(8)), 'the words around the nonce')
        self.respond(p, **deviation)

    def reply(self, call=1, channel=0):
        p = self.c.next(DATA, call)
        got = self.keys.open(p)
        want(got.endswith(COOKIE), 'the reply is %s' % got.hex())
        self.c.ack(call, 2, channel=channel)
        return p


def server(t, **options):
    t.need_ours('needs the key of a service')
    return t.own(rxkad=KEY.hex(), listeners=1, **options)


def refused(t, s, cases):
    """Each of (code, ticket, arguments) ends its connection by an ABORT of call 0 with the code,
    and no call is served."""
    clients = []
    for code, made, said in cases:
        c = Client(t, s, **made)
        c.begin(**said)
        clients.append((code, made, said, c))
    for code, made, said, c in clients:     # one second later, for all of them
        p = c.c.next(ABORT)
        equal((p.call, p.code), (0, code), 'the ABORT of %s %s' % (made, said))
        equal([str(q) for q in c.c.sock.packets if q.type == DATA and c.c.mine(q)], [], 'DATA')


@test(51, slow=1)
def test_C_051_rxkad_nonces(t):
    """Nonces of challenges: two servers started together produce no equal ones. A nonce that is off
    by one is refused."""
    servers = [server(t), server(t)]
    seen = set()
    for s in servers:
        for _ in range(40):
            c = Client(t, s)
            c.data()
            seen.add(c.c.next(CHALLENGE).body[4:8])
    # Two of 80 32-bit words are equal once in a million runs.
    want(len(seen) >= 79, 'only %d different nonces' % len(seen))
    refused(t, servers[0], [(OUTOFSEQUENCE, {}, {'_nonce': n}) for n in (0, 2, 1 << 31)])


@test(52)
def test_C_052_rxkad(t):
    """Levels of rxkad: the exchange, requests and replies, and sizes around the padding."""
    s = server(t)
    for level in (0, 1, 2):
        c = Client(t, s, level)
        c.begin()
        c.reply()
        for call, size in enumerate((0, 1, 3, 4, 5, 7, 8, 9), 2):
            c.data(call, body=ask_rpc(size, size) + wire.pattern(0, size))
            got = c.keys.open(c.c.next(DATA, call))
            equal(got, wire.pattern(0, size) + COOKIE, 'the reply of call %d' % call)
            c.c.ack(call, 2)
        c.data(1, channel=3)
        c.reply(1, 3)


@test(52, slow=2)
def test_C_052_rxkad_refused(t):
    """RESPONSEs that a server must refuse, each with its code."""
    refused(t, server(t), [
        (PACKETSHORT, {}, {'_cut': 55}), (PACKETSHORT, {}, {'_cut': -1}),
        (PACKETSHORT, {}, {'_length': 0xffffffff}), (PACKETSHORT, {}, {'_length': 12001}),
        (TICKETLEN, {}, {'_length': 31}), (TICKETLEN, {}, {'_length': 0}),
        (INCONSISTENCY, {}, {'_version': 1}), (SEALEDINCON, {}, {'_sum': 1}),
        (SEALEDINCON, {}, {'_cid': 4}), (SEALEDINCON, {}, {'_epoch': 1}), (SEALEDINCON, {}, {'_index': 0}),
        (SEALEDINCON, {}, {'_calls': (0x80000001, 0, 0, 0)}), (LEVELFAIL, {}, {'_level': 3}),
        (LEVELFAIL, {}, {'_level': 0xffffffff})])


@test(52, slow=2)
def test_C_052_rxkad_levels(t):
    """A server with a minimum level refuses those below it."""
    s = server(t, level=1)
    for level in (0, 1, 2):
        c = Client(t, s, level)
        c.data()
        p = c.c.next(CHALLENGE)
        equal(struct.unpack('>I', p.body[8:12])[0], 1, 'the level that is asked for')
        c.respond(p)
        if level:
            c.reply()
        else:
            equal(c.c.next(ABORT).code, LEVELFAIL, 'the code')


@test(53)
def test_C_053_rxkad_tickets(t):
    """Both forms of Kerberos 5 tickets are accepted, trailing bytes in a RESPONSE are ignored."""
    s = server(t)
    for form in (213, 256):
        for enctype in (17, 18):
            c = Client(t, s, 2, enctype, form)
            c.begin(_tail=b'more')
            c.reply()


@test(53, slow=2)
def test_C_053_rxkad_refused(t):
    """Tickets that a server must refuse: keys, times, names, forms."""
    refused(t, server(t), [
        (UNKNOWNKEY, {'_kvno': 4}, {}), (UNKNOWNKEY, {'_type': 17}, {}), (UNKNOWNKEY, {'_type': 3}, {}),
        (UNKNOWNKEY, {'form': 3}, {}), (BADTICKET, {'_key': bytes(32)}, {}),
        (BADTICKET, {}, {'_ticket': bytes(64)}), (EXPIRED, {'_start': -3600, '_end': -1}, {}),
        (EXPIRED, {'_start': -3600, '_end': -1000}, {}), (NOAUTH, {'_start': 1000, '_end': 2000}, {}),
        (BADTICKET, {'_start': 31 * DAY, '_end': 32 * DAY}, {}), (BADTICKET, {'_end': 31 * DAY}, {}),
        (BADTICKET, {'_start': 60, '_end': 50}, {}), (NOAUTH, {'_flags': 0x01000000}, {}),
        (BADTICKET, {'_name': (b'a.b',)}, {}), (BADTICKET, {'_name': (b'a', b'b', b'c')}, {}),
        (BADTICKET, {'_name': ()}, {}), (BADTICKET, {'_name': (b'x' * 64,)}, {}),
        (BADTICKET, {'_name': (b'host', b'plain')}, {}),
        (BADKEY, {'enctype': 1, '_session': bytes(8)}, {}),
        (BADKEY, {'enctype': 1, '_session': bytes([1] * 8)}, {}),
        (BADTICKET, {'enctype': 15}, {})])


@test(54)
def test_C_054_rxkad_kdf(t):
    """Keys of rxkad-kdf: the peer agrees with the vectors, and with the server for many keys."""
    for v in primitives()['rxkadKdf']:
        equal(derive(bytes.fromhex(v['ticketSessionKey'])).hex(), v['desKey'], 'a derived key')
    s = server(t)
    for i in range(20):
        c = Client(t, s, 2, 17 + i % 2, _session=bytes([i]) * (16 if i % 2 == 0 else 32))
        c.begin()
        c.reply()


@test(57)
def test_C_057_forged_rxkad(t):
    """DATA of rxkad that is modified, moved or of another level is dropped silently."""
    s = server(t)
    for level in (1, 2):
        c = Client(t, s, level)
        c.begin()
        c.reply()
        good, spare = c.keys.seal(ask_rpc(4, 4), 2), c.keys.spare(2, 1)

        def forge(body, word):
            c.c.data(2, 1, body, LAST | REQUEST, spare=word)

        for bit in range(16):
            forge(good, spare ^ 1 << bit)
        for body in (b'', good[:7], bytes(len(good)), c.keys.seal(ask_rpc(4, 4), 3),
                     c.keys.seal(ask_rpc(4, 4), 2, 2)):
            forge(body, spare)
        if level == 2:
            forge(good[:-1], spare)
            forge(bytes([good[0] ^ 1]) + good[1:], spare)
        c.data(2, flags=LAST)
        c.reply(2)
        bad = [str(p) for p in c.c.sock.packets if c.c.mine(p) and
               (p.type == ABORT or p.call == 2 and p.type == ACK and
                p.reason in (wire.REQUESTED, wire.DUPLICATE, wire.OUT_OF_SEQUENCE))]
        equal(bad, [], 'what forged packets drew')


@test(52, 'client')
def test_C_052_rxkad_client(t):
    """A client's RESPONSE: the ticket decrypts, the sealed part is correct, and the call
    succeeds."""
    for level in (0, 1, 2):
        listener = t.listen()
        client = t.client(listener, rxkad=KEY.hex(), level=level)
        call = client.rpc()
        end, first = listener.accept()
        equal(first.security, 2, 'the class')
        nonce = struct.unpack('>I', os.urandom(4))[0]
        end.send(CHALLENGE, 0, 0, bytes(8))     # of the old form: ignored
        for again in range(40):                 # one may follow the last too soon
            end.send(CHALLENGE, 0, 0, struct.pack('>IIII', 2, nonce, 0, 0))
            try:
                p = end.next(RESPONSE, limit=0.5)
                break
            except Failed:
                want(again < 39, 'no RESPONSE came')
        keys = look_at_response(p, first, nonce, level)
        want(keys.open(first).startswith(ask_rpc(4, 4)[:4]), 'the request')
        answer = wire.pattern(0, 4) + COOKIE
        end.data(1, 1, keys.seal(answer), LAST, spare=keys.spare(1, 1) ^ 1)
        end.data(1, 1, keys.seal(answer), LAST, spare=keys.spare(1, 1))
        code, _ = client.result(call)
        equal(code, 0, 'the code of the call')


def look_at_response(p, first, nonce, level):
    """The keys of the connection, if the RESPONSE is as 7.3.3 requires."""
    equal(p.spare, 0, 'the word of the header')
    version, spare = struct.unpack('>II', p.body[:8])
    kvno, size = struct.unpack('>II', p.body[48:56])
    equal((version, spare, kvno, size), (2, 0, 213, len(p.body) - 56), 'the clear words')
    ticket = p.body[56:]
    head = ticket.index(b'\xa2\x81')        # [2] OCTET STRING, of 128 to 255 bytes
    plain = Enctype(18).decrypt(KEY, 2, ticket[head + 6:])
    want(plain is not None, 'the ticket does not open')
    at = plain.index(b'\xa1\x0a\x04\x08')   # [1] OCTET STRING of 8 bytes: the session key
    key = plain[at + 4:at + 12]
    keys = Keys(key, level, first.epoch, first.cid & ~3)
    clear = keys.cipher.pcbc(key, p.body[8:48], True)
    whole = p.body[:8] + clear[:8] + bytes(4) + clear[12:] + p.body[48:56]
    c = 1000003
    for b in whole:
        c = (c * 0x10204081 + b) & 0xffffffff
    equal(clear, struct.pack('>IIII4III', first.epoch, first.cid & ~3, c, 2, 1, 0, 0, 0,
                             (nonce + 1) & 0xffffffff, level), 'what is sealed')
    return keys
