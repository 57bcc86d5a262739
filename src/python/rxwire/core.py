# SPDX-License-Identifier: BSD-2-Clause
"""Engines, endpoints, connections, calls and credentials: the objects of the library, blocking.

Functions of the library run without the interpreter's lock, so that other threads continue while one waits.
"""
import atexit
import collections
import ctypes as C
import logging
import math
import os
import socket
import struct
import threading
import time
import weakref

from rxwire import _abi, _metrics
from rxwire._abi import lib
from rxwire.errors import RxAbort, RxError, check

CHUNK = 65536  # bytes that one call of the library reads
SLICE = 100  # ms that the main thread waits before signals are handled
_log = logging.getLogger("rxwire")
_process = 0  # how many times fork() was called on the way to this process
_scratch = threading.local()
_open_endpoints = set()  # closed at exit: a thread of the library must not enter an interpreter that has ended


def scratch():
    """A buffer of CHUNK bytes of this thread."""
    try:
        return _scratch.buffer
    except AttributeError:
        _scratch.buffer = C.create_string_buffer(CHUNK)
        return _scratch.buffer


def _after_fork():
    """In the child: the endpoints are those of the parent."""
    global _process
    _process += 1
    _open_endpoints.clear()


os.register_at_fork(after_in_child=_after_fork)


def milliseconds(seconds):
    """A time limit for the library; None is 0, no limit."""
    if seconds is None:
        return 0
    if not seconds < (1 << 32) / 1000 - 1:
        raise ValueError(f"{seconds} seconds are too long")
    return max(1, math.ceil(seconds * 1000))


def _limit(seconds):
    """Milliseconds of a limit that may be 0."""
    return milliseconds(seconds) if seconds else 0


def _text(value):
    return value.encode() if isinstance(value, str) else value


def pack_address(address, family=socket.AF_UNSPEC):
    """struct sockaddr of a pair of a host and a port. The host is a name or an IPv4 or IPv6 address.

    A name may have several addresses: the first one of the family.
    """
    host, port = address[:2]
    _abi.number(C.c_uint16, port, "a port")
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)
    except socket.gaierror:
        if family == socket.AF_UNSPEC or not socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
            raise
        version = "IPv4" if family == socket.AF_INET else "IPv6"
        raise RxError(_abi.RXW_EINVAL, f"{host} has no {version} address, which the endpoint needs") from None
    family, _, _, _, found = found[0]
    if family == socket.AF_INET:
        return struct.pack("=H", family) + struct.pack("!H", port) + socket.inet_aton(found[0]) + bytes(8)
    packed = socket.inet_pton(family, found[0].partition("%")[0])
    return struct.pack("=H", family) + struct.pack("!HI", port, found[2]) + packed + struct.pack("=I", found[3])


def unpack_address(data):
    """The host and the port of a struct sockaddr."""
    family, port = struct.unpack_from("=H", data)[0], struct.unpack_from("!H", data, 2)[0]
    if family == socket.AF_INET:
        return socket.inet_ntoa(data[4:8]), port
    return socket.inet_ntop(socket.AF_INET6, data[8:24]), port


def _read_address(function, handle):
    data, length = C.create_string_buffer(128), C.c_uint32(128)
    check(function(handle, data, C.byref(length)))
    return unpack_address(data.raw) if length.value else None


def _make_config(settings):
    config = _abi.rxw_config()
    lib.rxw_config_init(C.byref(config), C.sizeof(config))
    message = C.create_string_buffer(256)
    for name, value in settings.items():
        if isinstance(value, bool):
            value = "on" if value else "off"
        result = lib.rxw_config_set(C.byref(config), _text(name), _text(str(value)), message, len(message))
        check(result, name, message.value.decode())
    return config


class _Object:
    """An object of the library, released by close() or at the end of a with statement."""

    _handle = None

    @property
    def handle(self):
        if not self._handle:
            raise RxError(_abi.RXW_ESTATE, f"{type(self).__name__} is closed")
        return self._handle

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.close()
        except RxError as error:
            if not kind:
                raise
            _log.warning("%s cannot be closed after an exception: %s", type(self).__name__, error)


