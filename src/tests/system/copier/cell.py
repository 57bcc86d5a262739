# SPDX-License-Identifier: BSD-2-Clause
"""A scripted cell on loopback: a location server and file servers with answers that a test chooses.

Packets are those of ../conformance/wire.py. Answers are sent again until they are acknowledged;
nothing else here follows from the protocol unless an answer says so."""

import itertools
import os
import select
import socket
import struct
import threading
import time

import wire

PAYLOAD = 1400
WINDOW = 16         # packets of an answer that may be unacknowledged
AGAIN = 0.1         # seconds until they are retransmitted
VOLUME = 0x20000001
FILE, DIRECTORY, LINK = 1, 2, 3

# Opcodes.
FETCH_STATUS, BULK_STATUS, FETCH_DATA, GIVE_UP_ALL = 132, 65536, 65537, 65539
GIVE_UP = 147
STORE_STATUS, REMOVE_FILE, CREATE_FILE, RENAME, STORE_DATA = 135, 136, 137, 138, 65538
MAKE_DIRECTORY, REMOVE_DIRECTORY = 141, 142
ENTRY_BY_NAME_U, ADDRESSES_U = 527, 533

BAD_ARGUMENTS, BAD_OPCODE = -453, -455      # abort codes


def words(*values):
    return struct.pack('>%dI' % len(values), *[v & 0xffffffff for v in values])


