# SPDX-License-Identifier: BSD-2-Clause
"""Analysis of rxfsd's time line (--timeline): waits between reads and sends."""
import json

LARGE = 512 << 10


def load(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def by_send(lines):
    sends = {}
    for line in lines:
        sends.setdefault(line["send"], []).append(line)
    return sends


def waits(lines):
    """
    Sends that began although there was memory to hand out another read, which therefore waited for
    a send. The server's values (`ahead`, `allowed`) are not used, but recomputed from the times at
    which reads were handed out.
    """
    found = []
    for mine in by_send(lines).values():
        reads = [x for x in mine if x["what"] in ("ahead", "dropped")]
        for s in mine:
            if s["what"] != "send" or "allowed" not in s:
                continue
            under_way = sum(1 for r in reads if r["offset"] >= s["offset"]
                            and r["posted_ns"] <= s["begin_ns"])
            if under_way < s["allowed"] or s["ahead"] < s["allowed"]:
                found.append(s)
    return found


def unread(lines):
    """Sends of bytes whose read had not ended. There must be none."""
    found = []
    for mine in by_send(lines).values():
        reads = sorted((x for x in mine if x["what"] not in ("send", "dropped")),
                       key=lambda x: x["offset"])
        at = 0
        for s in sorted((x for x in mine if x["what"] == "send"), key=lambda x: x["offset"]):
            covered, end = s["offset"], s["offset"] + s["bytes"]
            while at < len(reads) and reads[at]["offset"] + reads[at]["bytes"] <= covered:
                at += 1
            for r in reads[at:]:
                if r["offset"] > covered or r["end_ns"] > s["begin_ns"] or covered >= end:
                    break
                covered = r["offset"] + r["bytes"]
            if covered < end:
                found.append(s)
    return found


def delays(lines):
    """Times in ns from handing out a read to its start, sorted."""
    return sorted(x["begin_ns"] - x["posted_ns"] for x in lines if x["what"] == "ahead")


def split(lines):
    """Bytes by the method of reading, and bytes sent."""
    total = {"cached": 0, "direct": 0, "ahead": 0, "dropped": 0, "send": 0}
    for x in lines:
        total[x["what"]] += x["bytes"]
    return total


def sizes(requests):
    """Requests of the block layer: number, mean bytes, share of bytes in those >= 512 KiB."""
    total = sum(size for _, _, size in requests)
    large = sum(size for _, _, size in requests if size >= LARGE)
    return len(requests), total / max(1, len(requests)), large / max(1, total)


def idle(requests):
    """Share of the time from the first to the last request in which the disk was idle."""
    if not requests:
        return 0.0
    gap, until = 0, requests[0][0]
    for issued, completed, _ in requests:
        gap += max(0, issued - until)
        until = max(until, completed)
    return gap / max(1, until - requests[0][0])


def curve(moments, start, length, points=400):
    """[(ms, MB)]: cumulative bytes over time, of an excerpt, thinned out."""
    at, total, line = 0, 0, []
    inside = sorted((t, n) for t, n in moments if t < start + length)
    step = max(1, len(inside) // points)
    for i, (t, n) in enumerate(inside):
        total += n
        if t >= start and (i % step == 0 or i + 1 == len(inside)):
            at = (t - start) / 1e6
            line.append([round(at, 3), round(total / 1e6, 3)])
    return line


def curves(lines, requests, length_ns):
    """Series of the plot: requested from the disk, completed by it, read by rxfsd, sent."""
    start = min([r[0] for r in requests] + [x["begin_ns"] for x in lines])
    series = [
        ("asked of the disk", [(r[0], r[2]) for r in requests]),
        ("had from the disk", [(r[1], r[2]) for r in requests]),
        ("read by rxfsd", [(x["end_ns"], x["bytes"]) for x in lines
                           if x["what"] not in ("send", "dropped")]),
        ("sent", [(x["end_ns"], x["bytes"]) for x in lines if x["what"] == "send"]),
    ]
    return [{"label": label, "points": curve(moments, start, length_ns), "steps": True}
            for label, moments in series if moments]