class _EngineObject(_Object):
    """An object of an engine, which a child of fork() cannot use."""

    def __new__(cls, *_, **__):
        made = super().__new__(cls)
        made._made_in = _process
        return made

    @property
    def handle(self):
        if not self._handle:
            raise RxError(_abi.RXW_ESTATE, f"{type(self).__name__} is closed")
        if self._made_in != _process:
            raise RxError(_abi.RXW_ESTATE, f"{type(self).__name__} of the parent process; after fork() make one in the child")
        return self._handle


class Engine(_EngineObject):
    """Configuration and packet memory of endpoints. `config` has tunables by name: rxwire.conf(5)."""

    def __init__(self, config=None):
        made = C.c_void_p()
        check(lib.rxw_engine_create(C.byref(_make_config(config)) if config else None, C.byref(made)), "engine")
        self._handle = made.value

    def memory(self):
        """Bytes of packet memory in use, and the maximum so far."""
        peak = C.c_size_t()
        return lib.rxw_engine_memory(self.handle, C.byref(peak)), peak.value

    def close(self):
        if self._handle:
            check(lib.rxw_engine_destroy(self._handle), "engine")
            self._handle = None


# rxkad_parts: primary, instance and cell of rxkad_name, which dots in names make ambiguous.
Identity = collections.namedtuple("Identity", "index level local name rxkad_name expires rxkad_parts")


def _read_identity(function, handle):
    found = _abi.options(_abi.rxw_identity)
    check(function(handle, C.byref(found)), "identity")
    name, other, *parts = (text if text is None else text.decode(errors="surrogateescape") for text in (
        found.name, found.rxkad_name, found.rxkad_primary, found.rxkad_instance, found.rxkad_cell))
    return Identity(found.index, found.level, found.local, name, other, found.expires,
                    tuple(parts) if other is not None else None)


class Keys(_Object):
    """A table of service keys: rxw_keys(3)."""

    def __init__(self):
        made = C.c_void_p()
        check(lib.rxw_keys_create(C.byref(made)))
        self._handle = made.value

    def add(self, kind, kvno, enctype, key):
        self._check_numbers(kind, kvno, enctype)
        check(lib.rxw_keys_add(self.handle, kind, kvno, enctype, key, len(key)), "key")

    @staticmethod
    def _check_numbers(kind, kvno, enctype):
        _abi.number(C.c_uint, kind, "the kind of a key")
        _abi.number(C.c_int32, kvno, "the version of a key")
        _abi.number(C.c_int32, enctype, "an encryption type")

    def generate(self, kind, kvno, enctype):
        self._check_numbers(kind, kvno, enctype)
        check(lib.rxw_keys_generate(self.handle, kind, kvno, enctype), "key")

    def load(self, path, whose=None):
        """Load a keytab, KeyFileExt or KeyFile. Returns a warning, or an empty string."""
        error = C.create_string_buffer(512)
        result = lib.rxw_keys_load(self.handle, _text(path), _text(whose), error, len(error))
        check(result, "keys", error.value.decode(errors="replace"))
        return error.value.decode(errors="replace")

    def reload(self):
        """Load changed files again. Returns the number of files whose keys have changed."""
        error = C.create_string_buffer(512)
        result = lib.rxw_keys_reload(self.handle, error, len(error))
        return check(result, "keys", error.value.decode(errors="replace"))

    def close(self):
        handle, self._handle = self._handle, None
        lib.rxw_keys_unref(handle)

    __del__ = close


class Security(_Object):
    """A security class with its keys, for services: made by rxkad_server() and rxgk_server()."""

    def __init__(self, handle):
        self._handle = handle

    def close(self):
        handle, self._handle = self._handle, None
        lib.rxw_security_unref(handle)

    __del__ = close


