# SPDX-License-Identifier: BSD-2-Clause
"""Reads types and procedures of an .xg file, independently of the compiler.

read(path) returns a list of Type in order, with those of included files marked; procedures(path) returns
a list of Procedure. Supports %#define NAME NUMBER, but neither other macros nor conditionals.
"""

import os
import re

TOKEN = re.compile(r'"[^"]*"|0[xX][0-9A-Fa-f]+|\d+|[A-Za-z_]\w*|<<|>>|[:;,=*\[\]{}()<>+\-/%&|^~]')
DIRECTIONS = ("IN", "OUT", "INOUT")
SCALARS = {
    "int": "i32", "afs_int32": "i32", "long": "i32", "afs_uint32": "u32", "u_int": "u32", "u_long": "u32",
    "short": "i16", "u_short": "u16", "char": "i8", "u_char": "u8", "bool": "bool", "float": "float",
    "double": "double", "afs_int64": "i64", "hyper": "i64", "u_hyper": "u64", "afs_time64": "i64", "afs_uint64": "u64", "afsUUID": "uuid",
    "opaque": "opaque", "string": "string",
}
DEFAULT_BYTES = 1 << 20  # bounds of x<>: rxgen.md 3.4
DEFAULT_ELEMENTS = 65536


class Decl:
    """One declaration. kind: a value of SCALARS, or a Type; shape: one, pointer, fixed, counted."""

    def __init__(self, kind, shape, name, bound):
        self.kind, self.shape, self.name, self.bound = kind, shape, name, bound


class Type:
    """what: struct (members), union (switch, arms), enum (values), typedef (alias)."""

    def __init__(self, what, name, included):
        self.what, self.name, self.included = what, name, included
        self.members, self.arms, self.values, self.switch, self.alias = [], [], [], None, None


class Procedure:
    """params: (direction, Decl). A pointer has no effect on the wire."""

    def __init__(self, package, name):
        self.package, self.name, self.params, self.opcode = package, name, [], None


class Reader:
    def __init__(self, path):
        self.names, self.types, self.order, self.later = {}, {}, [], []
        self.procedures, self.package, self.direction, self.opcode = [], None, "IN", 0
        self.file(path, False)
        for decl, name in self.later:
            decl.kind = self.types[name]

    def file(self, path, included):
        with open(path, encoding="ascii") as f:
            text = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
        lines = []
        for line in text.split("\n"):
            include = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            define = re.match(r"%\s*#\s*define\s+(\w+)\s+(-?\w+)\s*$", line)
            if include:
                self.tokens = TOKEN.findall(" ".join(lines))
                lines = []
                self.definitions(included)
                self.file(os.path.join(os.path.dirname(path), include.group(1)), True)
            elif define:
                self.names[define.group(1)] = int(define.group(2), 0)
            elif not line.startswith("%"):
                lines.append(line)
        self.tokens = TOKEN.findall(" ".join(lines))
        self.definitions(included)

    # -- tokens

    def next(self):
        return self.tokens.pop(0)

    def want(self, token):
        got = self.next()
        if got != token:
            raise ValueError(f"'{token}' expected, not '{got}' before {' '.join(self.tokens[:8])}")

    def accept(self, token):
        if self.tokens and self.tokens[0] == token:
            self.next()
            return True
        return False

    def number(self):
        """The value of a constant expression, which ends before a token that is not part of one."""
        text, depth = "", 0
        while self.tokens and re.match(r"[\w+\-*/%&|^~()]|<<|>>", self.tokens[0]):
            if self.tokens[0] == ")" and not depth or text and re.match(r"\w\w", text[-1] + self.tokens[0]):
                break
            token = self.next()
            depth += (token == "(") - (token == ")")
            text += str(self.names.get(token, token)) if re.match("[A-Za-z_]", token) else token.replace("/", "//")
        return eval(text, {"__builtins__": {}}, {"TRUE": 1, "FALSE": 0})

    # -- definitions

    def definitions(self, included):
        while self.tokens:
            word = self.next()
            if word == "const":
                name = self.next()
                self.want("=")
                self.names[name] = self.number()
                self.want(";")
            elif word in ("struct", "union", "enum", "typedef"):
                getattr(self, "do_" + word)(included)
                self.want(";")
            elif word == "package":
                self.package = self.next()
            elif word == "prefix":
                self.next()
            elif word == "statindex":
                self.number()
            else:
                self.procedure(word, included)

    def add(self, what, name, included):
        new = Type(what, name, included)
        self.types[name] = new
        self.order.append(new)
        return new

    def do_struct(self, included):
        new = Type("struct", self.next(), included)
        self.want("{")
        while not self.accept("}"):
            new.members.append(self.decl())
            self.want(";")
        self.types[new.name] = new
        self.order.append(new)

    def do_union(self, included):
        new = Type("union", self.next(), included)
        self.want("switch")
        self.want("(")
        new.switch = self.decl()
        self.want(")")
        self.want("{")
        while not self.accept("}"):
            value = None if self.next() == "default" else self.number()
            self.want(":")
            new.arms.append((value, None if self.accept("void") else self.decl()))
            self.want(";")
        self.types[new.name] = new
        self.order.append(new)

    def do_enum(self, included):
        new = self.add("enum", self.next(), included)
        self.want("{")
        value = -1
        while True:
            name = self.next()
            value = self.number() if self.accept("=") else value + 1
            self.names[name] = value
            new.values.append(value)
            if not self.accept(","):
                break
        self.want("}")

    def do_typedef(self, included):
        alias = self.decl()
        self.add("typedef", alias.name, included).alias = alias

    def procedure(self, word, included):
        new = Procedure(self.package, self.next() if word == "proc" else word)
        self.procedures.append(new)
        while self.next() != "(":
            pass
        while not self.accept(")"):
            while self.tokens[0] in DIRECTIONS:
                self.direction = self.next()
            decl = self.decl()
            new.params.append((self.direction, decl))
            if decl.shape == "counted" and decl.kind != "string" and decl.name not in self.types:
                self.add("typedef", decl.name, included).alias = decl
            self.accept(",")
        while not self.accept(";"):
            if self.next() == "=":
                new.opcode = self.number()
        if new.opcode is None:
            new.opcode = self.opcode
            self.opcode += 1

    def decl(self):
        word = self.next()
        if word in ("struct", "enum", "union"):
            word = self.next()
        if word == "unsigned":
            word = {"char": "u_char", "short": "u_short", "hyper": "u_hyper"}.get(self.tokens[0], "u_int")
            if self.tokens[0] in ("char", "short", "int", "afs_int32", "long", "hyper"):
                self.next()
        if word in ("short", "u_short", "afs_int32"):
            self.accept("int")
        decl = Decl(SCALARS.get(word), "one", None, None)
        if decl.kind is None:
            decl.kind = self.types.get(word)
            if decl.kind is None:
                self.later.append((decl, word))
        if self.accept("*"):
            decl.shape = "pointer"
        decl.name = self.next()
        if self.accept("["):
            decl.shape, decl.bound = "fixed", self.number()
            self.want("]")
        elif self.accept("<"):
            decl.shape = "counted"
            if self.accept(">"):
                decl.bound = DEFAULT_BYTES if decl.kind in ("opaque", "string") else DEFAULT_ELEMENTS
            else:
                decl.bound = self.number()
                self.want(">")
        return decl


def read(path):
    return Reader(path).order


def procedures(path):
    return Reader(path).procedures
