# SPDX-License-Identifier: BSD-2-Clause
"""The C interface of librxwire for ctypes: constants, structures, functions.

src/tests/python/abi.py compares all of it with the headers.
"""
import ctypes as C
import operator
import os

SONAME = "librxwire.so.0"

# The environment variable LIBRXWIRE names a copy other than the installed one.
lib = C.CDLL(os.environ.get("LIBRXWIRE") or SONAME, use_errno=True)
errno = C.get_errno

RXW_EINVAL = 1
RXW_ENOMEM = 2
RXW_EADDRINUSE = 3
RXW_ESYS = 4
RXW_ECALL = 5
RXW_EAGAIN = 6
RXW_EEOF = 7
RXW_ESTATE = 8
RXW_EDEADLK = 9
RXW_ESTOPPED = 10
RXW_ETIMEDOUT = 11
RXW_ENOTSUP = 12
RXW_ELIMIT = 13
RXW_ENAME = 14
RXW_EVALUE = 15
RXW_EDECODE = 16
RXW_ENOKEY = 17

RXW_CALL_DEAD = -1
RXW_INVALID_OPERATION = -2
RXW_CALL_TIMEOUT = -3
RXW_CALL_EOF = -4
RXW_PROTOCOL_ERROR = -5
RXW_USER_ABORT = -6
RXW_CALL_ADDRINUSE = -7
RXW_CALL_MSGSIZE = -8
RXW_RESTARTING = -100
RXW_NETWORK_RESET = -101
RXW_RPC_CC_MARSHAL = -450
RXW_RPC_CC_UNMARSHAL = -451
RXW_RPC_SS_MARSHAL = -452
RXW_RPC_SS_UNMARSHAL = -453
RXW_RPC_DECODE = -454
RXW_RPC_OPCODE = -455

RXW_ORIGIN_NONE = 0
RXW_ORIGIN_LOCAL = 1
RXW_ORIGIN_PEER = 2

RXW_LEVEL_CLEAR = 0
RXW_LEVEL_AUTH = 1
RXW_LEVEL_CRYPT = 2

RXW_EVENT_READ = 1
RXW_EVENT_WRITE = 2
RXW_EVENT_DONE = 4
RXW_EVENT_CALL = 8
RXW_EVENT_CHANNEL = 16
RXW_CALL_NONBLOCK = 1
RXW_CALL_TRY = 2

RXW_SERVICE_INLINE = 1
RXW_SERVICE_REACH = 2

RXW_KEY_DES = 0
RXW_KEY_RXGK = 1
RXW_KEY_KRB5 = 2

RXW_TOKEN_CACHE = 0
RXW_TOKEN_KEYTAB = 1
RXW_TOKEN_LOCAL = 2

RXW_RXKAD_INDEX = 2
RXW_RXGK_INDEX = 4
RXW_RXGK_INDEX_YFS = 6

handle = C.c_void_p
handler_fn = C.CFUNCTYPE(C.c_int32, handle, C.c_void_p)


class rxw_config(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("listeners", C.c_uint),
        ("mtu", C.c_uint),
        ("rcvbuf", C.c_size_t),
        ("sndbuf", C.c_size_t),
        ("gso", C.c_uint),
        ("gro", C.c_uint),
        ("io", C.c_uint),
        ("poll_us", C.c_uint),
        ("affinity", C.c_char * 256),
        ("window", C.c_uint),
        ("congestion", C.c_uint),
        ("path_mtu", C.c_uint),
        ("jumbo", C.c_uint),
        ("dead_ms", C.c_uint),
        ("idle_ms", C.c_uint),
        ("hard_ms", C.c_uint),
        ("server_idle_ms", C.c_uint),
        ("memory", C.c_size_t),
        ("peer_memory", C.c_size_t),
        ("workers_max", C.c_uint),
        ("queue", C.c_uint),
        ("connections_max", C.c_uint),
        ("debug_access", C.c_uint),
        ("debug_clients", C.c_char * 64),
        ("log", C.c_void_p),
        ("log_arg", C.c_void_p),
        ("log_level", C.c_uint),
        ("ecn", C.c_uint),
    ]