def rxkad_server(keys, level_min=_abi.RXW_LEVEL_CLEAR, allow_dotted=False, local_realm=None):
    """The server side of rxkad: rxw_rxkad(3)."""
    made = C.c_void_p()
    options = _abi.options(_abi.rxw_rxkad_server_options, keys=keys.handle, level_min=level_min,
                           allow_dotted=allow_dotted, local_realm=_text(local_realm))
    check(lib.rxw_rxkad_server(C.byref(options), C.byref(made)), "rxkad")
    return Security(made.value)


def rxgk_server(keys, level_min=_abi.RXW_LEVEL_CLEAR, index=_abi.RXW_RXGK_INDEX):
    """The server side of rxgk: rxw_rxgk(3)."""
    made = C.c_void_p()
    options = _abi.options(_abi.rxw_rxgk_server_options, keys=keys.handle, level_min=level_min, index=index)
    check(lib.rxw_rxgk_server(C.byref(options), C.byref(made)), "rxgk")
    return Security(made.value)


class Token(_Object):
    """Credentials of a client: rxw_token(3). May wait for the KDC and for the negotiation service.

    `source` is one of RXW_TOKEN_…, `index` RXW_RXKAD_INDEX, RXW_RXGK_INDEX or RXW_RXGK_INDEX_YFS. `lifetime` is in
    seconds, `server` the address of the negotiation service (rxgk).
    """

    def __init__(self, cell, *, source=_abi.RXW_TOKEN_CACHE, index=_abi.RXW_RXKAD_INDEX, level=_abi.RXW_LEVEL_CRYPT,
                 realm=None, cache=None, keytab=None, client=None, keys=None, lifetime=0, server=None, endpoint=None):
        made, error = C.c_void_p(), C.create_string_buffer(512)
        address = pack_address(server) if server else None
        options = _abi.options(
            _abi.rxw_token_options, source=source, index=index, level=level, cell=_text(cell), realm=_text(realm),
            cache=_text(cache), keytab=_text(keytab), client=_text(client), keys=keys and keys.handle,
            lifetime_s=lifetime, server=C.cast(address, C.c_void_p) if address else None,
            server_len=len(address) if address else 0, endpoint=endpoint and endpoint.handle)
        result = lib.rxw_token_create(C.byref(options), C.byref(made), error, len(error))
        check(result, "token", error.value.decode(errors="replace"))
        self._handle = made.value

    def expires(self):
        """Seconds since 1970."""
        info = _abi.options(_abi.rxw_token_details)
        check(lib.rxw_token_info(self.handle, C.byref(info)))
        return info.expires

    @property
    def security(self):
        return lib.rxw_token_security(self.handle)

    def close(self):
        handle, self._handle = self._handle, None
        lib.rxw_token_unref(handle)

    __del__ = close


