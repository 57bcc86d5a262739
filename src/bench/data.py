# SPDX-License-Identifier: BSD-2-Clause
"""The ladder's CSV files in doc/performance. src/bench/charts makes plots and tables from them."""
import csv
import os

import report
import rungs

STREAMS = (1, 4, 32, 100, 1000)

# (name in the samples, name in the table)
RIVALS = [
    ("raw, a thread each", "raw, one thread per stream"),
    ("raw, one thread", "raw, one thread for all"),
    ("OpenAFS library", "OpenAFS library, server sends"),
]
OTHERS = [
    ("TCP, iperf3", "TCP (iperf3)"),
    ("nginx sendfile", "nginx with sendfile"),
]
RXFSD = [("afscp bench", "rxfsd, read by afscp bench")]
THROUGHPUT = [
    ("one listener, one datagram a call", "one listener, one datagram per system call"),
    ("+ recvmmsg, sendmmsg", "+ batches (recvmmsg, sendmmsg)"),
    ("+ steering by connection", "+ steering by connection"),
    ("+ GSO", "+ GSO"),
    ("+ GRO", "+ GRO"),
    ("+ window 255", "+ window of 255 packets"),
    ("defaults", "defaults, server sends"),
    ("defaults, send", "defaults, client sends"),
    ("defaults, a socket each", "defaults, one client socket per stream"),
    *RIVALS,
    ("OpenAFS library, send", "OpenAFS library, client sends"),
    *OTHERS,
    *RXFSD,
]
CLIENTS = [
    ("defaults", "rxwire, server sends"),
    ("defaults, send", "rxwire, client sends"),
    *RXFSD,
    *RIVALS,
    *OTHERS,
]
# (name in the samples, calls in flight (none: the best number), name in the table)
CALLS = [
    ("rxperf rpc, blocking", 1, "rxwire, blocking, 1"),
    ("rxperf rpc, blocking", 64, "rxwire, blocking, 64"),
    ("rxperf rpc, async", 64, "rxwire, callbacks, 64"),
    ("rxperf rpc, async", 1024, "rxwire, callbacks, 1,024"),
    ("rxperf rpc, polling", 1, "rxwire, polling, 1"),
    ("raw datagrams, blocking", 1, "raw datagrams, blocking, 1"),
    ("raw datagrams, polling", 1, "raw datagrams, polling, 1"),
    ("raw datagrams, mmsg", 64, "raw datagrams, sendmmsg, 64"),
    ("OpenAFS library rpc", 1, "OpenAFS library, 1"),
    ("OpenAFS library rpc", None, "OpenAFS library, {} (its best)"),
    ("OpenAFS library rpc", 64, "OpenAFS library, 64"),
]


def number(value):
    return "" if value is None else report.number(value).replace(",", "")


def rate(f, key, figure):
    """A median and its spread."""
    noise = f.spread(*key, figure)
    return number(f.median(*key, figure)) + ("" if noise is None else f" ±{noise:.0%}")


def throughput(f):
    xs = (1, rungs.SEVERAL)
    yield ["configuration"] + [text for x in xs for text in
                               (f"MB/s, {x} stream{'s' if x > 1 else ''}", "CPU-s/GB")]
    for name, shown in THROUGHPUT:
        yield [shown] + [cell for x in xs for cell in
                         (rate(f, ("bulk", name, x), "MBps"),
                          number(f.median("bulk", name, x, "cpu_s_per_GB")))]


def clients(f):
    yield ["MB/s (CPU-s/GB), by streams", *(f"{x:,}" for x in STREAMS)]
    for name, shown in CLIENTS:
        cells = []
        for x in STREAMS:
            made, cost = (number(f.median("bulk", name, x, figure))
                          for figure in ("MBps", "cpu_s_per_GB"))
            cells.append(f"{made} ({cost})" if made else "")
        yield [shown, *cells]


def small_calls(f):
    yield ["program, calls in flight", "calls/s", "CPU µs per call", "median, µs", "99 %, µs"]
    for name, x, shown in CALLS:
        if x is None:
            x = (f.best("calls", name, "calls_per_s") or (0, 0))[0]
        key = ("calls", name, x)
        yield [shown.format(f"{x:,}"), rate(f, key, "calls_per_s"),
               *(number(f.median(*key, figure))
                 for figure in ("cpu_us_per_call", "p50_us", "p99_us"))]


def write(f, folder):
    """Writes the files. Rows without a value are omitted."""
    for name, rows in (("throughput", throughput(f)), ("clients", clients(f)),
                       ("small-calls", small_calls(f))):
        with open(os.path.join(folder, name + ".csv"), "w", encoding="utf-8", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows(row for row in rows if any(row[1:]))
