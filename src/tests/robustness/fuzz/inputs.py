#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The corpora of the fuzz targets: corpus/TARGET.hex. README.md describes the format.

inputs.py unpack TARGET FOLDER      a file for each input
inputs.py add TARGET NAME FILE      add an input, or replace the one of that name
"""

import os
import sys

CORPORA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
BYTES = 48  # in a line
SHORTEST = 8  # a line of text; shorter ones are written as bytes


def path_of(target):
    return os.path.join(CORPORA, target + ".hex")


def load(target):
    """Comment lines at the beginning, and a dictionary of inputs by name."""
    head, inputs = [], {}
    if not os.path.exists(path_of(target)):
        return ["# SPDX-License-Identifier: BSD-2-Clause", f"# Inputs of the fuzz target {target}."], inputs
    with open(path_of(target), encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("#"):
                if not inputs:
                    head.append(line)
            elif line.startswith("-- "):
                name = line[3:]
                if name in inputs:
                    sys.exit(f"{f.name}:{number}: a second input {name}")
                inputs[name] = b""
            elif line.startswith("|"):
                inputs[name] += line[1:].encode() + b"\n"
            else:
                inputs[name] += bytes.fromhex(line)
    return head, inputs


def is_text(line):
    return line.endswith(b"\n") and all(32 <= c < 127 or c == 9 for c in line[:-1])


def lines_of(data):
    """The lines of an input: text where it is text. A byte before a text is an option of several targets."""
    raw = b""
    pieces = data.splitlines(keepends=True)
    if pieces and not is_text(pieces[0]) and is_text(pieces[0][1:]):
        pieces[:1] = [pieces[0][:1], pieces[0][1:]]
    for line in pieces:
        if is_text(line) and (len(line) > SHORTEST or not raw):
            yield from hex_lines(raw)
            raw = b""
            yield "|" + line[:-1].decode("ascii")
        else:
            raw += line
    yield from hex_lines(raw)


def hex_lines(raw):
    for at in range(0, len(raw), BYTES):
        yield raw[at:at + BYTES].hex(" ", -4)


def store(target, head, inputs):
    with open(path_of(target), "w", encoding="ascii") as f:
        f.write("\n".join(head) + "\n")
        for name, data in inputs.items():
            f.write("\n".join([f"-- {name}", *lines_of(data)]) + "\n")


def put(target, new):
    """Replaces inputs of the same names, adds the others at the end, and keeps the rest."""
    head, inputs = load(target)
    inputs.update(new)
    store(target, head, inputs)


def unpack(target, folder):
    os.makedirs(folder, exist_ok=True)
    for name, data in load(target)[1].items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "unpack":
        unpack(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 5 and sys.argv[1] == "add":
        with open(sys.argv[4], "rb") as found:
            put(sys.argv[2], {sys.argv[3]: found.read()})
    else:
        sys.exit(__doc__)
