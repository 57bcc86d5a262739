# SPDX-License-Identifier: BSD-2-Clause
"""A client, and the functions that os has for local files.

Functions of the library run without the interpreter's lock. A path is "/afs/CELL/DIRECTORY/FILE" or
"VOLUME:DIRECTORY/FILE", as str, bytes or os.PathLike.
"""
from __future__ import annotations

import atexit
import ctypes as C
import errno
import io
import math
import os
import socket
import stat as st
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from rxafs import _abi
from rxafs._abi import lib
from rxafs.errors import make_error
from rxafs.handles import LARGEST, ClientHandle, Handle, Reference, Request, Single, check_range, clients, encode, run_beside

if TYPE_CHECKING:
    from rxafs.watch import Watch

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_libc = C.CDLL(None)
_libc.free.argtypes = (C.c_void_p,)
_libc.free.restype = None

DIRECTORY, REGULAR, LINK = 4, 8, 10  # DT_… of an entry
_KINDS = {DIRECTORY: st.S_IFDIR, REGULAR: st.S_IFREG, LINK: st.S_IFLNK}


# Functions that can be begun again, since they change nothing.
_QUICK: tuple[Any, ...] = (
    lib.rxafs_find_path, lib.rxafs_getattr, lib.rxafs_access, lib.rxafs_readlink, lib.rxafs_getxattr, lib.rxafs_open_listing,
    lib.rxafs_read_listing, lib.rxafs_read)


def _at_exit() -> None:
    """A thread of the library must not enter an interpreter that has ended."""
    failure: OSError | None = None
    for client in list(_clients):
        try:
            client.close(1)
        except OSError as error:
            failure = failure or error
    if failure:
        raise failure


_clients: weakref.WeakSet[Client] = weakref.WeakSet()
atexit.register(_at_exit)


class Fid(NamedTuple):
    """Which object: the number that the client gave to the cell, and AFS's numbers."""

    cell: int
    volume: int
    vnode: int
    unique: int


class Volume(NamedTuple):
    """The volume that an object is in. Sizes are in KiB; quota 0: no limit."""

    cell: str
    name: str
    id: int
    read_write: int
    read_only: int
    backup: int
    writable: bool
    online: bool
    quota: int
    used: int
    free: int
    total: int
    message: str


class Server(NamedTuple):
    """A file server: `state` is "up", "doubt" or "down"."""

    address: str
    port: int
    cell: str
    state: str


def make_fid(fid: _abi.rxafs_fid) -> Fid:
    return Fid(fid.cell, fid.volume, fid.vnode, fid.unique)


def make_stat(attributes: _abi.rxafs_attributes) -> os.stat_result:
    s = attributes.stat
    times = [list(getattr(s, name)) for name in ("st_atim", "st_mtim", "st_ctim")]
    exact = {f"st_{name}time": seconds + ns / 1e9 for name, (seconds, ns) in zip("amc", times)}
    exact |= {f"st_{name}time_ns": seconds * 10**9 + ns for name, (seconds, ns) in zip("amc", times)}
    exact |= {"st_blksize": s.st_blksize, "st_blocks": s.st_blocks, "st_rdev": 0}
    return os.stat_result((s.st_mode, s.st_ino, attributes.fid.volume, s.st_nlink, s.st_uid, s.st_gid, s.st_size,
                           *(seconds for seconds, _ in times)), exact)


