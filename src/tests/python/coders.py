#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Random values of every type of an interface: the generated Python module against an independent XDR.

coders.py FILE.xg FOLDER-OF-THE-MODULE [VALUES] [SEED]
"""
import importlib
import os
import random
import sys
import uuid
import warnings

warnings.filterwarnings("ignore", category=DeprecationWarning)
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "xg"))

import values
import xgread
from rxwire import aio, xdr


def decode_in_pieces(kind, data, r):
    """As the arguments of a split procedure, which come in pieces."""
    kept, have = {}, 0
    while True:
        decoder = aio._PartDecoder(data[:have], kept, len(data))
        try:
            value = xdr.of(kind).get(decoder)
            break
        except aio._More as more:
            have = min(len(data), have + max(more.count, r.randint(1, 40)))
    expect(decoder.at == len(data), f"decoded up to {decoder.at} of {len(data)} bytes")
    return value


def expect(good, what):
    if not good:
        raise AssertionError(what)


def to_python(coder, v):
    """The value that the module has for a value of values.py, without its classes."""
    if isinstance(coder, values.Text):
        return v.decode("utf-8", "surrogateescape")
    if isinstance(coder, values.Struct) and "clock_hi" in v:
        tail = bytes(n & 0xFF for n in [v["clock_hi"], v["clock_low"], *v["node"]])
        words = v["time_low"].to_bytes(4, "big") + v["time_mid"].to_bytes(2, "big") + v["time_hi"].to_bytes(2, "big")
        return uuid.UUID(bytes=words + tail)
    if isinstance(coder, values.Struct):
        return {name: to_python(kind, v[name]) for name, kind in coder.fields}
    if isinstance(coder, (values.Bytes, values.Block)):
        return v
    if isinstance(coder, (values.Array, values.Counted)):
        return [to_python(coder.element, item) for item in v]
    if isinstance(coder, values.Maybe):
        return None if v is None else to_python(coder.element, v)
    if isinstance(coder, values.Choice):
        kind = coder.arm(v[0])[1]
        return v[0], to_python(kind, v[1]) if kind else None
    return v


def plain(value):
    """A value of the module without its classes."""
    kind = getattr(type(value), "_xdr_", None)
    if isinstance(kind, xdr.Structure):
        return {name: plain(getattr(value, name)) for name in kind.members.names}
    if isinstance(kind, xdr.Union):
        return value._case_, plain(value._content_)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def check_type(kind, coder, packer, r):
    v = coder.make(r)
    packer.reset()
    coder.pack(packer, v)
    data = packer.get_buffer()
    value = xdr.decode(kind, data)
    expect(plain(value) == to_python(coder, v), f"decoded {value!r}\nvalue: {v!r}\nbytes: {data.hex()}")
    expect(value == xdr.decode(kind, data), f"not equal to itself: {value!r}")
    expect(value == decode_in_pieces(kind, data, r), f"decoded in pieces otherwise than {value!r}")
    repr(value)
    got = xdr.encode(kind, value)
    expect(got == data, f"encoded {got.hex()}\nvalue: {value!r}\nbytes: {data.hex()}")
    expect(len(data) >= xdr.of(kind).least, f"{len(data)} bytes, fewer than the minimum {xdr.of(kind).least}")
    if not data:
        return
    cut = r.randrange(len(data))
    try:
        xdr.decode(kind, data[:cut])
    except xdr.DecodeError:
        pass
    else:
        expect(False, f"decoded from {cut} of {len(data)} bytes: {data.hex()}")
    # Damaged data is decoded or refused; nothing else happens.
    damaged = bytearray(data)
    for _ in range(r.randrange(1, 4)):
        at = r.randrange(len(data) // 4) * 4
        damaged[at : at + 4] = r.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\1\0\0", r.randbytes(4)))
    try:
        again = xdr.encode(kind, xdr.decode(kind, damaged))
        xdr.decode(kind, again)
    except xdr.DecodeError:
        pass


def main():
    path, folder = sys.argv[1:3]
    number = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    seed = sys.argv[4] if len(sys.argv) > 4 else "20781"
    sys.path.insert(0, folder)
    name = os.path.basename(path)[:-3].replace("-", "_")
    module = importlib.import_module(name)
    types = xgread.read(path)
    coders, packer, tested = values.coders(types, large=200), values.Packer(), 0
    for t in types:
        kind, r = getattr(module, t.name), random.Random(f"{seed} {t.name}")
        for i in range(number):
            try:
                check_type(kind, coders[t.name], packer, r)
            except (AssertionError, xdr.XdrError) as error:
                sys.exit(f"FAIL: {t.name}, value {i} of seed {seed}: {type(error).__name__} {str(error)[:4000]}")
        # The default can be encoded, unless C's zeros cannot either.
        try:
            data = xdr.encode(kind, xdr.of(kind).default())
            expect(xdr.decode(kind, data) == xdr.of(kind).default(), f"{t.name}: the default")
        except xdr.EncodeError as error:
            expect("has no case" in str(error), f"{t.name}: the default: {error}")
        tested += 1
    expect(tested, f"{path} has no types")
    print(f"{os.path.basename(path)}: {tested} types, {number} values each, seed {seed}")


if __name__ == "__main__":
    main()
