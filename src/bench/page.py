# SPDX-License-Identifier: BSD-2-Clause
"""The ladder's section of doc/notes/performance.md: medians, targets, notes, plots."""
import statistics

import classes
import load
import rungs
from report import number

BEGIN = "<!-- ladder:begin -->"
END = "<!-- ladder:end -->"

LATENCY = (("p50_us", "50 %"), ("p99_us", "99 %"), ("p999_us", "99.9 %"), ("max_us", "maximum"))

# Targets: text, figure, (group, name, x), (group, name, x) or None, at least or at most.
# The value is the ratio of the two, or that of the one. An x of None is the best one measured.
OPENAFS, OPENAFS_SEND = ("bulk", "OpenAFS library", 1), ("bulk", "OpenAFS library, send", 1)
RECV, SEND = ("bulk", "defaults", 1), ("bulk", "defaults, send", 1)
RAW, RAW_EACH = ("bulk", "raw, a thread each", 1), ("bulk", "raw, a thread each", rungs.MANY)
RAW_ONE = ("bulk", "raw, one thread", rungs.MANY)
MANY = ("bulk", "defaults", rungs.MANY)
AIMS = [
    ("MB/s received, one stream ÷ OpenAFS's library", "MBps", RECV, OPENAFS, ">=", 15),
    ("MB/s sent, one stream ÷ OpenAFS's library", "MBps", SEND, OPENAFS_SEND, ">=", 15),
    ("CPU-s/GB received ÷ OpenAFS's library", "cpu_s_per_GB", RECV, OPENAFS, "<=", 0.05),
    ("CPU-s/GB sent ÷ OpenAFS's library", "cpu_s_per_GB", SEND, OPENAFS_SEND, "<=", 0.05),
    ("MB/s received, one stream ÷ raw GSO", "MBps", RECV, RAW, ">=", 0.75),
    ("MB/s received, 100 streams ÷ raw GSO, one thread per stream", "MBps", MANY, RAW_EACH,
     ">=", 0.75),
    ("MB/s received, 100 streams ÷ raw GSO, one sending thread and socket", "MBps", MANY,
     RAW_ONE, ">=", 0.55),
    ("CPU-s/GB received, one stream ÷ raw GSO", "cpu_s_per_GB", RECV, RAW, "<=", 1.35),
    ("CPU-s/GB received, 100 streams ÷ raw GSO, one thread per stream", "cpu_s_per_GB", MANY,
     RAW_EACH, "<=", 1.35),
    ("CPU-s/GB received, 100 streams ÷ raw GSO, one sending thread and socket",
     "cpu_s_per_GB", MANY, RAW_ONE, "<=", 1.35),
    ("MB/s of afscp bench, 32 clients ÷ nginx sendfile", "MBps", ("bulk", "afscp bench", 32),
     ("bulk", "nginx sendfile", 32), ">=", 0.7),
    ("small calls/s, 1 in flight ÷ raw datagrams, blocking", "calls_per_s",
     ("calls", "rxperf rpc, blocking", 1), ("calls", "raw datagrams, blocking", 1), ">=", 1),
    ("small calls/s, 1 in flight, polling at both ends ÷ raw datagrams, polling", "calls_per_s",
     ("calls", "rxperf rpc, polling", 1), ("calls", "raw datagrams, polling", 1), ">=", 0.75),
    ("small calls/s, 64 in flight ÷ raw sendmmsg and recvmmsg", "calls_per_s",
     ("calls", "rxperf rpc, async", 64), ("calls", "raw datagrams, mmsg", 64), ">=", 0.6),
    ("small calls/s, 64 in flight ÷ OpenAFS's library at its best", "calls_per_s",
     ("calls", "rxperf rpc, async", 64), ("calls", "OpenAFS library rpc", None), ">=", 4),
    ("ACK packets per DATA packet, window 255", "acks_per_data", RECV, None, "<=", 1 / 32),
    ("bytes of the slowest of 32 streams ÷ mean of all", "fairness", ("fair", "recv", 32), None,
     ">=", 0.7),
    ("the same, sent by the client", "fairness", ("fair", "send", 32), None, ">=", 0.7),
    ("99 % of 1,000 small calls/s during a bulk stream: µs ÷ alone", "p99_us",
     ("mix", "beside a bulk stream", 1000), ("mix", "small calls alone", 1000), "<=", 4),
    ("99 % of 10,000 calls/s with dead and slow clients: µs ÷ without", "p99_us",
     ("load", load.MANY + ", 0.1 % dead, 0.1 % slow", 10000), ("load", load.MANY, 10000), "<=",
     1.25),
]


