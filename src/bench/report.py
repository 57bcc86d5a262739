# SPDX-License-Identifier: BSD-2-Clause
"""The report of a benchmark: medians, targets, a table for doc/notes/performance.md."""
import argparse
import os
import platform
import statistics
import subprocess

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"

# Targets: text, figure, contestant, other contestant (None: a bound), at least or at most.
TARGETS = [
    ("MB/s of rxperf recv ÷ of OpenAFS's library", "MBps", "rxperf recv", "OpenAFS library",
     ">=", 8.0),
    ("CPU-s/GB of rxperf recv ÷ of OpenAFS's library", "cpu_s_per_GB", "rxperf recv",
     "OpenAFS library", "<=", 0.1),
    ("MB/s of rxperf recv ÷ of the same with everything switched off", "MBps", "rxperf recv",
     "rxperf recv plain", ">=", 6.0),
    ("MB/s of rxperf recv ÷ raw GSO, window 255", "MBps", "rxperf recv",
     "raw gso+gro 255", ">=", 0.55),
    ("raw GSO ÷ raw sendmmsg/recvmmsg, window 255 (check of the baseline)", "MBps",
     "raw gso+gro 255", "raw mmsg 255", ">=", 4.0),
    ("MB/s of afscp get ÷ of rxperf recv", "MBps", "afscp get", "rxperf recv", ">=", 0.7),
    ("MB/s of afscp bench, 32 clients ÷ of rxperf recv, 32 calls", "MBps", "afscp bench 32",
     "rxperf recv 32 calls", ">=", 0.7),
    ("CPU of a small call by stubs ÷ by hand, both ends", "cpu_ratio", "small call by stubs", None,
     "<=", 1.05),
    ("µs of a BulkStatus reply, libtirpc ÷ compiled", "us", "XDR libtirpc", "XDR compiled",
     ">=", 3.0),
    ("MiB resident, rxfsd with 100 clients", "resident_MiB", "afscp bench 100", None, "<=", 256.0),
]


