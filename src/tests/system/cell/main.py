# SPDX-License-Identifier: BSD-2-Clause
"""The cell: set up, load, faults in turn, and what must hold; see README.md."""

import argparse
import os
import random
import re
import threading
import time
import traceback

import load
from machines import (ADMIN, CLIENTS, DATABASES, FILE_SERVERS, OURS, THEIRS, Admin, Client, Database, OurFileServer, Place,
                      TheirFileServer, Trouble, quiet, wait_for)

DEAD = 12.0         # a client takes a server for dead that was silent for this time
SLACK = 3.0         # of a machine that does more than the cell
PAGES = 20
QUORUM = 180        # an election takes the database servers up to 100 s
LATER = 840         # the set-up and the judgement take no longer than this


class Run:
    """One run: the machines, the load, what happened."""

    def __init__(self, options):
        self.place = Place(options.build, options.work, options.openafs)
        self.seed, self.minutes, self.only = options.seed, options.minutes, options.only
        self.random = random.Random(self.seed)
        self.journal = load.Journal(os.path.join(options.work, 'journal'))
        self.pages, self.released, self.seen = PAGES, 0, {}
        self.home = {}          # volume: the file server that has it
        self.away = []          # [machine, began, ended or None]
        self.faulty = None      # the machine that has a fault now
        self.lock = threading.Lock()
        self.trusting = threading.Lock()
        self.results = []
        self.doing = 'it is set up'
        self.clients, self.databases, self.servers = [], [], {}

    # ---- results ----

    def tell(self, name, problem):
        """A problem is a text, or a list of texts."""
        problem = problem if isinstance(problem, str) else '; '.join(problem[:4]) + (' …' if len(problem) > 4 else '')
        self.results.append(not problem)
        print('FAIL: %s: %s' % (name, problem) if problem else 'PASS: ' + name, flush=True)

    def say(self, text):
        print('%6.1f %s' % (time.monotonic() - self.journal.began, text), flush=True)

    def see(self, reader, number):
        with self.lock:
            if number > self.seen.get(reader, 0):
                self.seen[reader] = number
                self.journal.note('seen', by=reader, number=number)

    def time_away(self, names, began, ended):
        """How long of this time one of the machines was away."""
        with self.lock:
            return sum(max(0.0, min(ended, to or ended) - max(began, since)) for name, since, to in self.away if name in names)

    # ---- set-up ----

    def set_up(self):
        quiet('mount', '-t', 'tmpfs', '-o', 'mode=755', 'cell', '/run')
        quiet('ip', 'link', 'add', 'cell', 'type', 'bridge')
        quiet('ip', 'link', 'set', 'cell', 'up')
        self.databases = [Database(self.place, n) for n in DATABASES]
        for d in self.databases:
            d.boot()
        self.admin = Admin(self.place, *ADMIN)
        for n in OURS:
            self.servers[n] = OurFileServer(self.place, n)
            self.servers[n].rxvol('init')
        for n in THEIRS:
            self.servers[n] = TheirFileServer(self.place, n)
        # A quorum takes the servers more than a minute.
        wait_for(lambda: self.admin.has_quorum(), 300, 'a quorum of the database servers')
        self.say('the database servers have a quorum')
        for s in self.servers.values():
            s.boot()
        for n in FILE_SERVERS:
            wait_for(lambda n=n: self.is_served(n), 120, 'file server ' + n)
            self.say('file server %s is ready' % n)
        self.make_volumes()
        self.clients = [Client(self.place, n) for n in CLIENTS]
        for c in self.clients:
            c.boot()
        self.say('the clients have mounted the cell')

    def is_served(self, name):
        return self.admin.vos('listpart', FILE_SERVERS[name], seconds=60)[0] == 0

    def make_volumes(self):
        first = next(iter(OURS))
        tree = os.path.join(self.place.work, 'tree')
        for number, kind in ((0, 'rw'), (0, 'pub')):
            os.makedirs(os.path.join(tree, kind, 'bench'))
            for i in range(PAGES):
                with open(os.path.join(tree, kind, 'page%d' % i), 'wb') as f:
                    f.write(load.page('page%d' % i, number))
        at = FILE_SERVERS[first]
        store = self.servers[first]
        for volume in ('root.cell', 'w1', 'w2', 'w3', 'mv', 'pub'):
            self.admin.must_vos('create', at, 'a', volume, '-maxquota', '0')
            store.rxvol('acl', volume, 'system:anyuser', 'rlidwka')
            if volume != 'root.cell':
                store.rxvol('import', volume, os.path.join(tree, 'pub' if volume == 'pub' else 'rw'))
                store.rxvol('acl', volume + ':/bench', 'system:anyuser', 'rlidwka')
                store.rxvol('mount', 'root.cell:' + volume, volume, *(() if volume == 'pub' else ('--rw',)))
            self.home[volume] = first
        store.rxvol('mount', 'root.cell:pub-rw', 'pub', '--rw')
        for volume in ('root.cell', 'pub'):
            for n in FILE_SERVERS:
                self.admin.must_vos('addsite', FILE_SERVERS[n], 'a', volume)
            self.admin.must_vos('release', volume)
            self.say('%s is released' % volume)
        for volume, to in (('w2', 'fs2'), ('w3', 'fs3')):
            self.admin.must_vos('move', volume, at, 'a', FILE_SERVERS[to], 'a')
            self.home[volume] = to

    # ---- faults ----

    def faults(self):
        """All of them in an order of the seed; those of clocks come twice less often than the others."""
        machines = [*DATABASES, *FILE_SERVERS]
        every = ['%s-%s' % (kind, m) for m in machines for kind in ('kill', 'cut', 'restart')]
        every += ['clock-' + m for m in (*machines, *CLIENTS)]
        every = [f for f in every if not self.only or f in self.only or f.split('-')[0] in self.only]
        self.random.shuffle(every)
        return every

    def machine(self, name):
        return next(m for m in [*self.databases, *self.servers.values(), *self.clients] if m.name == name)

    def do_fault(self, fault, hold):
        kind, name = fault.split('-')
        m = self.machine(name)
        self.journal.note('fault', fault=fault)
        self.say('%s for %.0f s' % (fault, hold))
        record = [name, time.monotonic(), None]
        with self.lock:
            self.away.append(record)
            self.faulty = name
            if name in DATABASES:
                self.trust([n for n in DATABASES if n != name])
        if kind == 'clock':
            m.clock.shift(self.random.choice((-3600, 3600)))
        else:
            {'kill': m.kill, 'cut': m.cut, 'restart': m.stop}[kind]()
        if kind != 'restart':
            time.sleep(hold)
        if name in DATABASES:
            with self.admin.moving:
                self.end_fault(m, kind)
        else:
            self.end_fault(m, kind)
        if name in FILE_SERVERS:
            wait_for(lambda: self.is_served(name), 180, 'the return of ' + name)
        with self.lock:
            self.faulty = None
        if name in DATABASES:
            threading.Thread(target=self.trust_again, args=(record,), daemon=True).start()
        else:
            self.is_back(record)
        self.journal.note('over', fault=fault)

    def is_back(self, record):
        with self.lock:
            record[2] = time.monotonic()

    def end_fault(self, m, kind):
        if kind == 'clock':
            m.clock.shift(0)
        elif kind == 'cut':
            m.mend()
        else:
            m.boot()

    def trust(self, names):
        self.journal.note('trust', names=list(names))
        self.admin.trust(names)

    def trust_again(self, record):
        """Once no database server is behind the others, nor about to be: without a quorum nothing changes, so that one with a fault seems
        to be up to date."""
        with self.trusting:
            while not self.try_trust():
                time.sleep(2)
            self.is_back(record)

    def try_trust(self):
        if not self.admin.is_replicated('7003'):
            return False
        with self.lock:
            if self.faulty in DATABASES:
                return False
            self.trust(DATABASES)
            return True

    def run_faults(self):
        end = time.monotonic() + self.minutes * 60
        todo = self.faults()
        slot = self.minutes * 60 / len(todo) if todo else 0
        while todo and time.monotonic() < end:
            began = time.monotonic()
            self.do_fault(todo.pop(0), self.random.uniform(6, 18))
            time.sleep(max(4.0, slot - (time.monotonic() - began)))
        return todo

    # ---- load ----

    def begin_load(self):
        one, two = self.clients
        seed = self.seed
        self.writers = [load.Writer(self, c, v, seed) for c in self.clients for v in ('w1', 'w2', 'w3', 'mv')]
        self.readers = [load.Reader(self, c, 'pub', seed) for c in self.clients]
        self.readers += [load.Reader(self, two, v, seed) for v in ('w1', 'w2', 'w3')]
        self.readers += [load.CopyReader(self, two, 'pub', seed)]
        self.releaser = load.Releaser(self, self.admin, one, seed)
        self.mover = load.Mover(self, self.admin, 'mv', self.home['mv'], seed)
        self.bench = load.Bench(self, two, seed)
        self.workers = [*self.writers, *self.readers, self.releaser, self.mover, self.bench]
        for w in self.workers:
            w.start()

    def end_load(self):
        """Those that hang are named."""
        for w in self.workers:
            w.ending.set()
        end = time.monotonic() + 420
        for w in self.workers:
            w.join(max(0.1, end - time.monotonic()))
        self.tell('everybody-ends', [w.name + ' hangs' for w in self.workers if w.is_alive()] +
                  [w.trouble for w in self.workers if w.trouble])

    # ---- judgement ----

    def judge_readers(self):
        # A read may wait for a database server and a file server in turn, but only one of them is away.
        limit = DEAD + SLACK
        for r in self.readers:
            problems = list(r.errors)
            if r.longest > limit:
                problems.append('a read took %.1f s' % r.longest)
            if r.turns == 0:
                problems.append('it has read nothing')
            self.say('%s: %d reads, the longest %.1f s' % (r.name, r.turns, r.longest))
            self.tell(r.name, problems)

    def judge_writers(self):
        for c in self.clients:
            for w in self.writers:
                self.doing = '%s forgets what %s wrote' % (c.name, w.name)
                c.ctl(60, 'flush', w.folder(c))
        for w in self.writers:
            self.doing = 'the files of %s are read' % w.name
            problems = [line for c in self.clients for line in w.verify(c)]
            self.say('%s: %d acknowledged, %d failed, the longest %.1f s' % (w.name, w.acknowledged, w.failed, w.longest))
            self.tell(w.name, problems or ('' if w.acknowledged else 'nothing was acknowledged'))

    def wait_quorum(self):
        """OpenAFS's database server that has started, or whose clock has jumped, does not vote for 75 s. With a second one away there is
        no quorum."""
        try:
            wait_for(lambda: self.admin.is_replicated('7003') and self.can_change(), QUORUM, 'a quorum')
        except Trouble as e:
            self.say(str(e))

    def can_change(self):
        """The others hear of the new sync site later than it knows."""
        return self.admin.vos('unlock', 'pub', seconds=60)[0] == 0

    def judge_administration(self):
        for w, what in ((self.releaser, 'release'), (self.mover, 'move')):
            self.say('%s: %d complete, %d failed' % (what, w.complete, w.failed))
        problems = list(self.mover.problems)
        at = self.admin.site_of('mv')
        there = [s for s in FILE_SERVERS if 'mv' in (self.admin.listing(s) or {})]
        if there != [at]:
            problems.append('mv is on %s, the database says %s' % (there, at))
        self.tell('moves', problems or ('' if self.mover.complete else 'no move was complete'))
        self.wait_quorum()
        status, text = self.admin.vos('release', 'pub')
        self.tell('releases', '' if status == 0 and self.releaser.complete else 'the last one ended with %d: %s' % (
            status, text.strip()[-200:]))

    def shut_down(self):
        problems = []
        for c in self.clients:
            quiet('umount', c.mount)
            if not c.servers['rxafs'].wait_end(60):
                problems.append('rxafs of %s does not end' % c.name)
            elif c.servers['rxafs'].process.returncode:
                problems.append('rxafs of %s ended with %d' % (c.name, c.servers['rxafs'].process.returncode))
        for n in OURS:
            m = self.servers[n]
            m.stop()
            problems += ['%s ended with %d' % (s.name, s.process.returncode) for s in m.servers.values()
                         if s.process.returncode]
            try:
                m.rxvol('check')
            except Trouble as e:
                problems.append(str(e))
        for m in [*self.clients, *(self.servers[n] for n in OURS)]:
            for f in os.listdir(m.folder):
                if f.endswith('.log'):
                    with open(os.path.join(m.folder, f), errors='replace') as log:
                        problems += ['%s: %s' % (f, line.strip()) for line in log
                                     if re.search('assert|damaged|Sanitizer', line, re.I)]
        self.tell('servers-end', problems)

    def all(self):
        began = time.monotonic()
        self.set_up()
        self.begin_load()
        time.sleep(5)
        self.doing = 'faults come'
        left = self.run_faults()
        self.say('faults are over; not tried: %s' % (', '.join(left) or 'none'))
        time.sleep(DEAD)
        self.doing = 'the load ends'
        self.end_load()
        self.judge_readers()
        self.judge_writers()
        self.doing = 'releases and moves are judged'
        self.judge_administration()
        self.doing = 'the machines are shut down'
        self.shut_down()
        self.say('all of it took %.0f s' % (time.monotonic() - began))


def parse():
    p = argparse.ArgumentParser()
    p.add_argument('--minutes', type=int, default=10)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--only', type=lambda text: text.split(','), default=[])
    p.add_argument('build')
    p.add_argument('work')
    p.add_argument('openafs')
    return p.parse_args()


def finish(run):
    print('%d passed, %d failed, 0 skipped' % (sum(run.results), run.results.count(False)), flush=True)
    # Threads that hang in a mount end with the namespaces.
    os._exit(0 if all(run.results) else 1)


def end_in_time(run, seconds):
    time.sleep(seconds)
    run.tell('cell', 'its time of %d s is over while %s' % (seconds, run.doing))
    finish(run)


def main():
    options = parse()
    run = Run(options)
    # A minute before all programs are killed.
    threading.Thread(target=end_in_time, args=(run, options.minutes * 60 + LATER), daemon=True).start()
    # Logs outlive the namespaces; files of servers do not.
    try:
        run.all()
    except Exception as e:
        traceback.print_exc()
        run.tell('cell', '%s: %s' % (type(e).__name__, e))
    finish(run)


if __name__ == '__main__':
    main()
