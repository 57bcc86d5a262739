# SPDX-License-Identifier: BSD-2-Clause
"""What users do in the cell, and what they must find: writers that note each acknowledged change outside AFS, readers that
measure how long they were stopped, releases and moves without pause."""

import json
import os
import random
import threading
import time

from hands import Hand
from machines import DATABASES, FILE_SERVERS

ABSENT = None


class Journal:
    """Lines of JSON outside AFS."""

    def __init__(self, path):
        self.file = open(path, 'w')
        self.lock = threading.Lock()
        self.began = time.monotonic()

    def note(self, what, **more):
        with self.lock:
            self.file.write(json.dumps({'at': round(time.monotonic() - self.began, 3), 'what': what, **more}) + '\n')
            self.file.flush()


class State:
    """What a name may have after changes of which some were acknowledged, and others failed."""

    def __init__(self):
        self.wholes = {ABSENT}
        self.pieces = []            # (old, new): old, and any part of what new adds
        self.vague = False          # anything: a change that begins with an empty file has failed

    def certain(self):
        """The contents if there is only one possibility; else False."""
        return next(iter(self.wholes)) if len(self.wholes) == 1 and not self.pieces and not self.vague else False

    def is_now(self, content):
        self.__init__()
        self.wholes = {content}

    def may_be(self, content):
        self.wholes.add(content)

    def allows(self, content):
        return (self.vague or content in self.wholes or
                content is not None and any(content.startswith(a) and b.startswith(content) for a, b in self.pieces))

    def text(self):
        def name(c):
            return 'no file' if c is None else '%d bytes "%s"' % (len(c), c[:24].decode(errors='replace').strip())
        return ' or '.join(sorted(name(c) for c in self.wholes)) + (', or a part' if self.pieces else '')


class Worker(threading.Thread):
    """Repeats turn() until it is told to stop."""

    def __init__(self, run, name, seed):
        super().__init__(name=name, daemon=True)
        self.run_of, self.journal = run, run.journal
        self.random = random.Random('%s %s' % (seed, name))
        self.ending = threading.Event()
        self.hand = Hand()
        self.trouble = None
        self.turns = 0

    def run(self):
        try:
            while not self.ending.is_set():
                self.turn()
                self.turns += 1
        except Exception as e:      # the test fails by it
            self.trouble = '%s: %s: %s' % (self.name, type(e).__name__, e)

    def pause(self, seconds):
        self.ending.wait(seconds)


class Writer(Worker):
    """Changes files in a directory of its own, by one client."""

    NAMES = ['file%d' % i for i in range(12)]

    def __init__(self, run, client, volume, seed):
        super().__init__(run, 'writer-%s-%s' % (client.name, volume), seed)
        self.client, self.volume = client, volume
        self.states = {n: State() for n in self.NAMES}
        self.number = self.acknowledged = self.failed = 0
        self.longest = 0.0

    def folder(self, client=None):
        return (client or self.client).path(self.volume, self.name)

    def start(self):
        self.hand.do('mkdir', self.folder())
        super().start()

    def bytes(self):
        self.number += 1
        line = b'%d of %s\n' % (self.number, self.name.encode())
        return line * self.random.choice((1, 10, 100, 1000, 5000))

    def turn(self):
        name = self.random.choice(self.NAMES)
        state = self.states[name]
        kind = self.random.choice(('put', 'put', 'append', 'append', 'replace', 'remove'))
        if kind in ('append', 'remove') and not isinstance(state.certain(), bytes):
            kind = 'replace' if kind == 'append' else 'put'
        path, began = os.path.join(self.folder(), name), time.monotonic()
        try:
            getattr(self, kind)(path, state)
            self.acknowledged += 1
            result = 0
        except OSError as e:
            self.failed += 1
            result = e.errno
        took = time.monotonic() - began
        self.longest = max(self.longest, took)
        self.journal.note(kind, by=self.name, name=name, number=self.number, result=result, took=round(took, 3))
        self.pause(0.5 if result else 0.05)

    def put(self, path, state):
        new = self.bytes()
        try:
            self.hand.do('put', path, new)
        except OSError:
            state.vague = True
            raise
        state.is_now(new)

    def append(self, path, state):
        old, more = state.certain(), self.bytes()
        try:
            self.hand.do('append', path, more, self.number % 2)
        except OSError:
            state.pieces.append((old, old + more))
            raise
        state.is_now(old + more)

    def replace(self, path, state):
        new = self.bytes()
        self.hand.do('put', path + '.new', new)
        try:
            self.hand.do('rename', path + '.new', path)
        except OSError:
            state.may_be(new)
            raise
        state.is_now(new)

    def remove(self, path, state):
        try:
            self.hand.do('unlink', path)
        except OSError:
            state.may_be(ABSENT)
            raise
        state.is_now(ABSENT)

    def verify(self, client):
        """A line for each name that has something else than was acknowledged. An error, which may take a minute, is the last one."""
        lost = []
        for name, state in self.states.items():
            path = os.path.join(self.folder(client), name)
            try:
                found = self.hand.do('get', path)
            except FileNotFoundError:
                found = ABSENT
            except OSError as e:
                lost.append('%s by %s: %s; the others are not read' % (path, client.name, e))
                break
            if not state.allows(found):
                other = State()
                other.is_now(found)
                lost.append('%s by %s: %s, not %s' % (path, client.name, other.text(), state.text()))
        return lost


