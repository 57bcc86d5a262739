# SPDX-License-Identifier: BSD-2-Clause
"""SQLite in both journal modes, with processes that are killed. sqlite.py DIR KILLS

Writers move amounts between accounts and tell each commit by a pipe. After each kill the sum is what it was, and all that was told is there."""

import os
import random
import signal
import sqlite3
import sys
import time

ACCOUNTS, AMOUNT = 20, 1000


def opened(path):
    db = sqlite3.connect(path, timeout=20, isolation_level=None)
    db.execute('pragma synchronous=full')
    return db


def make(path, mode):
    db = opened(path)
    got = db.execute(f'pragma journal_mode={mode}').fetchone()[0]
    if got != mode:
        raise SystemExit(f'FAIL: journal mode {got}, not {mode}')
    db.execute('create table account(id integer primary key, amount integer, filler text)')
    db.execute('create table done(writer integer, number integer)')
    db.executemany('insert into account values(?, ?, ?)', [(i, AMOUNT, 'f' * 300) for i in range(ACCOUNTS)])
    db.close()


def write(path, writer, tell):
    db = opened(path)
    rng = random.Random(writer)
    for number in range(10**9):
        a, b, n = rng.randrange(ACCOUNTS), rng.randrange(ACCOUNTS), rng.randrange(10)
        db.execute('begin immediate')
        db.execute('update account set amount = amount - ? where id = ?', (n, a))
        db.execute('update account set amount = amount + ? where id = ?', (n, b))
        db.execute('insert into done values(?, ?)', (writer, number))
        db.execute('commit')
        os.write(tell, b'%d %d\n' % (writer, number))


def check(path, told):
    db = opened(path)
    faults = []
    if db.execute('pragma integrity_check').fetchone()[0] != 'ok':
        faults.append('the database is damaged')
    total = db.execute('select sum(amount) from account').fetchone()[0]
    if total != ACCOUNTS * AMOUNT:
        faults.append(f'the sum is {total}')
    for writer, number in told.items():
        count, last = db.execute('select count(*), max(number) from done where writer = ?', (writer,)).fetchone()
        if count < number + 1 or last != count - 1:
            faults.append(f'writer {writer} told {number}, and {count} are there')
    db.close()
    return faults


def kill_writers(path, first, told):
    """Two writers, of which both are killed at random moments. The commits that they told."""
    reader, tell = os.pipe()
    children = []
    for writer in (first, first + 1):
        child = os.fork()
        if not child:
            try:
                write(path, writer, tell)
            except sqlite3.Error as e:
                os.write(2, f'FAIL: writer {writer}: {e}\n'.encode())
            os._exit(1)
        children.append(child)
    os.close(tell)
    lines = os.read(reader, 1)
    time.sleep(random.Random(first).random() * 0.4)
    for child in children:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reader, 'rb') as f:
        lines += f.read()
    ended = [os.waitpid(child, 0)[1] for child in children]
    for line in lines.splitlines():
        writer, number = line.split()
        told[int(writer)] = int(number)
    return [f'a writer ended with {status}' for status in ended if status != signal.SIGKILL]


def main():
    folder, kills = sys.argv[1], int(sys.argv[2])
    bad = 0
    for mode in ('delete', 'wal', 'truncate'):
        path, told = os.path.join(folder, mode + '.db'), {}
        make(path, mode)
        for i in range(kills if mode != 'truncate' else 1):
            for fault in kill_writers(path, 2 * i, told) + check(path, told):
                print(f'FAIL: {mode}, kill {i}: {fault}', flush=True)
                bad += 1
        print(f'journal {mode}: {sum(n + 1 for n in told.values())} commits', flush=True)
    return 1 if bad else 0


sys.exit(main())
