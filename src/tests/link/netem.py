# SPDX-License-Identifier: BSD-2-Clause
"""The table of `netem`, from lines "case, tab, guest or link, tab, JSON of datagrams". Status 1 if a figure is not that of
its setting."""
import json
import math
import sys

ETHERNET = 14  # bytes that the guest's disciplines count more for each packet
SIZE = 1000    # of packets for the rate
# Of each case: the figure, its value, and what random numbers and clocks may add to it.
CASES = {
    "loss 1 %": ("lost", 0.01), "loss 10 %": ("lost", 0.1), "loss in runs": ("lost", 1 / 26),
    "copies of 5 %": ("copies", 0.05),
    "delay 20 ms": ("delay", 20000), "delay 100 ms": ("delay", 100000),
    "rate 2 Mbit/s": ("rate", 2), "rate 10 Mbit/s": ("rate", 10), "rate 10 Mbit/s, TBF": ("rate", 10),
}


def figure(kind, r, where):
    if kind in ("lost", "copies"):
        return r[kind] / r["sent"]
    if kind == "delay":
        return r["delay_us"]["median"]
    return r["Mbps"] * ((SIZE + ETHERNET) / SIZE if where == "guest" else 1)


def good(kind, value, got, r):
    if kind in ("lost", "copies"):
        # Five standard deviations. Losses in runs of four vary as if there were a seventh of the packets.
        n = r["sent"] / (7 if value == 1 / 26 else 1)
        return abs(got - value) <= 5 * math.sqrt(value * (1 - value) / n)
    if kind == "delay":
        return value <= got <= value + 5000
    return abs(got / value - 1) < 0.02


def text(kind, got, r):
    if kind == "lost":
        return f"{100 * got:.2f} %, {r['lost'] / max(1, r['runs']):.2f} in a run"
    if kind == "copies":
        return f"{100 * got:.2f} %"
    if kind == "delay":
        d = r["delay_us"]
        return f"{d['least'] / 1e3:.2f}, {d['median'] / 1e3:.2f}, {d['p99'] / 1e3:.2f}, {d['most'] / 1e3:.2f} ms"
    return f"{got:.3f} Mbit/s"


def main():
    cells, bad = {}, []
    with open(sys.argv[1], encoding="utf-8") as f:
        for line in f:
            name, where, said = line.rstrip("\n").split("\t")
            kind, value = CASES[name]
            r = json.loads(said or "{}")
            if "sent" not in r:
                bad.append(f"{name}, {where}: {said or 'nothing'}")
                continue
            got = figure(kind, r, where)
            cells.setdefault(name, {})[where] = text(kind, got, r)
            # The guest's clock is that of an emulated processor: only the emulator has to be right about time.
            if not good(kind, value, got, r) and (where == "link" or kind in ("lost", "copies")):
                bad.append(f"{name}, {where}: {got:g}")
    print("| setting | kernel, in a guest | emulator |\n| --- | ---: | ---: |")
    for name, c in cells.items():
        print(f"| {name} | {c.get('guest', '–')} | {c.get('link', '–')} |")
    for why in bad:
        print("FAIL:", why)
    return 1 if bad or len(cells) != len(CASES) else 0


sys.exit(main())
