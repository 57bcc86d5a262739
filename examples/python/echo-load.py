#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""echo-load.py PORT [CALLS [SECONDS]]: holds CALLS (10,000) calls in progress, each of which the server answers after
SECONDS (5), and reports descriptors, threads and memory; then as many calls that are answered at once."""
import asyncio
import os
import resource
import sys
import time

import echo
import rxwire
from rxwire import aio


def count(what):
    return len(os.listdir(f"/proc/self/{what}"))


async def run(port, calls, seconds):
    with rxwire.Endpoint(config={"rcvbuf": "32M"}) as endpoint:
        with aio.Pool(endpoint, ("127.0.0.1", port), echo.ECHO_SERVICE, connections=(calls + 3) // 4) as pool:
            client = echo.ECHOAsyncClient(pool)
            before, start = count("fd"), time.monotonic()
            tasks = [asyncio.create_task(client.Echo(b"%d" % n, int(seconds * 1000))) for n in range(calls)]
            await asyncio.sleep(seconds * 0.8)
            waiting = sum(not task.done() for task in tasks)
            print(f"{waiting} calls wait, with {count('fd') - before} more descriptors and {count('task')} threads")
            answers = await asyncio.gather(*tasks)
            good = sum(answer == b"%d" % n for n, answer in enumerate(answers))
            print(f"{good} good answers after {time.monotonic() - start:.1f} s")
            start = time.monotonic()
            await asyncio.gather(*[client.Echo(b"again", 0) for _ in range(calls)])
            print(f"{calls / (time.monotonic() - start):.0f} calls per second")
            print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10000,
                    float(sys.argv[3]) if len(sys.argv) > 3 else 5))
