# SPDX-License-Identifier: BSD-2-Clause
"""Rows of src/bench/mount: times beside the local disk, afscp and libfuse's own passthrough example; memory."""
import mmap
import os
import resource
import statistics
import subprocess
import time

import measure
from mountbed import CELL, list_long, make_tree, read_file, read_metrics, seconds, write_file, write_pieces

FLOOR = "/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c"
PIECE = 1 << 20


def touch_memory(size):
    """A machine that is virtual may get its memory at the first touch, which is slow; the kernel uses this again."""
    with mmap.mmap(-1, size) as m:
        for at in range(0, size, mmap.PAGESIZE):
            m[at] = 1


class Floor:
    """A folder through libfuse's passthrough example, or nothing if its source is not installed."""

    def __init__(self, work):
        self.at, self.daemon = None, None
        if not os.path.exists(FLOOR):
            return
        program, self.inside = os.path.join(work, "passthrough"), os.path.join(work, "floor.src")
        write_file(os.path.join(work, "config.h"), b"")
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.split()
        subprocess.run(["cc", "-O2", "-w", "-I", work, FLOOR, "-o", program, *flags], check=True)
        self.at = os.path.join(work, "floor")
        os.mkdir(self.inside)
        os.mkdir(self.at)
        # It keeps a descriptor for each file.
        resource.setrlimit(resource.RLIMIT_NOFILE, 2 * resource.getrlimit(resource.RLIMIT_NOFILE)[1:])
        self.daemon = subprocess.Popen([program, "-f", "-o", f"source={self.inside},cache=always,timeout=3600", self.at])
        for _ in range(100):
            if os.path.ismount(self.at):
                return
            time.sleep(0.05)
        raise measure.Failed("passthrough_ll did not mount")

    def close(self):
        if self.daemon:
            subprocess.run(["umount", "-l", self.at], check=False)
            self.daemon.wait()


def microseconds_of_stat(path):
    count = 20000
    return seconds(lambda: [os.stat(path) for _ in range(count)]) / count * 1e6


