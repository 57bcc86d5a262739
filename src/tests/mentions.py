#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks options, tunables, metrics and figures in documents against the manual. Other tests compare the manual with
the programs (src/tests/tools/man.sh, metrics.sh).

  mentions.py TOP
In documents, by their form:
  `prog --x` and blocks of commands   prog has the option
  `--x`, `a-tunable`, `a_member`      some program, script or table has it
  `name` (N), `name` [N], (`name`, N) N is the default
  `name = V`                          there is such a tunable or option, and V is in its range
  rxwire_x{cause="y"}                 there is such a metric, and such a cause
Prints each difference; exit status 1 if one was found.
"""
import glob
import os
import re
import sys

PROGRAMS = {"rxperf": "rxperf.1", "afscp": "afscp.1", "rxwstat": "rxwstat.1", "rxwplot": "rxwplot.1", "rxwgen": "rxwgen.1", "rxfsd": "rxfsd.8",
            "rxafs": "rxafs.1", "rxpt": "rxpt.8", "rxvol": "rxvol.8"}
# Files in which `a_name` is a name of this project; elsewhere it may be the kernel's or a test's.
FOR_PROGRAMMERS = {"doc/choosing.md", "doc/cookbook.md", "doc/embedding.md", "doc/porting.md", "doc/tutorial.md"}
NO_TUNABLES = {"rxafs", "rxwstat", "rxwplot", "rxwgen", "rxpt", "rxvol"}
CODE = (".c", ".h", ".py", ".sh", ".bash", ".mk", ".ac", ".am", ".m4", ".xg", ".in", ".json", ".bt")
SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MICROSECONDS = {"us": 1, "ms": 1000, "s": 1000000, "min": 60000000}
NUMBER = r"\d[\d,]*(?:\.\d+)?"
FIGURE = rf"({NUMBER})(?: ?(KiB|MiB|GiB|[KMG]|us|ms|s|min)(?![\w]))?(?:/s)?"

bad = checked = 0


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def expect(good, where, what):
    global bad, checked
    checked += 1
    if not good:
        print(f"FAIL: {where}: {what}")
        bad += 1


def value(name, number, unit):
    """A figure in the unit of that tunable."""
    figure = float(number.replace(",", ""))
    if unit not in MICROSECONDS:
        return figure * SCALE[unit or ""]
    own = next((MICROSECONDS[end] for end in ("us", "ms") if name.endswith("-" + end)), MICROSECONDS["s"])
    return figure * MICROSECONDS[unit] / own


def plain(text):
    return re.sub(r"\\f.", "", text).replace("\\-", "-").replace("\\&", "")


def entries(page):
    """[(names of an entry, its text)] of a page: the text after .TP."""
    found = []
    for block in re.split(r"^\.TP\n", read(page), flags=re.M)[1:]:
        head, _, rest = block.partition("\n")
        rest = re.split(r"^\.(?:S[HS]|TP)\b", rest, flags=re.M)[0]
        found.append((plain(head), " ".join(plain(rest).split())))
    return found


class Table:
    """Tunables and long options: defaults and ranges by name, from the manual."""

    def __init__(self, top):
        man = os.path.join(top, "doc/man")
        self.defaults, self.ranges, self.options, self.tunables = {}, {}, {}, set()
        for head, text in entries(os.path.join(man, "rxwire.conf.5")):
            name = re.match(r'\.BR? "?([a-z][a-z0-9-]*)"? "? ?= ', head)
            if name:
                self.tunables.add(name.group(1))
                self.learn(name.group(1), text)
        for program, page in PROGRAMS.items():
            own = self.options[program] = {"--help", "--version"}
            for head, text in entries(os.path.join(man, page)):
                for name in re.findall(r'(?:^|[ ",])--([a-z][a-z0-9-]*)', head):
                    own.add("--" + name)
                    self.learn(name, text)
            if program not in NO_TUNABLES:
                own.update("--" + name for name in self.tunables)
        self.every = set.union(*self.options.values())

    def learn(self, name, text):
        span = re.search(rf"From ({NUMBER})([KMG]?) to ({NUMBER})([KMG]?)", text)
        if span:
            self.ranges[name] = value(name, span.group(1), span.group(2)), value(name, span.group(3), span.group(4))
        preset = re.search(rf"[Dd]efault ({NUMBER}[KMG]?|[a-z]+)\b", text)
        if preset:
            number = re.fullmatch(rf"({NUMBER})([KMG]?)", preset.group(1))
            self.defaults.setdefault(name, set()).add(
                value(name, number.group(1), number.group(2)) if number else preset.group(1))


def sources(top):
    """All words and options of sources and scripts."""
    text = []
    for folder, folders, names in os.walk(top):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in ("doc", "build", "autom4te.cache")]
        for name in names:
            if name.endswith(CODE) or "." not in name or folder.endswith(("debian", "tests")):
                path = os.path.join(folder, name)
                if os.path.getsize(path) < 300000 and name not in ("NEWS", "configure", "Makefile"):
                    text.append(read(path))
    text = "\n".join(text)
    return set(re.findall(r"--[a-z][\w-]*", text)), set(re.findall(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)+", text))


def commands(code):
    """(program, options) of the project's commands in some lines of shell."""
    code = re.sub(r"\\\n", " ", code)
    for line in re.split(r"[\n;|&]|\$\(", code):
        words = re.sub(r"(^|\s)#.*", "", line).split()
        for number, word in enumerate(words):
            program = os.path.basename(word)
            if program in PROGRAMS and (number == 0 or not words[number - 1].startswith("-")):
                yield program, [re.sub(r"[=\]).,].*", "", w) for w in words[number + 1:] if re.match(r"--[a-z]", w)]
                break


