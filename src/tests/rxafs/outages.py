# SPDX-License-Identifier: BSD-2-Clause
"""Outages between a mount and its server. outages.py MOUNT DIRECT BRIEF WORK FS_PORT SERVER_PID RXFSD ARGUMENT...

MOUNT and BRIEF reach the server by a relay that this program runs; BRIEF waits for 10 s only. DIRECT is a mount without the relay.
The relay's port is then in WORK/relay, and the test begins when WORK/go exists. RXFSD and its arguments start the server again; its
number is then in WORK/server."""

import errno
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

mount, direct, brief, work = sys.argv[1:5]
fs_port, server_pid = int(sys.argv[5]), int(sys.argv[6])
command = sys.argv[7:]
PATIENCE = 60  # seconds, for what happens at once
failures = 0

HEADER = struct.Struct('>IIIIIBBBBHH')  # epoch, cid, call, seq, serial, type, flags, status, security, spare, service
DATA, CLIENT_INITIATED = 1, 1
REMOVE_FILE, CREATE_FILE, RENAME, SYMLINK, LINK, MAKE_DIR, REMOVE_DIR, STORE_STATUS = 136, 137, 138, 139, 140, 141, 142, 135
SET_LOCK = 156


def check(good, text):
    global failures
    if not good:
        failures += 1
        print('FAIL:', text, flush=True)


def tell(name, number):
    with open(f'{work}/{name}.new', 'w', encoding='ascii') as f:
        f.write(str(number))
    os.rename(f.name, f'{work}/{name}')


class Relay(threading.Thread):
    """Forwards datagrams as a router with NAT does: the server sees another port for each of a client."""

    def __init__(self):
        super().__init__(daemon=True)
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(('127.0.0.1', 0))
        self.ways = {}             # sockets towards the server by the client's address
        self.cut = False           # nothing passes
        self.lose_answers = False  # nothing passes to clients
        self.lost = 0              # of the latter: data of answers
        self.losing = set()        # operations: the first call of each is lost for ever
        self.calls = set()         # that are lost
        self.losing_once = set()   # operations: the first packet of one is lost
        self.start()

    def change_ports(self):
        old, self.ways = self.ways, {}
        for way in old.values():
            way.close()

    def is_lost(self, packet):
        if len(packet) < HEADER.size:
            return False
        epoch, cid, call, seq, _, kind, *_ = HEADER.unpack_from(packet)
        if kind == DATA and seq == 1 and len(packet) >= HEADER.size + 4:
            opcode = struct.unpack_from('>I', packet, HEADER.size)[0]
            if opcode in self.losing_once:
                self.losing_once.discard(opcode)
                return True
            if opcode in self.losing:
                self.losing.discard(opcode)
                self.calls.add((epoch, cid, call))
        return (epoch, cid, call) in self.calls

    def from_client(self):
        packet, client = self.front.recvfrom(65536)
        if self.cut or self.is_lost(packet):
            return
        if client not in self.ways:
            self.ways[client] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.ways[client].connect(('127.0.0.1', fs_port))
        self.ways[client].send(packet)

    def from_server(self, client, way):
        packet = way.recv(65536)
        if self.lose_answers and len(packet) > HEADER.size and packet[20] == DATA and not packet[21] & CLIENT_INITIATED:
            self.lost += 1
        if not self.cut and not self.lose_answers:
            self.front.sendto(packet, client)

    def run(self):
        while True:
            ways = {way: client for client, way in self.ways.items()}
            try:
                for source in select.select([self.front, *ways], [], [], 0.2)[0]:
                    if source is self.front:
                        self.from_client()
                    else:
                        self.from_server(ways[source], source)
            except (OSError, ValueError):
                # The server is down, or a port was changed.
                time.sleep(0.005)


class Doing(threading.Thread):
    """An operation in the background."""

    def __init__(self, operation):
        super().__init__(daemon=True)
        self.operation = operation
        self.error = None
        self.start()

    def run(self):
        try:
            self.operation()
        except OSError as e:
            self.error = e


