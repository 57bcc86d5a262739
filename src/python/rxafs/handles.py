# SPDX-License-Identifier: BSD-2-Clause
"""Handles of the library, calls in progress, and the thread that calls for the main thread.

The garbage collector may run a finaliser, and a signal its handler, within any function of this package. So nothing here
waits with a lock held that such code would need: counters are dicts, whose methods cannot be interrupted, and queues are
SimpleQueue.
"""
from __future__ import annotations

import _thread
import ctypes as C
import errno
import operator
import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

from rxafs import _abi
from rxafs._abi import lib

LOOK = 0.1  # seconds; a signal that comes just before a wait does not end it
LARGEST = (1 << 63) - 1  # offset in a file


def encode(text: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """For the library, whose strings end at a null byte."""
    octets = os.fsencode(text)
    if b"\0" in octets:
        raise ValueError("embedded null byte")
    return octets


def check_range(number: int, most: int) -> int:
    """A number that the library can take: ctypes would cut off what does not fit."""
    number = operator.index(number)
    if number < 0:
        raise OSError(errno.EINVAL, f"the number {number} is negative")
    if number > most:
        raise OverflowError(f"the number {number} is too large")
    return number


class Single:
    """An object of the library belongs to one Python object."""

    def __reduce_ex__(self, _: Any) -> NoReturn:
        raise TypeError(f"cannot copy or pickle {type(self).__name__!r} object")

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(4)

    def __deepcopy__(self, _: Any) -> NoReturn:
        self.__reduce_ex__(4)


class Handle(Single):
    """What the library gave, until `free` takes it back.

    Those who use it enter it and leave it. It is freed when it was closed and nobody is left in it. It has no reference to
    the Python object that it belongs to, which may be unreachable while the client still knows the handle.
    """

    def __init__(self, client: ClientHandle | None, free: Callable[[int], int | None], wake: Callable[[int], object] | None = None) -> None:
        self.raw = C.c_void_p()
        self.closed = self._deferred = False
        self._free, self._wake = free, wake
        self._users: dict[object, int] = {}  # with the thread that each is in
        self._left: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._freed: dict[int, object] = {}
        self.client = client
        if client:
            client.children[id(self)] = self
            if client.closed:
                client.children.pop(id(self))
                raise ValueError("the client is closed")

    @property
    def forked(self) -> bool:
        return self.client.forked if self.client else False

    @property
    def usable(self) -> bool:
        return not self.closed and bool(self.raw) and not self.forked

    def enter(self, user: object) -> None:
        """Until leave() it is not freed."""
        self._users[user] = threading.get_ident()
        if self.closed or self.forked:
            self.leave(user)
            raise ValueError(self._text())

    def _text(self) -> str:
        return "I/O operation on closed file"

    def leave(self, user: object) -> None:
        if self._users.pop(user, None) is None or not self.closed:
            return
        self._left.put(None)
        if self._deferred and not self._users:
            self._free_once()

    def close(self) -> int:
        """End the calls that are in progress in other threads, and free it. Again: nothing.

        A call of this thread, which a signal's handler or a finaliser has interrupted, frees it at its end.
        """
        self.closed = True
        if self.forked:
            return 0
        if self.raw and self._wake and not self._freed:
            self._wake(self.raw.value or 0)
        for user in list(self._users):
            if isinstance(user, Request):
                user.stop()
        self._wait_for_others()
        self._deferred = True
        return 0 if self._users else self._free_once()

    def _wait_for_others(self) -> None:
        """Until only this thread is in it."""
        me = threading.get_ident()
        while [user for user, thread in list(self._users.items()) if thread != me]:
            try:
                self._left.get(timeout=LOOK)
            except queue.Empty:
                pass
        self._left.put(None)  # for another thread that waits here

    def _free_once(self) -> int:
        mine = object()
        if self.client:  # which is not freed before this has ended
            self.client._users[mine] = threading.get_ident()
        try:
            if self._freed.setdefault(0, mine) is not mine:
                return 0
            handle, self.raw.value = self.raw.value, None
            result = (self._free(handle) or 0) if handle else 0
            if self.client:
                self.client.drop_child(self)
            return result
        finally:
            if self.client:
                self.client.leave(mine)


class ClientHandle(Handle):
    """A client of the library, with all that was opened in it."""

    def __init__(self) -> None:
        self.children: dict[int, Handle] = {}
        self.user = C.c_void_p()
        self.limit = 1.0  # for what is dropped without close()
        self._forked = self._abandoned = False
        super().__init__(None, self._end)

    @property
    def forked(self) -> bool:
        return self._forked

    def forget(self) -> None:
        """In the child of a fork: it is the parent's, whose threads are not here."""
        self._forked = True

    def _text(self) -> str:
        return "the client is closed"

    def drop_child(self, child: Handle) -> None:
        self.children.pop(id(child), None)
        if self._abandoned and not self.children:
            self.close()

    def abandon(self) -> None:
        """Nobody has the client any more: close it after its files, which may be unreachable as well and not finalised yet."""
        self._abandoned = True
        if not self.children:
            self.close()

    def _end(self, handle: int) -> int:
        for child in list(self.children.values()):
            child.close()
        self._wait_for_others()  # who free a child
        if self.user:
            lib.rxafs_put_user(self.user)
        return lib.rxafs_close_client(handle, int(self.limit * 1000))  # type: ignore[no-any-return]


class Request(Single):
    """One operation: its deadline, and what can end it."""

    def __init__(self, client: ClientHandle, timeout: float | None) -> None:
        self.raw = _abi.rxafs_request(user=client.user.value)
        if timeout is not None:
            self.raw.deadline = lib.rxafs_now() + int(timeout * 1e9)
        self._cancel = lib.rxafs_create_cancel()
        if not self._cancel:
            raise MemoryError
        self.raw.cancel = self._cancel

    def stop(self) -> None:
        lib.rxafs_raise_cancel(self._cancel)

    def __del__(self) -> None:
        if cancel := getattr(self, "_cancel", None):
            lib.rxafs_free_cancel(cancel)


class Reference(Single):
    """A reference to an object, given back at the end of a with statement. The client is not freed before."""

    def __init__(self, client: ClientHandle) -> None:
        self.raw, self._client = C.c_void_p(), client
        client.enter(self)

    @property
    def handle(self) -> int:
        return self.raw.value or 0

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        handle, self.raw.value = self.raw.value, None
        if handle and not self._client.forked:
            lib.rxafs_release(handle)
        self._client.leave(self)

    def __del__(self) -> None:
        self.give_back()


# -- the thread beside the main thread ----------------------------------------------------------------------------


class _Task:
    """A call of the library on another thread. An exception may come anywhere, also before it is handed over."""

    def __init__(self, call: Callable[[], int]) -> None:
        self.call, self.result, self.done = call, 0, False
        self._taken: dict[int, str] = {}
        self._signal = threading.Lock()
        self._signal.acquire()

    def run(self) -> None:
        if self._taken.setdefault(0, "run") == "run":
            self.result = self.call()
            self.done = True
            self._signal.release()

    def wait(self) -> None:
        while not self.done:
            self._signal.acquire(timeout=LOOK)

    def is_over(self) -> bool:
        """Whether it has ended, or will never begin."""
        return self._taken.setdefault(0, "dropped") == "dropped" or self.done


_tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
_worker: list[int] = []


def _work(tasks: queue.SimpleQueue[_Task]) -> None:
    while True:
        task = tasks.get()
        task.run()
        del task


def _hand_over(task: _Task) -> None:
    if not _worker:
        try:
            # Thread.start() takes a lock, which this thread may have.
            _worker.append(_thread.start_new_thread(_work, (_tasks,)))
        except RuntimeError:  # the interpreter is about to end
            task.run()
            return
    _tasks.put(task)


def run_beside(request: Request, call: Callable[[], int]) -> int:
    """On a thread that a signal does not stop, for it would be handled only after the function's return."""
    task = _Task(call)
    try:
        _hand_over(task)
        task.wait()
    finally:
        while not task.is_over():
            try:
                request.stop()
                task.wait()
            except BaseException:  # once more ^C
                pass
    return task.result


# -- the process ----------------------------------------------------------------------------------------------------

clients: weakref.WeakSet[ClientHandle] = weakref.WeakSet()


def _after_fork() -> None:
    global _tasks
    for client in clients:
        client.forget()
    _worker.clear()
    _tasks = queue.SimpleQueue()


os.register_at_fork(after_in_child=_after_fork)
