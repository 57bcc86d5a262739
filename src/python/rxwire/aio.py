# SPDX-License-Identifier: BSD-2-Clause
"""Calls and services with asyncio.

A Pool has several connections to one service, for four calls each. serve() adds a service whose methods may be
coroutines. All calls of an endpoint share one descriptor, that of a queue of the library. Objects are used on the
thread of the event loop in which they were made.
"""
import asyncio
import collections
import ctypes as C
import inspect
import itertools
import logging

from rxwire import _abi, rpc, xdr
from rxwire._abi import lib
from rxwire.core import CHUNK, Call, Connection, ServerCall
from rxwire.errors import DecodeError, EncodeError, RxAbort, RxError, check

CHANNELS = 4  # calls of a connection at a time
BATCH = 64  # entries that are taken out of a queue together

_log = logging.getLogger("rxwire")


class _Queue:
    """The queue of an endpoint in one event loop. Entries have the key of an object as their `arg`."""

    def __init__(self, endpoint):
        made = C.c_void_p()
        check(lib.rxw_queue_create(endpoint.engine.handle, None, C.byref(made)), "queue")
        self.handle = made.value
        self.loop = asyncio.get_running_loop()
        self.scratch = C.create_string_buffer(CHUNK)
        self.tasks = set()  # of calls that are served
        self._objects = {}
        self._keys = itertools.count(1)
        self._events = (_abi.rxw_queue_event * BATCH)()
        self._descriptor = check(lib.rxw_queue_fd(self.handle), "queue")
        self.loop.add_reader(self._descriptor, self._ready)

    @classmethod
    def of(cls, endpoint):
        """The queue of the endpoint in the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in endpoint._queues:
            endpoint._queues[loop] = cls(endpoint)
        return endpoint._queues[loop]

    def add(self, owner):
        """A new key. owner.on_event(entry) gets its entries."""
        key = next(self._keys)
        self._objects[key] = owner
        return key

    def drop(self, key):
        self._objects.pop(key, None)

    def _ready(self):
        count = check(lib.rxw_queue_next(self.handle, self._events, BATCH, 0), "queue")
        if count > 1:
            lib.rxw_batch_begin()
        for i in range(count):
            entry = self._events[i]
            owner = self._objects.get(entry.arg)
            if owner:
                owner.on_event(entry)
        if count > 1:
            # The tasks that were woken run first. What they send leaves together.
            self.loop.call_soon(lib.rxw_batch_end)

    def cancel(self):
        """End the calls that are served, before their endpoint is closed."""
        for owner in list(self._objects.values()):
            if isinstance(owner, AsyncServerCall):
                owner.end(_abi.RXW_RESTARTING)
        if not self.loop.is_closed():
            self.loop.remove_reader(self._descriptor)

    def close(self):
        check(lib.rxw_queue_destroy(self.handle), "queue")


class _Channel:
    """Waits until a connection announces a free channel."""

    def __init__(self, queue):
        self.future = queue.loop.create_future()

    def on_event(self, entry):
        if not self.future.done():
            self.future.set_result(None)


class Pool:
    """Connections to one service. Further calls wait for a free channel."""

    def __init__(self, endpoint, address, service_id, security=None, connections=1):
        self.queue = _Queue.of(endpoint)
        self.connections = [Connection(endpoint, address, service_id, security) for _ in range(connections)]
        self._free = collections.deque(self.connections * CHANNELS)
        self._waiting = collections.deque()

    async def begin(self, deadline=None):
        """Begin a call. `deadline`: seconds; the wait for a channel may take as long, then TimeoutError is raised."""
        if self._free:
            connection = self._free.popleft()
        else:
            connection = await asyncio.wait_for(self._wait_free(), deadline)
        try:
            while True:
                channel = _Channel(self.queue)
                key = self.queue.add(channel)
                try:
                    return AsyncCall(self, connection, deadline, key)
                except RxError as error:
                    if error.result != _abi.RXW_EAGAIN:
                        raise
                    await channel.future
                finally:
                    if self.queue._objects.get(key) is channel:
                        self.queue.drop(key)
        except BaseException:
            self.release(connection)
            raise

    async def _wait_free(self):
        future = self.queue.loop.create_future()
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


class _AsyncStreams:
    """The streams of a call, as coroutines. One reading and one writing task at a time."""

    _future = None
    _pending = 0

    def on_event(self, entry):
        self._pending |= entry.events
        if self._future and not self._future.done():
            self._future.set_result(None)

    async def wait(self, events):
        """Wait until one of the events RXW_EVENT_… has been reported."""
        while not self._pending & events:
            self._future = self.queue.loop.create_future()
            try:
                await self._future
            finally:
                self._future = None
        self._pending &= ~events

    async def _wait_room(self):
        self.check(lib.rxw_call_set_events(self.handle, _abi.RXW_EVENT_WRITE | self.EVENTS))
        await self.wait(_abi.RXW_EVENT_WRITE | _abi.RXW_EVENT_DONE)
        self.check(lib.rxw_call_set_events(self.handle, self.EVENTS))

    async def write(self, data):
        """Write bytes, a bytearray or a memoryview."""
        data = bytes(data)
        while data:
            count = lib.rxw_call_write(self.handle, data, len(data))
            if count == -_abi.RXW_EAGAIN:
                await self._wait_room()
                continue
            data = data[self.check(count) :]

    async def _again(self, function):
        while True:
            result = function(self.handle)
            if result != -_abi.RXW_EAGAIN:
                return self.check(result)
            await self._wait_room()

    async def flush(self):
        """Send what has been written, including a partly filled packet."""
        await self._again(lib.rxw_call_flush)

    async def read_some(self, size=CHUNK):
        """Read at least one byte and at most `size`, which is limited to 64 KiB; b"" at the end of the stream."""
        buffer = self.queue.scratch
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


class AsyncCall(_AsyncStreams, Call):
    """A call whose functions are coroutines. At the end of an async with statement it is ended, as by end()."""

    EVENTS = _abi.RXW_EVENT_READ

    def __init__(self, pool, connection, deadline, key):
        self.pool = pool
        self.queue = pool.queue
        self._key = key
        Call.__init__(self, connection, deadline, _abi.RXW_CALL_NONBLOCK, queue=self.queue.handle, arg=key,
                      events=self.EVENTS)
        self.queue._objects[key] = self

    async def send_end(self):
        """End the request. The first read does it otherwise."""
        await self._again(lib.rxw_call_send_end)

    def end(self, code=0):
        """End the call and free it, without waiting. Before the end of the reply was read it is aborted."""
        if not self._handle:
            return 0
        self.queue.drop(self._key)
        try:
            return Call.end(self, code)
        finally:
            self.pool.release(self.connection)

    close = end

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, *_):
        self.end(_abi.RXW_USER_ABORT if kind else 0)


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


# -- services --------------------------------------------------------------------------------------------------------


class _More(Exception):
    """Decoding needs `count` more bytes."""

    def __init__(self, count):
        super().__init__()
        self.count = count


class _PartDecoder(xdr.Decoder):
    """Decodes the beginning of a stream, of which more may follow."""

    __slots__ = ("limit",)

    def __init__(self, data, limit):
        super().__init__(data)
        self.limit = limit

    def remaining(self):
        return self.limit - self.at

    def fetch(self, count):
        if count > self.remaining():
            raise DecodeError(f"the arguments exceed {self.limit} bytes")
        raise _More(count - (self.end - self.at))


class AsyncServerCall(_AsyncStreams, ServerCall):
    """A call that a task serves. When it fails, the task is cancelled."""

    EVENTS = _abi.RXW_EVENT_READ | _abi.RXW_EVENT_DONE

    def __init__(self, queue, handle):
        ServerCall.__init__(self, handle)
        self.queue = queue
        self.task = None
        self._ahead = b""  # read, not yet taken by read_some()
        self._key = queue.add(self)
        result = lib.rxw_call_set_queue(handle, queue.handle, self._key)
        if result < 0:
            self.end(_abi.RXW_USER_ABORT)
            check(result, "call")

    def on_event(self, entry):
        if entry.events & _abi.RXW_EVENT_DONE and self.task:
            self.task.cancel()
        _AsyncStreams.on_event(self, entry)

    async def read_some(self, size=CHUNK):
        """Read at least one byte and at most `size`, which is limited to 64 KiB; b"" at the end of the stream."""
        if not self._ahead:
            return await _AsyncStreams.read_some(self, size)
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data

    def end(self, code=0):
        """End the call and free it."""
        handle, self._handle = self._handle, None
        if handle:
            self.queue.drop(self._key)
            lib.rxw_call_end(handle, code, None)


class _Served:
    """A service of a queue: makes a task for each call."""

    def __init__(self, queue, service):
        self.queue = queue
        self.service = service

    def on_event(self, entry):
        call = AsyncServerCall(self.queue, entry.call)
        call.task = self.queue.loop.create_task(self.run(call))
        self.queue.tasks.add(call.task)
        call.task.add_done_callback(self.done)
        call.task.rxw_call = call

    def done(self, task):
        self.queue.tasks.discard(task)
        task.rxw_call.end(_abi.RXW_USER_ABORT)  # a task that was cancelled before it began

    async def run(self, call):
        code = _abi.RXW_USER_ABORT
        try:
            code = await self.serve(call)
        except RxAbort as error:
            code = error.code or _abi.RXW_USER_ABORT
        except asyncio.CancelledError:
            raise
        except Exception:
            _log.exception("the service has failed")
        finally:
            service = self.service
            swaps = isinstance(service, rpc.Service) and service.rxw_swap_errno
            call.end(rpc.SWAPPED.get(code, code) if swaps else code)

    async def serve(self, call):
        service = self.service
        if not isinstance(service, rpc.Service):
            return await service(call) or 0
        word = await call.read(4)
        if len(word) < 4:
            return _abi.RXW_RPC_DECODE
        procedure, name = service.rxw_find(word)
        service.rxw_enter(call, procedure)
        if not procedure:
            return _abi.RXW_RPC_OPCODE
        try:
            values = await self.arguments(call, procedure)
        except DecodeError:
            return _abi.RXW_RPC_SS_UNMARSHAL
        result = getattr(service, name)(call, *values)
        if inspect.isawaitable(result):
            result = await result
        try:
            reply = procedure.reply(result)
        except EncodeError as error:
            _log.error("%s: the results cannot be encoded: %s", procedure.name, error)
            return _abi.RXW_RPC_SS_MARSHAL
        await call.write(reply)
        return 0

    async def arguments(self, call, procedure):
        """The arguments of a call. What has been read beyond them remains for the method."""
        limit, data, least = self.service.rxw_request_max, bytearray(), procedure.arguments.least
        while True:
            while len(data) < least:
                piece = await call.read_some()
                if not piece:
                    raise DecodeError("the stream ends too early")
                data += piece
            decoder = _PartDecoder(data, limit)
            try:
                values = procedure.get(procedure.arguments, decoder)
            except _More as more:
                least = len(data) + more.count
                continue
            call._ahead = bytes(data[decoder.at :])
            return values


def serve(endpoint, service_id, service, **options):
    """Add a service that is served in the running event loop, by a task for each call.

    `service` is an object of a generated service class, whose methods may be coroutines, or a coroutine function that
    gets each call, an AsyncServerCall. `options` are those of Endpoint.add_service(), and `deferred_max`.
    """
    queue = _Queue.of(endpoint)
    key = queue.add(_Served(queue, service))
    endpoint.add_service(service_id, None, queue=queue.handle, context=key, name=options.pop("name", type(service).__name__),
                         **options)


async def stop(endpoint, limit=0):
    """Refuse new calls and wait for those in progress, at most `limit` seconds; then close the endpoint."""
    queue = _Queue.of(endpoint)
    await asyncio.to_thread(endpoint.stop, limit)
    for task in list(queue.tasks):
        task.cancel()
    if queue.tasks:
        await asyncio.wait(list(queue.tasks))
    endpoint.close()
