# SPDX-License-Identifier: BSD-2-Clause
"""A file on a disk: plain readers, little memory for it, a slower disk, a trace of requests."""
import json
import mmap
import os
import re
import signal
import subprocess
import sys
import threading
import time

PIECE = 1 << 20
TRACING = "/sys/kernel/tracing"


def write_text(path, text):
    with open(path, "w") as f:
        f.write(text)


def read_text(path):
    with open(path) as f:
        return f.read()


def make_file(path, size):
    """A file of random bytes. An existing one is reused."""
    if os.path.exists(path) and os.path.getsize(path) == size:
        return
    part = path + ".part"
    block = os.urandom(8 << 20)
    with open(part, "wb", buffering=0) as f:
        os.posix_fallocate(f.fileno(), 0, size)
        for _ in range(0, size, len(block)):
            f.write(block)
        f.truncate(size)
        os.fsync(f.fileno())
    os.chmod(part, 0o644)
    os.rename(part, path)


def drop(path):
    """Removes the file from the page cache. Dirty pages and those being read stay."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def device_of(path):
    """(major, minor) of the disk with this file's blocks; None if the file system hides it."""
    st = os.stat(path)
    device = (os.major(st.st_dev), os.minor(st.st_dev))
    sys_path = "/sys/dev/block/%d:%d" % device
    if not os.path.exists(sys_path):
        return None
    parent = os.path.join(os.path.dirname(os.path.realpath(sys_path)), "dev")
    if os.path.exists(os.path.join(sys_path, "partition")) and os.path.exists(parent):
        device = tuple(int(n) for n in read_text(parent).split(":"))
    return device


def setting_of(device, name):
    """A number below /sys/dev/block/DEVICE/queue."""
    return int(read_text("/sys/dev/block/%d:%d/queue/%s" % (*device, name)))


# -- plain readers: the disk's own rate ---------------------------------------------------------

def read_streams(path, streams, seconds):
    """Each reads from its own offset, a MiB at a time, with a descriptor of its own."""
    size = os.path.getsize(path)
    done = [0] * streams
    start = time.monotonic()

    def reader(i):
        buffer = mmap.mmap(-1, PIECE)
        begin, end = size // streams * i, size // streams * (i + 1)
        at = begin
        fd = os.open(path, os.O_RDONLY)
        while time.monotonic() - start < seconds:
            done[i] += os.preadv(fd, [buffer], at)
            at = at + PIECE if at + 2 * PIECE <= end else begin
        os.close(fd)

    threads = [threading.Thread(target=reader, args=(i,)) for i in range(streams)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    elapsed = time.monotonic() - start
    return {"bytes": sum(done), "seconds": elapsed, "MBps": sum(done) / elapsed / 1e6}


# -- a group of processes with little memory, or a slow disk ------------------------------------

class Group:
    """Processes with limited cache and read rate. Without the privileges it has no effect."""

    def __init__(self, name, memory=0, device=None, rate=0):
        self.folders = []
        self.memory = self.rate = False
        v1 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup/blkio"
        try:
            if os.path.isdir(v1[0]):
                if memory:
                    self.enter(os.path.join(v1[0], name), "memory.limit_in_bytes", str(memory))
                    self.memory = True
                if rate and device:
                    self.enter(os.path.join(v1[1], name), "blkio.throttle.read_bps_device",
                               "%d:%d %d" % (*device, rate))
                    self.rate = True
            elif os.path.exists("/sys/fs/cgroup/cgroup.subtree_control"):
                write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory +io")
                folder = os.path.join("/sys/fs/cgroup", name)
                if memory:
                    self.enter(folder, "memory.max", str(memory))
                    self.memory = True
                if rate and device:
                    self.enter(folder, "io.max", "%d:%d rbps=%d" % (*device, rate))
                    self.rate = True
        except OSError:
            pass

    def enter(self, folder, setting, value):
        os.makedirs(folder, exist_ok=True)
        if folder not in self.folders:
            self.folders.append(folder)
        write_text(os.path.join(folder, setting), value)

    def command(self, command):
        """The same command, run as a member of the group."""
        joins = "".join(f"echo $$ >{f}/cgroup.procs && " for f in self.folders)
        return ["sh", "-c", joins + 'exec "$@"', "sh", *command] if joins else list(command)

    def close(self):
        for folder in self.folders:
            for _ in range(50):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.02)
        self.folders = []


class ReadAhead:
    """Changes the kernel's readahead for a while; in KiB. Needs root."""

    def __init__(self, device, kib):
        self.path = "/sys/dev/block/%d:%d/queue/read_ahead_kb" % device
        self.before = read_text(self.path).strip()
        write_text(self.path, str(kib))
        self.handlers = {s: signal.signal(s, self.stopped) for s in (signal.SIGTERM, signal.SIGHUP)}

    def stopped(self, number, frame):
        self.close()
        sys.exit(128 + number)

    def close(self):
        write_text(self.path, self.before)
        for s, handler in self.handlers.items():
            signal.signal(s, handler)


# -- the kernel's requests to the disk ----------------------------------------------------------

TRACE_LINE = re.compile(r"\s(\d+\.\d+): block_rq_(issue|complete): (\d+),(\d+) (R\w*) "
                        r"(?:\d+ )?\([^)]*\) (\d+) \+ (\d+)")


def parse_trace(lines, device):
    """Read requests of a disk: [(issued ns, completed ns, bytes)], in the order of their issue."""
    waiting, done = {}, []
    for line in lines:
        found = TRACE_LINE.search(line)
        if not found or (int(found[3]), int(found[4])) != device:
            continue
        ns = int(found[1].replace(".", "")) * 1000
        sector, size = int(found[6]), int(found[7]) * 512
        if found[2] == "issue":
            waiting[sector] = ns, size
        elif sector in waiting:
            issued, size = waiting.pop(sector)
            done.append((issued, ns, size))
    return sorted(done)


class Trace:
    """Records the block layer's read requests of one disk. Needs root."""

    def __init__(self, device):
        self.device = device
        self.folder = os.path.join(TRACING, "instances", "rxwire-bench-%d" % os.getpid())
        os.mkdir(self.folder)
        try:
            write_text(os.path.join(self.folder, "trace_clock"), "mono")
            write_text(os.path.join(self.folder, "buffer_size_kb"), "8192")
            for event in ("block_rq_issue", "block_rq_complete"):
                write_text(os.path.join(self.folder, "events/block", event, "enable"), "1")
        except OSError:
            self.close()
            raise

    def requests(self):
        with open(os.path.join(self.folder, "trace")) as f:
            return parse_trace(f, self.device)

    def close(self):
        try:
            os.rmdir(self.folder)
        except OSError:
            pass


def main():
    """disk.py FILE STREAMS SECONDS: the readers in a process of their own. Prints a line of
    JSON."""
    print(json.dumps(read_streams(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))


def plain(path, streams, seconds, group):
    """Rate of plain readers that are members of the group."""
    command = group.command([sys.executable, "-B", os.path.abspath(__file__), path, str(streams),
                             str(seconds)])
    out = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)["MBps"]


if __name__ == "__main__":
    main()
