# SPDX-License-Identifier: BSD-2-Clause
"""A random walk through operations, on a mount and on a twin in a local file system: results, contents and attributes are
the same. With several mounts, each operation is done on one of them: what one has stored the others see.
walk.py TWIN SEED STEPS MOUNT..."""

import errno
import os
import random
import stat
import sys

NAMES = ['a', 'b', 'c', 'dd', 'e e', 'f' * 200, '\u00e9', '.hidden', 'g']


class Walk:
    def __init__(self, mounts, twin, seed):
        self.mounts = mounts
        self.roots = [mounts[0], twin]
        self.r = random.Random(seed)
        self.open = []      # of (descriptor per root, flags)
        self.step = 0
        self.log = []

    # -- paths --

    def directory(self):
        """A path of a directory, relative to the roots, which exists mostly."""
        found = ['']
        for here, names, _ in os.walk(self.roots[1]):
            relative = os.path.relpath(here, self.roots[1])
            found += [os.path.normpath(os.path.join(relative, n)) for n in names]
        return self.r.choice(found)

    def path(self):
        return os.path.join(self.directory(), self.r.choice(NAMES))

    # -- one operation on both --

    def both(self, what, fn):
        results = []
        for i, root in enumerate(self.roots):
            try:
                results.append(('ok', fn(i, root)))
            except OSError as e:
                results.append(('error', errno.errorcode.get(e.errno, e.errno)))
        self.log.append((what, results))
        if results[0] != results[1]:
            self.fail(what, results)
        return results[0][0] == 'ok'

    def fail(self, what, results):
        print(f'step {self.step}: {what}: on the mount {results[0]!r:.300}, on the twin {results[1]!r:.300}')
        for line in self.log[-25:]:
            print(f'    {line!r:.200}')
        sys.exit(1)

    # -- the operations --

    def write_whole(self):
        path, data = self.path(), self.bytes()

        def run(_, root):
            with open(os.path.join(root, path), 'wb') as f:
                f.write(data)
        self.both(f'write {path} {len(data)}', run)

    def bytes(self):
        size = self.r.choice([0, 1, 100, 4096, 5000, 65536, 70000, 300000])
        return self.r.randbytes(size)

    def append(self):
        path, data = self.path(), self.bytes()

        def run(_, root):
            with open(os.path.join(root, path), 'ab') as f:
                f.write(data)
        self.both(f'append {path} {len(data)}', run)

    def read(self):
        path = self.path()

        def run(_, root):
            with open(os.path.join(root, path), 'rb') as f:
                return f.read()
        self.both(f'read {path}', run)

    def make_directory(self):
        path = self.path()
        self.both(f'mkdir {path}', lambda _, root: os.mkdir(os.path.join(root, path)))

    def unlink(self):
        path = self.path()
        self.both(f'unlink {path}', lambda _, root: os.unlink(os.path.join(root, path)))

    def rmdir(self):
        path = self.path()
        self.both(f'rmdir {path}', lambda _, root: os.rmdir(os.path.join(root, path)))

    def rename(self):
        a, b = self.path(), self.path()
        # AFS has no files with names in two directories, so a file with two names stays where it is.
        try:
            s = os.lstat(os.path.join(self.roots[1], a))
        except OSError:
            s = None
        if s and stat.S_ISREG(s.st_mode) and s.st_nlink > 1:
            b = os.path.join(os.path.dirname(a), os.path.basename(b))
        self.both(f'rename {a} {b}', lambda _, root: os.rename(os.path.join(root, a), os.path.join(root, b)))

    def symlink(self):
        path, text = self.path(), self.r.choice(['a', 'dd/../b', '/no-such-folder/x', '#text.', 'x' * 500])
        self.both(f'symlink {path}', lambda _, root: os.symlink(text, os.path.join(root, path)))

    def readlink(self):
        path = self.path()
        self.both(f'readlink {path}', lambda _, root: os.readlink(os.path.join(root, path)))

    def link(self):
        a = self.path()
        b = os.path.join(os.path.dirname(a), self.r.choice(NAMES))
        if os.path.islink(os.path.join(self.roots[1], a)):
            return
        self.both(f'link {a} {b}', lambda _, root: os.link(os.path.join(root, a), os.path.join(root, b)))

    def truncate(self):
        path, size = self.path(), self.r.choice([0, 1, 4096, 10000, 100000])
        self.both(f'truncate {path} {size}', lambda _, root: os.truncate(os.path.join(root, path), size))

    def chmod(self):
        path, mode = self.path(), self.r.choice([0o600, 0o644, 0o755, 0o640])
        if os.path.islink(os.path.join(self.roots[1], path)):
            return
        self.both(f'chmod {path}', lambda _, root: os.chmod(os.path.join(root, path), mode))

    def utime(self):
        path, when = self.path(), self.r.randrange(1, 2**31)
        self.both(f'utime {path}', lambda _, root: os.utime(os.path.join(root, path), (when, when), follow_symlinks=True))

    def stat(self):
        path = self.path()

        def run(_, root):
            s = os.lstat(os.path.join(root, path))
            # Sizes and link counts of directories are the file system's own affair; links have no modes.
            plain = stat.S_ISREG(s.st_mode)
            return (stat.S_IFMT(s.st_mode), s.st_mode & 0o777 if plain else 0, s.st_size if not
                    stat.S_ISDIR(s.st_mode) else 0, s.st_nlink if plain else 0)
        self.both(f'stat {path}', run)

    def list(self):
        path = self.directory()
        self.both(f'list {path}', lambda _, root: sorted(os.listdir(os.path.join(root, path))))

    # -- descriptors --

    def open_file(self):
        if len(self.open) > 6:
            return self.close_file()
        path = self.path()
        flags = self.r.choice([os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_APPEND | os.O_CREAT,
                               os.O_RDWR | os.O_CREAT | os.O_TRUNC, os.O_WRONLY | os.O_CREAT | os.O_EXCL])
        if os.path.isdir(os.path.join(self.roots[1], path)):
            return None
        fds = [None, None]

        def run(i, root):
            fds[i] = os.open(os.path.join(root, path), flags, 0o644)
        if self.both(f'open {path} {flags:o}', run):
            self.open.append((fds, flags))
            if flags & os.O_TRUNC:
                self.share(self.open[-1])
        return None

    def close_file(self):
        if self.open:
            fds, _ = self.open.pop(self.r.randrange(len(self.open)))
            self.both(f'close {fds}', lambda i, _: os.close(fds[i]))

    def some(self):
        return self.r.choice(self.open) if self.open else None

    def pwrite(self):
        one = self.some()
        if one:
            data, at = self.bytes(), self.r.choice([0, 1, 4095, 100000, 262144])
            self.both(f'pwrite {one[0]} {at} {len(data)}', lambda i, _: os.pwrite(one[0][i], data, at))
            self.share(one)

    def pread(self):
        one = self.some()
        if one:
            at, size = self.r.choice([0, 10, 4096, 99999]), self.r.choice([1, 4096, 200000])
            self.both(f'pread {one[0]} {at} {size}', lambda i, _: os.pread(one[0][i], size, at))

    def ftruncate(self):
        one = self.some()
        if one:
            size = self.r.choice([0, 5, 4096, 123456])
            self.both(f'ftruncate {one[0]} {size}', lambda i, _: os.ftruncate(one[0][i], size))
            self.share(one)

    def share(self, one):
        """Other mounts see what was stored."""
        if len(self.mounts) > 1:
            self.both(f'fsync {one[0]}', lambda i, _: os.fsync(one[0][i]) if one[1] & os.O_ACCMODE else None)

    def fsync(self):
        one = self.some()
        if one:
            self.both(f'fsync {one[0]}', lambda i, _: os.fsync(one[0][i]))

    def fstat(self):
        one = self.some()
        if one:
            def run(i, _):
                s = os.fstat(one[0][i])
                return s.st_size, s.st_nlink, stat.S_IFMT(s.st_mode)
            self.both(f'fstat {one[0]}', run)

    # -- all of it --

    def compare(self):
        def run(_, root):
            found = []
            for here, names, files in os.walk(root):
                relative = os.path.relpath(here, root)
                names.sort()
                for name in sorted(files):
                    path = os.path.join(here, name)
                    if os.path.islink(path):
                        found.append((relative, name, os.readlink(path)))
                    else:
                        with open(path, 'rb') as f:
                            found.append((relative, name, hash(f.read())))
                found.append((relative, tuple(names)))
            return sorted(map(repr, found))
        self.both('compare everything', run)

    def run(self, steps):
        operations = [self.write_whole, self.append, self.read, self.make_directory, self.unlink, self.rmdir, self.rename,
                      self.rename, self.symlink, self.readlink, self.link, self.truncate, self.chmod, self.utime, self.stat,
                      self.stat, self.list, self.open_file, self.open_file, self.close_file, self.pwrite, self.pwrite,
                      self.pread, self.ftruncate, self.fsync, self.fstat]
        if len(self.mounts) > 1:
            # AFS tells other clients neither of a removed file that they have open, nor of locks.
            operations = [o for o in operations if o not in (self.open_file, self.close_file)] + [self.open_and_use] * 3
        for self.step in range(steps):
            self.roots[0] = self.r.choice(self.mounts)
            self.r.choice(operations)()
            if self.step % 200 == 199:
                self.compare()
        while self.open:
            self.close_file()
        for self.roots[0] in self.mounts:
            self.compare()

    def open_and_use(self):
        self.open_file()
        for _ in range(3):
            self.r.choice([self.pwrite, self.pread, self.ftruncate, self.fstat])()
        self.close_file()


def main():
    twin, seed, steps, mounts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    os.umask(0o022)
    for root in (mounts[0], twin):
        os.makedirs(root, exist_ok=True)
    Walk(mounts, twin, seed).run(steps)
    print(f'seed {seed}: {steps} steps are equal')


main()
