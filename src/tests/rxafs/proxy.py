# SPDX-License-Identifier: BSD-2-Clause
"""A proxy between clients and a file server that delays the replies of some calls; all else passes at once, callbacks too. Prints its
port. proxy.py CONTROL PORT: lines of the named pipe CONTROL are "OPCODE MILLISECONDS", or "0 0": no delays any more."""

import heapq
import os
import selectors
import socket
import struct
import sys
import time

HEADER = struct.Struct('>IIIIIBBBBHH')      # epoch, cid, call, seq, serial, type, flags, status, security, spare, service
DATA, CLIENT_INITIATED = 1, 1


class Proxy:
    def __init__(self, control, port):
        self.server = ('127.0.0.1', port)
        self.delays, self.calls, self.late, self.count = {}, {}, [], 0
        self.ways = {}      # socket towards the server by address of the client
        self.selector = selectors.DefaultSelector()
        self.front = self.open_socket()
        self.selector.register(self.front, selectors.EVENT_READ, None)
        print(self.front.getsockname()[1], flush=True)
        self.control, self.rest = os.open(control, os.O_RDWR | os.O_NONBLOCK), b''
        self.selector.register(self.control, selectors.EVENT_READ, 'control')

    @staticmethod
    def open_socket():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        s.bind(('127.0.0.1', 0))
        s.setblocking(False)
        return s

    def read_control(self):
        self.rest += os.read(self.control, 4096)
        *lines, self.rest = self.rest.split(b'\n')
        for line in lines:
            opcode, delay = map(int, line.split())
            if opcode:
                self.delays[opcode] = delay / 1000
            else:
                self.delays.clear()

    def from_client(self, packet, address):
        way = self.ways.get(address)
        if not way:
            way = self.ways[address] = self.open_socket()
            self.selector.register(way, selectors.EVENT_READ, address)
        if len(packet) >= HEADER.size + 4:
            epoch, cid, call, seq, _, kind, flags, *_ = HEADER.unpack_from(packet)
            if kind == DATA and flags & CLIENT_INITIATED and seq == 1:
                self.calls[address, epoch, cid & ~3, cid & 3] = call, struct.unpack_from('>I', packet, HEADER.size)[0]
        way.sendto(packet, self.server)

    def delay_of(self, packet, address):
        if len(packet) < HEADER.size:
            return 0
        epoch, cid, call, _, _, kind, flags, *_ = HEADER.unpack_from(packet)
        if kind != DATA or flags & CLIENT_INITIATED:
            return 0
        known = self.calls.get((address, epoch, cid & ~3, cid & 3))
        return self.delays.get(known[1], 0) if known and known[0] == call else 0

    def from_server(self, packet, address):
        delay = self.delay_of(packet, address)
        if not delay:
            self.front.sendto(packet, address)
            return
        self.count += 1
        heapq.heappush(self.late, (time.monotonic() + delay, self.count, packet, address))

    def send_late(self):
        while self.late and self.late[0][0] <= time.monotonic():
            _, _, packet, address = heapq.heappop(self.late)
            self.front.sendto(packet, address)

    @staticmethod
    def receive(from_socket):
        while True:
            try:
                yield from_socket.recvfrom(65536)
            except BlockingIOError:
                return
            except ConnectionError:
                continue        # of an earlier packet

    def run(self):
        while True:
            wait = self.late[0][0] - time.monotonic() if self.late else None
            for key, _ in self.selector.select(None if wait is None else max(0, wait)):
                if key.data == 'control':
                    self.read_control()
                elif key.data:
                    for packet, _ in self.receive(key.fileobj):
                        self.from_server(packet, key.data)
                else:
                    for packet, address in self.receive(self.front):
                        self.from_client(packet, address)
            self.send_late()


Proxy(sys.argv[1], int(sys.argv[2])).run()
