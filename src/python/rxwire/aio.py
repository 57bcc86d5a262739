# SPDX-License-Identifier: BSD-2-Clause
"""Calls with asyncio.

A Pool has several connections to one service, for four calls each, and runs calls of one event loop. All functions are
called on the thread of that loop.
"""
import asyncio
import collections
import ctypes as C

from rxwire import _abi, rpc
from rxwire._abi import lib
from rxwire.core import CHUNK, Call, Connection
from rxwire.errors import RxError

CHANNELS = 4  # calls of a connection at a time
RETRY = 0.001  # seconds: when a channel that should be free is not


class Pool:
    """Connections to one service. Further calls wait for a free channel."""

    def __init__(self, endpoint, address, service_id, security=None, connections=1):
        self.connections = [Connection(endpoint, address, service_id, security) for _ in range(connections)]
        self._free = collections.deque(self.connections * CHANNELS)
        self._waiting = collections.deque()
        self.scratch = C.create_string_buffer(CHUNK)

    async def begin(self, deadline=None):
        """Begin a call. `deadline`: seconds; it includes the wait for a channel, which raises TimeoutError."""
        if self._free:
            connection = self._free.popleft()
        else:
            connection = await asyncio.wait_for(self._wait_free(), deadline) if deadline else await self._wait_free()
        try:
            while True:
                try:
                    return AsyncCall(self, connection, deadline)
                except RxError as error:
                    if error.result != _abi.RXW_EAGAIN:
                        raise
                await asyncio.sleep(RETRY)
        except BaseException:
            self.release(connection)
            raise

    async def _wait_free(self):
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release(future.result())
            raise

    def release(self, connection):
        """A channel of the connection is free."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(connection)
                return
        self._free.append(connection)

    def close(self):
        """Release the connections. Calls in progress continue."""
        for connection in self.connections:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class AsyncCall(Call):
    """A call whose functions are coroutines. At the end of an async with statement it is ended, as by end()."""

    def __init__(self, pool, connection, deadline=None):
        self.pool = pool
        self._loop = asyncio.get_running_loop()
        super().__init__(connection, deadline, _abi.RXW_CALL_NONBLOCK)

    async def wait(self, events):
        """Wait until one of the events RXW_EVENT_… holds."""
        descriptor = self.check(lib.rxw_call_fd(self.handle))
        self.check(lib.rxw_call_set_events(self.handle, events))
        while not lib.rxw_call_events(self.handle) & events:
            future = self._loop.create_future()
            self._loop.add_reader(descriptor, _wake, future)
            try:
                await future
            finally:
                self._loop.remove_reader(descriptor)

    async def write(self, data):
        """Write bytes, a bytearray or a memoryview."""
        data = bytes(data)
        while data:
            count = lib.rxw_call_write(self.handle, data, len(data))
            if count == -_abi.RXW_EAGAIN:
                await self.wait(_abi.RXW_EVENT_WRITE)
                continue
            data = data[self.check(count) :]

    async def _again(self, function):
        while True:
            result = function(self.handle)
            if result != -_abi.RXW_EAGAIN:
                return self.check(result)
            await self.wait(_abi.RXW_EVENT_WRITE)

    async def flush(self):
        """Send what has been written, including a partly filled packet."""
        await self._again(lib.rxw_call_flush)

    async def send_end(self):
        """End the request. The first read does it otherwise."""
        await self._again(lib.rxw_call_send_end)

    async def read_some(self, size=CHUNK):
        """Read at least one byte and at most `size`, which is limited to 64 KiB; b"" at the end of the stream."""
        buffer = self.pool.scratch
        while True:
            count = lib.rxw_call_read_some(self.handle, buffer, min(size, CHUNK))
            if count != -_abi.RXW_EAGAIN:
                return C.string_at(buffer, self.check(count))
            await self.wait(_abi.RXW_EVENT_READ)

    async def read(self, size=-1):
        """Read `size` bytes, fewer only at the end of the stream; all that remain if it is negative."""
        data = bytearray()
        while size < 0 or len(data) < size:
            piece = await self.read_some(CHUNK if size < 0 else size - len(data))
            if not piece:
                break
            data += piece
        return bytes(data)

    async def readinto(self, buffer):
        """Read into a bytearray or a writable memoryview. Returns the number of bytes, fewer at the end."""
        view = memoryview(buffer).cast("B")
        data = await self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def end(self, code=0):
        """End the call and free it, without waiting. Before the end of the reply was read it is aborted."""
        if not self._handle:
            return 0
        try:
            return super().end(code)
        finally:
            self.pool.release(self.connection)

    close = end

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, *_):
        self.end(_abi.RXW_USER_ABORT if kind else 0)


def _wake(future):
    if not future.done():
        future.set_result(None)


class AsyncStream(AsyncCall):
    """A call of a split procedure, whose arguments have been sent."""

    async def finish(self):
        """Read the results, which follow the data, and end the call."""
        try:
            reply = await self.read()
        except BaseException:
            self.end(_abi.RXW_USER_ABORT)
            raise
        return rpc.finish(self, self.procedure, reply)


class _Opening:
    """`await client.Procedure(...)` or `async with client.Procedure(...) as stream`."""

    def __init__(self, coroutine):
        self.coroutine = coroutine
        self.stream = None

    def __await__(self):
        return self.coroutine.__await__()

    async def __aenter__(self):
        self.stream = await self.coroutine
        return self.stream

    async def __aexit__(self, kind, *rest):
        await self.stream.__aexit__(kind, *rest)


class AsyncClient:
    """Base class of clients with asyncio: calls on a Pool."""

    def __init__(self, pool):
        self.rxw_pool = pool

    async def rxw_call(self, procedure, values, deadline=None):
        """Call a procedure and wait for its results."""
        request = procedure.request(values)
        call = await self.rxw_pool.begin(deadline)
        call.swap_errno = procedure.swap_errno
        try:
            await call.write(request)
            await call.send_end()
            reply = await call.read()
        except BaseException:
            call.end(_abi.RXW_USER_ABORT)
            raise
        return rpc.finish(call, procedure, reply)

    def rxw_stream(self, procedure, values, deadline=None):
        """Call a split procedure: an AsyncStream, by await or async with."""
        return _Opening(self._rxw_open(procedure, procedure.request(values), deadline))

    async def _rxw_open(self, procedure, request, deadline):
        call = await self.rxw_pool.begin(deadline)
        call.__class__ = AsyncStream
        call.procedure = procedure
        call.swap_errno = procedure.swap_errno
        try:
            await call.write(request)
        except BaseException:
            call.end(_abi.RXW_USER_ABORT)
            raise
        return call