class Endpoint(_EngineObject):
    """A UDP port, for calls, services or both.

    `address` is the host and the port to bind; None: any IPv4 address and a free port. `dual_stack`: the address is "::",
    and accepts IPv4 as well. `sockets` are bound sockets or descriptors to use instead. `config` has tunables by name. Without an engine the endpoint has one of its own.
    """

    def __init__(self, engine=None, address=None, *, server=False, paused=False, dual_stack=False, sockets=(),
                 config=None):
        self._handle = None
        self._connections = weakref.WeakSet()
        self._services = []  # what the library has pointers to
        self._queues = {}  # of event loops: rxwire.aio
        packed = pack_address(address) if address else None
        settings = C.pointer(_make_config(config)) if config else None
        descriptors = [s if isinstance(s, int) else s.fileno() for s in sockets]
        options = _abi.options(
            _abi.rxw_endpoint_options, address=C.cast(packed, C.c_void_p) if packed else None,
            address_len=len(packed) if packed else 0, config=settings, server=bool(server), paused=bool(paused),
            dual_stack=bool(dual_stack),
            sockets=(C.c_int * len(descriptors))(*descriptors) if descriptors else None,
            socket_count=len(descriptors))
        made = C.c_void_p()
        self.own_engine = None if engine else Engine(config)
        self.engine = engine or self.own_engine
        try:
            check(lib.rxw_endpoint_create(self.engine.handle, C.byref(options), C.byref(made)), f"endpoint {address}")
        except RxError:
            if self.own_engine:
                self.own_engine.close()
            raise
        self._handle = made.value
        self._family = socket.AF_UNSPEC if dual_stack or descriptors else self._bound_family()
        _open_endpoints.add(self)

    def _bound_family(self):
        data, length = C.create_string_buffer(128), C.c_uint32(128)
        check(lib.rxw_endpoint_address(self._handle, data, C.byref(length)))
        return struct.unpack_from("=H", data.raw)[0]

    @property
    def address(self):
        """The host and the port to which the endpoint is bound."""
        return _read_address(lib.rxw_endpoint_address, self.handle)

    def set(self, name, value):
        """Change a tunable while the endpoint exists: rxw_endpoint_create(3) says which."""
        value = ("off", "on")[value] if isinstance(value, bool) else str(value)
        check(lib.rxw_endpoint_set(self.handle, _text(name), _text(value)), name)

    def start(self):
        """Start to receive on an endpoint that was created paused."""
        check(lib.rxw_endpoint_start(self.handle), "endpoint")

    def connect(self, address, service_id, security=None):
        """A client connection to a service. `security` is a Token, or None for the null class."""
        return Connection(self, address, service_id, security)

    def pool(self, address, service_id, security=None, connections=4):
        """A Pool of connections to a service, for four calls at a time each."""
        return Pool(self, address, service_id, security, connections)

    def add_service(self, service_id, handler, *, name=None, security=None, level_min=0, workers_max=0, idle=None,
                    flags=0, **more):
        """Add a service.

        `handler` is an object of a generated service class, or a function that gets each call, on a thread of the
        library, several at a time. It returns None or a code; an exception RxAbort is a code too. `security` is a list
        of Security objects, and of None for the null class; without it the null class is offered. `idle` is in seconds.
        Returns a Service, by which it can be removed.
        """
        serve = getattr(handler, "rxw_serve", handler)
        function = _abi.handler_fn(lambda call, _: _serve(serve, call)) if handler else _abi.handler_fn()
        offered = [item.handle if item else lib.rxw_security_null() for item in security] if security else []
        options = _abi.options(
            _abi.rxw_service_options, id=service_id, name=_text(name or type(handler).__name__), handler=function,
            flags=flags, workers_max=workers_max, idle_ms=milliseconds(idle), level_min=level_min,
            security=(_abi.handle * len(offered))(*offered) if offered else None, security_count=len(offered), **more)
        self._services.append((function, security))
        made = C.c_void_p()
        check(lib.rxw_service_add(self.handle, C.byref(options), C.byref(made)), f"service {service_id}")
        return Service(self, made.value)

    def metrics(self):
        """Statistics as text for Prometheus: rxw_metrics(3)."""
        return _metrics.text(self.handle, self.address)

    def stop(self, limit=0):
        """Refuse new calls and wait for those in progress; abort them after `limit` seconds. False: some were."""
        result = lib.rxw_endpoint_stop(self.handle, _limit(limit))
        if result == -_abi.RXW_ETIMEDOUT:
            return False
        check(result, "endpoint")
        return True

    def close(self):
        """Release all connections, stop, and free the endpoint. Calls must have ended."""
        if not self._handle:
            return
        if self._made_in != _process:
            self._close_inherited()
            return
        for connection in list(self._connections):
            connection.close()
        for queue in self._queues.values():
            queue.cancel()
        check(lib.rxw_endpoint_destroy(self._handle), "endpoint")
        self._handle = None
        _open_endpoints.discard(self)
        self._services.clear()
        for queue in self._queues.values():
            queue.close()
        self._queues.clear()
        if self.own_engine:
            self.own_engine.close()


    def _close_inherited(self):
        """In a child of fork(): close its descriptors. Event loops and connections are those of the parent."""
        lib.rxw_endpoint_destroy(self._handle)
        self._handle = None
        for queue in self._queues.values():
            lib.rxw_queue_destroy(queue.handle)
        self._queues.clear()
        if self.own_engine:
            self.own_engine.close()

    def __exit__(self, kind, *rest):
        if kind and self._handle and self._made_in == _process:
            # What the statement has left open must not hide its exception.
            for connection in list(self._connections):
                connection._function("abort")(connection._handle, _abi.RXW_USER_ABORT)
        super().__exit__(kind, *rest)


