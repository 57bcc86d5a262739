#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Calls between modules, from the symbols that each built object defines and needs (nm).

usage: check-calls.py BUILD [--edges]

A module is a folder. Fails if modules call each other in a circle, if a module calls one of a higher layer, if more
than two files of one module form a circle that is not in LARGER_CIRCLES, or if a module's header is longer than 200
lines. With --edges the calls between modules are printed. Function pointers are not seen: doc/architecture-objects.md
lists those that lead upwards.
"""

import os
import subprocess
import sys

LARGEST_CIRCLE = 2
# Clients, their promises, the breaks of these and the ledger of both: one state machine, in four files.
LARGER_CIRCLES = {"src/fileserver/callbacks": 4}
LONGEST_HEADER = 200

# From the lowest to the highest; a module may call modules of its own layer and of lower ones.
LAYERS = [
    ["src/common"],
    ["src/rx/base"],
    ["src/rx/proto/peer"],
    ["src/rx/proto/recv"],
    ["src/rx/proto/send"],
    ["src/rx/proto/conn", "src/rx/io"],
    ["src/rx/engine"],
    ["src/rx/engine/core"],
    ["src/rx/engine/observe"],
    ["src/rx/engine/sched"],
    ["src/rx/engine/send"],
    ["src/rx/engine/receive"],
    ["src/rx/engine/stream"],
    ["src/rx/engine/public"],
    ["src/rx/rpc", "src/rx/keys"],
    ["src/rx/rxkad", "src/rx/rxgk"],
    ["src/rx/token"],
    ["src/classic/base"],
    ["src/classic/core"],
    ["src/classic/xdr"],
    ["src/classic/watch"],
    ["src/afs", "src/protection"],
    ["src/client/cell", "src/client/cache", "src/client/disk", "src/client/paths"],
    ["src/client/net", "src/client/data"],
    ["src/client/fs"],
    ["src/volume"],
    ["src/volume/export", "src/volume/store/dir", "src/volume/store/disk"],
    ["src/volume/store/data"],
    ["src/volume/store/db"],
    ["src/volume/store/txn"],
    ["src/volume/store/maint"],
    ["src/volume/store/op"],
    ["src/volume/dump", "src/volume/store"],
    ["src/admin"],
    ["src/rxwgen/text"],
    ["src/rxwgen/pp"],
    ["src/rxwgen/parse"],
    ["src/rxwgen/emit"],
    ["src/rxwgen"],
    ["src/observe"],
    ["src/program"],
    ["src/afscp", "src/rxperf", "src/rxpt", "src/rxvol", "src/rxwstat", "src/fileserver", "src/rxafs"],
]
ROOTS = ["src/common", "src/rx", "src/classic", "src/afs", "src/client", "src/protection", "src/volume", "src/admin",
         "src/observe", "src/program", "src/afscp", "src/rxperf", "src/rxpt", "src/rxvol", "src/rxwgen", "src/rxwstat",
         "src/fileserver", "src/rxafs"]


def layer_of(module):
    best = None
    for number, layer in enumerate(LAYERS):
        for folder in layer:
            if module == folder or module.startswith(folder + "/"):
                if best is None or len(folder) > best[1]:
                    best = (number, len(folder))
    return None if best is None else best[0]


def objects(build):
    """Source path without suffix -> object, one for each source: libtool may make a second one in .libs, or only that."""
    found = {}
    for root in ROOTS:
        for folder, _, files in os.walk(os.path.join(build, root)):
            place = os.path.dirname(folder) if os.path.basename(folder) == ".libs" else folder
            for name in files:
                if not name.endswith(".o"):
                    continue
                # automake names it TARGET-SOURCE.o where a target has flags of its own
                source = os.path.join(os.path.relpath(place, build), name[:-2].rsplit("-", 1)[-1])
                found.setdefault(source, os.path.join(folder, name))
    return found


def symbols(paths):
    """Object -> the symbols that it defines, and those that it needs."""
    out = subprocess.run(["nm", "-A", "-P", *paths], check=True, capture_output=True, text=True).stdout
    found = {path: (set(), set()) for path in paths}
    for line in out.splitlines():
        path, _, rest = line.partition(": ")
        field = rest.split()
        if len(field) < 2:
            continue
        if field[1] in "TDBRC":
            found[path][0].add(field[0])
        elif field[1] == "U":
            found[path][1].add(field[0])
    return found


def circles(nodes, calls):
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for start in nodes:
        if start in index:
            continue
        work = [(start, iter(sorted(calls.get(start, ()))))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, following = work[-1]
            for callee in following:
                if callee not in index:
                    index[callee] = low[callee] = len(index)
                    stack.append(callee)
                    on.add(callee)
                    work.append((callee, iter(sorted(calls.get(callee, ())))))
                    break
                if callee in on:
                    low[node] = min(low[node], index[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on.discard(part[-1])
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def source_exists(top, build, source):
    return any(os.path.exists(os.path.join(folder, source + ".c")) for folder in (top, build))


def graph(top, build):
    """Calls between files: caller -> callee -> symbols."""
    where, needs = {}, {}
    # Without the leftovers of deleted files.
    found = {source: path for source, path in objects(build).items() if source_exists(top, build, source)}
    symbols_of = symbols([*found.values()]) if found else {}
    for source, path in found.items():
        defined, needs[source] = symbols_of[path]
        for name in defined:
            where.setdefault(name, source)
    calls = {source: {} for source in needs}
    for source, names in needs.items():
        for name in names:
            callee = where.get(name)
            if callee and callee != source:
                calls[source].setdefault(callee, set()).add(name)
    return calls


def between_modules(calls):
    modules = {}
    for source, callees in calls.items():
        module = os.path.dirname(source)
        modules.setdefault(module, {})
        for callee, names in callees.items():
            other = os.path.dirname(callee)
            if other != module:
                modules[module].setdefault(other, set()).update(
                    f"{os.path.basename(source)}.c: {name}()" for name in names)
    return modules


def check_headers(top, modules):
    faults = []
    for module in modules:
        for name in sorted(os.listdir(os.path.join(top, module))) if os.path.isdir(os.path.join(top, module)) else []:
            path = os.path.join(top, module, name)
            if not name.endswith(".h"):
                continue
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
            if lines and lines[0].startswith("/* Made by"):
                continue
            if len(lines) > LONGEST_HEADER:
                faults.append(f"{module}/{name}: {len(lines)} lines; {LONGEST_HEADER} is the limit: split it, "
                              "or move what is private to the module into a header of its own")
    return faults


def check(top, build, edges):
    calls = graph(top, build)
    if not calls:
        sys.exit(f"{build} has no objects: build it first")
    modules = between_modules(calls)
    faults = []
    if edges:
        for module in sorted(modules):
            for other in sorted(modules[module]):
                print(f"{module} -> {other}: {', '.join(sorted(modules[module][other]))}")
    for part in circles(sorted(modules), modules):
        shown = []
        for module in part:
            for other in sorted(set(modules[module]) & set(part)):
                names = sorted(modules[module][other])
                shown.append(f"    {module} -> {other}: {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}")
        faults.append("modules call each other in a circle: " + " ".join(part) + "\n" + "\n".join(shown))
    for module in sorted(modules):
        for other in sorted(modules[module]):
            low, high = layer_of(module), layer_of(other)
            if low is not None and high is not None and high > low:
                faults.append(f"{module} calls the higher layer {other}: {', '.join(sorted(modules[module][other]))}")
    largest = 0
    for part in circles(sorted(calls), calls):
        if len({os.path.dirname(source) for source in part}) > 1:
            continue  # reported above
        largest = max(largest, len(part))
        most = LARGER_CIRCLES.get(os.path.dirname(part[0]), LARGEST_CIRCLE)
        if len(part) > most:
            faults.append(f"{len(part)} files of one module call each other in a circle, {most} may: " + " ".join(part))
    # src/common consists of headers and has no objects.
    faults += check_headers(top, [*modules, "src/common"])
    for fault in faults:
        print("FAIL: " + fault)
    print(f"{len(calls)} files of {len(modules)} modules; largest circle: {largest} files")
    return 1 if faults else 0


def main():
    arguments = [a for a in sys.argv[1:] if a != "--edges"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    sys.exit(check(top, arguments[0], "--edges" in sys.argv))


if __name__ == "__main__":
    main()
