# SPDX-License-Identifier: BSD-2-Clause
"""Several clients of one volume and a model of it: no wrong byte, and nothing old after the writer's call has returned.
shared.py walk SEED SECONDS AFSCP SERVER MOUNT...: one operation at a time, each by any of the clients.
shared.py storm SEED SECONDS MOUNT...: writers and readers at the same time."""

import errno
import fcntl
import mmap
import os
import random
import struct
import subprocess
import sys
import time

SIZES = [0, 1, 100, 4095, 4096, 5000, 65536, 70000, 262144, 300000]
FILES = ['a', 'b', 'c', 'd', 'e']


def fault(text, again):
    """`again` looks once more: a fault that passes tells how long it lasted."""
    begin = time.monotonic()
    while time.monotonic() < begin + 2:
        if again():
            print(f'FAIL: {text}; right after {1000 * (time.monotonic() - begin):.1f} ms')
            return
        time.sleep(0.001)
    print(f'FAIL: {text}; and still wrong after 2 s')


class Node:
    """A file, whatever names it has."""

    def __init__(self, data=b''):
        self.data = data


class Walk:
    """Directories are named by numbers, since they move; a file has a name in one directory only, which AFS wants."""

    def __init__(self, seed, afscp, server, mounts):
        self.r = random.Random(seed)
        self.mounts, self.afscp, self.server = mounts, afscp, server
        self.top = f'walk{seed}'
        self.tree = {}          # path of directory: {name: Node}
        self.opened = []        # [descriptor, node, mount, writable]
        self.mapped = []        # [map, node, size, mount, writable, descriptor]
        self.log, self.faults, self.steps = [], 0, 0
        os.mkdir(os.path.join(mounts[0], self.top))
        self.tree[self.top] = {}

    # -- choices --

    def mount(self):
        return self.r.choice(self.mounts)

    def directory(self):
        return self.r.choice(sorted(self.tree))

    def place(self):
        """A directory and a name in it; of a file that is there, mostly."""
        directory = self.directory()
        names = sorted(self.tree[directory])
        if names and self.r.random() < 0.8:
            return directory, self.r.choice(names)
        return directory, self.r.choice(FILES)

    def bytes(self):
        return self.r.randbytes(self.r.choice(SIZES))

    def note(self, text):
        self.log.append(text)

    def expect(self, text, look, wanted):
        got = look()
        if got != wanted:
            self.faults += 1
            fault(f'step {self.steps}, {text}: {self.show(got)} instead of {self.show(wanted)}', lambda: look() == wanted)
            for line in self.log[-30:]:
                print('   ', line)
            self.log.clear()

    @staticmethod
    def show(value):
        if isinstance(value, bytes):
            return f'{len(value)} bytes {value[:12].hex()}'
        return repr(value)[:200]

    def tried(self, call):
        try:
            return call()
        except OSError as e:
            return errno.errorcode.get(e.errno, e.errno)

    # -- names --

    def write_file(self):
        directory, name = self.place()
        mount, data, append = self.mount(), self.bytes(), self.r.random() < 0.3
        self.note(f'{"append" if append else "write"} {directory}/{name} {len(data)} by {mount[-3:]}')
        with open(os.path.join(mount, directory, name), 'ab' if append else 'wb') as f:
            f.write(data)
        node = self.tree[directory].setdefault(name, Node())
        node.data = node.data + data if append else data

    def read_file(self):
        directory, name = self.place()
        mount = self.mount()
        self.note(f'read {directory}/{name} by {mount[-3:]}')

        def look():
            def read():
                with open(os.path.join(mount, directory, name), 'rb') as f:
                    return f.read()
            return self.tried(read)
        node = self.tree[directory].get(name)
        self.expect(f'read {directory}/{name} by {mount[-3:]}', look, node.data if node else 'ENOENT')

    def stat_file(self):
        directory, name = self.place()
        mount = self.mount()

        def look():
            def status():
                s = os.stat(os.path.join(mount, directory, name))
                return s.st_size, s.st_nlink
            return self.tried(status)
        node = self.tree[directory].get(name)
        links = sum(n is node for n in self.tree[directory].values())
        self.expect(f'stat {directory}/{name} by {mount[-3:]}', look, (len(node.data), links) if node else 'ENOENT')

    def list_directory(self):
        directory, mount = self.directory(), self.mount()
        below = [d[len(directory) + 1:] for d in self.tree if os.path.dirname(d) == directory]
        self.expect(f'list {directory} by {mount[-3:]}', lambda: self.tried(lambda: sorted(
            n for n in os.listdir(os.path.join(mount, directory)) if not n.startswith('.__afs'))),
                    sorted([*self.tree[directory], *below]))

    def truncate(self):
        directory, name = self.place()
        node = self.tree[directory].get(name)
        if node:
            mount, size = self.mount(), self.r.choice(SIZES)
            self.note(f'truncate {directory}/{name} {size} by {mount[-3:]}')
            os.truncate(os.path.join(mount, directory, name), size)
            node.data = node.data[:size] + bytes(size - len(node.data[:size]))

    def used(self, node, mount=None):
        """Whether a client has it open; by another one, the removal would be the end of it (K-097)."""
        return any(o[1] is node and o[2] != mount for o in self.opened) or \
            any(m[1] is node and m[3] != mount for m in self.mapped)

    def unlink(self):
        directory, name = self.place()
        node, mount = self.tree[directory].get(name), self.mount()
        if not node or self.used(node, mount):
            return
        self.note(f'unlink {directory}/{name} by {mount[-3:]}')
        os.unlink(os.path.join(mount, directory, name))
        del self.tree[directory][name]

    def rename(self):
        directory, name = self.place()
        to_directory, to = self.place()
        node = self.tree[directory].get(name)
        if not node or sum(n is node for n in self.tree[directory].values()) > 1:
            return
        old, mount = self.tree[to_directory].get(to), self.mount()
        if old is node or (old and self.used(old, mount)):
            return
        self.note(f'rename {directory}/{name} {to_directory}/{to} by {mount[-3:]}')
        os.rename(os.path.join(mount, directory, name), os.path.join(mount, to_directory, to))
        del self.tree[directory][name]
        self.tree[to_directory][to] = node

    def link(self):
        directory, name = self.place()
        node, other, mount = self.tree[directory].get(name), self.r.choice(FILES), self.mount()
        if node and other not in self.tree[directory]:
            self.note(f'link {directory}/{name} {other} by {mount[-3:]}')
            os.link(os.path.join(mount, directory, name), os.path.join(mount, directory, other))
            self.tree[directory][other] = node

    def make_directory(self):
        if len(self.tree) < 8:
            above, mount = self.directory(), self.mount()
            path = f'{above}/dir{self.steps}'
            self.note(f'mkdir {path} by {mount[-3:]}')
            os.mkdir(os.path.join(mount, path))
            self.tree[path] = {}

    def move_directory(self):
        directory, above, mount = self.directory(), self.directory(), self.mount()
        if directory == self.top or f'{above}/'.startswith(f'{directory}/'):
            return
        path = f'{above}/dir{self.steps}'
        self.note(f'move {directory} {path} by {mount[-3:]}')
        # The kernel does not move a directory in its tree while it is about to rename it (ESTALE).
        os.stat(os.path.join(mount, directory))
        os.rename(os.path.join(mount, directory), os.path.join(mount, path))
        self.tree = {path + d[len(directory):] if d == directory or d.startswith(directory + '/') else d: names
                     for d, names in self.tree.items()}

    # -- descriptors --

    def open_file(self):
        directory, name = self.place()
        node, mount, writable = self.tree[directory].get(name), self.mount(), self.r.random() < 0.5
        if node and len(self.opened) < 6:
            self.note(f'open {directory}/{name} by {mount[-3:]}')
            fd = os.open(os.path.join(mount, directory, name), os.O_RDWR if writable else os.O_RDONLY)
            self.opened.append([fd, node, mount, writable])

    def close_file(self):
        if self.opened:
            fd, _, _, _ = self.opened.pop(self.r.randrange(len(self.opened)))
            os.close(fd)

    def chosen(self, writable=False):
        some = [o for o in self.opened if o[3] or not writable]
        return self.r.choice(some) if some else None

    def pread(self):
        one = self.chosen()
        if one:
            fd, node, mount, _ = one
            at, size = self.r.choice([0, 10, 4096, 99999]), self.r.choice([1, 4096, 200000])
            self.note(f'pread {at} {size} by {mount[-3:]}')
            self.expect(f'pread {at} {size} by {mount[-3:]}', lambda: os.pread(fd, size, at), node.data[at:at + size])

    def fstat(self):
        one = self.chosen()
        if one:
            self.expect(f'fstat by {one[2][-3:]}', lambda: os.fstat(one[0]).st_size, len(one[1].data))

    def pwrite(self):
        one = self.chosen(True)
        if one:
            fd, node, mount, _ = one
            at, data = self.r.choice([0, 1, 4095, 100000]), self.bytes()
            self.note(f'pwrite {at} {len(data)} by {mount[-3:]}')
            os.pwrite(fd, data, at)
            os.fsync(fd)
            if data:
                node.data = node.data[:at].ljust(at, b'\0') + data + node.data[at + len(data):]

    def ftruncate(self):
        one = self.chosen(True)
        if one:
            size = self.r.choice(SIZES)
            self.note(f'ftruncate {size} by {one[2][-3:]}')
            os.ftruncate(one[0], size)
            os.fsync(one[0])
            one[1].data = one[1].data[:size].ljust(size, b'\0')

    def lock(self):
        """What was written under a lock is stored when it is given up, and seen by the next holder."""
        one = self.chosen(True)
        if one:
            fd, node, mount, _ = one
            data = self.r.randbytes(self.r.choice([1, 500, 5000]))
            self.note(f'flock and write {len(data)} by {mount[-3:]}')
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.pwrite(fd, data, 0)
            fcntl.flock(fd, fcntl.LOCK_UN)
            node.data = data + node.data[len(data):]

    # -- maps --

    def map_file(self):
        one = self.chosen()
        if one and len(one[1].data) and len(self.mapped) < 4:
            fd, node, mount, writable = one
            size = len(node.data)
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            self.mapped.append([mmap.mmap(fd, size, access=access), node, size, mount, writable, os.dup(fd)])

    def unmap(self):
        if self.mapped:
            one = self.mapped.pop(self.r.randrange(len(self.mapped)))
            one[0].close()
            os.close(one[5])

    def usable(self, one):
        """Bytes of a map beyond the end of the file give SIGBUS. The kernel learns of another end when it is asked for it."""
        os.fstat(one[5])
        return min(one[2], len(one[1].data))

    def read_map(self):
        if self.mapped:
            one = self.r.choice(self.mapped)
            size = self.usable(one)
            if size:
                self.note(f'read map {size} by {one[3][-3:]}')
                self.expect(f'map of {size} by {one[3][-3:]}', lambda: one[0][:size], one[1].data[:size])

    def write_map(self):
        some = [m for m in self.mapped if m[4] and min(m[2], len(m[1].data))]
        if some:
            one = self.r.choice(some)
            node = one[1]
            size = self.usable(one)
            at = self.r.randrange(size)
            data = self.r.randbytes(min(self.r.choice([1, 50, 9000]), size - at))
            self.note(f'write map {at} {len(data)} by {one[3][-3:]}')
            one[0][at:at + len(data)] = data
            one[0].flush()
            node.data = node.data[:at] + data + node.data[at + len(data):]

    # -- the fourth client --

    def run_afscp(self, *words, **options):
        return subprocess.run([self.afscp, '-q', '-s', self.server, *words], check=True, **options)

    def put(self):
        directory, name = self.place()
        node, data = self.tree[directory].get(name), self.bytes()
        if not node or self.used(node):
            return
        self.note(f'afscp put {directory}/{name} {len(data)}')
        self.run_afscp('put', '-', f'work:{directory}/{name}', input=data)
        node.data = data

    def get(self):
        directory, name = self.place()
        node = self.tree[directory].get(name)
        if node:
            self.expect(f'afscp get {directory}/{name}', lambda: self.run_afscp(
                'get', f'work:{directory}/{name}', '-', stdout=subprocess.PIPE).stdout, node.data)

    def run(self, seconds):
        often = [self.write_file, self.read_file, self.read_file, self.stat_file, self.stat_file, self.list_directory,
                 self.truncate, self.unlink, self.rename, self.link, self.make_directory, self.move_directory,
                 self.open_file, self.open_file, self.close_file, self.pread, self.pread, self.pread, self.fstat, self.pwrite,
                 self.pwrite, self.ftruncate, self.lock, self.map_file, self.unmap, self.read_map, self.read_map,
                 self.write_map]
        rarely = [self.put, self.get]
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.faults < 5:
            self.steps += 1
            step = self.r.choice(rarely if self.r.random() < 0.01 else often)
            try:
                step()
            except OSError as e:
                # The model may have been left behind.
                print(f'FAIL: step {self.steps}, {step.__name__}: {e}')
                for line in self.log[-30:]:
                    print('   ', line)
                self.faults += 1
                break
        print(f'walk: {self.steps} steps, {self.faults} faults')
        return self.faults


