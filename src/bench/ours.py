# SPDX-License-Identifier: BSD-2-Clause
"""rxperf at both ends: its options, and results in its report besides rates and times."""
import shutil

from contest import Missing
from measure import free_port, json_object
from spending import both_ends

RXPERF = "src/rxperf/rxperf"
LOCK = "lock_contended."


def pinned(command, cpu):
    """The command pinned to one processor, or unpinned for None."""
    if cpu is None:
        return command
    if not shutil.which("taskset"):
        raise Missing("taskset is not installed (Debian package: util-linux)")
    return ["taskset", "-c", str(cpu), *command]


def offered(place, options):
    """Those options, if rxperf supports them. Raises Missing otherwise."""
    for word in options:
        if word.startswith("--") and not place.offers(RXPERF, word):
            raise Missing(f"rxperf has no {word}")
    return [*options]


def pair(place, client, server=(), count=False, cpus=(None, None), look=None, bad=0):
    """
    A server and a client with these options. `cpus`: of client and server; `bad`: numbers of dead and of
    slow clients beside the client. Returns (the client's report, resources used by both).
    """
    rxperf = place.program(RXPERF)
    port = free_port()
    beside = [place.program("src/bench/bad_clients"), str(port), str(bad), str(bad)] if bad else None
    text, _, cost = both_ends(
        pinned([rxperf, "server", "-p", str(port), *offered(place, server)], cpus[1]), [port],
        pinned([rxperf, "client", "-s", "127.0.0.1", "-p", str(port), "--json",
                *offered(place, client)], cpus[0]), place.log("rxperf"), count, look=look,
        beside=beside)
    return json_object(rxperf, text), cost


def counted(end, prefix):
    """The sum of the counters of an end whose names begin with this."""
    return sum(n for name, n in end.items() if name.startswith(prefix) and isinstance(n, int))


def traffic(r):
    """ACK packets per DATA packet, and contended locks, of both ends."""
    ends = [r.get("transport") or {}, (r.get("server") or {}).get("transport") or {}]
    data, acks = (sum(e.get("packets.sent." + kind, 0) for e in ends) for kind in ("data", "ack"))
    packets = sum(counted(e, "packets.sent.") for e in ends)
    made = {"acks_per_data": acks / data} if data else {}
    locks = {}
    for e in ends:
        for name, n in e.items():
            if name.startswith(LOCK):
                lock = name[len(LOCK):]
                locks[lock] = locks.get(lock, 0) + n
    if packets and locks:
        made["locks_per_Mpacket"] = sum(locks.values()) * 1e6 / packets
        made.update({f"lock {name}": n * 1e6 / packets for name, n in locks.items()})
    return made
