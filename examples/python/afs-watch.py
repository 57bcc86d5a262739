#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tell what happens in a directory of a cell: afs-watch.py DIRECTORY [CELL=HOST[:VLPORT[:FSPORT]]]..."""
import sys

import rxafs

top, *cells = sys.argv[1:]
with rxafs.Client(cells=cells) as afs, afs.watch(top, attributes=True) as watch:
    print("watching", flush=True)
    for event in watch:
        print(event.kind, event.name or ".", flush=True)
        if event.name == "end":
            break