# -- many at the same time --

RECORD = struct.Struct('<IIQ')      # file, number of the record, version


def whole(number, version, records):
    return b''.join(RECORD.pack(number, i, version) for i in range(records))


class Board:
    """What was acknowledged, for all processes: of each file the version, and how long it is."""

    def __init__(self, files):
        self.memory = mmap.mmap(-1, 16 * files)

    def tell(self, number, version):
        struct.pack_into('<Q', self.memory, 16 * number, version)

    def told(self, number):
        return struct.unpack_from('<Q', self.memory, 16 * number)[0]


class Storm:
    FILES = 6
    # In records: of less than a page, of pages, and with read-ahead.
    RECORDS = [10, 256, 300, 20000, 60000, 60000]

    def __init__(self, seed, mounts):
        self.seed, self.mounts = seed, mounts
        self.board = Board(self.FILES)
        for number in range(self.FILES):
            with open(self.path(mounts[0], number), 'wb') as f:
                f.write(whole(number, 1, self.RECORDS[number]))
            self.board.tell(number, 1)

    @staticmethod
    def path(mount, number):
        return os.path.join(mount, f'storm{number}')

    def write(self, r, number, end):
        """One writer for each file, by any mount; each version is written by one call."""
        version, kept = 1, {}
        while time.monotonic() < end:
            version += 1
            mount, way = r.choice(self.mounts), r.randrange(4)
            data = whole(number, version, self.RECORDS[number])
            path = self.path(mount, number)
            if way == 0:
                with open(path, 'r+b', buffering=0) as f:
                    f.write(data)
            elif way == 1:
                fd = kept.setdefault(mount, None) or os.open(path, os.O_RDWR)
                kept[mount] = fd
                os.pwrite(fd, data, 0)
                os.fsync(fd)
            elif way == 2:
                with open(path, 'wb', buffering=0) as f:
                    f.write(data)
            else:
                with open(path + '.new', 'wb', buffering=0) as f:
                    f.write(data)
                # Who has the old file open keeps it, so this is for those who open it.
                with open(path, 'r+b', buffering=0) as f:
                    f.write(data)
            self.board.tell(number, version)
            time.sleep(r.choice([0, 0.001, 0.02]))
        return version

    def check(self, what, number, data, least, look):
        """Each record is of the version that was acknowledged before the reading began, or of a later one. A file that is
        truncated and written again may be seen short."""
        if len(data) % RECORD.size:
            data = data[:len(data) - len(data) % RECORD.size]
        for i, (file, at, version) in enumerate(RECORD.iter_unpack(data)):
            # The kernel fills its page with zeros if a file is cut while it is read.
            if not file and not version:
                break
            if file != number or version < least:
                fault(f'{what} of file {number}: record {i} is of file {file}, place {at}, version {version}; '
                      f'acknowledged before: {least}', lambda: all(v >= least for _, _, v in RECORD.iter_unpack(look())))
                return 1
        return 0

    def read(self, r, mount, end):
        reads = faults = 0
        kept = {n: os.open(self.path(mount, n), os.O_RDONLY) for n in range(self.FILES)}

        def by_open(number):
            with open(self.path(mount, number), 'rb', buffering=0) as f:
                return f.read()

        def by_descriptor(number):
            return os.pread(kept[number], self.RECORDS[number] * RECORD.size, 0)

        def short(number):
            at = r.randrange(self.RECORDS[number])
            return os.pread(kept[number], 4096, at * RECORD.size)
        while time.monotonic() < end and faults < 3:
            number, look = r.randrange(self.FILES), r.choice([by_open, by_open, by_descriptor, short])
            least = self.board.told(number)
            data = look(number)
            faults += self.check(f'{look.__name__} by {mount[-12:]}', number, data, least, lambda: look(number))
            reads += 1
        print(f'reader: {reads} reads, {faults} faults', flush=True)
        return faults

    def run(self, seconds):
        end, children = time.monotonic() + seconds, []
        work = [(self.write, number) for number in range(self.FILES)] + [(self.read, mount) for mount in self.mounts]
        for i, (what, of) in enumerate(work):
            child = os.fork()
            if not child:
                status = 2
                try:
                    status = 1 if what(random.Random(f'{self.seed}/{i}'), of, end) and what == self.read else 0
                except OSError as e:
                    print(f'FAIL: {what.__name__} {of}: {e}', flush=True)
                sys.stdout.flush()
                os._exit(status)
            children.append(child)
        return sum(os.waitpid(child, 0)[1] != 0 for child in children)


def main():
    what, seed, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if what == 'walk':
        return Walk(seed, sys.argv[4], sys.argv[5], sys.argv[6:]).run(seconds)
    return Storm(seed, sys.argv[4:]).run(seconds)


sys.exit(1 if main() else 0)
