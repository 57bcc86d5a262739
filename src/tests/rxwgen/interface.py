#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a random, valid interface to standard output: python3 interface.py SEED."""

import random
import re
import sys

SCALARS = [
    "int", "afs_int32", "afs_uint32", "unsigned", "unsigned int", "long", "u_long", "u_int",
    "short", "unsigned short", "u_short", "char", "unsigned char", "u_char", "bool", "afs_int64",
    "afs_uint64", "afs_time64", "struct afs_time64", "hyper", "unsigned hyper", "float", "double", "afsUUID",
]
# Names with another meaning in C, C++ or the generated code.
WORDS = [
    "len", "val", "v", "x", "i", "n", "p", "u", "class", "new", "this", "count", "room", "code",
    "call", "index", "free", "errno", "list", "at", "there", "base", "operator", "size_t",
]


class Interface:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.out = []
        self.types = []
        self.enums = []
        self.constants = []
        self.used = 0

    def one_of(self, *what):
        return self.random.choice(what)

    def chance(self, p):
        return self.random.random() < p

    def name(self, prefix):
        self.used += 1
        return f"{prefix}{self.used}"

    def bound(self):
        number, constant = self.random.randint(1, 99), self.one_of("3", *self.constants[-3:])
        return self.one_of(str(3 * number), hex(number), constant, f"{constant} * 2 - 1",
                           f"({constant} + {number}) / 2 << 1")

    def counted(self):
        return f"<{self.bound() if self.chance(0.7) else ''}>"

    def decl(self, name):
        r = self.random
        any_type = r.choice(SCALARS + 2 * self.types)
        kind = r.randint(0, 9)
        if kind < 4:
            return f"{any_type} {name}"
        if kind == 4:
            return f"{r.choice(self.types or SCALARS)} *{name}"
        if kind == 5:
            return f"{any_type} {name}[{self.one_of(1, 2, 3, 7)}]"
        if kind == 6:
            return f"{any_type} {name}{self.counted()}"
        if kind == 7:
            return f"opaque {name}[{self.bound()}]"
        return f"{self.one_of('opaque', 'string')} {name}{self.counted()}"

    def names(self, count):
        """Distinct names for members."""
        some = self.random.sample(WORDS, min(count, len(WORDS)) // 2)
        return some + [self.name("m") for _ in range(count - len(some))]

    def constant(self):
        name = self.name("C")
        behind = self.one_of("", " /* what it is */")
        self.out.append(f"const {name} = {self.one_of(5, '0x20', 77)};{behind}")
        self.constants.append(name)

    def enum(self):
        name = self.name("e")
        values = [self.name("V") for _ in range(self.random.randint(1, 5))]
        text = ", ".join(v + self.one_of("", f" = {self.random.randint(-9, 9999)}") for v in values)
        self.out.append(f"enum {name} {{ {text} }};")
        self.enums.append(name)
        self.types.append(name)

    def typedef(self):
        name = self.name("t")
        self.out.append(f"typedef {self.decl(name)};")
        self.types.append(name)

    def union(self):
        name = self.name("u")
        switch = self.one_of("int", "unsigned", "bool", *self.enums)
        most = 2 if switch == "bool" else 99
        cases = self.random.sample(range(most), self.random.randint(1, min(most, 4)))
        labels = [f"case {c}" for c in cases] + (["default"] if self.chance(0.5) else [])
        names = self.names(len(labels) + 1)
        arms = [f"{label}: {self.one_of('void', self.decl(n))};" for label, n in zip(labels, names)]
        self.out.append(f"union {name} switch ({switch} {names[-1]}) {{\n" + "\n".join(arms) + "\n};")
        self.types.append(name)

    def struct(self):
        name = self.name("s")
        members = [self.decl(n) for n in self.names(self.random.randint(1, 9))]
        if self.chance(0.3):
            members.append(f"{name} *{self.name('next')}")
        elif self.chance(0.2):
            members.insert(0, f"{name} *{self.name('tree')}")
        lines = [f"\t{m};{self.one_of('', ' /* a note */')}" for m in members]
        self.out.append(f"struct {name} {{\n" + "\n".join(lines) + "\n};")
        self.types.append(name)

    def procedure(self, opcode):
        counts = {"IN": self.random.randint(0, 4), "INOUT": self.random.randint(0, 1),
                  "OUT": self.random.randint(0, 4)}
        params = []
        for direction, count in counts.items():
            for _ in range(count):
                # An array implies a type of its name, so WORDS are for other parameters.
                text = self.decl("@")
                plain = re.search("<", text) is None or text.startswith("string")
                name = self.name(self.random.choice(WORDS) if self.chance(0.5) else "a")
                if plain and self.chance(0.3):
                    name = self.random.choice(WORDS) + "_" * len(params)
                params.append(f"{direction} {text.replace('@', name)}")
        kind = self.one_of("", "", " split", " multi")
        self.out.append(f"{self.name('F')}({', '.join(params)}){kind} = {opcode};")

    def text(self):
        kinds = [self.constant, self.enum, self.typedef, self.union, self.struct, self.struct]
        for _ in range(self.random.randint(5, 25)):
            if self.chance(0.3):
                self.out.append(f"/* {self.one_of('a comment', 'two', 'long ' * 30)} */")
            self.random.choice(kinds)()
        opcode = 0
        for k in range(self.random.randint(0, 3)):
            self.out.append(f"package P{k}_")
            if self.chance(0.5):
                self.out.append(f"statindex {self.random.randint(0, 99)}")
            for _ in range(self.random.randint(1, 6)):
                opcode += 1
                self.procedure(opcode)
        return "\n".join(self.out) + "\n"


if __name__ == "__main__":
    sys.stdout.write(Interface(int(sys.argv[1])).text())
