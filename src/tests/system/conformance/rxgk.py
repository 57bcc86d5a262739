# SPDX-License-Identifier: BSD-2-Clause
"""rxgk (7.4): the scripted peer plays either end, and has the service's key."""

import os
import struct
import time

from harness import COOKIE, ask_rpc, test
from kerberos import Enctype
from peer import equal, want
from wire import ABORT, ACK, CHALLENGE, DATA, LAST, REQUEST, RESPONSE
import wire

SERVICE = 150           # of the endpoint under test, with the option rxgk
KVNO, KEY_TYPE = 5, 18
KEY = bytes(range(1, 33))
HOUR = 36000000000      # of 100 ns
BASE = 1233242880
(INCONSISTENCY, PACKETSHORT, BADCHALLENGE, BADETYPE, BADLEVEL, BADKEYNO, EXPIRED, NOTAUTH, BAD_TOKEN,
 SEALED_INCON) = range(BASE, BASE + 10)
CLIENT_ENC, CLIENT_MIC, SERVER_ENC, SERVER_MIC, AUTHENTICATOR, TOKEN = 1026, 1027, 1028, 1029, 1030, 1036


def opaque(data):
    return struct.pack('>I', len(data)) + data + bytes(-len(data) % 4)


class Keys:
    """State shared by both ends, to seal and open packets."""

    def __init__(self, enctype, k0, level, epoch, cid, start):
        self.e, self.k0, self.level = Enctype(enctype), k0, level
        self.epoch, self.cid, self.start = epoch, cid, start

    def tk(self, number):
        seed = struct.pack('>IIqI', self.epoch, self.cid, self.start, number)
        return self.e.prf_plus(self.k0, seed, self.e.size)

    def pseudo(self, channel, call, seq, size):
        return struct.pack('>IIIIII', self.epoch, self.cid | channel, call, seq, 4, size)

    def seal(self, data, by_client, call=1, seq=1, channel=0, number=0):
        head = self.pseudo(channel, call, seq, len(data))
        if self.level == 0:
            return data
        if self.level == 1:
            return self.e.mic(self.tk(number), CLIENT_MIC if by_client else SERVER_MIC, head + data) + data
        return self.e.encrypt(self.tk(number), CLIENT_ENC if by_client else SERVER_ENC, head + data)

    def open(self, p, by_client):
        """The data of a packet, which must verify under the key named in its header."""
        body, number = p.body, p.spare
        if self.level == 0:
            return body
        if self.level == 1:
            mac, data = body[:self.e.mac], body[self.e.mac:]
            head = self.pseudo(p.channel, p.call, p.seq, len(data))
            equal(mac, self.e.mic(self.tk(number), CLIENT_MIC if by_client else SERVER_MIC, head + data),
                  'the MIC')
            return data
        plain = self.e.decrypt(self.tk(number), CLIENT_ENC if by_client else SERVER_ENC, body)
        want(plain is not None, 'a packet does not open')
        size = struct.unpack('>I', plain[20:24])[0]
        equal(plain[:24], self.pseudo(p.channel, p.call, p.seq, size), 'the pseudo-header')
        return plain[24:24 + size]


class Client:
    """A client of the server under test that may deviate as told by arguments with a leading
    underscore."""

    def __init__(self, t, server, level=2, enctype=17, _kvno=KVNO, _key=KEY, _names=((1, b'alice'),),
                 _expires=None):
        self.c = t.conn(server, service=SERVICE, security=4)
        self.keys = Keys(enctype, os.urandom(Enctype(enctype).size), level, self.c.epoch, self.c.cid,
                         int(time.time() * 1e7))
        expires = self.keys.start + HOUR if _expires is None else _expires
        body = struct.pack('>i', enctype) + opaque(self.keys.k0) + struct.pack('>IIIq', level, 0, 0, expires)
        body += struct.pack('>I', len(_names))
        for kind, name in _names:
            body += struct.pack('>i', kind) + opaque(name) + opaque(name)
        self.token = struct.pack('>ii', _kvno, KEY_TYPE) + opaque(Enctype(KEY_TYPE).encrypt(_key, TOKEN, body))

    def data(self, call=1, seq=1, body=None, flags=LAST | REQUEST, number=0, channel=0):
        body = ask_rpc(4, 4) if body is None else body
        self.c.data(call, seq, self.keys.seal(body, True, call, seq, channel, number), flags, spare=number,
                    channel=channel)

    def respond(self, challenge, number=0, _nonce=None, _level=None, _calls=(1, 0, 0, 0), _cid=0, _tail=b''):
        nonce = _nonce or challenge.body[:20]
        plain = nonce + opaque(b'') + struct.pack(
            '>III', self.keys.level if _level is None else _level, self.c.epoch, self.c.cid + _cid)
        plain += struct.pack('>I%dI' % len(_calls), len(_calls), *_calls)
        sealed = self.keys.e.encrypt(self.keys.tk(number), AUTHENTICATOR, plain)
        self.c.send(RESPONSE, 0, 0, struct.pack('>q', self.keys.start) + opaque(self.token) + opaque(sealed) +
                    _tail, spare=number)

    def begin(self, **deviation):
        """The exchange, after a request in call 1."""
        self.data()
        p = self.c.next(CHALLENGE)
        equal((len(p.body), p.call, p.seq, p.cid & 3), (20, 0, 0, 0), 'the CHALLENGE')
        self.respond(p, **deviation)

    def reply(self, call=1, channel=0):
        p = self.c.next(DATA, call)
        got = self.keys.open(p, False)
        want(got.endswith(COOKIE), 'the reply is %s' % got.hex())
        self.c.ack(call, 2, channel=channel)
        return p


