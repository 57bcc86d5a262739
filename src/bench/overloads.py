# SPDX-License-Identifier: BSD-2-Clause
"""
Overload of the file server: more clients than fit, slow readers among them, and one client with very many calls.

Everything runs in a network namespace of its own: a file server gives each address a share, but each port of a
loopback address. Honest clients are those of the crowd, and only they are measured; others are a second crowd_load.
"""
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time

import contest
import crowds
import fsbed
import measure
import report

FIT = 1000  # fetches that fit
ADDRESS, HONEST, OTHERS = "10.127.0.1", "10.128.0.1", "10.129.0.1"
INSIDE = "RXW_BENCH_NAMESPACE"
GREEDY = 256  # calls
PART = 1 << 20  # bytes of a call, as OpenAFS's cache manager asks for


class Phase:
    """
    `honest` clients, and `others` of whom crowd_load makes what `options` say. `times`: as long as others, so that each
    client has several turns.
    """

    def __init__(self, name, honest, others=0, options=(), times=1):
        self.name, self.honest, self.others, self.options, self.times = name, honest, others, options, times


def phases(fit):
    """Those of a server that `fit` fetches fit."""
    some, greedy = max(fit // 10, 2), max(GREEDY * fit // FIT, 8)
    return [Phase("as many as fit", fit),
            Phase("twice as many", 2 * fit, times=3),
            Phase("64 KiB a second", fit - some, some, ["-z", "65536:1000"]),
            Phase("stops of 4 s", fit - some, some, ["-z", "262144:4000"]),
            Phase("no acknowledgements", fit - some, some, ["-Z"]),
            Phase("a tenth", some),
            Phase("beside one socket", some, greedy, ["-g"]),
            Phase("beside one address", some, greedy, ["-1"])]


# -- the namespace ----------------------------------------------------------------------------

def ip(*words):
    measure.run_program(["ip", *words], timeout=60)


def enter_namespace():
    """Runs this program again in a network namespace, or prepares the one that it is in. Returns its result, or None."""
    if os.environ.get(INSIDE):
        ip("link", "set", "lo", "up")
        ip("address", "add", ADDRESS + "/32", "dev", "lo")
        for first in (HONEST, OTHERS):
            ip("route", "add", "local", first.rsplit(".", 2)[0] + ".0.0/16", "dev", "lo")
        return None
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--user", "--map-root-user"]
    if not shutil.which("unshare") or not shutil.which("ip") or \
            subprocess.run([*unshare, "true"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        raise contest.Missing("no network namespace can be made")
    # A signal to this program goes to the other one, which ends its servers.
    child = subprocess.Popen([*unshare, sys.executable, "-B", *sys.argv], env=dict(os.environ, **{INSIDE: "1"}))
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()


# -- a phase ----------------------------------------------------------------------------------

def metric(text, name):
    return sum(float(line.split()[-1]) for line in text.splitlines()
               if line.startswith((name + "{", name + " ")))


def sent_bytes(text):
    return sum(float(line.split()[-1]) for line in text.splitlines()
               if line.startswith("rxwire_bytes_total{") and 'direction="sent"' in line)


def udp_drops():
    """Datagrams that the kernel has dropped in this namespace for lack of memory."""
    with open("/proc/net/snmp", encoding="ascii") as f:
        heads, values = [line.split() for line in f if line.startswith("Udp:")]
    return sum(int(values[heads.index(name)]) for name in ("RcvbufErrors", "SndbufErrors", "MemErrors") if name in heads)


class Rate:
    """What the server sends to all clients during the block, in MB/s of datagrams: the median of single seconds."""

    def __init__(self, running):
        self.running, self.over, self.rates = running, threading.Event(), []
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        with contextlib.suppress(OSError, ValueError):
            at, before = time.monotonic(), sent_bytes(self.running.metrics())
            while not self.over.wait(1):
                now, after = time.monotonic(), sent_bytes(self.running.metrics())
                self.rates.append((after - before) / (now - at) / 1e6)
                at, before = now, after

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def median(self):
        return statistics.median(self.rates) if self.rates else None


class Limited(crowds.Rxfsd):
    """rxfsd that `fit` fetches fit: half of the descriptors are for them."""

    def __init__(self, bed, folder, store, fit):
        bed.address = ADDRESS
        super().__init__(bed, "rxfsd", folder, store)
        self.before = ["prlimit", f"--nofile={2 * fit}:{2 * fit}"]

    def addresses(self):
        return []


def may_prefer():
    """Whether this program may have real-time priority. In a user namespace it may not, though it is root there."""
    return subprocess.run(["chrt", "-r", "1", "true"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Bed:
    """A server that `fit` fetches fit, and the crowds."""

    def __init__(self, a, bed, folder, fit):
        self.a, self.bed, self.folder, self.fit = a, bed, folder, fit
        server = fsbed.Bed(contest.Place(a.source, os.path.abspath(a.other), bed.place.work, 0), a, None) if a.other else bed
        # The client that asks for the status stands for another machine.
        self.preferred = ["-r"] if os.geteuid() == 0 and may_prefer() else []
        self.contestant = Limited(server, folder, "directory" not in a.only, fit)

    def crowd(self, running, clients, address, files, seconds, *options):
        return [self.bed.place.program("src/bench/crowd_load"), *running.words, "-b", address, "-c", str(clients),
                "-n", str(files), "-t", str(seconds), "-l", str(PART), *options]

    @contextlib.contextmanager
    def others(self, running, phase, files):
        """The clients that are no honest ones, once all of them have a call."""
        if not phase.others:
            yield
            return
        words = self.crowd(running, phase.others, OTHERS, files, 600, *phase.options)
        with open(self.bed.place.log("others"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.await_calls(running, process, phase.others)
            yield
        finally:
            process.kill()  # also one that is stopped
            process.wait()

    @staticmethod
    def await_calls(running, process, calls):
        """Until they have sent something, and half of the calls are in progress: a greedy client may not get more."""
        deadline = time.monotonic() + 20
        while metric(running.metrics(), "rxwire_calls_active") < calls // 2:
            if process.poll() is not None or time.monotonic() > deadline:
                raise measure.Failed("crowd_load: the other clients have no calls")
            time.sleep(0.1)
        time.sleep(1)

    def measure(self, phase, files, seconds):
        crowds.warm(self.folder)
        with self.contestant.serve() as running, self.others(running, phase, files):
            pid = running.pids[0]
            words = self.crowd(running, phase.honest, HONEST, files, seconds, "-P", str(pid), *self.preferred)
            with crowds.Threads([pid]) as seen, Rate(running) as rate:
                text, _, _ = measure.run_program(words, timeout=seconds + 240)
            r = measure.json_object(words[0], text)
            after = running.metrics()
            r["peak_MiB"] = crowds.status(pid, "VmHWM") / 1024
        r["threads"] = seen.most
        r["preferred"] = bool(self.preferred)
        r["sent_MBps"], r["sent_again"] = rate.median(), metric(after, "rxwire_retransmitted_total")
        r["dropped"] = udp_drops()
        for name in ("fetches_given_up", "fetches_held", "calls_turned_away"):
            r[name] = metric(after, f"rxfsd_{name}_total")
        if rate.median():
            r["cpu_s_per_GB"] = r["server_cpu_s"] / r["seconds"] / rate.median() * 1000
        return r


# -- the page ---------------------------------------------------------------------------------

# Heading, figure, factor, form.
COLUMNS = [("honest clients", "clients", 1, "{:,.0f}"), ("MB/s", "MBps", 1, "{:,.0f}"),
           ("to all", "sent_MBps", 1, "{:,.0f}"),
           ("slowest ÷ median", "slowest_to_median", 1, "{:.2f}"), ("below half", "below_half", 1, "{:,.0f}"),
           ("longest pause, s", "longest_gap_s", 1, "{:.2f}"), ("status, median, ms", "status_p50_us", 1e-3, "{:,.1f}"),
           ("99 %", "status_p99_us", 1e-3, "{:,.1f}"), ("longest", "status_max_us", 1e-3, "{:,.1f}"),
           ("calls repeated", "errors", 1, "{:,.0f}"), ("server's peak, MiB", "peak_MiB", 1, "{:,.0f}"),
           ("threads", "threads", 1, "{:,.0f}"), ("CPU-s/GB", "cpu_s_per_GB", 1, "{:.2f}")]


def page(records):
    """The records as Markdown: medians of the rounds."""
    found = {}
    for r in records:
        if r["type"] == "overload":
            found.setdefault(r["phase"], []).append(r)
    lines = ["| phase | " + " | ".join(c[0] for c in COLUMNS) + " |", "| --- |" + " ---: |" * len(COLUMNS)]
    for name, cells in found.items():
        values = [crowds.middle(cells, figure) for _, figure, _, _ in COLUMNS]
        lines.append("| " + " | ".join([name, *("–" if v is None else form.format(v * factor) for v, (_, _, factor, form)
                                                in zip(values, COLUMNS))]) + " |")
    notes = ["Not measured: " + r["why"] for r in records if r["type"] == "skip"]
    notes += [f"{name}: first error: {c['first_error']}" for name, cells in found.items() for c in cells[:1] if c["errors"]]
    return "\n".join(lines + [""] + ["- " + n for n in notes]) + "\n"


def measure_phase(a, records, bed, phase, files):
    try:
        r = bed.measure(phase, files, a.seconds * phase.times)
    except (contest.Missing, measure.Failed, OSError, KeyError, ValueError) as e:
        records.put("skip", why=f"failed: {phase.name}: {e}")
        return
    records.put("overload", phase=phase.name, others=phase.others, **r)
    print(f"{phase.name}: {r['MBps']:,.0f} MB/s, slowest ÷ median {r['slowest_to_median']:.2f}", file=sys.stderr)


def run(a, records, work):
    """All phases, in a namespace."""
    place = contest.Place(a.source, a.build, work, 0)
    bed = fsbed.Bed(place, a, None)
    folder = os.path.join(work, "volume")
    files = crowds.make_volume(folder, a.volume_bytes)
    about, revision = report.machine(a.source, [])
    fit = a.clients[-1]
    records.put("machine", about=about, revision=revision, volume_bytes=a.volume_bytes, files=files, seconds=a.seconds,
                rounds=a.rounds)
    overload = Bed(a, bed, folder, fit)
    for _ in range(a.rounds):
        for phase in phases(fit):
            if not a.phase or phase.name in a.phase:
                measure_phase(a, records, overload, phase, files)
