#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Kills a command when it sends its Nth request to an AFS server; run inside the namespaces, as root.

usage: kill_at.py N FILE... -- COMMAND...

Requests are counted as they pass the loopback interface: first packets of calls to the services for locations and volumes, also those
that a volume service sends to another. FILE: has the number of a process that is killed at the same time. Prints "killed", or "ended
STATUS COUNT" if the command has ended before.
"""
import os
import signal
import socket
import struct
import subprocess
import sys

PORTS = (7003, 7005)
DATA, CLIENT = 1, 1


def request(frame):
    """What tells the call of a request from others; None: it is something else."""
    if len(frame) < 14 + 20 + 8 + 28 or frame[12:14] != b"\x08\x00" or frame[23] != 17:
        return None
    udp = 14 + (frame[14] & 15) * 4
    source, port = struct.unpack(">HH", frame[udp : udp + 4])
    rx = frame[udp + 8 : udp + 36]
    if port not in PORTS or len(rx) < 28:
        return None
    _, cid, call, seq, _, kind, flags = struct.unpack(">5I2B", rx[:22])
    return (frame[26:30], source, cid, call) if kind == DATA and flags & CLIENT and seq == 1 else None


def main():
    at = sys.argv.index("--")
    stop, files, command = int(sys.argv[1]), sys.argv[2:at], sys.argv[at + 1 :]
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind(("lo", 0))
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
    wire.settimeout(0.05)
    others = [int(open(name, encoding="ascii").read()) for name in files]
    seen = set()
    with subprocess.Popen(command, stdout=sys.stderr) as process:
        while True:
            ended = process.poll() is not None
            try:
                call = request(wire.recv(65536))
            except TimeoutError:
                if ended:
                    break
                continue
            if call:
                seen.add(call)
            if len(seen) >= stop and not ended and process.poll() is None:
                for pid in [process.pid, *others]:
                    os.kill(pid, signal.SIGKILL)
                process.wait()
                print("killed")
                return
    print("ended", process.returncode, len(seen))


main()
