# SPDX-License-Identifier: BSD-2-Clause
"""
Security classes: the same transfer at each class and level, compared with the limit set by the
ciphers. The limit is 1/(1/a + 1/b): b is the rate of the null class, a that of cipher and checksum
alone.
"""
import os
import struct

import calls
import ours
from contest import Contestant, Missing
from measure import Failed, run_client
from report import number
from spending import per_gigabyte

SEVERAL = 32
IN_FLIGHT = (1, 64)  # small calls
KEY_KRB5, KEY_RXGK, KVNO = 2, 1, 7
KEY_BYTES = {17: 16, 18: 32, 19: 16, 20: 32}
RATES = "ciphers"
BURST = 45  # packets sealed per batch

# Class, level, enctype of the key (0: fixed), part of the bytes to move.
LEVELS = [("null", None, 0, 1 / 2),
          ("rxkad", "clear", 18, 1 / 2), ("rxkad", "auth", 18, 1 / 2),
          ("rxkad", "crypt", 18, 1 / 4),
          ("rxgk", "clear", 20, 1 / 2),
          *(("rxgk", "auth", enctype, 1 / 4) for enctype in (18, 20)),
          *(("rxgk", "crypt", enctype, 1 / 4) for enctype in (17, 18, 19, 20))]


def title(klass, level, enctype):
    words = [klass, *([level] if level else [])]
    return " ".join(words + ([str(enctype)] if klass == "rxgk" and level != "clear" else []))


TITLES = [title(*level[:3]) for level in LEVELS]


def key_file(place, klass, enctype):
    """A KeyFileExt with one fresh key, readable by the owner only. It is removed with the run's
    folder."""
    path = os.path.join(place.work, f"keys-{klass}-{enctype}")
    if not os.path.exists(path):
        key = os.urandom(KEY_BYTES[enctype])
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(struct.pack(">6I", 1, 16, KEY_RXGK if klass == "rxgk" else KEY_KRB5, KVNO,
                                enctype, len(key)) + key)
    return path


def options(place, klass, level, enctype):
    """Options for rxperf: (the client's, the server's)."""
    if klass == "null":
        return [], []
    server = ["-x", klass, "--key-file", key_file(place, klass, enctype)]
    return [*server, "--level", level], server


def ends(r):
    """(the client's part of a report, the server's)"""
    return r, r.get("server") or {}


def own_figures(r):
    """Further results from the reports of both ends, besides rates."""
    made = {}
    if r["bytes"]:
        gigabytes = r["bytes"] / 1e9
        for which, end in zip(("client", "server"), ends(r)):
            if "cpu_user_s" in end:
                made[f"{which}_cpu_s_per_GB"] = (end["cpu_user_s"] + end["cpu_sys_s"]) / gigabytes
        made["io_calls_per_GB"] = sum(
            ours.counted(end.get("transport") or {}, "syscalls.") for end in ends(r)) / gigabytes
    data = bursts = 0
    for end in ends(r):
        transport = end.get("transport") or {}
        bursts += transport.get("gso_messages", 0)
        data += transport.get("packets.sent.data", 0)
    if bursts:
        made["packets_per_burst"] = data / bursts
    return made


