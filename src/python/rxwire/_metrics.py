# SPDX-License-Identifier: BSD-2-Clause
"""Statistics of an endpoint as text for Prometheus: rxw_metrics(3)."""
import collections
import ctypes as C
import itertools

from rxwire import _abi
from rxwire._abi import lib
from rxwire.errors import check

TOTAL = 0  # RXW_COUNTER_TOTAL
SHORTEST = 1 << 14  # ns: upper bound of the first number of struct rxw_durations
PHASES = {
    "reno": ("slow-start", "avoidance", "recovery"),
    "rate": ("startup", "drain", "down", "cruise", "refill", "up", "shrink"),
}


def _seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def _family(name, kind, text, samples):
    """The lines of a metric. Each sample is a suffix of the name, labels, and a value."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for suffix, labels, value in samples:
        inner = ",".join(f'{label}="{text}"' for label, text in labels.items())
        yield f"{name}{suffix}{{{inner}}} {value}"


def _counters(handle, where):
    """The metrics of the counters. Those of one metric follow each other."""
    known = list(itertools.takewhile(bool, (lib.rxw_counter_at(index) for index in itertools.count())))
    values = (C.c_uint64 * len(known))()
    check(lib.rxw_endpoint_counters(handle, values, len(known)), "metrics")

    def parts(pair):
        counter = pair[0].contents
        labels = [label.decode() for label in counter.label if label]
        name = counter.name.decode().split(".", len(labels))
        return name[0], dict(zip(labels, name[1:]))

    for name, group in itertools.groupby(zip(known, values), lambda pair: parts(pair)[0]):
        group = list(group)
        counter = group[0][0].contents
        total = counter.kind == TOTAL
        yield from _family(f"rxwire_{name}{'_total' if total else ''}", "counter" if total else "gauge", counter.help.decode(),
                           (("", where | parts(pair)[1], pair[1]) for pair in group))


def _settings(handle, where):
    effective = _abi.options(_abi.rxw_effective)
    check(lib.rxw_endpoint_effective(handle, C.byref(effective)), "metrics")
    yield from _family("rxwire_build_info", "gauge", "1, with the version as a label.",
                       [("", {"version": lib.rxw_version().decode()}, 1)])
    shown = {name: getattr(effective, name) for name in ("listeners", "window", "mtu", "gso", "gro")}
    yield from _family("rxwire_endpoint_info", "gauge", "1, with what is in effect as labels.",
                       [("", where | {"io": effective.io.decode()} | shown, 1)])
    yield from _family("rxwire_socket_buffer_bytes", "gauge", "Socket buffer granted by the kernel.",
                       [("", where | {"direction": "received"}, effective.rcvbuf),
                        ("", where | {"direction": "sent"}, effective.sndbuf)])


def _durations(handle, where):
    durations = _abi.options(_abi.rxw_durations)
    check(lib.rxw_endpoint_durations(handle, C.byref(durations)), "metrics")
    samples = []
    for role, slots, ns in (("server", durations.served, durations.served_ns), ("client", durations.made, durations.made_ns)):
        labels = where | {"role": role}
        sums = list(itertools.accumulate(slots))
        bounds = [_seconds(SHORTEST << slot) for slot in range(len(sums) - 1)] + ["+Inf"]
        samples += [("_bucket", labels | {"le": bound}, number) for bound, number in zip(bounds, sums)]
        samples += [("_sum", labels, _seconds(ns)), ("_count", labels, sums[-1])]
    return _family("rxwire_call_duration_seconds", "histogram", "Calls by their duration: served, from the first packet to "
                   "the handler's end; made, from begin to the end of the reply.", samples)


def _senders(handle, where):
    """The calls that have something to send."""
    phases, sums, times = collections.Counter(), collections.Counter(), []

    def see(_, view):
        if not view.contents.queued:
            return
        figures = view.contents.statistics.contents
        phases[figures.controller.decode(), figures.phase.decode()] += 1
        sums.update(cwnd_packets=figures.cwnd, in_flight_packets=figures.in_flight,
                    pacing_bytes_per_second=figures.pacing_rate)
        if figures.rtt_ns:
            times.append(figures.rtt_ns)

    callback = _abi.see_call_fn(see)
    check(lib.rxw_endpoint_calls(handle, C.cast(callback, C.c_void_p), None), "metrics")
    yield from _family("rxwire_senders", "gauge", "Calls with data to send, by congestion controller and its phase.",
                       (("", where | {"controller": controller, "phase": phase}, phases[controller, phase])
                        for controller, known in PHASES.items() for phase in known + ("timeout",)))
    for name, text in (("cwnd_packets", "Sum of their congestion windows."),
                       ("in_flight_packets", "Sum of their packets in flight."),
                       ("pacing_bytes_per_second", "Sum of the rates at which they are paced.")):
        yield from _family(f"rxwire_senders_{name}", "gauge", text, [("", where, sums[name])])
    yield from _family("rxwire_senders_rtt_seconds", "gauge", "Mean of their smoothed round-trip times.",
                       [("", where, _seconds(sum(times) // len(times) if times else 0))])


def text(handle, address):
    """All metrics of an endpoint; `address` is its label."""
    host, port = address[:2]
    where = {"endpoint": f"[{host}]:{port}" if ":" in host else f"{host}:{port}"}
    lines = itertools.chain(_settings(handle, where), _counters(handle, where), _durations(handle, where),
                            _senders(handle, where))
    return "\n".join(lines) + "\n"
