#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls between generated Python modules and generated C stubs, and between Python and Python.

calls.py PEER MODULES...    PEER is the program of peer.c; the modules are in the current folder
"""
import asyncio
import ctypes
import gc
import importlib
import logging
import multiprocessing
import os
import pickle
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock
import warnings

warnings.filterwarnings("ignore", category=DeprecationWarning)
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "xg"))
sys.path.insert(0, os.getcwd())

import rxwire
import values
import xgread
from rxwire import aio, rpc, xdr

import all_types as at

TOP = os.path.join(os.path.dirname(__file__), "..", "..", "..")
AT, TYPES, RAW, CODE = 75, 76, 77, 78
LOOPBACK = "127.0.0.1"
peer, modules = "", []


def checksum(data):
    value = 1
    for byte in data:
        value = (value * 31 + byte) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def random_values(name, count, seed=20781):
    """Encodings of random values of a type of all-types.xg."""
    types = xgread.read(os.path.join(TOP, "src/tests/xg/all-types.xg"))
    coder, packer, r = values.coders(types, large=100)[name], values.Packer(), random.Random(f"{seed} {name}")
    for _ in range(count):
        packer.reset()
        coder.pack(packer, coder.make(r))
        yield packer.get_buffer()


class Service(at.ATService):
    """As the server of peer.c, with exceptions for some arguments."""

    def Lists(self, call, at_given):
        first = at_given[0] if at_given else 0
        if first in (28, 4711):
            raise rxwire.RxAbort(first)
        if first == 1000:
            raise KeyError("a fault of the handler")
        if first == 2000:
            return 5
        return bytes(n & 0xFF for n in at_given)

    def Swap(self, call, all, choice):
        return all, at.at_tree(right=at.at_tree(value=-1), value=checksum(xdr.encode(at.at_choice, choice)))

    def Stream(self, call, name, size):
        count = 0
        while size:
            data = call.read(min(size, 10000))
            if not data:
                raise rxwire.RxAbort(5)
            count += data.count(name[0].encode())
            size -= len(data)
        call.write(name.encode())
        return count


class PeerTest(unittest.TestCase):
    """A Python client and the server of peer.c."""

    def setUp(self):
        self.server = subprocess.Popen([peer, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = LOOPBACK, int(self.server.stdout.readline())
        self.endpoint = rxwire.Endpoint()

    def tearDown(self):
        self.endpoint.close()
        self.server.stdin.close()
        self.assertEqual(self.server.wait(), 0)
        self.server.stdout.close()

    def client(self):
        return at.ATClient(self.endpoint.connect(self.address, AT))

    def test_types(self):
        """Every type of every interface is decoded and encoded by both sides."""
        connection, tested = self.endpoint.connect(self.address, TYPES), 0
        for name in modules:
            file = os.path.join(TOP, "src/tests/xg" if name == "all_types" else "src/afs", name.replace("_", "-") + ".xg")
            module, types = importlib.import_module(name), xgread.read(file)
            coders, packer, r = values.coders(types, large=100), values.Packer(), random.Random(name)
            for t in types:
                for _ in range(10):
                    packer.reset()
                    coders[t.name].pack(packer, coders[t.name].make(r))
                    kind, data = getattr(module, t.name), packer.get_buffer()
                    with connection.begin() as call:
                        call.write(xdr.encode(xdr.string(100), t.name) + xdr.encode(kind, xdr.decode(kind, data)))
                        reply = call.read()
                    self.assertEqual(xdr.decode(kind, reply), xdr.decode(kind, data), t.name)
                    self.assertEqual(reply, data, t.name)
                tested += 1
        self.assertGreater(tested, 100)

    def test_procedures(self):
        client = self.client()
        self.assertEqual(client.Lists([1, -1, 120, 0, 300]), b"\1\xffx\0\x2c")
        self.assertEqual(client.Lists([]), b"")
        for data, other in zip(random_values("at_all", 50), random_values("at_choice", 50)):
            given = xdr.decode(at.at_all, data)
            result = client.Swap(given, xdr.decode(at.at_choice, other))
            self.assertEqual(result.all, given)
            self.assertEqual(result.tree, at.at_tree(value=checksum(other)))

    def test_wrong_arguments(self):
        """Nothing is sent: the server would refuse it with another error."""
        client = self.client()
        for wrong in ([1] * 6, None, ["x"], [1 << 31], 5):
            with self.assertRaises(rxwire.EncodeError):
                client.Lists(wrong)
        with self.assertRaises(rxwire.EncodeError):
            client.Swap(at.at_all(strict=at.at_strict(at.AT_GREEN)), at.at_choice(8))
        with unittest.mock.patch("sys.unraisablehook") as hook, self.assertRaises(rxwire.EncodeError):
            client.Stream(5, 1)
        self.assertFalse(hook.called)

    def test_split(self):
        client = self.client()
        data = b"az" * 100000
        for piece in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
            with client.Stream("zebra", len(data)) as stream:
                stream.write(piece)
                buffer = bytearray(5)
                self.assertEqual(stream.readinto(buffer), 5)
                self.assertEqual(buffer, b"zebra")
                self.assertEqual(stream.finish(), len(data) // 2)
        with open(__file__, "rb") as file:
            size = os.path.getsize(__file__)
            stream = client.Stream("e", size)
            self.assertEqual(stream.sendfile(file, 0, size), size)
            self.assertEqual(stream.read(1), b"e")
            file.seek(0)
            self.assertEqual(stream.finish(), file.read().count(b"e"))
        with self.assertRaises(KeyError), client.Stream("zebra", 100):
            raise KeyError("the call is aborted")

    def test_codes(self):
        connection = self.endpoint.connect(self.address, CODE)
        for code in (1, 4711, -2147483648, 2147483647, -1):
            proc = rpc.Procedure("Fail", code, (), (("x", xdr.INT),))
            with self.assertRaises(rxwire.RxAbort) as caught:
                rpc.Client(connection).rxw_call(proc, ())
            self.assertEqual((caught.exception.code, caught.exception.origin), (code, rxwire.RXW_ORIGIN_PEER))
        self.assertEqual(rxwire.RxAbort(rxwire.code_from_errno(13)).errno, 13)
        proc = rpc.Procedure("Fail", 4711, (), (("x", xdr.INT),), codes={4711: "the answer is refused"})
        with self.assertRaises(rxwire.RxAbort) as caught:
            rpc.Client(connection).rxw_call(proc, ())
        self.assertEqual(str(caught.exception), "Fail: the answer is refused (4711)")
        with self.assertRaises(rxwire.RxAbort) as caught:
            self.client().rxw_call(rpc.Procedure("Unknown", 99, (), ()), ())
        self.assertEqual(caught.exception.code, rxwire.RXW_RPC_OPCODE)
        with self.assertRaises(rxwire.RxAbort) as caught:
            rpc.Client(self.endpoint.connect(self.address, 4000)).rxw_call(proc, ())
        self.assertEqual(caught.exception.code, rxwire.RXW_INVALID_OPERATION)

    def test_hostile_replies(self):
        """Counts beyond bound and data, missing data, nesting, NUL: DecodeError, and nothing large is allocated."""
        client = rpc.Client(self.endpoint.connect(self.address, RAW))
        word = lambda *numbers: b"".join(n.to_bytes(4, "big") for n in numbers)
        deep = word(*[1] * 65, *[0] * 200)
        hostile = [
            (at.at_returned, word(65)), (at.at_returned, word(0xFFFFFFFF)), (at.at_returned, word(5) + b"abcd"),
            (at.at_endless, word(1 << 20)), (at.at_numbers, word(65536)), (at.at_numbers, word(0xFFFFFFFF, 1)),
            (at.at_cube, word(2, 5, 1)), (at.at_matrix, word(6, 1, 1, 65537)), (at.at_text, word(2) + b"a\0zz"),
            (at.at_strict, word(4)), (at.at_scalars, word(1, 2, 3)), (at.at_tree, deep), (at.at_node, word(0, 1)),
            (at.at_chain, word(1) + word(7, 1) * 65536 + word(7, 0)), (at.at_maybe, word(1)),
        ]
        for kind, data in hostile:
            proc = rpc.Procedure("Hostile", 1, (("data", Raw()),), (("value", kind),))
            with self.assertRaises(rxwire.DecodeError, msg=f"{kind} {data[:32].hex()}"):
                client.rxw_call(proc, (data,))
        # The largest list and the deepest tree that are allowed.
        proc = rpc.Procedure("Long", 1, (("data", Raw()),), (("value", at.at_chain),))
        chain = client.rxw_call(proc, (word(1) + word(7, 1) * 65535 + word(7, 0),))
        self.assertEqual(sum(link.value for link in chain), 7 * 65536)
        self.assertEqual(chain, xdr.decode(at.at_chain, xdr.encode(at.at_chain, chain)))
        repr(chain)
        proc = rpc.Procedure("Deep", 1, (("data", Raw()),), (("value", at.at_tree),))
        self.assertEqual(client.rxw_call(proc, (word(*[1] * 64, *[0] * 131),)).value, 0)

    def test_deadline(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind((LOOPBACK, 0))
            client = at.ATClient(self.endpoint.connect(silent.getsockname(), AT))
            with self.assertRaises(rxwire.RxAbort) as caught:
                client.Lists([], deadline=0.05)
        self.assertEqual(caught.exception.code, rxwire.RXW_CALL_TIMEOUT)
        self.assertEqual(caught.exception.origin, rxwire.RXW_ORIGIN_LOCAL)

    def test_asyncio(self):
        async def run():
            with aio.Pool(self.endpoint, self.address, AT, connections=2) as pool:
                client = at.ATAsyncClient(pool)
                replies = await asyncio.gather(*[client.Lists([n]) for n in range(100)])
                self.assertEqual(replies, [bytes([n]) for n in range(100)])
                async with client.Stream("zebra", 200000) as stream:
                    await stream.write(memoryview(b"az" * 100000))
                    self.assertEqual(await stream.read(5), b"zebra")
                    self.assertEqual(await stream.finish(), 100000)
                stream = await client.Stream("zebra", 1)
                stream.end(5)
                self.assertEqual(await client.Lists([7]), b"\7")

        asyncio.run(run())


class Raw:
    """Bytes as they are."""

    least = 0

    def put(self, out, value):
        out += value


class Gate(at.ATService):
    """Lists waits until it is released."""

    def __init__(self):
        self.entered = threading.Semaphore(0)
        self.released = threading.Event()

    def Lists(self, call, at_given):
        self.entered.release()
        self.released.wait()
        return b"later"


class PythonTest(unittest.TestCase):
    """A Python server, called by C and by Python."""

    def setUp(self):
        self.server = rxwire.Endpoint(address=(LOOPBACK, 0), server=True)
        self.endpoint = rxwire.Endpoint()

    def tearDown(self):
        self.endpoint.close()
        self.server.close()

    def client(self, service=AT, security=None):
        return at.ATClient(self.endpoint.connect(self.server.address, service, security))

    def test_c_client(self):
        self.server.add_service(AT, Service())
        with open("values", "wb") as file:
            for data, other in zip(random_values("at_all", 50), random_values("at_choice", 50)):
                file.write(len(data).to_bytes(4, "big") + data + len(other).to_bytes(4, "big") + other)
        done = subprocess.run([peer, "call", str(self.server.address[1]), "values"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "50 values\n"), done.stderr)

    def test_errno(self):
        """ENOSPC has another code on the wire, which the client turns back."""
        self.server.add_service(AT, Service())
        with self.assertRaises(rxwire.RxAbort) as caught:
            self.client().Lists([28])
        self.assertEqual(caught.exception.code, 28)
        raw = rpc.Procedure("Raw", 1, (("given", at.at_given),), ())
        with self.assertRaises(rxwire.RxAbort) as caught:
            self.client().rxw_call(raw, ([28],))
        self.assertEqual((caught.exception.code, caught.exception.errno), (108, 28))

    def test_pool(self):
        """More than four blocking calls at a time; further ones wait for a channel."""
        gate, results = Gate(), []
        self.server.add_service(AT, gate)
        with self.endpoint.pool(self.server.address, AT, connections=2) as pool:
            client = at.ATClient(pool)
            threads = [threading.Thread(target=lambda: results.append(client.Lists([]))) for _ in range(11)]
            for thread in threads:
                thread.start()
            for _ in range(8):
                gate.entered.acquire()
            with self.assertRaises(rxwire.RxTimeout):
                client.Lists([], deadline=0.05)
            gate.released.set()
            for thread in threads:
                thread.join()
            self.assertEqual(results, [b"later"] * 11)
        with self.assertRaises(rxwire.RxError) as caught:
            client.Lists([])
        self.assertEqual(caught.exception.result, rxwire.RXW_ESTATE)
        for connections in (0, -1, 65537):
            with self.assertRaises((ValueError, rxwire.RxError)):
                self.endpoint.pool(self.server.address, AT, connections=connections)

    def test_pool_that_is_aborted_or_closed(self):
        """abort() ends the calls with its code, and close() the waits for a channel."""
        gate, codes = Gate(), []
        self.server.add_service(AT, gate)
        pool = self.endpoint.pool(self.server.address, AT, connections=1)
        client = at.ATClient(pool)

        def call():
            try:
                client.Lists([])
            except rxwire.RxAbort as error:
                codes.append(error.code)

        def start():
            threads = [threading.Thread(target=call) for _ in range(4)]
            for thread in threads:
                thread.start()
            for _ in threads:
                gate.entered.acquire()
            return threads

        def join(threads):
            for thread in threads:
                thread.join()

        threads = start()
        pool.abort(77)
        join(threads)
        self.assertEqual(codes, [77] * 4)
        threads = start() + [threading.Thread(target=call)]
        threads[4].start()
        while not pool._entered:
            time.sleep(0.001)
        pool.close()
        join(threads[:4])
        gate.released.set()
        threads[4].join()  # it may have begun its call after all
        self.assertEqual(codes[:8], [77] * 8)

    def test_pool_that_is_aborted_while_the_main_thread_waits(self):
        """abort() ends the wait of the main thread, too, which handles signals meanwhile. Code 0 is USER_ABORT."""
        self.server.add_service(AT, Service())
        with self.endpoint.pool(self.server.address, AT, connections=1) as pool:
            for code, seen in (77, 77), (0, rxwire.RXW_USER_ABORT):
                calls = [pool.begin() for _ in range(4)]  # an aborted call has its channel until it is ended

                def abort():
                    while not pool._waiting:
                        time.sleep(0.001)
                    pool.abort(code)

                thread = threading.Thread(target=abort)
                thread.start()
                with self.assertRaises(rxwire.RxAbort) as caught:
                    pool.begin(deadline=30)
                self.assertEqual(caught.exception.code, seen)
                thread.join()
                for call in calls:
                    self.assertEqual(call.end(rxwire.RXW_USER_ABORT), seen)

    def test_removed(self):
        """A service that was removed is unknown; another one may take its place. Tunables can change."""
        service = self.server.add_service(AT, Service())
        self.assertEqual(self.client().Lists([5]), b"\5")
        self.assertTrue(service.remove(5))
        with self.assertRaises(rxwire.RxAbort) as caught:
            self.client().Lists([5])
        self.assertEqual(caught.exception.code, rxwire.RXW_INVALID_OPERATION)
        self.server.add_service(AT, Service())
        self.assertEqual(self.client().Lists([5]), b"\5")
        self.server.set("workers-max", 3)
        with self.assertRaises(rxwire.RxError) as caught:
            self.server.set("listeners", 2)
        self.assertEqual(caught.exception.result, rxwire.RXW_ESTATE)

    def test_threads(self):
        """Blocking calls do not hold the interpreter: one thread releases what another one waits for."""
        gate = Gate()
        self.server.add_service(AT, gate)
        client, replies = self.client(), []
        threads = [threading.Thread(target=lambda: replies.append(client.Lists([1]))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            gate.entered.acquire()
        gate.released.set()
        for thread in threads:
            thread.join()
        self.assertEqual(replies, [b"later"] * 8)

    def test_plain_handler(self):
        """A function as a handler, its exceptions, and the identity of its client."""
        seen = []

        def handler(call):
            seen.append((call, call.identity, call.peer, call.service_id))
            request = call.read()
            if request == b"fail":
                return 7
            if request == b"fault":
                raise KeyError("a fault of the handler")
            call.write(request[::-1])

        self.server.add_service(5, handler)
        connection = self.endpoint.connect(self.server.address, 5)
        with connection.begin() as call:
            call.write(b"abc")
            call.send_end()
            self.assertEqual(call.read(), b"cba")
        call, identity, address, service = seen[0]
        self.assertEqual((identity.index, identity.name, service), (0, None, 5))
        self.assertEqual(address[0], LOOPBACK)
        with self.assertRaises(rxwire.RxError):  # the handler has returned
            call.read()
        for request, code in ((b"fail", 7), (b"fault", rxwire.RXW_USER_ABORT)):
            with self.assertRaises(rxwire.RxAbort) as caught, connection.begin() as call:
                call.write(request)
                call.read()
            self.assertEqual(caught.exception.code, code)
        metrics = self.server.metrics()
        labels = f'{{endpoint="{LOOPBACK}:{self.server.address[1]}"'
        self.assertIn(f"\nrxwire_calls_started_total{labels}}} 3\n", metrics)
        self.assertIn(f'\nrxwire_packets_total{labels},direction="sent",type="data"}} 1\n', metrics)
        self.assertIn(f'\nrxwire_call_duration_seconds_count{labels},role="server"}} ', metrics)
        self.assertIn(f'\nrxwire_senders{labels},controller="reno",phase="slow-start"}} 0\n', metrics)
        self.assertEqual(len(re.findall("^# HELP", metrics, re.M)), len(set(re.findall("^# HELP (\\S+)", metrics, re.M))))

    def test_closed(self):
        self.server.add_service(AT, Service())
        client = self.client()
        call = client.rxw_connection.begin()
        with self.assertRaises(rxwire.RxError) as caught:
            self.endpoint.close()
        self.assertEqual(caught.exception.result, rxwire.RXW_ESTATE)
        call.end(5)
        call.end()
        client.rxw_connection.close()
        for function in (call.read, client.rxw_connection.begin):
            with self.assertRaises(rxwire.RxError) as caught:
                function()
            self.assertEqual(caught.exception.result, rxwire.RXW_ESTATE)

    def test_config(self):
        with self.assertRaises(rxwire.RxError) as caught:
            rxwire.Engine({"window": 65536})
        self.assertEqual(caught.exception.result, rxwire.RXW_EVALUE)
        self.assertIn("65536", str(caught.exception))
        with self.assertRaises(rxwire.RxError) as caught:
            rxwire.Engine({"windw": 5})
        self.assertEqual(str(caught.exception), "windw: there is no option of this name; did you mean window?")
        with self.assertRaises(rxwire.RxError) as caught:
            rxwire.Keys().load("/nonexistent")
        self.assertEqual(str(caught.exception).count("No such file"), 1)
        with rxwire.Engine({"window": 32, "gso": False, "dead-ms": 1000}) as engine:
            with rxwire.Endpoint(engine, config={"mtu": 1300}) as endpoint:
                self.assertGreater(endpoint.address[1], 0)
            self.assertEqual(len(engine.memory()), 2)

    def test_ipv6(self):
        try:
            server = rxwire.Endpoint(address=("::1", 0), server=True)
        except rxwire.RxError:
            self.skipTest("no IPv6")
        with server, rxwire.Endpoint(address=("::1", 0)) as endpoint:
            server.add_service(AT, Service())
            self.assertEqual(server.address[0], "::1")
            self.assertEqual(at.ATClient(endpoint.connect(server.address, AT)).Lists([9]), b"\t")

    def test_socket(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
            bound.bind((LOOPBACK, 0))
            with rxwire.Endpoint(server=True, sockets=[bound], paused=True) as server:
                self.assertEqual(server.address, bound.getsockname())
                server.add_service(AT, Service())
                server.start()
                self.assertEqual(at.ATClient(self.endpoint.connect(server.address, AT)).Lists([9]), b"\t")
                self.assertTrue(server.stop(5))

    def test_security(self):
        """rxkad and rxgk with tokens made with the service keys."""
        keys = rxwire.Keys()
        keys.generate(rxwire.RXW_KEY_KRB5, 1, 18)
        keys.generate(rxwire.RXW_KEY_RXGK, 1, 18)
        offered = [rxwire.rxkad_server(keys), rxwire.rxgk_server(keys)]
        seen = []

        class Who(Service):
            def rxw_enter(self, call, procedure):
                seen.append((call.identity.index, call.identity.name, call.identity.level))
                if len(seen) > 2:
                    raise rxwire.RxAbort(13)

        self.server.add_service(AT, Who(), security=offered, level_min=rxwire.RXW_LEVEL_CRYPT)
        for index in (rxwire.RXW_RXKAD_INDEX, rxwire.RXW_RXGK_INDEX):
            token = rxwire.Token("example.org", source=rxwire.RXW_TOKEN_LOCAL, index=index, keys=keys,
                                 client="alice@EXAMPLE.ORG", lifetime=3600)
            self.assertGreater(token.expires(), 0)
            client = self.client(security=token)
            self.assertEqual(client.Lists([1]), b"\1")
            self.assertEqual(client.rxw_connection.identity.index, index)
        self.assertEqual(seen, [(2, "alice@EXAMPLE.ORG", 2), (4, "alice@EXAMPLE.ORG", 2)])
        with self.assertRaises(rxwire.RxAbort) as caught:
            client.Lists([1])
        self.assertEqual(caught.exception.code, 13)
        with self.assertRaises(rxwire.RxAbort) as caught:  # the null class is not offered
            self.client().Lists([1])
        self.assertEqual(caught.exception.code, rxwire.RXW_INVALID_OPERATION)

    def test_cancel(self):
        """Cancelling a task aborts its call, and its channel serves the next one."""
        gate = Gate()
        self.server.add_service(AT, gate)

        async def run():
            with aio.Pool(self.endpoint, self.server.address, AT) as pool:
                client = at.ATAsyncClient(pool)
                tasks = [asyncio.create_task(client.Lists([n])) for n in range(6)]
                for _ in range(4):
                    await asyncio.to_thread(gate.entered.acquire)
                for task in tasks:
                    task.cancel()
                done = await asyncio.gather(*tasks, return_exceptions=True)
                self.assertEqual([type(result) for result in done], [asyncio.CancelledError] * 6)
                gate.released.set()
                self.assertEqual(await asyncio.gather(*[client.Lists([n]) for n in range(8)]), [b"later"] * 8)
                with self.assertRaises(rxwire.EncodeError):
                    await client.Lists([1] * 6)

        asyncio.run(run())

    def test_async_deadline(self):
        gate = Gate()
        self.server.add_service(AT, gate)

        async def run():
            with aio.Pool(self.endpoint, self.server.address, AT) as pool:
                client = at.ATAsyncClient(pool)
                with self.assertRaises(rxwire.RxAbort) as caught:
                    await client.Lists([1], deadline=0.05)
                self.assertEqual(caught.exception.code, rxwire.RXW_CALL_TIMEOUT)
            gate.released.set()

        asyncio.run(run())

    def test_thousand(self):
        """A thousand calls that wait at the same time, served by threads, need one descriptor."""
        count = 1000
        with rxwire.Endpoint(address=(LOOPBACK, 0), server=True, config={"workers-max": 1024}) as server:
            gate = Gate()
            server.add_service(AT, gate)

            async def run():
                with aio.Pool(self.endpoint, server.address, AT, connections=count // 4) as pool:
                    before = len(os.listdir("/proc/self/fd"))
                    client = at.ATAsyncClient(pool)
                    tasks = [asyncio.create_task(client.Lists([n])) for n in range(count)]
                    await asyncio.to_thread(lambda: [gate.entered.acquire() for _ in range(count)])
                    self.assertFalse(any(task.done() for task in tasks))
                    self.assertEqual(len(os.listdir("/proc/self/fd")), before)
                    gate.released.set()
                    self.assertEqual(await asyncio.gather(*tasks), [b"later"] * count)

            asyncio.run(run())


class Relay:
    """A UDP port that refuses the first connection, and then passes packets on to a server."""

    CODE = 19270409  # the ticket has expired

    def __init__(self, server):
        self.server = server
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((LOOPBACK, 0))
        self.address = self.socket.getsockname()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        client, refused = None, None
        while True:
            data, sender = self.socket.recvfrom(65536)
            if sender == self.server:
                if client:
                    self.socket.sendto(data, client)
                continue
            if len(data) < 28:
                return
            epoch, cid = struct.unpack_from(">II", data)
            if refused is None:
                refused = cid & ~3
            if cid & ~3 == refused:
                abort = struct.pack(">IIIIIBBBBHHi", epoch, refused, 0, 0, 1, 4, 0, 0, 0, 0, AT, self.CODE)
                self.socket.sendto(abort, sender)
                continue
            client = sender
            self.socket.sendto(data, self.server)

    def close(self):
        self.socket.sendto(b"", self.address)
        self.thread.join()
        self.socket.close()


def in_worker(number):
    """In a process of multiprocessing: what the parent's client does there, and one of its own."""
    client, address = in_worker.parent
    try:
        client.Lists([number])
        refused = 0
    except rxwire.RxError as error:
        refused = error.result
    with rxwire.Endpoint() as endpoint:
        return refused, at.ATClient(endpoint.connect(address, AT)).Lists([number])