# The bulk contestants whose locks are shown.
# Names in the samples, and on the page.
LABELS = {
    "one listener, one datagram a call": "one listener, one datagram per system call",
    "defaults, a socket each": "defaults, one client socket per stream",
    "raw, a thread each": "raw GSO, one thread per stream",
    "raw, one thread": "raw GSO, one thread for all",
    "recv, a socket each": "recv, one client socket per stream",
    "beside a bulk stream": "during a bulk stream",
    "beside a bulk stream, a socket each": "during a bulk stream, separate sockets",
}
LOCKED = ("defaults", "defaults, send", "defaults, a socket each")


def rate(f, group, name, x, figure):
    """A median and its spread, as a table cell."""
    middle, noise = f.median(group, name, x, figure), f.spread(group, name, x, figure)
    return number(middle) + ("" if noise is None else f" ±{noise:.0%}")


def heading(f):
    a = f.about
    lines = [f"Revision {a.get('revision', 'unknown')}; medians of {a.get('rounds', '?')} "
             f"alternating rounds. Each moves {a.get('bytes', 0) / 2**20:g} MiB over loopback "
             "(four times as much with 1,000 streams, an eighth without GSO, a 16th or less with "
             "OpenAFS's library). Threads are not pinned unless a row says so. ± is half the range of "
             "the rounds.", ""]
    machine = list(a.get("machine", []))
    for figure, text in (("core_to_core_ns", "core to core {} ns"),
                         ("wake_us", "wake-up of a thread on the other core {} µs")):
        values = [s[figure] for s in f.states if figure in s]
        if values:
            machine.append(text.format(f"{statistics.median(values):g} ({min(values):g} to "
                                       f"{max(values):g})"))
    lines.append("Machine: " + "; ".join(machine) + ".")
    if f.strange:
        lines.append(f"{len(f.strange)} of {len(f.states)} rounds found the machine in another "
                     "state and are not counted.")
    return lines


COLUMNS = (("cpu_s_per_GB", "CPU-s/GB"), ("syscalls_per_GB", "system calls/GB"),
           ("switches_per_GB", "context switches/GB"), ("acks_per_data", "ACK/DATA"))


def ladder_table(f):
    """One row per rung and rival, with one stream and several."""
    xs = (1, rungs.SEVERAL)
    width = 1 + len(COLUMNS)
    out = ["| configuration | " + " | ".join(
        " | ".join([f"MB/s, {x}", *(text for _, text in COLUMNS)]) for x in xs) + " |",
        "| --- |" + " --- |" * width * len(xs)]
    for name in f.names("bulk"):
        if not set(xs) & set(f.xs("bulk", name)):
            continue
        measured = any(("bulk", name, x) in f.kept for x in xs)
        why = [f.skipped[("bulk", name, x)] for x in xs if ("bulk", name, x) in f.skipped]
        if not measured:
            out.append(f"| {name} | {'SKIP: ' + why[0] if why else ''} |" +
                       " |" * (width * len(xs) - 1))
            continue
        cells = [name]
        for x in xs:
            cells.append(rate(f, "bulk", name, x, "MBps"))
            cells += [number(f.median("bulk", name, x, figure)) for figure, _ in COLUMNS]
        out.append("| " + " | ".join(cells) + " |")
    return out