class rxw_endpoint_options(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("address", C.c_void_p),
        ("address_len", C.c_uint32),
        ("config", C.POINTER(rxw_config)),
        ("server", C.c_int),
        ("version_text", C.c_char_p),
        ("paused", C.c_int),
        ("sockets", C.POINTER(C.c_int)),
        ("socket_count", C.c_size_t),
        ("dual_stack", C.c_int),
    ]


class rxw_call_options(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("flags", C.c_uint),
        ("deadline_ms", C.c_uint),
        ("callback", C.c_void_p),
        ("arg", C.c_void_p),
        ("queue", handle),
        ("events", C.c_uint),
    ]


class rxw_queue_event(C.Structure):
    _fields_ = [
        ("call", handle),
        ("arg", C.c_void_p),
        ("events", C.c_uint),
        ("reserved", C.c_uint),
        ("connection", handle),
        ("pool", handle),
        ("unused", C.c_void_p * 3),
    ]


class rxw_service_options(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("id", C.c_uint16),
        ("name", C.c_char_p),
        ("handler", handler_fn),
        ("context", C.c_void_p),
        ("flags", C.c_uint),
        ("workers_max", C.c_uint),
        ("idle_ms", C.c_uint),
        ("security", C.POINTER(handle)),
        ("security_count", C.c_size_t),
        ("level_min", C.c_uint8),
        ("queue", handle),
        ("deferred_max", C.c_uint),
        ("dead_ms", C.c_uint),
        ("waiting_max", C.c_uint),
        ("busy_code", C.c_int32),
    ]


class rxw_identity(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("index", C.c_uint8),
        ("level", C.c_uint8),
        ("local", C.c_bool),
        ("name", C.c_char_p),
        ("rxkad_name", C.c_char_p),
        ("expires", C.c_int64),
        ("rxkad_primary", C.c_char_p),
        ("rxkad_instance", C.c_char_p),
        ("rxkad_cell", C.c_char_p),
        ("rxkad_kvno", C.c_int32),
    ]


class rxw_token_options(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("source", C.c_uint),
        ("index", C.c_uint8),
        ("level", C.c_uint8),
        ("cell", C.c_char_p),
        ("realm", C.c_char_p),
        ("cache", C.c_char_p),
        ("keytab", C.c_char_p),
        ("client", C.c_char_p),
        ("keys", handle),
        ("lifetime_s", C.c_uint32),
        ("server", C.c_void_p),
        ("server_len", C.c_uint32),
        ("endpoint", handle),
    ]


class rxw_token_details(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("index", C.c_uint8),
        ("level", C.c_uint8),
        ("local", C.c_bool),
        ("enctype", C.c_int32),
        ("client", C.c_char_p),
        ("service", C.c_char_p),
        ("begins", C.c_int64),
        ("expires", C.c_int64),
    ]


class rxw_rxkad_server_options(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("keys", handle),
        ("level_min", C.c_uint8),
        ("allow_single_des", C.c_bool),
        ("allow_dotted", C.c_bool),
        ("local_realm", C.c_char_p),
        ("time", C.c_void_p),
        ("time_context", C.c_void_p),
        ("find_key", C.c_void_p),
        ("find_context", C.c_void_p),
        ("find_destroy", C.c_void_p),
    ]


class rxw_rxgk_server_options(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("keys", handle),
        ("level_min", C.c_uint8),
        ("index", C.c_uint8),
        ("time", C.c_void_p),
        ("time_context", C.c_void_p),
    ]


class rxw_counter(C.Structure):
    _fields_ = [
        ("name", C.c_char_p),
        ("help", C.c_char_p),
        ("kind", C.c_uint),
        ("label", C.c_char_p * 2),
    ]


