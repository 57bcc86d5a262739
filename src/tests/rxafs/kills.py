# SPDX-License-Identifier: BSD-2-Clause
"""Writes files until it is stopped or fails, and notes in LOG what close or fsync has acknowledged; or, with "check", compares that
with what is there now. kills.py write|check ROOT LOG SEED [FIRST]"""

import hashlib
import os
import random
import sys

what, root, log, seed = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]


def data_of(number):
    r = random.Random(f'{seed}/{number}')
    return r.randbytes(r.choice([10, 3000, 70000, 400000, 2500000]))


def note(line):
    with open(log, 'a', encoding='utf-8') as f:
        f.write(line + '\n')


def write():
    number = int(sys.argv[5])
    while True:
        number += 1
        data = data_of(number)
        path = os.path.join(root, f'file{number % 40}')
        note(f'begin {number % 40} {number}')
        fd = os.open(path + '.new', os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        for at in range(0, len(data), 65536):
            os.write(fd, data[at:at + 65536])
        if number % 3 == 0:
            os.fsync(fd)
        os.close(fd)
        os.rename(path + '.new', path)
        note(f'done {number % 40} {number}')


def check():
    """Of each name: the last version that was acknowledged, or one whose rename had begun since."""
    may = {}
    for line in open(log, encoding='utf-8'):
        state, name, number = line.split()
        if state == 'done':
            may[name] = [number]
        else:
            may.setdefault(name, [None]).append(number)
    bad = 0
    for name, numbers in may.items():
        try:
            with open(os.path.join(root, f'file{name}'), 'rb') as f:
                got = hashlib.sha256(f.read()).digest()
        except FileNotFoundError:
            got = None
        wanted = [n and hashlib.sha256(data_of(int(n))).digest() for n in numbers]
        if got not in wanted:
            bad += 1
            print(f'FAIL: file{name} is none of the versions {numbers}')
    print(f'{len(may)} files are right' if not bad else f'{bad} of {len(may)} files are wrong')
    return 1 if bad else 0


if what == 'check':
    sys.exit(check())
try:
    write()
except OSError as e:
    print(f'stopped: {e}')