class DirEntry:
    """An entry of a directory, as os.DirEntry. Its attributes came with the names."""

    __slots__ = ("_client", "_error", "_kind", "_stat", "name", "path")

    def __init__(self, client: Client, path: str, name: str, kind: int, stat: os.stat_result | None,
                 error: OSError | None) -> None:
        self.name, self.path = name, path
        self._client, self._kind, self._stat, self._error = client, kind, stat, error

    def _mode(self, follow: bool) -> int:
        kind = st.S_IFMT(self._stat.st_mode) if self._stat else _KINDS.get(self._kind, 0)
        if kind and not (follow and kind == st.S_IFLNK):
            return kind
        try:
            return st.S_IFMT(self.stat(follow_symlinks=follow).st_mode)
        except FileNotFoundError:
            return 0

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._mode(follow_symlinks) == st.S_IFDIR

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._mode(follow_symlinks) == st.S_IFREG

    def is_symlink(self) -> bool:
        return self._mode(False) == st.S_IFLNK

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        if follow_symlinks and (not self._stat or st.S_ISLNK(self._stat.st_mode)):
            return self._client.stat(self.path)
        if self._error:
            raise self._error
        if not self._stat:
            self._stat = self._client.lstat(self.path)
        return self._stat

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


def _unpack_address(data: bytes) -> tuple[str, int]:
    """The host and the port of a struct sockaddr."""
    family, port = int.from_bytes(data[:2], sys.byteorder), int.from_bytes(data[2:4], "big")
    return socket.inet_ntop(family, data[4:8] if family == socket.AF_INET else data[8:24]), port


def join(path: str, name: str) -> str:
    """A path below a directory: nothing is put between "VOLUME:" and a name."""
    return path + name if path.endswith(("/", ":")) else f"{path}/{name}"