class Service:
    """A service of an endpoint."""

    def __init__(self, endpoint, handle):
        self._endpoint = endpoint
        self._handle = handle

    def remove(self, limit=0):
        """Refuse new calls and wait for those in progress; abort them after `limit` seconds. False: some were."""
        limit = _limit(limit)
        if not self._handle or not self._endpoint._handle:
            raise RxError(_abi.RXW_ESTATE, "the service was removed before")
        result = lib.rxw_service_remove(self._handle, limit)
        if result != -_abi.RXW_ETIMEDOUT:
            check(result, "service")
        self._handle = None  # from now on it may be that of another service
        return not result


@atexit.register
def _close_all():
    for endpoint in list(_open_endpoints):
        lib.rxw_endpoint_stop(endpoint.handle, 0)
        lib.rxw_endpoint_destroy(endpoint.handle)


class _Channels(_EngineObject):
    """What calls begin on: a connection or a pool. `_functions` are those of the library with its prefix."""

    _functions = None

    def _open(self, endpoint, address, service_id, security, *more):
        self.endpoint = endpoint
        self._freed = threading.Condition()  # a call has ended; only notified while threads wait
        self._waiting = 0
        self._aborts = 0  # calls of abort(); _freed
        _abi.number(C.c_uint16, service_id, "a service id")
        packed, made = pack_address(address, endpoint._family), C.c_void_p()
        chosen = security.security if security else None
        check(self._function("create")(endpoint.handle, packed, len(packed), service_id, chosen, *more, C.byref(made)),
              f"connection to {address}")
        self._handle = made.value
        endpoint._connections.add(self)

    def _function(self, name):
        return getattr(lib, f"{self._functions}_{name}")

    def _begin_call(self, options, made):
        return lib.rxw_call_begin(self.handle, options, made)

    def _note_end(self):
        if self._waiting:
            with self._freed:
                self._freed.notify_all()

    def _wait_end(self, seconds):
        """Wait until a call ends, at most so long. Signals are handled."""
        with self._freed:
            self._waiting += 1
            try:
                self._freed.wait(seconds)
            finally:
                self._waiting -= 1

    def begin(self, deadline=None):
        """Begin a call; wait for a channel if none is free. `deadline`: seconds from now, then its code is -3."""
        return Call(self, deadline)

    def set_timeouts(self, dead=None, idle=None, hard=None):
        """Set the timeouts of later calls, in seconds; None leaves one unchanged."""
        check(self._function("set_timeouts")(self.handle, milliseconds(dead), milliseconds(idle), milliseconds(hard)),
              "timeouts")

    def abort(self, code=_abi.RXW_USER_ABORT):
        """Abort all calls. The connection, or pool, remains usable."""
        check(self._function("abort")(self.handle, _abi.code(code)))
        with self._freed:  # the main thread may wait for a channel
            self._aborts += 1
            self._freed.notify_all()

    def close(self):
        handle, self._handle = self._handle, None
        if handle:
            self._function("release")(handle)

    def __del__(self):
        self.close()


class Connection(_Channels):
    """The client side of a connection: up to four calls at a time. Any thread; the calls need one thread each."""

    _functions = "rxw_connection"

    def __init__(self, endpoint, address, service_id, security=None):
        self._open(endpoint, address, service_id, security)

    def error(self):
        """The error of the connection as an exception RxAbort, or None. A connection that has failed remains so."""
        origin = C.c_uint()
        code = lib.rxw_connection_error(self.handle, C.byref(origin))
        return RxAbort(code, origin.value) if code else None

    @property
    def identity(self):
        """The identity by which the server knows this client."""
        return _read_identity(lib.rxw_connection_identity, self.handle)


