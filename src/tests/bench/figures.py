# SPDX-License-Identifier: BSD-2-Clause
"""Checks the figures that the ladder computes from samples: python3 figures.py SAMPLES. Status 0 if all are right."""
import sys

import calls
import classes
import ours
import page
import rungs
import samples
import spending
from measure import Failed

failures = 0


def equal(what, got, wanted):
    global failures
    if got != wanted:
        failures += 1
        print(f"{what}: {got!r}, wanted {wanted!r}")


def states(*wakes):
    return [{"type": "state", "round": n, "wake_us": w} for n, w in enumerate(wakes, 1)]


def refused(what, call):
    try:
        call()
    except Failed:
        return
    equal(what, "taken", "refused")


f = samples.Figures(samples.load(sys.argv[1]))

# Rounds of another state do not count: the third of the recorded ones.
equal("strange rounds", f.strange, {3})
equal("median", f.median("bulk", "defaults", 1, "MBps"), 3300.0)
equal("spread", round(f.spread("bulk", "defaults", 1, "MBps"), 4), round(300 / 3300, 4))
equal("one sample has no spread", f.spread("bulk", "defaults", 4, "MBps"), None)
equal("median of nothing", f.median("bulk", "defaults", 32, "MBps"), None)
equal("two rounds are no majority", samples.strange_rounds(states(10, 60)), set())
equal("dearer and cheaper", samples.strange_rounds(states(10, 10, 10, 16, 6, 14, 7)), {4, 5})

# A failed sample is dropped completely; one without a counter is kept.
equal("a failure", ("bulk", "TCP, iperf3", 1) in f.kept, False)
equal("uncounted", f.median("bulk", "OpenAFS library", 1, "MBps"), 110.0)
equal("counted alone", f.values("bulk", "defaults", 1, "syscalls_per_GB"), [20000])

equal("order", f.names("bulk")[:3],
      ["one listener, one datagram a call", "defaults", "nginx sendfile"])
equal("best", f.best("calls", "OpenAFS library rpc", "calls_per_s"), (16, 25000))
equal("best of nothing", f.best("calls", "nobody", "calls_per_s"), None)
equal("ratio to the best", page.aim_value(f, "calls_per_s", ("calls", "rxperf rpc, async", 64),
                                          ("calls", "OpenAFS library rpc", None)), 4.0)
equal("ratio to nothing", page.aim_value(f, "MBps", page.RECV, page.RAW), None)
equal("an aim for one figure", page.aim_value(f, "fairness", ("fair", "recv", 32), None), 0.8)
equal("nothing of one figure", page.aim_value(f, "fairness", ("fair", "send", 32), None), None)

# Both ends of a report: packet types, locks by name.
ends = {"transport": {"packets.sent.data": 1, "packets.sent.ack": 20,
                      "lock_contended.table": 1, "lock_contended.role": 0,
                      "lock_contended_per_Mpackets": {"table": 9.5}},
        "server": {"transport": {"packets.sent.data": 999, "packets.sent.ack": 0,
                                 "lock_contended.table": 50}}}
equal("ACKs and locks", ours.traffic(ends), {"acks_per_data": 0.02, "locks_per_Mpacket": 50000.0,
                                             "lock table": 50000.0, "lock role": 0.0})
equal("no report of the server's",
      ours.traffic({"transport": {"packets.sent.data": 4, "packets.sent.ack": 1}}),
      {"acks_per_data": 0.25})

# Each rung adds one switch to the one before, except the hand-over, which takes two.
steps = rungs.rungs()
for (_, before), (name, after) in zip(steps[:-2], steps[1:-1]):
    changed = {k for k in after if after[k] != before[k]}
    equal(name, bool(changed) and set(before) == set(after), True)
equal("the last rung", steps[-1], ("defaults", {}))
equal("listeners are the server's", rungs.options({"listeners": "2", "gso": "on"}, False),
      ["--gso", "on"])

# The output of perf, and rates computed from it.
equal("perf", spending.counted("# started\n\n144,,raw_syscalls:sys_enter,99,100.00,,\n"), 144)
equal("perf did not count", spending.counted("<not counted>,,raw_syscalls:sys_enter,0,,\n"), None)
cost = {"cpu_s": 1.0, "switches": 10, "syscalls": None}
equal("rates", spending.per_gigabyte(2_000_000_000, 4.0, cost),
      {"MBps": 500.0, "cpu_s_per_GB": 0.5, "switches_per_GB": 5.0})