def foreign(name, prose):
    """Whether it is in the first cell of a table of packages."""
    for table in re.findall(r"^\|[^|]*package[^|]*\|.*\n(?:\|.*\n)+", prose, flags=re.M):
        if any(f"`{name}`" in row.split("|")[1] for row in table.splitlines()):
            return True
    return False


def check_document(path, where, table, known, words):
    text = re.sub(r"<!--.*?-->", "", read(path), flags=re.S)
    blocks = re.findall(r"```.*?\n(.*?)```", text, flags=re.S) + re.findall(r"(?:^    .*\n)+", text, flags=re.M)
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    spans = re.findall(r"`([^`]+)`", prose)
    joint = "[-_]" if where in FOR_PROGRAMMERS else "-"
    for code in blocks + spans:
        for program, options in commands(code):
            for option in options:
                expect(option in table.options[program], where, f"{program} has no {option}")
    for code in spans:
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", code):
            expect(option in table.every or option in known, where, f"{option}: nobody has such an option")
        # Names in a table of packages are not ours.
        if re.fullmatch(rf"[a-z][a-z0-9]*(?:{joint}[a-z0-9]+)+", code) and not foreign(code, prose):
            expect(code in table.tunables or "--" + code in table.every or code in words, where,
                   f"{code}: there is nothing of that name")
    for name, said in re.findall(r"`([a-z][a-z0-9-]+) = ([^`\n]+)`", prose):
        expect("--" + name in table.every, where, f"{name} = {said}: neither a tunable nor an option")
    for name, number, unit in re.findall(rf"(?:`|^ *)([a-z][a-z-]+) = ({NUMBER})([KMG]?)(?:`|$)", text, flags=re.M):
        if name in table.ranges:
            least, most = table.ranges[name]
            expect(least <= value(name, number, unit) <= most, where, f"{name} = {number}{unit} is out of its range")
    for form in (rf"`(?:--)?([a-z][a-z-]+)`(?:\s+\w+)?\s+[\[(]{FIGURE}[\]),;]",
                 rf"\(`(?:--)?([a-z][a-z-]+)`,\s+{FIGURE}[ )]"):
        for name, number, unit in re.findall(form, prose):
            if name in table.defaults:
                presets = table.defaults[name]
                expect(value(name, number, unit) in presets, where,
                       f"{name}: {number} {unit} is not the default, that is " + " or ".join(map(str, presets)))


def check_metrics(where, text, metrics, causes):
    for name, labels in re.findall(r"\b(rxwire_[a-z_]+)(\{[^}]*\})?", text):
        base = re.sub(r"_(?:bucket|sum|count)$", "", name)
        expect(name in metrics or base in metrics or any(m.startswith(name) for m in metrics if name.endswith("_")),
               where, f"{name}: no such metric in rxw_metrics(3)")
        for cause in re.findall(r'cause=~?"([^"]*)"', labels or ""):
            for one in re.split(r"\\?\|", cause):
                expect(one in causes, where, f"{one}: no such cause in src/rx")


def main():
    top = sys.argv[1]
    table = Table(top)
    known, words = sources(top)
    metrics = set(re.findall(r"rxwire_[a-z_]+", read(os.path.join(top, "doc/man/rxw_metrics.3"))))
    library = "".join(map(read, glob.glob(os.path.join(top, "src/rx/**/*.c"), recursive=True)))
    causes = set(re.findall(r'"([a-z-]+)"', library))
    documents = [p for pattern in ("*.md", "NEWS", "doc/*.md", "doc/notes/*.md", "examples/**/*.md")
                 for p in glob.glob(os.path.join(top, pattern), recursive=True)]
    for path in documents:
        where = os.path.relpath(path, top)
        check_document(path, where, table, known, words)
        check_metrics(where, read(path), metrics, causes)
    for name, least in (("tunables", 23), ("defaults", 22), ("ranges", 15)):
        expect(len(getattr(table, name)) >= least, "doc/man", f"only {len(getattr(table, name))} {name} were found")
    print(f"{checked} options, tunables, figures and metrics of {len(documents)} documents")
    sys.exit(1 if bad else 0)


main()
