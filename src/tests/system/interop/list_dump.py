#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints what a dump of a volume has, a line for each vnode; written from the description of the format alone.

usage: list_dump.py [--headers | --exact] < DUMP

A line: vnode, uniquifier, type, links, data version, date, author, owner, group, mode, directory, date of the server, access list
as entries ID:RIGHTS, length and a digest of the data. Directories are given as their sorted names, because two servers may
lay the same names out differently. A vnode without members is "unchanged". --exact: the headers, and one digest of all bytes of the
vnodes.
"""
import hashlib
import struct
import sys

stream = sys.stdin.buffer
exact = "--exact" in sys.argv
every_byte = hashlib.sha256()


def take(count):
    data = stream.read(count)
    if len(data) != count:
        sys.exit("the dump ends too early")
    every_byte.update(data)
    return data


def number(size):
    return int.from_bytes(take(size), "big")


def text():
    result = b""
    while (byte := take(1)) != b"\0":
        result += byte
    return result.decode(errors="replace")


def names(image):
    """The entries of a directory, in the order of names."""
    found, page_bytes, slot_bytes = [], 2048, 32
    for page in range(len(image) // page_bytes):
        base = page * page_bytes
        bitmap = image[base + 5 : base + 13]
        slot = 13 if page == 0 else 1
        while slot < 64:
            if not bitmap[slot // 8] >> slot % 8 & 1:
                slot += 1
                continue
            at = base + slot * slot_bytes
            vnode, unique = struct.unpack(">II", image[at + 4 : at + 12])
            end = image.index(b"\0", at + 12)
            found.append((image[at + 12 : end], vnode, unique))
            slot += 1 + (end - at - 12 + 1 + 15) // 32
    return sorted(found)


def acl():
    words = struct.unpack(">48I", take(192))
    total, positive, negative = words[2:5]
    entries = [(words[5 + 2 * i], words[6 + 2 * i]) for i in range(total)]
    good = entries[:positive]
    bad = entries[total - negative :] if negative else []
    shown = [f"{i - (i >> 31 << 32)}:{r}" for i, r in good]
    return ",".join(shown + [f"not {i - (i >> 31 << 32)}:{r}" for i, r in bad])


def vnode():
    """One vnode, and the tag after it."""
    numbers = {"t": 1, "l": 2, "v": 4, "m": 4, "a": 4, "o": 4, "g": 4, "b": 2, "p": 4, "s": 4}
    key = (number(4), number(4))
    members = {"g": 0}
    digest = ""
    while True:
        tag = chr(take(1)[0])
        if ord(tag) <= 20:
            break
        if tag in numbers:
            members[tag] = number(numbers[tag])
        elif tag == "A":
            members[tag] = acl()
        elif tag in "fh":
            left = members["length"] = number(4 if tag == "f" else 8)
            if key[0] & 1:
                digest = hashlib.sha256(repr(names(take(left))).encode()).hexdigest()[:16]
                members["length"] = "-"
                continue
            data = hashlib.sha256()
            while left:
                part = take(min(left, 1 << 20))
                data.update(part)
                left -= len(part)
            digest = data.hexdigest()[:16]
        else:
            sys.exit(f"unknown member {tag!r} of vnode {key}")
    if exact:
        pass
    elif "t" not in members:
        print(*key, "unchanged")
    else:
        shown = [members.get(m, "-") for m in "tlvmaogbps"] + [members.get("A", "-")]
        print(*key, *shown, members.get("length", 0), digest)
    return ord(tag)


def header(known, numbers):
    """A header up to the next mark, which is returned."""
    while (tag := take(1)[0]) > 20:
        letter = chr(tag)
        if letter in "nOM":
            value = text()
        elif letter in known:
            value = number(known[letter])
        elif letter in "tW" and letter in numbers:
            value = [number(4) for _ in range(number(2))]
        else:
            value = number(4)
        if exact or "--headers" in sys.argv:
            print("header", letter, value)
    return tag


def main():
    global every_byte
    if take(1) != b"\1" or number(4) != 0xB3A11322 or number(4) != 1:
        sys.exit("not a dump")
    tag = header({"v": 4}, "t")
    while tag != 4:
        if tag == 2:
            tag = header(dict.fromkeys("ivupcqmdfaoCAUEBDZV", 4) | dict.fromkeys("sbt", 1), "W")
            every_byte = hashlib.sha256()
        elif tag == 3:
            tag = vnode()
        else:
            sys.exit(f"unknown part {tag}")
    if number(4) != 0x3A214B6E or stream.read(1):
        sys.exit("the dump does not end with its end mark")
    if exact:
        print("bytes", every_byte.hexdigest())


main()
