# SPDX-License-Identifier: BSD-2-Clause
"""The rungs of the ladder: the same binaries, each with one switch more than the one before."""
import os

import ours
from contest import Contestant
from measure import Failed
from spending import per_gigabyte

SEVERAL = 32

# The lowest rung; each later one changes some of it. `listeners` is the server's alone.
BOTTOM = {"io": "msg", "batch": "1", "defer": "off", "gso": "off", "gro": "off", "steer": "hash",
          "ack-packets": "2", "window": "32", "listeners": "1"}

MANY = 100  # streams that are held against raw ones

WORKERS = 256  # that a server has by default, at most
MEMORY = "2G"  # of each end with more streams than that


def listeners():
    """As many as `auto` gives a server, but at least two: one hands nothing over."""
    return str(min(8, max(2, len(os.sched_getaffinity(0)))))


def rungs():
    """[(name, every switch)]; the last has none: all defaults."""
    steps = [
        ("one listener, one datagram a call", {}),
        # Each packet reaches another listener than the one its connection belongs to.
        ("+ listeners that hand over", {"listeners": listeners(), "steer": "wrong"}),
        ("+ recvmmsg, sendmmsg", {"io": "mmsg", "batch": "32"}),
        ("+ deferred sends", {"defer": "on"}),
        ("+ SO_REUSEPORT by addresses", {"steer": "hash"}),
        ("+ steering by connection", {"steer": "cid"}),
        ("+ GSO", {"gso": "on"}),
        ("+ GRO", {"gro": "on"}),
        ("+ thinned ACKs", {"ack-packets": "auto"}),
        ("+ window 255", {"window": "255"}),
    ]
    made, switches = [], dict(BOTTOM)
    for name, change in steps:
        switches = {**switches, **change}
        made.append((name, switches))
    return made + [("defaults", {})]


NOTES = [
    "- The library has no several listeners on one socket. The rung shows what a hand-over costs: "
    "of the sockets of one port the kernel picks one that is not the connection's own, for every "
    "packet.",
    f"- With more than {WORKERS} streams at a time both ends have `--memory {MEMORY}` and the "
    "server as many workers.",
    f"- The {SEVERAL} streams of a rung are calls of one client socket: by addresses they all "
    "reach one listener, by connection they spread.",
]


def options(switches, server):
    return [word for name, value in switches.items() if server or name != "listeners"
            for word in ("--" + name, value)]


def share(x):
    """Part of the bytes that so many streams move: each shall get out of its slow start."""
    return 4 if x >= 1000 else 1


class Rung(Contestant):
    """rxperf at both ends with the same switches; `x` streams."""

    def __init__(self, place, name, x, switches, command="recv", part=1.0, more=()):
        super().__init__(place, name)
        self.x = x
        self.switches = switches
        self.command = command
        self.part = part
        self.more = more  # options of the client alone

    def sample(self, count=False):
        each = max(int(self.place.bytes * self.part) // self.x, 1 << 16)
        # All at a time: more than workers and memory for packets by default allow.
        memory = ["--memory", MEMORY] if self.x > WORKERS else []
        workers = ["--workers-max", str(self.x)] if self.x > WORKERS else []
        r, cost = ours.pair(self.place,
                            ["-c", self.command, "-b", str(each), "-t", str(self.x), *self.more,
                             *memory, *options(self.switches, False)],
                            [*options(self.switches, True), *workers, *memory], count)
        if r["bytes"] != each * self.x:
            raise Failed(f"rxperf: {r['bytes']} bytes of {each * self.x}")
        rates = per_gigabyte(r["bytes"], r["seconds"], cost)
        return rates if count else {**rates, **ours.traffic(r)}


def contestants(place, clients):
    """Every rung with one stream and with several; the defaults with all numbers of `clients`."""
    made = []
    for name, switches in rungs():
        # The slow rungs move less: their rates need no gigabyte.
        slow = switches.get("gso", "on") == "off" or switches.get("ack-packets") == "2"
        for x in [1, SEVERAL] if switches else clients:
            made.append(Rung(place, name, x, switches, part=1 / 8 if slow else share(x)))
    made += [Rung(place, "defaults, send", x, {}, "send", share(x)) for x in clients]
    for x in clients:
        if x > 1:
            made.append(Rung(place, "defaults, a socket each", x, {}, "recv", share(x),
                             ("--endpoints", str(x))))
    if MANY in clients:
        made.append(Rung(place, "defaults, window 32", MANY, {"window": "32"}))
    return made
