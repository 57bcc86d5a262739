# SPDX-License-Identifier: BSD-2-Clause
"""many.py serve CALLS | load PORT CALLS: a server that answers when CALLS calls wait at the same time, and its client.

Each says how many descriptors it has beyond those before the calls, how many threads, and how much memory.
"""
import asyncio
import os
import sys

import echo
import rxwire
from rxwire import aio

RECEIVE = {"rcvbuf": "32M"}  # many requests and replies come together


def count(what):
    return len(os.listdir(f"/proc/self/{what}"))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 2**20


def say(calls, before):
    print(f"{calls} calls wait: {count('fd') - before} more descriptors, {count('task')} threads, {resident()} MiB", flush=True)


class Gathering(echo.ECHOService):
    """No call is answered before all of them are there."""

    def __init__(self, calls):
        self.calls, self.waiting, self.before = calls, 0, 0
        self.all_wait = asyncio.Event()
        self.done = asyncio.Event()

    async def Echo(self, call, data, wait):
        self.waiting += 1
        if self.waiting == self.calls:
            say(self.waiting, self.before)
            self.all_wait.set()
        await self.all_wait.wait()
        self.waiting -= 1
        if not self.waiting:
            self.done.set()
        return data


async def serve(calls):
    endpoint = rxwire.Endpoint(address=("127.0.0.1", 0), server=True, config=RECEIVE)
    service = Gathering(calls)
    aio.serve(endpoint, echo.ECHO_SERVICE, service)
    service.before = count("fd")
    print(f"port {endpoint.address[1]}", flush=True)
    await service.done.wait()
    await aio.stop(endpoint, 60)


async def load(port, calls):
    with rxwire.Endpoint(config=RECEIVE) as endpoint:
        with aio.Pool(endpoint, ("127.0.0.1", port), echo.ECHO_SERVICE, connections=(calls + 3) // 4) as pool:
            before, more = count("fd"), None
            client = echo.ECHOAsyncClient(pool)

            async def one(number):
                nonlocal more
                answer = await client.Echo(b"%d" % number, 0)
                if more is None:
                    # The first answer: the server has all calls, and this side still waits for the others.
                    more = count("fd") - before
                return answer == b"%d" % number

            good = sum(await asyncio.gather(*[one(number) for number in range(calls)]))
            print(f"{good} good answers; {more} more descriptors, {count('task')} threads, {resident()} MiB", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(int(sys.argv[2])))
    else:
        asyncio.run(load(int(sys.argv[2]), int(sys.argv[3])))
