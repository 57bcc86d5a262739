#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the targets of references in documents exist: linked files and headings; named files, functions,
constants, man pages and make targets; lines that are quoted from a file; links in rendered pages.

  documents.py TOP             the sources
  documents.py --html FOLDER   what doc/make-html has written
Prints each broken reference; exit status 1 if one was found.
"""
import glob
import html
import os
import re
import sys

bad = checked = 0


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def expect(good, where, what):
    global bad, checked
    checked += 1
    if not good:
        print(f"FAIL: {where}: {what}")
        bad += 1


def slugs(text):
    """The anchors of a document's headings, as renderers make them."""
    found = {}
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    for head in re.findall(r"^#+ (.*)$", text, flags=re.M):
        head = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head)
        slug = re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
        if found[slug]:
            found[f"{slug}-{found[slug]}"] = 0
    return found


def check_links(top, path, where, prose):
    for goal in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", goal):
            continue
        name, _, anchor = goal.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        expect(os.path.exists(file), where, goal)
        if anchor and os.path.isfile(file):
            expect(anchor in slugs(read(file)), where, f"{goal}: no such heading")


def check_files(top, where, prose):
    """`doc/NAME.md`, `engine/NAME.c`: in the top folder, or in one of those whose name may be omitted."""
    folders = ["", "src", "src/rx", "src/rx/include", "src/tests", "src/tests/rx", "src/tests/system", "src/fileserver", "doc"]
    for name in re.findall(r"(?<![\w/.<*-])((?:[\w-]+/)+[\w.-]+\.(?:md|c|h|sh|py|xg|mk|json|conf|map|symbols))\b", prose):
        if not name.startswith(("build/", "etc/")):
            made_of = re.sub(r"\.h$", ".xg", name)  # by rxwgen, in the build folder
            expect(any(os.path.exists(os.path.join(top, f, n)) for f in folders for n in (name, made_of)), where, name)


def check_quotes(top, where, text):
    """<!-- part FILE --> and a block: these lines are in FILE, in sequence."""
    for name, block in re.findall(r"^<!-- part (\S+/\S+) -->\n```\w*\n(.*?)^```", text, flags=re.S | re.M):
        file = os.path.join(top, name)
        expect(os.path.exists(file) and "\n" + block in "\n" + read(file), where,
               f"not in {name}: {block.strip().splitlines()[0]} …")


def pages_of(top):
    """Names with sections: the pages that exist, and those that are mentioned."""
    names = set()
    for path in glob.glob(os.path.join(top, "doc/man/*.[1-8]")):
        base = os.path.basename(path)
        names.add((base[:-2], base[-1]))
        head = re.search(r"\.SH NAME\n(.*?)\n\.SH", read(path), re.S).group(1)
        head = re.split(r"\s\\-\s", head)[0].replace("\\-", "-")
        names.update((name, base[-1]) for name in re.findall(r"[\w.-]+", head))
    return names


def sources(top):
    names = set()
    for path in glob.glob(os.path.join(top, "src/**/*.[ch]"), recursive=True):
        names.update(re.findall(r"\b(?:rxw|RXW)_\w+", read(path)))
    names.update(re.findall(r"RXW_\w+", read(os.path.join(top, "src/rxwgen/automake/rxwgen.m4"))))
    return names


def removed_names(news):
    """The names before the colon of each item, in the list of what was removed."""
    items = re.search(r"what was removed[^\n]*\n\n(.*?)\n\n", news, re.S)
    heads = re.findall(r"^- ([^:]*):", items.group(1), flags=re.M) if items else []
    return set(re.findall(r"`((?:rxw|RXW)_\w+)", " ".join(heads)))


def targets(top):
    names = {"all", "check", "install", "installcheck", "dist", "distcheck", "clean", "html", "install-html"}
    for path in [os.path.join(top, "Makefile.am")] + glob.glob(os.path.join(top, "**/local.mk"), recursive=True):
        for line in re.findall(r"^([\w.$()/ -]+):(?!=)", read(path), flags=re.M):
            names.update(line.split())
    return names


def check_sources(top):
    documents = [p for pattern in ("*.md", "NEWS", "doc/*.md", "doc/notes/*.md", "doc/spec/*.md", "examples/**/*.md",
                                       "debian/README*")
                 for p in glob.glob(os.path.join(top, pattern), recursive=True)]
    pages, names, made = pages_of(top), sources(top), targets(top)
    ours = {name for name, section in pages}
    for path in documents:
        where, text = os.path.relpath(path, top), read(path)
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        check_links(top, path, where, prose)
        plain = re.sub(r"<!--.*?-->|<https?:[^>]*>|(`+)(?!`).*?(?<!`)\1(?!`)", "", prose, flags=re.S)
        for tag in re.findall(r"</?[A-Za-z][^<>\n]*>", plain):
            expect(False, where, f"{tag}: would be taken for HTML, write it as code")
        check_files(top, where, prose)
        check_quotes(top, where, text)
        for name, section in re.findall(r"`?\b([\w.-]+)`?\((\d)\)", prose):
            if name in ours or name.startswith(("rxw", "rxfs", "rxperf", "afscp")):
                expect((name, section) in pages, where, f"{name}({section}): no such page")
        gone = removed_names(text) - names if where == "NEWS" else set()
        for name in re.findall(r"`(?:struct |enum )?((?:rxw|RXW)_\w+)(?:\(\))?`", prose):
            expect(name in names or name in gone, where, f"{name}: no such name in the source")
        for name in re.findall(r"`make ([a-z][a-z-]*)[` ]", prose):
            expect(name in made, where, f"make {name}: no such target")
    for path in glob.glob(os.path.join(top, "doc/man/*.[1-8]")):
        where, text = os.path.basename(path), read(path)
        for name, section in re.findall(r"^\.BR \"?([\w.\\-]+)\"? \"? ?\((\d)\)", text, flags=re.M):
            name = name.replace("\\-", "-")
            if name in ours or name.startswith(("rxw", "rxfs", "rxperf", "afscp")):
                expect((name, section) in pages, where, f"{name}({section}): no such page")
        for name in re.findall(r"^\.I (?:\\fB)?([a-z]+\.md)", text, flags=re.M):
            expect(os.path.exists(os.path.join(top, "doc", name)), where, name)
    print(f"{checked} references of {len(documents)} documents and {len(ours)} names in man pages")


def check_html(folder):
    pages = {os.path.relpath(p, folder): read(p)
             for p in glob.glob(os.path.join(folder, "**/*.html"), recursive=True)}
    ids = {page: set(re.findall(r'\bid="([^"]*)"', text)) for page, text in pages.items()}
    for page, text in sorted(pages.items()):
        for goal in re.findall(r'\b(?:href|src)="([^"]*)"', text):
            goal = html.unescape(goal)
            if re.match(r"[a-z]+:", goal):
                continue
            name, _, anchor = goal.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
            expect(os.path.isfile(os.path.join(folder, file)), page, goal)
            if anchor and file in ids:
                expect(anchor in ids[file], page, f"{goal}: no such anchor")
    expect("index.html" in pages and len(pages) > 20, folder, "too few pages")
    print(f"{checked} links of {len(pages)} pages")


if sys.argv[1] == "--html":
    check_html(sys.argv[2])
else:
    check_sources(sys.argv[1])
sys.exit(1 if bad else 0)
