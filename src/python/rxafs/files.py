# SPDX-License-Identifier: BSD-2-Clause
"""Open files."""
from __future__ import annotations

import ctypes as C
import io
import os
from typing import TYPE_CHECKING, Any

from rxafs import _abi
from rxafs._abi import lib
from rxafs.handles import LARGEST, Handle, Reference, Single, check_range

if TYPE_CHECKING:
    from rxafs.client import Client, Path

MOST = 1 << 26  # bytes that are read at a time
_MODES = {"r": os.O_RDONLY, "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
          "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND}


class File(Single, io.RawIOBase):
    """A file without a buffer: Client.open() puts one around it."""

    _within = False  # a buffer, which may be finalised later and closes it

    def __init__(self, client: Client, path: Path, mode: str = "r") -> None:
        kind, plus = mode.replace("+", "", 1), "+" in mode
        if kind not in _MODES:
            raise ValueError(f"invalid mode: {mode!r}")
        flags = _MODES[kind]
        if plus:
            flags = flags & ~os.O_ACCMODE | os.O_RDWR
        self.name, self.mode = path, f"{kind}b{'+' * plus}"
        self._flags, self._offset, self._client = flags, 0, client
        self._handle = Handle(client._core, lib.rxafs_close)
        self._open_or_create(path, flags)
        if kind == "a":
            self.seek(0, os.SEEK_END)

    def _open_or_create(self, path: Path, flags: int) -> None:
        try:
            if not flags & os.O_EXCL:
                with self._client._find(path) as found:
                    self._client._run(lib.rxafs_open, found.handle, flags & ~os.O_CREAT, C.byref(self._handle.raw), path=path)
                return
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        attributes = _abi.rxafs_attributes()
        with Reference(self._client._core) as made:
            self._client._change(lib.rxafs_create, path, 0o666, flags, C.byref(made.raw), C.byref(attributes),
                                 C.byref(self._handle.raw))

    def _run_on(self, function: Any, *arguments: Any) -> int:
        return self._client._run(function, self._handle, *arguments, path=self.name)

    @property
    def handle(self) -> int:
        if self.closed or not self._handle.usable:
            raise ValueError("I/O operation on closed file")
        return self._handle.raw.value or 0

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
        if not memoryview(buffer).nbytes:
            return 0
        view = memoryview(buffer).cast("B")
        count = self._run_on(lib.rxafs_read, (C.c_char * len(view)).from_buffer(view), len(view), self._offset)
        self._offset += count
        return count

    def readall(self) -> bytes:
        end = self.stat().st_size
        pieces: list[bytes] = []
        while piece := self.read(min(max(end - self._offset, 0) + 1, MOST)):
            pieces.append(piece)
        return b"".join(pieces)

    def write(self, data: Any) -> int:
        if not self.writable():
            raise io.UnsupportedOperation("not writable")
        with memoryview(data) as view:  # TypeError for what has no bytes
            octets = data if isinstance(data, bytes) else view.tobytes()
        if self._flags & os.O_APPEND:
            self._offset = self.stat().st_size
        count = self._run_on(lib.rxafs_write, octets, len(octets), self._offset)
        self._offset += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._offset}.get(whence)
        if base is None:
            if whence != os.SEEK_END:
                raise ValueError(f"invalid whence: {whence}")
            base = self.stat().st_size
        self.handle
        self._offset = check_range(base + offset, LARGEST)
        return self._offset

    def tell(self) -> int:
        self.handle
        return self._offset

    def truncate(self, size: int | None = None) -> int:
        if not self.writable():
            raise io.UnsupportedOperation("not writable")
        size = self._offset if size is None else check_range(size, LARGEST)
        self._run_on(lib.rxafs_truncate, size)
        return size

    def stat(self) -> os.stat_result:
        from rxafs.client import make_stat

        attributes = _abi.rxafs_attributes()
        self._run_on(_get_attributes, C.byref(attributes))
        return make_stat(attributes)

    def flush(self) -> None:
        """Store what was written, so that others see it."""
        if hasattr(self, "_handle") and self._handle.usable and self._flags & os.O_ACCMODE != os.O_RDONLY:
            self._run_on(lib.rxafs_flush, False)
        super().flush()

    def fsync(self) -> None:
        """On the server's disk as well."""
        self._run_on(lib.rxafs_flush, True)

    def close(self) -> None:
        """Calls of other threads end with ValueError."""
        if self.closed:
            return
        try:
            super().close()  # flushes
        finally:
            if hasattr(self, "_handle"):  # not where __init__ has failed
                self._handle.close()

    def __del__(self) -> None:
        if not self._within:
            super().__del__()


def _get_attributes(file: int, request: object, attributes: object) -> int:
    return lib.rxafs_getattr(lib.rxafs_file_object(file), request, attributes)  # type: ignore[no-any-return]
