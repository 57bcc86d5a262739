# SPDX-License-Identifier: BSD-2-Clause
"""Other loads: fairness, small calls beside bulk data, calls at fixed rates."""
import ours
from calls import BYTES
from contest import Contestant
from measure import Failed

SMALL_RATE = 1000  # calls/s beside a bulk stream
RATES = (1000, 10000, 30000, 60000, 100000)  # calls/s
MANY_RATES = (1000, 10000, 30000)
ENDLESS = "2047M"  # bytes, the maximum of one call: more than a stream of 32 moves in 10 s
CONNECTIONS, ENDPOINTS = 10000, 1000
MANY = f"{CONNECTIONS:,} connections of {ENDPOINTS:,} endpoints"
TROUBLE = CONNECTIONS // 1000  # clients that are dead, and as many slow ones
LATENCIES = ("p50_us", "p99_us", "p999_us", "max_us")


class Fair(Contestant):
    """Equal streams for some seconds: the slowest one relative to the mean."""

    every = 2
    counted = False

    def __init__(self, place, name, x, seconds, client=("-c", "recv")):
        super().__init__(place, name)
        self.x = x
        self.seconds = seconds
        self.client = client

    def sample(self, count=False):
        # One call each, aborted at the end of the time.
        r, cost = ours.pair(self.place, [*self.client, "-b", ENDLESS, "-t", str(self.x), "-D",
                                         str(self.seconds)])
        if not r.get("bytes"):
            raise Failed("nothing was moved")
        return {"fairness": r["fairness"], "MBps": r["MBps"],
                "slowest_MB": r["stream_bytes_min"] / 1e6, "mean_MB": r["stream_bytes_mean"] / 1e6,
                "cpu_s_per_GB": cost["cpu_s"] / (r["bytes"] / 1e9)}


class Load(Contestant):
    """Calls that start at scheduled times, from which their latency counts. x: calls/s."""

    counted = False

    def __init__(self, place, name, x, seconds, client=(), every=1, server=("--short",), bad=0):
        super().__init__(place, name)
        self.x = x
        self.server = server
        self.client = ["-c", "rpc", "-S", BYTES, "-R", BYTES, "--form", "async", "--rate", str(x),
                       "--arrivals", "poisson", "-D", str(seconds), *client]
        self.every = every
        self.bad = bad

    def sample(self, count=False):
        resident = []
        r, cost = ours.pair(self.place, self.client, self.server, bad=self.bad, look=lambda server:
                            resident.append(server.status_kib("RssAnon") / 1024))
        if not r["calls"]:
            raise Failed("no call was made")
        made = {"calls_per_s": r["calls_per_s"],
                "cpu_us_per_call": cost["cpu_s"] * 1e6 / r["calls"],
                **{k: r[k] for k in (*LATENCIES, "calls_due", "calls_unfinished", "backlog_max",
                                     "pacer_late_p99_us") if r.get(k) is not None},
                "resident_MiB": resident[0]}
        if r.get("mix"):
            made["bulk_MBps"] = r["mix"]["MBps"]
        return made


def contestants(place, seconds, fair_seconds):
    """[(group, contestant)]"""
    made = [("fair", Fair(place, "recv", 32, fair_seconds)),
            ("fair", Fair(place, "send", 32, fair_seconds, ("-c", "send"))),
            ("fair", Fair(place, "recv, a socket each", 32, fair_seconds,
                          ("-c", "recv", "--endpoints", "32")))]
    mix = ("--mix", "recv", "-b", "16M")
    # No --short: bulk transfers block, and must not do so on the receiving thread.
    made += [("mix", Load(place, name, SMALL_RATE, 2 * seconds, client, server=()))
             for name, client in (
                 ("small calls alone", ()), ("beside a bulk stream", mix),
                 ("beside a bulk stream, a socket each",
                  (*mix, "--endpoints", "2", "--connections", "1")))]
    made += [("load", Load(place, "16 connections", rate, seconds, ("--connections", "16")))
             for rate in RATES]
    many = ("--connections", str(CONNECTIONS), "--endpoints", str(ENDPOINTS), "--prime")
    for rate in MANY_RATES:
        made += [("load", Load(place, MANY, rate, 2 * seconds, many, every=2)),
                 ("load", Load(place, f"{MANY}, 0.1 % dead, 0.1 % slow", rate, 2 * seconds,
                               many, every=2, bad=TROUBLE))]
    return made