class Pool(_Channels):
    """Connections to one service, for four calls each: what a client takes in place of a Connection.

    Connections are made when calls need them, and replaced when they have failed. Further calls wait for a free
    channel. Any thread; the calls need one thread each.
    """

    _functions = "rxw_connpool"

    def __init__(self, endpoint, address, service_id, security=None, connections=4):
        if connections < 1:
            raise ValueError(f"a pool has at least one connection, not {connections}")
        self._entered = 0  # threads that begin a call; _freed
        self._code = _abi.RXW_USER_ABORT  # of the latest abort()
        self._open(endpoint, address, service_id, security, _abi.number(C.c_uint, connections, "a number of connections"))

    def _begin_call(self, options, made):
        with self._freed:  # close() waits for those that have entered
            handle = self.handle
            self._entered += 1
        try:
            return lib.rxw_connpool_begin(handle, options, made)
        finally:
            with self._freed:
                self._entered -= 1
                self._freed.notify_all()

    def error(self):
        """The exception for a call that abort() has prevented from beginning."""
        return RxAbort(self._code, _abi.RXW_ORIGIN_LOCAL)

    def abort(self, code=_abi.RXW_USER_ABORT):
        """Abort all calls, and waits for a channel. The pool remains usable."""
        self._code = _abi.code(code) or _abi.RXW_USER_ABORT
        super().abort(code)

    def close(self):
        """Release the connections. Calls in progress go on, unless threads wait for a channel: then all are aborted."""
        handle, self._handle = self._handle, None
        if handle and self._made_in == _process:
            with self._freed:
                while self._entered:
                    lib.rxw_connpool_abort(handle, self._code)
                    self._freed.wait(SLICE / 1000)
        if handle:
            lib.rxw_connpool_release(handle)


def address_of(data):
    """The address of the bytes of an object of class bytes."""
    return C.cast(data, C.c_void_p).value


def piece_size(size):
    """How much of `size` bytes one call of the library reads."""
    if size < 0:
        raise ValueError(f"{size} bytes cannot be read")
    return min(size, CHUNK)


def file_part(file, offset, length):
    """The descriptor of a file, of which a part is to be sent."""
    _abi.number(C.c_int64, offset, "an offset")
    _abi.number(C.c_size_t, length, "a length")
    return file if isinstance(file, int) else file.fileno()


TURNED_BACK = {108: 28, 109: 122}  # ENOSPC and EDQUOT, as servers of some packages send them (rx-protocol 9.4)


