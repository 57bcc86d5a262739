#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Spelling and style of documents (*.md), man pages and NEWS. Code, links' targets and comments are left out.

  words.py TOP            all files; those of EXEMPT are checked for spelling only
  words.py TOP FILE...    these files, spelling and style
  words.py --self-test    what the checks find in a sample of each fault, and that they find nothing in plain text

Each finding is a line "FILE:LINE: WORDS: ADVICE"; exit status 1 if there is one.
Spelling is aspell's British (-ise) with the words of doc/words.txt besides.
"""
import os
import re
import subprocess
import sys

# Style not checked yet. A file that passes leaves the list.
EXEMPT = set()
# Style is not checked: notes of measurements, and the sample of a page that a program writes.
NOTES = ("doc/notes/", "src/tests/bench/page.md")

WORDS_PER_SENTENCE = 45
# Stands for code in a sentence: one word, which is not spelt.
CODE = "\x01"
# Ends a sentence: in man pages each begins on a line of its own, also with a name in lower case.
END = "\x03"

BEGIN = r"(?:^|(?<=[.;:] ))"
# (what is looked for in a sentence, what to do); case counts.
PATTERNS = [(re.compile(p), advice) for p, advice in (
    (BEGIN + r"(?:Who|Whoever|Whom) \S+(?: \S+)?(?!.*\?$)", "begin with a noun: a client that, callers that"),
    (BEGIN + r"(?:What|Whatever) (?!if )\S+(?: \S+)?(?!.*\?$)", "begin with a noun: the packets that, the rest of"),
    (r"\b[Ww]hoever\b", "name the actor: a client, the caller"),
    (r"\b(?:for|to|and|but|that|than|as|where|if|so|until|while|when|since|because) who \w+", "name the actor"),
    (r"; who \w+", "name the actor"),
    (r"(?<=[a-z] )who \w+s(?: \w+)? (?:is|are|gets?|has|must|may|can|goes|counts|does)\b", "name the actor"),
    (r"\b(?:is|are|was|were|be) there(?=[.;:,)]|$)", "exists, is present, is available"),
    (r"\bas a whole\b", "whole, complete"),
    (r"\b(?:[Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody)\b", "name the actor: no client, any user"),
    (r"\b[Tt]here (?:is|are) no (?:\w+ ){1,3}but\b", "the only ... is"),
    (r"\b(?:rooms|[Ff]loors?|[Hh]ouse|[Ss]trangers?|[Tt]rains?)\b",
     "the field's word: layer, module, unvalidated peer, batch"),
    (r"\b[Mm]end(?:s|ed|ing)?\b", "fix"),
    (r"(?<!do)(?<!does)(?<!did)(?<!done)(?<!doing)(?<!say)(?<!or)(?<!not)(?<!think)(?<!even) (?:so|besides)(?=[.;)]|$)",
     "say it at the beginning, or in this way, also"),
    (r"\bcome what may\b", "in all cases"),
    (r"\bone behind (?:the|an)other\b", "in sequence"),
    (r"\b(?:tells?|told) of\b", "reports, logs, is reported"),
    (r"\bin vain\b", "without success"),
    (r"\b[Oo]n (?:its|their) way\b", "in flight"),
    (r"\bgladly\b", "readily, preferably"),
    (r"\bheld to\b", "checked against, must meet"),
    (r"\b(?:stands?|stood) (?:in|beside|behind|above|below)\b", "is in, precedes, follows"),
)]


class Text:
    """The prose of a file: blocks of (text, is_table, is_heading), each with the line of every character."""

    def __init__(self):
        self.blocks = []
        self.kind = None
        self.text, self.lines = "", []

    def add(self, text, line, kind="prose"):
        if kind != self.kind:
            self.end()
            self.kind = kind
        if self.text:
            self.text += " "
            self.lines.append(line)
        self.text += text
        self.lines += [line] * len(text)

    def end(self):
        if self.text.strip():
            self.blocks.append((self.text, self.lines, self.kind))
        self.kind, self.text, self.lines = None, "", []


def blanked(m):
    return re.sub(r"[^\n]", " ", m.group(0))


def coded(m):
    """Code in a line, which may go on in the next one."""
    return CODE + "\n" * m.group(0).count("\n")


def markdown(source):
    out = Text()
    source = re.sub(r"<!--.*?-->", blanked, source, flags=re.S)
    source = re.sub(r"^( *)(```+|~~~+).*?(?:^ *\2[`~]*[ \t]*$|\Z)", lambda m: "\n" * m.group(0).count("\n"), source,
                    flags=re.S | re.M)
    # Within a paragraph, code may go on in the next line.
    source = re.sub(r"(?<!`)(`+)(?!`)((?:[^\n]|\n(?!\s*\n))*?)(?<!`)\1(?!`)", coded, source)
    source = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", source)
    source = re.sub(r"<?\bhttps?://[^\s>)]*>?", CODE, source)
    source = re.sub(r"</?[a-z][^>\n]*>", " ", source)
    source = re.sub(r"[*_]{1,3}(?=\S)([^*_\n]+?)(?<=\S)[*_]{1,3}(?!\w)", r"\1", source)
    in_list, after_blank, indented = False, True, False
    for number, line in enumerate(source.split("\n"), 1):
        # Code is indented by four or more, but for a list's items and their paragraphs.
        if line.strip():
            indented = line.startswith("    ") and not in_list and (after_blank or indented)
            if re.match(r"\s*(?:[-*+]|\d+[.)])\s", line):
                in_list = True
            elif after_blank and not line.startswith(" "):
                in_list = False
        after_blank = not line.strip()
        if after_blank or indented:
            out.end()
        elif re.match(r"\s*#+ ", line):
            out.end()
            out.add(line.strip(" #"), number, "heading")
            out.end()
        elif line.lstrip().startswith("|"):
            if re.fullmatch(r"[\s|:-]+", line):
                continue
            for cell in re.split(r"(?<!\\)\|", line):
                out.end()
                out.add(cell.strip(), number, "table")
            out.end()
        else:
            item = re.match(r"\s*(?:[-*+]|\d+[.)])\s+|\s*>\s*", line)
            if item:
                out.end()
                line = line[item.end():]
            out.add(line.strip(), number)
    out.end()
    return out.blocks


def roff_words(line):
    """Prose of a line of roff: bold is code, so are names in italics that are not words."""
    line = re.sub(r"\\fB.*?(?:\\f[RPI]|$)", CODE, line)
    line = re.sub(r"\\f[IRP]", "", line)
    line = re.sub(r"\\s[+-]?\d", "", line).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
    line = line.replace("\\(aq", "'").replace("\\(dq", '"').replace("\\(en", "–").replace("\\(bu", "")
    line = re.sub(r"\\\((\w\w)", " ", line).replace("\\c", "").replace("\\ ", " ").replace("\\|", "")
    return line


def arguments(line):
    return [a[1:-1] if a[:1] == '"' else a for a in re.findall(r'"[^"]*"?|[^\s"]+', line)]


FONTS = {"B": "B", "I": "I", "R": "R", "SB": "B", "SM": "R"}


def roff(source):
    out = Text()
    skip, table, prose, tag = None, False, "prose", False

    def add(text, number):
        nonlocal tag
        end = END if re.search(r"[.!?][\"')]*$", text) else ""
        out.add(text + end, number, "heading" if tag else prose)
        if tag:
            out.end()
        tag = False

    for number, line in enumerate(source.split("\n"), 1):
        if skip:
            if line.startswith(skip):
                skip = None
            continue
        if line.startswith(('.\\"', "'\\\"")):
            continue
        if line.startswith(".TS"):
            out.end()
            table = True
            continue
        if table:
            if line.startswith(".TE"):
                table = False
            elif not line.startswith(".") and not line.endswith((".", ";")) or "\t" in line or "|" in line:
                for cell in re.split(r"[\t|]|T\{|T\}", line):
                    out.end()
                    out.add(roff_words(cell).strip(), number, "table")
                out.end()
            continue
        m = re.match(r"\.\s*([A-Za-z]+)\s*(.*)", line)
        if not m:
            if line.strip():
                add(roff_words(line).strip(), number)
            else:
                out.end()
            continue
        macro, rest = m.groups()
        if macro in ("nf", "EX"):
            out.end()
            skip = {"nf": ".fi", "EX": ".EE"}[macro]
        elif macro in ("SH", "SS"):
            out.end()
            title = roff_words(rest).strip('"').capitalize()
            out.add(title, number, "heading")
            out.end()
            prose = "heading" if title == "Name" else "prose"
        elif macro in ("B", "SB"):
            add(CODE + re.sub(r".*?([.!?]?)\"?$", r"\1", rest), number)
        elif macro in ("I", "SM", "R"):
            add(roff_words(" ".join(arguments(rest))), number)
        elif re.fullmatch("[BIR]{2}", macro):
            pieces = [CODE if macro[i % 2] == "B" else roff_words(a) for i, a in enumerate(arguments(rest))]
            add("".join(pieces), number)
        elif macro in ("br", "in", "ad", "na", "hy", "nh", "ne"):
            pass
        else:
            out.end()
            tag = macro == "TP"
    out.end()
    return out.blocks


def sentences(text, lines):
    """(sentence, its first line); a point within brackets, or behind an abbreviation, ends none."""
    start = 0
    for m in list(re.finditer(END + r"\s*|(?<!e\.g)(?<!i\.e)(?<!etc)(?<!cf)(?<!vs)(?<!\bv)(?<![ (]p)[.!?][\"')\]*]*\s+"
                              r"(?=[\"'(\[*]*(?:[A-Z0-9\x01–\[−≥≤]|[a-z]+[A-Z]|rx|lib|afs|vos))", text)) + [None]:
        end = m.end() if m else len(text)
        sentence = text[start:end].strip()
        if sentence:
            yield sentence, lines[min(start, len(lines) - 1)]
        start = end


def shown(text):
    text = text.replace(CODE, "`…`").replace(END, "")
    return text if len(text) <= 72 else text[:69] + "..."


def style(blocks):
    """(line, words, advice) of each fault."""
    for text, lines, kind in blocks:
        if kind == "heading":
            continue
        for pattern, advice in PATTERNS:
            for m in pattern.finditer(text):
                # A question may begin with such a word; the question mark belongs to the same sentence.
                rest = re.split(r"(?<=[.!?])\s", text[m.start():], maxsplit=1)[0]
                if not rest.endswith("?"):
                    yield lines[m.start()], shown(m.group(0).strip()), advice
        for sentence, line in sentences(text, lines):
            count = len(re.findall(r"[^\s]*[A-Za-z0-9\x01][^\s]*", sentence))
            if count > WORDS_PER_SENTENCE:
                yield line, shown(sentence), f"{count} words: split it into sentences of {WORDS_PER_SENTENCE} at most"
            semicolons = re.sub(r"\([^()]*\)", "", sentence).count(";")
            if kind == "prose" and semicolons > 1:
                yield line, shown(sentence), f"{semicolons} semicolons: one at most, or a list"


def spoken(blocks):
    """(word, line) of each that is a word: no acronyms, no names with capitals within, digits or underscores."""
    for text, lines, _ in blocks:
        for m in re.finditer(r"[^\s()\[\]{}\"“”,;:!?|=+<>…–—*]+", text):
            token = m.group(0).strip(".'’-*" + END)
            if re.search(r"[\d_/\\@$%&#~^\x01]|\.\w", token):
                continue
            for word in re.findall(r"[A-Za-zÀ-ÿ]+(?:['’][a-z]+)?", token):
                plain = re.sub(r"['’]s?$", "", word)
                if len(plain) > 1 and not re.search(r"[A-Z]", plain[1:]):
                    yield plain, lines[m.start()]


def unknown(words, own):
    """Those of the words that neither aspell nor the project's list knows."""
    checked = subprocess.run(["aspell", "--lang=en_GB", "-d", "en_GB-ise", "--encoding=utf-8", "list"],
                             input="\n".join(sorted(words)) + "\n", capture_output=True, encoding="utf-8", check=True)
    return {w for w in checked.stdout.split() if w not in own and w.lower() not in own}


