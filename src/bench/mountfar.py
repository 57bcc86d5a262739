# SPDX-License-Identifier: BSD-2-Clause
"""Rows of src/bench/mount over a long path, from within `lab` (src/tests/link): JSON Lines on standard output.

usage: mountfar.py JSON, {"build": ..., "work": ..., "option": [...], "rate": Mbit/s of the link}
The round trip takes 20 ms.
"""
import json
import os
import sys
import time
import types

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mountbed import Bed, list_long, read_file, seconds, write_file  # noqa: E402

ROUND_TRIP = 0.02
NAMES = 1000
LARGE = 128 << 20


def out(name, value, aim):
    print(json.dumps([name, value, aim]), flush=True)


def main():
    ask = json.loads(sys.argv[1])
    os.mkdir(ask["work"])
    a = types.SimpleNamespace(build=ask["build"], option=ask["option"])
    bed = Bed(a, ask["work"], os.environ["RXW_FAR4"], os.environ["RXW_FAR"].split())
    try:
        top, _ = bed.mount("here")
        os.listdir(top)
        line = ask["rate"] * 1e6 / 8
        os.mkdir(top + "/made")
        os.mkdir(top + "/names")
        count = 20
        took = seconds(lambda: [write_file(f"{top}/made/c{i}", b"z" * 3000) for i in range(count)])
        out("20 ms away: create, write and close, round trips a file", took / count / ROUND_TRIP, 2.2)
        near, _ = bed.mount("near", there=bed.there)
        for i in range(NAMES):
            os.close(os.open(f"{near}/names/n{i}", os.O_CREAT | os.O_WRONLY))
        data = os.urandom(1 << 20)

        def write():
            with open(top + "/large", "wb", buffering=0) as f:
                for _ in range(LARGE >> 20):
                    f.write(data)
        out("20 ms away: write and close ÷ line", LARGE / seconds(write) / line, None)
        again, _ = bed.mount("again")
        os.listdir(again)
        # The server greets a new client, and what was promised before is asked again.
        time.sleep(0.5)
        os.listdir(again)
        out("20 ms away: ls -l of 1,000 names, round trips", seconds(lambda: list_long(again + "/names")) / ROUND_TRIP, 5)
        out("20 ms away: sequential read ÷ line", LARGE / seconds(lambda: read_file(again + "/large")) / line, 0.7)
    finally:
        bed.close()


if __name__ == "__main__":
    main()