class Reader(Worker):
    """Reads files of a replicated volume, which one fault must not stop, and of one that is on one server."""

    def __init__(self, run, client, volume, seed):
        super().__init__(run, 'reader-%s-%s' % (client.name, volume), seed)
        self.client, self.volume = client, volume
        self.longest = 0.0
        self.errors = []

    def turn(self):
        name = 'page%d' % self.random.randrange(self.run_of.pages)
        floor, seen = self.run_of.released, self.run_of.seen.get(self.name, 0)
        began = time.monotonic()
        content = self.read(name)
        ended = time.monotonic()
        if content is not None:
            self.judge(name, content, floor, seen)
        # A volume on one server is stopped with it.
        away = self.time_away(began, ended)
        took = ended - began - away
        self.longest = max(self.longest, took)
        if took > 2:
            self.journal.note('slow', by=self.name, name=name, took=round(took, 3), away=round(away, 3))
        self.pause(0.2)

    def time_away(self, began, ended):
        return 0.0 if self.volume == 'pub' else self.run_of.time_away({self.run_of.home[self.volume]}, began, ended)

    def read(self, name):
        path = self.client.path(self.volume, name)
        self.client.ctl(60, 'flush', path)
        try:
            return self.hand.do('get', path)
        except OSError as e:
            self.journal.note('error', by=self.name, name=name, error=str(e))
            if self.volume == 'pub':
                self.errors.append('%s: %s' % (self.name, e))
            return None

    def judge(self, name, content, floor, seen):
        if self.volume != 'pub':
            if content != page(name, 0):
                self.errors.append('%s: %s has %r' % (self.name, name, content[:40]))
            return
        number = int(content.split()[1]) if content.startswith(b'release ') else -1
        if content != page(name, number):
            self.errors.append('%s: %s has %r' % (self.name, name, content[:40]))
        elif number < floor or number < seen:
            self.errors.append('%s: %s is of release %d, after release %d, when %d had been seen' % (self.name, name, number, floor, seen))
            self.journal.note('old', by=self.name, name=name, number=number, released=floor, seen=seen)
        self.run_of.see(self.name, number)


class CopyReader(Reader):
    """The same by afscp: a new client each time, which remembers nothing. So it needs the location service, whose servers do not answer
    while a change waits for one of them that is away."""

    def __init__(self, run, client, volume, seed):
        super().__init__(run, client, volume, seed)
        self.name = 'afscp-%s-%s' % (client.name, volume)

    def read(self, name):
        began = time.monotonic()
        status, text = self.client.afscp(100, '-q', 'cat', self.volume + '.readonly:/' + name)
        if status:
            if not self.time_away(began, time.monotonic()):
                self.errors.append('%s: %s' % (self.name, text.strip()[-200:]))
            self.journal.note('error', by=self.name, name=name, error=text.strip())
            return None
        return text.encode()

    def time_away(self, began, ended):
        return self.run_of.time_away(set(DATABASES), began, ended)

    def judge(self, name, content, floor, seen):
        super().judge(name, content, floor, 0)


