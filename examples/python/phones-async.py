#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""phones-async.py PORT: many calls at once, on one thread."""
import asyncio
import sys

import phones
import rxwire
from rxwire import aio


async def main():
    with rxwire.Endpoint() as endpoint:
        address = "127.0.0.1", int(sys.argv[1])
        with aio.Pool(endpoint, address, phones.PHONES_SERVICE, connections=4) as pool:
            client = phones.PHONESAsyncClient(pool)
            names = [f"person {n}" for n in range(100)]
            await asyncio.gather(*[client.Add(name, phones.phone(number=name[7:])) for name in names])
            found = await asyncio.gather(*[client.Find(name) for name in names])
            print(f"{len(found)} people, the last has {found[-1][0].number}")
            async with client.Export() as stream:
                text = await stream.read(int.from_bytes(await stream.read(4), "big"))
                print(f"{await stream.finish()} lines, {len(text.splitlines())} received")


if __name__ == "__main__":
    asyncio.run(main())
