#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""List, write and read files of a cell: afs-files.py DIRECTORY [CELL=HOST[:VLPORT[:FSPORT]]]..."""
import sys

import rxafs

top, *cells = sys.argv[1:]
with rxafs.Client(cells=cells, timeout=30) as afs:
    try:
        afs.log_in()  # with the tickets that kinit has left
    except OSError as error:
        print(f"anonymous: {error.strerror}", file=sys.stderr)
    afs.mkdir(f"{top}/letters")
    for name in ("ada", "charles"):
        with afs.open(f"{top}/letters/{name}", "w") as file:
            print(f"Dear {name.title()},", file=file)
    for entry in sorted(afs.scandir(f"{top}/letters"), key=lambda entry: entry.name):
        print(entry.name, entry.stat().st_size)
    with afs.open(f"{top}/letters/ada") as file:
        print(file.read(), end="")
    try:
        afs.open(f"{top}/letters/nobody")
    except FileNotFoundError as error:
        print(error.strerror)