def scaling(f):
    """Names of bulk contestants measured with more numbers of clients than the rungs."""
    return [n for n in f.names("bulk") if set(f.xs("bulk", n)) - {1, rungs.SEVERAL} and
            any(("bulk", n, x) in f.kept for x in f.xs("bulk", n))]


def clients_table(f):
    names = scaling(f)
    if not names:
        return []
    xs = sorted({x for n in names for x in f.xs("bulk", n)})
    out = ["", "MB/s (and CPU-s/GB) by number of clients:", "",
           "| configuration | " + " | ".join(str(x) for x in xs) + " |",
           "| --- |" + " --- |" * len(xs)]
    for name in names:
        cells = []
        for x in xs:
            if ("bulk", name, x) in f.kept:
                cpu = number(f.median("bulk", name, x, "cpu_s_per_GB"))
                cells.append(f"{rate(f, 'bulk', name, x, 'MBps')} ({cpu})")
            else:
                cells.append("–")
        out.append(f"| {name} | " + " | ".join(cells) + " |")
    return out


def calls_table(f):
    rows = []
    for name in f.names("calls"):
        for x in f.xs("calls", name):
            key = ("calls", name, x)
            if key not in f.kept:
                rows.append(f"| {name} | {x} | SKIP: {f.skipped.get(key, '')} |" + " |" * 7)
                continue
            cells = [name, str(x), rate(f, *key, "calls_per_s")]
            cells += [number(f.median(*key, figure)) for figure in
                      ("cpu_us_per_call", "syscalls_per_call", "switches_per_call",
                       *(figure for figure, _ in LATENCY))]
            rows.append("| " + " | ".join(cells) + " |")
    if not rows:
        return []
    return ["", "Small calls, 100 bytes each way; percentiles of the round trip in µs:", "",
            "| configuration | in flight | calls/s | CPU µs/call | system calls/call | "
            "context switches/call | " + " | ".join(text for _, text in LATENCY) + " |",
            "| --- |" + " --- |" * 9, *rows]


def fair_table(f):
    rows = []
    for name in f.names("fair"):
        for x in f.xs("fair", name):
            key = ("fair", name, x)
            if key not in f.kept:
                rows.append(f"| {name} | {x} | SKIP: {f.skipped.get(key, '')} | | |")
                continue
            rows.append(f"| {name} | {x} | {rate(f, *key, 'fairness')} | "
                        f"{rate(f, *key, 'MBps')} | {number(f.median(*key, 'cpu_s_per_GB'))} |")
    if not rows:
        return []
    return ["", "Equal concurrent streams; the slowest stream relative to the mean:", "",
            "| configuration | streams | slowest ÷ mean | MB/s, all | CPU-s/GB |",
            "| --- | --- | --- | --- | --- |", *rows]


def load_table(f):
    """Open loop: mixes and rates."""
    figures = (*LATENCY, ("pacer_late_p99_us", "the generator itself, 99 %"))
    rows = []
    for group in ("mix", "load"):
        for name in f.names(group):
            for x in f.xs(group, name):
                key = (group, name, x)
                if key not in f.kept:
                    rows.append(f"| {name} | {x:,} | SKIP: {f.skipped.get(key, '')} |" +
                                " |" * (len(figures) + 3))
                    continue
                cells = [name, f"{x:,}", number(f.median(*key, "calls_per_s")),
                         number(f.median(*key, "cpu_us_per_call"))]
                cells += [number(f.median(*key, figure)) for figure, _ in figures]
                cells += [number(f.median(*key, "resident_MiB")), rate(f, *key, "bulk_MBps")]
                rows.append("| " + " | ".join(cells) + " |")
    if not rows:
        return []
    return ["", "Calls at a fixed rate (open loop, Poisson); µs from the scheduled time to the "
            "reply:", "", "| configuration | scheduled/s | answered/s | CPU µs/call | " +
            " | ".join(text for _, text in figures) + " | resident MiB, server | MB/s of the bulk "
            "stream |", "| --- |" + " --- |" * (5 + len(figures)), *rows]


