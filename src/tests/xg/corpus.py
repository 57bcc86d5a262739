#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the corpus of fuzz_types.c, src/tests/fuzz/corpus/types, of values of each type.

python3 corpus.py, in this folder, after a change to an .xg file. The result is in the tree.
"""

import glob
import os
import random
import shutil
import warnings

warnings.filterwarnings("ignore", category=DeprecationWarning)

import values
import xgread

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "..", "fuzz", "corpus", "types")
FILES = sorted(glob.glob(os.path.join(HERE, "..", "..", "afs", "*.xg"))) + [os.path.join(HERE, "all-types.xg")]
MOST = 1200  # bytes; larger only where every value is


def name_hash(name):
    """As in fuzz_types.c."""
    h = 2166136261
    for byte in name.encode():
        h = (h ^ byte) * 16777619 & 0xFFFFFFFF
    return (h ^ h >> 16) & 0xFFFF


def value_of(coder, r):
    """Of 40 values the longest one that is no longer than MOST, or the shortest."""
    found = []
    for _ in range(40):
        p = values.Packer()
        coder.pack(p, coder.make(r))
        found.append(p.get_buffer())
    short = [f for f in found if len(f) <= MOST]
    return max(short, key=len) if short else min(found, key=len)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    number = 0
    for path in FILES:
        types = xgread.read(path)
        coders = values.coders(types)
        for t in types:
            if t.included:
                continue
            number += 1
            head = name_hash(t.name).to_bytes(2, "big") + bytes([number * 37 % 256 & ~1, 0])
            with open(os.path.join(FOLDER, t.name + ".bin"), "wb") as f:
                f.write(head + value_of(coders[t.name], random.Random(t.name)))


if __name__ == "__main__":
    main()
