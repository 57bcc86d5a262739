# SPDX-License-Identifier: BSD-2-Clause
"""Packets across an emulated link, from within `lab`: what the link must do to them.

usage: probe.py CHECK. The link's settings are in link.sh, beside the names of the checks.
"""
import ctypes
import hashlib
import json
import os
import select
import socket
import sys
import threading
import time

NEAR, FAR = os.environ["RXW_NEAR4"], os.environ["RXW_FAR4"]
FOLDER = os.environ["RXW_LINK"]
IP_MTU_DISCOVER, IP_PMTUDISC_DONT, IP_PMTUDISC_DO, IP_MTU = 10, 0, 2, 14
PATIENCE = 20.0
libc = ctypes.CDLL(None, use_errno=True)


def there(make):
    """What make() returns in the far network namespace."""
    pid = os.environ["RXW_FAR"].split()[2]
    with open("/proc/thread-self/ns/net", "rb") as here, open(f"/proc/{pid}/ns/net", "rb") as far:
        assert libc.setns(far.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
        try:
            return make()
        finally:
            assert libc.setns(here.fileno(), 0) == 0


def udp(address):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 0))
    s.settimeout(PATIENCE)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    return s


def pair():
    return udp(NEAR), there(lambda: udp(FAR))


def tell(line):
    """A command of the emulator; its answer."""
    with open(os.path.join(FOLDER, "log"), encoding="utf-8") as log:
        log.seek(0, os.SEEK_END)
        with open(os.path.join(FOLDER, "commands"), "w", encoding="ascii") as f:
            f.write(line + "\n")
        text, end = "", time.monotonic() + PATIENCE
        # The reason of a refusal is a line in front of the answer.
        while not text.endswith("\n") or text.splitlines()[-1].startswith("link:"):
            text += log.read()
            assert time.monotonic() < end, f"no answer to {line}"
            time.sleep(0.005)
    return text.splitlines()[-1]


def counters():
    return json.loads(tell("counters"))


def all_of(s, count=1 << 30, pause=1.0):
    """Datagrams until there are `count`, or none came for a while: [(time, bytes)]."""
    got = []
    while len(got) < count and select.select([s], [], [], pause)[0]:
        got.append((time.monotonic(), s.recv(65535)))
    return got


def check_delay():
    """Round trip of 40 ms."""
    near, far = pair()
    times = []
    for _ in range(30):
        start = time.monotonic()
        near.sendto(b"ping", far.getsockname())
        data, who = far.recvfrom(100)
        far.sendto(data, who)
        near.recv(100)
        times.append(time.monotonic() - start)
    # Never too early; on a busy machine sometimes late.
    assert 0.040 <= min(times) < 0.060, sorted(times)


def check_rate():
    """10 Mbit/s."""
    near, far = pair()
    began = time.monotonic()
    for _ in range(200):
        near.sendto(bytes(1472), far.getsockname())
    got = all_of(far, 200, PATIENCE)
    assert len(got) == 200
    # From before the first one was sent: on a busy machine any of them may be late, but none early.
    took = got[-1][0] - began
    assert took >= 200 * 0.0012 - 0.0002, took


def check_loss():
    """Half of the packets are lost; nothing else happens to them."""
    near, far = pair()
    for i in range(1000):
        near.sendto(i.to_bytes(4, "big"), far.getsockname())
    got = [int.from_bytes(d, "big") for _, d in all_of(far)]
    c = counters()["up"]
    assert got == sorted(set(got)) and 400 < len(got) < 600, len(got)
    assert c["entered"] == 1000 and c["lost"] == 1000 - len(got), c


def check_disorder():
    """Some are held back, some come twice."""
    near, far = pair()
    for i in range(1000):
        near.sendto(i.to_bytes(4, "big"), far.getsockname())
    got = [int.from_bytes(d, "big") for _, d in all_of(far)]
    c = counters()["up"]
    assert sorted(set(got)) == list(range(1000)) and got != sorted(got)
    assert c["duplicated"] == len(got) - 1000 > 0 and c["reordered"] > 0, c