class Client(Single):
    """A client of AFS cells.

    cell: the home cell, by default that of $AFSCELL or ThisCell. cells: "CELL=HOST[:VLPORT[:FSPORT]]" of cells that CellServDB and
    DNS do not know. cache_dir: a folder for contents; otherwise they are kept in memory. timeout: seconds that one
    operation may take. log: called with a priority of syslog and a line.
    """

    def __init__(self, cell: str | None = None, *, cells: Sequence[str] = (), config_dir: Path | None = None,
                 cache_dir: Path | None = None, cache_bytes: int = 0, memory_bytes: int = 0, timeout: float | None = None,
                 log: Callable[[int, str], object] | None = None) -> None:
        self.timeout = timeout
        self._core = ClientHandle()
        self._files: weakref.WeakSet[Any] = weakref.WeakSet()  # with what has a buffer around them
        options = _abi.rxafs_options(size=C.sizeof(_abi.rxafs_options), cache_bytes=check_range(cache_bytes, LARGEST),
                                     memory_bytes=check_range(memory_bytes, LARGEST))
        given = (C.c_char_p * len(cells))(*(encode(text) for text in cells))
        options.cell = encode(cell) if cell else None
        options.cells, options.cell_count = C.cast(given, C.c_void_p), len(cells)
        options.config_dir = encode(config_dir) if config_dir else None
        options.cache_dir = encode(cache_dir) if cache_dir else None
        if log:
            told = log
            self._log = C.CFUNCTYPE(None, C.c_void_p, C.c_int, C.c_char_p)(
                lambda _, priority, text: told(priority, text.decode(errors="replace")) and None)
            options.log = C.cast(self._log, C.c_void_p)
        failure = _abi.rxafs_failure()
        result = lib.rxafs_open_client(C.byref(options), C.byref(self._core.raw), C.byref(failure))
        if result:
            raise OSError(-result, failure.text.decode(errors="replace"))
        _clients.add(self)
        clients.add(self._core)
        result = lib.rxafs_get_user(self._core.raw, 1, C.byref(self._core.user))
        if result:
            self.close()
            raise MemoryError

    def close(self, limit: float = 60) -> None:
        """Close files and watches, store what is left within `limit` seconds, and end. Again: nothing.

        Calls of other threads end with ValueError. The first failure of a file is raised at the end.
        """
        failure: OSError | None = None
        for file in list(self._files) if self._core.usable else ():
            try:
                file.close()
            except OSError as error:
                failure = failure or error
        _clients.discard(self)
        self._core.limit = limit
        result = self._core.close()
        if result and not failure:
            failure = OSError(-result, "not everything was stored")
        if failure:
            raise failure

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if core := getattr(self, "_core", None):
            core.abandon()

    @property
    def handle(self) -> int:
        if not self._core.usable:
            raise ValueError("the client is closed")
        return self._core.raw.value or 0

    # -- calls ------------------------------------------------------------------------------------------------

    def _run(self, function: Callable[..., int], target: int | Handle, *arguments: Any, path: object = None,
             path2: object = None) -> int:
        """The result of a function of the library, or the exception. In the main thread ^C ends it."""
        request = Request(self._core, self.timeout)
        try:
            self._core.enter(request)
            if isinstance(target, Handle):
                target.enter(request)
                result = self._call(request, function, target.raw.value or 0, arguments)
                closed = target.closed
            else:
                result = self._call(request, function, target, arguments)
                closed = False
            if result < 0 and (closed or self._core.closed):
                raise ValueError("the file is closed" if closed else "the client is closed") from make_error(result, request.raw)
        finally:
            if isinstance(target, Handle):
                target.leave(request)
            self._core.leave(request)
        if result < 0:
            raise make_error(result, request.raw, path, path2)
        return result

    def _call(self, request: Request, function: Callable[..., int], target: int, arguments: Sequence[Any]) -> int:
        beside = threading.get_ident() == threading.main_thread().ident
        # What is in the caches needs no other thread.
        request.raw.quick = beside and function in _QUICK
        result = _abi.RXAFS_WOULD_WAIT
        if request.raw.quick or not beside:
            result = function(target, C.byref(request.raw), *arguments)
        if result == _abi.RXAFS_WOULD_WAIT:
            request.raw.quick = False
            result = run_beside(request, lambda: function(target, C.byref(request.raw), *arguments))
        return result

    def _find(self, path: Path, follow: bool = True) -> Reference:
        found = Reference(self._core)
        try:
            self._run(lib.rxafs_find_path, self.handle, encode(path), follow, C.byref(found.raw), path=path)
        except BaseException:
            found.give_back()  # the exception may live long
            raise
        return found

    def _find_parent(self, path: Path) -> tuple[Reference, bytes]:
        found, name = Reference(self._core), C.create_string_buffer(256)
        try:
            self._run(lib.rxafs_find_parent, self.handle, encode(path), C.byref(found.raw), name, path=path)
        except BaseException:
            found.give_back()
            raise
        return found, name.value

    def _change(self, function: Callable[..., int], path: Path, *arguments: Any) -> None:
        """A change of a name in its directory."""
        directory, name = self._find_parent(path)
        with directory:
            self._run(function, directory.handle, name, *arguments, path=path)

    def _make(self, function: Callable[..., int], path: Path, argument: Any) -> None:
        attributes = _abi.rxafs_attributes()
        with Reference(self._core) as made:
            self._change(function, path, argument, C.byref(made.raw), C.byref(attributes))

    # -- users --------------------------------------------------------------------------------------------------

    def log_in(self, cell: str | None = None) -> float:
        """Use the Kerberos tickets of this process. Returns the time, in seconds since 1970, when that ends: call it again before."""
        name = encode(cell) if cell else None
        self._run(lib.rxafs_log_in, self._need_user(), name)
        name = name or lib.rxafs_cell_name(self.handle, 1)
        return float(lib.rxafs_token_expires(self._need_user(), name))

    def _need_user(self) -> int:
        self.handle  # raises if it is closed
        return self._core.user.value or 0

    def cells(self) -> list[str]:
        """The cells that are known so far, the home cell first."""
        names, number = [], 1
        while name := lib.rxafs_cell_name(self.handle, number):
            names.append(name.decode())
            number += 1
        return names

    # -- attributes ---------------------------------------------------------------------------------------------

    def stat(self, path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        attributes = _abi.rxafs_attributes()
        with self._find(path, follow_symlinks) as found:
            self._run(lib.rxafs_getattr, found.handle, C.byref(attributes), path=path)
        return make_stat(attributes)

    def lstat(self, path: Path) -> os.stat_result:
        return self.stat(path, follow_symlinks=False)

    def fid(self, path: Path) -> Fid:
        attributes = _abi.rxafs_attributes()
        with self._find(path) as found:
            self._run(lib.rxafs_getattr, found.handle, C.byref(attributes), path=path)
        return make_fid(attributes.fid)

    def _has_kind(self, path: Path, test: Callable[[int], bool], follow: bool = True) -> bool:
        try:
            return test(self.stat(path, follow_symlinks=follow).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def exists(self, path: Path) -> bool:
        return self._has_kind(path, lambda _: True)

    def isdir(self, path: Path) -> bool:
        return self._has_kind(path, st.S_ISDIR)

    def isfile(self, path: Path) -> bool:
        return self._has_kind(path, st.S_ISREG)

    def islink(self, path: Path) -> bool:
        return self._has_kind(path, st.S_ISLNK, False)

    def access(self, path: Path, mode: int) -> bool:
        """Whether the user has the rights os.R_OK, os.W_OK, os.X_OK."""
        try:
            with self._find(path) as found:
                self._run(lib.rxafs_access, found.handle, check_range(mode, 7), path=path)
        except (PermissionError, FileNotFoundError):
            return False
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
            return False
        return True

    def _set(self, path: Path, **members: int) -> None:
        changes, attributes = _abi.rxafs_changes(**members), _abi.rxafs_attributes()
        with self._find(path) as found:
            self._run(lib.rxafs_setattr, found.handle, C.byref(changes), C.byref(attributes), path=path)

    def chmod(self, path: Path, mode: int) -> None:
        self._set(path, set=_abi.RXAFS_SET_MODE, mode=check_range(mode, 0xffffffff))

    def chown(self, path: Path, uid: int = -1, gid: int = -1) -> None:
        self._set(path, set=_abi.RXAFS_SET_OWNER * (uid != -1) | _abi.RXAFS_SET_GROUP * (gid != -1),
                  owner=0 if uid == -1 else check_range(uid, 0xfffffffe), group=0 if gid == -1 else check_range(gid, 0xfffffffe))

    def utime(self, path: Path, modified: float) -> None:
        """AFS knows the time of the last change only, in seconds from 1970 to 2106."""
        self._set(path, set=_abi.RXAFS_SET_TIME, time=check_range(math.floor(modified), 0xffffffff))

    def truncate(self, path: Path, length: int) -> None:
        self._set(path, set=_abi.RXAFS_SET_SIZE, size=check_range(length, LARGEST))

    def getxattr(self, path: Path, name: str) -> bytes:
        """afs.acl, afs.cell, afs.fid, afs.volume."""
        value, length = C.c_void_p(), C.c_size_t()
        with self._find(path) as found:
            self._run(lib.rxafs_getxattr, found.handle, encode(name), C.byref(value), C.byref(length), path=path)
        try:
            return C.string_at(value, length.value) if value else b""
        finally:
            _libc.free(value)

    def setxattr(self, path: Path, name: str, value: bytes) -> None:
        with self._find(path) as found:
            self._run(lib.rxafs_setxattr, found.handle, encode(name), value, len(value), path=path)

    # -- names ---------------------------------------------------------------------------------------------------

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        self._make(lib.rxafs_mkdir, path, check_range(mode, 0xffffffff))

    def makedirs(self, path: Path, mode: int = 0o777, exist_ok: bool = False) -> None:
        text = os.fsdecode(path).rstrip("/")
        if exist_ok and self.isdir(text):  # the root of a volume is in no directory
            return
        try:
            self.mkdir(text, mode)
        except FileExistsError:
            if not exist_ok or not self.isdir(text):
                raise
        except FileNotFoundError:
            above = text.rpartition("/")[0]
            if not above:
                raise
            self.makedirs(above, mode, True)
            self.mkdir(text, mode)

    def rmdir(self, path: Path) -> None:
        self._change(lib.rxafs_rmdir, path)

    def unlink(self, path: Path) -> None:
        self._change(lib.rxafs_unlink, path)

    remove = unlink

    def symlink(self, target: str, path: Path) -> None:
        self._make(lib.rxafs_symlink, path, encode(target))

    def readlink(self, path: Path) -> str:
        text = C.c_void_p()
        with self._find(path, False) as found:
            self._run(lib.rxafs_readlink, found.handle, C.byref(text), path=path)
        try:
            return os.fsdecode(C.string_at(text))
        finally:
            _libc.free(text)

    def link(self, path: Path, new_path: Path) -> None:
        attributes = _abi.rxafs_attributes()
        directory, name = self._find_parent(new_path)
        with directory, self._find(path, False) as found:
            self._run(lib.rxafs_link, found.handle, directory.handle, name, C.byref(attributes), path=path, path2=new_path)

    def _rename(self, path: Path, new_path: Path, no_replace: bool) -> None:
        (old, name), (new, new_name) = self._find_parent(path), self._find_parent(new_path)
        with old, new:
            self._run(lib.rxafs_rename, old.handle, name, new.handle, new_name, no_replace, path=path, path2=new_path)

    def rename(self, path: Path, new_path: Path) -> None:
        """What has the new name is replaced, as on Linux."""
        self._rename(path, new_path, False)

    replace = rename

    def scandir(self, path: Path) -> Iterator[DirEntry]:
        """The entries with their attributes, which few calls get for many entries."""
        text = os.fsdecode(path)
        with _Listing(self, path) as listing:
            while (entry := self._next_entry(listing, text)) is not None:
                yield entry

    def _next_entry(self, listing: _Listing, path: str) -> DirEntry | None:
        entry, attributes = _abi.rxafs_entry(), _abi.rxafs_attributes()
        with Reference(self._core) as found:
            if not listing.read(entry, C.byref(found.raw), C.byref(attributes)):
                return None
            name, error, stat = os.fsdecode(entry.name), None, None
            if found.handle:
                stat = make_stat(attributes)
            else:
                error = OSError(-entry.error, os.strerror(-entry.error), join(path, name))
        return DirEntry(self, join(path, name), name, entry.type, stat, error)

    def listdir(self, path: Path) -> list[str]:
        entry, names = _abi.rxafs_entry(), []
        with _Listing(self, path) as listing:
            while listing.read(entry, None, None):
                names.append(os.fsdecode(entry.name))
        return names

    def walk(self, path: Path, onerror: Callable[[OSError], object] | None = None) -> Iterator[tuple[str, list[str], list[str]]]:
        """As os.walk() from the top; links are not followed, mount points are."""
        text = os.fsdecode(path)
        directories: list[str] = []
        others: list[str] = []
        try:
            for entry in self.scandir(path):
                (directories if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        except OSError as error:
            if onerror:
                onerror(error)
            return
        yield text, directories, others
        for name in directories:
            yield from self.walk(join(text, name), onerror)

    # -- volumes ----------------------------------------------------------------------------------------------------

    def volume(self, path: Path) -> Volume:
        volume = _abi.rxafs_volume()
        with self._find(path) as found:
            self._run(lib.rxafs_examine, found.handle, C.byref(volume), path=path)
        members: list[Any] = [getattr(volume, name) for name in Volume._fields]
        return Volume._make(member.decode(errors="replace") if isinstance(member, bytes) else member for member in members)

    def set_quota(self, path: Path, kib: int) -> None:
        with self._find(path) as found:
            self._run(lib.rxafs_set_quota, found.handle, check_range(kib, LARGEST), path=path)

    def servers(self, path: Path) -> list[Server]:
        """Those that have the volume."""
        servers = (_abi.rxafs_server * 16)()
        with self._find(path) as found:
            count = self._run(lib.rxafs_where, found.handle, servers, 16, path=path)
        return [Server(*_unpack_address(bytes(server.address)), server.cell.decode(), ("up", "doubt", "down")[server.state])
                for server in servers[:count]]

    def make_mount(self, path: Path, volume: str, *, cell: str | None = None, read_write: bool = False) -> None:
        """A mount point of a volume."""
        text = ("%" if read_write else "#") + (f"{cell}:" if cell else "") + volume + "."
        self._change(lib.rxafs_make_mount, path, encode(text))

    def read_mount(self, path: Path) -> str:
        """The text of a mount point, "#root.cell."."""
        text, attributes = C.c_void_p(), _abi.rxafs_attributes()
        with Reference(self._core) as found:
            self._change(lib.rxafs_lookup, path, C.byref(found.raw), C.byref(attributes))
            result = lib.rxafs_mount_text(found.handle, C.byref(text))
        if result:
            raise OSError(-result, "this is no mount point", path)
        try:
            return C.string_at(text).decode(errors="replace")
        finally:
            _libc.free(text)

    # -- files ----------------------------------------------------------------------------------------------------------

    def open(self, path: Path, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
             newline: str | None = None) -> IO[Any]:
        """As the function open(): modes r, w, x, a, with + and b. close() tells whether all was stored."""
        from rxafs.files import File

        binary = "b" in mode
        if mode.count("b") + mode.count("t") > 1:
            raise ValueError(f"invalid mode: {mode!r}")
        if binary and (encoding or errors or newline):
            raise ValueError("binary mode takes no encoding, errors or newline")
        raw = File(self, path, mode.replace("b", "").replace("t", ""))
        try:
            file = _wrap(raw, binary, buffering, encoding, errors, newline)
        except BaseException:
            raw.close()
            raise
        self._files.add(file)
        return file

    def watch(self, path: Path, *, attributes: bool = False) -> Watch:
        """Events of a directory or a file; with `attributes` also for changes of what is in the directory."""
        from rxafs.watch import Watch

        return Watch(self, path, attributes)


class _Listing(Single):
    """A directory that is read. A generator that is left in the middle may outlive the client."""

    def __init__(self, client: Client, path: Path) -> None:
        self._client, self._path = client, path
        self._handle = Handle(client._core, lib.rxafs_close_listing)
        with client._find(path) as directory:
            client._run(lib.rxafs_open_listing, directory.handle, C.byref(self._handle.raw), path=path)

    def read(self, entry: _abi.rxafs_entry, found: Any, attributes: Any) -> int:
        return self._client._run(lib.rxafs_read_listing, self._handle, C.byref(entry), found, attributes, path=self._path)

    def __enter__(self) -> _Listing:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()

    def __del__(self) -> None:
        if handle := getattr(self, "_handle", None):
            handle.close()


class _Inner:
    """A file below a buffer, or a buffer below a text.

    The garbage collector may finalise it first, and the outer one has something to write. The outer one closes it.
    """

    _within = False

    def __del__(self) -> None:
        if not self._within:
            super().__del__()  # type: ignore[misc]


class _Outer:
    def detach(self) -> Any:
        inner = super().detach()  # type: ignore[misc]
        inner._within = False
        return inner


# Made by calls: versions of mypy disagree about the bases of these classes of io.
_Reader: Any = type("_Reader", (_Inner, _Outer, io.BufferedReader), {})
_Writer: Any = type("_Writer", (_Inner, _Outer, io.BufferedWriter), {})
_Random: Any = type("_Random", (_Inner, _Outer, io.BufferedRandom), {})
_Text: Any = type("_Text", (_Outer, io.TextIOWrapper), {})


def _wrap(raw: Any, binary: bool, buffering: int, encoding: str | None, errors: str | None, newline: str | None) -> IO[Any]:
    if buffering == 0:
        if not binary:
            raise ValueError("text needs a buffer")
        return raw  # type: ignore[no-any-return]
    size = buffering if buffering > 1 else 1 << 18
    buffer: Any
    if raw.readable() and raw.writable():
        buffer = _Random(raw, size)
    elif raw.writable():
        buffer = _Writer(raw, size)
    else:
        buffer = _Reader(raw, size)
    raw._within = True
    if binary:
        return buffer  # type: ignore[no-any-return]
    text: IO[Any] = _Text(buffer, encoding, errors, newline, buffering == 1)
    buffer._within = True
    return text
