#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads a file of a volume in order, by librxafs: pathreads.py CELL=HOST:VL:FS PATH FILE [AFTER COMMANDS LINE]

The bytes must be those of FILE. After so many bytes the line is written to the file COMMANDS. Prints the longest wait in seconds.
"""
import sys
import time

import rxafs

PIECE = 1 << 18


def main():
    cell, path, name, *event = sys.argv[1:]
    done = 0
    longest = 0.0
    with rxafs.Client(cell.partition("=")[0], cells=[cell]) as afs, open(name, "rb") as wanted, \
            afs.open(path, "rb", buffering=0) as file:
        while True:
            began = time.monotonic()
            got = file.read(PIECE)
            longest = max(longest, time.monotonic() - began)
            if got != wanted.read(len(got)):
                sys.exit(f"other bytes after {done}")
            if not got:
                break
            done += len(got)
            if event and done >= int(event[0]):
                with open(event[1], "w", encoding="ascii") as commands:
                    commands.write(event[2] + "\n")
                event = []
        if wanted.read(1):
            sys.exit(f"it ends after {done}")
    print(f"{longest:.2f}")


main()
