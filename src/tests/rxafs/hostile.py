# SPDX-License-Identifier: BSD-2-Clause
"""Texts of a hostile server. hostile.py RXAFS RXAFSCTL MOUNTPOINT"""

import os
import subprocess
import sys
import time

from cell import Answer, DIRECTORY, Location, Server, SYNC, VOLUME, Volume, directory, status, words

rxafs, rxafsctl, where = sys.argv[1:4]
ACL, VOLUME_STATUS, OFFLINE = 131, 149, 106
EVIL = b'down\n<0>kernel: forged\x1b]0;title\x07\x1b[2J\xc2\x9b31m'


def text(value):
    return words(len(value)) + value + b'\0' * (-len(value) % 4)


class Evil(Volume):
    """Its volume is on-line until it is told otherwise."""
    offline = False

    def __call__(self, op, arguments, call):
        if op == VOLUME_STATUS:
            return Answer(words(VOLUME, 1, 0, 0, 0, 0, 0, 0, 100, 10, 1000, 2000) + text(b'na\x1b[31mme') + text(EVIL) + text(b''))
        if op == ACL:
            return Answer(text(b'1\n0\nsys\x1b[31m\xc2\x9b\t127\n') + status(DIRECTORY, 0, rights=127) + SYNC)
        if self.offline and op != 65536:
            return Answer(abort=OFFLINE)
        return super().__call__(op, arguments, call)


class Named(Location):
    """Its volume is root.cell."""

    def entry(self):
        name = b'root.cell'
        return words(*[name[i] if i < len(name) else 0 for i in range(65)]) + super().entry()[260:]


failures = 0


def check(good, *what):
    global failures
    if not good:
        failures += 1
        print('FAIL:', *what)


volume = Evil({1: (DIRECTORY, directory([]))})
files = Server(volume)
places = Server(Named())
log = open(where + '.log', 'w+b')
stat = os.fstat(log.fileno())
daemon = subprocess.Popen([rxafs, '--foreground', '--cell', 'evil.example', '--servers', 'evil.example=127.0.0.1:%d:%d' % (places.port, files.port),
                           '--timeout', '3', where], stderr=log, env=dict(os.environ, JOURNAL_STREAM='%d:%d' % (stat.st_dev, stat.st_ino)))
while not os.path.ismount(where):
    time.sleep(0.1)
root = where + '/evil.example'
for command in (['examine'], ['quota'], ['acl'], ['examine', '--json'], ['acl', '--json']):
    done = subprocess.run([rxafsctl] + command + [root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=30)
    check(b'\x1b' not in done.stdout and b'\xc2\x9b' not in done.stdout and b'\x07' not in done.stdout, command, done.stdout)
    check(not done.returncode, command, done.stdout)
volume.offline = True
subprocess.run(['timeout', '10', 'ls', root + '/x'], stderr=subprocess.DEVNULL, check=False)
subprocess.run(['umount', '-l', where], check=True)
daemon.wait(20)
log.seek(0)
lines = log.read()
check(b'forged' in lines, 'the text is not in the log', lines)
check(b'\n<0>' not in lines and b'\x1b' not in lines, lines)
sys.exit(1 if failures else 0)
