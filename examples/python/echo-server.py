#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""echo-server.py [PORT]: a service with asyncio. Calls that wait need neither a thread nor a descriptor each."""
import asyncio
import signal
import sys

import echo
import rxwire
from rxwire import aio


class Echo(echo.ECHOService):
    async def Echo(self, call, data, wait):
        if wait:
            await asyncio.sleep(wait / 1000)
        return data


async def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    # The limits of the library and of the kernel must suit many requests that arrive together.
    endpoint = rxwire.Endpoint(address=("127.0.0.1", port), server=True, config={"rcvbuf": "32M"})
    aio.serve(endpoint, echo.ECHO_SERVICE, Echo())
    print(f"port {endpoint.address[1]}", flush=True)
    await stopped.wait()
    await aio.stop(endpoint, 5)


if __name__ == "__main__":
    asyncio.run(main())
