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

from rxwire import _abi, core, rpc, xdr
from rxwire._abi import lib
from rxwire.core import CHUNK, Call, Connection, ServerCall, address_of, piece_size
from rxwire.errors import DecodeError, EncodeError, RxAbort, RxError, check

CHANNELS = 4  # calls of a connection at a time
BATCH = 64  # entries that are taken out of a queue together
PIECE = 1 << 20  # bytes that are copied of data that may change

_log = logging.getLogger("rxwire")


class _Queue:
    """The queue of an endpoint in one event loop. Entries have the key of an object as their `arg`."""

    def __init__(self, endpoint):
        made = C.c_void_p()
        check(lib.rxw_queue_create(endpoint.engine.handle, None, C.byref(made)), "queue")
        self.handle = made.value
        self.endpoint = endpoint
        self.users = 0  # pools and services
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
            for queue in list(endpoint._queues.values()):
                if queue.loop.is_closed():
                    queue.abandon()
            endpoint._queues[loop] = cls(endpoint)
        return endpoint._queues[loop]

    def add(self, owner, key=None):
        """The key, or a new one. owner.on_event(entry) gets its entries."""
        key = key or next(self._keys)
        self._objects[key] = owner
        return key

    def drop(self, key):
        self._objects.pop(key, None)
        if not self._objects and not self.users and not self.loop.is_closed():
            self.loop.call_soon(self._retire)

    def leave(self):
        """A pool has been closed."""
        self.users -= 1
        self._retire()

    def _retire(self):
        """Nobody uses the queue: free it and its descriptor."""
        if self._objects or self.users or not self.handle:
            return
        if lib.rxw_queue_destroy(self.handle) < 0:
            return  # a connection still has to announce a channel
        self.handle = None
        if not self.loop.is_closed():
            self.loop.remove_reader(self._descriptor)
        self.endpoint._queues.pop(self.loop, None)

    def abandon(self):
        """The event loop has ended: nobody waits for the calls any more."""
        for owner in list(self._objects.values()):
            if isinstance(owner, (AsyncCall, AsyncServerCall)):
                owner.end(_abi.RXW_USER_ABORT)
        self._objects = {key: owner for key, owner in self._objects.items() if isinstance(owner, _Served)}
        self.users = len(self._objects)
        self._retire()

    def _ready(self):
        if not self.handle:
            return
        count = check(lib.rxw_queue_next(self.handle, self._events, BATCH, 0), "queue")
        if count > 1:
            lib.rxw_batch_begin()
            # The tasks that are woken run first. What they send leaves together.
            self.loop.call_soon(self._end_batch)
        for i in range(count):
            entry = self._events[i]
            owner = self._objects.get(entry.arg)
            if not owner:
                continue
            try:
                owner.on_event(entry)
            except Exception as error:
                self.loop.call_exception_handler({"message": "an event of rxwire", "exception": error})

    def _end_batch(self):
        # After the callbacks that on_event() has scheduled.
        self.loop.call_soon(lib.rxw_batch_end)

    def cancel(self):
        """End the calls that are served, and waits for channels, before their endpoint is closed."""
        for owner in list(self._objects.values()):
            if isinstance(owner, AsyncServerCall):
                owner.end(_abi.RXW_RESTARTING)
            elif isinstance(owner, _Channel) and not self.loop.is_closed():
                owner.on_event(None)

    def close(self):
        if not self.loop.is_closed():
            self.loop.remove_reader(self._descriptor)
        handle, self.handle = self.handle, None
        check(lib.rxw_queue_destroy(handle), "queue")


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
        if connections < 1:
            raise ValueError(f"a pool has at least one connection, not {connections}")
        self._target = endpoint, address, service_id, security
        self.connections = [Connection(*self._target) for _ in range(connections)]
        self.queue = _Queue.of(endpoint)
        self.queue.users += 1
        self._closed = False
        # Keys by which the library may still announce a channel that nobody waits for, by places.
        self._keys = [[] for _ in range(connections)]
        self._channels = set()  # that tasks wait for
        self._free = collections.deque(list(range(connections)) * CHANNELS)  # places in `connections`
        self._waiting = collections.deque()

    async def begin(self, deadline=None):
        """Begin a call. `deadline`: seconds, with the wait for a channel; then RxTimeout is raised."""
        end = None if deadline is None else self.queue.loop.time() + deadline
        place = self._free.popleft() if self._free else await self._until(end, self._wait_free())
        try:
            return await self._begin_at(place, end)
        except BaseException:
            self.release(place)
            raise

    async def _begin_at(self, place, end):
        replaced = False
        while True:
            channel, keys = _Channel(self.queue), self._keys[place]
            key = self.queue.add(channel, keys.pop() if keys else None)
            connection = self.connections[place]
            try:
                return AsyncCall(self, connection, self._left(end), key, place)
            except RxError as error:
                if error.result != _abi.RXW_EAGAIN:
                    raise
                self._channels.add(channel)
                await self._until(end, channel.future)
            except RxAbort:
                # A connection that has failed stays so. One failure of the next one is that of the call.
                if replaced or self._closed or not connection.error():
                    raise
                self._replace(place, connection)
                replaced = True
            finally:
                self._channels.discard(channel)
                if self.queue._objects.get(key) is channel:
                    self.queue.drop(key)
                    keys.append(key)

    def _replace(self, place, failed):
        if self.connections[place] is failed:
            self.connections[place] = Connection(*self._target)
            failed.close()

    def _left(self, end):
        return None if end is None else end - self.queue.loop.time()

    async def _until(self, end, waiting):
        """The result of what is waited for. RxTimeout if there is none before the end."""
        try:
            async with asyncio.timeout_at(end):
                return await waiting
        except TimeoutError:
            raise RxAbort(_abi.RXW_CALL_TIMEOUT, _abi.RXW_ORIGIN_LOCAL) from None

    async def _wait_free(self):
        future = self.queue.loop.create_future()
        self._waiting.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release(future.result())
            raise

    def release(self, place):
        """A channel of the connection at this place is free."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(place)
                return
        self._free.append(place)

    def close(self):
        """Release the connections. Calls in progress continue; tasks that wait to begin one get RxError."""
        for connection in self.connections:
            connection.close()
        if not self.queue.loop.is_closed():
            for channel in self._channels:
                channel.on_event(None)
            for future in self._waiting:
                if not future.done():
                    future.set_exception(RxError(_abi.RXW_ESTATE, "Pool is closed"))
        if not self._closed:
            self._closed = True
            self.queue.leave()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _AsyncStreams:
    """The streams of a call, as coroutines. One reading and one writing task at a time."""

    _pending = 0
    _waiting = ()  # a future of the reading task, and one of the writing task

    def on_event(self, entry):
        self._pending |= entry.events
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def _wake(self):
        """The call has ended: tasks that wait for it find that it is closed."""
        self._pending = -1
        for future in self._waiting:
            if not future.done() and not self.queue.loop.is_closed():
                future.set_result(None)

    async def wait(self, events):
        """Wait until one of the events RXW_EVENT_… has been reported."""
        while not self._pending & events:
            future = self.queue.loop.create_future()
            self._waiting += (future,)
            try:
                await future
            finally:
                self._waiting = tuple(other for other in self._waiting if other is not future)
        # RXW_EVENT_DONE stays: the other task waits for it as well.
        self._pending &= ~events | _abi.RXW_EVENT_DONE

    async def _wait_room(self):
        self.check(lib.rxw_call_set_events(self.handle, _abi.RXW_EVENT_WRITE | self.EVENTS))
        await self.wait(_abi.RXW_EVENT_WRITE | _abi.RXW_EVENT_DONE)
        self.check(lib.rxw_call_set_events(self.handle, self.EVENTS))

    async def write(self, data):
        """Write bytes, a bytearray or a memoryview."""
        if isinstance(data, bytes):
            await self._write_bytes(data)
            return
        view = memoryview(data).cast("B")
        for at in range(0, len(view), PIECE):
            await self._write_bytes(bytes(view[at : at + PIECE]))

    async def _write_bytes(self, data):
        at, end = address_of(data), address_of(data) + len(data)
        while at < end:
            count = lib.rxw_call_write(self.handle, at, end - at)
            if count == -_abi.RXW_EAGAIN:
                await self._wait_room()
            else:
                at += self.check(count)

    async def _again(self, function):
        while True:
            result = function(self.handle)
            if result != -_abi.RXW_EAGAIN:
                return self.check(result)
            await self._wait_room()

    async def sendfile(self, file, offset, length):
        """Write bytes of a file or descriptor. Returns their number, which is smaller at the end of the file."""
        descriptor, done = core.file_part(file, offset, length), 0
        while done < length:
            count = await self._again(
                lambda handle: lib.rxw_call_sendfile(handle, descriptor, offset + done, length - done))
            if not count:
                break
            done += count
        return done

    async def flush(self):
        """Send what has been written, including a partly filled packet."""
        await self._again(lib.rxw_call_flush)

    async def read_some(self, size=CHUNK):
        """Read at least one byte and at most `size`, which is limited to 64 KiB; b"" at the end of the stream."""
        buffer, size = self.queue.scratch, piece_size(size)
        while True:
            count = lib.rxw_call_read_some(self.handle, buffer, size)
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

    def __init__(self, pool, connection, deadline, key, place):
        self.pool = pool
        self._place = place
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
        if not self._handle or self._made_in != core._process:
            self._handle = None
            return 0
        _abi.code(code)
        self.queue.drop(self._key)
        try:
            return Call.end(self, code)
        finally:
            self._wake()
            self.pool.release(self._place)

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
            reply = await self.read(rpc.REPLY_MAX)
        except BaseException:
            self.end(_abi.RXW_USER_ABORT)
            raise
        return rpc.finish(self, self.procedure, reply)


class Opening:
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
        call.procedure = procedure
        try:
            await call.write(request)
            await call.send_end()
            reply = await call.read(rpc.REPLY_MAX)
        except BaseException:
            call.end(_abi.RXW_USER_ABORT)
            raise
        return rpc.finish(call, procedure, reply)

    def rxw_stream(self, procedure, values, deadline=None):
        """Call a split procedure: an AsyncStream, by await or async with."""
        return Opening(self._rxw_open(procedure, procedure.request(values), deadline))

    async def _rxw_open(self, procedure, request, deadline):
        call = await self.rxw_pool.begin(deadline)
        call.__class__ = AsyncStream
        call.procedure = procedure
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
    """Decodes the beginning of a stream, of which more may follow.

    When data are missing, another decoder begins again with more of them. `kept` is the same dictionary for all: it has
    the elements that are complete, so that none is decoded twice.
    """

    __slots__ = ("kept", "limit")

    def __init__(self, data, kept, limit):
        super().__init__(data)
        self.kept = kept
        self.limit = limit

    def items(self, owner, step, more):
        """A list of the values of step(), which gets those so far, as long as more() is true of it."""
        key = self.at, id(owner)
        values, self.at = self.kept.pop(key, ([], self.at))
        at = self.at
        try:
            while more(values):
                values.append(step(self, values))
                self.forget(at)
                at = self.at
        finally:
            self.kept[key] = values, at
        return values

    def forget(self, start):
        """What is kept from an offset on is part of a value that is complete."""
        for key in [key for key in self.kept if key[0] >= start]:
            del self.kept[key]

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
        self._ahead = memoryview(b"")  # read, not yet taken by read_some()
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
        data, self._ahead = bytes(self._ahead[:size]), self._ahead[size:]
        return data

    def end(self, code=0):
        """End the call and free it."""
        _abi.code(code)
        handle, self._handle = self._handle, None
        if handle and self._made_in == core._process:
            self.queue.drop(self._key)
            lib.rxw_call_end(handle, code, None)
            self._wake()


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
            code = _abi.code(await self.serve(call))
        except RxAbort as error:
            code = error.code or _abi.RXW_USER_ABORT
        except asyncio.CancelledError:
            raise
        except Exception:
            if call._handle:  # otherwise the endpoint was closed meanwhile
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
        """The arguments of a call. What has been read beyond them remains for the method of a split procedure."""
        limit, data, least, kept = self.service.rxw_request_max, bytearray(), procedure.arguments.least, {}
        if not procedure.split:
            # Decoded once: a client could send its request in small pieces.
            return procedure.get(procedure.arguments, xdr.Decoder(await call.read(limit)))
        while True:
            while len(data) < least:
                piece = await call.read_some()
                if not piece:
                    raise DecodeError("the stream ends too early")
                data += piece
            decoder = _PartDecoder(data, kept, limit)
            try:
                values = procedure.get(procedure.arguments, decoder)
            except _More as more:
                least = len(data) + more.count
                continue
            call._ahead = memoryview(data)[decoder.at :]
            return values


def serve(endpoint, service_id, service, **options):
    """Add a service that is served in the running event loop, by a task for each call.

    `service` is an object of a generated service class, whose methods may be coroutines, or a coroutine function that
    gets each call, an AsyncServerCall. `options` are those of Endpoint.add_service(), and `deferred_max`.
    """
    queue = _Queue.of(endpoint)
    key = queue.add(_Served(queue, service))
    queue.users += 1
    try:
        endpoint.add_service(service_id, None, queue=queue.handle, context=key,
                             name=options.pop("name", type(service).__name__), **options)
    except BaseException:
        queue.users -= 1
        queue.drop(key)
        raise


async def stop(endpoint, limit=0):
    """Refuse new calls and wait for those in progress, at most `limit` seconds; then close the endpoint."""
    queue = _Queue.of(endpoint)
    await asyncio.to_thread(endpoint.stop, limit)
    for task in list(queue.tasks):
        task.cancel()
    if queue.tasks:
        await asyncio.wait(list(queue.tasks))
    endpoint.close()
