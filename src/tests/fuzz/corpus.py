#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes corpus/ from the recorded packets: python3 corpus.py, in this folder. The result is in the tree.

corpus/types comes from src/tests/xg/corpus.py.
"""

import json
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "..", "vectors")
HEADER = 28


def load(name):
    with open(os.path.join(VECTORS, name), encoding="utf-8") as f:
        return json.load(f)


def put(target, name, data):
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".bin"), "wb") as f:
        f.write(data)


def word(value):
    return (value & 0xFFFFFFFF).to_bytes(4, "big")


def packets():
    for name in ("packets-data.json", "packets-jumbo.json", "packets-ack.json", "packets-misc.json"):
        for vector in load(name)["vectors"]:
            yield vector["id"], bytes.fromhex(vector["hex"])


def from_packets():
    for name, data in packets():
        kind, body = data[20], data[HEADER:]
        if name in ("rxperf-1", "ack-ping", "busy", "abort-raw", "version-request", "jumbo-2"):
            put("header", name, data[:HEADER])
        if kind == 2:
            put("ack", name, body)
        elif kind == 4:
            put("abort", name, body)
        elif kind == 8:
            put("debug", name, body)
        elif kind == 1 and (name.startswith("jumbo") or len(data) < 100):
            put("jumbo", name, data)


def train(members, first=b"", flags=1, payload=20):
    """Consecutive packets of one call, equal in size but for the last."""
    out = first
    for i in range(members):
        last = i + 1 == members
        out += word(0x80000001) + word(0x1234) + word(1) + word(5 + i) + word(100 + i)
        out += bytes([1, flags | (4 if last else 0), 0, 0, 0, 0, 0, 147])
        out += bytes([i]) * (payload - 7 if last else payload)
    return out


def trains():
    def length(n):
        return n.to_bytes(2, "big")

    one = train(1)
    put("run", "train-6", length(48) + train(6))
    put("run", "train-broken", length(48) + train(3)[:-13] + bytes(20) + train(2, payload=20))
    put("run", "two-calls", length(48) + train(2)[:96] + train(3).replace(word(0x1234), word(0x1238)))
    put("run", "short-tail", length(48) + train(4) + bytes(9))
    put("run", "single", length(0) + one)
    put("run", "tiny-segment", length(5) + one)
    put("run", "acks", length(65) + b"".join(d for n, d in packets() if d[20] == 2 and len(d) == 65)[:325])
    jumbo = dict(packets())["jumbo-last"]
    put("run", "jumbo", length(len(jumbo)) + jumbo + jumbo)


def scripts():
    """For fuzz_conn.c: set-up, then operations."""
    data = lambda flags, seq, count, size: bytes([0, 1, flags, 4, count, size, seq]) + b"x" * min(size, 8)
    ack = lambda reason, n, first: bytes([0, 2, 0x20, 0, 0, 37 + n, 0]) + bytes(
        [0, 0, 0, 0, 0, 0, 0, first, 0, 0, 0, 0, 0, 0, 0, 0, reason, n]) + b"\1" * n + bytes(3) + (
        word(1444) + word(1444) + word(255) + word(1))
    read, reply, last, finish, pause = bytes([4]), bytes([5, 0x3c]), bytes([5, 1]), bytes([6, 0]), bytes([3, 2])
    batch, begin = bytes([7]), bytes([8])
    put("conn", "server-call", bytes([2]) + data(4, 4, 0, 8) + batch + read + last + finish + pause + ack(8, 0, 2))
    put("conn", "server-bulk", bytes([6]) + data(0, 4, 15, 8) + batch + read + data(4, 4, 3, 8) + read
        + reply * 4 + pause + ack(1, 8, 1) + ack(3, 9, 3) + last + finish + ack(9, 0, 7) * 3 + pause * 3)
    put("conn", "server-gap", bytes([2]) + data(0, 6, 2, 8) + batch + data(4, 4, 1, 8) + read + last + finish)
    put("conn", "client-call", bytes([3]) + begin + bytes([5, 1]) + pause + ack(1, 1, 1)
        + data(4, 4, 0, 8) + read + finish)
    put("conn", "client-bulk", bytes([7]) + begin + reply * 3 + ack(1, 4, 1) + ack(3, 20, 3) + bytes([3, 4])
        + last + ack(9, 0, 7) + data(0, 4, 9, 8) + read + data(4, 4, 0, 8) + read + finish + begin)
    put("conn", "aborted", bytes([3]) + begin + last + bytes([0, 4, 0, 4, 0, 4, 0]) + word(-455) + finish)
    put("conn", "busy", bytes([3]) + begin + last + bytes([0, 3, 0, 4, 0, 0, 0]) + pause + bytes([3, 6]) * 3)
    put("conn", "timers", bytes([2]) + data(4, 4, 0, 8) + read + last + finish + bytes([3, 3]) * 9 + bytes([3, 7]))


def made():
    """Forms that were not recorded: old trailers, a full table, extremes."""
    fixed = word(0) + word(7) + word(6) + word(5)
    put("header", "ones", b"\xff" * HEADER)
    put("header", "short", b"\x01" * (HEADER - 1))
    for words in (0, 2, 3):
        put("ack", f"trailer-{words}", fixed + bytes([9, 2, 1, 1, 0, 0, 0]) + word(1444) * words)
    put("ack", "full-table", fixed + bytes([3, 255]) + b"\x00\x01\x01" * 85 + bytes(3) + word(1444) * 4)
    put("ack", "absurd-trailer", fixed + bytes([1, 0, 0, 0, 0]) + b"\xff" * 16)
    for code in (0, -1, -455, 103, 19270409, 49733377, 1233242886, -2**31):
        put("abort", f"code-{code}", word(code))
    put("debug", "type-3", word(3) + word(1))
    # xdr: number of operations, the operations of fuzz_xdr.c, then what they decode
    text = word(5) + b"hello\0\0\0"
    put("xdr", "string", bytes([1, 5 | 8 << 3]) + text)
    put("xdr", "bytes", bytes([1, 4 | 8 << 3]) + text)
    put("xdr", "count", bytes([4, 6 | 8 << 3, 0, 0, 0]) + word(3) + word(1) + word(2) + word(3))
    put("xdr", "numbers", bytes([4, 0, 1, 2, 3 | 2 << 3]) + bytes(range(24)))
    put("xdr", "long-string", bytes([1, 5 | 31 << 3]) + word(90) + b"x" * 92)
    put("xdr", "huge-length", bytes([3, 5 | 31 << 3, 7 | 8, 0]) + word(0xFFFFFFFF) + bytes(16))
    # The second set, in pieces of 1 to 1000 bytes.
    put("xdr", "texts", bytes([32 | 2, 3 | 8 << 3, 4 | 8 << 3]) + text + text)
    put("xdr", "array", bytes([96 | 1, 6 | 31 << 3]) + word(40) + bytes(range(160)))
    put("xdr", "nested", bytes([160 | 1, 5]) + word(1) * 3 + word(0))
    put("xdr", "deep", bytes([224 | 1, 5]) + word(1) * 65 + word(0))
    put("xdr", "uuid", bytes([224 | 3, 2, 1, 0]) + bytes(range(56)))


def from_requests():
    for number, operation in enumerate(load("rxstats.json")["operations"]):
        if number % 3 == 0:
            body = bytes.fromhex(operation["requestBody"])
            put("xdr", f"rxstats-{operation['operation']}", bytes([3, 0, 0, 0]) + body)


if __name__ == "__main__":
    for target in ("abort", "ack", "conn", "debug", "header", "jumbo", "run", "xdr"):
        shutil.rmtree(os.path.join(HERE, "corpus", target), ignore_errors=True)
    from_packets()
    made()
    trains()
    scripts()
    from_requests()
