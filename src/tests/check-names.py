#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names of functions and files, and assertions, in the C files of the product (src without src/tests and src/bench).

usage: check-names.py [TOP] [--list [MODULE]]

Four figures of each module: the share of static functions of more than five lines whose name is one word, the share of
static functions whose name another file uses for a function too, assertions per 1,000 lines, and the files whose name
another file of the same library or program has. Fails if a module of DONE is above LIMITS, if one of ASSERTED has too
few assertions, or if the whole product is worse than WHOLE. With --list the names are printed.
"""

import collections
import os
import re
import sys

# Shares in percent, number of files.
LIMITS = {"one word": 5.0, "shared": 8.0, "same file": 0}
# Modules that must be within the limits.
DONE = ["src/admin", "src/afs", "src/afscp", "src/classic", "src/client", "src/common", "src/fileserver", "src/observe",
        "src/program", "src/protection", "src/rx/base", "src/rx/engine", "src/rx/io", "src/rx/keys",
        "src/rx/proto", "src/rx/rpc", "src/rx/rpcstats", "src/rx/rxgk", "src/rx/rxkad", "src/rx/token", "src/rxwgen",
        "src/rxafs", "src/rxperf", "src/rxpt", "src/rxvol", "src/rxwstat", "src/volume"]
# Modules that must have this many assertions per 1,000 lines.
ASSERTED = {"src/fileserver": 5.0, "src/observe": 5.0, "src/rx/base": 5.0, "src/rx/engine": 5.0, "src/rx/io": 5.0,
            "src/rx/proto": 5.0, "src/rxwgen": 6.0, "src/volume": 7.0}
# The whole product when this table was last changed. Lower it after an improvement.
WHOLE = {"one word": 0.1, "shared": 1.0, "same file": 0}
WHOLE_ASSERTED = 4.9

# Folders that have modules in folders of their own.
GROUPS = ("src/rx",)
# Public headers: programs include them by folder and name.
PUBLIC = ("src/rx/include/rxwire", "src/client/include/rxafs", "src/classic/rx")
# Libraries and programs: files within one of them have different names. Each tool is one.
PROGRAMS = ("src/rx", "src/classic", "src/afs", "src/client", "src/volume", "src/protection", "src/admin", "src/fileserver",
            "src/rxwgen", "src/common")
SMALL = 5

Function = collections.namedtuple("Function", "name file line lines static")

NOT_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'", re.DOTALL)
ASSERTION = re.compile(r"(?<![A-Za-z0-9_])assert\(")
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)")
NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")


def strip_comments(text):
    """The text without comments and strings; line numbers stay."""
    return NOT_CODE.sub(lambda found: "\n" * found.group().count("\n") if found.group()[0] == "/" else '""', text)


def function_name(head):
    """The name in the text that precedes the body, or None for a macro's."""
    found = NAMED.search(ATTRIBUTE.sub("", head))
    return found.group(1) if found and not found.group(1).isupper() else None


def read_functions(path, code):
    lines = code.split("\n")
    for number, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        first = number
        while first > 0 and lines[first - 1].strip() and not re.search(r"[;}]\s*$|^\s*#", lines[first - 1]):
            first -= 1
        head = " ".join(lines[first:number])
        name = function_name(head)
        last = next((n for n in range(number, len(lines)) if lines[n].startswith("}")), None)
        if name and last is not None and not re.search(r"[=]\s*$", head):
            yield Function(name, path, first + 1, last - first + 1, "static" in head.split(name)[0].split())


def module_of(path):
    folders = os.path.dirname(path).split("/")
    return "/".join(folders[:3 if "/".join(folders[:2]) in GROUPS else 2])


def program_of(path):
    return next((p for p in PROGRAMS if path.startswith(p + "/")), module_of(path))


def read_product(top):
    """Functions, lines and assertions of each file. Generated files are left out."""
    functions, sizes = [], {}
    for folder, folders, names in os.walk(os.path.join(top, "src")):
        place = os.path.relpath(folder, top)
        if place in ("src/tests", "src/bench"):
            folders.clear()
            continue
        for name in sorted(names):
            if not name.endswith((".c", ".h")):
                continue
            path = os.path.join(place, name)
            with open(os.path.join(top, path), encoding="utf-8") as file:
                text = file.read()
            if text.startswith("/* Made by "):
                continue
            code = strip_comments(text)
            functions += read_functions(path, code)
            sizes[path] = (text.count("\n"), len(ASSERTION.findall(code)))
    return functions, sizes