def read_by(readers, path, count, size, flags):
    """`count` reads of `size` bytes in `readers` processes, each in its own part of a file; the seconds."""
    length = os.path.getsize(path)

    def read_part(i):
        fd = os.open(path, os.O_RDONLY | flags)
        with mmap.mmap(-1, size) as buffer:
            at = i * (length // readers) // size * size
            for _ in range(count // readers):
                os.preadv(fd, [buffer], at)
                at = at + size if at + 2 * size <= length else 0

    def work():
        children = []
        for i in range(readers):
            pid = os.fork()
            if not pid:
                read_part(i)
                os._exit(0)
            children.append(pid)
        for pid in children:
            if os.waitpid(pid, 0)[1]:
                raise measure.Failed("a reader failed")
    return seconds(work)


def read_by_kernel(bed, name, large):
    """The seconds of a read of "big" in the read-only volume, once the kernel reads the file of the cache by itself. None: it does not."""
    bed.run("src/rxvol/rxvol", "-S", os.path.join(bed.work, "store"), "clone", "root.cell")
    socket = os.path.join(bed.work, name + "-metrics")
    top, daemon = bed.mount(name, "--cache", os.path.join(bed.work, name + "-cache"), "--cache-size", f"{6 * large}M",
                            "--metrics-socket", socket)
    path = os.path.join(os.path.dirname(top), CELL, "big")
    taken = None
    for _ in range(60):
        read_file(path)
        with open(path, "rb"):
            if "rxafs_kernel_files 1" in read_metrics(socket):
                taken = seconds(lambda: read_file(path))
                break
        time.sleep(0.5)
    bed.unmount(daemon)
    return taken


def take_times(bed, a, floor, take):
    """One turn."""
    local = os.path.join(bed.work, "local")
    turn = len(os.listdir(bed.work))
    data = os.urandom(PIECE)

    def write(folder):
        with open(folder + "/big", "wb", buffering=0) as f:
            for _ in range(a.large):
                f.write(data)

    touch_memory(8 * a.large << 20)
    start = time.monotonic()
    top, daemon = bed.mount(f"times{turn}")
    take("mount", time.monotonic() - start)
    os.listdir(top)
    take("write ext4", seconds(lambda: write(local)))
    take("put", seconds(lambda: bed.afscp("put", local + "/big", "root.cell:put")))
    os.unlink(top + "/put")
    take("write mount", seconds(lambda: write(top)))
    again, second = bed.mount(f"cold{turn}")
    os.listdir(again)
    take("cold", seconds(lambda: read_file(again + "/big")))
    take("get", seconds(lambda: bed.afscp("get", "root.cell:big", "/dev/null")))
    for name, folder in [("mount", again), ("ext4", local), *([("floor", floor.at)] if floor.at else [])]:
        if name == "floor":
            write(folder)
            read_file(folder + "/big")
        take("warm " + name, seconds(lambda: read_file(folder + "/big")))
        write_file(folder + "/one", b"1")
        take("stat " + name, microseconds_of_stat(folder + "/one"))
    write_file(again + "/part", data * 16)
    for name, size, flags, path in [("cached", PIECE, 0, again + "/part"), ("direct", 1 << 16, os.O_DIRECT, again + "/part"),
                                    ("ext4", PIECE, 0, local + "/big")]:
        read_by(1, path, 256, size, flags)
        for readers in (1, 8):
            take(f"{name} {readers}", read_by(readers, path, 4000, size, flags))
    words = subprocess.run([bed.program("src/bench/library_stat"), bed.where(), "." + CELL, "one"], check=True,
                           stdout=subprocess.PIPE).stdout.split()
    take("library stat", int(words[0]) / 1000)
    take("library look-up", int(words[1]) / 1000)
    taken = read_by_kernel(bed, f"kernel{turn}", a.large) if os.geteuid() == 0 else None
    if taken:
        take("by kernel", taken)
    os.unlink(top + "/big")
    for name, folder in [("mount", top), *([("floor", floor.at)] if floor.at else [])]:
        os.mkdir(f"{folder}/untar{turn}")
        take("untar " + name, seconds(lambda: subprocess.run(["tar", "--no-same-owner", "-C", f"{folder}/untar{turn}", "-xf",
                                                              bed.work + "/tree.tar"], check=True)))
    take("unmount", bed.unmount(second))
    take("unmount", bed.unmount(daemon))


def compare_times(bed, a, out):
    os.mkdir(os.path.join(bed.work, "local"))
    make_tree(bed.work + "/tree", 5000)
    subprocess.run(["tar", "-C", bed.work, "-cf", bed.work + "/tree.tar", "tree"], check=True)
    rows = {}
    floor = Floor(bed.work)
    try:
        for _ in range(a.rounds):
            take_times(bed, a, floor, lambda name, value: rows.setdefault(name, []).append(value))
    finally:
        floor.close()
    middle = {name: statistics.median(values) for name, values in rows.items()}
    rate = a.large * PIECE / 1e6
    out("cold read, MB/s", rate / middle["cold"], None)
    out("cold read ÷ afscp get", middle["get"] / middle["cold"], 0.7)
    out("read from the kernel's cache ÷ ext4", middle["warm ext4"] / middle["warm mount"], 0.9)
    if "by kernel" in middle:
        out("read of a cached read-only file by the kernel ÷ ext4", middle["warm ext4"] / middle["by kernel"], 0.9)
    out("write and close, MB/s", rate / middle["write mount"], None)
    out("write and close ÷ afscp put", middle["put"] / middle["write mount"], 0.6)
    out("write and close ÷ ext4", middle["write ext4"] / middle["write mount"], None)
    out("8 readers ÷ 1, from the kernel's cache", middle["cached 1"] / middle["cached 8"], 1.7)
    out("8 readers ÷ 1, ext4", middle["ext4 1"] / middle["ext4 8"], None)
    out("8 readers ÷ 1, from the daemon's memory", middle["direct 1"] / middle["direct 8"], 1.7)
    out("untar of 5,000 files, s", middle["untar mount"], None)
    if floor.at:
        out("untar ÷ floor (at most)", middle["untar mount"] / middle["untar floor"], 2.5)
        out("floor: read from the kernel's cache ÷ ext4", middle["warm ext4"] / middle["warm floor"], None)
    out("stat, µs", middle["stat mount"], None)
    out("stat ÷ ext4 (at most)", middle["stat mount"] / middle["stat ext4"], 2)
    out("stat through the library, µs (at most)", middle["library stat"], 1)
    out("look-up and stat through the library, µs", middle["library look-up"], None)
    out("mount, s (at most)", middle["mount"], 0.2)
    out("unmount, s (at most)", middle["unmount"], 0.3)


# -- memory ----------------------------------------------------------------------------------------

def mebibytes(daemon, what):
    with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith(what + ":"):
                return int(line.split()[1]) / 1024
    raise measure.Failed("the kernel does not tell the memory of a process")


def measure_memory(bed, a, out):
    top, daemon = bed.mount("memory")
    os.listdir(top)
    time.sleep(1)
    out("memory, idle, MiB (at most)", mebibytes(daemon, "VmRSS"), 20)
    with open(top + "/sparse", "wb") as f:
        f.truncate(4 << 30)
    source = os.path.join(bed.work, "objects")
    for i in range(a.objects):
        if i % 1000 == 0:
            os.makedirs(f"{source}/{i // 1000}")
        os.mknod(f"{source}/{i // 1000}/{i}")
    bed.afscp("put", "-r", "-j", "16", source, "root.cell:objects")
    again, second = bed.mount("listed")
    for folder in os.scandir(again + "/objects"):
        list_long(folder.path)
    out(f"memory, {a.objects:,} objects, MiB (at most)", mebibytes(second, "VmRSS"), 100)
    bed.unmount(second)
    again, second = bed.mount("large")
    read_file(again + "/sparse")
    out("memory, 4 GiB read, MiB (at most)", mebibytes(second, "VmHWM"), 100)
    bed.unmount(second)
    again, second = bed.mount("written")
    write_pieces(again + "/sparse", 1024, PIECE)
    out("memory, 1 GiB written, MiB (at most)", mebibytes(second, "VmHWM"), 100)
    bed.unmount(second)
    bed.unmount(daemon)


def measure_seen(bed, out):
    """How long after the writer's call has returned a second client sees the change, by read() and by stat()."""
    one, _ = bed.mount("writer")
    two, _ = bed.mount("reader")
    write_file(one + "/seen", b"0" * 100)
    fd = os.open(two + "/seen", os.O_RDONLY)
    times = []
    for i in range(1, 1001):
        data = b"%d" % (i % 10) * 100
        write_file(one + "/seen", data)
        os.utime(one + "/seen", (i, i))
        begin = time.monotonic()
        while os.pread(fd, 200, 0) != data or os.stat(two + "/seen").st_mtime != i:
            pass
        times.append(time.monotonic() - begin)
    os.close(fd)
    times.sort()
    out("a change is seen by another client, ms (99 %)", 1000 * times[989], 20)