def fail_in_worker(code):
    raise rxwire.RxAbort(code) if code > 0 else rxwire.RxError(code, "worker")


class ForkTest(unittest.TestCase):
    """Children of fork() do not disturb the parent, and can have endpoints of their own."""

    def setUp(self):
        self.server = rxwire.Endpoint(address=(LOOPBACK, 0), server=True)
        self.server.add_service(AT, Service())
        self.endpoint = rxwire.Endpoint()
        self.client = at.ATClient(self.endpoint.connect(self.server.address, AT))

    def tearDown(self):
        self.endpoint.close()
        self.server.close()

    def test_multiprocessing(self):
        in_worker.parent = self.client, self.server.address
        self.assertEqual(self.client.Lists([1]), b"\1")
        with multiprocessing.get_context("fork").Pool(3) as pool:
            results = pool.map(in_worker, range(12))
            for code, kind in ((5, rxwire.RxAbort), (-8, rxwire.RxError)):
                with self.assertRaises(kind):
                    pool.apply(fail_in_worker, (code,))
        self.assertEqual(results, [(rxwire.RXW_ESTATE, bytes([n])) for n in range(12)])
        for n in range(20):
            self.assertEqual(self.client.Lists([n]), bytes([n]))

    def test_objects(self):
        """Everything can be closed in the child, also while an event loop of the parent has calls."""

        async def run():
            with aio.Pool(self.endpoint, self.server.address, AT) as pool:
                client = at.ATAsyncClient(pool)
                self.assertEqual(await client.Lists([2]), b"\2")
                open_call = self.client.rxw_connection.begin()
                child = os.fork()
                if not child:
                    status = 1
                    try:
                        open_call.abort()
                        open_call.end()
                        self.client.rxw_connection.close()
                        self.endpoint.close()
                        self.server.close()
                        gc.collect()
                        status = 0
                    finally:
                        os._exit(status)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                open_call.end(5)
                for n in range(20):
                    self.assertEqual(await client.Lists([n]), bytes([n]))

        asyncio.run(run())


