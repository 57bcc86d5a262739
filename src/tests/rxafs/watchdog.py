# SPDX-License-Identifier: BSD-2-Clause
"""Kills the daemon while names change in the mount and at the server. watchdog.py RXAFS AFSCP WHERE MOUNTPOINT ROUNDS"""

import os
import random
import subprocess
import sys
import time

rxafs, afscp, where, at, rounds = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
CONTROL = '/sys/fs/fuse/connections'
failures = 0


def fail(text):
    global failures
    failures += 1
    print('FAIL:', text)


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def mounted():
    """The number of the connection, without a request to the file system; None: there is no mount."""
    with open('/proc/self/mountinfo', encoding='utf-8', errors='replace') as f:
        for line in f:
            words = line.split()
            if words[4] == at:
                return int(words[2].split(':')[1])
    return None


def children_of(process):
    try:
        with open(f'/proc/{process}/task/{process}/children', encoding='ascii') as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def change_names(directory, number):
    """In a process of its own, until the mount is gone."""
    try:
        for i in range(1000000):
            name = os.path.join(directory, f'n{number}.{i % 7}')
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
            os.stat(os.path.join(directory, 'shared'))
            os.unlink(name)
    except OSError:
        pass
    os._exit(0)


def break_promises(source):
    """Another client replaces a file of each directory, in a process of its own."""
    while True:
        for i in range(2):
            subprocess.run([afscp, '-q', '-s', where, 'put', source, f'work:d{i}/shared'], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def start_process(function, *args):
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        function(*args)
        os._exit(0)
    return child


def free_all(number):
    """After a failure: whatever hangs in the mount ends."""
    try:
        with open(f'{CONTROL}/{number}/abort', 'w', encoding='ascii') as f:
            f.write('1')
    except OSError:
        print('processes may hang: the connection cannot be ended')


def kill_once(source, seed):
    daemon = subprocess.Popen([rxafs, '--foreground', '--cell', 'test.example', '--servers', f'test.example={where}', at])
    if not wait_for(mounted, 60):
        fail('rxafs did not mount')
        daemon.kill()
        return
    number, watchdogs = mounted(), children_of(daemon.pid)
    if len(watchdogs) != 1:
        fail(f'{len(watchdogs)} processes watch the daemon')
    for i in range(2):
        os.makedirs(f'{at}/test.example/rw/d{i}', exist_ok=True)
    others = [start_process(change_names, f'{at}/test.example/rw/d{i % 2}', i) for i in range(4)]
    breaker = start_process(break_promises, source)
    time.sleep(0.2 + random.Random(seed).random())
    daemon.kill()
    left = set(others)

    def all_gone():
        left.difference_update({child for child in left if os.waitpid(child, os.WNOHANG)[0]})
        return daemon.poll() is not None and not left and \
            not any(os.path.exists(f'/proc/{process}') and is_running(process) for process in watchdogs)

    if not wait_for(all_gone, 30):
        fail(f'30 s after the kill: daemon {daemon.poll()}, {len(left)} processes in the mount')
        free_all(number)
        wait_for(all_gone, 10)
    os.killpg(breaker, 9)
    os.waitpid(breaker, 0)
    if subprocess.run(['timeout', '60', 'umount', at], check=False).returncode:
        fail('the mount cannot be taken away')
        subprocess.run(['umount', '-l', at], check=False)


def is_running(process):
    try:
        with open(f'/proc/{process}/stat', encoding='utf-8', errors='replace') as f:
            return f.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


def main():
    source = os.path.join(os.path.dirname(at), 'source')
    with open(source, 'w', encoding='ascii') as f:
        f.write('contents\n')
    for i in range(rounds):
        # The second half without the control file system at its usual place.
        if i == rounds // 2 and os.path.ismount(CONTROL):
            subprocess.run(['umount', '-l', CONTROL], check=False)
        kill_once(source, i)
    print(f'{rounds} kills')
    return 1 if failures else 0


sys.exit(main())
