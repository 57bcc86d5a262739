# SPDX-License-Identifier: BSD-2-Clause
"""The steps of the benchmark of file servers, and the page of their results."""
import os
import statistics
import time

from contest import Missing
from fsbed import VOLUME, Mounted
from measure import run_program

CLIENTS = 16
MIB = 1 << 20



def targets(bed, *ours):
    return [*ours] + ([bed.openafs] if bed.openafs else [])


def compare(bed, text, figure, got, name, other, sense, bound):
    """An aim: the ratio of two contestants; left out if one did not take part."""
    if name in got and other in got and got[other][figure]:
        bed.aim(text, got[name][figure] / got[other][figure], sense, bound)


def rows(bed, title, got, figures):
    """A table of contestants: figures are (heading, key, format)."""
    bed.put("table", title=title, head=["server", *(f[0] for f in figures)],
            rows=[[name, *(f[2].format(r[f[1]]) for f in figures)] for name, r in got.items()])


BULK = [("MB/s", "MBps", "{:,.0f}"), ("server's CPU, µs an operation", "server_cpu_us", "{:,.0f}"),
        ("clients' CPU", "client_cpu_us", "{:,.0f}"), ("median, µs", "p50_us", "{:,.0f}")]
SMALL = [("operations/s", "per_s", "{:,.0f}"), ("server's CPU, µs an operation", "server_cpu_us", "{:,.1f}"),
         ("clients' CPU", "client_cpu_us", "{:,.1f}"), ("median, µs", "p50_us", "{:,.0f}"),
         ("99 %, µs", "p99_us", "{:,.0f}")]


