# SPDX-License-Identifier: BSD-2-Clause
"""Small calls, 100 bytes each way: ours, blocking and asynchronous, and OpenAFS's library's."""
import os

from contest import Contestant
from measure import Failed, free_port, json_object
from spending import both_ends

BYTES = "100"
IN_FLIGHT = (1, 4, 64)
MANY = 1024  # by callbacks only: no thread for each
CALLERS = (1, 4, 16, 64)  # threads tried with OpenAFS's library
LATENCIES = ("p50_us", "p99_us", "p999_us", "max_us")


def per_call(r, cost):
    """Figures of a client that made r["calls"] calls."""
    if not r["calls"]:
        raise Failed("no call was made")
    if cost["syscalls"] is not None:
        return {"syscalls_per_call": cost["syscalls"] / r["calls"]}
    return {"calls_per_s": r["calls_per_s"], "cpu_us_per_call": cost["cpu_s"] * 1e6 / r["calls"],
            "switches_per_call": cost["switches"] / r["calls"],
            **{k: r[k] for k in LATENCIES if k in r}}


class Rpc(Contestant):
    """rxperf rpc; the server runs each call on the thread that received it."""

    def __init__(self, place, form, x, seconds):
        super().__init__(place, f"rxperf rpc, {form}")
        self.form = form
        self.x = x
        self.seconds = seconds

    def sample(self, count=False):
        rxperf = self.place.program("src/tools/rxperf")
        port = free_port()
        text, _, cost = both_ends(
            [rxperf, "server", "-p", str(port), "--short"], [port],
            [rxperf, "client", "-c", "rpc", "-s", "127.0.0.1", "-p", str(port), "-S", BYTES, "-R",
             BYTES, "-t", str(self.x), "-C", str(min(self.x, 4)), "-D", str(self.seconds), "--form",
             self.form, "--json"], self.place.log("rpc"), count)
        return per_call(json_object(rxperf, text), cost)


class OpenAfsRpc(Contestant):
    """The same on OpenAFS's library: a thread for each call in flight, as it has no other way."""

    def __init__(self, place, x, seconds):
        super().__init__(place, "OpenAFS library rpc")
        self.x = x
        self.seconds = seconds
        self.rate = 4000  # calls/s of the last run: how many make `seconds`

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


def contestants(place, seconds):
    made = []
    for x in IN_FLIGHT:
        made += [Rpc(place, form, x, seconds) for form in ("blocking", "async")]
    made.append(Rpc(place, "async", MANY, seconds))
    return made + [OpenAfsRpc(place, x, seconds) for x in CALLERS]