class Bench(Worker):
    """afscp bench with mixed operations, for some seconds of each half minute. It may fail when its server does."""

    def __init__(self, run, client, seed):
        super().__init__(run, 'bench-' + client.name, seed)
        self.client = client
        self.ended_well = 0

    def turn(self):
        volume = self.random.choice(('w1', 'w2', 'w3'))
        status, text = self.client.afscp(
            120, 'bench', volume + ':/bench', '--mix', 'read=50,write=20,stat=20,create=5,remove=5', '--clients', '2',
            '--seconds', '3')
        self.ended_well += status == 0
        self.journal.note('bench', volume=volume, status=status, text=text.strip()[-200:])
        self.pause(15)


def page(name, number):
    return b'release %d of %s\n' % (number, name.encode()) * 200


class Releaser(Worker):
    """Changes the volume pub and releases it."""

    def __init__(self, run, admin, client, seed):
        super().__init__(run, 'release', seed)
        self.admin, self.client = admin, client
        self.complete = self.failed = 0
        self.number = self.unfinished = 0

    def turn(self):
        self.number += 1
        if not self.write_pages():
            self.pause(1)
            return
        began = time.monotonic()
        status, text = self.admin.vos('release', 'pub')
        self.journal.note('release', number=self.number, status=status, took=round(time.monotonic() - began, 3),
                          text=text.strip()[-400:])
        if status == 0:
            self.complete += 1
            # After one that failed, vos only brings that to its end.
            self.run_of.released = self.unfinished or self.number
            self.unfinished = 0
        else:
            self.failed += 1
            self.unfinished = self.unfinished or self.number
            self.put_right()
        self.pause(self.random.uniform(0, 2) + 3 * bool(status))

    def write_pages(self):
        for i in range(self.run_of.pages):
            name = 'page%d' % i
            try:
                self.hand.do('put', self.client.path('pub-rw', name), page(name, self.number))
            except OSError:
                return False
        return True

    def put_right(self):
        for server in FILE_SERVERS:
            self.admin.end_transactions(server, {'pub', 'pub.readonly', 'readonly-clone-temp'})
        self.admin.vos('unlock', 'pub')


class Mover(Worker):
    """Moves a volume from server to server while it is written to."""

    def __init__(self, run, admin, volume, at, seed):
        super().__init__(run, 'move', seed)
        self.admin, self.volume, self.at = admin, volume, at
        self.complete = self.failed = 0
        self.problems = []

    def turn(self):
        to = self.random.choice([s for s in FILE_SERVERS if s != self.at])
        began = time.monotonic()
        status, text = self.move_safely(to)
        if status is None:
            self.pause(1)
            return
        self.journal.note('move', to=to, status=status, took=round(time.monotonic() - began, 3), text=text.strip()[-600:])
        if status == 0:
            self.complete += 1
            self.at = to
            self.run_of.home[self.volume] = to
        else:
            self.failed += 1
            self.put_right()
        self.pause(self.random.uniform(0, 2))

    def move_safely(self, to):
        """None: not now."""
        with self.admin.moving:
            if not self.admin.is_current():
                return None, ''
            return self.admin.vos('move', self.volume, FILE_SERVERS[self.at], 'a', FILE_SERVERS[to], 'a')

    def put_right(self):
        """As an administrator does: until the volume is on-line at the place that the database of locations has."""
        while not self.ending.is_set():
            if self.try_put_right():
                return
            self.pause(2)

    def try_put_right(self):
        with self.admin.moving:
            return self.admin.is_current() and self.put_right_once()

    def put_right_once(self):
        states = {s: self.admin.listing(s) for s in FILE_SERVERS}
        at = self.admin.site_of(self.volume)
        if at is None or None in states.values():
            return False
        for s in FILE_SERVERS:
            self.admin.end_transactions(s, {self.volume, 'move-clone-temp'})
        self.admin.vos('unlock', self.volume)
        self.journal.note('put right', site=at, **{s: states[s].get(self.volume, 'none') for s in states})
        if self.volume not in states[at]:
            # It has moved, but the database was not told.
            there = [s for s in states if self.volume in states[s]]
            if len(there) != 1:
                self.problems.append('%s is on %s, not on %s' % (self.volume, there, at))
                self.ending.set()
                return False
            self.admin.vos('syncvldb', FILE_SERVERS[there[0]])
            return False
        for s in states:
            if s != at and self.volume in states[s]:
                self.admin.vos('zap', FILE_SERVERS[s], 'a', self.volume, '-force')
        self.admin.vos('online', FILE_SERVERS[at], 'a', self.volume)
        self.at = at
        return True