def server(t):
    t.need_ours('needs the key of a service')
    return t.own(rxgk=KEY.hex(), listeners=1)


@test(51)
def test_C_051_rxgk_nonces(t):
    """Nonces of challenges: two servers started together produce no equal nonces, and no eight
    bytes at the same offset are equal."""
    servers = [server(t), server(t)]
    seen = set()
    for s in servers:
        for _ in range(30):
            c = Client(t, s)
            c.data()
            nonce = c.c.next(CHALLENGE).body
            for i in range(13):
                seen.add((i, nonce[i:i + 8]))
    equal(len(seen), 2 * 30 * 13, 'different pieces of nonces')


@test(55)
def test_C_055_rxgk(t):
    """Levels and encryption types of rxgk: the exchange, requests and replies."""
    s = server(t)
    for enctype in (17, 18, 19, 20):
        for level in (0, 1, 2):
            c = Client(t, s, level, enctype)
            c.begin()
            equal(c.reply().spare, 0, 'the key number')
            c.data(2)
            c.reply(2)
            c.data(1, channel=3)
            c.reply(1, 3)


@test(55, slow=2)
def test_C_055_refused(t):
    """RESPONSEs that a server must refuse, by an ABORT of call 0 with the code."""
    s = server(t)
    cases = [
        (BADCHALLENGE, {}, {'_nonce': bytes(20)}), (BADCHALLENGE, {}, {'_level': 1}),
        (BADCHALLENGE, {}, {'_calls': (1,)}), (BADCHALLENGE, {}, {'_calls': (1, 0, 0, 0, 0)}),
        (BADCHALLENGE, {}, {'_cid': 4}), (BADKEYNO, {}, {'number': 2}), (BADKEYNO, {}, {'number': 65535}),
        (EXPIRED, {'_expires': 1}, {}), (BAD_TOKEN, {'_kvno': 0}, {}), (BADKEYNO, {'_kvno': 6}, {}),
        (SEALED_INCON, {'_key': bytes(32)}, {}), (INCONSISTENCY, {'_names': ((3, b'x'),)}, {}),
        (INCONSISTENCY, {'_names': ((1, b'x'), (1, b'y'))}, {})]
    clients = []
    for code, made, said in cases:
        c = Client(t, s, **made)
        c.begin(**said)
        clients.append((code, made, said, c))
    for code, made, said, c in clients:     # one second later, for all of them
        p = c.c.next(ABORT)
        equal((p.call, p.code), (0, code), 'the ABORT of %s %s' % (made, said))
        equal([str(q) for q in c.c.sock.packets if q.type == DATA and c.c.mine(q)], [], 'DATA')


@test(55)
def test_C_055_accepted(t):
    """Accepted: tokens that never expire, anonymous ones, those of a GSSAPI name, trailing bytes in
    a RESPONSE."""
    s = server(t)
    for made, said in (({'_expires': 0}, {}), ({'_names': ()}, {}), ({'_names': ((2, b'alice'),)}, {}),
                       ({}, {'_tail': b'more'})):
        c = Client(t, s, **made)
        c.begin(**said)
        c.reply()


@test(55)
def test_C_055_key_numbers(t):
    """The next key: the server follows. The previous key is still accepted, one two numbers away is
    dropped."""
    s = server(t)
    for level in (1, 2):
        c = Client(t, s, level)
        c.begin()
        c.reply()
        c.data(2, number=1)
        equal(c.reply(2).spare, 1, 'the key number of a reply behind one under number 1')
        c.data(3, number=0)
        equal(c.reply(3).spare, 1, 'the key number of a reply to a late packet')
        c.data(4, number=3)
        c.data(4, number=65535)
        c.data(4, number=2)
        equal(c.reply(4).spare, 2, 'the key number two keys on')
        c.data(5, number=0)
        c.data(5, number=1)
        c.reply(5)
        equal([str(q) for q in c.c.sock.packets if q.type == ABORT and c.c.mine(q)], [], 'ABORTs')


