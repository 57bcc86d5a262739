# SPDX-License-Identifier: BSD-2-Clause
"""A file server with one volume and mounts of it, and the work of programs, for src/bench/mount."""
import os
import socket
import subprocess
import time

import measure

CELL = "bench.example"


def read_metrics(path):
    """The lines at a socket of metrics."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: s.recv(65536), b"")).decode().splitlines()


class Bed:
    """A file server with one volume, and mounts of it. `there` is a command that runs others where the server shall be."""

    def __init__(self, a, work, host="127.0.0.1", there=()):
        self.a, self.work, self.host, self.there, self.daemons = a, work, host, there, []
        store = os.path.join(work, "store")
        self.run("src/rxvol/rxvol", "-S", store, "init")
        self.run("src/rxvol/rxvol", "-S", store, "create", "root.cell", "--acl", "system:anyuser rlidwka")
        self.metrics = os.path.join(work, "metrics")
        self.server = self.start("src/fileserver/rxfsd", "--store", store, "--listen", host, "--port", "0", "--vl-port",
                                 "0", "--vol-port", "0", "--metrics-socket", self.metrics,
                                 "--require", "none", "--allow-anonymous-writes", there=there)
        words = self.server.stdout.readline().split()
        self.fs, self.vl = (words[words.index(k) + 1] for k in ("fs", "vl"))

    def program(self, name):
        return os.path.join(self.a.build, name)

    def run(self, name, *words):
        subprocess.run([self.program(name), *words], check=True, stdout=subprocess.DEVNULL)

    def start(self, name, *words, there=()):
        log = open(os.path.join(self.work, os.path.basename(name) + ".log"), "ab")
        return subprocess.Popen([*there, self.program(name), *words], stdout=subprocess.PIPE, stderr=log, text=True)

    def where(self):
        """The cell with its servers, for --servers."""
        return f"{CELL}={self.host}:{self.vl.rsplit(':', 1)[1]}:{self.fs.rsplit(':', 1)[1]}"

    def afscp(self, *words):
        """Runs afscp for a file of the volume, "root.cell:NAME"."""
        subprocess.run([self.program("src/afscp/afscp"), "-s", f"{self.vl}:{self.fs.rsplit(':', 1)[1]}", *words], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def mount(self, name, *options, there=()):
        """The folder of the volume, by its read-write path, and the daemon. `there`: as of the server."""
        at = os.path.join(self.work, name)
        os.makedirs(at, exist_ok=True)
        daemon = self.start("src/rxafs/rxafs", "--foreground", "--cell", CELL, "--servers", self.where(), *self.a.option,
                            *options, at, there=there)
        self.daemons.append((daemon, at))
        for _ in range(100):
            if os.path.ismount(at):
                return os.path.join(at, "." + CELL), daemon
            time.sleep(0.05)
        raise measure.Failed("rxafs did not mount")

    def unmount(self, daemon):
        """Unmounts; the seconds until the daemon has ended."""
        at = dict(self.daemons)[daemon]
        start = time.monotonic()
        subprocess.run(["umount", at], check=True)
        daemon.wait(timeout=60)
        self.daemons.remove((daemon, at))
        return time.monotonic() - start

    def calls(self):
        """Calls that the file service has got. Metrics are made anew once a second."""
        time.sleep(1.2)
        for line in read_metrics(self.metrics):
            if line.startswith("rxwire_calls_started_total") and self.fs in line:
                return int(float(line.split()[-1]))
        raise measure.Failed("rxfsd does not count calls")

    def close(self):
        for daemon, at in self.daemons:
            subprocess.run(["umount", "-l", at], check=False)
            daemon.kill()
            daemon.wait()
        self.server.terminate()
        self.server.wait()


def write_file(path, data):
    with open(path, "wb", buffering=0) as f:
        f.write(data)


def read_file(path, piece=1 << 20):
    count = 0
    with open(path, "rb", buffering=0) as f:
        while got := f.read(piece):
            count += len(got)
    return count


def list_long(path):
    for entry in os.scandir(path):
        entry.stat(follow_symlinks=False)


def read_tree(path):
    for folder, _, names in os.walk(path):
        for name in names:
            os.lstat(os.path.join(folder, name))
            read_file(os.path.join(folder, name))


def make_tree(top, count):
    os.mkdir(top)
    for i in range(count):
        folder = os.path.join(top, f"d{i // 100:03}")
        if i % 100 == 0:
            os.mkdir(folder)
        write_file(os.path.join(folder, f"f{i:05}"), b"x" * (1024 + i % 4096))


def git(path, *words):
    subprocess.run(["git", "-c", "safe.directory=*", "-c", "user.name=bench", "-c", "user.email=bench@example.com", "-C",
                    path, *words], check=True, stdout=subprocess.DEVNULL)


def write_pieces(path, count, size):
    with open(path, "wb", buffering=0) as f:
        for _ in range(count):
            f.write(b"y" * size)


def seconds(action):
    start = time.monotonic()
    action()
    return time.monotonic() - start
