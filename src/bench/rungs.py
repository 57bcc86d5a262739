# SPDX-License-Identifier: BSD-2-Clause
"""The rungs of the ladder: the same binaries, each with one more option than the last."""
import os

import ours
from contest import Contestant
from measure import Failed
from spending import per_gigabyte

SEVERAL = 32

# The lowest rung; each later one changes some options. `listeners` applies to the server only.
BOTTOM = {"io": "msg", "gso": "off", "gro": "off", "window": "32", "listeners": "1"}

MANY = 100  # streams compared with raw ones

WORKERS = 256  # default maximum of a server
MEMORY = "2G"  # on each end with more streams than that


def listeners():
    """The number that `auto` gives a server, but at least two."""
    return str(min(8, max(2, len(os.sched_getaffinity(0)))))


def rungs():
    """[(name, all options)]; the last has none: all defaults."""
    steps = [
        ("one listener, one datagram a call", {}),
        ("+ recvmmsg, sendmmsg", {"io": "mmsg"}),
        ("+ steering by connection", {"listeners": listeners()}),
        ("+ GSO", {"gso": "on"}),
        ("+ GRO", {"gro": "on"}),
        ("+ window 255", {"window": "255"}),
    ]
    made, switches = [], dict(BOTTOM)
    for name, change in steps:
        switches = {**switches, **change}
        made.append((name, switches))
    return made + [("defaults", {})]


NOTES = [
    f"- With more than {WORKERS} concurrent streams both ends have `--memory {MEMORY}`, and the "
    "server one worker per stream.",
]


def options(switches, server):
    return [word for name, value in switches.items() if server or name != "listeners"
            for word in ("--" + name, value)]


def share(x):
    """Factor for the bytes that `x` streams move, so that each leaves slow start."""
    return 4 if x >= 1000 else 1


class Rung(Contestant):
    """rxperf at both ends with the same options; `x` streams."""

    def __init__(self, place, name, x, switches, command="recv", part=1.0, more=()):
        super().__init__(place, name)
        self.x = x
        self.switches = switches
        self.command = command
        self.part = part
        self.more = more  # options of the client only

    def sample(self, count=False):
        each = max(int(self.place.bytes * self.part) // self.x, 1 << 16)
        # All run at once: more than the default workers and packet memory allow.
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
    """Every rung with one stream and with several; the defaults with each number of `clients`."""
    made = []
    for name, switches in rungs():
        # Slow rungs move less data.
        slow = switches.get("gso", "on") == "off"
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
