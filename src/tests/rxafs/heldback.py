# SPDX-License-Identifier: BSD-2-Clause
"""Changes whose answers a server holds back. heldback.py NEAR FAR FAR_DAEMON"""

import errno
import fcntl
import os
import signal
import sys
import threading
import time

near, far, far_daemon = sys.argv[1], sys.argv[2], int(sys.argv[3])
failures = 0


def check(good, text):
    global failures
    if not good:
        failures += 1
        print('FAIL:', text, flush=True)


def state_of(process):
    with open(f'/proc/{process}/stat', encoding='utf-8', errors='replace') as f:
        return f.read().rsplit(')', 1)[1].split()[0]


class Change(threading.Thread):
    def __init__(self, operation):
        super().__init__(daemon=True)
        self.operation = operation
        self.error = None
        self.took = 0
        self.start()

    def run(self):
        begin = time.monotonic()
        try:
            self.operation()
        except OSError as e:
            self.error = e
        self.took = time.monotonic() - begin


def kill_one_behind(path):
    """A process that looks up a name in a directory, and is killed while it waits for the directory's lock."""
    child = os.fork()
    if not child:
        try:
            os.mkdir(path)
        except OSError:
            pass
        os._exit(0)
    end = time.monotonic() + 5
    while state_of(child) not in 'DZ' and time.monotonic() < end:
        time.sleep(0.01)
    waits = state_of(child) == 'D'
    os.kill(child, signal.SIGKILL)
    return child, waits


def seen_by_far(path, there):
    end = time.monotonic() + 60
    while os.path.exists(f'{far}/{path}') != there and time.monotonic() < end:
        time.sleep(0.05)
    check(os.path.exists(f'{far}/{path}') == there, f'{path}: the second client never hears of the change')


def let_far_hear(name):
    """A client that was given up hears of changes with its next call."""
    os.mkdir(f'{far}/contact-{name}')


def hold_back(name, operation):
    """The far client, which has promises for the directory, is stopped."""
    directory = f'{near}/{name}'
    seen_by_far(name, True)
    for entry in os.listdir(f'{far}/{name}'):
        os.stat(f'{far}/{name}/{entry}')
    os.kill(far_daemon, signal.SIGSTOP)
    try:
        change = Change(lambda: operation(directory))
        time.sleep(0.3)
        child, waits = kill_one_behind(f'{directory}/other')
        change.join(60)
    finally:
        os.kill(far_daemon, signal.SIGCONT)
    check(not change.is_alive(), f'{name}: still waits')
    check(not change.error, f'{name}: {change.error}')
    os.waitpid(child, 0)
    print(f'{name}: {change.took:.1f} s, another process {"waited" if waits else "did not wait"} behind it', flush=True)
    return change.took > 1.5 and waits


def open_behind(name, removal):
    """A file is opened while a call that takes its last name away is under way: it is gone then, or it can be read."""
    path = f'{near}/{name}/{name}'
    os.mkdir(f'{near}/{name}')
    let_far_hear(name)
    seen_by_far(name, True)
    with open(f'{far}/{name}/{name}', 'wb') as f:
        f.write(b'contents')
    end = time.monotonic() + 60
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.05)
    check(os.stat(path).st_size == 8, f'{name}: the file before')
    os.stat(f'{far}/{name}/{name}')
    os.kill(far_daemon, signal.SIGSTOP)
    try:
        change = Change(lambda: removal(path))
        time.sleep(0.3)
        try:
            with open(path, 'rb') as f:
                text = f.read()
            check(text in (b'contents', b'new'), f'{name}: {text} is read')
        except OSError as e:
            check(e.errno == errno.ENOENT, f'{name}: {e}')
        change.join(60)
    finally:
        os.kill(far_daemon, signal.SIGCONT)
    check(not change.is_alive() and not change.error, f'{name}: {change.error}')


def touch(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def lock_until_the_end(name):
    """The locks of a process that is killed in a change last until the change is done."""
    directory = f'{near}/{name}'
    os.mkdir(directory)
    touch(f'{directory}/locked')
    touch(f'{directory}/journal')
    os.stat(f'{far}/{name}/journal')
    os.listdir(f'{far}/{name}')
    os.kill(far_daemon, signal.SIGSTOP)
    try:
        child = os.fork()
        if not child:
            fcntl.lockf(os.open(f'{directory}/locked', os.O_RDWR), fcntl.LOCK_EX)
            os.unlink(f'{directory}/journal')
            os._exit(0)
        time.sleep(0.3)
        os.kill(child, signal.SIGKILL)
        fcntl.lockf(os.open(f'{directory}/locked', os.O_RDWR), fcntl.LOCK_EX)
        check(not os.path.exists(f'{directory}/journal'), 'the lock of a killed process ends before what it did')
    finally:
        os.kill(far_daemon, signal.SIGCONT)
    os.waitpid(child, 0)
    let_far_hear(name)


# First, since the server waits for a client that does not answer a few times only.
lock_until_the_end('lock')
for name in ('mkdir', 'create', 'rename', 'unlink'):
    os.mkdir(f'{near}/{name}')
    touch(f'{near}/{name}/file')
held = [
    hold_back('mkdir', lambda d: os.mkdir(f'{d}/made')),
    hold_back('create', lambda d: touch(f'{d}/made')),
    hold_back('rename', lambda d: os.rename(f'{d}/file', f'{d}/new')),
    hold_back('unlink', lambda d: os.unlink(f'{d}/file')),
]
open_behind('removed', os.unlink)
with open(f'{near}/source', 'wb') as f:
    f.write(b'new')
open_behind('replaced', lambda path: os.rename(f'{near}/source', path))
check(any(held), 'no answer was held back so long that the other process counted')


for made in ('mkdir/made', 'create/made', 'rename/new'):
    check(os.path.exists(f'{near}/{made}'), f'{made} does not exist')
    seen_by_far(made, True)
seen_by_far('rename/file', False)
seen_by_far('unlink/file', False)
sys.exit(failures != 0)
