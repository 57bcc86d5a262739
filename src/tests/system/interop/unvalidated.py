#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Opens connections from many addresses of 10/8, all local to this machine, with one packet each.

usage: unvalidated.py PORT RATE SECONDS     RATE: connections a second

To be run in a network namespace of its own, with `ip route add local 10.0.0.0/8 dev lo`. Nothing is read
and nothing answered, so none of them ever proves its address.
"""
import os
import socket
import struct
import sys
import time

HOSTS = 1000
DATA, CLIENT_INITIATED, LAST_PACKET = 1, 1, 4
FILE_SERVICE, GET_TIME = 1, 153


def first_packet():
    """DATA 1 of call 1 of a new connection."""
    epoch, cid = struct.unpack("!II", os.urandom(8))
    return struct.pack("!IIIIIBBBBHHI", epoch | 1, cid & ~3, 1, 1, 1, DATA, CLIENT_INITIATED | LAST_PACKET,
                       0, 0, 0, FILE_SERVICE, GET_TIME)


def main():
    port, rate, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    hosts = []
    for i in range(HOSTS):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((f"10.200.{i >> 8}.{i & 255}", 0))
        s.setblocking(False)
        hosts.append(s)
    begin = time.monotonic()
    sent = 0
    while (elapsed := time.monotonic() - begin) < seconds:
        while sent < elapsed * rate:
            try:
                hosts[sent % HOSTS].sendto(first_packet(), ("10.77.0.1", port))
            except OSError:
                pass  # lost, as on a network
            sent += 1
        # Evenly spaced, so that a place becomes free now and then.
        time.sleep(0.0001)
    print(f"{sent} connections in {elapsed:.1f} s")


main()
