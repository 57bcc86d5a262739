# SPDX-License-Identifier: BSD-2-Clause
"""Machines as network namespaces at one bridge, and the servers and clients that run on them."""

import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import threading
import time

CELL = 'interop.example'
KEY = '0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20'
DATABASES = {'db1': '10.92.0.11', 'db2': '10.92.0.12', 'db3': '10.92.0.13'}
OURS = {'fs1': '10.92.0.21', 'fs2': '10.92.0.22'}
THEIRS = {'fs3': '10.92.0.23'}
FILE_SERVERS = {**OURS, **THEIRS}
CLIENTS = {'c1': '10.92.0.31', 'c2': '10.92.0.32'}
ADMIN = {'admin': '10.92.0.41'}
ADDRESSES = {**DATABASES, **FILE_SERVERS, **CLIENTS, **ADMIN}


class Trouble(Exception):
    """The cell cannot be set up, or a server does not come back."""


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Trouble('%s: not within %d s' % (what, seconds))
        time.sleep(0.1)


def quiet(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


class Place:
    """Where everything is: the build, the working folder, OpenAFS's programs."""

    def __init__(self, build, work, openafs):
        self.build, self.work = build, work
        self.programs = '' if openafs == 'system' else openafs
        self.libraries = []
        if self.programs:
            lib = os.path.join(self.programs, 'usr/lib')
            self.libraries = [lib] + [os.path.join(lib, d) for d in os.listdir(lib) if '-linux-' in d]

    def ours(self, name):
        for folder in (name, 'fileserver', 'rxafs', 'tests/system/interop'):
            path = os.path.join(self.build, 'src', folder, name)
            if os.access(path, os.X_OK) and not os.path.isdir(path):
                return path
        raise Trouble('%s is not built' % name)

    def theirs(self, name):
        for folder in ('usr/lib/openafs', 'usr/sbin', 'usr/bin', 'sbin', 'bin'):
            path = os.path.join(self.programs or '/', folder, name)
            if os.access(path, os.X_OK):
                return path
        raise Trouble('OpenAFS has no %s' % name)


class Clock:
    """The time of day of a machine's programs, which see it through clock.so: a number of seconds that can change."""

    def __init__(self, path):
        with open(path, 'wb') as f:
            f.write(bytes(8))
        with open(path, 'r+b') as f:
            self.page = mmap.mmap(f.fileno(), 8)
        self.path = path

    def shift(self, seconds):
        self.page[:] = struct.pack('=q', seconds)


class Machine:
    """A network namespace with one interface; a root folder with files of its own in /etc and /var."""

    def __init__(self, place, name):
        self.place, self.name, self.address = place, name, ADDRESSES[name]
        self.folder = os.path.join(place.work, name)
        self.root = os.path.join(self.folder, 'root')
        self.servers = {}
        os.makedirs(self.root)
        self.clock = Clock(os.path.join(self.folder, 'clock'))
        self.make_network()
        self.make_root()
        self.make_etc()

    def make_network(self):
        quiet('ip', 'netns', 'add', self.name)
        quiet('ip', 'link', 'add', self.name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', self.name)
        quiet('ip', 'link', 'set', self.name, 'master', 'cell', 'up')
        for command in (('link', 'set', 'lo', 'up'), ('link', 'set', 'eth0', 'up'),
                        ('addr', 'add', self.address + '/24', 'dev', 'eth0')):
            quiet('ip', '-n', self.name, *command)

    def make_root(self):
        own = ('etc', 'var', 'run', 'sys', 'mnt', 'media', 'lost+found')
        for name in os.listdir('/'):
            path, there = os.path.join('/', name), os.path.join(self.root, name)
            if name in own or name.startswith('vicep'):
                continue
            if os.path.islink(path):
                os.symlink(os.readlink(path), there)
            elif os.path.isdir(path):
                os.mkdir(there)
                quiet('mount', '--rbind', path, there)
        for name in ('etc/openafs/server', 'run', 'sys', 'mnt', 'vicepa', 'var/lib/openafs/local', 'var/lib/openafs/db',
                     'var/log/openafs', 'var/tmp', 'var/cache', 'var/openafs'):
            os.makedirs(os.path.join(self.root, name))
        os.symlink('/run', os.path.join(self.root, 'var/run'))
        os.chmod(os.path.join(self.root, 'var/tmp'), 0o1777)
        open(os.path.join(self.root, 'vicepa/AlwaysAttach'), 'w').close()
        for name in ('passwd', 'group', 'ld.so.cache', 'ld.so.conf', 'services', 'protocols', 'localtime'):
            if os.path.exists('/etc/' + name):
                shutil.copy('/etc/' + name, os.path.join(self.root, 'etc', name))

    def make_etc(self):
        """Names without DNS, and the cell with its database servers."""
        def write(path, text):
            with open(os.path.join(self.root, 'etc', path), 'w') as f:
                f.write(text)
        write('nsswitch.conf', 'hosts: files\npasswd: files\ngroup: files\nservices: files\n')
        # OpenAFS's database servers require an entry of their own host.
        lines = ['127.0.0.1 localhost', '%s %s' % (self.address, os.uname().nodename)]
        write('hosts', '\n'.join(lines + ['%s %s.%s' % (a, n, CELL) for n, a in ADDRESSES.items()]) + '\n')
        servers = ''.join('%s #%s.%s\n' % (a, n, CELL) for n, a in DATABASES.items())
        for folder in ('openafs', 'openafs/server'):
            write(folder + '/ThisCell', CELL + '\n')
            write(folder + '/CellServDB', '>%s #a cell for tests\n%s' % (CELL, servers))
        quiet(self.place.ours('cell_ours'), 'key', os.path.join(self.config(), 'KeyFileExt'), '5', '18', KEY)

    def config(self):
        return os.path.join(self.root, 'etc/openafs/server')

    def network(self):
        return ['nsenter', '--net=/run/netns/' + self.name, '--']

    def chrooted(self, program, *arguments):
        return self.network() + ['chroot', self.root, self.place.theirs(program), *arguments]

    def environment(self, theirs):
        e = {k: v for k, v in os.environ.items() if k not in ('KRB5CCNAME', 'NOTIFY_SOCKET')}
        e.update(TZ='UTC0', LD_PRELOAD=os.path.join(self.place.work, 'clock.so'), CLOCK_FILE=self.clock.path)
        if theirs and self.place.libraries:
            e['LD_LIBRARY_PATH'] = ':'.join(self.place.libraries)
        return e

    def start(self, name, command, theirs=True):
        self.servers[name] = Server(self, name, command, theirs)
        return self.servers[name]

    def run(self, command, seconds, theirs=True):
        """(status, output); status 124: it was killed after the time."""
        try:
            done = subprocess.run(command, env=self.environment(theirs), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=seconds, cwd=self.folder, check=False)
        except subprocess.TimeoutExpired as e:
            return 124, (e.stdout or b'').decode(errors='replace')
        return done.returncode, done.stdout.decode(errors='replace')

    # What is done to a machine: its link is lost, and nobody is told, since packets vanish; its programs die at once; they end
    # in order.
    def cut(self):
        quiet('ip', 'link', 'set', self.name, 'nomaster')

    def mend(self):
        quiet('ip', 'link', 'set', self.name, 'master', 'cell')

    def kill(self):
        for s in self.servers.values():
            s.signal(signal.SIGKILL)
        for s in self.servers.values():
            s.wait_end(30)

    def stop(self):
        for s in self.servers.values():
            s.signal(s.gentle)
        for s in self.servers.values():
            if not s.wait_end(60):
                s.signal(signal.SIGKILL)
                s.wait_end(30)


class Server:
    """A program that runs until it is stopped; its output is in a log beside the machine's root."""

    def __init__(self, machine, name, command, theirs):
        self.name, self.machine, self.gentle = name, machine, signal.SIGTERM
        self.log = os.path.join(machine.folder, name + '.log')
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(command, env=machine.environment(theirs), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=machine.folder)

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def wait_end(self, seconds):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ended(self):
        return self.process.poll() is not None

    def said(self, text):
        with open(self.log, errors='replace') as f:
            return text in f.read()


class Database(Machine):
    def boot(self):
        self.start('vlserver', self.chrooted('vlserver'))
        self.start('ptserver', self.chrooted('ptserver', '-p', '16'))


class OurFileServer(Machine):
    def __init__(self, place, name):
        super().__init__(place, name)
        self.store = os.path.join(self.folder, 'store')
        self.boots = 0

    def boot(self):
        # The log is of this start only.
        self.boots += 1
        self.start('rxfsd-%d' % self.boots, self.network() + [
            self.place.ours('rxfsd'), '--store', self.store, '--cell-config', self.config(), '--listen', self.address,
            '--require', 'none', '--allow-anonymous-writes'], theirs=False)
        self.servers = {k: s for k, s in self.servers.items() if not s.ended()}

    def rxvol(self, *arguments):
        status, text = self.run([self.place.ours('rxvol'), '-S', self.store, *arguments], 60, theirs=False)
        if status:
            raise Trouble('rxvol %s: %s' % (' '.join(arguments), text.strip()))
        return text


class TheirFileServer(Machine):
    crashed = False

    def kill(self):
        super().kill()
        self.crashed = True

    def boot(self):
        with open(os.path.join(self.root, 'var/lib/openafs/local/NetInfo'), 'w') as f:
            f.write(self.address + '\n')
        # What its overseer does after a crash.
        if self.crashed:
            status, text = self.run(self.chrooted('salvager', '-partition', '/vicepa'), 120)
            if status:
                raise Trouble('salvager ended with %d: %s' % (status, text[-300:]))
            self.crashed = False
        self.start('fileserver', self.chrooted('fileserver', '-d', '1')).gentle = signal.SIGQUIT
        # The volume server waits for the file server longer and longer.
        wait_for(lambda: os.path.exists(os.path.join(self.root, 'var/lib/openafs/local/fssync.sock')), 120, 'the file server')
        self.start('volserver', self.chrooted('volserver'))


class Client(Machine):
    def boot(self):
        self.mount = os.path.join(self.folder, 'afs')
        os.makedirs(self.mount, exist_ok=True)
        self.start('rxafs', self.network() + [
            self.place.ours('rxafs'), '--foreground', '--config-dir', os.path.join(self.root, 'etc/openafs'), '--cell', CELL,
            '--root-volume', 'root.cell', '--memory', '16M', self.mount], theirs=False)
        wait_for(lambda: os.path.ismount(self.mount) or self.servers['rxafs'].ended(), 60, 'a mount at ' + self.name)
        if self.servers['rxafs'].ended():
            raise Trouble('rxafs has ended')

    def path(self, *names):
        return os.path.join(self.mount, *names)

    def ctl(self, seconds, *arguments):
        return self.run(self.network() + [self.place.ours('rxafsctl'), *arguments], seconds, theirs=False)

    def afscp(self, seconds, *arguments):
        servers = [w for a in DATABASES.values() for w in ('-s', '%s=%s' % (CELL, a))]
        return self.run(self.network() + [self.place.ours('afscp'), *servers, *arguments], seconds, theirs=False)


class Admin(Machine):
    """Runs vos, and puts right what a command that failed has left.

    A database server of OpenAFS that starts answers from the database that it had, until it hears of the others. A vos that is told
    an old place by it can remove the only copy of a volume. So vos does not ask a server that is not up to date (trust()), and no
    server starts while a move runs (moving)."""

    def __init__(self, place, name):
        super().__init__(place, name)
        self.moving = threading.Lock()
        self.trusted = list(DATABASES)

    def trust(self, names):
        self.trusted = list(names)
        servers = ''.join('%s #%s.%s\n' % (DATABASES[n], n, CELL) for n in names)
        for folder in ('openafs', 'openafs/server'):
            path = os.path.join(self.root, 'etc', folder, 'CellServDB')
            with open(path + '.new', 'w') as f:
                f.write('>%s #a cell for tests\n%s' % (CELL, servers))
            os.rename(path + '.new', path)

    def vos(self, *arguments, seconds=400):
        return self.run(self.chrooted('vos', *arguments, '-localauth'), seconds)

    def must_vos(self, *arguments):
        status, text = self.vos(*arguments)
        if status:
            raise Trouble('vos %s: %s' % (' '.join(arguments), text.strip()[-300:]))
        return text

    def listing(self, server):
        """{volume: state} of a server; None if it does not answer."""
        status, text = self.vos('listvol', FILE_SERVERS[server], seconds=150)
        if status:
            return None
        words = [line.split() for line in text.splitlines()]
        return {w[0]: w[-1] for w in words if len(w) == 6 and w[4] == 'K'}

    def site_of(self, volume):
        """The file server of the read-write volume by the database of locations; None: nobody says so."""
        status, text = self.vos('listvldb', '-name', volume, seconds=150)
        for line in text.splitlines() if status == 0 else []:
            for name, address in FILE_SERVERS.items():
                if 'RW Site' in line and re.search(r'\b(%s|%s)\b' % (re.escape(address), name), line):
                    return name
        return None

    def end_transactions(self, server, volumes):
        """Those with one of the volumes, which a command that failed has left. Else they end after ten minutes."""
        ids = self.numbers(server)
        _, text = self.vos('status', FILE_SERVERS[server], seconds=150)
        number = None
        for line in text.splitlines():
            found = re.match(r'transaction: (\d+)', line)
            number = found.group(1) if found else number
            found = re.match(r'volume: (\d+)', line)
            if found and ids.get(found.group(1)) in volumes and number:
                self.vos('endtrans', FILE_SERVERS[server], number, seconds=150)

    def numbers(self, server):
        _, text = self.vos('listvol', FILE_SERVERS[server], seconds=150)
        return {w[1]: w[0] for w in (line.split() for line in text.splitlines()) if len(w) >= 3 and w[1].isdigit()}

    def has_quorum(self):
        """Both databases can be changed, and all servers have the last change."""
        status, text = self.run(self.chrooted('pts', 'createuser', 'alice', '-localauth'), 60)
        if status and 'already exists' not in text or self.vos('listvldb', seconds=60)[0]:
            return False
        return all(self.is_replicated(port) for port in ('7003', '7002'))

    def is_current(self):
        """None of the servers that vos asks is behind. A quorum that was lost and found can leave one behind for half a minute."""
        return self.is_replicated('7003', self.trusted)

    def is_replicated(self, port, names=tuple(DATABASES)):
        states = [self.run(self.chrooted('udebug', DATABASES[n], port), 30)[1] for n in names]
        # Of all, and by the site that makes changes, too: one that is away, or has just come back, misses the next change.
        versions = [v for s in states for v in re.findall(r'Local db version is (\S+)', s)]
        return (len(versions) == len(states) and len(set(versions)) == 1 and
                any('Recovery state 1f' in s and s.count('dbcurrent=1, up=1 beaconSince=1') >= len(names) - 1 for s in states))
