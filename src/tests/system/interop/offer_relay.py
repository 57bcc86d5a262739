#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A UDP relay that records each datagram in a pcap file, and loses each N-th of either direction.

usage: offer_relay.py ADDRESS:PORT[,PORT...] SERVER[:PORT] FILE [LOST [FROM [NAMESPACE]]]

Datagrams to a PORT of ADDRESS go to the same port of SERVER, or to its one PORT, from a socket of each client.
LOST: 0 = none. FROM: the address of these sockets. NAMESPACE: a file; clients are in that network namespace.
SIGUSR1 begins a new file, FILE.1 and so on. Ends on SIGTERM.
"""
import ctypes
import os
import selectors
import signal
import socket
import struct
import sys
import time

MAGIC = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)  # raw IP
BUFFER = 4 << 20


def enter(path):
    """The thread's network namespace becomes that of the file."""
    fd = os.open(path, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)


def udp(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (33, socket.SO_RCVBUF):  # SO_RCVBUFFORCE first
        try:
            s.setsockopt(socket.SOL_SOCKET, option, BUFFER)
            break
        except OSError:
            pass
    s.bind((address, port))
    s.setblocking(False)
    return s


class Relay:
    def __init__(self, name, lost):
        self.name, self.lost = name, lost
        self.files, self.file = 0, None
        self.seen = [0, 0]
        self.next_file()

    def next_file(self, *_):
        name = self.name if self.files == 0 else "%s.%d" % (self.name, self.files)
        if self.file:
            self.file.close()
        self.file = open(name, "wb", buffering=0)
        self.file.write(MAGIC)
        self.files += 1
        self.seen = [0, 0]

    def record(self, up, port, data):
        """The server is 10.0.0.1, clients are 10.0.0.2. Returns True if the datagram is to be lost."""
        ends = [(0x0A000002, 1), (0x0A000001, port)]
        (src, sport), (dst, dport) = ends if up else ends[::-1]
        size = 28 + len(data)
        now = time.time_ns() // 1000
        head = struct.pack(">BBHHHBBHII", 0x45, 0, size & 0xFFFF, 0, 0, 64, 17, 0, src, dst)
        head += struct.pack(">HHHH", sport, dport, (8 + len(data)) & 0xFFFF, 0)
        self.file.write(struct.pack("<IIII", now // 1000000, now % 1000000, size, size) + head + data)
        self.seen[up] += 1
        return self.lost and self.seen[up] % self.lost == 0


def main():
    listen, server, name = sys.argv[1:4]
    lost = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    source = sys.argv[5] if len(sys.argv) > 5 else ""
    address, ports = listen.split(":")
    server, _, only = server.partition(":")
    relay, ours, clients = Relay(name, lost), selectors.DefaultSelector(), {}
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    if len(sys.argv) > 6:
        enter(sys.argv[6])
    for port in ports.split(","):
        ours.register(udp(address, int(port)), selectors.EVENT_READ, (None, int(port)))
    enter("/proc/self/fd/%d" % here)
    signal.signal(signal.SIGUSR1, relay.next_file)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("ready", flush=True)
    while True:
        for key, _ in ours.select():
            back, port = key.data
            try:
                data, sender = key.fileobj.recvfrom(65536)
            except OSError:
                continue  # a port that is closed
            up = back is None
            if up and (port, sender) not in clients:
                clients[port, sender] = s = udp(source, 0)
                s.connect((server, int(only) if only else port))
                ours.register(s, selectors.EVENT_READ, ((key.fileobj, sender), port))
            if relay.record(up, port, data):
                continue
            try:
                if up:
                    clients[port, sender].send(data)
                else:
                    back[0].sendto(data, back[1])
            except OSError:
                pass


main()