def size(text):
    """A number of bytes from the command line."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    unit = units.get(text[-1:].upper(), 1)
    try:
        n = int(text[:-1] if unit > 1 else text) * unit
    except ValueError:
        n = 0
    if n < 1 << 20:
        raise argparse.ArgumentTypeError(f"{text}: use at least 1M, such as 256M or 1G")
    return n


def median(samples, name, figure):
    """The median of the values; None if there are none."""
    values = [s[figure] for s in samples.get(name, []) if s.get(figure) is not None]
    return statistics.median(values) if values else None


def spread(samples, name, figure):
    """Half the range, relative to the median."""
    values = [s[figure] for s in samples.get(name, []) if s.get(figure) is not None]
    if len(values) < 2 or not statistics.median(values):
        return None
    return (max(values) - min(values)) / 2 / statistics.median(values)


def ratio(samples, figure, name, other):
    a = median(samples, name, figure)
    if other is None or a is None:
        return a
    b = median(samples, other, figure)
    return a / b if b else None


def check_targets(samples):
    """[(text, value or None, bound as text, met or None)]"""
    rows = []
    for text, figure, name, other, sense, bound in TARGETS:
        value = ratio(samples, figure, name, other)
        met = None
        if value is not None:
            met = value >= bound if sense == ">=" else value <= bound
        rows.append((text, value, f"{'at least' if sense == '>=' else 'at most'} {bound:g}", met))
    return rows


def number(value):
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def cpu_model():
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith(("model name", "Processor", "cpu model")):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def mitigations():
    """The active mitigations, in brief: they determine the cost of a system call."""
    folder = "/sys/devices/system/cpu/vulnerabilities"
    found = []
    try:
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name)) as f:
                text = f.read().strip()
            if text.startswith("Mitigation"):
                found.append(f"{name}: {text.split(':', 1)[1].split(';')[0].split(',')[0].strip()}")
    except OSError:
        return "unknown"
    return "; ".join(found) or "none"


def revision(source):
    try:
        r = subprocess.run(["git", "-C", source, "describe", "--always", "--dirty"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:  # no git: for example, a tree from an archive
        return "unknown"
    return r.stdout.strip() if r.returncode == 0 else "unknown"


def machine(source, pings):
    lines = [f"{cpu_model()}, {len(os.sched_getaffinity(0))} cores, "
             f"Linux {platform.release()} {platform.machine()}",
             f"mitigations: {mitigations()}"]
    for figure, text in (("core_to_core_ns", "from core to core {} ns"),
                         ("wake_us", "waking a thread on the other core {} µs"),
                         ("wake_cpu_us", "{} µs of CPU")):
        values = [p[figure] for p in pings if figure in p]
        if values:
            lines.append(text.format(f"{statistics.median(values):g} "
                                     f"({min(values):g} to {max(values):g})"))
    return lines, revision(source)


def table(samples, order, skipped):
    """Markdown: one row per contestant."""
    rows = ["| configuration | MB/s | ± | CPU-s/GB, both ends | resident MiB |",
            "| --- | --- | --- | --- | --- |"]
    for name in order:
        if timed(samples, name):
            continue
        if name in samples:
            noise = spread(samples, name, "MBps")
            rows.append(f"| {name} | {number(median(samples, name, 'MBps'))} | "
                        f"{'–' if noise is None else f'{noise:.0%}'} | "
                        f"{number(median(samples, name, 'cpu_s_per_GB'))} | "
                        f"{number(median(samples, name, 'resident_MiB'))} |")
        elif name in skipped:
            rows.append(f"| {name} | not measured: {skipped[name]} | | | |")
    return rows if len(rows) > 2 else []


def timed(samples, name):
    """Whether its samples are times, not rates."""
    return "us" in (samples.get(name) or [{}])[0]


def time_table(samples, order):
    """The table of those that are timed; empty if there are none."""
    rows = []
    for name in order:
        if timed(samples, name):
            noise = spread(samples, name, "us")
            rows.append(f"| {name} | {number(median(samples, name, 'us'))} | "
                        f"{'–' if noise is None else f'{noise:.0%}'} | "
                        f"{number(median(samples, name, 'cpu_us'))} | "
                        f"{number(median(samples, name, 'instructions'))} |")
    if not rows:
        return []
    return ["", "| case | µs | ± | CPU µs, both ends | instructions, without the kernel's |",
            "| --- | --- | --- | --- | --- |", *rows]


def target_table(samples):
    rows = ["| target | measured | required | met |", "| --- | --- | --- | --- |"]
    for text, value, bound, met in check_targets(samples):
        verdict = "not measured" if met is None else "yes" if met else "**no**"
        rows.append(f"| {text} | {number(value)} | {bound} | {verdict} |")
    return rows


def markdown(samples, order, skipped, source, pings, runs, total, with_targets=True, more=()):
    """`order`: the rows; `more`: lines after them."""
    about, rev = machine(source, pings)
    out = [f"Revision {rev}; medians of {runs} alternating runs; {total / 2**30:g} GiB each, over "
           "loopback, nothing pinned; ± is half the distance between the extremes.", "",
           "Machine: " + "; ".join(about) + ".", ""]
    out += table(samples, order, skipped)
    out += time_table(samples, order)
    out += more
    if with_targets:
        out += [""] + target_table(samples)
    return "\n".join(out) + "\n"


def write_between_markers(path, text, begin_mark=BEGIN, end_mark=END):
    """Replaces the text between the markers. False if the file or the markers are missing."""
    try:
        with open(path) as f:
            old = f.read()
    except OSError:
        return False
    begin, end = old.find(begin_mark), old.find(end_mark)
    if begin < 0 or end < begin:
        return False
    new = old[:begin + len(begin_mark)] + "\n" + text + old[end:]
    temporary = path + ".new"
    with open(temporary, "w") as f:
        f.write(new)
    os.replace(temporary, path)
    return True
