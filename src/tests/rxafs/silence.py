# SPDX-License-Identifier: BSD-2-Clause
"""Many who wait for a silent cell, and one who does not. silence.py MOUNT SERVER"""

import fcntl
import os
import signal
import struct
import subprocess
import sys
import time

root, server = sys.argv[1], int(sys.argv[2])
failures = 0
WAITING = 150  # more than one server, and one cell, may have threads
CHANGES = 20   # more than threads that read requests
SECONDS = 40   # of what does not wait; operations that do wait for 60


def check(good, text):
    global failures
    if not good:
        failures += 1
        print('FAIL:', text)


def state_of(task):
    with open(f'/proc/{task}/stat', encoding='utf-8', errors='replace') as f:
        return f.read().rsplit(')', 1)[1].split()[0]


def is_asleep(child):
    return state_of(child) in 'SD'


def is_stopped(thread):
    try:
        return state_of(f'{server}/task/{thread}') == 'T'
    except (FileNotFoundError, ProcessLookupError):
        return True


def stop_server():
    """A thread that runs on another processor may answer until it has seen the signal."""
    os.kill(server, signal.SIGSTOP)
    while not all(is_stopped(thread) for thread in os.listdir(f'/proc/{server}/task')):
        time.sleep(0.02)


def wait_in_children(operation, count):
    """Children that do operation(n), once each of them waits."""
    children = []
    for n in range(count):
        child = os.fork()
        if not child:
            try:
                operation(n)
            except OSError:
                pass
            os._exit(0)
        children.append(child)
    end = time.monotonic() + SECONDS
    while not all(is_asleep(child) for child in children):
        check(time.monotonic() < end, 'the children do not wait')
        if failures:
            break
        time.sleep(0.02)
    return children


def in_time(what, *command):
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=SECONDS, check=False)
        check(not done.returncode, f'{what}: ended with {done.returncode}')
    except subprocess.TimeoutExpired:
        check(False, f'{what}: waits for another cell')


def kill_all(children):
    begin = time.monotonic()
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    check(time.monotonic() - begin < SECONDS, 'the waiting processes cannot be killed soon')


def ask_nonsense():
    """As rxafsctl, with a text that has no end."""
    text, data = 8000, 8192
    size = text + 4 + data
    command = 3 << 30 | size << 16 | ord('A') << 8 | 0x46
    for word in (b'lsmount', b'quota', b'login', b'mkmount', b'nonsense'):
        asked = bytearray(word + b'\0' + b'A' * (text - len(word) - 1) + struct.pack('=I', 0x41414141) + b'A' * data)
        fd = os.open(f'{root}/test.example', os.O_RDONLY)
        try:
            fcntl.ioctl(fd, command, asked)
            check(b'"error"' in asked, f'{word}: {bytes(asked[:100])}')
        finally:
            os.close(fd)


def read_while_server_is_silent():
    """The server of a cell that has answered soon is stopped: who waits for it leaves a thread that reads requests."""
    top = f'{root}/test.example/rw'
    for n in range(CHANGES):
        os.mkdir(f'{top}/part{n}')
    in_time('a read before', 'cat', f'{top}/file')
    stop_server()
    try:
        children = wait_in_children(lambda n: os.mkdir(f'{top}/part{n}/made'), CHANGES)
        in_time('a read under a promise', 'cat', f'{top}/file')
        kill_all(children)
    finally:
        os.kill(server, signal.SIGCONT)
    in_time('after the silence', 'ls', f'{top}/part0')


# The cell was not entered.
waiting = wait_in_children(lambda n: os.stat(f'{root}/silent.example/{n}'), WAITING)
# None of these was entered.
in_time('another cell', 'ls', f'{root}/test.example')
in_time('its other path', 'ls', f'{root}/.test.example')
in_time('a mount point in it', 'ls', f'{root}/test.example/work')
in_time('a new file', 'dd', 'if=/dev/zero', f'of={root}/test.example/rw/file', 'bs=100k', 'count=1', 'conv=fsync', 'status=none')
in_time('a read', 'cat', f'{root}/test.example/work/file')
kill_all(waiting)
in_time('after the waiting processes were killed', 'ls', f'{root}/test.example/rw')
ask_nonsense()
in_time('after nonsense', 'ls', f'{root}/test.example')
read_while_server_is_silent()
sys.exit(failures != 0)