class rxw_effective(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("listeners", C.c_uint),
        ("batch", C.c_uint),
        ("window", C.c_uint),
        ("mtu", C.c_uint),
        ("gso", C.c_int),
        ("gro", C.c_int),
        ("steered", C.c_int),
        ("io", C.c_char_p),
        ("rcvbuf", C.c_size_t),
        ("sndbuf", C.c_size_t),
    ]


class rxw_durations(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("served", C.c_uint64 * 24),
        ("made", C.c_uint64 * 24),
        ("served_ns", C.c_uint64),
        ("made_ns", C.c_uint64),
    ]


class rxw_call_statistics(C.Structure):
    _fields_ = [
        ("size", C.c_size_t),
        ("bytes_sent", C.c_uint64),
        ("bytes_received", C.c_uint64),
        ("packets_sent", C.c_uint64),
        ("packets_received", C.c_uint64),
        ("retransmitted", C.c_uint64),
        ("duplicates", C.c_uint64),
        ("acks_sent", C.c_uint64),
        ("acks_received", C.c_uint64),
        ("windows_by_writer", C.c_uint64),
        ("windows_by_receiver", C.c_uint64),
        ("rtt_ns", C.c_uint64),
        ("cwnd", C.c_uint32),
        ("peer_window", C.c_uint32),
        ("started_ns", C.c_uint64),
        ("ended_ns", C.c_uint64),
        ("security", C.c_uint8),
        ("level", C.c_uint8),
        ("pacing_rate", C.c_uint64),
        ("rtt_min_ns", C.c_uint64),
        ("lost", C.c_uint64),
        ("loss_events", C.c_uint64),
        ("spurious", C.c_uint64),
        ("timeouts", C.c_uint64),
        ("in_flight", C.c_uint32),
        ("ssthresh", C.c_uint32),
        ("controller", C.c_char_p),
        ("phase", C.c_char_p),
        ("marks_sent", C.c_uint64),
        ("marks_seen", C.c_uint64),
        ("mark_events", C.c_uint64),
        ("marks_received", C.c_uint64),
        ("ecn", C.c_char_p),
        ("wide", C.c_uint32),
    ]


class rxw_call_view(C.Structure):
    _fields_ = [
        ("peer", C.c_void_p),
        ("client", C.c_int),
        ("sending", C.c_int),
        ("service", C.c_uint16),
        ("epoch", C.c_uint32),
        ("cid", C.c_uint32),
        ("number", C.c_uint32),
        ("age_ns", C.c_uint64),
        ("queued", C.c_uint32),
        ("receive_window", C.c_uint32),
        ("statistics", C.POINTER(rxw_call_statistics)),
    ]


see_call_fn = C.CFUNCTYPE(None, C.c_void_p, C.POINTER(rxw_call_view))


STRUCTURES = (
    rxw_config,
    rxw_endpoint_options,
    rxw_call_options,
    rxw_queue_event,
    rxw_service_options,
    rxw_identity,
    rxw_token_options,
    rxw_token_details,
    rxw_rxkad_server_options,
    rxw_rxgk_server_options,
    rxw_counter,
    rxw_effective,
    rxw_durations,
    rxw_call_statistics,
    rxw_call_view,
)

