# SPDX-License-Identifier: BSD-2-Clause
"""
Samples of the ladder and their evaluation. They are JSON Lines, one object per line, by "type":
about      the run: revision, machine, sizes
state      the machine before a round: round and the figures of src/bench/ping
sample     round, group, name, x (streams, clients or calls in flight) and the figures
count      the same without a round, of a run that only counted system calls
skip       group, name, x, why: it is missing or failed, and its samples are ignored
table, plot, note, aim: results of another program, shown unchanged: a title, a
           head and rows of texts; a plot's name, title, x, y, log_x, log_y, series of label and
           points; text; text, value, sense (">=", "<=") and bound
skip-program  program, why: one of those did not run, or failed
uncounted  group, name, x, why: only that run failed, the samples are valid
"""
import json
import statistics

# A round is an outlier if a thread's wake-up took that many times more or less than usual.
STATE_FACTOR = 1.5


def load(path):
    records = []
    with open(path) as f:
        for n, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                r = json.loads(line)
            except ValueError as e:
                raise ValueError(f"{path}:{n}: not JSON: {e}") from None
            if not isinstance(r, dict) or "type" not in r:
                raise ValueError(f"{path}:{n}: no object with a type")
            records.append(r)
    return records


def strange_rounds(records, factor=STATE_FACTOR):
    """The numbers of outlier rounds, in which the machine was in another state than in most."""
    wakes = {r["round"]: r["wake_us"] for r in records if r["type"] == "state" and r.get("wake_us")}
    if len(wakes) < 3:
        return set()
    usual = statistics.median_low(wakes.values())
    return {n for n, wake in wakes.items() if wake > usual * factor or wake * factor < usual}


class Figures:
    """Medians and spreads without the outlier rounds."""

    def __init__(self, records):
        self.strange = strange_rounds(records)
        self.about = next((r for r in records if r["type"] == "about"), {})
        self.states = [r for r in records if r["type"] == "state"]
        self.others = [r for r in records
                       if r["type"] in ("table", "plot", "note", "aim", "skip-program")]
        self.skipped = {}
        self.kept = {}
        self.order = []
        failed = set()
        for r in records:
            if r["type"] == "skip":
                self.skipped[self.key(r)] = r["why"]
                if r["why"].startswith("failed"):
                    failed.add(self.key(r))
            if r["type"] in ("sample", "skip") and self.key(r) not in self.order:
                self.order.append(self.key(r))
            if r["type"] in ("sample", "count") and r.get("round") not in self.strange:
                self.kept.setdefault(self.key(r), []).append(r)
        for key in failed:
            self.kept.pop(key, None)

    def made(self, *types):
        return [r for r in self.others if r["type"] in types]

    @staticmethod
    def key(r):
        return r["group"], r["name"], r["x"]

    def names(self, group):
        """In the order of their first run."""
        return list(dict.fromkeys(name for g, name, _ in self.order if g == group))

    def xs(self, group, name=None):
        return sorted({x for g, n, x in self.order if g == group and name in (None, n)})

    def values(self, group, name, x, figure):
        return [r[figure] for r in self.kept.get((group, name, x), ())
                if r.get(figure) is not None]

    def median(self, group, name, x, figure):
        values = self.values(group, name, x, figure)
        return statistics.median(values) if values else None

    def spread(self, group, name, x, figure):
        """Half the range, relative to the median."""
        values = self.values(group, name, x, figure)
        middle = statistics.median(values) if values else 0
        return (max(values) - min(values)) / 2 / middle if len(values) > 1 and middle else None

    def best(self, group, name, figure):
        """(x, median) for the largest median; None without data."""
        found = [(m, x) for x in self.xs(group, name)
                 if (m := self.median(group, name, x, figure)) is not None]
        return (max(found)[1], max(found)[0]) if found else None