def make_file(path, size):
    block = os.urandom(MIB)
    with open(path, "wb") as f:
        for _ in range(size // MIB):
            f.write(block)
    os.chmod(path, 0o644)


def data(bed):
    """FetchData and StoreData: 8 clients, files in the page cache."""
    size, calls = 32 * MIB, 2 if bed.a.quick else 8
    folder = bed.fresh("export")
    os.chmod(folder, 0o755)
    make_file(os.path.join(folder, "large"), size)
    store, export = bed.new_store(), bed.export(folder)
    all_of = targets(bed, store)
    for t in all_of:
        bed.load(t, "put-named", b=size, l="large", calls=1)
    got = bed.turns([export, *all_of], "fetch-named", clients=8, calls=calls, l="large")
    bed.stop(export)
    rows(bed, f"FetchData, 8 clients, {calls} × 32 MiB each", got, BULK)
    compare(bed, "FetchData, MB/s: from the store ÷ from an exported directory", "MBps", got, "lazy", "export",
            ">=", 0.90)
    compare(bed, "FetchData, CPU time of the server: from the store ÷ from an exported directory",
            "server_cpu_us", got, "lazy", "export", "<=", 1 / 0.90)
    wrote = bed.turns(all_of, "store", clients=8, calls=max(1, calls // 2), b=size, l="s")
    rows(bed, f"StoreData, 8 clients, {max(1, calls // 2)} × 32 MiB each", wrote, BULK)
    compare(bed, "StoreData, MB/s ÷ OpenAFS's", "MBps", wrote, "lazy", "OpenAFS", ">=", 5)
    compare(bed, "StoreData, CPU time of the server ÷ OpenAFS's", "server_cpu_us", wrote, "lazy", "OpenAFS",
            "<=", 1 / 5)
    bed.aim("StoreData, MB/s ÷ our FetchData", wrote["lazy"]["MBps"] / got["lazy"]["MBps"], ">=", 0.75)


WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")


def calls(bed):
    """System calls of the server for StoreData."""
    store = bed.new_store()
    size, count = 16 * MIB, 8
    found, r = bed.system_calls(store, lambda: bed.load(store, "store", clients=2, calls=count, b=size, l="s"))
    blocks = (r["bytes"] + 2 * size) / 262144
    writes = sum(found.get(name, 0) for name in WRITES)
    bed.put("calls", calls=found, blocks=blocks)
    top = sorted(found.items(), key=lambda c: -c[1])[:8]
    bed.put("table", title="System calls of the server for each 256 KiB of StoreData (`strace`)",
            head=["call", "for each 256 KiB"], rows=[[f"`{n}`", f"{c / blocks:.2f}"] for n, c in top])
    bed.aim("writing system calls for each 256 KiB of StoreData, database included", writes / blocks, "<=", 1)


# Each client has a socket; or the calls share one, as those of a cache manager do.
BULK_CLIENTS = [("16 clients", {"l": "b"}), ("one client with 16 calls in flight", {"l": "o", "t": True})]


def small(bed):
    """Create + store 4 KiB + remove, and InlineBulkStatus."""
    count = 50 if bed.a.quick else 400
    lazy = bed.new_store()
    got = bed.turns(targets(bed, lazy), "triple", clients=CLIENTS, calls=count, b=4096, l="t")
    compare(bed, "create + store 4 KiB + remove, 16 clients, /s: lazy ÷ OpenAFS's", "per_s", got, "lazy",
            "OpenAFS", ">=", 3)
    compare(bed, "the same, CPU time of the server: lazy ÷ OpenAFS's", "server_cpu_us", got, "lazy", "OpenAFS",
            "<=", 1 / 3)
    bulk = [(who, bed.turns(targets(bed, lazy), "bulk", clients=CLIENTS, calls=count, **options))
            for who, options in BULK_CLIENTS]
    bed.stop(lazy)
    strict = bed.new_store(durability="strict")
    flush = [bed.flush_us(bed.place.work)]
    runs = []
    for _ in range(bed.a.rounds):
        runs.append(bed.load(strict, "triple", clients=CLIENTS, calls=count, b=4096, l="t"))
        flush.append(bed.flush_us(bed.place.work))
    got["strict"] = sorted(runs, key=lambda r: r["per_s"])[len(runs) // 2]
    # Each run beside the flushes before and after it: they vary with what else writes to the disk.
    share = [3 * r["per_s"] * (flush[i] + flush[i + 1]) / 2e6 / CLIENTS for i, r in enumerate(runs)]
    rows(bed, f"Create + store 4 KiB + remove, 16 clients, {count} each", got, SMALL)
    bed.put("note", text=f"A flush (`fdatasync()` after one page was overwritten) took {statistics.median(flush):,.0f} µs: "
            f"{min(flush):,.0f} to {max(flush):,.0f} in {len(flush)} turns of 200. The runs in strict mode came to "
            f"{', '.join(f'{x:.2f}' for x in share)} of the calls in flight ÷ that time.")
    bed.aim("calls of create + store + remove, strict, 16 clients: /s ÷ (16 ÷ time of a flush)",
            statistics.median(share), ">=", 0.80)
    for who, got in bulk:
        rows(bed, f"InlineBulkStatus of 50, {who}, {CLIENTS} × {count}", got, SMALL)
        compare(bed, f"InlineBulkStatus of 50, {who}, /s ÷ OpenAFS's", "per_s", got, "lazy", "OpenAFS", ">=", 5)
        compare(bed, f"InlineBulkStatus of 50, {who}, CPU time of the server ÷ OpenAFS's", "server_cpu_us", got,
                "lazy", "OpenAFS", "<=", 1 / 5)


OPERATIONS = [("FetchStatus", "status-places", 2000, {}), ("FetchData of at most 4 KiB", "read-places", 2000, {}),
              ("InlineBulkStatus of 50", "bulk-places", 200, {}),
              ("store 4 KiB", "write-places", 500, {"b": 4096}),
              ("create + store 4 KiB + remove", "triple-places", 300, {"b": 4096})]


def fill(bed, target, label, clients, dirs, files, size=0):
    """Directories of files; the file of their places."""
    places = os.path.join(bed.place.work, label)
    r = bed.load(target, "fill", clients=clients, calls=dirs, k=files, b=size, l=label, p=places)
    bed.put("note", text=f"{clients * dirs * files:,} files in {clients * dirs} directories were made in "
            f"{r['seconds']:.1f} s, {r['server_cpu_us'] / files:.0f} µs of the server's CPU each.")
    return places


def operations(bed, target, sets, rounds=None):
    """{operation: {name of the set: figures of the median}}, sets in turns."""
    scale = 0.2 if bed.a.quick else 1
    found = {}
    for text, load, count, options in OPERATIONS:
        runs = {name: [] for name in sets}
        for i in range(rounds or bed.a.rounds):
            for name in sets if i % 2 == 0 else reversed(sets):
                runs[name].append(bed.load(target, load, clients=8, calls=int(count * scale), p=sets[name],
                                           **options))
        found[text] = {name: sorted(r, key=lambda x: x["server_cpu_us"])[len(r) // 2] for name, r in runs.items()}
    return found


def many(bed):
    """A large directory and a large volume: cost, memory, clones, a killed server."""
    target = bed.new_store()
    few = fill(bed, target, "few", 1, 1, 1000)
    wide = fill(bed, target, "wide", 1, 1, 8000 if bed.a.quick else 64000)
    all_of = {"1,000": few, "64,000 names": wide}
    operations(bed, target, {"1,000": few}, rounds=1)
    before = operations(bed, target, all_of)
    dirs = -(-bed.a.files // (1000 * CLIENTS))
    big = fill(bed, target, "big", CLIENTS, dirs, 1000)
    name = f"{CLIENTS * dirs * 1000:,} files"
    after = operations(bed, target, {"1,000": few, name: big})
    bed.put("note", text="FIDs of the large sets are drawn at random, so that each operation meets records that no "
            "processor cache holds; the second column of a set of 1,000 shows what the size of the volume costs.")
    table = []
    for text, _, _, _ in OPERATIONS:
        cost = {"few": before[text]["1,000"], "wide": before[text]["64,000 names"], "few2": after[text]["1,000"],
                "big": after[text][name]}
        table.append([text, *(f"{r['server_cpu_us']:,.1f}" for r in cost.values())])
        for other, base, what in (("wide", "few", "64,000 names"), ("few2", "few", f"volume of {name}"),
                                  ("big", "few2", f"any of {name}")):
            bed.aim(f"CPU time of the server for {text}: {what} ÷ 1,000 files",
                    cost[other]["server_cpu_us"] / cost[base]["server_cpu_us"], "<=", 2)
    bed.put("table", title="CPU time of the server for an operation, µs, 8 clients, any file of the set",
            head=["operation", "1,000 files in one directory", "64,000 names in one directory",
                  f"1,000 files, in a volume of {name}", f"any of {name}"], rows=table)
    bed.load(target, "status-places", clients=100, calls=200, p=big)
    bed.load(target, "triple-places", clients=100, calls=20, p=big, b=4096)
    bed.put("memory", rss_kib=target.status_kib("VmRSS"), peak_kib=target.status_kib("VmHWM"))
    bed.aim(f"MiB resident at most, {name}, 100 clients", target.status_kib("VmHWM") / 1024, "<=", 256)
    clones(bed, target, name)
    restart(bed, target, big, name)


def clones(bed, target, name):
    """rxvol's own start is measured apart: it asks for the list of volumes."""
    times = {"list": [], "clone": []}
    for i in range(7):
        for command, words in (("list", []), ("clone", [VOLUME] + ["--backup"] * (i % 2))):
            times[command].append(bed.rxvol(target.folder, command, *words)[1] * 1000)
    middle = {c: sorted(t)[3] for c, t in times.items()}
    bed.put("clone", ms=times["clone"], list_ms=times["list"])
    bed.aim(f"ms of rxvol clone at the server, {name}, beyond those of rxvol list",
            middle["clone"] - middle["list"], "<=", 10)
    bed.put("note", text=f"rxvol clone took {middle['clone']:.1f} ms in all, rxvol list {middle['list']:.1f} ms; "
            f"the longest of 7 clones {max(times['clone']):.1f} ms.")


def restart(bed, target, places, name):
    """kill -9 of a server that is written to; then until a new one has answered a first call."""
    with bed.background(target, "write-places", clients=8, calls=1000000, p=places, b=4096):
        time.sleep(2)
        target.server.kill()
    bed.servers.remove(target.server)
    start = time.monotonic()
    again = bed.serve(target.folder)
    ready = time.monotonic() - start
    bed.load(again, "status-places", clients=1, calls=1, p=places)
    first = time.monotonic() - start
    bed.put("restart", ready_s=ready, first_s=first)
    bed.aim(f"s from the start after kill -9 to the first answer, {name}, with the start of the client", first,
            "<=", 1)


def stall_on(bed, folder, kind):
    """A page written to a file of 1 GiB before and after it is shared with a clone."""
    size = (128 if bed.a.quick else 1024) * MIB
    target = bed.new_store(folder)
    bed.load(target, "put-named", b=size, l="huge", calls=1)
    os.sync()
    runs = {}
    for state in ("alone", "shared"):
        if state == "shared":
            bed.rxvol(target.folder, "clone", VOLUME)
        runs[state] = bed.load(target, "overwrite-named", l="huge", calls=200)
    bed.put("table", title=f"A page written to a file of {size // MIB} MiB, {kind}",
            head=["file", "median, µs", "99 %, µs", "longest, µs"],
            rows=[[s, *(f"{r[k]:,.0f}" for k in ("p50_us", "p99_us", "max_us"))] for s, r in runs.items()])
    bed.aim(f"longest ms of 200 writes of a page to a file of {size // MIB} MiB shared with a clone, {kind}",
            runs["shared"]["max_us"] / 1000, "<=", 100)
    bed.stop(target)


def file_system(path):
    """The kind of file system that holds a path."""
    found, _, _ = run_program(["stat", "-f", "-c", "%T", path])
    return found.strip()


def stall(bed):
    kind = file_system(bed.place.work)
    stall_on(bed, bed.fresh("stall"), "ext4" if kind.startswith("ext") else kind)
    try:
        disk = Mounted(bed.fresh("mounted"), "xfs", 4)
    except Missing as e:
        bed.put("skip", why=f"XFS: {e}")
        return
    try:
        stall_on(bed, disk.path, "XFS on a loop device")
    finally:
        bed.end()
        disk.close()


STEPS = {"data": data, "small": small, "calls": calls, "stall": stall, "many": many}


# -- the page ---------------------------------------------------------------------------------

def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def page(records):
    """The records as Markdown."""
    found = [r for r in records if r["type"] == "machine"]
    about, revision = (found[0]["about"], found[0]["revision"]) if found else (["unknown"], "unknown")
    loads = [r["load_average"] for r in records if "load_average" in r]
    lines = [f"Revision {revision}. Machine: {'; '.join(about)}; load average {min(loads or [0]):.1f} to "
             f"{max(loads or [0]):.1f}.", "", "| what | measured | aim | met |", "| --- | --- | --- | --- |"]
    for r in records:
        if r["type"] == "aim":
            good = r["value"] >= r["bound"] if r["sense"] == ">=" else r["value"] <= r["bound"]
            lines.append(f"| {r['text']} | {number(r['value'])} | "
                         f"{'at least' if r['sense'] == '>=' else 'at most'} {r['bound']:.3g} | "
                         f"{'yes' if good else '**no**'} |")
    for r in records:
        if r["type"] == "table":
            lines += ["", r["title"] + ":", "", "| " + " | ".join(r["head"]) + " |",
                      "|" + " --- |" * len(r["head"])] + ["| " + " | ".join(row) + " |" for row in r["rows"]]
    notes = [r.get("text") or "Not measured: " + r["why"] for r in records if r["type"] in ("note", "skip")]
    return "\n".join(lines + [""] + ["- " + n for n in notes]) + "\n"
