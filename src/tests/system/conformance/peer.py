# SPDX-License-Identifier: BSD-2-Clause
"""The scripted peer: a UDP socket, and either end of a connection on it that sends on request.

It never answers automatically. Tests wait for events, with a time limit that only a hung endpoint
reaches. To show that no packet was sent they use a fence: the answer to a later packet.
"""

import itertools
import os
import random
import select
import socket
import struct
import time

import wire
from wire import Ack, Packet

LIMIT = float(os.environ.get('RXW_CONFORMANCE_LIMIT', '30'))
SO_TIMESTAMPNS = 35


class Failed(Exception):
    """A check failed."""


class Skipped(Exception):
    """The check is not possible here."""


def want(condition, text):
    if not condition:
        raise Failed(text)


def equal(got, wanted, what):
    want(got == wanted, '%s is %s, not %s' % (what, got, wanted))


class Socket:
    """A UDP socket on loopback (or towards `host`) that records its traffic."""

    def __init__(self, host='127.0.0.1', bind=None, port=0):
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        local = host.startswith('127.')
        self.s.bind((bind or ('127.0.0.1' if local else '0.0.0.0'), port))
        self.port = self.s.getsockname()[1]
        self.trace = []         # readable lines
        self.packets = []       # all received packets
        self.waiting = []       # received, not yet consumed
        self.began = time.monotonic()

    def close(self):
        self.s.close()

    def note(self, arrow, what):
        self.trace.append('%8.1f ms %s %s' % (1000 * (time.monotonic() - self.began), arrow, what))

    def send(self, datagram, to):
        self.note('->', Packet.decode(datagram) or '%d bytes' % len(datagram))
        self.s.sendto(datagram, to)

    def read(self, seconds):
        """Receives one datagram into `waiting`. False if none arrived."""
        if not select.select([self.s], [], [], max(0.0, seconds))[0]:
            return False
        datagram, control, _, address = self.s.recvmsg(65536, 64)
        at = time.time()
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(data) >= 16:
                sec, nsec = struct.unpack('@qq', data[:16])
                at = sec + nsec / 1e9
        p = Packet.decode(datagram, at, address)
        self.note('<-', p or '%d bytes' % len(datagram))
        if p:
            self.packets.append(p)
            self.waiting.append(p)
        return True

    def next(self, match, limit=None, what='a packet'):
        """The first waiting packet accepted by `match`. Earlier ones stay in the queue."""
        until = time.monotonic() + (limit if limit is not None else LIMIT)
        seen = 0
        while True:
            for i in range(seen, len(self.waiting)):
                if match(self.waiting[i]):
                    return self.waiting.pop(i)
            seen = len(self.waiting)
            left = until - time.monotonic()
            if left <= 0 or not self.read(left):
                raise Failed('%s did not come' % what)

    def drain(self, seconds=0.0):
        """Consumes all waiting packets and those that arrive within this time."""
        until = time.monotonic() + seconds
        while self.read(until - time.monotonic()):
            pass
        taken, self.waiting = self.waiting, []
        return taken


class End:
    """One end of a connection: fills in the header and counts serials."""

    random = random.SystemRandom()

    def __init__(self, sock, to, service, client=True, epoch=None, cid=None, security=0):
        self.sock, self.to, self.service, self.client = sock, to, service, client
        self.epoch = epoch if epoch is not None else self.random.getrandbits(31) | 0x80000000
        self.cid = (cid if cid is not None else self.random.getrandbits(32)) & ~3
        self.security = security
        self.serial = itertools.count(1)
        self.last_serial = 0

    def packet(self, kind, call=1, seq=0, body=b'', flags=0, channel=0, **fields):
        self.last_serial = fields.pop('serial', None) or next(self.serial)
        p = Packet(self.epoch, self.cid | channel, call, seq, self.last_serial, kind,
                   flags | (wire.CLIENT if self.client else 0), 0, self.security, 0, self.service,
                   body)
        for name, value in fields.items():
            setattr(p, name, value)
        return p

    def send(self, kind, *args, **fields):
        p = self.packet(kind, *args, **fields)
        self.sock.send(p.encode(), self.to)
        return p

    def data(self, call=1, seq=1, body=b'', flags=wire.LAST, **fields):
        return self.send(wire.DATA, call, seq, body, flags, **fields)

    def ack(self, call=1, first=1, reason=wire.DELAY, flags=0, channel=0, header=None, **fields):
        """An ACK. `header` has fields of the packet, the other arguments those of its body."""
        if reason == wire.PING:
            flags |= wire.REQUEST
        return self.send(wire.ACK, call, 0, Ack(first=first, reason=reason, **fields).encode(),
                         flags | wire.SLOW_START_OK, channel, **(header or {}))

    def ping(self, call=1, first=1, **fields):
        return self.ack(call, first, wire.PING, **fields)

    def abort(self, code, call=1, **fields):
        return self.send(wire.ABORT, call, 0, struct.pack('>i', code), **fields)

    def mine(self, p):
        return p.epoch == self.epoch and p.cid & ~3 == self.cid

    def next(self, kind=None, call=None, reason=None, seq=None, limit=None, match=None, channel=None):
        def fits(p):
            return (self.mine(p) and (kind is None or p.type == kind) and
                    (call is None or p.call == call) and (seq is None or p.seq == seq) and
                    (channel is None or p.channel == channel) and
                    (reason is None or p.reason in (reason if isinstance(reason, tuple)
                                                    else (reason,))) and
                    (match is None or match(p)))
        what = wire.TYPES.get(kind, 'a packet')
        if reason is not None:
            what += ' of reason %s' % (reason,)
        if call is not None:
            what += ' for call %d' % call
        if seq is not None:
            what += ', seq %d,' % seq
        return self.sock.next(fits, limit, what)

    def fence(self, call=1, first=1, channel=0, limit=None):
        """Sends a PING and waits for the answer, so that answers to earlier packets have arrived.
        Consumes and returns all packets received on the connection meanwhile."""
        serial = self.ping(call, first, channel=channel).serial
        self.next(wire.ACK, call, wire.PING_RESPONSE, limit=limit,
                  match=lambda p: p.ack.serial == serial)
        before = [p for p in self.sock.waiting if self.mine(p)]
        self.sock.waiting = [p for p in self.sock.waiting if not self.mine(p)]
        return before
