# SPDX-License-Identifier: BSD-2-Clause
"""The rungs of the ladder: the same binaries, each with one switch more than the one before."""
import os

from contest import Contestant
from measure import Failed, free_port, json_object
from spending import both_ends, per_gigabyte

SEVERAL = 32

# The lowest rung; each later one changes some of it. `listeners` is the server's alone.
BOTTOM = {"io": "msg", "batch": "1", "defer": "off", "gso": "off", "gro": "off", "steer": "hash",
          "window": "32", "listeners": "1"}


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
    "- There is no rung for thinned acknowledgements: how often the library acknowledges is no "
    "switch (once for each call of a received batch), so every rung has them. It would take a "
    "tunable for the packets that one acknowledgement may cover, 1 to half a window. What they are "
    "worth shows in the raw program: `ACKs not thinned` acknowledges every second datagram.",
    f"- The {SEVERAL} streams of a rung are calls of one client socket: by addresses they all "
    "reach one listener, by connection they spread.",
]


def options(switches, server):
    return [word for name, value in switches.items() if server or name != "listeners"
            for word in ("--" + name, value)]


class Rung(Contestant):
    """rxperf at both ends with the same switches; `x` streams."""

    def __init__(self, place, name, x, switches, command="recv", part=1.0):
        super().__init__(place, name)
        self.x = x
        self.switches = switches
        self.command = command
        self.part = part

    def sample(self, count=False):
        rxperf = self.place.program("src/tools/rxperf")
        port = free_port()
        each = max(int(self.place.bytes * self.part) // self.x, 1 << 16)
        text, _, cost = both_ends(
            [rxperf, "server", "-p", str(port), *options(self.switches, True)], [port],
            [rxperf, "client", "-c", self.command, "-s", "127.0.0.1", "-p", str(port), "-b",
             str(each), "-t", str(self.x), "--json", *options(self.switches, False)],
            self.place.log("rung"), count)
        r = json_object(rxperf, text)
        if r["bytes"] != each * self.x:
            raise Failed(f"rxperf: {r['bytes']} bytes of {each * self.x}")
        return per_gigabyte(r["bytes"], r["seconds"], cost)


def contestants(place, clients):
    """Every rung with one stream and with several; the defaults with all numbers of `clients`."""
    made = []
    for name, switches in rungs():
        # The slow rungs move less: their rates need no gigabyte.
        part = 1.0 if switches.get("gso", "on") == "on" else 0.25
        for x in [1, SEVERAL] if switches else clients:
            made.append(Rung(place, name, x, switches, part=part))
    made.append(Rung(place, "defaults, send", 1, {}, "send"))
    return made