# Functions: result and arguments.
_out = C.POINTER(handle)
_length = C.POINTER(C.c_uint32)
FUNCTIONS = {
    "rxw_version": (C.c_char_p, ()),
    "rxw_strerror": (C.c_char_p, (C.c_int,)),
    "rxw_code_text_from": (C.c_char_p, (C.c_int32, C.c_uint)),
    "rxw_code_from_errno": (C.c_int32, (C.c_int,)),
    "rxw_code_to_errno": (C.c_int, (C.c_int32,)),
    "rxw_config_init": (None, (C.POINTER(rxw_config), C.c_size_t)),
    "rxw_config_set": (C.c_int, (C.POINTER(rxw_config), C.c_char_p, C.c_char_p, C.c_char_p, C.c_size_t)),
    "rxw_engine_create": (C.c_int, (C.POINTER(rxw_config), _out)),
    "rxw_engine_destroy": (C.c_int, (handle,)),
    "rxw_engine_memory": (C.c_size_t, (handle, C.POINTER(C.c_size_t))),
    "rxw_endpoint_create": (C.c_int, (handle, C.POINTER(rxw_endpoint_options), _out)),
    "rxw_endpoint_set": (C.c_int, (handle, C.c_char_p, C.c_char_p)),
    "rxw_endpoint_start": (C.c_int, (handle,)),
    "rxw_endpoint_address": (C.c_int, (handle, C.c_void_p, _length)),
    "rxw_endpoint_stop": (C.c_int, (handle, C.c_uint)),
    "rxw_endpoint_destroy": (C.c_int, (handle,)),
    "rxw_endpoint_counters": (C.c_int, (handle, C.POINTER(C.c_uint64), C.c_size_t)),
    "rxw_endpoint_effective": (C.c_int, (handle, C.POINTER(rxw_effective))),
    "rxw_endpoint_durations": (C.c_int, (handle, C.POINTER(rxw_durations))),
    "rxw_endpoint_calls": (C.c_int, (handle, C.c_void_p, C.c_void_p)),
    "rxw_counter_at": (C.POINTER(rxw_counter), (C.c_size_t,)),
    "rxw_connection_create": (C.c_int, (handle, C.c_char_p, C.c_uint32, C.c_uint16, handle, _out)),
    "rxw_connection_release": (None, (handle,)),
    "rxw_connection_abort": (C.c_int, (handle, C.c_int32)),
    "rxw_connection_error": (C.c_int32, (handle, C.POINTER(C.c_uint))),
    "rxw_connection_set_timeouts": (C.c_int, (handle, C.c_uint, C.c_uint, C.c_uint)),
    "rxw_connection_identity": (C.c_int, (handle, C.POINTER(rxw_identity))),
    "rxw_connpool_create": (C.c_int, (handle, C.c_char_p, C.c_uint32, C.c_uint16, handle, C.c_uint, _out)),
    "rxw_connpool_release": (None, (handle,)),
    "rxw_connpool_begin": (C.c_int, (handle, C.POINTER(rxw_call_options), _out)),
    "rxw_connpool_abort": (C.c_int, (handle, C.c_int32)),
    "rxw_connpool_set_timeouts": (C.c_int, (handle, C.c_uint, C.c_uint, C.c_uint)),
    "rxw_call_begin": (C.c_int, (handle, C.POINTER(rxw_call_options), _out)),
    "rxw_call_write": (C.c_ssize_t, (handle, C.c_void_p, C.c_size_t)),
    "rxw_call_sendfile": (C.c_ssize_t, (handle, C.c_int, C.c_int64, C.c_size_t)),
    "rxw_call_flush": (C.c_int, (handle,)),
    "rxw_call_send_end": (C.c_int, (handle,)),
    "rxw_call_read": (C.c_ssize_t, (handle, C.c_void_p, C.c_size_t)),
    "rxw_call_read_some": (C.c_ssize_t, (handle, C.c_void_p, C.c_size_t)),
    "rxw_call_end": (C.c_int32, (handle, C.c_int32, C.POINTER(C.c_uint))),
    "rxw_call_abort": (None, (handle, C.c_int32)),
    "rxw_call_error": (C.c_int32, (handle, C.POINTER(C.c_uint))),
    "rxw_call_set_events": (C.c_int, (handle, C.c_uint)),
    "rxw_call_set_queue": (C.c_int, (handle, handle, C.c_void_p)),
    "rxw_call_peer": (C.c_int, (handle, C.c_void_p, _length)),
    "rxw_call_service_id": (C.c_uint16, (handle,)),
    "rxw_call_identity": (C.c_int, (handle, C.POINTER(rxw_identity))),
    "rxw_batch_begin": (None, ()),
    "rxw_batch_end": (None, ()),
    "rxw_queue_create": (C.c_int, (handle, C.c_void_p, _out)),
    "rxw_queue_destroy": (C.c_int, (handle,)),
    "rxw_queue_fd": (C.c_int, (handle,)),
    "rxw_queue_next": (C.c_int, (handle, C.POINTER(rxw_queue_event), C.c_uint, C.c_int)),
    "rxw_service_add": (C.c_int, (handle, C.POINTER(rxw_service_options), _out)),
    "rxw_service_remove": (C.c_int, (handle, C.c_uint)),
    "rxw_security_null": (handle, ()),
    "rxw_security_unref": (None, (handle,)),
    "rxw_keys_create": (C.c_int, (_out,)),
    "rxw_keys_unref": (None, (handle,)),
    "rxw_keys_add": (C.c_int, (handle, C.c_uint, C.c_int32, C.c_int32, C.c_char_p, C.c_size_t)),
    "rxw_keys_generate": (C.c_int, (handle, C.c_uint, C.c_int32, C.c_int32)),
    "rxw_keys_load": (C.c_int, (handle, C.c_char_p, C.c_char_p, C.c_char_p, C.c_size_t)),
    "rxw_keys_reload": (C.c_int, (handle, C.c_char_p, C.c_size_t)),
    "rxw_token_create": (C.c_int, (C.POINTER(rxw_token_options), _out, C.c_char_p, C.c_size_t)),
    "rxw_token_unref": (None, (handle,)),
    "rxw_token_security": (handle, (handle,)),
    "rxw_token_info": (C.c_int, (handle, C.POINTER(rxw_token_details))),
    "rxw_rxkad_server": (C.c_int, (C.POINTER(rxw_rxkad_server_options), _out)),
    "rxw_rxgk_server": (C.c_int, (C.POINTER(rxw_rxgk_server_options), _out)),
}