class Classed(Contestant):
    """rxperf at both ends, `x` streams, at one class and level."""

    def __init__(self, place, command, x, klass, level, enctype, part):
        super().__init__(place, f"{command}, {title(klass, level, enctype)}")
        self.x = x
        self.command = command
        self.klass = klass
        self.level = level
        self.enctype = enctype
        self.part = part

    def sample(self, count=False):
        each = max(int(self.place.bytes * self.part) // self.x, 1 << 16)
        client, server = options(self.place, self.klass, self.level, self.enctype)
        r, cost = ours.pair(self.place, ["-c", self.command, "-b", str(each), "-t", str(self.x),
                                         *client], server, count)
        if r["bytes"] != each * self.x or r["class"] != self.klass or \
                r["level"] != (self.level or r["level"]):
            raise Failed(f"rxperf: {r['bytes']} bytes of {each * self.x}, {r['class']}, "
                         f"{r['level']}")
        rates = per_gigabyte(r["bytes"], r["seconds"], cost)
        return rates if count else {**rates, **ours.traffic(r), **own_figures(r)}


class Called(calls.Rpc):
    """Small calls, `x` in flight, at one class and level: shows the cost of a thread switch, if
    any."""

    def __init__(self, place, x, klass, level, enctype, seconds=1):
        super().__init__(place, f"calls, {title(klass, level, enctype)}", "blocking", x, seconds)
        self.chosen = klass, level, enctype

    def sample(self, count=False):
        self.client, self.server = options(self.place, *self.chosen)
        return super().sample(count)


class Rates(Contestant):
    """Rates of libcrypto and fcrypt without a network, on one core."""

    counted = False
    x = 1

    def sample(self, count=False):
        place = self.place
        made, _, _ = run_client([place.program("src/bench/rxgk")])
        try:
            place.openafs_programs()  # they include the library with OpenAFS's fcrypt
        except Missing:  # without it only ours is measured
            pass
        place.program("src/bench/fcrypt")
        r, _, _ = run_client(["sh", place.tool("fcrypt-rivals"), place.build])
        made.update({f"fcrypt_{key}": value for key, value in r.items()})
        return {key: value for key, value in made.items() if isinstance(value, (int, float))}


def contestants(place):
    """
    The ciphers, then every class and level: receiving and sending, one stream and several; small
    calls, one and several in flight.
    """
    return [Rates(place, RATES),
            *(Classed(place, command, x, *level) for command in ("recv", "send")
              for x in (1, SEVERAL) for level in LEVELS),
            *(Called(place, x, *level[:3]) for x in IN_FLIGHT for level in LEVELS)]


def for_bench(place):
    """The same, each under its own name."""
    made = contestants(place)
    for c in made:
        c.name = label(c.name, c.x)
    return made


def label(name, x):
    return name if name == RATES else f"{name}, {x}"


def is_label(name):
    """Whether it has a row in these tables."""
    return name == RATES or any(name == label(f"{command}, {t}", x) for t in TITLES
                                for command, counts in (("recv", (1, SEVERAL)),
                                                        ("send", (1, SEVERAL)),
                                                        ("calls", IN_FLIGHT))
                                for x in counts)


def cipher_rates(rate, name):
    """MB/s on one core of (sealing, opening), or None if negligible compared with null."""
    klass, level, *enctype = name.split()
    if level == "clear" or name == "rxkad auth":
        return None
    if klass == "rxkad":
        return rate(f"fcrypt_portable_encrypt_{BURST}_MBps"), rate("fcrypt_portable_decrypt_64_MBps")
    if level == "auth":
        return (rate(f"{enctype[0]}_hmac_MBps"),) * 2
    return rate(f"{enctype[0]}_own_seal_MBps"), rate(f"{enctype[0]}_own_open_MBps")


def limit(rate, name, x, null, cores):
    """
    MB/s that cipher and null class allow together. One stream: the slower of both ends, with a core
    each. Several: all cores do both.
    """
    if null is None or name == "null":
        return None
    rates = cipher_rates(rate, name) if name != "null" else None
    if rates is None:
        return null
    if None in rates:
        return None
    seal, open_ = rates
    a = min(seal, open_) if x == 1 else max(cores, 1) / (1 / seal + 1 / open_)
    return 1 / (1 / a + 1 / null)


COLUMNS = (("client_cpu_s_per_GB", "client"), ("server_cpu_s_per_GB", "server"),
           ("acks_per_data", "ACK/DATA"), ("packets_per_burst", "packets/burst"),
           ("io_calls_per_GB", "system calls/GB"))


def class_rows(figure, noise, rate, cores):
    rows = []
    for command in ("recv", "send"):
        for x in (1, SEVERAL):
            null = figure(f"{command}, null", x, "MBps")
            for name in TITLES:
                whole = f"{command}, {name}"
                mbps = figure(whole, x, "MBps")
                if mbps is None:
                    continue
                most = limit(rate, name, x, null, cores)
                spread = noise(whole, x, "MBps")
                rows.append("| " + " | ".join([
                    command, str(x), name,
                    number(mbps) + ("" if spread is None else f" ±{spread:.0%}"), number(most),
                    number(mbps / most if most else None),
                    *(number(figure(whole, x, key)) for key, _ in COLUMNS)]) + " |")
    return rows


CALL_COLUMNS = (("p50_us", "p50, µs"), ("p99_us", "p99, µs"), ("cpu_us_per_call", "CPU, µs"),
                ("switches_per_call", "thread switches"))


def call_rows(figure, noise):
    rows = []
    for x in IN_FLIGHT:
        for name in TITLES:
            whole = f"calls, {name}"
            rate, null = figure(whole, x, "calls_per_s"), figure("calls, null", x, "calls_per_s")
            if rate is None:
                continue
            spread = noise(whole, x, "calls_per_s")
            rows.append("| " + " | ".join([
                str(x), name, number(rate) + ("" if spread is None else f" ±{spread:.0%}"),
                number(rate / null if null else None),
                *(number(figure(whole, x, key)) for key, _ in CALL_COLUMNS)]) + " |")
    return rows


def rate_rows(rate):
    rows = []
    for enctype in KEY_BYTES:
        if rate(f"{enctype}_encrypt_MBps"):
            rows.append(f"| enctype {enctype} | " + " | ".join(
                number(rate(f"{enctype}_{key}")) for key in
                ("encrypt_MBps", "decrypt_MBps", "hmac_MBps", "own_seal_MBps", "seal_crypt_MBps",
                 "own_open_MBps", "open_crypt_MBps", "seal_auth_MBps")) + " |")
    return rows


def fcrypt_rows(rate):
    rows = []
    for origin, name in (("openafs", "OpenAFS's"), ("portable", "ours")):
        cells = [number(rate(f"fcrypt_{origin}_encrypt_{n}_MBps")) for n in (1, 4, 16, BURST, 64)]
        cells += [number(rate(f"fcrypt_{origin}_decrypt_{n}_MBps")) for n in (1, 64)]
        if any(cell != "–" for cell in cells):
            rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return rows


def aims(figure, rate):
    """[(text, value, sense, bound)] of the measured values."""
    made = []
    null = figure("recv, null", 1, "MBps")
    for enctype in KEY_BYTES:
        name = f"rxgk crypt {enctype}"
        mbps, most = figure(f"recv, {name}", 1, "MBps"), limit(rate, name, 1, null, 2)
        made.append((f"{name}, MB/s received by one stream ÷ limit", mbps and most and mbps / most,
                     ">=", 0.5))
    for auth, crypt in (("rxkad auth", "rxkad crypt"), ("rxgk auth 18", "rxgk crypt 18"),
                        ("rxgk auth 20", "rxgk crypt 20")):
        a, b = (figure(f"recv, {name}", 1, "cpu_s_per_GB") for name in (auth, crypt))
        made.append((f"CPU-s/GB of {auth} ÷ of {crypt}", a and b and a / b, "<=", 0.6))
    theirs = rate("fcrypt_openafs_encrypt_1_MBps")
    for n in (4, BURST):
        own = rate(f"fcrypt_portable_encrypt_{n}_MBps")
        made.append((f"fcrypt, {n} packets at once ÷ OpenAFS's", own and theirs and own / theirs,
                     ">=", 4))
    return made


def aim_rows(figure, rate):
    rows = []
    for text, value, sense, bound in aims(figure, rate):
        good = value is not None and (value >= bound if sense == ">=" else value <= bound)
        verdict = "not measured" if value is None else "yes" if good else "**no**"
        rows.append(f"| {text} | {number(value)} | {'at least' if sense == '>=' else 'at most'} "
                    f"{bound:g} | {verdict} |")
    return rows


def tables(figure, noise, cores):
    """Markdown; figure(name, x, key) and noise() give medians and spreads, or None. [] if none."""
    def rate(key):
        return figure(RATES, 1, key)

    rows = class_rows(figure, noise, rate, cores)
    out = []
    if rows:
        out += ["", "Security classes. The limit is 1/(1/a + 1/b), b the null class in the same "
                "place, a the cipher and its checksum alone (libcrypto's, or fcrypt): of one stream the "
                "slower of sealing and opening on one core, of several what all cores make of both. "
                "CPU-s/GB of either end; system calls are those on sockets, of both ends:", "",
                "| what | streams | class | MB/s | limit | ÷ limit | " +
                " | ".join(text for _, text in COLUMNS) + " |",
                "|" + " --- |" * (6 + len(COLUMNS)),
                *rows]
    rows = call_rows(figure, noise)
    if rows:
        out += ["", "Small calls, 100 bytes each way, by class: latency, and CPU time and thread "
                "switches of both ends for a call:", "",
                "| in flight | class | calls/s | ÷ null | " +
                " | ".join(text for _, text in CALL_COLUMNS) + " |",
                "|" + " --- |" * (4 + len(CALL_COLUMNS)), *rows]
    rows = rate_rows(rate)
    if rows:
        out += ["", "rxgk's ciphers on one core, MB/s: libcrypto's AES-CBC and HMAC alone, 16 KiB "
                "at a time, what both together allow, and our packets of a full burst:", "",
                "| | encrypt | decrypt | HMAC | both, encrypt | sealed | both, decrypt | opened | "
                "sealed, auth |", "| --- |" + " --- |" * 8, *rows]
    rows = fcrypt_rows(rate)
    if rows:
        out += ["", "fcrypt on one core, MB/s, by packets at once (decrypt: 1 and 64):", "",
                f"| | 1 | 4 | 16 | {BURST} | 64 | decrypt, 1 | decrypt, 64 |",
                "| --- |" + " --- |" * 7, *rows]
    if out:
        out += ["", "| target | measured | required | met |", "| --- | --- | --- | --- |",
                *aim_rows(figure, rate)]
    return out
