#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares rxwgen's JSON with xgread.py: json_check.py FILE.xg FILE.json. Prints the first difference."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "xg"))

import xgread

KINDS = {
    "i32": "int", "u32": "unsigned int", "i16": "short", "u16": "unsigned short", "i8": "char",
    "u8": "unsigned char", "i64": "hyper", "u64": "unsigned hyper", "uuid": "afsUUID",
}
SHAPES = {"one": "value", "pointer": "optional", "fixed": "array", "counted": "counted"}


def kind_of(decl):
    return KINDS.get(decl.kind, decl.kind) if isinstance(decl.kind, str) else decl.kind.name


def of_decl(decl):
    if decl is None:
        return (None, "void", "value", None)
    return (decl.name, kind_of(decl), SHAPES[decl.shape], decl.bound)


def of_param(decl):
    """A counted parameter has a type of its own, unless it is a string. '*' has no effect."""
    if decl.shape == "counted" and decl.kind != "string":
        return (decl.name, decl.name, "value", None)
    if decl.shape == "pointer":
        return (decl.name, kind_of(decl), "value", None)
    return of_decl(decl)


def of_json(object):
    return (object.get("name"), object["type"], object["shape"], object.get("bound"))


def expect(what, got, wanted):
    if got != wanted:
        print(f"{what}: {got!r} in the JSON, but {wanted!r} in the file")
        sys.exit(1)


def check_type(object, wanted):
    expect(wanted.name, object["kind"], wanted.what)
    if wanted.what == "struct":
        expect(wanted.name, [of_json(m) for m in object["members"]], [of_decl(m) for m in wanted.members])
    elif wanted.what == "union":
        expect(wanted.name, of_json(object["discriminant"]), of_decl(wanted.switch))
        expect(wanted.name, [(a["case"], of_json(a)) for a in object["arms"]],
               [(value, of_decl(d)) for value, d in wanted.arms])
    elif wanted.what == "enum":
        expect(wanted.name, [v["value"] for v in object["values"]], wanted.values)
    else:
        expect(wanted.name, of_json(object["alias"]), of_decl(wanted.alias))


def main():
    with open(sys.argv[2], encoding="utf-8") as f:
        tree = json.load(f)
    reader = xgread.Reader(sys.argv[1])
    types = {t["name"]: t for t in tree["types"]}
    expect("types", sorted(types), sorted(t.name for t in reader.order))
    for wanted in reader.order:
        check_type(types[wanted.name], wanted)
    procedures = [(package["name"], p) for package in tree["packages"] for p in package["procedures"]]
    expect("procedures", [(name, p["name"], p["opcode"]) for name, p in procedures],
           [(p.package, p.name, p.opcode) for p in reader.procedures])
    for (_, object), wanted in zip(procedures, reader.procedures):
        expect(wanted.name, [(p["direction"], of_json(p)) for p in object["parameters"]],
               [(direction, of_param(d)) for direction, d in wanted.params])
    print(f"{os.path.basename(sys.argv[1])}: {len(types)} types, {len(procedures)} procedures")


if __name__ == "__main__":
    main()