@test(55)
def test_C_055_the_first_number(t):
    """A RESPONSE under key number 1: the connection starts with that key."""
    c = Client(t, server(t))
    c.data(number=1)
    c.respond(c.c.next(CHALLENGE), number=1)
    equal(c.reply().spare, 1, 'the key number')


@test(57)
def test_C_057_forged_rxgk(t):
    """DATA of rxgk that is modified, moved or of another level is dropped silently."""
    s = server(t)
    for level in (1, 2):
        c = Client(t, s, level)
        c.begin()
        c.reply()
        good = c.keys.seal(ask_rpc(4, 4), True, 2)
        for i in range(0, len(good), 5):
            c.c.data(2, 1, good[:i] + bytes([good[i] ^ 1]) + good[i + 1:], LAST | REQUEST)
        for body in (b'', good[:-1], good + b'\0', good[:11], ask_rpc(4, 4),
                     c.keys.seal(ask_rpc(4, 4), True, 3), c.keys.seal(ask_rpc(4, 4), True, 2, 2),
                     c.keys.seal(ask_rpc(4, 4), False, 2), c.keys.seal(ask_rpc(4, 4), True, 2, 1, 1)):
            c.c.data(2, 1, body, LAST | REQUEST)
        c.data(2, flags=LAST)
        c.reply(2)
        bad = [str(p) for p in c.c.sock.packets if c.c.mine(p) and
               (p.type == ABORT or p.call == 2 and p.type == ACK and
                p.reason in (wire.REQUESTED, wire.DUPLICATE, wire.OUT_OF_SEQUENCE))]
        equal(bad, [], 'what forged packets drew')


@test(55, 'client')
def test_C_055_a_client(t):
    """A client's RESPONSE: the token decrypts and the authenticator is correct. The call succeeds,
    and unsealed packets are dropped."""
    for enctype in (17, 18, 19, 20):
        for level in (0, 1, 2):
            listener = t.listen()
            client = t.client(listener, rxgk=KEY.hex(), level=level, enctype=enctype)
            call = client.rpc()
            end, first = listener.accept()
            equal((first.security, first.spare), (4, 0), 'the class and the key number')
            nonce = os.urandom(20)
            end.send(CHALLENGE, 0, 0, nonce)
            p = end.next(RESPONSE)
            keys = look_at_response(p, first, nonce, enctype, level)
            want(keys.open(first, True).startswith(ask_rpc(4, 4)[:4]), 'the request')
            answer = wire.pattern(0, 4) + COOKIE
            if level:
                end.data(1, 1, answer, LAST)
                end.data(1, 1, keys.seal(answer, True), LAST)
            end.data(1, 1, keys.seal(answer, False), LAST)
            code, _ = client.result(call)
            equal(code, 0, 'the code of the call')


def take_opaque(data, at):
    size = struct.unpack('>I', data[at:at + 4])[0]
    return data[at + 4:at + 4 + size], at + 4 + size + -size % 4


def look_at_response(p, first, nonce, enctype, level):
    """The keys of the connection, if the RESPONSE is as 7.4.4 requires."""
    start = struct.unpack('>q', p.body[:8])[0]
    token, at = take_opaque(p.body, 8)
    sealed, at = take_opaque(p.body, at)
    equal(at, len(p.body), 'bytes of the RESPONSE')
    kvno, key_type = struct.unpack('>ii', token[:8])
    equal((kvno, key_type), (KVNO, KEY_TYPE), 'the key of the token')
    plain = Enctype(KEY_TYPE).decrypt(KEY, TOKEN, take_opaque(token, 8)[0])
    want(plain is not None, 'the token does not open')
    equal(struct.unpack('>i', plain[:4])[0], enctype, 'the enctype of the token')
    k0, at = take_opaque(plain, 4)
    equal(struct.unpack('>I', plain[at:at + 4])[0], level, 'the level of the token')
    keys = Keys(enctype, k0, level, first.epoch, first.cid & ~3, start)
    text = keys.e.decrypt(keys.tk(p.spare), AUTHENTICATOR, sealed)
    want(text is not None, 'the authenticator does not open')
    equal(text, nonce + struct.pack('>IIIIIIIII', 0, level, first.epoch, first.cid & ~3, 4, 1, 0, 0, 0),
          'the authenticator')
    return keys
