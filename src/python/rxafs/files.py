# SPDX-License-Identifier: BSD-2-Clause
"""Open files."""
from __future__ import annotations

import ctypes as C
import io
import os
from typing import TYPE_CHECKING, Any

from rxafs import _abi
from rxafs._abi import lib

if TYPE_CHECKING:
    from rxafs.client import Client, Path

_MODES = {"r": os.O_RDONLY, "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
          "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND}


class File(io.RawIOBase):
    """A file without a buffer: Client.open() puts one around it."""

    def __init__(self, client: Client, path: Path, mode: str = "r") -> None:
        kind, plus = mode.replace("+", "", 1), "+" in mode
        if kind not in _MODES:
            raise ValueError(f"invalid mode: {mode!r}")
        flags = _MODES[kind]
        if plus:
            flags = flags & ~os.O_ACCMODE | os.O_RDWR
        self.name, self.mode = path, f"{kind}b{'+' * plus}"
        self._flags, self._offset, self._client = flags, 0, client
        self._handle = C.c_void_p()
        self._open_or_create(path, flags)
        client._open.add(self)
        if kind == "a":
            self.seek(0, os.SEEK_END)

    def _open_or_create(self, path: Path, flags: int) -> None:
        try:
            if not flags & os.O_EXCL:
                with self._client._find(path) as found:
                    self._run_on(lib.rxafs_open, found.handle, flags & ~os.O_CREAT, C.byref(self._handle))
                return
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        made, attributes = C.c_void_p(), _abi.rxafs_attributes()
        self._client._change(lib.rxafs_create, path, 0o666, flags, C.byref(made), C.byref(attributes), C.byref(self._handle))
        lib.rxafs_release(made)

    def _run_on(self, function: Any, target: int, *arguments: Any) -> int:
        return self._client._run(function, target, *arguments, path=self.name)

    @property
    def handle(self) -> int:
        if self.closed or not self._handle:
            raise ValueError("I/O operation on closed file")
        return self._handle.value or 0

    def readable(self) -> bool:
        self.handle
        return self._flags & os.O_ACCMODE != os.O_WRONLY

    def writable(self) -> bool:
        self.handle
        return self._flags & os.O_ACCMODE != os.O_RDONLY

    def seekable(self) -> bool:
        self.handle
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.readable():
            raise io.UnsupportedOperation("not readable")
        view = memoryview(buffer).cast("B")
        if not len(view):
            return 0
        count = self._run_on(lib.rxafs_read, self.handle, (C.c_char * len(view)).from_buffer(view), len(view), self._offset)
        self._offset += count
        return count

    def readall(self) -> bytes:
        rest = self.stat().st_size - self._offset
        pieces: list[bytes] = []
        while piece := self.read(max(rest, 0) + 1 if not pieces else 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)

    def write(self, data: Any) -> int:
        if not self.writable():
            raise io.UnsupportedOperation("not writable")
        view = bytes(data)
        if self._flags & os.O_APPEND:
            self._offset = self.stat().st_size
        count = self._run_on(lib.rxafs_write, self.handle, view, len(view), self._offset)
        self._offset += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._offset}.get(whence)
        if base is None:
            if whence != os.SEEK_END:
                raise ValueError(f"invalid whence: {whence}")
            base = self.stat().st_size
        if base + offset < 0:
            raise ValueError("a negative position")
        self.handle
        self._offset = base + offset
        return self._offset

    def tell(self) -> int:
        self.handle
        return self._offset

    def truncate(self, size: int | None = None) -> int:
        if not self.writable():
            raise io.UnsupportedOperation("not writable")
        size = self._offset if size is None else size
        self._run_on(lib.rxafs_truncate, self.handle, size)
        return size

    def stat(self) -> os.stat_result:
        from rxafs.client import make_stat

        attributes = _abi.rxafs_attributes()
        self._run_on(lib.rxafs_getattr, lib.rxafs_file_object(self.handle), C.byref(attributes))
        return make_stat(attributes)

    def flush(self) -> None:
        """Store what was written, so that others see it."""
        if self._handle and not self._client._forked and self._flags & os.O_ACCMODE != os.O_RDONLY:
            self._run_on(lib.rxafs_flush, self.handle, False)
        super().flush()

    def fsync(self) -> None:
        """On the server's disk as well."""
        self._run_on(lib.rxafs_flush, self.handle, True)

    def close(self) -> None:
        if self.closed:
            return
        try:
            super().close()  # flushes
        finally:
            self._release()

    def _release(self) -> None:
        handle, self._handle = self._handle, C.c_void_p()
        if handle and not self._client._forked:
            lib.rxafs_close(handle)

    def _close_with_client(self) -> None:
        # The client stores what is left.
        self._release()