def parsed(path):
    with open(path, encoding="utf-8") as f:
        source = f.read()
    return roff(source) if re.search(r"\.[1-8]$", path) else markdown(source)


def documents(top):
    """All files, but those below hidden folders, folders that are built in, and copies for packages."""
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(d for d in folders if not d.startswith((".", "_")) and d not in ("build", "shared")
                            and not os.path.exists(os.path.join(folder, d, "config.status")))
        where = os.path.relpath(folder, top)
        for name in sorted(files):
            path = os.path.normpath(os.path.join(where, name))
            if name.endswith(".md") or path == "NEWS" or where == "doc/man" and re.search(r"\.[1-8]$", name):
                yield path


def own_words(top):
    path = os.path.join(top, "doc/words.txt")
    with open(path, encoding="utf-8") as f:
        words = f.read().split("\n")[:-1]
    if words != sorted(set(words)):
        wrong = next(b for a, b in zip(words, sorted(set(words)) + [""]) if a != b)
        return set(words), [f"doc/words.txt: not sorted, or twice, near \"{wrong}\": LC_ALL=C sort -u"]
    return set(words), []


def check(top, named):
    own, findings = own_words(top)
    files = {}
    for path in named or documents(top):
        try:
            files[path] = parsed(path if named else os.path.join(top, path))
        except (OSError, UnicodeDecodeError) as error:
            findings.append(f"{path}: {error}")
    wrong = unknown({word for blocks in files.values() for word, _ in spoken(blocks)}, own)
    passing = []
    for path, blocks in files.items():
        found = [(line, word, "spelling: correct it, mark it as code, or add it to doc/words.txt")
                 for word, line in spoken(blocks) if word in wrong]
        if named or not path.startswith(NOTES):
            faults = list(style(blocks))
            if named or path not in EXEMPT:
                found += faults
            elif not faults:
                passing.append(path)
        findings += [f"{path}:{line}: {words}: {advice}" for line, words, advice in sorted(set(found))]
    unused = set() if named else own - {w for blocks in files.values() for word, _ in spoken(blocks)
                                        for w in (word, word.lower())}
    if not named:
        findings += [f"src/tests/words.py: EXEMPT: {path}: no such file" for path in sorted(EXEMPT - set(files))]
    for finding in findings:
        print(finding)
    if unused:
        print(f"note: doc/words.txt: in no document: {', '.join(sorted(unused))}")
    for path in passing:
        print(f"note: {path}: its style passes: it may leave EXEMPT in src/tests/words.py")
    print(f"{len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


def self_test():
    faults = ["Who runs it needs a key.", "Whoever asks is served.", "What is left follows.", "A guide for who runs it.",
              "The file is there.", "It goes as a whole.", "Nobody reads it.", "There is no way but this.",
              "The floors of the library.", "The fault is mended.", "It costs less so.", "It is logged, and told of.",
              "word " * 46 + "end.", "One; two; three."]
    plain = ["Who runs it?", "What is Rx?", "It does so.", "Clients, which need a key, wait.", "A; b.",
             "`Who runs` is code; `a; b; c` as well.", "| a; b; c; d | e |", "```\nWho runs it goes.\n```", "Text:\n\n    Who runs it goes.",
             "Users who have a token are served.", "It is tested (`a`; `b`; `c`).",
             "<!-- Nobody -->"]
    bad = [f"not found: {t}" for t in faults if not list(style(markdown(t)))]
    bad += [f"found: {t}: {list(style(markdown(t)))}" for t in plain if list(style(markdown(t)))]
    page = ".SH NAME\nx \\- y\n.SH DESCRIPTION\n.B Who\nruns it.\n.PP\nText,\n.BR nobody (3)\nsays.\n.EX\nWho goes.\n.EE\n" \
           "Nobody\nreads.\n"
    found = [(line, words) for line, words, _ in style(roff(page))]
    bad += [] if found == [(13, "Nobody")] else [f"man page: {found}"]
    misspelt = unknown({w for w, _ in spoken(markdown("A recieved `pakcet` of OpenAFS, ABORTs, a_nmae, 12ms: color."))}, set())
    bad += [] if misspelt == {"recieved", "color"} else [f"spelling: {misspelt}"]
    for line in bad:
        print(f"self-test: {line}")
    return 1 if bad else 0


if sys.argv[1] == "--self-test":
    sys.exit(self_test())
sys.exit(self_test() or check(sys.argv[1], sys.argv[2:]))