class _Streams(_EngineObject):
    """The streams of a call. One reading and one writing thread at a time."""

    procedure = None  # of a generated module
    _queue = None  # of a call that the main thread has begun: what it waits at

    def _abort(self, code, origin):
        """The exception for the error of the call."""
        procedure = self.procedure
        if not procedure:
            return RxAbort(code, origin)
        if origin == _abi.RXW_ORIGIN_PEER and procedure.swap_errno:
            code = TURNED_BACK.get(code, code)
        text = procedure.codes.get(code) if origin == _abi.RXW_ORIGIN_PEER else None
        return RxAbort(code, origin, text, procedure.name)

    def _wait(self, events):
        """Wait until an event may hold. Signals are handled after SLICE at the latest."""
        self.check(lib.rxw_call_set_events(self.handle, events | _abi.RXW_EVENT_DONE))
        event = _abi.rxw_queue_event()
        check(lib.rxw_queue_next(self._queue, C.byref(event), 1, SLICE), "call")

    def _again(self, function, *arguments, events=_abi.RXW_EVENT_WRITE):
        """The result of the function, which is called again while it has to wait."""
        while True:
            result = function(self.handle, *arguments)
            if result != -_abi.RXW_EAGAIN:
                return self.check(result)
            self._wait(events)

    def _write(self, address, length):
        done = self._again(lib.rxw_call_write, address, length)
        while done < length:
            done += self._again(lib.rxw_call_write, address + done, length - done)

    def _read(self, address, length):
        done = count = self._again(lib.rxw_call_read, address, length, events=_abi.RXW_EVENT_READ)
        while self._queue and count and done < length:
            count = self._again(lib.rxw_call_read, address + done, length - done, events=_abi.RXW_EVENT_READ)
            done += count
        return done

    def check(self, result):
        """The result if it is not negative; otherwise raises RxAbort, or RxError if the call has not failed."""
        if result < 0:
            if result == -_abi.RXW_ECALL:
                raise self.error() or RxError(result)
            check(result, "call")
        return result

    def error(self):
        """The error of the call as an exception RxAbort, or None."""
        origin = C.c_uint()
        code = lib.rxw_call_error(self.handle, C.byref(origin))
        return self._abort(code, origin.value) if code else None

    def write(self, data):
        """Write bytes, a bytearray or a memoryview; wait while the send queue is full."""
        if isinstance(data, bytes):
            self._write(address_of(data), len(data))
            return
        view = memoryview(data).cast("B")
        if view.readonly:
            for at in range(0, len(view), CHUNK):
                piece = bytes(view[at : at + CHUNK])
                self._write(address_of(piece), len(piece))
        elif len(view):
            array = (C.c_char * len(view)).from_buffer(view)
            self._write(C.addressof(array), len(view))

    def sendfile(self, file, offset, length):
        """Write bytes of a file or descriptor. Returns their number, which is smaller at the end of the file."""
        descriptor = file_part(file, offset, length)
        done = count = self._again(lib.rxw_call_sendfile, descriptor, offset, length)
        while self._queue and count and done < length:
            count = self._again(lib.rxw_call_sendfile, descriptor, offset + done, length - done)
            done += count
        return done

    def flush(self):
        """Send what has been written, including a partly filled packet."""
        self._again(lib.rxw_call_flush)

    def read(self, size=-1):
        """Read `size` bytes, fewer only at the end of the stream; all that remain if it is negative."""
        if 0 <= size <= CHUNK:
            buffer = scratch()
            return C.string_at(buffer, self._read(C.addressof(buffer), size))
        data = bytearray()
        while size < 0 or len(data) < size:
            piece = self.read(CHUNK if size < 0 else min(CHUNK, size - len(data)))
            if not piece:
                break
            data += piece
        return bytes(data)

    def read_some(self, size=CHUNK):
        """Read at least one byte and at most `size`, which is limited to 64 KiB; b"" at the end of the stream."""
        buffer = scratch()
        size = self._again(lib.rxw_call_read_some, buffer, piece_size(size), events=_abi.RXW_EVENT_READ)
        return C.string_at(buffer, size)

    def readinto(self, buffer):
        """Read into a bytearray or a writable memoryview. Returns the number of bytes, fewer at the end."""
        view = memoryview(buffer).cast("B")
        if not len(view):
            return 0
        array = (C.c_char * len(view)).from_buffer(view)
        return self._read(C.addressof(array), len(view))

    @property
    def peer(self):
        """The address and the port of the peer."""
        return _read_address(lib.rxw_call_peer, self.handle)


