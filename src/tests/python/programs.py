#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Generated Python clients and the programs of this project.

programs.py rxperf PORT
programs.py rxfsd FS-ADDRESS VL-ADDRESS FOLDER    FOLDER is the one that is exported
"""
import asyncio
import json
import os
import struct
import sys
import threading
import time
import uuid

sys.path.insert(0, os.getcwd())

import rxwire
from rxwire import aio

RXPERF_SERVICE, RXPERF_FIGURES, FS_SERVICE, VL_SERVICE, CALLBACK_SERVICE = 147, 30147, 1, 52, 1
FILE_SIZE = 3000001


def expect(good, what):
    if not good:
        sys.exit(f"FAIL: {what}")


def transfer(client, module, what, size, reply):
    """One call of rxperf; its data is any."""
    if what == module.RXPERF_SEND:
        command = module.rxperf_transfer(module.rxperf_sizes(8192, 8192), size)
    elif what == module.RXPERF_RECV:
        command = module.rxperf_transfer(module.rxperf_sizes(8192, 8192), reply)
    else:
        command = module.rxperf_exchange(module.rxperf_sizes(8192, 8192), size, reply)
    with client.Run(module.rxperf_command(what, command)) as stream:
        stream.write(bytes(size))
        data = stream.read()
    expect(len(data) == reply + 4, f"{what!r}: {len(data)} bytes, not {reply + 4}")
    expect(int.from_bytes(data[-4:], "big") == module.RXPERF_COOKIE, f"{what!r}: the cookie")


def rxperf(port):
    import rxperf as module

    address = "127.0.0.1", int(port)
    with rxwire.Endpoint() as endpoint:
        client = module.RXPERFClient(endpoint.connect(address, RXPERF_SERVICE))
        transfer(client, module, module.RXPERF_SEND, 1000000, 0)
        transfer(client, module, module.RXPERF_RECV, 0, 1000000)
        transfer(client, module, module.RXPERF_RPC, 100, 200)
        figures = module.RXPERFFIGClient(endpoint.connect(address, RXPERF_FIGURES))
        token = figures.Mark(0)
        for _ in range(20):
            transfer(client, module, module.RXPERF_RPC, 1, 1)
        with figures.Report(token) as stream:
            report = json.loads(stream.read())
        expect(report["calls"] == 20, f"the report: {report}")
        try:
            client.Run(module.rxperf_command(module.RXPERF_SEND, module.rxperf_transfer(bytes=1))).finish()
        except rxwire.RxAbort as error:
            expect(error.origin == rxwire.RXW_ORIGIN_PEER, f"an invalid size: {error}")
        else:
            expect(False, "an invalid size is accepted")
        asyncio.run(rxperf_async(endpoint, address, module))


async def rxperf_async(endpoint, address, module):
    with aio.Pool(endpoint, address, RXPERF_SERVICE, connections=4) as pool:
        client = module.RXPERFAsyncClient(pool)
        command = module.rxperf_command(
            module.RXPERF_RPC, module.rxperf_exchange(module.rxperf_sizes(8192, 8192), 100000, 300000))

        async def one():
            async with client.Run(command) as stream:
                await stream.write(bytes(100000))
                return len(await stream.read())

        expect(await asyncio.gather(*[one() for _ in range(40)]) == [300004] * 40, "asyncio")


def parse(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def wait_for(holds, limit=60):
    """Whether it holds within `limit` seconds."""
    until = time.monotonic() + limit
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def rxfsd(fs, vl, folder):
    import afs_common
    import rxafs
    import rxafscb
    import vl as vlmodule

    known, broken = threading.Event(), threading.Event()

    class Callbacks(rxafscb.RXAFSCBService):
        """The file server asks who its client is, and says when a file has changed."""

        def TellMeAboutYourself(self, call):
            return rxafscb.interfaceAddr(uuid=uuid.uuid4()), [rxafscb.CLIENT_CAPABILITY_ERRORTRANS]

        def InitCallBackState3(self, call, server):
            known.set()

        def CallBack(self, call, fids, cbs):
            broken.set()

    with rxwire.Endpoint(address=("127.0.0.1", 0)) as endpoint:
        endpoint.add_service(CALLBACK_SERVICE, Callbacks())
        entry = vlmodule.VLClient(endpoint.connect(parse(vl), VL_SERVICE)).GetEntryByNameN("export")
        name = bytes(n & 0xFF for n in entry.name).rstrip(b"\0")
        expect(name == b"export", f"the name of the volume: {name}")
        volume = entry.volumeId[1] or entry.volumeId[0]
        files = rxafs.RXAFSClient(endpoint.connect(parse(fs), FS_SERVICE))
        seconds, microseconds = files.GetTime()
        expect(abs(seconds - time.time()) < 60 and microseconds < 1000000, f"the time: {seconds}")
        expect(files.GetCapabilities()[0] & rxafs.VICED_CAPABILITY_64BITFILES, "the capabilities")
        root = rxafs.AFSFid(volume, 1, 1)
        status = files.FetchStatus(root)
        expect(status.st.FileType == 2, f"the root: {status}")
        expect(known.wait(60), "the file server has not called its client")
        with files.FetchData64(root, 0, 1 << 20) as stream:
            image = stream.read(int.from_bytes(stream.read(8), "big"))
            stream.finish()
        # An entry of a directory (afs-fileserver 6): vnode and uniquifier precede the name.
        fid = rxafs.AFSFid(volume, *struct.unpack_from(">II", image, image.index(b"file\0") - 8))
        found = files.FetchStatus(fid)
        expect(found.st.FileType == 1 and found.st.Length == FILE_SIZE, f"the file: {found.st}")
        with open(os.path.join(folder, "file"), "rb") as file:
            want = file.read()
        with files.FetchData64(fid, 1000, 2 * FILE_SIZE) as stream:
            length = int.from_bytes(stream.read(8), "big")
            expect(length == FILE_SIZE - 1000, f"the length: {length}")
            expect(stream.read(length) == want[1000:], "the contents")
            result = stream.finish()
        expect(result.st == found.st, f"the status after the contents: {result.st}")
        promised = wait_for(lambda: files.FetchStatus(fid).cb.CallBackType == rxafs.CB_SHARED)
        expect(promised, "no callback is promised")
        with open(os.path.join(folder, "file"), "ab") as file:
            file.write(b"more")
        expect(broken.wait(60), "the callback is not broken")
        try:
            files.FetchStatus(rxafs.AFSFid(volume, 99, 99))
        except rxwire.RxAbort as error:
            expect(error.code == 102 or error.errno, f"an unknown file: {error}")
        else:
            expect(False, "an unknown file is found")
        expect(afs_common.AFSFid(1, 2, 3) == rxafs.AFSFid(1, 2, 3), "the module is imported, not copied")


if __name__ == "__main__":
    {"rxperf": rxperf, "rxfsd": rxfsd}[sys.argv[1]](*sys.argv[2:])
    print(f"{sys.argv[1]}: all calls answered")
