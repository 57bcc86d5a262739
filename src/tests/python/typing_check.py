#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Annotations: those of generated modules name things that exist, and the stubs of the package describe it.

typing_check.py SOURCE MODULES...    the modules are in the current folder
"""
import ast
import importlib
import inspect
import os
import re
import sys
import tomllib
import typing

sys.path.insert(0, os.getcwd())

import rxwire

bad = 0
checked = 0


def fail(text):
    global bad
    bad += 1
    print(f"FAIL: {text}")


def check_module(name):
    global checked
    module = importlib.import_module(name)
    for kind in vars(module).values():
        if not inspect.isclass(kind) or kind.__module__ != name:
            continue
        for function in [kind, *(item for item in vars(kind).values() if inspect.isfunction(item))]:
            if getattr(function, "__module__", None) != name:
                continue
            try:
                typing.get_type_hints(function)
            except Exception as error:
                fail(f"{name}.{function.__qualname__}: {error!r}")
            checked += 1


def parameters(function):
    """The names of the parameters of a definition in a stub."""
    given = function.args
    return [item.arg for item in given.posonlyargs + given.args + given.kwonlyargs]


def check_function(where, node, found):
    global checked
    checked += 1
    if isinstance(found, property):
        return
    try:
        real = inspect.signature(found).parameters
    except ValueError:
        return
    names = [name for name, item in real.items() if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)]
    if parameters(node) != names and not any(item.kind == item.VAR_POSITIONAL for item in real.values()):
        fail(f"{where}: the stub has {parameters(node)}, the package {names}")
    if not isinstance(found, type) and inspect.iscoroutinefunction(found) != isinstance(node, ast.AsyncFunctionDef):
        fail(f"{where}: a coroutine in one of stub and package only")


def check_stub(path, module):
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            check_function(node.name, node, getattr(module, node.name))
        if not isinstance(node, ast.ClassDef) or node.name in ("_HasFileno", "Type", "Identity"):
            continue
        kind = getattr(module, node.name)
        for item in node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found = inspect.getattr_static(kind, item.name, None)
                if found is None:
                    fail(f"{node.name}.{item.name}: only in the stub")
                elif not isinstance(found, staticmethod):
                    check_function(f"{node.name}.{item.name}", item, found)


def check_package(top):
    folder = os.path.join(top, "src/python/rxwire")
    for name in os.listdir(folder):
        if name.endswith(".pyi") and name != "__init__.pyi":
            check_stub(os.path.join(folder, name), importlib.import_module(f"rxwire.{name[:-4]}"))
    with open(os.path.join(folder, "__init__.pyi"), encoding="utf-8") as file:
        text = file.read()
    names = set(re.findall(r"^(\w+): int", text, re.M)) | set(re.findall(r"\w+ as (\w+)", text)) | set(
        re.findall(r"^def (\w+)", text, re.M))
    public = {name for name, value in vars(rxwire).items() if not name.startswith("_") and not inspect.ismodule(value)}
    if names != public:
        fail(f"__init__.pyi: {names ^ public}")
    with open(os.path.join(top, "src/python/pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    with open(os.path.join(top, "NEWS"), encoding="utf-8") as file:
        version = re.search(r"^## ([0-9.]+) ", file.read(), re.M).group(1)
    if project["version"] != version:
        fail(f"pyproject.toml has version {project['version']}, NEWS {version}")


for name in sys.argv[2:]:
    check_module(name)
check_package(sys.argv[1])
print(f"{checked} annotated classes and functions")
sys.exit(1 if bad or checked < 500 else 0)