class ValuesTest(unittest.TestCase):
    """What the package does not pass on as it is."""

    def test_wrong_numbers(self):
        """Numbers that ctypes would cut off, and options that do not exist."""
        with rxwire.Endpoint(address=(LOOPBACK, 0), server=True) as server, rxwire.Endpoint() as endpoint:
            there = server.address
            connection = endpoint.connect(there, AT)
            keys = rxwire.Keys()
            wrong = [
                lambda: endpoint.connect(there, 70000), lambda: endpoint.connect(there, -1),
                lambda: endpoint.connect((LOOPBACK, 70000), AT), lambda: rxwire.Endpoint(address=(LOOPBACK, -1)),
                lambda: server.add_service(65541, print), lambda: server.add_service(5, print, workers_max=-1),
                lambda: server.add_service(5, print, level_min=256), lambda: server.add_service(5, print, flags=1 << 32),
                lambda: server.add_service(5, print, deferred_max=1 << 32),
                lambda: server.add_service(5, print, busy_code=1 << 31), lambda: server.add_service(5, print, idle=5e6),
                lambda: connection.abort(1 << 31), lambda: connection.begin(1e9), lambda: connection.set_timeouts(dead=5e6),
                lambda: rxwire.RxAbort(1 << 31), lambda: rxwire.code_from_errno(1 << 31),
                lambda: server.stop(5e6), lambda: server.stop(float("nan")),
                lambda: keys.generate(rxwire.RXW_KEY_KRB5, 1 << 31, 18), lambda: keys.generate(-1, 1, 18),
                lambda: rxwire.rxkad_server(keys, level_min=300), lambda: rxwire.rxgk_server(keys, index=260),
                lambda: rxwire.Token("x", lifetime=1 << 32), lambda: rxwire.Token("x", level=-1),
            ]
            for call in wrong:
                with self.assertRaises(ValueError, msg=call.__code__.co_firstlineno):
                    call()
            for options in ({"workersmax": 3}, {"busy_cod": 5}):
                with self.assertRaises(TypeError):
                    server.add_service(5, print, **options)
            with self.assertRaises(TypeError):
                endpoint.connect(there, 5.0)
            with connection.begin() as call:
                with self.assertRaises(ValueError):
                    call.end(1 << 40)
                with self.assertRaises(ValueError):
                    call.read_some(-2)
                with self.assertRaises(ValueError):
                    call.sendfile(0, 0, -1)
                call.end(5)

    def test_wrong_code(self):
        """A handler cannot return a number that is no code: 1 << 32 would be success."""
        with rxwire.Endpoint(address=(LOOPBACK, 0), server=True) as server, rxwire.Endpoint() as endpoint:
            server.add_service(5, lambda call: 1 << 32)
            with self.assertRaises(rxwire.RxAbort) as caught, endpoint.connect(server.address, 5).begin() as call:
                call.read()
            self.assertEqual(caught.exception.code, rxwire.RXW_USER_ABORT)

    def test_exceptions(self):
        for error in (rxwire.RxAbort(5), rxwire.RxAbort(code=5, origin=2, text="text", procedure="P_F"), rxwire.RxAbort(-3, 1), rxwire.RxAbort(7, 2, "no such job", "JOBS_Get"),
                      rxwire.RxError(-8, "call")):
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(copy), str(copy)), (type(error), str(error)))
            self.assertIn(str(error), repr(error))
        self.assertIsInstance(rxwire.RxAbort(-3), TimeoutError)
        self.assertNotIsInstance(rxwire.RxAbort(-1), TimeoutError)

    def test_names_of_both_families(self):
        """A name may have an IPv6 address first."""
        original = socket.getaddrinfo
        six = (socket.AF_INET6, socket.SOCK_DGRAM, 17, "", ("::1", 1, 0, 0))
        four = (socket.AF_INET, socket.SOCK_DGRAM, 17, "", (LOOPBACK, 1))

        def both(host, port, family=0, type=0):
            found = [item for item in (six, four) if family in (0, item[0]) and (host == "both" or item is six)]
            if not found:
                raise socket.gaierror(socket.EAI_NONAME, "no address")
            return found

        with rxwire.Endpoint(address=(LOOPBACK, 0)) as endpoint:
            socket.getaddrinfo = both
            try:
                endpoint.connect(("both", 1), AT).close()
                with self.assertRaises(rxwire.RxError) as caught:
                    endpoint.connect(("six", 1), AT)
            finally:
                socket.getaddrinfo = original
            self.assertIn("six has no IPv4 address", str(caught.exception))

    def test_asynchronous_write(self):
        """The data is neither copied nor cut for each part that the library takes."""
        taken, addresses = bytearray(), []

        def write(handle, address, length):
            if len(addresses) % 7 == 3:
                addresses.append(None)
                return -rxwire.RXW_EAGAIN
            count = min(length, 1400)
            addresses.append(address)
            taken.extend(ctypes.string_at(address, count))
            return count

        class Sink(aio._AsyncStreams):
            handle = 1

            def check(self, result):
                return result

            async def _wait_room(self):
                pass

        data = random.Random(1).randbytes(3 * aio.PIECE + 5)
        original = aio.lib
        aio.lib = types.SimpleNamespace(rxw_call_write=write)
        try:
            for given, copies in ((data, 1), (memoryview(data), 4), (bytearray(data), 4)):
                taken.clear()
                addresses.clear()
                asyncio.run(Sink().write(given))
                self.assertEqual(taken, data)
                steps = [address for address in addresses if address]
                jumps = sum(two - one != 1400 for one, two in zip(steps, steps[1:]))
                self.assertLess(jumps, copies)
        finally:
            aio.lib = original

    def test_arguments_in_pieces(self):
        """Arguments of a split procedure are decoded once, however many pieces they come in, and what is behind them
        is not copied for each read."""
        decoded = []

        class Counted:
            least = 4

            def get(self, decoder):
                text = xdr.string(8).get(decoder)
                decoded.append(text)
                return text

        procedure = rpc.Procedure("P", 1, (("list", xdr.sequence(Counted(), 10000)),), (), split=True)
        data = b"".join(xdr.encode(xdr.string(8), str(i)) for i in range(5000))
        data = memoryview(struct.pack(">I", 5000) + data + bytes(50000))
        service = types.SimpleNamespace(service=types.SimpleNamespace(rxw_request_max=1 << 20))
        call, at = aio.AsyncServerCall.__new__(aio.AsyncServerCall), 0

        async def read_some(size=1 << 16):
            nonlocal at
            at += min(size, 1000)
            return bytes(data[at - 1000:at])

        call.read_some = read_some
        values, = asyncio.run(aio._Served.arguments(service, call, procedure))
        self.assertEqual(values, [str(i) for i in range(5000)])
        self.assertEqual(len(decoded), 5000)
        del call.read_some
        whole = call._ahead.obj
        rest = len(call._ahead)
        self.assertEqual(asyncio.run(call.read(10)), bytes(10))
        self.assertEqual(len(call._ahead), rest - 10)
        self.assertIs(call._ahead.obj, whole)

    def test_complete_arguments(self):
        """Arguments that are complete are not decoded again while those behind them come."""
        decoded = []

        class Numbers(xdr.sequence):
            def get(self, decoder):
                decoded.append(self)
                return super().get(decoder)

        @xdr.structure(("value", xdr.UINT), ("next", xdr.optional(lambda: Link)), linked=True)
        class Link:
            pass

        made = []
        post = Link.__init__

        def init(self, *values):
            made.append(values)
            post(self, *values)

        fields = (("numbers", Numbers(xdr.UINT, 10000)), ("links", Link), ("list", xdr.sequence(xdr.string(8), 10000)))
        data = struct.pack(">I1000I", 1000, *range(1000)) + struct.pack(">II", 1, 1) * 999 + struct.pack(">II", 1, 0)
        data += struct.pack(">I", 1000) + xdr.encode(xdr.string(8), "abc") * 1000
        members, kept, have = xdr.Members(fields), {}, 0
        Link.__init__ = init
        try:
            while True:
                try:
                    numbers, links, texts = members.get(aio._PartDecoder(data[:have], kept, len(data)))
                    break
                except aio._More as more:
                    have = min(len(data), have + more.count)
        finally:
            Link.__init__ = post
        self.assertEqual((numbers, len(list(links)), texts), (list(range(1000)), 1000, ["abc"] * 1000))
        self.assertLess(len(decoded), 4)  # its count, its numbers
        self.assertLess(len(made), 2001)  # again, if the word behind it is missing

    def test_two_tasks_wait(self):
        class Streams(aio._AsyncStreams):
            pass

        async def run():
            streams = Streams()
            streams.queue = types.SimpleNamespace(loop=asyncio.get_running_loop())
            reading = asyncio.create_task(streams.wait(rxwire.RXW_EVENT_READ))
            writing = asyncio.create_task(streams.wait(rxwire.RXW_EVENT_WRITE))
            for event, task in ((rxwire.RXW_EVENT_READ, reading), (rxwire.RXW_EVENT_WRITE, writing)):
                await asyncio.sleep(0)
                streams.on_event(types.SimpleNamespace(events=event))
                await asyncio.wait_for(task, 60)

        asyncio.run(run())