def locks_table(f):
    """Contended locks; a lock without contention has no column."""
    keys = [key for key in f.order if f.median(*key, "locks_per_Mpacket") is not None and
            not (key[0] == "bulk" and key[1] not in LOCKED)]
    names = sorted({name for key in keys for r in f.kept[key] for name in r
                    if name.startswith("lock ") and r[name] >= 0.5})
    if not keys:
        return []
    out = ["", "Contended lock acquisitions per million packets, both ends:", "",
           "| configuration | streams, calls | all | " +
           " | ".join(n.split(" ", 1)[1] for n in names) + " |",
           "| --- |" + " --- |" * (2 + len(names))]
    for key in sorted(keys, key=lambda k: (f.names(k[0]).index(k[1]), k[2])):
        out.append("| " + " | ".join([key[1], str(key[2]), *(
            f"{f.median(*key, figure):,.0f}" for figure in ("locks_per_Mpacket", *names))]) + " |")
    return out


def labelled(line):
    """A table row with the label of its first cell."""
    for name, label in LABELS.items():
        if line.startswith(f"| {name} |"):
            return f"| {label} |" + line[len(name) + 4:]
    return line


def aim_value(f, figure, one, other):
    """The ratio of two medians, or the single median; None if one was not measured."""
    values = []
    for key in (one, other):
        if key is None:
            values.append(1)
        elif key[2] is None:
            best = f.best(*key[:2], figure)
            values.append(best[1] if best else None)
        else:
            values.append(f.median(*key, figure))
    return values[0] / values[1] if values[0] is not None and values[1] else None


def aims_table(f):
    out = ["", "| target | measured | required | met |", "| --- | --- | --- | --- |"]
    rows = [(text, aim_value(f, figure, one, other), sense, bound)
            for text, figure, one, other, sense, bound in AIMS]
    rows += [(r["text"], r["value"], r["sense"], r["bound"]) for r in f.made("aim")]
    for text, value, sense, bound in rows:
        verdict = "not measured"
        if value is not None:
            verdict = "yes" if (value >= bound if sense == ">=" else value <= bound) else "**no**"
        out.append(f"| {text} | {number(value)} | {'at least' if sense == '>=' else 'at most'} "
                   f"{bound:g} | {verdict} |")
    return out


def made_tables(f):
    """Tables and notes from separate programs, unchanged."""
    out = []
    for r in f.made("table", "note", "skip-program"):
        if r["type"] == "note":
            out += ["", "- " + r["text"]]
        elif r["type"] == "skip-program":
            out += ["", f"- SKIP {r['program']}: {r['why']}"]
        else:
            out += ["", r["title"] + ":", "", "| " + " | ".join(r["head"]) + " |",
                    "|" + " --- |" * len(r["head"])]
            out += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in r["rows"]]
    return out


def markdown(f, plots, why_none=None):
    """`plots`: [(title, path relative to the page)]."""
    out = heading(f) + [""] + ladder_table(f) + [""] + rungs.NOTES
    out += clients_table(f) + calls_table(f) + fair_table(f) + load_table(f) + locks_table(f)
    out += classes.tables(lambda name, x, key: f.median("class", name, x, key),
                          lambda name, x, key: f.spread("class", name, x, key),
                          f.about.get("cores", 2))
    out = [labelled(line) for line in out + made_tables(f)] + aims_table(f)
    out += [line for title, path in plots for line in ("", f"![{title}]({path})")]
    if why_none:
        out += ["", f"Plots: SKIP: {why_none}."]
    return "\n".join(out) + "\n"
