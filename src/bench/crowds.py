# SPDX-License-Identifier: BSD-2-Clause
"""Servers of the crowd, one cell of the benchmark, and the page of its results."""
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import statistics
import struct
import tempfile
import threading
import time

from contest import Missing
from measure import Failed, Server, context_switches, free_port, free_tcp_port, json_object, run_program

MIB = 1 << 20
VOLUME = "bench"
OPEN_ACL = "system:anyuser rl"
START_S = 60  # for a server to be complete


# -- the volume -------------------------------------------------------------------------------

def sizes(total):
    """Bytes of the files: 1 to 16 MiB, the same in each run."""
    rng, left, found = random.Random(20), total, []
    while left > 16 * MIB:
        found.append(rng.randint(MIB, min(16 * MIB, left - MIB)))
        left -= found[-1]
    return [*found, left]


def make_volume(folder, total):
    """The files f00000 and so on in a new folder. Returns their number."""
    block = random.Random(21).randbytes(MIB - 8)
    os.makedirs(folder)
    os.chmod(folder, 0o755)
    found = sizes(total)
    for i, size in enumerate(found):
        path = os.path.join(folder, f"f{i:05d}")
        with open(path, "wb") as f:
            for at in range(0, size, MIB):
                # No two pieces are the same.
                f.write(((i << 32 | at).to_bytes(8, "big") + block)[:min(MIB, size - at)])
        os.chmod(path, 0o644)
    return len(found)


def warm(folder):
    """Reads all files below a folder, so that they are cached."""
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            if os.path.isfile(path):
                with open(path, "rb", buffering=0) as f:
                    while f.read(4 * MIB):
                        pass


# -- what the kernel says of processes ---------------------------------------------------------

