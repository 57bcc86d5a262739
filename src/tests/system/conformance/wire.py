# SPDX-License-Identifier: BSD-2-Clause
"""Rx packets as bytes, written from the specification's tables alone, independent of librxwire."""

import struct
from dataclasses import dataclass, field

DATA, ACK, BUSY, ABORT, ACKALL, CHALLENGE, RESPONSE, DEBUG = range(1, 9)
PARAMS, VERSION = 9, 13
TYPES = {1: 'DATA', 2: 'ACK', 3: 'BUSY', 4: 'ABORT', 5: 'ACKALL', 6: 'CHALLENGE', 7: 'RESPONSE',
         8: 'DEBUG', 9: 'PARAMS', 13: 'VERSION'}

CLIENT, REQUEST, LAST, MORE, OLD, JUMBO = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
SLOW_START_OK = 0x20
EXTENDED = 0x08          # of an ACK: wide windows are offered (rx-wide-windows, rule 1)

REQUESTED, DUPLICATE, OUT_OF_SEQUENCE, EXCEEDS_WINDOW, NOSPACE = 1, 2, 3, 4, 5
PING, PING_RESPONSE, DELAY, IDLE = 6, 7, 8, 9

HEADER = struct.Struct('>5I4B2H')
MEMBER = 1412


def signed(word):
    """An ABORT code: a word as a signed number."""
    return word - (1 << 32) if word & 0x80000000 else word


