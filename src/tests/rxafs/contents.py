# SPDX-License-Identifier: BSD-2-Clause
"""Random work on the contents of a file, with a model in memory: reads, writes, maps, O_DIRECT, O_APPEND, truncations, copies inside, holes, by
several descriptors of two mounts. contents.py SEED STEPS ONE TWO: the same directory in two mounts"""

import errno
import mmap
import os
import random
import sys

MOST = 600_000
PAGE = 4096


class Contents:
    def __init__(self, seed, paths):
        self.r = random.Random(seed)
        self.paths = paths      # of the file, in each mount
        self.model = bytearray()
        self.log = []
        self.used = 0           # the mount that has written last
        self.page = mmap.mmap(-1, 64 * PAGE)
        self.open_all()

    def open_all(self):
        self.plain = [os.open(p, os.O_CREAT | os.O_RDWR) for p in self.paths]
        self.direct = [os.open(p, os.O_RDWR | os.O_DIRECT) for p in self.paths]
        self.append = [os.open(p, os.O_WRONLY | os.O_APPEND) for p in self.paths]

    def close_all(self):
        for fd in self.plain + self.direct + self.append:
            os.close(fd)

    def fail(self, text):
        print(f'FAIL: {text}')
        for line in self.log[-30:]:
            print('   ', line)
        sys.exit(1)

    def turn_to(self, mount):
        """What one mount has written is stored before the other one works."""
        if mount != self.used:
            os.fsync(self.plain[self.used])
            self.used = mount

    def place(self, length):
        at = self.r.choice([self.r.randrange(MOST), self.r.randrange(len(self.model) + 1)])
        return min(at, MOST - length)

    def put(self, at, data):
        if at > len(self.model):
            self.model += bytes(at - len(self.model))
        self.model[at:at + len(data)] = data

    def bytes(self, length):
        return self.r.randbytes(min(length, 64)) * (length // 64 + 1)

    def compare(self, what, at, got, length):
        want = bytes(self.model[at:at + length])
        if got != want:
            bad = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), min(len(got), len(want)))
            self.fail(f'{what} at {at}: {len(got)} bytes of {len(want)}, wrong from {at + bad}')

    # -- the operations, each on one mount --

    def read(self, m):
        length = self.r.choice([1, 100, PAGE, 70_000])
        at = self.place(length)
        self.compare('read', at, os.pread(self.plain[m], length, at), length)

    def write(self, m):
        length = self.r.choice([1, 10, 5000, PAGE, 30_000, 150_000])
        at, data = self.place(length), self.bytes(length)[:length]
        os.pwrite(self.plain[m], data, at)
        self.put(at, data)
        return at, length

    def add(self, m):
        data = self.bytes(3000)[:self.r.randrange(1, 3000)]
        if len(self.model) + len(data) <= MOST:
            os.write(self.append[m], data)
            self.put(len(self.model), data)
        return len(data)

    def cut(self, m):
        length = self.r.randrange(MOST) if self.r.random() < 0.3 else self.r.randrange(len(self.model) + 1)
        if self.r.random() < 0.5:
            os.ftruncate(self.plain[m], length)
        else:
            os.truncate(self.paths[m], length)
        self.put(length, b'')
        del self.model[length:]
        return length

    def direct_read(self, m):
        pages = self.r.randrange(1, 60)
        at = self.place(pages * PAGE) // PAGE * PAGE
        with memoryview(self.page) as view:
            got = os.preadv(self.direct[m], [view[:pages * PAGE]], at)
            self.compare('direct read', at, bytes(view[:got]), pages * PAGE)

    def direct_write(self, m):
        pages = self.r.randrange(1, 40)
        at, data = self.place(pages * PAGE) // PAGE * PAGE, self.bytes(pages * PAGE)[:pages * PAGE]
        self.page[:len(data)] = data
        with memoryview(self.page) as view:
            os.pwritev(self.direct[m], [view[:len(data)]], at)
        self.put(at, data)
        return at, len(data)

    def mapped(self, m):
        if not self.model:
            return None
        size = len(self.model)
        with mmap.mmap(self.plain[m], size) as view:
            at = self.r.randrange(size)
            length = min(self.r.choice([1, 4000, 50_000]), size - at)
            self.compare('map', at, view[at:at + length], length)
            data = self.bytes(length)[:length]
            view[at:at + length] = data
            if self.r.random() < 0.7:
                view.flush()
        os.fsync(self.plain[m])
        self.put(at, data)
        return at, length

    def copy(self, m):
        length = self.r.randrange(1, 60_000)
        source, to = self.place(length), self.place(length)
        data = bytes(self.model[source:source + length])
        if abs(source - to) < length:
            return None
        # As cp does: the kernel limits the call by the size that it knows.
        os.fstat(self.plain[m])
        done = 0
        while done < len(data):
            n = os.copy_file_range(self.plain[m], self.plain[m], len(data) - done, source + done, to + done)
            if n <= 0:
                self.fail(f'copy_file_range gave {n} at {source + done}')
            done += n
        if data:
            self.put(to, data)
        return source, to, length

    def seek(self, m):
        size = len(self.model)
        if os.fstat(self.plain[m]).st_size != size:
            self.fail(f'size {os.fstat(self.plain[m]).st_size}, not {size}')
        try:
            at = os.lseek(self.plain[m], self.place(0), os.SEEK_HOLE)
            if not 0 <= at <= size:
                self.fail(f'a hole at {at} of {size}')
        except OSError as e:
            if e.errno != errno.ENXIO:
                raise

    def sync(self, m):
        os.fsync(self.direct[m])

    def again(self, _):
        self.close_all()
        self.open_all()

    def run(self, steps):
        operations = [self.read, self.read, self.write, self.write, self.add, self.cut, self.direct_read, self.direct_write, self.mapped, self.copy,
                      self.seek, self.sync, self.again]
        for step in range(steps):
            fn = self.r.choice(operations)
            # Runs of several operations at one mount, so that something is left to be stored.
            m = self.used if self.r.random() < 0.8 else self.r.randrange(len(self.paths))
            self.turn_to(m)
            self.log.append((step, fn.__name__, m, len(self.model)))
            self.log[-1] += (fn(m),)
        self.turn_to(1 - self.used if len(self.paths) > 1 else 0)
        self.close_all()
        for path in self.paths:
            with open(path, 'rb') as f:
                self.compare('all of it', 0, f.read(), MOST)


def main():
    seed, steps = int(sys.argv[1]), int(sys.argv[2])
    Contents(seed, [os.path.join(d, f'contents{seed}') for d in sys.argv[3:]]).run(steps)
    print(f'seed {seed}: {steps} steps')


main()
