# SPDX-License-Identifier: BSD-2-Clause
"""Changes of directories and files."""
from __future__ import annotations

import ctypes as C
import enum
import os
import select
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rxafs import _abi
from rxafs._abi import lib
from rxafs.handles import Handle, Single

if TYPE_CHECKING:
    from rxafs.client import Client, Fid, Path

MOST = 64  # events that are taken out at a time


class EventKind(enum.StrEnum):
    ADDED = "added"  # a name in the directory
    REMOVED = "removed"
    CHANGED = "changed"  # attributes, rights or contents; of the object itself if the name is empty
    GONE = "gone"  # the object itself was removed: there are no more events
    FAILED = "failed"  # what happens cannot be seen at present
    RECOVERED = "recovered"  # it can be seen again; changes of the meantime follow


_KINDS = {getattr(_abi, f"RXAFS_EVENT_{kind.name}"): kind for kind in EventKind}


class Event(NamedTuple):
    kind: EventKind
    name: str
    fid: Fid
    error: OSError | None  # of FAILED


class Watch(Single):
    """Events of one object. Iteration waits for the next one, and ends after GONE.

    fileno() is readable while there are events, for select and event loops; then events(0) has them.
    """

    def __init__(self, client: Client, path: Path, attributes: bool = False) -> None:
        self._gone, self._client, self._path = False, client, path
        watch = C.c_void_p()

        def free(queue: int) -> None:
            lib.rxafs_free_watch(watch)
            lib.rxafs_free_queue(queue)

        options = _abi.rxafs_watch_options(size=C.sizeof(_abi.rxafs_watch_options), user=client._core.user.value,
                                           attributes=attributes)
        self._queue = Handle(client._core, free, lambda queue: lib.rxafs_post_event(queue, None))
        with client._find(path) as found:
            result = lib.rxafs_create_queue(client.handle, C.byref(self._queue.raw))
            if result:
                raise OSError(-result, os.strerror(-result))
            client._run(_create_watch, found.handle, self._queue.raw, C.byref(options), C.byref(watch), path=path)

    def fileno(self) -> int:
        if not self._queue.usable:
            raise ValueError("the watch is closed")
        return lib.rxafs_queue_fd(self._queue.raw)  # type: ignore[no-any-return]

    def events(self, timeout: float | None = None) -> list[Event]:
        """The events that are there, at least one unless `timeout` seconds have passed; None: without a limit.

        ValueError if the watch is closed, also by another thread meanwhile.
        """
        user = object()
        self._queue.enter(user)
        try:
            poll = select.poll()
            poll.register(self.fileno(), select.POLLIN)
            poll.poll(None if timeout is None else timeout * 1000)
            if self._queue.closed:
                raise ValueError("the watch is closed")
            events = (_abi.rxafs_event * MOST)()
            count = lib.rxafs_next_events(self._queue.raw, events, MOST, 0)
        finally:
            self._queue.leave(user)
        return [self._make(event) for event in events[:count] if event.kind in _KINDS]

    def _make(self, event: _abi.rxafs_event) -> Event:
        from rxafs.client import make_fid

        kind = _KINDS[event.kind]
        self._gone |= kind is EventKind.GONE
        error = OSError(-event.error, os.strerror(-event.error)) if event.error else None
        return Event(kind, os.fsdecode(event.name), make_fid(event.fid), error)

    def __iter__(self) -> Iterator[Event]:
        while not self._gone and self._queue.usable:
            yield from self.events()

    def close(self) -> None:
        self._queue.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if queue := getattr(self, "_queue", None):
            queue.close()


def _create_watch(found: int, request: object, queue: C.c_void_p, options: object, made: object) -> int:
    return lib.rxafs_create_watch(queue, found, request, options, made)  # type: ignore[no-any-return]