def same_files(paths):
    """Paths whose last part another path of the library or program has."""
    places = collections.defaultdict(list)
    for path in paths:
        if not path.startswith(PUBLIC):
            places[program_of(path), os.path.basename(path)].append(path)
    return [path for group in places.values() if len(group) > 1 for path in group]


class Report:
    """The figures of one module, or of all."""

    def __init__(self, functions, sizes, where, same, chosen):
        own = [f for f in functions if f.static and chosen(f.file)]
        long = [f for f in own if f.lines > SMALL]
        lines = sum(sizes[path][0] for path in sizes if chosen(path))
        self.names = {
            "one word": [f for f in long if "_" not in f.name],
            "shared": [f for f in own if len(where[f.name]) > 1],
        }
        self.files = [path for path in same if chosen(path)]
        self.share = {
            "one word": 100.0 * len(self.names["one word"]) / max(len(long), 1),
            "shared": 100.0 * len(self.names["shared"]) / max(len(own), 1),
            "same file": len(self.files),
        }
        self.functions = len(own)
        self.asserted = 1000.0 * sum(sizes[path][1] for path in sizes if chosen(path)) / max(lines, 1)

    def row(self):
        return (f"{self.functions:6} {self.share['one word']:8.1f} % {self.share['shared']:6.1f} % "
                f"{self.asserted:7.1f} {len(self.files):6}")

    def above(self, limits):
        return [f"{what}: {self.share[what]:.3g}, the limit is {limit}" for what, limit in limits.items()
                if round(self.share[what], 1) > limit]

    def show_names(self, where):
        for f in self.names["one word"]:
            print(f"{f.file}:{f.line}: {f.name}() is one word")
        for f in self.names["shared"]:
            others = sorted(where[f.name] - {f.file})
            print(f"{f.file}:{f.line}: {f.name}() is also in {', '.join(others[:3])}{', ...' if others[3:] else ''}")
        for path in self.files:
            print(f"{path}: another file has this name")


def find_faults(reports, whole):
    faults = []
    for module in DONE:
        faults += [f"{module}: {fault}" for fault in reports[module].above(LIMITS)]
    for module, least in ASSERTED.items():
        if reports[module].asserted < least:
            faults.append(f"{module}: {reports[module].asserted:.1f} assertions per 1,000 lines, at least {least}")
    faults += [f"the product: {fault}" for fault in whole.above(WHOLE)]
    if round(whole.asserted, 1) < WHOLE_ASSERTED:
        faults.append(f"the product: {whole.asserted:.1f} assertions per 1,000 lines, at least {WHOLE_ASSERTED}")
    return faults


def main():
    arguments, wanted = sys.argv[1:], []
    listed = "--list" in arguments
    if listed:
        wanted = arguments[arguments.index("--list") + 1:]
        arguments = arguments[:arguments.index("--list")]
    top = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    functions, sizes = read_product(top)
    where = collections.defaultdict(set)
    for f in functions:
        where[f.name].add(f.file)
    same = same_files(sizes)
    reports = {module: Report(functions, sizes, where, same, lambda path, module=module: module_of(path) == module)
               for module in sorted({module_of(path) for path in sizes})}
    whole = Report(functions, sizes, where, same, lambda path: True)
    if listed and set(wanted) - set(reports):
        sys.exit(f"no such module: {', '.join(sorted(set(wanted) - set(reports)))}")
    if listed:
        for module in wanted or reports:
            reports[module].show_names(where)
    print(f"{'module':20} {'static':>6} {'one word':>10} {'shared':>8} {'asserts':>7} {'files':>6}")
    for module, report in reports.items():
        print(f"{module:20} {report.row()}")
    print(f"{'all':20} {whole.row()}")
    faults = find_faults(reports, whole)
    for fault in faults:
        print("FAIL: " + fault)
    if faults and not listed:
        print("The names: src/tests/check-names.py --list MODULE")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