class Call(_Streams):
    """A call of a client. One thread at a time, except abort(). Ended by end(), or by a with statement."""

    def __init__(self, connection, deadline=None, flags=0, **options):
        self.connection = connection
        self._handle = None
        self._lock = threading.Lock()  # _handle, so that abort() can run on another thread
        if not flags and threading.current_thread() is threading.main_thread():
            self._begin_in_slices(deadline)
        else:
            self._begin(deadline, flags, options)

    def _begin(self, deadline, flags, options):
        made = C.c_void_p()
        options = _abi.options(_abi.rxw_call_options, flags=flags, deadline_ms=milliseconds(deadline), **options)
        result = self.connection._begin_call(C.byref(options), C.byref(made))
        if result == -_abi.RXW_ETIMEDOUT:
            raise RxAbort(_abi.RXW_CALL_TIMEOUT, _abi.RXW_ORIGIN_LOCAL)
        if result == -_abi.RXW_ECALL:  # the connection has failed, or was aborted while this thread waited
            raise self.connection.error() or RxAbort(_abi.RXW_USER_ABORT, _abi.RXW_ORIGIN_LOCAL)
        check(result, "call")
        self._handle = made.value

    def _begin_in_slices(self, deadline):
        """The main thread handles signals while it waits: for a channel here, for the peer in _wait()."""
        end = None if deadline is None else time.monotonic() + deadline
        connection, aborts = self.connection, self.connection._aborts
        while True:
            left = None if end is None else end - time.monotonic()
            try:
                self._begin(left, _abi.RXW_CALL_NONBLOCK, {})
                break
            except RxError as error:
                if error.result != _abi.RXW_EAGAIN:
                    raise
            if left is not None and left <= 0:
                raise RxAbort(_abi.RXW_CALL_TIMEOUT, _abi.RXW_ORIGIN_LOCAL)
            slice = SLICE / 1000
            connection._wait_end(slice if left is None else min(left, slice))
            if connection._aborts != aborts:
                raise connection.error() or RxAbort(_abi.RXW_USER_ABORT, _abi.RXW_ORIGIN_LOCAL)
        made = C.c_void_p()
        try:
            check(lib.rxw_queue_create(self.connection.endpoint.engine.handle, None, C.byref(made)), "call")
            self._queue = made.value
            check(lib.rxw_call_set_queue(self._handle, self._queue, None), "call")
        except BaseException:
            self.end(_abi.RXW_USER_ABORT)
            raise

    def send_end(self):
        """End the request. The first read does it otherwise."""
        self._again(lib.rxw_call_send_end)

    def abort(self, code=_abi.RXW_USER_ABORT):
        """Abort the call; functions that wait for it raise RxAbort. Any thread."""
        if self._made_in != _process:
            return  # another thread of the parent may have held the lock
        _abi.code(code)
        with self._lock:
            if self._handle:
                lib.rxw_call_abort(self._handle, code)

    def end(self, code=0):
        """End the call and free it: discard the rest of the reply, or abort it with `code`.

        Raises RxAbort if the call has failed, unless it was ended with a code: then its code is returned.
        """
        if self._made_in != _process:
            self._handle = None
            return 0
        _abi.code(code)
        if self._queue and self._handle and not code:
            self._discard()
        with self._lock:
            handle, self._handle = self._handle, None
        if not handle:
            return 0
        origin = C.c_uint()
        result = lib.rxw_call_end(handle, code, C.byref(origin))
        if self._queue:
            lib.rxw_queue_destroy(self._queue)
            self._queue = None
        self.connection._note_end()
        if result and not code:
            raise self._abort(result, origin.value)
        return result

    def _discard(self):
        """Read the rest of the reply. An error is that of the call."""
        try:
            while self.read_some():
                pass
        except RxAbort:
            pass
        except BaseException:
            self.end(_abi.RXW_USER_ABORT)
            raise

    close = end

    def __exit__(self, kind, *_):
        self.end(_abi.RXW_USER_ABORT if kind else 0)

    def __del__(self):
        if self._handle:  # otherwise it may not be complete
            self.end(_abi.RXW_USER_ABORT)


class ServerCall(_Streams):
    """A call that a handler serves. Valid until the handler returns."""

    def __init__(self, handle):
        self._handle = handle

    @property
    def identity(self):
        """The identity of the client: Identity."""
        return _read_identity(lib.rxw_call_identity, self.handle)

    @property
    def service_id(self):
        return lib.rxw_call_service_id(self.handle)

    def abort(self, code=_abi.RXW_USER_ABORT):
        """Abort the call now. A handler normally raises RxAbort instead."""
        lib.rxw_call_abort(self.handle, _abi.code(code))


def _serve(serve, handle):
    """Run a handler on a thread of the library. No exception may leave it."""
    call = ServerCall(handle)
    try:
        return _abi.code(serve(call) or 0)
    except RxAbort as error:
        return error.code or _abi.RXW_USER_ABORT
    except BaseException:
        _log.exception("service %d: the handler failed", call.service_id)
        return _abi.RXW_USER_ABORT
    finally:
        call._handle = None
