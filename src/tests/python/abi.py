#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The constants, structures and functions of rxwire/_abi.py equal those of the headers.

abi.py TOP CC...            CC is the compiler with its options
abi.py --rxafs TOP CC...    those of rxafs/_abi.py
"""
import ctypes as C
import glob
import os
import re
import subprocess
import sys
import tempfile

RXAFS = "--rxafs" in sys.argv
if RXAFS:
    sys.argv.remove("--rxafs")
    from rxafs import _abi
else:
    from rxwire import _abi

PREFIX = "rxafs_" if RXAFS else "rxw_"
HEADERS = "src/client/include/rxafs" if RXAFS else "src/rx/include/rxwire"
INCLUDED = ["rxafs"] if RXAFS else ["rxwire", "token", "keys", "rxkad", "rxgk"]
BUILD = ("src/client", "librxafs_la") if RXAFS else ("src/rx", "librxwire_la")
bad = checked = 0


def expect(got, want, what):
    global bad, checked
    checked += 1
    if got != want:
        print(f"FAIL: {what}: {got} in _abi.py, {want} in the headers")
        bad += 1


def constants():
    return {name: value for name, value in vars(_abi).items() if name.startswith(PREFIX.upper())}


def program():
    """A C program that prints values, sizes and offsets, one a line."""
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    lines += [f"#include <{os.path.basename(HEADERS)}/{name}.h>" for name in INCLUDED]
    lines += ["#define SHOW(x) printf(\"%s %lld\\n\", #x, (long long)(x))", "int main(void)", "{"]
    lines += [f"\tSHOW({name});" for name in constants()]
    for structure in _abi.STRUCTURES:
        name = structure.__name__
        lines.append(f"\tSHOW(sizeof(struct {name}));")
        for field, _ in structure._fields_:
            lines.append(f"\tSHOW(offsetof(struct {name}, {field}));")
            lines.append(f"\tSHOW(sizeof(((struct {name} *)0)->{field}));")
    return "\n".join(lines + ["\treturn 0;", "}", ""])


def run(top, compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "abi.c"), os.path.join(folder, "abi")
        with open(source, "w", encoding="ascii") as file:
            file.write(program())
        subprocess.run([*compiler, "-I", os.path.join(top, "src/rx/include"), "-I", os.path.join(top, "src/client/include"), "-o", binary, source], check=True)
        output = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    return {what: int(value) for what, value in (line.rsplit(" ", 1) for line in output.splitlines())}


def check_values(found):
    for name, value in constants().items():
        expect(value, found[name], name)
    for structure in _abi.STRUCTURES:
        name = structure.__name__
        expect(C.sizeof(structure), found[f"sizeof(struct {name})"], f"sizeof(struct {name})")
        for field, _ in structure._fields_:
            member = getattr(structure, field)
            expect(member.offset, found[f"offsetof(struct {name}, {field})"], f"offset of {name}.{field}")
            expect(member.size, found[f"sizeof(((struct {name} *)0)->{field})"], f"size of {name}.{field}")


# The class of a parameter or a result: what the calling convention distinguishes.
NUMBERS = {"void": None, "int": ("i", 4), "unsigned": ("u", 4), "int32_t": ("i", 4), "rxw_code": ("i", 4), "uint32_t": ("u", 4),
           "uint16_t": ("u", 2), "uint8_t": ("u", 1), "size_t": ("u", C.sizeof(C.c_size_t)),
           "ssize_t": ("i", C.sizeof(C.c_size_t)), "socklen_t": ("u", 4), "off_t": ("i", 8), "int64_t": ("i", 8), "uint64_t": ("u", 8), "bool": ("b", 1)}


def of_c(text):
    if "*" in text or "[" in text:
        return "pointer"
    words = [word for word in text.split() if word != "const" and not word.startswith("RXW_")]  # attributes
    if words[0] == "enum":
        return "u", 4
    return NUMBERS[words[0]]


def of_ctypes(kind):
    if kind is None:
        return None
    if issubclass(kind, (C.c_void_p, C.c_char_p)) or hasattr(kind, "contents"):
        return "pointer"
    if issubclass(kind, C.c_bool):
        return "b", 1
    signed = kind(-1).value < 0
    return ("i" if signed else "u"), C.sizeof(kind)


def prototypes(top):
    found = {}
    for path in glob.glob(os.path.join(top, HEADERS, "*.h")):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.M | re.S)
        text = re.sub(r"\(\*\w+\)\([^()]*\)", "*", text)  # parameters that are functions
        for statement in re.split("[;{}]", text):
            match = re.match(r"\s*([\w\s]+?[\s*]+)(" + PREFIX + r"\w+)\(([^()]*)\)", statement)
            if match:
                result, name, arguments = match.groups()
                found[name] = result, [part.strip() for part in arguments.split(",") if part.strip() != "void"]
    return found


def check_functions(top):
    headers = prototypes(top)
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        if name not in headers:
            expect("present", "absent", f"{name}()")
            continue
        their_result, their_arguments = headers[name]
        expect(of_ctypes(result), of_c(their_result), f"result of {name}()")
        expect([of_ctypes(kind) for kind in arguments], [of_c(text) for text in their_arguments],
               f"arguments of {name}()")


def check_soname(top):
    folder, target = BUILD
    with open(os.path.join(top, folder, "local.mk"), encoding="utf-8") as file:
        current, _, age = re.search(target + r"_LDFLAGS.*-version-info (\d+):(\d+):(\d+)", file.read()).groups()
    expect(_abi.SONAME, f"{target[:-3]}.so.{int(current) - int(age)}", "the name of the library")


def main():
    top, compiler = sys.argv[1], sys.argv[2:]
    check_values(run(top, compiler))
    check_functions(top)
    check_soname(top)
    print(f"{checked} values, {len(_abi.STRUCTURES)} structures, {len(_abi.FUNCTIONS)} functions")
    return 1 if bad or checked < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