def until(seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def has_ended(pid):
    """Whether its ports and its store are free: the shell that has started it may not have waited for it."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
            return f.read().rsplit(')', 1)[1].split()[0] == 'Z' and len(os.listdir(f'/proc/{pid}/task')) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True


class Server:
    def __init__(self):
        self.pid, self.process = server_pid, None
        self.note()

    def note(self):
        tell('server', self.pid)

    def restart(self):
        os.kill(self.pid, signal.SIGKILL)
        if self.process:
            self.process.wait()
        check(until(PATIENCE, lambda: has_ended(self.pid)), 'the server does not end')
        line = b''
        for _ in range(20):
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            line = self.process.stdout.readline()
            if b'listening' in line:
                break
            self.process.wait()
            time.sleep(0.5)
        self.pid = self.process.pid
        self.note()
        check(b'listening' in line, f'the server does not start: {line}')


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def write(path, data, flags=os.O_CREAT | os.O_WRONLY):
    fd = os.open(path, flags, 0o644)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


class Place:
    """A directory by both mounts, and the changes of which answers are lost."""

    def __init__(self, name):
        self.at, self.other = f'{mount}/{name}', f'{direct}/{name}'
        os.mkdir(self.at)
        for file in ('unlinked', 'renamed', 'linked', 'cut', 'moved'):
            write(f'{self.at}/{file}', b'0123456789')
        os.mkdir(f'{self.at}/removed')
        os.mkdir(f'{self.at}/target')
        os.listdir(self.at)

    def names(self, below=''):
        return set(os.listdir(self.at + below)), set(os.listdir(self.other + below))

    def has(self, name, below=''):
        return all(name in names for names in self.names(below))

    def lacks(self, name):
        return all(name not in names for names in self.names())

    def changes(self):
        """Name, operation, and whether it was done."""
        d = self.at
        return [
            ('mkdir', MAKE_DIR, lambda: os.mkdir(f'{d}/directory'), lambda: self.has('directory')),
            ('create with O_EXCL', CREATE_FILE, lambda: os.close(os.open(f'{d}/exclusive', os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
             lambda: self.has('exclusive')),
            ('symlink', SYMLINK, lambda: os.symlink('linked', f'{d}/symbolic'),
             lambda: self.has('symbolic') and os.readlink(f'{self.other}/symbolic') == 'linked'),
            ('link', LINK, lambda: os.link(f'{d}/linked', f'{d}/second'),
             lambda: self.has('second') and os.stat(f'{self.other}/second').st_nlink == 2),
            ('rename', RENAME, lambda: os.rename(f'{d}/renamed', f'{d}/new'), lambda: self.has('new') and self.lacks('renamed')),
            ('unlink', REMOVE_FILE, lambda: os.unlink(f'{d}/unlinked'), lambda: self.lacks('unlinked')),
            ('rmdir', REMOVE_DIR, lambda: os.rmdir(f'{d}/removed'), lambda: self.lacks('removed')),
            ('chmod', STORE_STATUS, lambda: os.chmod(f'{d}/cut', 0o600), lambda: os.stat(f'{self.other}/cut').st_mode & 0o777 == 0o600),
        ]


def answers_that_are_lost(relay, server):
    """The server does it, and is killed before the answer arrives. Another one is there soon."""
    for name, _, operation, right in Place('answers').changes():
        relay.lost = 0
        relay.lose_answers = True
        doing = Doing(operation)
        check(until(PATIENCE, lambda: relay.lost > 0), f'{name}: the server does not answer')
        server.restart()
        relay.lose_answers = False
        doing.join(130)
        check(not doing.is_alive(), f'{name}: still waits')
        check(not doing.error, f'{name}, answer lost: {doing.error}')
        check(until(PATIENCE, right), f'{name}, answer lost: the result is wrong')


def requests_that_are_lost(relay):
    """The server never gets the call, though it answers others. It is done by one more call."""
    all_changes = []
    for n, name in enumerate(('mkdir', 'create with O_EXCL', 'symlink', 'link', 'rename', 'unlink', 'rmdir', 'chmod')):
        all_changes.append(next(c for c in Place(f'requests{n}').changes() if c[0] == name))
    relay.losing = {c[1] for c in all_changes}
    doing = [Doing(operation) for _, _, operation, _ in all_changes]
    for one, (name, _, _, right) in zip(doing, all_changes):
        one.join(130)
        check(not one.is_alive(), f'{name}: still waits')
        check(not one.error, f'{name}, request lost: {one.error}')
        check(until(PATIENCE, right), f'{name}, request lost: the result is wrong')
    check(not relay.losing, f'these calls were not made: {relay.losing}')
    relay.calls = set()


def is_locked(mounted, name):
    """Whether another open file has the lock."""
    fd = os.open(f'{mounted}/{name}', os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def lock_of_another(relay):
    """The request for a lock is sent twice, and refused. That says nothing of the first: the lock that is held stays."""
    holder = os.open(f'{direct}/locked', os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    relay.losing_once = {SET_LOCK}
    check(is_locked(mount, 'locked'), 'the lock of another client is got')
    check(not relay.losing_once, 'no lock was asked for')
    check(is_locked(brief, 'locked'), 'the lock of another client was given back')
    os.close(holder)


def silence(relay):
    """
    20 s: shorter than the client waits. Nothing fails, and what is cached under a promise goes on, but for the directories in which
    a change waits.
    """
    place, quiet = Place('silence'), Place('quiet')
    write(f'{quiet.at}/cached', b'cached')
    check(read(f'{quiet.at}/cached') == b'cached', 'the file before the silence')
    relay.cut = True
    begin = time.monotonic()
    waiting = [Doing(lambda: write(f'{place.at}/during', b'during')), Doing(lambda: os.mkdir(f'{place.at}/target/silent'))]
    for _ in range(10):
        # A read that waits for the server fails in the end.
        check(read(f'{quiet.at}/cached') == b'cached', 'a cached file during the silence')
        time.sleep(2)
    check(all(one.is_alive() for one in waiting), f'a change ended during the silence: {[one.error for one in waiting]}')
    relay.cut = False
    back = time.monotonic()
    for one in waiting:
        one.join(90)
        check(not one.is_alive() and not one.error, f'a change after the silence: {one.error}')
    print(f'silent for {back - begin:.1f} s, changes done {time.monotonic() - back:.1f} s later', flush=True)
    check(place.has('during') and place.has('silent', '/target') and read(f'{place.other}/during') == b'during',
          'the changes after the silence')


def other_port(relay):
    """The mapping of a NAT changes: after the next call breaks arrive again."""
    place = Place('port')
    write(f'{place.other}/mapped', b'before')
    check(until(PATIENCE, lambda: read(f'{place.at}/mapped') == b'before'), 'the file before the port changes')
    relay.change_ports()
    write(f'{place.at}/call', b'from another port')
    write(f'{place.other}/mapped', b'behind', os.O_WRONLY | os.O_TRUNC)
    check(until(PATIENCE, lambda: read(f'{place.at}/mapped') == b'behind'), 'a change after the port has changed is not seen')


def long_outage(server):
    """Longer than the client waits: errors, but no data are lost."""
    fd = os.open(f'{brief}/kept', os.O_CREAT | os.O_RDWR)
    os.write(fd, b'kept')
    os.kill(server.pid, signal.SIGSTOP)
    try:
        os.fsync(fd)
        check(False, 'fsync without a server succeeds')
    except OSError as e:
        check(e.errno == errno.ETIMEDOUT, f'fsync without a server: {e}')
    os.kill(server.pid, signal.SIGCONT)

    def stored():
        try:
            os.fsync(fd)
        except OSError:
            return False
        return True

    check(until(PATIENCE, stored), 'what was written during an outage is not stored')
    os.close(fd)
    check(until(PATIENCE, lambda: read(f'{direct}/kept') == b'kept'), 'what was written before an outage')


the_relay, the_server = Relay(), Server()
tell('relay', the_relay.front.getsockname()[1])
check(until(PATIENCE, lambda: os.path.exists(f'{work}/go')), 'the mounts are not there')
parts = {
    'requests': lambda: requests_that_are_lost(the_relay),
    'answers': lambda: answers_that_are_lost(the_relay, the_server),
    'locks': lambda: lock_of_another(the_relay),
    'silence': lambda: silence(the_relay),
    'port': lambda: other_port(the_relay),
    'long': lambda: long_outage(the_server),
}
for part_name in os.environ.get('OUTAGES', ' '.join(parts)).split():
    start = time.monotonic()
    parts[part_name]()
    print(f'{part_name}: {time.monotonic() - start:.1f} s', flush=True)
sys.exit(failures != 0)
