# SPDX-License-Identifier: BSD-2-Clause
"""Small calls, 100 bytes each way: our API variants, OpenAFS's library, and raw datagrams."""
import os

import ours
from contest import Contestant
from measure import Failed, free_port, json_object
from spending import alone, both_ends

BYTES = "100"
IN_FLIGHT = (1, 4, 64)
MANY = 1024  # with callbacks only: no thread per call
CALLERS = (1, 4, 16, 64)  # threads tried with OpenAFS's library
LATENCIES = ("p50_us", "p99_us", "p999_us", "max_us")
APART, TOGETHER = (0, 1), (0, 0)  # processors of client and server


def per_call(r, cost):
    """Figures of a client that made r["calls"] calls."""
    if not r["calls"]:
        raise Failed("no call was made")
    if cost["syscalls"] is not None:
        return {"syscalls_per_call": cost["syscalls"] / r["calls"]}
    return {"calls_per_s": r["calls_per_s"], "cpu_us_per_call": cost["cpu_s"] * 1e6 / r["calls"],
            "switches_per_call": cost["switches"] / r["calls"],
            **{k: r[k] for k in LATENCIES if k in r},
            **{f"within_{share:g}": us for share, us in r.get("percentiles", ())}}


class Rpc(Contestant):
    """rxperf rpc; the server runs each call on the thread that received it."""

    def __init__(self, place, name, form, x, seconds, cpus=(None, None), client=(), server=()):
        super().__init__(place, name)
        self.form = form
        self.x = x
        self.seconds = seconds
        self.cpus = cpus
        self.client = client
        self.server = server

    def sample(self, count=False):
        r, cost = ours.pair(self.place,
                            ["-c", "rpc", "-S", BYTES, "-R", BYTES, "-t", str(self.x), "-C",
                             str(min(self.x, 4)), "-D", str(self.seconds), "--form", self.form,
                             *self.client], ["--short", *self.server], count, self.cpus)
        made = per_call(r, cost)
        return made if count else {**made, **ours.traffic(r)}


class RawCall(Contestant):
    """src/bench/rawcall: the size of such a call's packets, each way."""

    def __init__(self, place, name, mode, x, seconds, cpus=(None, None)):
        super().__init__(place, name)
        self.x = x
        self.options = ["--mode", mode, "--outstanding", str(x), "--seconds", str(seconds)]
        if cpus[0] is not None:
            self.options += ["--pin", f"{cpus[0]},{cpus[1]}"]

    def sample(self, count=False):
        rawcall = self.place.program("src/bench/rawcall")
        text, _, cost = alone([rawcall, *self.options], count)
        return per_call(json_object(rawcall, text), cost)


class OpenAfsRpc(Contestant):
    """The same with OpenAFS's library: one thread per call in flight, its only way."""

    def __init__(self, place, x, seconds):
        super().__init__(place, "OpenAFS library rpc")
        self.x = x
        self.seconds = seconds
        self.rate = 4000  # calls/s of the last run, to choose the number for `seconds`
        if x > 16:  # it loses packets, and then waits for timeouts
            self.every, self.counted = 4, False

    def sample(self, count=False):
        folder = self.place.openafs_programs()
        client = os.path.join(folder, "afsrx_client")
        port = free_port()
        times = max(int(self.rate * self.seconds / self.x), 10)
        text, _, cost = both_ends(
            [os.path.join(folder, "afsrx_server"), "-p", str(port), "--hot-thread"], [port],
            [client, "-c", "rpc", "-s", "127.0.0.1", "-p", str(port), "-S", BYTES, "-R", BYTES,
             "-t", str(self.x), "-C", str(min(self.x, 4)), "-T", str(times)],
            self.place.log("afsrx-rpc"), count)
        r = json_object(client, text)
        if r.get("error") or r["calls"] != times * self.x:
            raise Failed(f"afsrx_client: {r['calls']} of {times * self.x} calls, error "
                         f"{r.get('error')}")
        self.rate = r["calls_per_s"]
        return per_call(r, cost)


def alone_in_flight(place, seconds):
    """One call at a time: the CPUs of the two ends and their sleeping determine the result."""
    made = [RawCall(place, "raw datagrams, blocking", "block", 1, seconds)]
    apart = APART if max(APART) < len(os.sched_getaffinity(0)) else (None, None)
    # The client polls in any case, while it waits for a short reply.
    made += [Rpc(place, "rxperf rpc, polling", "blocking", 1, seconds, apart,
                 server=["--listeners", "1", "--poll-us", "1000"]),
             RawCall(place, "raw datagrams, polling", "poll", 1, seconds, apart)]
    for text, cpus in (("a core each", APART), ("one core", TOGETHER)):
        if max(cpus) < len(os.sched_getaffinity(0)):
            made += [Rpc(place, f"rxperf rpc, blocking, {text}", "blocking", 1, seconds, cpus),
                     RawCall(place, f"raw datagrams, blocking, {text}", "block", 1, seconds, cpus)]
    return made


def contestants(place, seconds):
    made = []
    for x in IN_FLIGHT:
        made += [Rpc(place, f"rxperf rpc, {form}", form, x, seconds)
                 for form in ("blocking", "async")]
    made.append(Rpc(place, "rxperf rpc, async", "async", MANY, seconds))
    made += alone_in_flight(place, seconds)
    made += [RawCall(place, f"raw datagrams, {mode}", mode, x, seconds)
             for mode in ("mmsg", "bursts") for x in (IN_FLIGHT[-1], MANY)]
    return made + [OpenAfsRpc(place, x, seconds) for x in CALLERS]
