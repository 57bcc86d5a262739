# SPDX-License-Identifier: BSD-2-Clause
"""The plots of the ladder, as SVG files. They need matplotlib; without it none are drawn."""
import os
import re
import sys
import xml.etree.ElementTree as xml

import page
import rungs

try:
    import matplotlib
    matplotlib.use("Agg")
    # No date and no random names: the same samples give the same files.
    matplotlib.rcParams["svg.hashsalt"] = "rxwire"
    # Text as text: a tenth of the size of outlines.
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot
    MISSING = None
except ImportError:
    pyplot = None
    MISSING = (f"{os.path.basename(sys.executable)} has no matplotlib (Debian package: "
               "python3-matplotlib, for /usr/bin/python3)")

BARS = (("MBps", "throughput", "MB/s"), ("cpu_s_per_GB", "cpu", "CPU-s/GB, both ends"),
        ("syscalls_per_GB", "syscalls", "system calls/GB"),
        ("switches_per_GB", "switches", "context switches/GB"))


SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"


def without_groups(element, used):
    """The elements that draw, out of groups that only name them."""
    for child in element:
        if child.get("id") not in used:
            child.attrib.pop("id", None)
        if child.tag == SVG + "g" and not child.attrib:
            yield from without_groups(child, used)
        elif child.tag != SVG + "metadata":
            child[:] = without_groups(child, used)
            yield child


def compact(path):
    """Rewrite a drawing of matplotlib: a line for each element, two decimals. It has a line for each point of a path."""
    root = xml.parse(path).getroot()
    used = {value.strip("url()#") for e in root.iter() for key, value in e.items() if key != "id" and "#" in value}
    root[:] = without_groups(root, used)
    for e in root.iter():
        if e.tag != SVG + "tspan":
            e.tail = "\n"
        if len(e) and e.tag != SVG + "text":
            e.text = "\n"
        for key in ("d", "x", "y", "points", "transform"):
            if e.get(key):
                e.set(key, re.sub(r"\d+\.\d+", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."),
                                  " ".join(e.get(key).split())))
    xml.register_namespace("", SVG[1:-1])
    xml.register_namespace("xlink", LINK[1:-5])
    xml.ElementTree(root).write(path, encoding="utf-8")


def save(figure, folder, name):
    """Write NAME.svg; return its file name."""
    figure.tight_layout()
    figure.savefig(os.path.join(folder, name + ".svg"), metadata={"Date": None})
    compact(os.path.join(folder, name + ".svg"))
    pyplot.close(figure)
    return name + ".svg"


def error(f, key, figure):
    """From the median down to the least and up to the largest."""
    values, middle = f.values(*key, figure), f.median(*key, figure)
    return [[middle - min(values)], [max(values) - middle]]


def bars(f, folder, figure, name, label):
    """A plot per rung and rival, one stream above several; None without data."""
    names = [n for n in f.names("bulk")
             if any(f.values("bulk", n, x, figure) for x in (1, rungs.SEVERAL))]
    if not names:
        return None
    drawing, axes = pyplot.subplots(figsize=(8, 0.42 * len(names) + 1.2))
    for k, x in enumerate((1, rungs.SEVERAL)):
        first = True
        for row, n in enumerate(names):
            key = ("bulk", n, x)
            if f.values(*key, figure):
                axes.barh(row + 0.4 * k - 0.2, f.median(*key, figure), 0.38, color=f"C{k}",
                          xerr=error(f, key, figure), ecolor="0.3",
                          label=f"{x} stream{'s' if x > 1 else ''}" if first else None)
                first = False
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    if figure != "MBps":
        axes.set_xscale("log")
    axes.legend()
    return save(drawing, folder, "ladder-" + name)


def clients(f, folder):
    names = [n for n in page.scaling(f) if any(f.values("bulk", n, x, "MBps")
                                               for x in f.xs("bulk", n))]
    if not names:
        return None
    drawing, axes = pyplot.subplots(figsize=(8, 4.5))
    for n in names:
        points = [(x, m) for x in f.xs("bulk", n)
                  if (m := f.median("bulk", n, x, "MBps")) is not None]
        if points:
            axes.plot(*zip(*points), marker="o", label=n)
    axes.set_xscale("log")
    ticks = sorted({x for n in names for x in f.xs("bulk", n)})
    axes.set_xticks(ticks, [str(x) for x in ticks])
    axes.minorticks_off()
    axes.set_xlabel("clients")
    axes.set_ylabel("MB/s")
    axes.set_ylim(bottom=0)
    axes.legend()
    return save(drawing, folder, "ladder-clients")