def _range(kind):
    """The smallest and the largest number of a type of ctypes."""
    bits = 8 * C.sizeof(kind)
    return (-1 << bits - 1, (1 << bits - 1) - 1) if kind(-1).value < 0 else (0, (1 << bits) - 1)


INTEGERS = {kind: _range(kind) for kind in (
    C.c_int, C.c_uint, C.c_int8, C.c_uint8, C.c_int16, C.c_uint16, C.c_int32, C.c_uint32, C.c_int64, C.c_uint64, C.c_size_t,
    C.c_ssize_t)}


def number(kind, value, name):
    """The number, if a type of ctypes has it: ctypes itself cuts off what does not fit."""
    low, high = INTEGERS[kind]
    if not isinstance(value, int):
        value = operator.index(value)  # TypeError
    if not low <= value <= high:
        raise ValueError(f"{name} is from {low} to {high}, not {value}")
    return value


def code(value):
    """A code of a call."""
    return number(C.c_int32, value, "a code")


def _checked(kind):
    """A type of arguments that refuses numbers which do not fit."""

    class Checked:
        @staticmethod
        def from_param(value):
            return kind(number(kind, value, "a number"))

    return Checked if kind in INTEGERS else kind


# Lengths and limits of these are made by the package, for each piece of data.
_PLAIN = {"rxw_call_write", "rxw_call_read", "rxw_call_read_some", "rxw_queue_next"}
for _name, (_result, _arguments) in FUNCTIONS.items():
    _function = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments if _name in _PLAIN else tuple(_checked(kind) for kind in _arguments)

_fields = {}  # of the structures, by name


def options(kind, **members):
    """A structure of options: zero except for its size and the members given, which it must have."""
    fields = _fields.get(kind)
    if fields is None:
        fields = _fields[kind] = dict(kind._fields_)
    for name, value in members.items():
        field = fields.get(name)
        if field is None:
            raise TypeError(f"there is no option {name!r}; the options are {', '.join(sorted(fields))}")
        if field in INTEGERS:
            number(field, value, name)
    return kind(size=C.sizeof(kind), **members)
