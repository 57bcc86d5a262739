# SPDX-License-Identifier: BSD-2-Clause
"""What the ladder writes into doc/performance.md: tables of medians, aims, notes, plots."""
import statistics

import rungs
from report import number

BEGIN = "<!-- ladder:begin -->"
END = "<!-- ladder:end -->"

LATENCY = (("p50_us", "half"), ("p99_us", "99 %"), ("p999_us", "99.9 %"), ("max_us", "all"))

# What is aimed at: text, figure, (group, name, x), (group, name, x), at least or at most. An x of
# None is the best of those measured.
AIMS = [
    ("MB/s received, one stream ÷ of OpenAFS's library", "MBps", ("bulk", "defaults", 1),
     ("bulk", "OpenAFS library", 1), ">=", 15),
    ("MB/s sent, one stream ÷ of OpenAFS's library", "MBps", ("bulk", "defaults, send", 1),
     ("bulk", "OpenAFS library, send", 1), ">=", 15),
    ("CPU-s/GB received ÷ of OpenAFS's library", "cpu_s_per_GB", ("bulk", "defaults", 1),
     ("bulk", "OpenAFS library", 1), "<=", 0.05),
    ("MB/s received, one stream ÷ of raw trains", "MBps", ("bulk", "defaults", 1),
     ("bulk", "raw gso+gro 255", 1), ">=", 0.75),
    ("CPU-s/GB received, one stream ÷ of raw trains", "cpu_s_per_GB", ("bulk", "defaults", 1),
     ("bulk", "raw gso+gro 255", 1), "<=", 1.35),
    ("MB/s of afscp bench, 32 clients ÷ of nginx sendfile", "MBps", ("bulk", "afscp bench", 32),
     ("bulk", "nginx sendfile", 32), ">=", 0.7),
    ("small calls/s, 64 in flight ÷ of OpenAFS's library at its best", "calls_per_s",
     ("calls", "rxperf rpc, async", 64), ("calls", "OpenAFS library rpc", None), ">=", 4),
]


def rate(f, group, name, x, figure):
    """A median and its spread, as a cell."""
    middle, noise = f.median(group, name, x, figure), f.spread(group, name, x, figure)
    return number(middle) + ("" if noise is None else f" ±{noise:.0%}")


def heading(f):
    a = f.about
    lines = [f"Revision {a.get('revision', 'unknown')}; medians of {a.get('rounds', '?')} "
             f"alternating rounds; {a.get('bytes', 0) / 2**20:g} MiB by the quick ones (those "
             "without trains a quarter, OpenAFS's library an eighth), over loopback, nothing "
             "pinned; ± is half the distance between the extremes.", ""]
    machine = list(a.get("machine", []))
    for figure, text in (("core_to_core_ns", "from core to core {} ns"),
                         ("wake_us", "waking a thread on the other core {} µs")):
        values = [s[figure] for s in f.states if figure in s]
        if values:
            machine.append(text.format(f"{statistics.median(values):g} ({min(values):g} to "
                                       f"{max(values):g})"))
    lines.append("Machine: " + "; ".join(machine) + ".")
    if f.strange:
        lines.append(f"{len(f.strange)} of {len(f.states)} rounds met the machine in another state "
                     "and do not count.")
    return lines


def ladder_table(f):
    """One row for each rung and rival, one stream and several."""
    xs = (1, rungs.SEVERAL)
    out = ["| what | " + " | ".join(
        f"MB/s, {x} | CPU-s/GB | system calls/GB | context switches/GB" for x in xs) + " |",
        "| --- |" + " --- |" * 4 * len(xs)]
    for name in f.names("bulk"):
        measured = any(("bulk", name, x) in f.kept for x in xs)
        why = [f.skipped[("bulk", name, x)] for x in xs if ("bulk", name, x) in f.skipped]
        if not measured:
            out.append(f"| {name} | {'SKIP: ' + why[0] if why else ''} |" +
                       " |" * (4 * len(xs) - 1))
            continue
        cells = [name]
        for x in xs:
            cells.append(rate(f, "bulk", name, x, "MBps"))
            cells += [number(f.median("bulk", name, x, figure)) for figure in
                      ("cpu_s_per_GB", "syscalls_per_GB", "switches_per_GB")]
        out.append("| " + " | ".join(cells) + " |")
    return out


def scaling(f):
    """Names of bulk contestants that ran with more numbers of clients than the rungs do."""
    return [n for n in f.names("bulk") if set(f.xs("bulk", n)) - {1, rungs.SEVERAL} and
            any(("bulk", n, x) in f.kept for x in f.xs("bulk", n))]


def clients_table(f):
    names = scaling(f)
    if not names:
        return []
    xs = sorted({x for n in names for x in f.xs("bulk", n)})
    out = ["", "MB/s (and CPU-s/GB) by number of clients:", "",
           "| what | " + " | ".join(str(x) for x in xs) + " |", "| --- |" + " --- |" * len(xs)]
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
    return ["", "Small calls, 100 bytes each way; µs within which so many were answered:", "",
            "| what | in flight | calls/s | CPU µs/call | system calls/call | "
            "context switches/call | " + " | ".join(text for _, text in LATENCY) + " |", "| --- |" + " --- |" * 9, *rows]


def aim_value(f, figure, one, other):
    """The ratio of two medians; None if one was not measured."""
    values = []
    for group, name, x in (one, other):
        if x is None:
            best = f.best(group, name, figure)
            values.append(best[1] if best else None)
        else:
            values.append(f.median(group, name, x, figure))
    return values[0] / values[1] if values[0] is not None and values[1] else None


def aims_table(f):
    out = ["", "| aim | measured | wanted | met |", "| --- | --- | --- | --- |"]
    for text, figure, one, other, sense, bound in AIMS:
        value = aim_value(f, figure, one, other)
        verdict = "not measured"
        if value is not None:
            verdict = "yes" if (value >= bound if sense == ">=" else value <= bound) else "**no**"
        out.append(f"| {text} | {number(value)} | {'at least' if sense == '>=' else 'at most'} "
                   f"{bound:g} | {verdict} |")
    return out


def markdown(f, plots, why_none=None):
    """`plots`: [(title, path as the page names it)]."""
    out = heading(f) + [""] + ladder_table(f) + [""] + rungs.NOTES
    out += clients_table(f) + calls_table(f) + aims_table(f)
    out += [line for title, path in plots for line in ("", f"![{title}]({path})")]
    if why_none:
        out += ["", f"Plots: SKIP: {why_none}."]
    return "\n".join(out) + "\n"
