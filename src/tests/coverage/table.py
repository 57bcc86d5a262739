#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Adds up gcov's counts for each line: table.py LINES.json TOP LEAST. See run."""

import collections
import json
import os
import sys

FLOORS = ("src/rx/base/", "src/rx/proto/")


def read(path, top):
    """Lines of each file of both layers, with the number of runs, summed over all objects that contain it."""
    files = collections.defaultdict(dict)
    with open(path, encoding="utf-8") as f:
        for text in f:
            report = json.loads(text)
            for file in report["files"]:
                name = os.path.relpath(
                    os.path.realpath(os.path.join(report["current_working_directory"], file["file"])),
                    os.path.realpath(top))
                if name.startswith(FLOORS):
                    lines = files[name]
                    for line in file["lines"]:
                        at = line["line_number"]
                        lines[at] = lines.get(at, 0) + line["count"]
    return files


def ranges(numbers):
    """3-5,9"""
    out = []
    for n in numbers:
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def main():
    files = read(sys.argv[1], sys.argv[2])
    least = float(sys.argv[3])
    if not files:
        sys.exit("no lines were counted")
    total = collections.Counter()
    print(f"{'file':34} {'lines':>6} {'run':>6} {'%':>6}")
    for name in sorted(files):
        lines = files[name]
        ran = sum(1 for count in lines.values() if count)
        total.update(lines=len(lines), ran=ran)
        print(f"{name:34} {len(lines):6} {ran:6} {100 * ran / max(1, len(lines)):6.1f}")
        if os.environ.get("COVERAGE_MISSING"):
            missing = ranges(sorted(at for at, count in lines.items() if not count))
            if missing:
                print(f"    {missing}")
    share = 100 * total["ran"] / total["lines"]
    print(f"{'base and proto':34} {total['lines']:6} {total['ran']:6} {share:6.1f}")
    if share < least:
        sys.exit(f"{share:.1f} % of the lines ran, {least:g} % are required")


if __name__ == "__main__":
    main()
