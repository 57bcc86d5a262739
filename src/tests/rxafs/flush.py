# SPDX-License-Identifier: BSD-2-Clause
"""Notifications that wait for a server do not hold those of others up. flush.py MOUNT RXAFSCTL AFSCP WHERE AWAY_PID DAEMON_PID"""

import os
import signal
import subprocess
import sys
import time

mount, rxafsctl, afscp, where, away, daemon = sys.argv[1:5] + [int(word) for word in sys.argv[5:7]]
DIRECTORIES = 12
SOON = 20  # seconds of what waits for no server; the cell that does not answer is waited for three times as long
held = [f'{mount}/away.example/rw/d{i}' for i in range(DIRECTORIES)]
good = f'{mount}/test.example/work/file'
failures = 0


def fail(text):
    global failures
    failures += 1
    print('FAIL:', text)


def put(text):
    with open(f'{os.path.dirname(mount)}/source', 'w', encoding='ascii') as f:
        f.write(text)
    subprocess.run([afscp, '-q', '-s', where, 'put', f.name, 'work:file'], check=True)


def seen(text, seconds):
    """The seconds until the name has these contents, which a name that the kernel keeps hides; None: it has not."""
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        with open(good, encoding='ascii') as f:
            if f.read() == text:
                return time.monotonic() - begin
        time.sleep(0.02)
    return None


def parked():
    """Threads of the daemon that wait in the kernel for a directory."""
    count = 0
    for task in os.listdir(f'/proc/{daemon}/task'):
        with open(f'/proc/{daemon}/task/{task}/stat', encoding='utf-8', errors='replace') as f:
            count += f.read().rsplit(')', 1)[1].split()[0] == 'D'
    return count


def main():
    put('first')
    for directory in held:
        os.mkdir(directory)
        for name in 'xy':
            with open(f'{directory}/{name}', 'w', encoding='ascii'):
                pass
            os.stat(f'{directory}/{name}')
    if seen('first', SOON) is None:
        fail('the file has not its first contents')
    put('the second')
    if seen('the second', SOON) is None:
        fail('a change is not seen')
    os.kill(away, signal.SIGSTOP)
    try:
        makers = [subprocess.Popen(['touch', f'{directory}/new']) for directory in held]
        time.sleep(1)
        flushes = [subprocess.Popen([rxafsctl, 'flush', directory]) for directory in held]
        # As many as may wait for one server.
        end = time.monotonic() + SOON
        while parked() < 4 and time.monotonic() < end:
            time.sleep(0.05)
        count = parked()
        print(f'{count} threads wait for directories')
        if count != 4:
            fail('4 were to wait, so the test says nothing or the bound does not hold')
        for text in ('a third version', 'and a fourth version'):
            put(text)
            after = seen(text, SOON)
            if after is None:
                fail('a change in another cell is not seen')
            else:
                print(f'seen after {after:.3f} s')
    finally:
        os.kill(away, signal.SIGCONT)
    for process in makers + flushes:
        if process.wait(120):
            fail(f'{process.args} ended with {process.returncode}')
    return 1 if failures else 0


sys.exit(main())
