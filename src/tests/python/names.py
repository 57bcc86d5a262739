#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The module of renamed.xg, in the current folder."""
import os
import sys

sys.path.insert(0, os.getcwd())

import renamed as names
import rxwire
from rxwire import xdr


class Service(names.NamesService):
    def Call(self, call, self_, call_, deadline_, self__, import_):
        return self_ + call_ + deadline_ + self__ + import_, [names.list(5, names.list(6))]

    def print(self, call, type):
        return type[::-1]

    def x_under(self, call, False_):
        False_.x__a = 7
        return False_


def check(got, want):
    if got != want:
        sys.exit(f"FAIL: {got!r}, not {want!r}")


def main():
    check((names.None_, names.None__, names.str), (1, 2, 3))
    check(names.lambda_, "a \\ \\t string")
    check([value.name for value in names.bytes], ["mro_", "x_private", "x__hidden", "is_", "value", "name"])
    check(names._private, names.bytes.x_private)
    check(names.bytes.__doc__, 'A comment """ with\n\n    lines \\')
    value = names.int_(int_=1, put=names.mro, class_="x", from_="y", get=b"z", x__a=2, _b=3, _xdr=4)
    check(xdr.decode(names.int_, xdr.encode(names.int_, value)), value)
    arm = names.property(1, value)
    check((arm.value, arm.True_), (1, value))
    check(names.property(2, "text").value_, "text")
    with rxwire.Endpoint(address=("127.0.0.1", 0), server=True) as endpoint:
        endpoint.add_service(9, Service())
        client = names.NamesClient(endpoint.connect(endpoint.address, 9))
        check(tuple(client.Call(1, 2, 3, 4, 5)), (15, [names.list(5, names.list(6))]))
        check(client.print([names.property(1, value), names.property(9)]), [names.property(9), names.property(1, value)])
        check(client.x_under(value).x__a, 7)
    print("all names can be used")


if __name__ == "__main__":
    main()