equal("a counted run has no rates", spending.per_gigabyte(10**9, 1.0, {**cost, "syscalls": 7}),
      {"syscalls_per_GB": 7.0})
equal("latencies that a client does not tell", calls.per_call(
    {"calls": 10, "calls_per_s": 5.0, "p50_us": 2.0}, cost),
    {"calls_per_s": 5.0, "cpu_us_per_call": 1e5, "switches_per_call": 1.0, "p50_us": 2.0})
equal("latencies by share", calls.per_call(
    {"calls": 10, "calls_per_s": 5.0, "percentiles": [[50, 2.0], [99.9, 8]]}, cost),
    {"calls_per_s": 5.0, "cpu_us_per_call": 1e5, "switches_per_call": 1.0, "within_50": 2.0,
     "within_99.9": 8})
refused("nothing moved", lambda: spending.per_gigabyte(0, 1.0, cost))
refused("no call", lambda: calls.per_call({"calls": 0, "calls_per_s": 0}, cost))

# Security classes: the bound given by the cipher and the null class.
rate = {"20_own_seal_MBps": 400.0, "20_own_open_MBps": 800.0, "20_hmac_MBps": 1000.0,
        "fcrypt_portable_encrypt_45_MBps": 1000.0, "fcrypt_portable_decrypt_64_MBps": 500.0}.get
equal("null has no limit", classes.limit(rate, "null", 1, 4000, 2), None)
equal("clear is null's", classes.limit(rate, "rxgk clear", 1, 4000, 2), 4000)
equal("auth of rxkad is null's", classes.limit(rate, "rxkad auth", 1, 4000, 2), 4000)
equal("one stream: the slower end", round(classes.limit(rate, "rxgk crypt 20", 1, 4000, 2), 1),
      round(1 / (1 / 400 + 1 / 4000), 1))
equal("several: every core does both", round(classes.limit(rate, "rxgk crypt 20", 32, 4000, 2), 1),
      round(1 / ((1 / 400 + 1 / 800) / 2 + 1 / 4000), 1))
equal("auth has its checksum alone", round(classes.limit(rate, "rxgk auth 20", 1, 4000, 2), 1), 800.0)
equal("sealing and opening of fcrypt", classes.cipher_rates(rate, "rxkad crypt"), (1000.0, 500.0))
equal("a rate that was not measured", classes.limit(rate, "rxgk crypt 17", 1, 4000, 2), None)
equal("null was not measured", classes.limit(rate, "rxgk crypt 20", 1, None, 2), None)
moved = {"bytes": 10**9, "cpu_user_s": 1.0, "cpu_sys_s": 0.5,
         "transport": {"syscalls.send": 5, "syscalls.receive": 6, "packets.sent.data": 1,
                       "packets.sent.ack": 9},
         "server": {"cpu_user_s": 2.0, "cpu_sys_s": 0.25,
                    "transport": {"syscalls.send": 10, "gso_messages": 3,
                                  "packets.sent.data": 119}}}
equal("both ends", classes.own_figures(moved),
      {"client_cpu_s_per_GB": 1.5, "server_cpu_s_per_GB": 2.25, "io_calls_per_GB": 21.0,
       "packets_per_burst": 40.0})
measured = {("recv, null", 1): 4000.0, ("recv, rxgk crypt 20", 1): 200.0}
text = "\n".join(classes.tables(
    lambda name, x, key: rate(key) if name == classes.RATES else
    measured.get((name, x)) if key == "MBps" else None, lambda name, x, key: None, 2))
equal("a row", "| recv | 1 | rxgk crypt 20 | 200 | 364 | 0.55 | – |" in text, True)
equal("an aim that is met", "| rxgk crypt 20, MB/s received by one stream ÷ limit | 0.55 | "
      "at least 0.5 | yes |" in text, True)
equal("no table of nothing", classes.tables(lambda *_: None, lambda *_: None, 2), [])
equal("labels", [classes.is_label(n) for n in ("recv, rxkad crypt, 32", "ciphers", "rxperf recv")],
      [True, True, False])

sys.exit(1 if failures else 0)
