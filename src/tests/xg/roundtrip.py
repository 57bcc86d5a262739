#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Random values of every type of one .xg file, through the generated coders and through xdrlib.

roundtrip.py FILE.xg LIBRARY [--values N] [--seed S] [--type NAME]
Prints one line for each type. After the first difference it prints that and exits with status 1.
"""

import argparse
import ctypes as C
import random
import sys
import time
import warnings

warnings.filterwarnings("ignore", category=DeprecationWarning)

import values
import xgread

CURSOR = 256  # bytes; more than sizeof(struct rxw_xdr)


class Failure(Exception):
    pass


class Library:
    """The generated code with the counting heap (heap.c)."""

    def __init__(self, path):
        self.lib = C.CDLL(path)
        self.cursor = C.create_string_buffer(CURSOR)
        self.used = self.call("rxw_xdr_used", C.c_size_t)
        self.writer = self.call("rxw_xdr_writer")
        self.reader = self.call("rxw_xdr_reader")
        self.live = self.call("heap_live", C.c_size_t)

    def call(self, name, result=None):
        function = getattr(self.lib, name)
        function.restype = result
        return function

    def of_type(self, name):
        return (self.call("xdr_put_" + name, C.c_bool), self.call("xdr_get_" + name, C.c_bool),
                self.call("xdrfree_" + name))

    def encode(self, put, c, size):
        out = C.create_string_buffer(size or 1)
        self.writer(self.cursor, out, C.c_size_t(size))
        ok = put(self.cursor, C.byref(c))
        return out.raw[:size][:self.used(self.cursor)] if ok else None

    def decode(self, get, c, data):
        """The number of bytes used, or None."""
        self.reader(self.cursor, data, C.c_size_t(len(data)))
        return self.used(self.cursor) if get(self.cursor, C.byref(c)) else None


def one_value(library, coder, functions, packer, r):
    put, get, free = functions
    v = coder.make(r)
    packer.reset()
    coder.pack(packer, v)
    want = packer.get_buffer()

    keep = []
    c = values.as_object(coder, coder.to_c(v, keep))
    got = library.encode(put, c, len(want))
    if got != want:
        raise Failure(f"encoded {got and got.hex()}, xdrlib has {want.hex()}\nvalue: {v!r}")
    if want and r.random() < 0.05 and library.encode(put, c, r.randrange(len(want))) is not None:
        raise Failure(f"encoded into less than its {len(want)} bytes\nvalue: {v!r}")

    c = coder.ct()
    used = library.decode(get, c, want + bytes(4))
    if used != len(want):
        raise Failure(f"decoding used {used} of {len(want)} bytes: {want.hex()}\nvalue: {v!r}")
    back = coder.from_c(values.content(c))
    if back != v:
        raise Failure(f"decoded {back!r}\nvalue: {v!r}\nbytes: {want.hex()}")
    free(C.byref(c))
    if library.live():
        raise Failure(f"{library.live()} allocations are left after xdrfree\nvalue: {v!r}")
    if want and r.random() < 0.05:
        c = coder.ct()
        cut = r.randrange(len(want))
        if library.decode(get, c, want[:cut]) is not None:
            raise Failure(f"decoded from {cut} of {len(want)} bytes: {want.hex()}")
        if library.live():
            raise Failure(f"{library.live()} allocations are left after a failed decoding of {cut} bytes: "
                          f"{want.hex()}")
    return len(want)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    p.add_argument("library")
    p.add_argument("--values", type=int, default=10000)
    p.add_argument("--seed", type=int, default=20781)
    p.add_argument("--type")
    arg = p.parse_args()
    types = xgread.read(arg.file)
    library, coders, packer = Library(arg.library), values.coders(types), values.Packer()
    print(f"{arg.file}: {arg.values} values of each type, seed {arg.seed}, wire by {values.packer_from}")
    tested = 0
    for t in types:
        if t.included or arg.type not in (None, t.name):
            continue
        # The seed depends on the type, so that a new type does not change the values of others.
        r, start, total = random.Random(f"{arg.seed} {t.name}"), time.monotonic(), 0
        functions = library.of_type(t.name)
        for i in range(arg.values):
            try:
                total += one_value(library, coders[t.name], functions, packer, r)
            except Failure as e:
                print(f"{t.name}, value {i} of seed {arg.seed}: {str(e)[:4000]}")
                return 1
        print(f"  {t.name}: {total // max(1, arg.values)} bytes on average, {time.monotonic() - start:.1f} s")
        tested += 1
    if not tested:
        print(f"{arg.file}: no type" + (f" {arg.type}" if arg.type else ""))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