def check_queue():
    """Ten may wait."""
    near, far = pair()
    for _ in range(100):
        near.sendto(bytes(972), far.getsockname())
    got = all_of(far, pause=2)
    c = counters()["up"]
    assert 11 <= len(got) < 60 and c["overflowed"] == 100 - len(got), (len(got), c)


def sized(length, discover):
    """Sends `length` bytes of IP with DF or without. Returns what arrived, and the MTU that the sender knows."""
    near, far = pair()
    near.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, discover)
    near.connect(far.getsockname())
    data = os.urandom(length - 28)
    near.send(data)
    got = all_of(far, 1, 1.0)
    if select.select([near], [], [], 0)[0]:
        assert near.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
    assert not got or got[0][1] == data
    return len(got), near.getsockopt(socket.IPPROTO_IP, IP_MTU)


def check_mtu():
    """The path carries 1,280 bytes, and says so."""
    # Fragments, before the sender knows.
    assert sized(1400, IP_PMTUDISC_DONT)[0] == 1
    assert sized(1280, IP_PMTUDISC_DO) == (1, 1500)
    assert sized(1281, IP_PMTUDISC_DO) == (0, 1280)
    c = counters()
    assert c["reported"] == c["too_long"] == 1 and c["cut"] == 2, c


def check_hole():
    """The path carries 1,280 bytes, and does not say so, until it carries more."""
    assert sized(1400, IP_PMTUDISC_DONT)[0] == 1
    assert sized(1281, IP_PMTUDISC_DO) == (0, 1500)
    assert tell("mtu 0") == "done" and tell("mtu many") == "refused"
    assert sized(1500, IP_PMTUDISC_DO) == (1, 1500)


def check_nat():
    """The far side sees another address and port, which change."""
    near, far = pair()
    seen = []
    for _ in range(3):
        for _ in range(2):
            near.sendto(b"hello", far.getsockname())
            data, who = far.recvfrom(100)
            far.sendto(data + b" back", who)
            assert near.recv(100) == b"hello back"
            seen.append(who)
        assert tell("rebind") == "done"
    # A mapping that is gone.
    far.sendto(b"late", seen[-1])
    assert not select.select([near], [], [], 0.5)[0]
    assert seen[0] == seen[1] != seen[2] == seen[3] != seen[4] and len({a for a, _ in seen}) == 2
    assert all(a in ("10.93.1.101", "10.93.1.102") for a, _ in seen), seen
    c = counters()["nat"]
    assert c == {"mappings": 3, "rebindings": 3, "refused": 1}, c


def tcp(near_address, far_address, data):
    """Moves the bytes to the far side. Returns what came."""
    def listen():
        s = socket.socket(socket.AF_INET6 if ":" in far_address else socket.AF_INET)
        s.bind((far_address, 0))
        s.listen(1)
        return s
    server = there(listen)
    client = socket.socket(server.family)
    # It fills queues, which others avoid.
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    client.bind((near_address, 0))
    client.settimeout(PATIENCE)
    client.connect(server.getsockname())
    taken = server.accept()[0]
    taken.settimeout(PATIENCE)
    sender = threading.Thread(target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR)))
    sender.start()
    got = b"".join(iter(lambda: taken.recv(1 << 16), b""))
    sender.join()
    return got


def check_tcp():
    """The kernel hands over large packets; they are lost and marked one by one, and every byte is right."""
    data = os.urandom(1 << 20)
    for ends in ((NEAR, FAR), (os.environ["RXW_NEAR6"], os.environ["RXW_FAR6"])):
        if ":" in ends[0] and not os.path.exists("/proc/net/if_inet6"):
            continue
        got = tcp(*ends, data)
        assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest(), len(got)
    c = counters()
    # More packets than reads: they were large.
    assert c["up"]["lost"] > 0 and c["up"]["marked"] > 0, c
    assert c["read"] < c["up"]["entered"] + c["down"]["entered"], c


def ecn():
    for where in ("", os.environ["RXW_FAR"] + " "):
        status = os.system(f"{where}sh -c 'echo 1 > /proc/sys/net/ipv4/tcp_ecn'")
        assert status == 0


if __name__ == "__main__":
    if sys.argv[1] == "tcp":
        ecn()
    globals()["check_" + sys.argv[1]]()