def distribution(f, key):
    """[(µs, fraction of slower calls)], from all available quantiles."""
    figures = {name for r in f.kept.get(key, ()) for name in r if name.startswith("within_")}
    shares = {name: 1 - float(name[len("within_"):]) / 100 for name in figures}
    if not shares:
        shares = {"p50_us": 0.5, "p99_us": 0.01, "p999_us": 0.001}
    points = [(share, f.median(*key, name)) for name, share in shares.items() if share > 0]
    return [(us, share) for share, us in sorted(points, reverse=True) if us is not None]


def latency(f, folder):
    """The fraction of calls slower than a number of microseconds, with a panel per number in
    flight."""
    names = f.names("calls")
    curves = {x: [(n, points) for n in names if (points := distribution(f, ("calls", n, x)))]
              for x in f.xs("calls")}
    curves = {x: found for x, found in curves.items() if len(found) > 1}
    if not curves:
        return None
    rows = (len(curves) + 1) // 2
    drawing, panels = pyplot.subplots(rows, 2, figsize=(11, 4 * rows), squeeze=False)
    for axes in panels.flat[len(curves):]:
        axes.set_visible(False)
    for axes, (x, found) in zip(panels.flat, curves.items()):
        for n, points in found:
            axes.plot(*zip(*points), marker=".", color=f"C{names.index(n) % 10}",
                      linestyle="-" if names.index(n) < 10 else "--", label=n)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(f"{x} in flight")
        axes.set_xlabel("µs")
        axes.set_ylabel("part that took longer")
        axes.legend(fontsize="x-small")
    return save(drawing, folder, "ladder-latency")


def open_loop(f, folder):
    """The quantiles 50 %, 99 % and 99.9 % by the scheduled rate."""
    drawing, axes = pyplot.subplots(figsize=(8, 4.5))
    for k, n in enumerate(f.names("load")):
        for style, figure, text in (("-", "p50_us", "half"), ("--", "p99_us", "99 %"),
                                    (":", "p999_us", "99.9 %")):
            points = [(x, m) for x in f.xs("load", n)
                      if (m := f.median("load", n, x, figure)) is not None]
            if points:
                axes.plot(*zip(*points), style, marker=".", color=f"C{k}", label=f"{n}: {text}")
    if not axes.lines:
        pyplot.close(drawing)
        return None
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("calls due per second")
    axes.set_ylabel("µs from when a call was due")
    axes.legend(fontsize="small")
    return save(drawing, folder, "ladder-load")


def given(r, folder, prefix="ladder-"):
    """A plot made of another program's data."""
    drawing, axes = pyplot.subplots(figsize=(8, 4.5))
    for series in r["series"]:
        if series["points"]:
            axes.plot(*zip(*series["points"]), label=series["label"],
                      marker=None if len(series["points"]) > 100 else ".",
                      drawstyle="steps-post" if series.get("steps") else "default")
    if r.get("log_x"):
        axes.set_xscale("log")
    if r.get("log_y"):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(r["x"])
    axes.set_ylabel(r["y"])
    axes.legend(fontsize="small")
    return save(drawing, folder, prefix + r["name"])


def draw(f, folder):
    """[(title, file name)] of the plots in `folder`; none without matplotlib."""
    if MISSING:
        return []
    os.makedirs(folder, exist_ok=True)
    made = [(f"{label} by rung", bars(f, folder, figure, name, label))
            for figure, name, label in BARS]
    made.append(("MB/s by number of clients", clients(f, folder)))
    made.append(("latency of small calls", latency(f, folder)))
    made.append(("latency by rate", open_loop(f, folder)))
    made += [(r["title"], given(r, folder)) for r in f.made("plot")]
    return [(title, name) for title, name in made if name]