@dataclass
class Ack:
    """The body of an ACK; trailer is the list of words present."""
    first: int = 1
    previous: int = 0
    serial: int = 0
    reason: int = DELAY
    entries: bytes = b''
    trailer: list = field(default_factory=lambda: [1444, 1444, 255, 1])
    padding: bytes = bytes(3)
    tail: bytes = b''           # after the trailer: probes
    space: int = 0              # bufferSpace and maxSkew
    count: int = None           # nAcks, if it shall be wrong

    def encode(self):
        n = len(self.entries) if self.count is None else self.count
        body = struct.pack('>4I2B', self.space, self.first, self.previous, self.serial,
                           self.reason, n)
        words = struct.pack('>%dI' % len(self.trailer), *self.trailer)
        return body + self.entries + self.padding + words + self.tail

    @staticmethod
    def decode(body):
        if len(body) < 18:
            return None
        space, first, previous, serial, reason, n = struct.unpack('>4I2B', body[:18])
        if len(body) < 18 + n:
            return None
        rest = body[21 + n:]
        words = min(len(rest) // 4, 4)
        return Ack(first, previous, serial, reason, body[18:18 + n],
                   list(struct.unpack('>%dI' % words, rest[:4 * words])), body[18 + n:21 + n],
                   rest[4 * words:], space)


@dataclass
class Packet:
    """One datagram; `at` is the time when the kernel received it, in seconds."""
    epoch: int = 0
    cid: int = 0                # including the channel
    call: int = 0
    seq: int = 0
    serial: int = 0
    type: int = DATA
    flags: int = 0
    status: int = 0
    security: int = 0
    spare: int = 0
    service: int = 0
    body: bytes = b''
    at: float = 0.0
    address: tuple = None

    def encode(self):
        return HEADER.pack(self.epoch, self.cid, self.call, self.seq, self.serial, self.type,
                           self.flags, self.status, self.security, self.spare,
                           self.service) + self.body

    @staticmethod
    def decode(datagram, at=0.0, address=None):
        if len(datagram) < HEADER.size:
            return None
        return Packet(*HEADER.unpack(datagram[:28]), datagram[28:], at, address)

    @property
    def size(self):
        return HEADER.size + len(self.body)

    @property
    def channel(self):
        return self.cid & 3

    @property
    def ack(self):
        return Ack.decode(self.body) if self.type == ACK else None

    @property
    def reason(self):
        a = self.ack
        return a.reason if a else None

    @property
    def code(self):
        if self.type != ABORT or len(self.body) < 4:
            return None
        return signed(struct.unpack('>I', self.body[:4])[0])

    def members(self):
        """(seq, serial, flags, spare, payload) of each packet of the datagram."""
        seq, serial, flags, spare, rest = self.seq, self.serial, self.flags, self.spare, self.body
        while flags & JUMBO and len(rest) >= MEMBER + 4:
            yield seq, serial, flags, spare, rest[:MEMBER]
            flags, _, spare = struct.unpack('>BBH', rest[MEMBER:MEMBER + 4])
            rest = rest[MEMBER + 4:]
            seq += 1
            serial += 1
        yield seq, serial, flags, spare, rest

    def __str__(self):
        text = '%s %08x.%08x call %d seq %d serial %d flags %02x' % (
            TYPES.get(self.type, 'type %d' % self.type), self.epoch, self.cid, self.call, self.seq,
            self.serial, self.flags)
        if self.security:
            text += ' class %d' % self.security
        if self.type == ACK and self.ack:
            a = self.ack
            text += ' reason %d first %d previous %d serial %d entries %s trailer %s' % (
                a.reason, a.first, a.previous, a.serial, a.entries.hex() or '-', a.trailer)
        elif self.type == ABORT:
            text += ' code %s' % self.code
        else:
            text += ' %d bytes' % len(self.body)
        return text


def jumbogram(packet, payloads, flags):
    """One datagram of several DATA packets with these `flags`. JUMBO is added if another
    follows."""
    body = b''
    for i, payload in enumerate(payloads):
        more = JUMBO if i + 1 < len(payloads) else 0
        if i == 0:
            packet.flags = flags[0] | more
        else:
            body += struct.pack('>BBH', flags[i] | more, 0, 0)
        body += payload
    packet.body = body
    return packet


def pattern(at, length):
    """Bytes at..at+length of a stream of the endpoint under test."""
    return bytes((i * 167 + (i >> 8) * 13) & 0xff for i in range(at, at + length))


def padding(ack):
    """The three bytes between the entries and the trailer. An offer has a version there."""
    return b'\0\4\0' if ack.flags & EXTENDED else bytes(3)


def fault(packet, client):
    """The error in a packet's bytes alone (C-002, C-004, C-026, C-061), or None. `client`: it comes
    from the client."""
    if packet.type in (VERSION, DEBUG):
        return None
    if client and packet.type == ABORT and packet.serial == 0 and packet.code == -2:
        return None     # stateless: the answer to a packet for an unknown service
    if bool(packet.flags & CLIENT) != client:
        return 'CLIENT_INITIATED is wrong (C-004)'
    known = {DATA: CLIENT | REQUEST | LAST | MORE | JUMBO, ACK: CLIENT | REQUEST | SLOW_START_OK | EXTENDED}
    if packet.flags & ~known.get(packet.type, CLIENT):
        return 'unknown flags are set (C-002)'
    if packet.type == DATA and packet.seq == 0:
        return 'DATA with seq 0 (C-006)'
    if packet.type != DATA and packet.seq != 0:
        return 'seq is not 0'
    if packet.type not in (DATA, RESPONSE) and packet.spare != 0:
        return 'spare is not 0 (C-061)'
    if packet.type == DATA and packet.security == 0 and packet.spare != 0:
        return 'spare is not 0 (C-061)'
    if packet.type == ABORT and (len(packet.body) != 4 or packet.code == 0):
        return 'ABORT without a code (C-017)'
    if packet.type == BUSY and packet.body:
        return 'BUSY with a payload (C-015)'
    if packet.type == ACK:
        a = packet.ack
        if a is None:
            return 'an ACK that is too short (C-026)'
        if len(a.trailer) != 4:
            return 'a trailer of %d words (C-026)' % len(a.trailer)
        if a.padding != padding(packet) or any(a.tail) or a.space:
            return 'padding of an ACK is not zero (C-026, C-061)'
        if not packet.flags & SLOW_START_OK:
            return 'SLOW_START_OK is missing'
        if a.reason == PING and not packet.flags & REQUEST:
            return 'a PING without REQUEST_ACK'
        if any(e > 1 for e in a.entries):
            return 'entries of an ACK are not 0 or 1 (C-027)'
    return None
