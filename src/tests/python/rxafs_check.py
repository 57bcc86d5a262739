#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The package rxafs with a file server: rxafs_check.py CELL=HOST:VL:FS"""
import array
import copy
import errno
import gc
import io
import os
import pathlib
import pickle
import select
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

import rxafs

CELL = sys.argv.pop(1)
NAME = CELL.partition("=")[0]


# The public functions that no test has called yet.
untried = set()


def observe(kind):
    """Each call of a public function of a class is noted."""
    for name, function in vars(kind).copy().items():
        if isinstance(function, types.FunctionType) and not name.startswith("_"):
            called = f"{kind.__name__}.{name}"
            untried.add(called)

            def noting(*arguments, _function=function, _called=called, **named):
                untried.discard(_called)
                return _function(*arguments, **named)

            setattr(kind, name, noting)


def make_client(**options):
    return rxafs.Client(NAME, cells=[CELL], **options)


class Files(unittest.TestCase):
    folder = 0

    def setUp(self):
        Files.folder += 1
        self.afs = make_client()
        self.top = f"music:test{Files.folder}"
        self.afs.mkdir(self.top)

    def tearDown(self):
        self.afs.close()

    def path(self, name):
        return f"{self.top}/{name}"

    def put(self, name, data):
        with self.afs.open(self.path(name), "wb") as file:
            file.write(data)

    def get(self, name):
        with self.afs.open(self.path(name), "rb") as file:
            return file.read()

    def test_modes(self):
        self.put("file", b"12345")
        self.assertEqual(self.get("file"), b"12345")
        with self.afs.open(self.path("file"), "ab") as file:
            self.assertEqual(file.tell(), 5)
            file.write(b"67")
        with self.afs.open(self.path("file"), "r+b") as file:
            file.seek(-1, os.SEEK_END)
            self.assertEqual(file.read(), b"7")
            file.seek(1)
            file.write(b"xx")
            file.seek(0)
            self.assertEqual(file.read(4), b"1xx4")
        self.assertEqual(self.get("file"), b"1xx4567")
        with self.assertRaises(FileExistsError):
            self.afs.open(self.path("file"), "x")
        with self.afs.open(self.path("other"), "x") as file:
            file.write("äöü\n")
        with self.afs.open(self.path("other")) as file:
            self.assertEqual(file.read(), "äöü\n")
        with self.afs.open(self.path("file"), "w"):
            pass
        self.assertEqual(self.get("file"), b"")
        for mode in ("", "rw", "z", "r++"):
            with self.assertRaises(ValueError):
                self.afs.open(self.path("file"), mode)
        with self.afs.open(self.path("file"), "rb") as file, self.assertRaises(io.UnsupportedOperation):
            file.write(b"x")

    def test_large(self):
        data = os.urandom(3_000_001)
        self.put("large", data)
        with make_client() as other, other.open(self.path("large"), "rb") as file:
            self.assertEqual(file.read(), data)
            file.seek(2_999_990)
            self.assertEqual(file.read(100), data[2_999_990:])
            with other.open(self.path("large"), "rb", buffering=0) as raw:
                self.assertEqual(raw.readall(), data)

    def test_truncate(self):
        self.put("file", b"1234567890")
        with self.afs.open(self.path("file"), "r+b") as file:
            file.truncate(4)
        self.afs.truncate(self.path("file"), 3)
        self.assertEqual(self.get("file"), b"123")
        self.assertEqual(self.afs.stat(self.path("file")).st_size, 3)

    def test_closed(self):
        self.put("file", b"x")
        file = self.afs.open(self.path("file"), "rb")
        file.close()
        file.close()
        with self.assertRaises(ValueError):
            file.read()
        other = make_client()
        file = other.open(self.path("late"), "wb", buffering=0)
        file.write(b"kept")
        text = other.open(self.path("text"), "w")
        text.write("kept, too")
        other.close()
        other.close()
        with self.assertRaises(ValueError):
            other.stat(self.path("file"))
        with self.assertRaises(ValueError):
            file.write(b"x")
        self.assertEqual(self.get("late"), b"kept")
        self.assertEqual(self.get("text"), b"kept, too")

    def test_names(self):
        self.put("file", b"x")
        self.afs.symlink("file", self.path("link"))
        self.assertEqual(self.afs.readlink(self.path("link")), "file")
        self.assertTrue(self.afs.islink(self.path("link")))
        self.assertTrue(stat.S_ISLNK(self.afs.lstat(self.path("link")).st_mode))
        self.assertEqual(self.get("link"), b"x")
        self.afs.link(self.path("file"), self.path("hard"))
        self.assertEqual(self.afs.stat(self.path("hard")).st_nlink, 2)
        self.afs.rename(self.path("hard"), self.path("soft"))
        self.put("new", b"new")
        self.afs.replace(self.path("new"), self.path("soft"))
        self.assertEqual(self.get("soft"), b"new")
        self.afs.unlink(self.path("soft"))
        self.afs.makedirs(self.path("a/b/c"))
        self.afs.makedirs(self.path("a/b/c"), exist_ok=True)
        with self.assertRaises(FileExistsError):
            self.afs.makedirs(self.path("a/b/c"))
        self.put("a/b/leaf", b"")
        self.assertEqual(sorted(self.afs.listdir(self.top)), ["a", "file", "link"])
        found = {where: (sorted(directories), sorted(files)) for where, directories, files in self.afs.walk(self.top)}
        self.assertEqual(found[self.top], (["a"], ["file", "link"]))
        self.assertEqual(found[self.path("a/b")], (["c"], ["leaf"]))
        with self.assertRaises(OSError) as caught:
            self.afs.rmdir(self.path("a/b"))
        self.assertIn(caught.exception.errno, (errno.ENOTEMPTY, errno.EEXIST))
        self.afs.unlink(self.path("a/b/leaf"))
        self.afs.rmdir(self.path("a/b/c"))
        self.assertEqual(self.afs.listdir(self.path("a/b")), [])
        self.afs.remove(self.path("link"))
        self.assertFalse(self.afs.exists(self.path("link")))

    def test_strange_names(self):
        for name in ("new\nline", "blank ", "ä" * 127, "x" * 255, os.fsdecode(b"\xff\xfe")):
            self.put(name, name.encode(errors="surrogateescape"))
            self.assertIn(name, self.afs.listdir(self.top))
            self.assertEqual(self.get(name), name.encode(errors="surrogateescape"))
        with self.assertRaises(OSError) as caught:
            self.put("x" * 256, b"")
        self.assertEqual(caught.exception.errno, errno.ENAMETOOLONG)

    def test_scandir(self):
        for number in range(120):
            self.put(f"{number}", b"x" * number)
        self.afs.mkdir(self.path("directory"))
        self.afs.symlink("directory", self.path("link"))
        with make_client() as other:
            entries = {entry.name: entry for entry in other.scandir(self.top)}
            self.assertEqual(len(entries), 122)
            for number in range(120):
                entry = entries[str(number)]
                self.assertEqual(entry.stat().st_size, number)
                self.assertTrue(entry.is_file() and not entry.is_dir() and not entry.is_symlink())
            self.assertTrue(entries["directory"].is_dir())
            self.assertTrue(entries["link"].is_symlink() and entries["link"].is_dir())
            self.assertFalse(entries["link"].is_dir(follow_symlinks=False))
            self.assertEqual(os.fspath(entries["5"]), self.path("5"))
            iterator = other.scandir(self.top)
            next(iterator)  # left in the middle

    def test_attributes(self):
        self.put("file", b"x")
        path = self.path("file")
        self.afs.chmod(path, 0o600)
        self.afs.utime(path, 1_000_000_000)
        with self.assertRaises(PermissionError) as caught:
            self.afs.chown(path, gid=7)
        self.assertTrue(caught.exception.afs_code and caught.exception.afs_server)
        found = self.afs.stat(path)
        self.assertEqual((stat.S_IMODE(found.st_mode), found.st_mtime, found.st_mtime_ns), (0o600, 1e9, 10**18))
        self.assertTrue(self.afs.access(path, os.R_OK | os.W_OK))
        self.assertFalse(self.afs.access(path, os.X_OK))
        self.assertEqual(self.afs.getxattr(path, "afs.cell").rstrip(b"\0"), NAME.encode())
        self.assertTrue(self.afs.getxattr(self.top, "afs.acl"))
        fid = self.afs.fid(path)
        self.assertTrue(fid.vnode and fid.unique)

    def test_volumes(self):
        volume = self.afs.volume(self.top)
        self.assertEqual((volume.name, volume.cell, volume.writable, volume.online), ("music", NAME, True, True))
        with self.assertRaises(PermissionError):
            self.afs.set_quota(self.top, 100000)
        self.assertEqual(self.afs.servers(self.top)[0].address, "127.0.0.1")
        self.afs.make_mount(self.path("mount"), "music")
        self.assertEqual(self.afs.read_mount(self.path("mount")), "#music.")
        self.assertIn(self.top.partition(":")[2], self.afs.listdir(self.path("mount")))
        self.assertEqual(self.afs.cells()[0], NAME)
        self.assertIn(NAME, self.afs.listdir("/afs"))

    def test_errors(self):
        for kind, path in ((FileNotFoundError, self.path("none")), (NotADirectoryError, None), (IsADirectoryError, self.top)):
            if path is None:
                self.put("file", b"")
                path = self.path("file/below")
            with self.assertRaises(kind) as caught:
                self.afs.open(path)
            self.assertEqual(caught.exception.filename, path)
            self.assertTrue(caught.exception.strerror)
        with self.assertRaises(OSError) as caught:
            self.afs.stat("nowhere")
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        self.assertIn("VOLUME:", caught.exception.strerror)
        with self.assertRaises(OSError) as caught:
            self.afs.stat("none:x")
        self.assertEqual(caught.exception.errno, errno.ENODEV)
        with self.assertRaises(OSError):
            rxafs.Client("example.org", cells=["nonsense"])

    def test_threads(self):
        problems = []

        def work(number):
            try:
                for turn in range(10):
                    self.put(f"{number}-{turn}", str(turn).encode())
                    if self.get(f"{number}-{turn}") != str(turn).encode():
                        problems.append(number)
            except OSError as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])

    def test_watch(self):
        with make_client() as other, other.watch(self.top) as watch:
            self.assertEqual(watch.events(0), [])
            self.put("file", b"x")
            event, = watch.events(30)
            self.assertEqual((event.kind, event.name), (rxafs.EventKind.ADDED, "file"))
            self.assertEqual(event.fid[1:], self.afs.fid(self.path("file"))[1:])
            self.afs.unlink(self.path("file"))
            self.assertTrue(select.select([watch], [], [], 30)[0])
            event = next(iter(watch))
            self.assertEqual((event.kind, event.name), ("removed", "file"))
        with self.assertRaises(ValueError):
            watch.events(0)

    def test_watch_of_a_file(self):
        self.put("file", b"x")
        with make_client() as other:
            watch = other.watch(self.path("file"))
            self.put("file", b"xy")
            self.assertEqual(watch.events(30)[0].kind, rxafs.EventKind.CHANGED)
            self.afs.unlink(self.path("file"))
            self.assertEqual(list(watch)[-1].kind, rxafs.EventKind.GONE)
            self.afs.mkdir(self.path("directory"))
            self.afs.mkdir(self.path("directory/below"))
            left = other.watch(self.path("directory"), attributes=True)  # closed with the client
            self.afs.chmod(self.path("directory/below"), 0o700)
            self.assertEqual(left.events(30)[0].name, "below")


    def test_kinds(self):
        self.put("file", b"x")
        self.afs.symlink("file", self.path("link"))
        self.afs.symlink("nowhere", self.path("dangling"))
        found = [(self.afs.exists(path), self.afs.isfile(path), self.afs.isdir(path), self.afs.islink(path))
                 for path in map(self.path, (".", "file", "link", "dangling", "none", "file/below"))]
        self.assertEqual(found, [(True, False, True, False), (True, True, False, False), (True, True, False, True),
                                 (False, False, False, True), (False,) * 4, (False,) * 4])
        for path in (self.path("file"), self.path("file").encode(), pathlib.PurePosixPath(self.path("file"))):
            self.assertEqual(self.afs.stat(path).st_size, 1)
        self.assertEqual(self.afs.lstat(self.path("link")).st_ino, next(
            entry.inode() for entry in self.afs.scandir(self.top) if entry.name == "link"))
        self.assertEqual([repr(entry) for entry in self.afs.scandir(self.top) if entry.is_file(follow_symlinks=False)],
                         ["<DirEntry 'file'>"])
        # What is not a directory, and what cannot be read.
        for call in (self.afs.listdir, lambda path: next(self.afs.scandir(path))):
            with self.assertRaises(NotADirectoryError):
                call(self.path("file"))
        failed = []
        self.assertEqual(list(self.afs.walk(self.path("none"), failed.append)), [])
        self.assertEqual([error.errno for error in failed], [errno.ENOENT])
        self.assertEqual(list(self.afs.walk(self.path("none"))), [])
        with self.assertRaises(OSError) as caught:
            self.afs.readlink(self.path("file"))
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        with self.assertRaises(OSError) as caught:
            self.afs.read_mount(self.path("file"))
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        self.afs.symlink("loop", self.path("loop"))
        with self.assertRaises(OSError) as caught:
            self.afs.stat(self.path("loop"))
        self.assertEqual(caught.exception.errno, errno.ELOOP)

    def test_rights(self):
        acl = self.afs.getxattr(self.top, "afs.acl")
        self.assertIn(b"system:anyuser", acl)
        with self.assertRaises(OSError) as caught:
            self.afs.setxattr(self.top, "afs.acl", b"nonsense")
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        self.afs.setxattr(self.top, "afs.acl", acl)
        self.assertEqual(self.afs.getxattr(self.top, "afs.acl"), acl)
        for name in ("afs.nothing", "user.note"):
            with self.assertRaises(OSError) as caught:
                self.afs.getxattr(self.top, name)
            self.assertIn(caught.exception.errno, (errno.ENODATA, errno.EOPNOTSUPP))
        self.assertFalse(self.afs.access(self.path("none"), os.R_OK))
        self.assertFalse(self.afs.access("/afs", os.W_OK))

    def test_read_write_mount(self):
        self.afs.make_mount(self.path("mount"), "music", cell=NAME, read_write=True)
        self.assertEqual(self.afs.read_mount(self.path("mount")), f"%{NAME}:music.")
        self.assertTrue(self.afs.lstat(self.path("mount")).st_mode & stat.S_IFDIR)
        with self.assertRaises(OSError) as caught:
            self.afs.rmdir(self.path("mount"))
        self.assertEqual(caught.exception.errno, errno.EBUSY)
        self.afs.unlink(self.path("mount"))
        self.assertFalse(self.afs.exists(self.path("mount")))

    def test_files(self):
        with self.afs.open(self.path("file"), "w+b", buffering=0) as raw, make_client() as other:
            self.assertIsInstance(raw, rxafs.File)
            self.assertTrue(raw.readable() and raw.writable() and raw.seekable())
            raw.write(b"abc")
            raw.flush()
            self.assertEqual(other.stat(self.path("file")).st_size, 3)
            raw.write(b"def")
            raw.fsync()
            self.assertEqual((other.stat(self.path("file")).st_size, raw.stat().st_size), (6, 6))
            self.assertEqual((raw.seek(-2, os.SEEK_CUR), raw.read(), raw.tell()), (4, b"ef", 6))
            with self.assertRaises(ValueError):
                raw.seek(0, 9)
            with self.assertRaises(OSError):
                raw.fileno()
            raw.seek(4096)
            raw.truncate()
            self.assertEqual((raw.stat().st_size, raw.seek(4090), raw.read()), (4096, 4090, bytes(6)))
        with self.assertRaises(ValueError):
            raw.stat()
        with self.afs.open(self.path("file"), "rb", buffering=0) as raw:
            with self.assertRaises(io.UnsupportedOperation):
                raw.truncate(1)
        with self.afs.open(self.path("text"), "w", encoding="utf-16", newline="\r\n") as text:
            text.write("a\nb\n")
        self.assertEqual(self.get("text").decode("utf-16"), "a\r\nb\r\n")
        with self.afs.open(self.path("text"), buffering=1, encoding="utf-16") as text:
            self.assertEqual(list(text), ["a\n", "b\n"])
        for options in ({"mode": "rb", "encoding": "utf-8"}, {"mode": "r", "buffering": 0}):
            with self.assertRaises(ValueError):
                self.afs.open(self.path("text"), **options)

    def test_options(self):
        """Contents outlive a client in its cache; the library tells what it does with other options."""
        self.put("file", os.urandom(100_000))
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                with make_client(cache_dir=folder, cache_bytes=1 << 22, memory_bytes=1 << 20) as afs, afs.open(self.path("file"), "rb") as file:
                    self.assertEqual(len(file.read()), 100_000)
            self.assertTrue(os.listdir(folder))
            lines = []
            with open(os.path.join(folder, "CellServDB"), "w", encoding="ascii") as file:
                file.write("no line of a cell\n")
            with open(os.path.join(folder, "ThisCell"), "w", encoding="ascii") as file:
                file.write(NAME + "\n")
            with rxafs.Client(cells=[CELL], config_dir=pathlib.Path(folder), log=lambda *line: lines.append(line)) as afs:
                self.assertEqual(afs.cells()[0], NAME)
                self.assertTrue(afs.exists(self.path("file")))
            self.assertTrue(any("CellServDB" in text for _, text in lines), lines)
        for options in ({"cache_bytes": -1}, {"memory_bytes": 1 << 64}):
            with self.assertRaises((OSError, OverflowError)):
                make_client(**options)

    def test_log_in_without_tickets(self):
        with self.assertRaises(PermissionError) as caught:
            self.afs.log_in()
        self.assertIn("kinit", caught.exception.strerror)
        with self.assertRaises(OSError):
            self.afs.log_in("nowhere.example")
        self.assertTrue(self.afs.exists(self.top))

    def test_references(self):
        """Exceptions that are kept keep no objects of the library."""
        failures = []
        for _ in range(50):
            for call in (lambda: self.afs.open(self.path("none")), lambda: self.afs.mkdir(self.path("none/below")),
                         lambda: self.afs.watch(self.path("none")), lambda: self.afs.open(self.top, "r+")):
                try:
                    call()
                except OSError as error:
                    failures.append(error)
        self.assertEqual(len(failures), 200)
        gc.collect()
        self.assertEqual([kept for kept in gc.get_objects() if type(kept).__name__ == "Reference" and kept.handle], [])
        self.assertEqual([child for child in self.afs._core.children.values() if child.raw], [])
        failures.clear()
        gc.collect()
        self.assertEqual(self.afs._core.children, {})

    def test_watch_beside(self):
        """A thread waits for events while another one uses the client."""
        seen = []
        with make_client() as other, other.watch(self.top) as watch:
            def follow():
                for event in watch:
                    seen.append(event.name)
                    if event.name == "last":
                        return

            thread = threading.Thread(target=follow)
            thread.start()
            self.assertGreaterEqual(watch.fileno(), 0)
            for number in range(20):
                self.put(str(number), b"")
                self.assertEqual(other.stat(self.path(str(number))).st_size, 0)
            self.put("last", b"")
            thread.join(60)
            self.assertFalse(thread.is_alive())
        self.assertEqual(seen[-1], "last")
        self.assertEqual(set(seen), {str(number) for number in range(20)} | {"last"})

    def test_fork(self):
        self.put("file", b"x")
        file = self.afs.open(self.path("file"), "r+b")
        file.write(b"y")
        watch = self.afs.watch(self.top)
        child = os.fork()
        if not child:
            status = 1
            try:
                try:
                    self.afs.stat(self.path("file"))
                except ValueError:
                    watch.close()
                    self.afs.close()
                    with make_client() as mine:
                        status = 0 if mine.stat(self.path("file")).st_size == 1 else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        file.close()
        self.assertEqual(self.get("file"), b"y")

    def run_program(self, text, *arguments):
        """In an interpreter of its own, which may crash or hang."""
        head = "import gc, sys, threading, rxafs\nafs = rxafs.Client(sys.argv[1], cells=[sys.argv[2]])\n"
        subprocess.run([sys.executable, "-X", "faulthandler", "-c", head + text, NAME, CELL, self.top, *arguments], check=True, timeout=60)

    def test_copies(self):
        self.put("file", b"x")
        left = [self.afs, self.afs.watch(self.top), self.afs.open(self.path("file"), "wb"),
                self.afs.open(self.path("file"), "rb", buffering=0)]
        for one in left:
            for function in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaises(TypeError):
                    function(one)
        entry = next(self.afs.scandir(self.top))
        self.assertEqual(copy.copy(entry).stat(), entry.stat())

    def test_bytes(self):
        with self.afs.open(self.path("file"), "wb", buffering=0) as raw:
            for data in (5, [65, 66], "text", None):
                with self.assertRaises(TypeError):
                    raw.write(data)
            self.assertEqual(raw.write(b""), 0)
            self.assertEqual(raw.write(bytearray(b"ab")), 2)
            self.assertEqual(raw.write(array.array("H", [0x6363, 0x6464])), 4)
            self.assertEqual(raw.write(memoryview(b"e-f-")[::2]), 2)
        self.assertEqual(self.get("file"), b"abccddef")
        with self.afs.open(self.path("file"), "rb", buffering=0) as raw:
            numbers = array.array("H", [0, 0])
            self.assertEqual((raw.readinto(bytearray()), raw.readinto(numbers)), (0, 4))
            self.assertEqual(numbers.tobytes(), b"abcc")
            with self.assertRaises(TypeError):
                raw.readinto(b"constant")

    def test_null_bytes(self):
        """Strings of the library end there."""
        self.put("file", b"x")
        bad = self.path("file\0more")
        calls = [lambda: self.afs.open(bad, "w"), lambda: self.afs.stat(bad), lambda: self.afs.mkdir(bad),
                 lambda: self.afs.rename(self.path("file"), bad), lambda: self.afs.symlink("a\0b", self.path("link")),
                 lambda: self.afs.getxattr(self.path("file"), "afs.cell\0x"), lambda: self.afs.watch(bad),
                 lambda: self.afs.make_mount(self.path("mount"), "music\0x"), lambda: self.afs.unlink(bad),
                 lambda: self.afs.listdir(self.top.encode() + b"\0"), lambda: self.afs.log_in(NAME + "\0"),
                 lambda: rxafs.Client(NAME + "\0")]
        for call in calls:
            with self.assertRaises(ValueError):
                call()
        self.assertEqual((self.afs.listdir(self.top), self.get("file")), (["file"], b"x"))

    def test_numbers(self):
        """Nothing is cut off to 64 or 32 bits."""
        self.put("file", b"12345")
        path = self.path("file")
        with self.afs.open(path, "r+b", buffering=0) as raw:
            for call in (lambda: raw.seek(2**64 + 1), lambda: raw.seek(2**63), lambda: raw.truncate(2**64 + 2), lambda: raw.seek(-1),
                         lambda: raw.truncate(-1), lambda: self.afs.truncate(path, 2**64), lambda: self.afs.utime(path, 2**40),
                         lambda: self.afs.utime(path, -1), lambda: self.afs.chmod(path, 2**32 + 0o600),
                         lambda: self.afs.chown(path, 2**32), lambda: self.afs.set_quota(path, 2**64),
                         lambda: self.afs.mkdir(self.path("directory"), -1)):
                with self.assertRaises((OSError, OverflowError)) as caught:
                    call()
                if isinstance(caught.exception, OSError):
                    self.assertEqual(caught.exception.errno, errno.EINVAL)
            raw.seek(2**63 - 2)
            with self.assertRaises(OSError):
                raw.write(b"abc")
        self.assertEqual(self.get("file"), b"12345")
        self.assertEqual(self.afs.listdir(self.top), ["file"])
        self.afs.makedirs("music:", exist_ok=True)
        with self.assertRaises(ValueError):
            self.afs.open(path, "rbt")

    def test_cycles(self):
        """A client and what was opened in it are dropped together: in which order they are finalised is open."""
        self.run_program(
            "class App: pass\n"
            "for number in range(10):\n"
            "    app = App()\n"
            "    app.me, app.afs = app, rxafs.Client(sys.argv[1], cells=[sys.argv[2]])\n"
            "    app.text = app.afs.open(f'{sys.argv[3]}/text{number}', 'w')\n"
            "    app.raw = app.afs.open(f'{sys.argv[3]}/raw{number}', 'wb', buffering=0)\n"
            "    app.watch, app.names = app.afs.watch(sys.argv[3]), app.afs.scandir(sys.argv[3])\n"
            "    next(app.names)\n"
            "    app.text.write('kept')\n"
            "    app.raw.write(b'kept')\n"
            "    del app\n"
            "    gc.collect()\n")
        for number in range(10):
            self.assertEqual((self.get(f"text{number}"), self.get(f"raw{number}")), (b"kept", b"kept"))

    def test_detach(self):
        text = self.afs.open(self.path("file"), "w")
        text.write("a")
        raw = text.detach().detach()
        raw.write(b"b")
        del raw  # closed
        self.assertEqual(self.get("file"), b"ab")

    def test_collector(self):
        """The garbage collector finds open files within calls of this package."""
        self.run_program(
            "for turn in range(300):\n"
            "    gc.disable()\n"
            "    gc.collect()\n"
            "    file = afs.open(f'{sys.argv[3]}/file', 'w')\n"
            "    file.write('x')\n"
            "    cycle = [file]\n"
            "    cycle.append(cycle)\n"
            "    del file, cycle\n"
            "    gc.set_threshold(1 + turn % 150, 100, 100)\n"
            "    gc.enable()\n"
            "    afs.stat(sys.argv[3])\n")

    def test_close_beside(self):
        """Something is closed while other threads use it."""
        watch = self.afs.watch(self.top)
        ended = []

        def wait_for_events():
            try:
                watch.events()
            except ValueError as error:
                ended.append(error)

        threads = [threading.Thread(target=wait_for_events) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)  # so that they wait, usually
        watch.close()
        for thread in threads:
            thread.join(30)
        self.assertEqual(len(ended), 3)

        self.put("large", bytes(1 << 20))
        for _ in range(30):
            self.run_readers(lambda file: file.close())
        for _ in range(5):
            self.run_readers(lambda _: self.afs.close())
            self.afs = make_client()

    def run_readers(self, close):
        """In threads, until they get ValueError."""
        file = self.afs.open(self.path("large"), "rb", buffering=0)
        ended = []

        def read():
            try:
                while True:
                    file.seek(0)
                    file.read(1 << 18)
                    self.afs.listdir(self.top)
            except ValueError as error:
                ended.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.005)
        close(file)
        for thread in threads:
            thread.join(30)
            self.assertFalse(thread.is_alive())

    def test_threads_at_exit(self):
        self.run_program(
            "def work():\n"
            "    try:\n"
            "        while True:\n"
            "            afs.listdir(sys.argv[3])\n"
            "            afs.open(f'{sys.argv[3]}/file').read()\n"
            "    except ValueError:\n"
            "        pass\n"
            "left = afs.open(f'{sys.argv[3]}/file', 'w')\n"
            "for _ in range(4):\n"
            "    threading.Thread(target=work, daemon=True).start()\n"
            "threading.Event().wait(0.3)\n")

    def test_exit(self):
        """A program that closes nothing, and has a log."""
        program = ("import sys, rxafs\n"
                   "afs = rxafs.Client(sys.argv[1], cells=[sys.argv[2]], log=print)\n"
                   "file = afs.open(sys.argv[3], 'w')\n"
                   "print('kept', file=file)\n"
                   "watch = afs.watch(sys.argv[3])\n")
        subprocess.run([sys.executable, "-c", program, NAME, CELL, self.path("file")], check=True, timeout=60)
        self.assertEqual(self.get("file"), b"kept\n")