class LoopTest(unittest.TestCase):
    """A server on threads, and clients of several event loops or of the main thread."""

    def setUp(self):
        self.server = rxwire.Endpoint(address=(LOOPBACK, 0), server=True)
        self.endpoint = rxwire.Endpoint()

    def tearDown(self):
        self.endpoint.close()
        self.server.close()

    def pool(self, **options):
        return aio.Pool(self.endpoint, self.server.address, AT, **options)

    def test_many_loops(self):
        """Queues and descriptors of event loops that have ended are freed."""
        self.server.add_service(AT, Service())

        async def run(close):
            pool = self.pool()
            self.assertEqual(await at.ATAsyncClient(pool).Lists([3]), b"\3")
            if close:
                pool.close()

        asyncio.run(run(True))
        self.assertEqual(len(self.endpoint._queues), 0)
        before = len(os.listdir("/proc/self/fd"))
        for n in range(20):
            asyncio.run(run(n % 2 == 0))
            self.assertLessEqual(len(self.endpoint._queues), 1)
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before + 1)

    def test_failing_event(self):
        """One event that fails keeps neither the others nor the packets of the batch."""
        self.server.add_service(AT, Service())

        async def run():
            problems = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context["exception"]))
            with self.pool(connections=4) as pool:
                queue = pool.queue

                class Broken:
                    def on_event(self, entry):
                        raise KeyError("broken")

                key = queue.add(Broken())
                client = at.ATAsyncClient(pool)
                # Entries of the broken owner before and after those of calls.
                take = aio.lib.rxw_queue_next

                def next_events(handle, events, most, timeout):
                    count = take(handle, events, most - 1, timeout)
                    if count > 0:
                        events[count] = events[0]
                        events[0] = aio._abi.rxw_queue_event(arg=key)
                        count += 1
                    return count

                aio.lib = types.SimpleNamespace(**{name: getattr(aio.lib, name) for name in aio._abi.FUNCTIONS})
                aio.lib.rxw_queue_next = next_events
                try:
                    replies = await asyncio.wait_for(asyncio.gather(*[client.Lists([n]) for n in range(100, 150)]), 60)
                finally:
                    aio.lib = aio._abi.lib
                self.assertEqual(replies, [bytes([n]) for n in range(100, 150)])
                queue.drop(key)
            self.assertTrue(problems and all(isinstance(problem, KeyError) for problem in problems))

        asyncio.run(run())

    def test_failed_connection(self):
        """A connection that has failed is replaced."""
        self.server.add_service(AT, Service())
        relay = Relay(self.server.address)

        async def run():
            with aio.Pool(self.endpoint, relay.address, AT) as pool:
                client = at.ATAsyncClient(pool)
                with self.assertRaises(rxwire.RxAbort) as caught:
                    await client.Lists([1])
                self.assertEqual(caught.exception.code, Relay.CODE)
                for n in range(5):
                    self.assertEqual(await client.Lists([n]), bytes([n]))

        try:
            asyncio.run(run())
        finally:
            relay.close()

    def test_one_deadline(self):
        """It bounds the wait for a channel and the call together, and has one exception."""
        gate = Gate()
        self.server.add_service(AT, gate)

        async def run():
            with self.pool() as pool:
                client = at.ATAsyncClient(pool)
                tasks = [asyncio.create_task(client.Lists([n])) for n in range(4)]
                for _ in tasks:
                    await asyncio.to_thread(gate.entered.acquire)
                with self.assertRaises(rxwire.RxAbort) as caught:
                    await client.Lists([5], deadline=0.05)
                self.assertEqual(caught.exception.code, rxwire.RXW_CALL_TIMEOUT)
                self.assertIsInstance(caught.exception, TimeoutError)
                waiting = asyncio.create_task(pool.begin(3600))
                await asyncio.sleep(0)
                given, original = [], aio.AsyncCall.__init__

                def note(call, pool, connection, deadline, *rest):
                    given.append(deadline)
                    original(call, pool, connection, deadline, *rest)

                aio.AsyncCall.__init__ = note
                try:
                    gate.released.set()
                    (await waiting).end(5)
                finally:
                    aio.AsyncCall.__init__ = original
                self.assertLess(given[0], 3600)
                await asyncio.gather(*tasks)

        asyncio.run(run())

    def test_blocking_deadline(self):
        """All channels are busy: the same exception as that of a call."""
        gate = Gate()
        self.server.add_service(AT, gate)
        connection = self.endpoint.connect(self.server.address, AT)
        client, caught = at.ATClient(connection), []
        threads = [threading.Thread(target=client.Lists, args=([n],)) for n in range(4)]
        for thread in threads:
            thread.start()
            gate.entered.acquire()

        def late():
            try:
                client.Lists([1], deadline=0.05)
            except rxwire.RxTimeout as error:
                caught.append(error)

        late()
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()
        self.assertEqual([error.code for error in caught], [rxwire.RXW_CALL_TIMEOUT] * 2)
        gate.released.set()
        for thread in threads:
            thread.join()
        self.assertEqual(client.Lists([1]), b"later")

    def test_interrupt(self):
        """^C ends a wait of the main thread: for a reply, for a channel, at the end of a with statement."""
        gate = Gate()
        self.server.add_service(AT, gate)
        connection = self.endpoint.connect(self.server.address, AT)
        client = at.ATClient(connection)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)

        def interrupt():
            gate.entered.acquire()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        def with_statement():
            with connection.begin(300) as call:
                call.write(struct.pack(">iI", at.AT_OP_Lists, 0))
                call.send_end()

        try:
            for wait in (lambda: client.Lists([1], deadline=300), with_statement):
                thread = threading.Thread(target=interrupt)
                thread.start()
                with self.assertRaises(KeyboardInterrupt):
                    wait()
                thread.join()
            # The calls above have been aborted, and leave their channels.
            threads = [threading.Thread(target=client.Lists, args=([n],)) for n in range(4)]
            for thread in threads:
                thread.start()
            for _ in threads:
                gate.entered.acquire()

            def release_when_it_waits():
                while not connection._waiting:
                    time.sleep(0.01)
                gate.entered.release()

            helpers = [threading.Thread(target=interrupt), threading.Thread(target=release_when_it_waits)]
            for helper in helpers:
                helper.start()
            with self.assertRaises(KeyboardInterrupt):
                client.Lists([1], deadline=300)
            for helper in helpers:
                helper.join()
        finally:
            signal.signal(signal.SIGINT, before)
            gate.released.set()
        for thread in threads:
            thread.join()
        self.assertEqual(client.Lists([1]), b"later")

    def test_exception_inside(self):
        """An exception is not replaced because something is still open."""
        self.server.add_service(AT, Service())
        with self.assertRaises(ValueError), rxwire.Endpoint() as endpoint:
            call = endpoint.connect(self.server.address, AT).begin()
            raise ValueError("the fault")
        call.end(5)
        endpoint.close()


    def test_waits_for_a_channel(self):
        """Others hold the channels of a pool's connection. Tasks that wait for one do not wait for ever."""

        async def run():
            pool = self.pool()

            def hold():
                return [pool.connections[0].begin() for _ in range(4)]

            others = hold()
            for _ in range(70):  # the library keeps 64 announcements
                with self.assertRaises(rxwire.RxTimeout):
                    await pool.begin(0.001)
            waiting = asyncio.create_task(pool.begin(60))
            await asyncio.sleep(0)
            others.pop().end(5)
            (await waiting).end(5)
            for call in others:
                call.end(5)
            others = hold()
            waiting = [asyncio.create_task(pool.begin()) for _ in range(5)]  # one of them has no place
            await asyncio.sleep(0)
            pool.close()
            results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)
            self.assertEqual([result.result for result in results], [rxwire.RXW_ESTATE] * 5)
            for call in others:
                call.end(5)
            # The endpoint is closed while a channel is announced.
            pool = self.pool()
            others = hold()
            waiting = asyncio.create_task(pool.begin())
            await asyncio.sleep(0)
            for call in others:
                call.end(5)
            self.endpoint.close()
            with self.assertRaises(rxwire.RxError):
                await asyncio.wait_for(waiting, 60)

        asyncio.run(run())

    def test_cancelled_with_a_deadline(self):
        """A task is cancelled although a channel has become free just now."""

        async def run():
            with self.pool() as pool:
                held = [await pool.begin() for _ in range(4)]
                for steps in range(4):
                    waiting = asyncio.create_task(pool.begin(60))
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                    held.pop().end(5)
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    if waiting.cancel():
                        with self.assertRaises(asyncio.CancelledError):
                            await waiting
                        held.append(await pool.begin(60))
                    else:
                        held.append(await waiting)
                for call in held:
                    call.end(5)
                self.assertEqual(len(pool._free), 4)

        asyncio.run(run())

    def test_end_wakes(self):
        """A task reads a call that another one ends."""
        gate = Gate()
        self.server.add_service(AT, gate)

        async def run():
            with self.pool() as pool:
                call = await pool.begin()
                await call.write(struct.pack(">iI", at.AT_OP_Lists, 0))
                await call.send_end()
                reading = asyncio.create_task(call.read())
                await asyncio.sleep(0)
                call.end(5)
                with self.assertRaises(rxwire.RxError):
                    await asyncio.wait_for(reading, 60)

        try:
            asyncio.run(run())
        finally:
            gate.released.set()

    def test_asynchronous_sendfile(self):
        data = random.Random(2).randbytes(3 << 20)
        self.server.add_service(RAW, lambda call: call.write(call.read()))

        async def run():
            with aio.Pool(self.endpoint, self.server.address, RAW) as pool, tempfile.TemporaryFile() as file:
                file.write(data)
                file.flush()
                async with await pool.begin() as call:
                    self.assertEqual(await call.sendfile(file, 5, len(data) - 9), len(data) - 9)
                    self.assertEqual(await call.sendfile(file.fileno(), len(data) - 2, 10), 2)
                    self.assertEqual(await call.sendfile(file, 0, 0), 0)
                    await call.send_end()
                    self.assertEqual(await call.read(), data[5:-4] + data[-2:])

        asyncio.run(run())

    def test_large_reply(self):
        """A client does not keep more of a reply than a reply may have."""
        self.server.add_service(AT, lambda call: call.write(bytes(1 << 20)))
        sizes, original, limit = [], rpc.finish, rpc.REPLY_MAX

        def finish(call, procedure, reply):
            sizes.append(len(reply))
            return original(call, procedure, reply)

        async def run():
            with self.pool() as pool:
                try:
                    await at.ATAsyncClient(pool).Lists([1])
                except rxwire.Error:
                    pass

        rpc.finish, rpc.REPLY_MAX = finish, 100000
        try:
            asyncio.run(run())
        finally:
            rpc.finish, rpc.REPLY_MAX = original, limit
        self.assertEqual(sizes, [100000])

    def test_removed_service(self):
        """The handle of a service that was removed may be that of another one."""
        removed = self.server.add_service(AT, Service())
        self.assertTrue(removed.remove(60))
        self.server.add_service(AT, Service())
        with self.assertRaises(rxwire.RxError):
            removed.remove()
        client = at.ATClient(self.endpoint.connect(self.server.address, AT))
        self.assertEqual(client.Lists([6]), b"\6")

    def test_refused(self):
        """What was not made leaves nothing behind."""
        engines = []

        class Engine(rxwire.core.Engine):
            def __init__(self, config=None):
                super().__init__(config)
                engines.append(self)

        original, rxwire.core.Engine = rxwire.core.Engine, Engine
        try:
            for options in ({"address": (LOOPBACK, 70000)}, {"sockets": [object()]}, {"sockets": [-1]},
                            {"config": {"windw": 3}}):
                with self.assertRaises((ValueError, AttributeError, rxwire.RxError)):
                    rxwire.Endpoint(**options)
        finally:
            rxwire.core.Engine = original
        self.assertEqual([engine for engine in engines if engine._handle], [])

        async def run():
            for service, options in ((0, {}), (AT, {"workersmax": 3}), (70000, {})):
                with self.assertRaises((ValueError, TypeError, rxwire.RxError)):
                    aio.serve(self.server, service, AsyncService(), **options)
            with self.assertRaises(ValueError):
                aio.Pool(self.endpoint, self.server.address, 70000)
            with self.assertRaises(ValueError):
                self.pool(connections=0)
            await asyncio.sleep(0)
            self.assertEqual([*self.server._queues, *self.endpoint._queues], [])

        asyncio.run(run())


