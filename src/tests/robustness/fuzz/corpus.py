#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes inputs of corpus/ from the recorded packets: python3 corpus.py. Other inputs stay as they are.

Those of types and stubs come from src/tests/xg/corpus.py, those of xg and many others were found by fuzzing.
"""

import json
import os

import inputs

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "..", "..", "vectors")
HEADER = 28

made = {}  # by target and name


def load(name):
    with open(os.path.join(VECTORS, name), encoding="utf-8") as f:
        return json.load(f)


def put(target, name, data):
    made.setdefault(target, {})[name] = data


def word(value):
    return (value & 0xFFFFFFFF).to_bytes(4, "big")


def packets():
    for name in ("packets-data.json", "packets-jumbo.json", "packets-ack.json", "packets-misc.json"):
        for vector in load(name)["vectors"]:
            yield vector["id"], bytes.fromhex(vector["hex"])


def from_packets():
    for name, data in packets():
        kind, body = data[20], data[HEADER:]
        if name in ("rxperf-1", "ack-ping", "busy", "abort-raw", "version-request", "jumbo-2"):
            put("header", name, data[:HEADER])
        if kind == 2:
            put("ack", name, body)
        elif kind == 4:
            put("abort", name, body)
        elif kind == 8:
            put("debug", name, body)
        elif kind == 1 and (name.startswith("jumbo") or len(data) < 100):
            put("jumbo", name, data)


def burst(members, first=b"", flags=1, payload=20):
    """Consecutive packets of one call, of equal size except the last."""
    out = first
    for i in range(members):
        last = i + 1 == members
        out += word(0x80000001) + word(0x1234) + word(1) + word(5 + i) + word(100 + i)
        out += bytes([1, flags | (4 if last else 0), 0, 0, 0, 0, 0, 147])
        out += bytes([i]) * (payload - 7 if last else payload)
    return out


def bursts():
    def length(n):
        return n.to_bytes(2, "big")

    one = burst(1)
    put("run", "train-6", length(48) + burst(6))
    put("run", "train-broken", length(48) + burst(3)[:-13] + bytes(20) + burst(2, payload=20))
    put("run", "two-calls", length(48) + burst(2)[:96] + burst(3).replace(word(0x1234), word(0x1238)))
    put("run", "short-tail", length(48) + burst(4) + bytes(9))
    put("run", "single", length(0) + one)
    put("run", "tiny-segment", length(5) + one)
    put("run", "acks", length(65) + b"".join(d for n, d in packets() if d[20] == 2 and len(d) == 65)[:325])
    jumbo = dict(packets())["jumbo-last"]
    put("run", "jumbo", length(len(jumbo)) + jumbo + jumbo)


def scripts():
    """For fuzz_conn.c: setup, then operations."""
    data = lambda flags, seq, count, size: bytes([0, 1, flags, 4, count, size, seq]) + b"x" * min(size, 8)
    ack = lambda reason, n, first: bytes([0, 2, 0x20, 0, 0, 37 + n, 0]) + bytes(
        [0, 0, 0, 0, 0, 0, 0, first, 0, 0, 0, 0, 0, 0, 0, 0, reason, n]) + b"\1" * n + bytes(3) + (
        word(1444) + word(1444) + word(255) + word(1))
    read, reply, last, finish, pause = bytes([4]), bytes([5, 0x3c]), bytes([5, 1]), bytes([6, 0]), bytes([3, 2])
    batch, begin = bytes([7]), bytes([8])
    put("conn", "server-call", bytes([2]) + data(4, 4, 0, 8) + batch + read + last + finish + pause + ack(8, 0, 2))
    put("conn", "server-bulk", bytes([6]) + data(0, 4, 15, 8) + batch + read + data(4, 4, 3, 8) + read
        + reply * 4 + pause + ack(1, 8, 1) + ack(3, 9, 3) + last + finish + ack(9, 0, 7) * 3 + pause * 3)
    put("conn", "server-gap", bytes([2]) + data(0, 6, 2, 8) + batch + data(4, 4, 1, 8) + read + last + finish)
    put("conn", "client-call", bytes([3]) + begin + bytes([5, 1]) + pause + ack(1, 1, 1)
        + data(4, 4, 0, 8) + read + finish)
    put("conn", "client-bulk", bytes([7]) + begin + reply * 3 + ack(1, 4, 1) + ack(3, 20, 3) + bytes([3, 4])
        + last + ack(9, 0, 7) + data(0, 4, 9, 8) + read + data(4, 4, 0, 8) + read + finish + begin)
    put("conn", "aborted", bytes([3]) + begin + last + bytes([0, 4, 0, 4, 0, 4, 0]) + word(-455) + finish)
    put("conn", "busy", bytes([3]) + begin + last + bytes([0, 3, 0, 4, 0, 0, 0]) + pause + bytes([3, 6]) * 3)
    put("conn", "timers", bytes([2]) + data(4, 4, 0, 8) + read + last + finish + bytes([3, 3]) * 9 + bytes([3, 7]))


def extremes():
    """Formats that were not recorded: old trailers, a full table, extremes."""
    fixed = word(0) + word(7) + word(6) + word(5)
    put("header", "ones", b"\xff" * HEADER)
    put("header", "short", b"\x01" * (HEADER - 1))
    for words in (0, 2, 3):
        put("ack", f"trailer-{words}", fixed + bytes([9, 2, 1, 1, 0, 0, 0]) + word(1444) * words)
    put("ack", "full-table", fixed + bytes([3, 255]) + b"\x00\x01\x01" * 85 + bytes(3) + word(1444) * 4)
    put("ack", "marks", fixed + bytes([9, 2, 1, 1, 0, 5, 0]) + word(1444) * 4 + word(3 << 16 | 0xfffe))
    put("ack", "marks-cut-off", fixed + bytes([9, 2, 1, 1, 0, 5, 0]) + word(1444) * 4 + bytes(3))
    put("ack", "absurd-trailer", fixed + bytes([1, 0, 0, 0, 0]) + b"\xff" * 16)
    for code in (0, -1, -455, 103, 19270409, 49733377, 1233242886, -2**31):
        put("abort", f"code-{code}", word(code))
    put("debug", "type-3", word(3) + word(1))
    # xdr: number of operations, the operations of fuzz_xdr.c, then the data to decode
    text = word(5) + b"hello\0\0\0"
    put("xdr", "string", bytes([1, 5 | 8 << 3]) + text)
    put("xdr", "bytes", bytes([1, 4 | 8 << 3]) + text)
    put("xdr", "count", bytes([4, 6 | 8 << 3, 0, 0, 0]) + word(3) + word(1) + word(2) + word(3))
    put("xdr", "numbers", bytes([4, 0, 1, 2, 3 | 2 << 3]) + bytes(range(24)))
    put("xdr", "long-string", bytes([1, 5 | 31 << 3]) + word(90) + b"x" * 92)
    put("xdr", "huge-length", bytes([3, 5 | 31 << 3, 7 | 8, 0]) + word(0xFFFFFFFF) + bytes(16))
    # The second set, in pieces of 1 to 1000 bytes.
    put("xdr", "texts", bytes([32 | 2, 3 | 8 << 3, 4 | 8 << 3]) + text + text)
    put("xdr", "array", bytes([96 | 1, 6 | 31 << 3]) + word(40) + bytes(range(160)))
    put("xdr", "nested", bytes([160 | 1, 5]) + word(1) * 3 + word(0))
    put("xdr", "deep", bytes([224 | 1, 5]) + word(1) * 65 + word(0))
    put("xdr", "uuid", bytes([224 | 3, 2, 1, 0]) + bytes(range(56)))


def datagrams(how, *packets_):
    """For fuzz_endpoint.c: setup, then source and time, length, bytes."""
    out = bytes([how])
    for who, data in packets_:
        out += bytes([who]) + len(data).to_bytes(2, "big") + data
    return out


def endpoints():
    recorded = dict(packets())
    for name in ("abort-call", "ack-ping", "busy", "version-request", "debug-type1-entry-request",
                 "debug-type3-entry-request", "debug-type4-entry-request", "debug-type5-entry-request"):
        put("endpoint", name, datagrams(0, (0, recorded[name])))
    put("endpoint", "friends", datagrams(8, *[(3, d) for n, d in packets() if n.endswith("-request")]))
    whole, part = burst(1), burst(3)
    seqs = [part.replace(word(5), word(1), 1)[:48], part[48:96].replace(word(6), word(2), 1)]
    first = lambda data, cid: data.replace(word(5), word(1), 1).replace(word(0x1234), word(cid))
    ack = next(d for n, d in packets() if n == "ack-ping")
    put("endpoint", "call", datagrams(0, (0x10, first(whole, 0x1234)), (0x10, first(whole, 0x1238))))
    put("endpoint", "call-here", datagrams(1, (3, first(whole, 0x1234)), (0x2B, ack)))
    # A segmented message of two counts as two datagrams for the limit of three bytes sent per byte received.
    two = first(burst(1, payload=40), 0x1234) + first(burst(1, payload=40), 0x1238)
    put("endpoint", "two-in-a-train", datagrams(2, (0x84, two), (0x2a, bytes(28))))
    put("endpoint", "flood", datagrams(4, *[(0x80 | i % 3, first(whole, 0x1000 + 4 * i)) for i in range(8)]))
    put("endpoint", "batch", datagrams(2, (0x84, part), (0x80, seqs[0]), (0, seqs[1])))
    put("endpoint", "reach", datagrams(64, (0x10, first(whole, 0x20)[:-12] + word(1) + bytes(8)), (0x18, ack)))
    put("endpoint", "jumbo", datagrams(16, *[(8, d) for n, d in packets() if n.startswith("jumbo")][:1]))
    put("endpoint", "late", datagrams(0, (0x38, first(whole, 0x1234)), (0x38, first(whole, 0x1234))))


def plays():
    """For fuzz_live.c: setup, then events."""
    go, all_, poll = bytes([0xE0]), bytes([0xF7]), bytes([8])
    begin = lambda which, request, reply: bytes([9, which, request, reply])
    round_ = all_ + poll
    put("live", "call", bytes([3]) + begin(0, 5, 5) + round_ * 3)
    put("live", "here", bytes([0x83]) + begin(0x40, 9, 9) + round_ * 3)
    put("live", "bulk", bytes([3]) + begin(0, 0, 255) + round_ * 20)
    put("live", "request", bytes([3]) + begin(0x40, 255, 0) + round_ * 20)
    put("live", "small-window", bytes([0x40]) + begin(0x80, 210, 210) + round_ * 20)
    put("live", "loss", bytes([3]) + begin(0, 0, 240) + (go + bytes([0]) + go * 3 + poll + bytes([0x1B])) * 12)
    put("live", "late", bytes([3]) + begin(0, 0, 240) + (go + bytes([0x20]) * 3 + go * 2 + poll) * 12)
    put("live", "twice", bytes([1]) + begin(0x40, 0, 250) + (bytes([0x10]) * 4 + poll + bytes([0x2B])) * 12)
    put("live", "trains", bytes([3]) + begin(0, 0, 255) + (bytes([0x50, 30]) + poll) * 20)
    put("live", "channels", bytes([2]) + b"".join(begin(0x80 * (i % 2) + i, 3 * i, 9) for i in range(6)) + round_ * 6)
    put("live", "changed", bytes([3]) + begin(0, 0, 230)
        + (go + bytes([0x30, 2, 20, 1, 30, 7, 0]) + go + poll) * 10)
    put("live", "cut", bytes([7]) + begin(0, 0, 230) + (go + bytes([0x30, 0, 0xA0]) + go + poll) * 10)
    put("live", "acks", bytes([3]) + begin(0, 0, 255) + round_ + go
        + (bytes([12, 1, 37, 2, 0]) + bytes(3) + bytes([9]) + bytes(7) + bytes([2, 3, 0]) + bytes(18) + poll) * 6)
    put("live", "aborts", bytes([3]) + begin(0, 0, 255) + round_ + bytes([12, 1, 4, 4, 0, 0, 0, 1, 0]) + poll
        + begin(0, 1, 1) + round_ + bytes([13]) + begin(1, 1, 1) + round_ + bytes([0x3D]) + round_)
    put("live", "refused", bytes([3]) + begin(0, 0, 255) + (round_ + bytes([15, 3, 0x1F, 2, 0x2B])) * 6)
    put("live", "reports", bytes([0xB]) + begin(0, 0, 255) + (round_ + bytes([14, 1, 14, 200, 14, 2])) * 6)
    put("live", "silence", bytes([3]) + begin(0, 0, 255) + round_ + (bytes([0]) * 9 + bytes([0x5B]) + poll) * 6)
    put("live", "dead", bytes([3]) + begin(0x40, 1, 255) + round_ + bytes([0x7B]) + poll + round_)


def directories():
    """For fuzz_dir.c: length of a name, the name, an image. For fuzz_names.c: length of edits, edits, an image."""
    def hash_of(name):
        h = 0
        for c in name:
            h = (h * 173 + c) & 0xFFFFFFFF
        t = h & 127
        return t if t == 0 or h < 0x80000000 else 128 - t

    def image(names):
        page = bytearray(2048)
        page[0:4] = bytes([0, 1, 4, 0xD2])
        slot = 13
        for number, name in enumerate(names):
            at, used, bucket = slot * 32, 1 + (len(name) + 16) // 32, 160 + 2 * hash_of(name)
            page[at] = 1
            page[at + 2:at + 4] = page[bucket:bucket + 2]
            page[at + 4:at + 12] = word(2 * number + 1) + word(number + 7)
            page[at + 12:at + 12 + len(name)] = name
            page[bucket:bucket + 2] = slot.to_bytes(2, "big")
            slot += used
        for s in range(slot):
            page[5 + s // 8] |= 1 << s % 8
        return bytes(page)

    names = [b".", b"..", b"file", b"a-directory", b"n" * 200, b"x", b"y" * 15, b"z" * 16]
    put("dir", "small", bytes([4]) + b"file" + image(names))
    put("dir", "empty", bytes([1]) + b"." + image(names[:2]))
    cycle = bytearray(image(names))
    cycle[13 * 32 + 2:13 * 32 + 4] = (13).to_bytes(2, "big")
    put("dir", "cycle", bytes([2]) + b"-." + bytes(cycle))
    put("dir", "names", bytes([0]) + bytes([3]) + b"abc" + bytes([15]) + b"d" * 15 + bytes([250]) + b"e" * 250)
    put("names", "small", bytes([4]) + b"\x02\x84ab" + image(names))
    put("names", "empty", bytes([0]) + image(names[:2]))
    put("names", "built", bytes([9]) + b"\x03abc\x85\x03xyz" + bytes([3]) + b"abc" + bytes([15]) + b"d" * 15 + bytes([240]) + b"e" * 240)
    twice = bytearray(image(names[:2] + [b"a", b"b"]))
    twice[16 * 32 + 12] = ord("a")
    put("names", "twice", bytes([0]) + bytes(twice))
    put("names", "cycle", bytes([0]) + bytes(cycle))
    put("names", "more-pages", bytes([0]) + b"\0\2" + image(names)[2:] + b"\0\0\4\xd2" + bytes([10, 1]) + bytes(2042))
    put("dir", "two-pages", bytes([1]) + b"x" + image(names) + b"\0\0\4\xd2" + bytes([10, 3]) + bytes(100))


def configurations():
    """For fuzz_config.c: a file, and lines of names and values."""
    put("config", "file", b"# a comment\n[rxwire]\nwindow = 32\nmtu = 1444\ngso=on\n[rxperf]\nflag = yes\n"
        b"number = 7\nsize = 4K\ntime = 2s\nchoice = two\n[afscp]\nnothing = 1\n")
    put("config", "lines", b"window 255\nwindow=auto\nlisteners auto\nrcvbuf 4M\nsndbuf 1G\naffinity 0-3,8\n"
        b"debug-clients 10.0.0.0/8\ndebug_clients any\nidle-ms off\nmemory 2M\nack-packets auto\n")
    put("config", "wrong", b"window 0\nwindow 256\nwindow -1\nwindow 99999999999999999999\nmtu 1e3\nmtu 0x10\n"
        b"affinity 3-1\naffinity 0-\ngso maybe\ndebug-clients 1.2.3.4/33\nno-such 1\nmemory 1T\n")
    put("config", "long", b"inject " + b"x" * 100 + b"\n" + b"a" * 195 + b" = 1\n")
    put("config", "ends", b"[rxwire\nwindow = 3")
    put("config", "words", b"steer hash\nio msg\ndefer off\npath-mtu on\njumbo on\nspin-us 0\npoll-us 1000\n"
        b"dead-ms 1000\nhard-ms 1\ncall-memory 16K\nsendq-packets 2\ninject gso:EIO@1\n")


def from_requests():
    for number, operation in enumerate(load("rxstats.json")["operations"]):
        if number % 3 == 0:
            body = bytes.fromhex(operation["requestBody"])
            put("xdr", f"rxstats-{operation['operation']}", bytes([3, 0, 0, 0]) + body)


def rxgk():
    """For fuzz_rxgk.c: the format, then recorded bytes; and some that were never sent."""
    def opaque(data):
        return word(len(data)) + data + bytes(-len(data) % 4)

    exchanges = load("rxgk-exchanges.json")["exchanges"]
    for e in (exchanges[2], exchanges[5]):
        name = e["id"][len("rxgk-"):]
        body = bytes.fromhex(e["rxgk"]["tokenPlain"])
        put("rxgk", f"body-{name}", bytes([0]) + body)
        put("rxgk", f"sealed-body-{name}", bytes([3]) + body)
        payload = {p["fields"]["header"]["typeName"]: bytes.fromhex(p["hex"])[28:] for p in e["packets"]}
        response = payload["RESPONSE"]
        put("rxgk", f"response-{name}", bytes([4]) + response)
        put("rxgk", f"token-{name}", bytes([2]) + response[12:12 + int.from_bytes(response[8:12], "big")])
        put("rxgk", f"packet-{name}", bytes([6]) + payload["DATA"])
    gss = bytes.fromhex("0401000b06092a864886f712010202") + word(11) + b"alice@REALM"
    put("rxgk", "body-yfs", bytes([1]) + word(20) + opaque(bytes(32)) + word(2) + bytes(8) + word(600) + word(30) +
        bytes(8) + word(1) + word(2) + opaque(gss) + opaque(b"alice@REALM"))
    put("rxgk", "authenticator", bytes([5]) + bytes(20) + word(0) + word(2) + word(7) + word(8) + word(4) + bytes(16))
    put("rxgk", "sealed-packet", bytes([7]) + word(7) + word(8) + word(1) + word(1) + word(4) + word(5) + b"hello\0\0")
    put("rxgk", "start", bytes([8]) + word(4) + word(20) + word(19) + word(18) + word(17) + word(2) + word(2) +
        word(1) + word(600) + word(30) + opaque(bytes(20)))
    put("rxgk", "info", bytes([9]) + word(0) + word(20) + word(2) + word(600) + word(30) + bytes(8) +
        opaque(bytes(28)) + opaque(b"a token") + opaque(bytes(20)))


def rxkad():
    """For fuzz_rxkad.c, likewise: one exchange of each form of ticket."""
    for e in load("rxkad-exchanges.json")["exchanges"]:
        if e["id"] not in ("pts-localauth-1", "krb5-kvno213-sessionkey18-level1", "krb5-kvno256-sessionkey17-level2",
                           "v4-ticket-life0c"):
            continue
        name, info = e["id"], e["rxkad"]
        contents = info["ticketContents"]
        if "encTicketPart" in contents:
            part = bytes.fromhex(contents["encTicketPart"])
            put("rxkad", f"clear-{name}", bytes([0]) + part)
            put("rxkad", f"sealed-{name}", bytes([3]) + part)
            put("rxkad", f"ticket-{name}", bytes([2, info["kvno"] & 1]) + bytes.fromhex(info["ticket"]))
        else:
            put("rxkad", f"clear-{name}", bytes([1]) + bytes.fromhex(contents["plaintext"]))
        for p in e["packets"]:
            body, kind = bytes.fromhex(p["hex"])[28:], p["fields"]["header"]["typeName"]
            if kind in ("CHALLENGE", "RESPONSE"):
                put("rxkad", f"{kind.lower()}-{name}", (bytes([5, 2]) if kind == "CHALLENGE" else bytes([4])) + body)
    for level in range(3):
        put("rxkad", f"packets-level{level}", bytes([6, level]) + bytes([24, 1, 1]) + bytes(range(24)) +
            bytes([8, 2, 1]) + bytes(range(1, 9)) + bytes([40, 3, 2]) + bytes(41))


def keytabs():
    """For fuzz_keytab.c: the service, then a file."""
    half = lambda value: value.to_bytes(2, "big")
    text = lambda t: half(len(t)) + t.encode()

    def entry(name, enctype, kvno, size, tail=b"", time=1795229458):
        e = half(name.count("/") + 1) + text("EXAMPLE.ORG") + b"".join(text(t) for t in name.split("/"))
        e += word(1) + word(time) + bytes([kvno & 255]) + half(enctype) + half(size) + bytes(range(size)) + tail
        return word(len(e)) + e

    head, service = b"\5\2", "afs/example.org"
    put("keytab", "one", bytes([3]) + head + entry(service, 18, 3, 32))
    put("keytab", "many", bytes([1]) + head + b"".join(
        entry(n, e, k, size, word(k)) for n, e, k, size in ((service, 17, 4, 16), (service, 23, 4, 16),
        (service, 3, 300, 8), ("afs", 20, 5, 32), ("host/a.example.org", 18, 1, 32), (service, 1, 2, 8))))
    put("keytab", "cell-in-realm", bytes([9]) + head + entry("afs", 18, 3, 32) + entry(service, 18, 3, 32))
    put("keytab", "hole-younger-end", bytes([10]) + head + word(-9) + bytes(9) + entry(service, 19, 3, 16) +
        entry(service, 19, 3, 16, time=1795229459) + word(0) + bytes(40))
    put("keytab", "others", bytes([4]) + head + entry("nfs/x\ty@z", 18, 3, 32) + entry("a/b/c", 18, 3, 32))
    put("keytab", "version-1", bytes([0]) + b"\5\1" + bytes(30))
    ext = lambda kind, kvno, enctype, size: (word(16) + word(kind) + word(kvno) + word(enctype) + word(size) +
        bytes(range(size)))
    put("keytab", "keyfileext", bytes([0]) + word(4) + ext(0, 2, 0, 8) + ext(1, 3, 18, 32) + ext(2, 3, 17, 16) +
        ext(9, 1, 1, 5))
    put("keytab", "keyfile", bytes([8]) + word(2) + (word(1) + bytes(8) + word(2) + b"\1" * 8) + bytes(72))
    put("keytab", "keyfile-short", bytes([0]) + word(1) + word(7) + b"\2" * 8)


def acls():
    """For fuzz_acl.c: texts of ACLs with their NUL."""
    put("acl", "recorded", b"2\n0\nsystem:administrators\t127\nsystem:anyuser\t127\n\0")
    put("acl", "empty", b"0\n0\n\0")
    put("acl", "both", b"2\n2\nab\t9\n12 1\n-7\t-1\nab\t0\n\0")
    put("acl", "twenty", b"10\n10\n" + b"".join(b"%d\t%d\n" % (i + 1, i * 7) for i in range(20)) + b"\0")
    put("acl", "too-many", b"11\n10\n" + b"a\t1\n" * 21 + b"\0")


if __name__ == "__main__":
    from_packets()
    extremes()
    bursts()
    scripts()
    endpoints()
    plays()
    directories()
    acls()
    configurations()
    from_requests()
    rxgk()
    rxkad()
    keytabs()
    for target, new in made.items():
        inputs.put(target, new)
