# SPDX-License-Identifier: BSD-2-Clause
"""A lock of an open file whose number another one had before, of which the end is told late. reopened.py MOUNT UNREAD SERVER_PID CONTROL:
UNREAD is a file in the mount that is not cached, CONTROL is a folder for the kernel's control file system of FUSE."""

import fcntl
import os
import signal
import subprocess
import sys
import time

mount, unread, server, control = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]


def set_background(most):
    """So many requests that nobody waits for, as the end of an open file is, are given to the daemon at a time."""
    with open('/proc/self/mountinfo', encoding='utf-8', errors='replace') as f:
        number = next(int(line.split()[2].split(':')[1]) for line in f if line.split()[4] == mount)
    with open(f'{control}/{number}/max_background', 'w', encoding='ascii') as f:
        f.write(str(most))


def is_refused(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def lock_again(path):
    """The kernel gives numbers of open files that were closed to the next ones. None: another one has it."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def main():
    if subprocess.run(['mount', '-t', 'fusectl', 'none', control], check=False).returncode:
        print('left out: the control file system of FUSE cannot be mounted')
        return 0
    path = f'{mount}/.test.example/rw/reopened'
    with open(path, 'wb'):
        pass
    fd = lock_again(path)
    reader = os.open(unread, os.O_RDONLY)
    set_background(1)
    os.kill(server, signal.SIGSTOP)
    try:
        os.posix_fadvise(reader, 0, 4096, os.POSIX_FADV_WILLNEED)
        os.close(fd)
        # The end of that one, and with it of its lock, is told once the read is over.
        again = None
        for _ in range(100):
            again = again or lock_again(path)
    finally:
        os.kill(server, signal.SIGCONT)
    if not again:
        print('left out: no open file has the number of the one before')
        return 0
    os.pread(reader, 4096, 0)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if not is_refused(path):
            print('FAIL: the lock has gone with the one of the open file before')
            return 1
    return 0


sys.exit(main())