def status(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next((int(line.split()[1]) for line in f if line.startswith(field + ":")), 0)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def switches(pids):
    """Context switches of all threads until now."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                total += sum(status(f"{pid}/task/{task}", field)
                             for field in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"))
    return total


class Threads:
    """The most threads that processes had during the block, looked up ten times a second."""

    def __init__(self, pids):
        self.pids, self.most, self.over = pids, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def look(self):
        self.most = max(self.most, sum(status(pid, "Threads") for pid in self.pids))

    def watch(self):
        with contextlib.suppress(OSError):
            while not self.over.wait(0.1):
                self.look()

    def __enter__(self):
        self.look()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def tcp_sent_again():
    """TCP segments of this network namespace."""
    with open("/proc/net/snmp", encoding="ascii") as f:
        heads, values = [line.split() for line in f if line.startswith("Tcp:")]
    return int(values[heads.index("RetransSegs")])


def ask_socket(path, question):
    """The answer of a server on a Unix socket, which it may be about to make."""
    deadline = time.monotonic() + 20
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(20)
            try:
                s.connect(path)
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
                continue
            s.sendall(question)
            return b"".join(iter(lambda: s.recv(1 << 16), b""))


# -- the contestants --------------------------------------------------------------------------

class Running:
    """
    A server of one cell: `words` for the client, the processes, its count of packets sent again, and rxfsd's metrics as
    text.
    """

    def __init__(self, server, pids, words, sent_again, metrics=None):
        self.server, self.pids, self.words, self.sent_again = server, pids, words, sent_again
        self.metrics = metrics


class Rxfsd:
    """rxfsd of a build, on the exported directory or on a store that its rxvol makes from it."""

    before = ()  # words before its command

    def __init__(self, bed, name, folder, store):
        self.bed, self.name, self.folder = bed, name, folder
        self.bed.place.program("src/fileserver/rxfsd")
        if store:
            self.folder = os.path.join(bed.fresh("store"), "store")
            bed.rxvol(self.folder, "create", VOLUME, "--acl", OPEN_ACL)
            bed.rxvol(self.folder, "import", VOLUME, folder)
            self.options = ["--store", self.folder]
        else:
            self.options = ["--export", folder, "--volume", VOLUME, "--state", bed.fresh("state")]

    @contextlib.contextmanager
    def serve(self):
        # The path of a socket is short.
        with tempfile.TemporaryDirectory(prefix="crowd-") as short:
            path = os.path.join(short, "metrics")
            target = self.bed.rxfsd(self.name, [*self.options, "--require", "none", "--metrics-socket", path], VOLUME,
                                    self.folder, self.before)
            words = ["-s", target.address, "-v", str(target.vl_port), "-f", str(target.fs_port), "-V", VOLUME]
            try:
                yield Running(target.server, [target.pid], words + self.addresses(), lambda: self.sent_again(path),
                              lambda: self.metrics(path))
            finally:
                self.bed.end()

    def addresses(self):
        return own_addresses(self.bed)

    @staticmethod
    def metrics(path):
        return ask_socket(path, b"GET /metrics HTTP/1.0\r\n\r\n").decode()

    @classmethod
    def sent_again(cls, path):
        """DATA packets that the server has retransmitted."""
        text = cls.metrics(path)
        found = [float(line.split()[-1]) for line in text.splitlines() if line.startswith("rxwire_retransmitted_total")]
        if not found:
            raise Failed("rxfsd: the metrics have no rxwire_retransmitted_total")
        return int(sum(found))


def own_addresses(bed):
    """
    The option of crowd_load with which each AFS client has an address of its own: a file server gives each address a
    share. In the namespaces of the cell, addresses of a further network are local ones.
    """
    if bed.address.startswith("127."):
        return ["-b", "127.1.0.1"]
    run_program(["ip", "route", "replace", "local", "10.128.0.0/16", "dev", "lo"], timeout=60)
    return ["-b", "10.128.0.1"]


NGINX = """daemon off;
{user}worker_processes {workers};
worker_rlimit_nofile {files};
pid {work}/pid;
error_log {work}/error.log;
events {{ worker_connections 4096; }}
http {{
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_timeout 600;
	keepalive_requests 1000000000;
	client_body_temp_path {work}/body;
	proxy_temp_path {work}/proxy;
	fastcgi_temp_path {work}/fastcgi;
	uwsgi_temp_path {work}/uwsgi;
	scgi_temp_path {work}/scgi;
	server {{ listen {address}:{port}; root "{root}"; }}
}}
"""


class Nginx:
    """HTTP from the page cache by sendfile(): one connection for each client."""

    name = "nginx, sendfile"

    def __init__(self, bed, folder):
        self.bed, self.folder = bed, folder
        self.program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin")
        if not self.program:
            raise Missing("nginx is not installed")

    @staticmethod
    def processes(server, workers):
        """The master and its workers, which it starts after it has bound the port."""
        pid, end = server.process.pid, time.monotonic() + START_S
        while len(children(pid)) < workers:
            if server.process.poll() is not None or time.monotonic() > end:
                raise Failed(f"nginx has started {len(children(pid))} of {workers} workers in {START_S} s")
            time.sleep(0.01)
        return [pid, *children(pid)]

    @contextlib.contextmanager
    def serve(self):
        work, port = self.bed.fresh("nginx"), free_tcp_port()
        workers = len(os.sched_getaffinity(0))
        path = os.path.join(work, "nginx.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(NGINX.format(work=work, address=self.bed.address, port=port, root=self.folder, files=8192,
                                 workers=workers, user="user root;\n" if os.geteuid() == 0 else ""))
        server = Server([self.program, "-e", os.path.join(work, "error.log"), "-p", work, "-c", path], [port],
                        self.bed.place.log(f"nginx-{port}"), "tcp")
        try:
            yield Running(server, self.processes(server, workers), ["-s", self.bed.address, "-w", str(port)], tcp_sent_again)
        finally:
            # Killed, it would leave its workers behind.
            if server.process.returncode is None:
                server.finish()


class OpenAfsVolume:
    """The volume of OpenAFS's cell in which this runs, filled with the files. The cell's file server ends then."""

    def __init__(self, bed, folder):
        self.bed, pid = bed, bed.openafs.pid
        self.program = os.readlink(f"/proc/{pid}/exe")
        names = sorted(os.listdir(folder))
        afscp = bed.place.program("src/afscp/afscp")
        run_program([afscp, "-s", bed.openafs.where, "put", *(os.path.join(folder, n) for n in names), VOLUME + ":"],
                    timeout=1200)
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + 60
        while os.path.exists(f"/proc/{pid}"):
            if time.monotonic() > deadline:
                raise Failed("OpenAFS's file server does not end")
            time.sleep(0.05)


# As for a large server, with more threads, large caches and buffers, no log, and no answer that it is busy.
OPENAFS_OPTIONS = ["-d", "0", "-L", "-p", "256", "-busyat", "10000", "-rxpck", "8192", "-s", "24000", "-l", "24000",
                   "-cb", "1000000", "-b", "512", "-vc", "1200", "-udpsize", "16777216", "-sendsize", "16777216"]


class OpenAfs:
    """OpenAFS's file server, with further options."""

    folder = "/vicepa"

    def __init__(self, name, volume, options):
        self.name, self.volume, self.bed = name, volume, volume.bed
        self.options = [*OPENAFS_OPTIONS, *options]

    @contextlib.contextmanager
    def serve(self):
        target = self.bed.openafs
        server = Server([self.volume.program, *self.options], [target.fs_port],
                        self.bed.place.log("openafs-" + str(time.monotonic_ns())), end=signal.SIGQUIT)
        words = ["-s", target.address, "-v", str(target.vl_port), "-f", str(target.fs_port), "-V", VOLUME,
                 *own_addresses(self.bed)]
        words += ["-j"] * ("-jumbo" in self.options)
        try:
            self.wait_for_volume(target)
            yield Running(server, [server.process.pid], words, self.sent_again)
        finally:
            # Killed, it would leave a volume that has to be salvaged.
            if server.process.returncode is None:
                with contextlib.suppress(Failed):
                    server.finish()

    def wait_for_volume(self, target):
        """Until the server has attached its volumes."""
        afscp, deadline = self.bed.place.program("src/afscp/afscp"), time.monotonic() + 60
        while True:
            try:
                return run_program([afscp, "-s", target.where, "stat", VOLUME + ":f00000"], timeout=60)
            except Failed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def sent_again(self):
        """DATA packets that the server has retransmitted."""
        target = self.bed.openafs
        text, _, _ = run_program(["rxdebug", target.address, str(target.fs_port), "-rxstats", "-noconns"], timeout=60)
        found = re.search(r"\bresends (\d+)", text)
        if not found:
            raise Failed("rxdebug: its statistics have no resends")
        return int(found[1])


STATUS = struct.Struct("=QLLLL"), struct.Struct("=QQLL")  # crowd_raw.h: the request and the answer


class Datagrams:
    """Plain datagrams from the page cache: what the kernel can do."""

    name = "plain datagrams"

    def __init__(self, bed, folder, files):
        self.bed, self.folder, self.files = bed, folder, files
        self.program = bed.place.program("src/bench/crowd_raw_server")

    @contextlib.contextmanager
    def serve(self):
        port, status_port = free_port(), free_port()
        server = Server([self.program, self.bed.address, str(port), str(status_port), self.folder, str(self.files),
                         *self.bed.a.lose], [port, status_port], self.bed.place.log(f"datagrams-{port}"))
        words = ["-s", self.bed.address, "-d", str(port), "-q", str(status_port)]
        try:
            yield Running(server, [server.process.pid], words, lambda: self.sent_again(status_port))
        finally:
            server.kill()

    def sent_again(self, status_port):
        """Datagrams that clients have asked for again."""
        request, answer = STATUS
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(5)
            s.connect((self.bed.address, status_port))
            s.send(request.pack(0, 0, 0, 0, 0))
            return answer.unpack(s.recv(answer.size))[1]


def cell(bed, contestant, clients, files, seconds, content=()):
    """The figures of one contestant with that many clients. `content`: options of crowd_load to compare the data."""
    warm(contestant.folder)
    with contestant.serve() as running:
        words = [bed.place.program("src/bench/crowd_load"), *running.words, "-c", str(clients), "-n", str(files),
                 "-t", str(seconds), *content]
        for pid in running.pids:
            words += ["-P", str(pid)]
        again, before = running.sent_again(), switches(running.pids)
        with Threads(running.pids) as seen:
            text, _, _ = run_program(words, timeout=seconds + 180)
        r = json_object(words[0], text)
        r["sent_again"] = running.sent_again() - again
        r["threads"] = seen.most
        r["peak_MiB"] = sum(status(pid, "VmHWM") for pid in running.pids) / 1024
        # The kernel counts threads that have ended, too, only when the process has.
        r["switches"] = context_switches(running.server.finish()) - before
    gb = r["bytes"] / 1e9
    if gb:
        r.update(server_cpu_s_per_GB=r["server_cpu_s"] / gb, client_cpu_s_per_GB=r["client_cpu_s"] / gb,
                 switches_per_GB=r["switches"] / gb)
    return r


# -- the page ---------------------------------------------------------------------------------

# Heading, figure, factor, form.
COLUMNS = [("MB/s", "MBps", 1, "{:,.0f}"), ("server's CPU-s/GB", "server_cpu_s_per_GB", 1, "{:.3f}"),
           ("clients' CPU-s/GB", "client_cpu_s_per_GB", 1, "{:.3f}"), ("server's peak, MiB", "peak_MiB", 1, "{:,.0f}"),
           ("threads", "threads", 1, "{:,.0f}"), ("switches/GB", "switches_per_GB", 1, "{:,.0f}"),
           ("slowest ÷ median", "slowest_to_median", 1, "{:.2f}"), ("slowest ÷ mean", "slowest_to_mean", 1, "{:.2f}"),
           ("status, 99 %, ms", "status_p99_us", 1e-3, "{:,.2f}"), ("longest, ms", "status_max_us", 1e-3, "{:,.2f}"),
           ("sent again", "sent_again", 1, "{:,.0f}")]


def middle(cells, figure):
    """The median; None if a cell lacks the figure."""
    values = [c[figure] for c in cells if c.get(figure) is not None]
    return statistics.median(values) if values else None


def grouped(records):
    """{clients: {contestant: cells}}, in the order of the records."""
    found = {}
    for r in records:
        if r["type"] == "cell":
            found.setdefault(r["clients"], {}).setdefault(r["contestant"], []).append(r)
    return dict(sorted(found.items()))


def row(name, cells):
    seconds = f"{middle(cells, 'seconds'):,.2f}"
    stopped = sum(c["stopped"] for c in cells)
    if stopped:
        seconds += " (stopped)" if stopped == len(cells) else f" ({stopped} of {len(cells)} stopped)"
    values = [middle(cells, figure) for _, figure, _, _ in COLUMNS]
    return [name, seconds, *("–" if v is None else form.format(v * factor)
                             for v, (_, _, factor, form) in zip(values, COLUMNS))]


def table(contestants):
    head = ["server", "seconds", *(c[0] for c in COLUMNS)]
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + \
           ["| " + " | ".join(row(name, cells)) + " |" for name, cells in contestants.items()]


def error_notes(records):
    return [f"{r['contestant']}, {r['clients']} clients: {r['errors']} calls failed and were made again, the first one: "
            f"{r['first_error']}" for r in records if r["type"] == "cell" and r["errors"]]


def page(records):
    """The records as Markdown."""
    machines = [r for r in records if r["type"] == "machine"]
    loads = [r["load_average"] for r in records if "load_average" in r]
    lines = []
    if machines:
        m = machines[0]
        lines = [f"Revision {m['revision']}. Machine: {'; '.join(m['about'])}; load average {min(loads):.1f} to "
                 f"{max(loads):.1f}. A volume of {m['volume_bytes'] / MIB:,.0f} MiB in {m['files']} files; at most "
                 f"{m['seconds']} s a cell; medians of {m['rounds']} alternating rounds."]
    for clients, contestants in grouped(records).items():
        lines += ["", f"{clients:,} client{'s' if clients > 1 else ''}:", "", *table(contestants)]
    notes = ["Not measured: " + r["why"] for r in records if r["type"] == "skip"] + error_notes(records)
    return "\n".join(lines + [""] + ["- " + n for n in notes]) + "\n"


PLOTS = [("crowd-throughput", "Throughput of a crowd", "MB/s", "MBps", 1, False),
         ("crowd-cpu", "CPU time of the server of a crowd", "CPU-s/GB", "server_cpu_s_per_GB", 1, False),
         ("crowd-status", "99 % of the status calls beside a crowd", "ms", "status_p99_us", 1e-3, True)]


def plots(records):
    """The figures by the number of clients, as plots.given() draws them."""
    found = grouped(records)
    names = list(dict.fromkeys(name for contestants in found.values() for name in contestants))
    for name, title, label, figure, factor, log_y in PLOTS:
        series = [{"label": n, "points": [(clients, v * factor) for clients, contestants in found.items()
                                          if (v := middle(contestants.get(n, []), figure)) is not None]} for n in names]
        yield {"name": name, "title": title, "x": "clients", "y": label, "log_x": True, "log_y": log_y, "series": series}
