#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the corpus of fuzz_types.c and fuzz_stubs.c, in src/tests/robustness/fuzz/corpus.

Run python3 corpus.py in this folder after a change of an .xg file and commit the result: a value of each
type, and a request and a reply of each procedure.
"""

import glob
import os
import random
import sys
import warnings

warnings.filterwarnings("ignore", category=DeprecationWarning)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "robustness", "fuzz"))

import inputs
import values
import xgread

FILES = sorted(glob.glob(os.path.join(HERE, "..", "..", "afs", "*.xg"))) + [os.path.join(HERE, "all-types.xg")]
MOST = 1200  # bytes; exceeded only if every value is larger

made = {"types": {}, "stubs": {}}


def name_hash(name):
    """The hash of decoders.c."""
    h = 2166136261
    for byte in name.encode():
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return (h ^ h >> 16) & 0xFFFF


def bytes_of(coders, r):
    """The longest of 40 random encodings up to MOST bytes, or the shortest one."""
    found = []
    for _ in range(40):
        p = values.Packer()
        for coder in coders:
            coder.pack(p, coder.make(r))
        found.append(p.get_buffer())
    short = [f for f in found if len(f) <= MOST]
    return max(short, key=len) if short else min(found, key=len)


def put(target, entry, name, how, data):
    head = name_hash(name).to_bytes(2, "big") + bytes([how, 0])
    made[target][entry] = head + data


def of_types(path):
    types = xgread.read(path)
    coders = values.coders(types)
    for t in types:
        if not t.included:
            how = name_hash(t.name) & 0xFE  # all flags except failing allocations
            put("types", t.name, t.name, how, bytes_of([coders[t.name]], random.Random(t.name)))


def of_stubs(path):
    reader = xgread.Reader(path)
    coders = values.coders(reader.order, [d for p in reader.procedures for _, d in p.params])
    for p in reader.procedures:
        name, r = p.package + p.name, random.Random(p.package + p.name)
        how = name_hash(name) & 0xFC
        request = bytes_of([coders[d] for where, d in p.params if where != "OUT"], r)
        put("stubs", name + "-request", p.package + "ExecuteRequest", how, p.opcode.to_bytes(4, "big") + request)
        reply = [coders[d] for where, d in p.params if where != "IN"]
        if reply:
            put("stubs", name + "-reply", "End" + name, how, bytes_of(reply, r))


def main():
    for path in FILES:
        of_types(path)
        of_stubs(path)
    for target, new in made.items():
        inputs.put(target, new)


if __name__ == "__main__":
    main()