class Waits(unittest.TestCase):
    """A server that never answers: nobody reads from its socket."""

    def setUp(self):
        import socket

        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        port = self.socket.getsockname()[1]
        self.afs = rxafs.Client("silent.example", cells=[f"silent.example=127.0.0.1:{port}:{port}"])

    def tearDown(self):
        self.afs.close(1)
        self.socket.close()

    def test_timeout(self):
        self.afs.timeout = 0.5
        begun = time.monotonic()
        with self.assertRaises(TimeoutError):
            self.afs.stat("music:file")
        self.assertLess(time.monotonic() - begun, 20)

    def test_interrupt(self):
        def interrupt():
            self.socket.recv(2000)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            self.afs.stat("music:file")
        self.assertLess(time.monotonic() - begun, 20)
        thread.join()

    def test_close_in_a_handler(self):
        """The handler of a signal closes the client whose call it has interrupted."""
        def interrupt():
            self.socket.recv(2000)
            os.kill(os.getpid(), signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, lambda *_: self.afs.close(0))
        thread = threading.Thread(target=interrupt)
        thread.start()
        begun = time.monotonic()
        with self.assertRaises(ValueError):
            self.afs.stat("music:file")
        self.assertLess(time.monotonic() - begun, 20)
        thread.join()
        signal.signal(signal.SIGUSR1, before)


class Whole(unittest.TestCase):
    """The last one: a public function that was added has a test."""

    def test_all_were_called(self):
        self.assertEqual(untried, set())


def load_tests(loader, *_):
    return unittest.TestSuite(loader.loadTestsFromTestCase(kind) for kind in (Files, Waits, Whole))


if __name__ == "__main__":
    for kind in (rxafs.Client, rxafs.DirEntry, rxafs.File, rxafs.Watch):
        observe(kind)
    unittest.main()
