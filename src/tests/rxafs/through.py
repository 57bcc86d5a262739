# SPDX-License-Identifier: BSD-2-Clause
"""What through.sh does: through.py FOLDER STEP [MOUNTED [ARGUMENT]]"""
import errno
import fcntl
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time

WORK, STEP = sys.argv[1:3]
HERE = sys.argv[3] if len(sys.argv) > 3 else None
RW = WORK + "/write/test.example/rw"
PAGE = 4096
PAGES = 301  # more than one block of the cache


def page(version, number):
    return b"%08d %08d " % (version, number) * (PAGE // 18) + b"." * (PAGE % 18)


def contents(version):
    """Of another length each; the end is within a page."""
    return b"".join(page(version, i) for i in range(PAGES + version % 7))[:-100 - version]


def check(condition, text):
    if not condition:
        raise SystemExit(text)


def kernel_files():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(WORK + "/metrics")
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("rxafs_kernel_files "))


def wait_for(condition, text, limit=60):
    end = time.monotonic() + limit
    while not condition():
        check(time.monotonic() < end, text)
        time.sleep(0.02)


def read_all(fd):
    parts, at = [], 0
    while part := os.pread(fd, 1 << 18, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def read_path(name):
    fd = os.open(f"{HERE}/{name}", os.O_RDONLY)
    try:
        return read_all(fd)
    finally:
        os.close(fd)


def write(name, data, mode=0o644):
    with open(f"{RW}/{name}", "wb") as f:
        f.write(data)
    os.chmod(f"{RW}/{name}", mode)


def release():
    subprocess.run([WORK + "/release"], check=True)


def publish(name, version):
    """A new version in the read-only volume, which readers of names see from then on."""
    write(name, contents(version))
    release()
    wait_for(lambda: read_path(name) == contents(version), f"version {version} of {name} is not seen")


def open_by_kernel(name):
    """A descriptor that the kernel reads by itself."""
    wanted = kernel_files() + 1
    fd = -1

    def opened():
        nonlocal fd
        if fd >= 0:
            os.close(fd)
        fd = os.open(f"{HERE}/{name}", os.O_RDONLY)
        if kernel_files() >= wanted:
            return True
        read_all(fd)
        return False
    wait_for(opened, f"the kernel does not read {name} by itself")
    return fd


def prepare():
    for name in ("file", "other", "turning"):
        write(name, contents(1))
    for i in range(20):
        write(f"filler{i}", contents(100 + i))
    write("small", b"small")
    release()


def read_twice():
    check(kernel_files() == 0, "the kernel reads a file before one was opened")
    fd = open_by_kernel("file")
    check(read_all(fd) == contents(1), "wrong bytes")
    check(os.pread(fd, 100, PAGE * 70 + 3) == contents(1)[PAGE * 70 + 3:][:100], "wrong bytes of a part")
    check(os.pread(fd, 100, len(contents(1))) == b"", "bytes behind the end")
    check(os.lseek(fd, 0, os.SEEK_END) == len(contents(1)), "another end")
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
        check(m[:] == contents(1), "wrong bytes of a map")
    more = [os.open(HERE + "/file", os.O_RDONLY) for _ in range(5)]
    check(kernel_files() == 1, "several files of one version")
    check(all(read_all(f) == contents(1) for f in more), "wrong bytes of one of several descriptors")
    for f in more + [fd]:
        os.close(f)
    wait_for(lambda: kernel_files() == 0, "a file is kept after its last close")
    with open(HERE + "/small", "rb") as f:
        check(f.read() == b"small", "a small file")
    try:
        os.close(os.open(HERE + "/file", os.O_RDWR))
        check(False, "a read-only file was opened for writing")
    except OSError as e:
        check(e.errno == errno.EROFS, f"open for writing: {e}")


def change_versions():
    """Who has a version open keeps it, and its length."""
    held = []
    for version in range(1, 6):
        publish("file", version)
        fd = open_by_kernel("file")
        held.append((version, fd, mmap.mmap(fd, 0, prot=mmap.PROT_READ)))
        for v, f, m in held:
            check(read_all(f) == contents(v), f"version {v} has other bytes when {version} is there")
            check(os.fstat(f).st_size == len(contents(v)), f"version {v} has another length when {version} is there")
            check(m[:] == contents(v), f"a map of version {v} has other bytes when {version} is there")
        check(os.stat(HERE + "/file").st_size == len(contents(version)), f"version {version} has another length")
        check(read_path("file") == contents(version), f"version {version} has other bytes by its name")
    # A descriptor of an earlier version has no name any more.
    try:
        fd = os.open(f"/proc/self/fd/{held[0][1]}", os.O_RDONLY)
        check(read_all(fd) in (contents(1), contents(5)), "wrong bytes of a descriptor that was opened again")
        os.close(fd)
    except OSError as e:
        check(e.errno == errno.ESTALE, f"opened again: {e}")
    for _, f, m in held:
        m.close()
        os.close(f)
    wait_for(lambda: kernel_files() == 0, "files are kept after their last close")
    check(read_path("file") == contents(5), "the last version, opened again")


def exceed_turns():
    """More versions of one file than nodes."""
    held = []
    for version in range(2, 22):
        publish("turning", version)
        if version < 16:
            held.append((version, open_by_kernel("turning")))
        else:
            held.append((version, os.open(HERE + "/turning", os.O_RDONLY)))
    for version, fd in held[:14]:
        check(read_all(fd) == contents(version), f"version {version} has other bytes")
    check(read_path("turning") == contents(21), "the last version")
    for _, fd in held:
        os.close(fd)
    check(read_path("turning") == contents(21), "the last version, alone")


def mix_ways():
    """Descriptors of one file in all ways at once."""
    fd = open_by_kernel("other")
    direct = os.open(HERE + "/other", os.O_RDONLY | os.O_DIRECT)
    append = os.open(HERE + "/other", os.O_RDONLY | os.O_APPEND)
    with mmap.mmap(-1, PAGE) as buffer:
        check(os.preadv(direct, [buffer], PAGE * 5) == PAGE and buffer[:] == page(1, 5), "a direct read")
    check(read_all(append) == contents(1), "a descriptor for appending")
    publish("other", 2)
    check(read_all(fd) == contents(1), "the version that was opened")
    for f in (direct, append):
        check(read_all(f) in (contents(1), contents(2)), "a direct descriptor after a change")
    fresh = os.open(HERE + "/other", os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, PAGE) as buffer:
        check(os.preadv(fresh, [buffer], PAGE * 5) == PAGE and buffer[:] == page(2, 5), "a direct read of the new version")
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.flock(fd, fcntl.LOCK_SH)
    fcntl.flock(fd, fcntl.LOCK_UN)
    check(flags & os.O_ACCMODE == os.O_RDONLY, "other flags")
    for f in (fd, direct, append, fresh):
        os.close(f)


def read_beside_releases():
    """Who opens a file sees the last version that was released before, and no page of another file or place."""
    done, seen, failed = threading.Event(), [1], []
    write("file", contents(1))
    release()
    wait_for(lambda: read_path("file") == contents(1), "the first version")

    def look():
        while not done.is_set() and not failed:
            least = seen[0]
            try:
                data = read_path("file")
            except OSError as e:
                failed.append(str(e))
                return
            for i in range(0, len(data) - PAGE, PAGE):
                version = int(data[i:i + 8])
                own = page(version, i // PAGE)
                end = max(0, len(contents(version)) - i)
                # An end that others have moved meanwhile is followed by zeros.
                if data[i:i + PAGE] not in (own, own[:end].ljust(PAGE, b"\0")) or version < least:
                    failed.append(f"page {i // PAGE} is {data[i:i + 20]} when version {least} was released")
                    return
    readers = [threading.Thread(target=look) for _ in range(3)]
    for r in readers:
        r.start()
    for version in range(2, 12):
        publish("file", version)
        seen[0] = version
    done.set()
    for r in readers:
        r.join()
    check(not failed, f"{failed}")


def run_programs():
    with open("/bin/bash", "rb") as f:
        program = f.read()
    write("program", program, 0o755)
    release()
    wait_for(lambda: os.path.exists(HERE + "/program") and read_path("program") == program, "the program")
    fd = open_by_kernel("program")
    command = ["-c", "echo runs; while read -r line; do echo; done; echo ends"]
    child = subprocess.Popen([HERE + "/program", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(child.stdout.readline() == "runs\n", "a program does not run")
    write("program", program + b"changed", 0o755)
    release()
    wait_for(lambda: read_path("program") == program + b"changed", "the program's new version")
    again = subprocess.run([HERE + "/program", *command], input="", stdout=subprocess.PIPE, text=True, check=True)
    check(again.stdout == "runs\nends\n", "the new version does not run")
    check(child.communicate("")[0] == "ends\n" and child.returncode == 0, "a program does not end after a new version")
    os.close(fd)


def evict_others():
    """What is open stays, although the cache needs room; afterwards it goes."""
    fd = open_by_kernel("other")
    for turn in range(2):
        for i in range(20):
            check(read_path(f"filler{i}") == contents(100 + i), f"filler {i}")
        check(read_all(fd) == contents(2), "what is open in a full cache")
    os.close(fd)
    for i in range(20):
        check(read_path(f"filler{i}") == contents(100 + i), f"filler {i}")
    check(read_path("other") == contents(2), "what was open in a full cache")


def read_trusted():
    check(read_path("other") == contents(2) and read_path("turning") == contents(21), "wrong bytes")
    fd = open_by_kernel("other")
    check(read_all(fd) == contents(2), "wrong bytes by the kernel")
    os.close(fd)


def kill_daemon():
    fd = open_by_kernel("other")
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
        os.kill(int(sys.argv[4]), signal.SIGKILL)
        try:
            check(read_all(fd) == contents(2), "wrong bytes of a dead daemon")
        except OSError as e:
            check(e.errno in (errno.ENOTCONN, errno.EIO), f"after the end of the daemon: {e}")
        check(m[:] == contents(2), "a map of a dead daemon")
    os.close(fd)


if STEP not in ("prepare", "read"):
    # The kernel tells the last close of a file after close() has returned.
    wait_for(lambda: kernel_files() == 0, "a file of the step before is kept")
{"prepare": prepare, "read": read_twice, "versions": change_versions, "turns": exceed_turns, "direct": mix_ways,
 "readers": read_beside_releases, "programs": run_programs, "evict": evict_others, "trusted": read_trusted, "killed": kill_daemon}[STEP]()