class AsyncService(Service):
    """Methods as coroutines. Lists with more than one number waits for the event."""

    def __init__(self):
        self.waiting = 0
        self.all_wait = asyncio.Event()
        self.event = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def Lists(self, call, at_given):
        if len(at_given) == 2:
            self.waiting += 1
            if self.waiting == at_given[1]:
                self.all_wait.set()
            try:
                await self.event.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        return super().Lists(call, at_given)

    async def Stream(self, call, name, size):
        data = await call.read(size)
        await call.write(name.encode())
        return data.count(name[0].encode())


class AsyncServerTest(unittest.IsolatedAsyncioTestCase):
    """A server with asyncio; its threads are those of the library."""

    async def asyncSetUp(self):
        self.server = rxwire.Endpoint(address=(LOOPBACK, 0), server=True)
        self.endpoint = rxwire.Endpoint()
        self.service = AsyncService()

    async def asyncTearDown(self):
        self.endpoint.close()
        await aio.stop(self.server)

    async def test_c_client(self):
        aio.serve(self.server, AT, self.service)
        with open("values2", "wb") as file:
            for data, other in zip(random_values("at_all", 50), random_values("at_choice", 50)):
                file.write(len(data).to_bytes(4, "big") + data + len(other).to_bytes(4, "big") + other)
        done = await asyncio.create_subprocess_exec(peer, "call", str(self.server.address[1]), "values2",
                                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, errors = await done.communicate()
        self.assertEqual((done.returncode, output), (0, b"50 values\n"), errors)

    async def test_small_pieces(self):
        """However a request arrives, its arguments are decoded once."""
        aio.serve(self.server, AT, self.service)
        decoded, original = [], rpc.Procedure.get

        def get(members, decoder):
            decoded.append(members)
            return original(members, decoder)

        rpc.Procedure.get = staticmethod(get)
        try:
            with aio.Pool(self.endpoint, self.server.address, AT) as pool:
                call = await pool.begin(60)
                request = at.rxw_proc_AT_Lists.request(([5] * 3,))
                for i in range(0, len(request), 4):
                    await call.write(request[i : i + 4])
                    await call.flush()
                    await asyncio.sleep(0.001)
                await call.send_end()
                await call.read()
                call.end(5)
        finally:
            rpc.Procedure.get = staticmethod(original)
        self.assertEqual(decoded, [at.rxw_proc_AT_Lists.arguments])

    async def test_waiting_calls(self):
        """1,000 waiting calls need no thread and no descriptor each."""
        count = 1000
        aio.serve(self.server, AT, self.service)
        with aio.Pool(self.endpoint, self.server.address, AT, connections=count // 4) as pool:
            files, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
            client = at.ATAsyncClient(pool)
            tasks = [asyncio.create_task(client.Lists([-n, count])) for n in range(count)]
            await self.service.all_wait.wait()
            self.assertLessEqual(len(os.listdir("/proc/self/fd")), files)
            self.assertLessEqual(len(os.listdir("/proc/self/task")), threads + 4)
            self.service.event.set()
            self.assertEqual([len(reply) for reply in await asyncio.gather(*tasks)], [2] * count)

    async def test_cancel(self):
        """Cancelling the call cancels the task that serves it."""
        aio.serve(self.server, AT, self.service)
        with aio.Pool(self.endpoint, self.server.address, AT) as pool:
            client = at.ATAsyncClient(pool)
            task = asyncio.create_task(client.Lists([1, 1]))
            await self.service.all_wait.wait()
            task.cancel()
            await self.service.cancelled.wait()
            self.assertEqual(await client.Lists([1]), b"\1")

    async def test_stop(self):
        """What waits when the endpoint is stopped is told so."""
        aio.serve(self.server, AT, self.service)
        pool = aio.Pool(self.endpoint, self.server.address, AT)
        task = asyncio.create_task(at.ATAsyncClient(pool).Lists([1, 1]))
        await self.service.all_wait.wait()
        await aio.stop(self.server)
        with self.assertRaises(rxwire.RxAbort):
            await task
        self.assertTrue(self.service.cancelled.is_set())
        self.server = rxwire.Endpoint()

    async def test_plain_handler(self):
        async def handler(call):
            data = await call.read()
            if not data:
                return 7
            for at_byte in range(0, len(data), 100000):
                await call.write(memoryview(data)[at_byte : at_byte + 100000])

        aio.serve(self.server, 5, handler, name="plain")
        data = bytes(range(256)) * 8192
        with aio.Pool(self.endpoint, self.server.address, 5) as pool:
            async with await pool.begin() as call:
                await call.write(data)
                await call.send_end()
                self.assertEqual(await call.read(), data)
            with self.assertRaises(rxwire.RxAbort) as caught:
                async with await pool.begin(5) as call:
                    await call.send_end()
                    await call.read()
            self.assertEqual(caught.exception.code, 7)


if __name__ == "__main__":
    peer, modules = sys.argv[1], sys.argv[2:]
    logging.disable(logging.CRITICAL)
    unittest.main(argv=sys.argv[:1])
