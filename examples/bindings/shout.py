#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The client of shout-server in Python, with ctypes. Nothing is compiled.

  shout.py HOST PORT TEXT

ctypes needs the types of the functions that are called. Objects of the library are opaque pointers and options may be
NULL, so no structure layout is needed.
"""
import ctypes
import os
import socket
import struct
import sys

SERVICE_ID = 4000
OP_SHOUT = 1

# LIBRXWIRE names a copy other than the installed one.
rxw = ctypes.CDLL(os.environ.get("LIBRXWIRE", "librxwire.so.0"))
Handle = ctypes.c_void_p


def declare(name, result, *arguments):
    function = getattr(rxw, name)
    function.restype, function.argtypes = result, arguments
    return function


error_text = declare("rxw_strerror", ctypes.c_char_p, ctypes.c_int)
code_text = declare("rxw_code_text", ctypes.c_char_p, ctypes.c_int32)
engine_create = declare("rxw_engine_create", ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Handle))
engine_destroy = declare("rxw_engine_destroy", ctypes.c_int, Handle)
endpoint_create = declare("rxw_endpoint_create", ctypes.c_int, Handle, ctypes.c_void_p, ctypes.POINTER(Handle))
endpoint_destroy = declare("rxw_endpoint_destroy", ctypes.c_int, Handle)
connection_create = declare("rxw_connection_create", ctypes.c_int, Handle, ctypes.c_char_p, ctypes.c_uint32,
                            ctypes.c_uint16, ctypes.c_void_p, ctypes.POINTER(Handle))
connection_release = declare("rxw_connection_release", None, Handle)
call_begin = declare("rxw_call_begin", ctypes.c_int, Handle, ctypes.c_void_p, ctypes.POINTER(Handle))
call_write = declare("rxw_call_write", ctypes.c_ssize_t, Handle, ctypes.c_char_p, ctypes.c_size_t)
call_read = declare("rxw_call_read", ctypes.c_ssize_t, Handle, ctypes.c_char_p, ctypes.c_size_t)
call_end = declare("rxw_call_end", ctypes.c_int32, Handle, ctypes.c_int32, ctypes.c_void_p)


def check(result, what):
    if result < 0:
        sys.exit(f"shout.py: cannot {what}: {error_text(result).decode()}")


def ipv4_address(host, port):
    """A struct sockaddr_in: the family in the order of this machine, port and address in that of the network."""
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)


def ask(endpoint, host, port, text):
    connection, call = Handle(), Handle()
    address = ipv4_address(host, port)
    # XDR: the operation; a length, that many bytes, and zeros to a multiple of four.
    request = struct.pack("!II", OP_SHOUT, len(text)) + text + bytes(-len(text) % 4)
    reply = ctypes.create_string_buffer(4096)
    check(connection_create(endpoint, address, len(address), SERVICE_ID, None, ctypes.byref(connection)),
          "make a connection")
    check(call_begin(connection, None, ctypes.byref(call)), "begin a call")
    length = call_write(call, request, len(request))
    if length >= 0:
        length = call_read(call, reply, len(reply))  # until the reply ends
    code = call_end(call, 0, None)
    connection_release(connection)
    if code:
        sys.exit(f"shout.py: {host} port {port}: {code_text(code).decode()} ({code})")
    number, size = struct.unpack_from("!II", reply.raw)
    return number, reply.raw[8:8 + size].decode()


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    engine, endpoint = Handle(), Handle()
    check(engine_create(None, ctypes.byref(engine)), "create the engine")
    check(endpoint_create(engine, None, ctypes.byref(endpoint)), "open a port")
    number, text = ask(endpoint, sys.argv[1], int(sys.argv[2]), sys.argv[3].encode())
    check(endpoint_destroy(endpoint), "close the port")
    check(engine_destroy(engine), "destroy the engine")
    print(f"{number} bytes: {text}")


if __name__ == "__main__":
    main()