class Answer:
    """The answer to a call: data, then (`then`) its end, nothing, or bytes or empty packets
    without end. Or an abort, with `ends` of the whole connection. mute: not even PINGs are answered. forgotten: the
    server is killed before it answers, and started again: it has carried out the call, and knows nothing of it."""

    def __init__(self, data=b'', then='end', abort=None, mute=False, ends=False, forgotten=False):
        self.data, self.then, self.abort, self.mute, self.ends = data, then, abort, mute, ends
        self.forgotten = forgotten
        self.whole = -(-len(data) // PAYLOAD)

    def packet(self, seq):
        """(payload, is the last one), or None: no more packets."""
        if seq <= self.whole:
            piece = self.data[(seq - 1) * PAYLOAD:seq * PAYLOAD]
            return piece, self.then == 'end' and seq == self.whole
        if self.then == 'end':
            return (b'', True) if seq == 1 and not self.whole else None
        if self.then == 'bytes':
            return bytes(PAYLOAD), False
        if self.then == 'empty':
            return b'', False
        return None


SILENT = Answer(then='nothing')     # alive, since PINGs are answered
MUTE = Answer(then='nothing', mute=True)


class Call:
    def __init__(self, packet, to):
        self.packet, self.to = packet, to
        self.request = {}
        self.answer = None
        self.first = self.next = 1      # acknowledged below this; next to send
        self.sent = 0.0


class Server:
    """One UDP socket and its thread. handle(opcode, arguments, call) -> Answer."""

    def __init__(self, handle, host='127.0.0.1', port=0):
        self.handle = handle
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.s.bind((host, port))
        self.port = self.s.getsockname()[1]
        self.calls = {}
        self.serial = itertools.count(1)
        self.asked = []                 # (opcode, arguments) of all calls
        self.client = None              # address of the latest client
        self.answers = []               # to calls of this server to the client
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def close(self):
        self.ended.set()
        self.thread.join()
        self.s.close()

    def run(self):
        while not self.ended.is_set():
            if select.select([self.s], [], [], 0.02)[0]:
                datagram, to = self.s.recvfrom(65536)
                p = wire.Packet.decode(datagram)
                if p:
                    self.take(p, to)
            for call in list(self.calls.values()):
                self.send_more(call)

    def send(self, like, kind, seq, body, flags, to, whole=False):
        cid, call = (like.cid & ~3, 0) if whole else (like.cid, like.call)
        p = wire.Packet(like.epoch, cid, call, seq, next(self.serial), kind, flags, 0, 0,
                        0, like.service, body)
        self.s.sendto(p.encode(), to)

    def take(self, p, to):
        if not p.flags & wire.CLIENT:
            self.answers.append(p)      # to a call of this server
            return
        key = (to, p.epoch, p.cid)
        call = self.calls.get(key)
        if p.type == wire.DATA:
            if call is None or call.packet.call < p.call:
                call = self.calls[key] = Call(p, to)
            self.take_data(call, p)
        elif p.type == wire.ACK and p.ack and call and call.packet.call == p.call:
            self.take_ack(call, p)
        elif p.type == wire.ABORT and call and call.packet.call == p.call:
            del self.calls[key]

    def take_data(self, call, p):
        for seq, _, flags, _, payload in p.members():
            call.request[seq] = (payload, flags & wire.LAST)
        last = [s for s, (_, last) in call.request.items() if last]
        if call.answer or not last or len(call.request) != last[0]:
            return
        text = b''.join(call.request[s][0] for s in sorted(call.request))
        opcode, arguments = struct.unpack('>I', text[:4])[0], text[4:]
        self.client = call.to
        self.asked.append((opcode, arguments))
        call.answer = self.answer_to(opcode, arguments, call)
        if call.answer.forgotten:
            del self.calls[(call.to, p.epoch, p.cid)]
        elif call.answer.abort is not None:
            self.send(call.packet, wire.ABORT, 0, words(call.answer.abort), 0, call.to, call.answer.ends)
        elif not call.answer.mute:
            self.acknowledge(call, p, wire.DELAY)

    def answer_to(self, opcode, arguments, call):
        """A request that is too short gets an abort, as from a real server, and a line in the test's log:
        it may come from a client of the port's previous owner."""
        try:
            return self.handle(opcode, arguments, call)
        except struct.error:
            print('the server at port %d got opcode %d with %d bytes of arguments from %s:%d' %
                  (self.port, opcode, len(arguments), *call.to), flush=True)
            return Answer(abort=BAD_ARGUMENTS)

    def acknowledge(self, call, p, reason):
        body = wire.Ack(first=len(call.request) + 1, serial=p.serial, reason=reason).encode()
        self.send(call.packet, wire.ACK, 0, body, wire.SLOW_START_OK, call.to)

    def take_ack(self, call, p):
        call.first = max(call.first, p.ack.first)
        call.next = max(call.next, call.first)
        if p.ack.reason == wire.PING and not (call.answer and call.answer.mute):
            self.acknowledge(call, p, wire.PING_RESPONSE)

    def send_more(self, call):
        a = call.answer
        if not a or a.abort is not None:
            return
        if call.next > call.first and time.monotonic() - call.sent > AGAIN:
            call.next = call.first
        while call.next < call.first + WINDOW:
            piece = a.packet(call.next)
            if piece is None:
                return
            self.send(call.packet, wire.DATA, call.next, piece[0],
                      (wire.LAST if piece[1] else 0) |
                      (wire.REQUEST if call.next % 4 == 0 or piece[1] else 0), call.to)
            call.next += 1
            call.sent = time.monotonic()

    def call_client(self, opcode, arguments=b''):
        """A call to the callback service of the latest caller; True if it is answered."""
        epoch = int.from_bytes(os.urandom(4), 'big') | 0x80000000
        p = wire.Packet(epoch, 0x7000, 1, 1, 1, wire.DATA, wire.CLIENT | wire.LAST, 0, 0, 0, 1,
                        words(opcode) + arguments)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            self.s.sendto(p.encode(), self.client)
            time.sleep(0.1)
            if any(q.epoch == epoch and q.type == wire.DATA for q in self.answers):
                return True
        return False


# ---- answers of file servers ----

def status(kind, length, version=7, mode=0o644, code=0, rights=9, mtime=981173106):
    return words(1, kind, 2 if kind == DIRECTORY else 1, length, version, 0, 0, rights, rights, mode, 1, 1, 1, mtime, 981173106, 0, 0,
                 version >> 32, 0, length >> 32, code)


CALLBACK = words(1, 3600, 2)
SYNC = words(1, 0, 0, 0, 0, 0)


def directory(names):
    """The image of a directory; names: (name, vnode)."""
    pages = []
    hashes = [0] * 128
    left = iter([(b'.', 1), (b'..', 1)] + [(n.encode(), v) for n, v in names])
    entry = next(left)
    while entry or not pages:
        first = 13 if not pages else 1
        used = [s < first for s in range(64)]
        page = bytearray(2048)
        slot = first
        while entry:
            name, vnode = entry
            count = 1 + (len(name) + 16) // 32
            if slot + count > 64:
                break
            h = 0
            for c in name:
                h = (h * 173 + c) & 0xffffffff
            bucket = h & 127
            if bucket and h >= 0x80000000:
                bucket = 128 - bucket
            struct.pack_into('>BxHII', page, 32 * slot, 1, hashes[bucket], vnode, 1)
            page[32 * slot + 12:32 * slot + 12 + len(name)] = name
            hashes[bucket] = len(pages) * 64 + slot
            used[slot:slot + count] = count * [True]
            slot += count
            entry = next(left, None)
        struct.pack_into('>xxHB', page, 0, 1234, 64 - sum(used))
        for s in range(64):
            page[5 + s // 8] |= used[s] << (s % 8)
        pages.append(page)
    struct.pack_into('>H', pages[0], 0, len(pages))
    for i in range(128):
        pages[0][32 + i] = pages[i][4] if i < len(pages) else 64
    struct.pack_into('>128H', pages[0], 160, *hashes)
    return b''.join(bytes(p) for p in pages)


class Volume:
    """Objects by vnode: (kind, contents); calls are answered from them unless a test does."""

    def __init__(self, objects, version=7):
        self.objects, self.version = objects, version

    def status_of(self, vnode):
        kind, data = self.objects[vnode]
        return status(kind, len(data), self.version, 0o755 if kind == DIRECTORY else 0o644)

    def bulk_status_of(self, vnode):
        return self.status_of(vnode)

    def __call__(self, opcode, arguments, call):
        if opcode in (GIVE_UP_ALL, GIVE_UP):
            return Answer()
        if opcode == BULK_STATUS:
            count = struct.unpack('>I', arguments[:4])[0]
            fids = struct.unpack('>%dI' % (3 * count), arguments[4:4 + 12 * count])
            return Answer(words(count) + b''.join(self.bulk_status_of(v) for v in fids[1::3]) +
                          words(count) + count * CALLBACK + SYNC)
        if opcode not in (FETCH_STATUS, FETCH_DATA):
            return Answer(abort=BAD_OPCODE)
        vnode = struct.unpack('>I', arguments[4:8])[0]
        if vnode not in self.objects:
            return Answer(abort=102)
        if opcode == FETCH_STATUS:
            return Answer(self.status_of(vnode) + CALLBACK + SYNC)
        offset, length = struct.unpack('>QQ', arguments[12:28])
        data = self.objects[vnode][1][offset:offset + length]
        return Answer(struct.pack('>Q', len(data)) + data + self.status_of(vnode) + CALLBACK + SYNC)


class Writable(Volume):
    """A directory whose files can be changed by anybody: `names` has their vnodes, and each change makes a version."""

    def __init__(self, files):
        super().__init__({})
        self.names, self.mtimes, self.versions, self.next = {}, {}, {}, 2
        for name, data in files.items():
            self.make(name, data)

    def make(self, name, data=b'', mtime=981173106, kind=FILE):
        self.version += 1
        vnode = self.names[name] = self.next + (kind == DIRECTORY)
        self.next += 2
        self.objects[vnode], self.mtimes[vnode], self.versions[vnode] = (kind, data), mtime, 1
        return vnode

    def contents(self, name):
        return self.objects[self.names[name]][1]

    def remove(self, name):
        self.version += 1
        del self.objects[self.names.pop(name)]

    def rename(self, old, new):
        self.version += 1
        vnode = self.names.pop(old)
        if new in self.names:
            del self.objects[self.names[new]]
        self.names[new] = vnode

    def status_of(self, vnode):
        if vnode == 1:
            return status(DIRECTORY, len(directory(self.names.items())), self.version, 0o755, rights=127)
        kind, data = self.objects[vnode]
        return status(kind, len(data), self.versions[vnode], 0o755 if kind == DIRECTORY else 0o644, rights=127,
                      mtime=self.mtimes[vnode])

    def bulk_status_of(self, vnode):
        return self.status_of(vnode) if vnode in self.objects else status(0, 0, code=102)

    def store(self, vnode, arguments):
        offset, length, end = struct.unpack('>QQQ', arguments[36:60])
        data = self.objects[vnode][1].ljust(offset, b'\0')
        data = data[:offset] + arguments[60:60 + length] + data[offset + length:]
        self.objects[vnode] = (FILE, data[:end].ljust(end, b'\0'))
        self.versions[vnode] += 1

    def __call__(self, opcode, arguments, call):
        self.objects[1] = (DIRECTORY, directory(self.names.items()))
        if opcode not in (CREATE_FILE, STORE_DATA, STORE_STATUS, RENAME, REMOVE_FILE, MAKE_DIRECTORY,
                          REMOVE_DIRECTORY):
            return super().__call__(opcode, arguments, call)
        vnode, _, length = struct.unpack('>III', arguments[4:16])
        if opcode in (STORE_DATA, STORE_STATUS):
            if vnode not in self.objects:
                return Answer(abort=102)
            if struct.unpack('>I', arguments[12:16])[0] & 1:
                self.mtimes[vnode] = struct.unpack('>I', arguments[16:20])[0]
            if opcode == STORE_DATA:
                self.store(vnode, arguments)
            return Answer(self.status_of(vnode) + SYNC)
        name, rest = text_of(arguments[12:])
        if opcode in (CREATE_FILE, MAKE_DIRECTORY):
            if name in self.names:
                return Answer(abort=17)
            mtime = struct.unpack('>I', rest[4:8])[0]
            made = (self.make(name, mtime=mtime) if opcode == CREATE_FILE else
                    self.make(name, directory([]), mtime, DIRECTORY))
            return Answer(words(VOLUME, made, 1) + self.status_of(made) + self.status_of(1) + CALLBACK + SYNC)
        if name not in self.names:
            return Answer(abort=2)
        if opcode == RENAME:
            self.rename(name, text_of(rest[12:])[0])
            return Answer(2 * self.status_of(1) + SYNC)
        self.remove(name)
        return Answer(self.status_of(1) + SYNC)


def text_of(xdr):
    """A string at the beginning, and what is behind it."""
    length = struct.unpack('>I', xdr[:4])[0]
    return xdr[4:4 + length].decode(), xdr[4 + length + -length % 4:]


class Location:
    """A location server of one volume at `hosts`; `addresses` lists several for each site."""

    def __init__(self, hosts=('127.0.0.1',), addresses=None):
        self.hosts, self.addresses = hosts, addresses

    def __call__(self, opcode, arguments, call):
        if opcode == ENTRY_BY_NAME_U:
            return Answer(self.entry())
        if opcode == ADDRESSES_U:
            site = struct.unpack('>I', arguments[16:20])[0]
            there = self.addresses[site]
            return Answer(arguments[16:60] + words(1, len(there), len(there), *there))
        return Answer(abort=BAD_OPCODE)

    def entry(self):
        sites = range(len(self.addresses or self.hosts))
        name = b'vol'
        numbers = b''
        for i in range(13):
            one = i if self.addresses else address(self.hosts[i]) if i in sites else 0
            numbers += words(one, *[0] * 10)
        # One site has the read-write volume; several have the read-only one.
        writable = len(sites) == 1
        kind = (4 if writable else 2) | (0x10 if self.addresses else 0)
        flags = [kind if i in sites else 0 for i in range(13)]
        return (words(*[name[i] if i < len(name) else 0 for i in range(65)]) + words(len(sites)) +
                numbers + words(*[1] * 13) + words(*[0] * 13) + words(*flags) +
                (words(VOLUME, 0, 0) + words(0, 0x1000, 0, *[0] * 8) if writable else
                 words(VOLUME - 1, VOLUME, 0) + words(0, 0x2000, 0, *[0] * 8)))


def address(host):
    return struct.unpack('>I', socket.inet_aton(host))[0]
