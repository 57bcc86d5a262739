# SPDX-License-Identifier: BSD-2-Clause
"""Servers of the benchmark of file servers, loads on them, and what a flush costs."""
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

from contest import Missing
from measure import Failed, Server, free_port, json_object, run_program

VOLUME = "bench"
OPEN_ACL = "system:anyuser rlidwk"


class Target:
    """A server to send calls to: its address, ports, process and volume."""

    def __init__(self, name, address, fs_port, vl_port, pid, volume=VOLUME, server=None, folder=None):
        self.name, self.address, self.volume = name, address, volume
        self.fs_port, self.vl_port, self.pid = fs_port, vl_port, pid
        self.server, self.folder = server, folder

    def status_kib(self, field):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith(field + ":"))

    @property
    def where(self):
        """As afscp -s takes it."""
        return f"{self.address}:{self.vl_port}:{self.fs_port}"


class Bed:
    """The servers of one run. `put` writes a record, `end` ends all servers of ours."""

    def __init__(self, place, a, out):
        self.place, self.a, self.out = place, a, out
        self.address, self.openafs, self.servers = "127.0.0.1", None, []
        if a.openafs:
            self.address, pid = a.openafs.split(":")
            self.openafs = Target("OpenAFS", self.address, 7000, 7003, int(pid))
        self.counter = 0

    def put(self, kind, **record):
        self.out.write(json.dumps({"type": kind, "at": round(time.time(), 1),
                                   "load_average": os.getloadavg()[0], **record}, ensure_ascii=False) + "\n")
        self.out.flush()

    def end(self):
        for server in self.servers:
            server.kill()
        self.servers = []

    def fresh(self, name):
        """A folder of this run."""
        self.counter += 1
        path = os.path.join(self.place.work, f"{name}-{self.counter}")
        os.makedirs(path)
        return path

    def rxvol(self, store, *words):
        return run_program([self.place.program("src/rxvol/rxvol"), "-S", store, *words])

    def rxfsd(self, name, options, volume, folder, before=()):
        """`before`: words before the command."""
        fs_port, vl_port = free_port(), free_port()
        command = [*before, self.place.program("src/fileserver/rxfsd"), *options, "--listen", self.address,
                   "--port", str(fs_port), "--vl-port", str(vl_port)]
        server = Server(command, [fs_port, vl_port], self.place.log(f"rxfsd-{fs_port}"))
        self.servers.append(server)
        return Target(name, self.address, fs_port, vl_port, server.process.pid, volume, server, folder)

    def serve(self, store, durability="lazy"):
        """rxfsd on a store."""
        return self.rxfsd(durability, ["--store", store, "--durability", durability, "--require", "none",
                                       "--allow-anonymous-writes"], VOLUME, store)

    def new_store(self, folder=None, durability="lazy"):
        """A store with one empty volume, and its server."""
        store = os.path.join(folder or self.fresh("store"), "store")
        self.rxvol(store, "create", VOLUME, "--acl", OPEN_ACL)
        return self.serve(store, durability)

    def export(self, folder):
        """rxfsd on a directory."""
        state = self.fresh("state")
        return self.rxfsd("export", ["--export", folder, "--volume", "export", "--state", state,
                                     "--require", "none"], "export",
                          folder)

    def stop(self, target):
        target.server.stop()
        self.servers.remove(target.server)

    def words(self, target, load, clients=1, calls=100, **options):
        """The command of a load; `options` are other letters of fileserver_load, True: without a value."""
        words = [self.place.program("src/bench/fileserver_load"), "-s", target.address, "-v", str(target.vl_port),
                 "-f", str(target.fs_port), "-V", target.volume, "-P", str(target.pid), "-c", str(clients),
                 "-n", str(calls)]
        for letter, value in options.items():
            words += ["-" + letter] if value is True else ["-" + letter, str(value)]
        return [*words, load]

    @contextlib.contextmanager
    def background(self, target, load, **options):
        """A load that is killed at the end of the block."""
        process = subprocess.Popen(self.words(target, load, **options), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def load(self, target, load, **options):
        """The figures of a load."""
        words = self.words(target, load, **options)
        text, _, _ = run_program(words)
        r = json_object(words[0], text)
        self.put("sample", target=target.name, options=options, **r)
        return r

    def turns(self, targets, load, rounds=None, **options):
        """That load on each target, in turns, every second time backwards: {target's name: median figures}."""
        samples = {t.name: [] for t in targets}
        for i in range(rounds or self.a.rounds):
            for t in targets if i % 2 == 0 else reversed(targets):
                samples[t.name].append(self.load(t, load, **options))
        return {name: {key: statistics.median(r[key] for r in runs) for key in runs[0]
                       if isinstance(runs[0][key], (int, float))} for name, runs in samples.items()}

    def aim(self, text, value, sense, bound):
        self.put("aim", text=text, value=value, sense=sense, bound=bound)

    # -- the disk -------------------------------------------------------------------------------

    def flush_us(self, folder, count=200):
        """Microseconds of fdatasync() after a page of a file was overwritten, in turn."""
        path = os.path.join(folder, "flush")
        page = os.urandom(4096)
        times = []
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            for _ in range(64):
                os.write(fd, page)
            os.fsync(fd)
            for i in range(count):
                os.pwrite(fd, page, i % 64 * 4096)
                start = time.monotonic()
                os.fdatasync(fd)
                times.append((time.monotonic() - start) * 1e6)
        finally:
            os.close(fd)
            os.unlink(path)
        self.put("flush", folder=folder, mean_us=statistics.mean(times), median_us=statistics.median(times),
                 p99_us=sorted(times)[int(count * 0.99)], count=count)
        return statistics.median(times)

    # -- system calls ---------------------------------------------------------------------------

    def system_calls(self, target, work):
        """{name: calls} of the server while work() runs, by strace; and what work() returned."""
        if not shutil.which("strace"):
            raise Missing("strace is not installed")
        path = os.path.join(self.place.work, "strace")
        tracer = subprocess.Popen(["strace", "-c", "-f", "-U", "calls,name", "-o", path, "-p", str(target.pid)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True)
        try:
            line = tracer.stderr.readline()
            if "attached" not in line:
                raise Failed(f"strace: {line.strip()}")
            result = work()
        finally:
            tracer.terminate()
            tracer.communicate()
        with open(path, encoding="utf-8") as f:
            found = re.findall(r"^\s*(\d+)\s+(\w+)$", f.read(), re.M)
        return {name: int(calls) for calls, name in found if name != "total"}, result


def why_alone(build):
    """Why OpenAFS's file server cannot take part; empty if it can."""
    if os.geteuid() != 0:
        return "it needs root"
    if not os.path.exists(os.path.join(build, "src/tests/system/interop/cell_ours")):
        return "src/tests/system/interop/cell_ours is not built (make check TESTS= builds it)"
    return "" if shutil.which("unshare") else "unshare is not installed"


def run_beside_openafs(a, script, words, seconds, path=""):
    """
    Runs a script of this folder where OpenAFS's file server runs, with these words and --openafs ADDRESS:PID.
    `seconds`: at most. `path`: more folders with programs. Returns an empty string, or why OpenAFS's file server is not
    measured, as the text of a record.
    """
    why = why_alone(a.build)
    if why:
        return f"OpenAFS's file server: {why}"
    env = dict(os.environ, RXW_BENCH=" ".join(words), RXW_BENCH_SCRIPT=script, RXW_BENCH_PATH=path,
               RXW_BENCH_SECONDS=str(seconds), TMPDIR=a.folder)
    run = subprocess.Popen(["bash", os.path.join(a.source, "src/tests/system/interop/run"), "--verbose", a.build,
                            "bench"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    try:
        said = run.communicate()[0]
    except BaseException:
        run.send_signal(signal.SIGTERM)
        run.communicate()
        raise
    if run.returncode == 0:
        return ""
    print(said[-4000:], file=sys.stderr)
    found = re.search(r"^(SKIP|FAIL): \S+ (.*)$", said, re.M)
    if not found:
        return f"failed: OpenAFS's file server: the interoperation tests ended with {run.returncode}"
    return ("failed: " if found[1] == "FAIL" else "") + f"OpenAFS's file server: {found[2]}"


class Mounted:
    """A file system in a file, on a loop device. Needs root. Raises Missing if it cannot be."""

    def __init__(self, folder, kind, gib):
        tool = shutil.which("mkfs." + kind) or shutil.which("mkfs." + kind, path="/usr/sbin:/sbin")
        if not tool:
            raise Missing(f"mkfs.{kind} is not installed")
        self.image, self.path = os.path.join(folder, kind + ".image"), os.path.join(folder, kind)
        self.mounted = False
        with open(self.image, "wb") as f:
            f.truncate(gib << 30)
        os.makedirs(self.path)
        for command in ([tool, "-q", self.image], ["mount", "-o", "loop", self.image, self.path]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                self.close()
                raise Missing(f"{command[0]}: {done.stdout.strip()[-200:]}")
        self.mounted = True

    def close(self):
        if self.mounted:
            subprocess.run(["umount", self.path], stdin=subprocess.DEVNULL)
        if os.path.exists(self.image):
            os.unlink(self.image)
