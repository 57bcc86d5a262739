#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Kills a command when it sends its Nth request to an AFS server; run inside the namespaces, as root.

usage: kill_at.py N FILE... -- COMMAND...

Requests are counted as they pass the loopback interface: first packets of calls to the services for locations and volumes, also those
that a volume service sends to another. FILE: has the number of a process that is killed at the same time. Prints "killed COUNT", or "ended
STATUS COUNT BUSY" if the command has ended before; COUNT: all requests, of which some may have been sent after the Nth, before this
program had a processor; BUSY: packets with which a server has refused a call for the moment, since its channel
was still in use.
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import time

PORTS = (7003, 7005)
DATA, BUSY, CLIENT = 1, 3, 1


def header(frame):
    """Source address and port, destination port, and the header of an Rx packet; None: it is something else."""
    if len(frame) < 14 + 20 + 8 + 28 or frame[12:14] != b"\x08\x00" or frame[23] != 17:
        return None
    udp = 14 + (frame[14] & 15) * 4
    source, port = struct.unpack(">HH", frame[udp : udp + 4])
    rx = frame[udp + 8 : udp + 36]
    return (frame[26:30], source, port, *struct.unpack(">5I2B", rx[:22])) if len(rx) == 28 else None


def is_request(packet):
    _, _, port, _, _, _, seq, _, kind, flags = packet
    return port in PORTS and kind == DATA and flags & CLIENT and seq == 1


def count_rest(wire, seen):
    """Takes what has been sent before the end of the command."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            packet = header(wire.recv(65536))
        except TimeoutError:
            return
        if packet and is_request(packet):
            seen.add((packet[0], packet[1], packet[4], packet[5]))


def main():
    at = sys.argv.index("--")
    stop, files, command = int(sys.argv[1]), sys.argv[2:at], sys.argv[at + 1 :]
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind(("lo", 0))
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
    wire.settimeout(0.05)
    others = [int(open(name, encoding="ascii").read()) for name in files]
    seen, busy = set(), 0
    with subprocess.Popen(command, stdout=sys.stderr) as process:
        while True:
            ended = process.poll() is not None
            try:
                packet = header(wire.recv(65536))
            except TimeoutError:
                if ended:
                    break
                continue
            if not packet:
                continue
            host, source, _, _, cid, call, _, _, kind, _ = packet
            if is_request(packet):
                seen.add((host, source, cid, call))
            busy += source in PORTS and kind == BUSY
            if len(seen) >= stop and not ended and process.poll() is None:
                for pid in [process.pid, *others]:
                    os.kill(pid, signal.SIGKILL)
                process.wait()
                count_rest(wire, seen)
                print("killed", len(seen))
                return
    print("ended", process.returncode, len(seen), busy)


main()
