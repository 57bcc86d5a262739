# SPDX-License-Identifier: BSD-2-Clause
"""The cost of a run: CPU seconds, context switches, and system calls if the kernel counts them."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

from measure import Failed, Server, context_switches, cpu_seconds, run_program

EVENT = "raw_syscalls:sys_enter"


def perf_counts():
    """None if `perf stat` counts system calls here, otherwise the reason."""
    if not shutil.which("perf"):
        return "perf is not installed (Debian package: linux-perf)"
    r = subprocess.run(["perf", "stat", "-x,", "-e", EVENT, "--", "true"], text=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if r.returncode or counted(r.stderr) is None:
        return "perf may not count system calls here (it wants root or CAP_PERFMON)"
    return None


def counted(text):
    """The number in the output of `perf stat -x,`; None if it counted nothing."""
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] == EVENT and fields[0].isdigit():
            return int(fields[0])
    return None


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


class Watch:
    """Counts the system calls of a running server, from now until end()."""

    def __init__(self, pid):
        self.out = tempfile.NamedTemporaryFile("r", prefix="rxw-perf-")
        pids = ",".join(str(p) for p in [pid, *children(pid)])
        self.process = subprocess.Popen(["perf", "stat", "-x,", "-o", self.out.name, "-e", EVENT,
                                         "-p", pids], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 10
        while not self.counts() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)

    def counts(self):
        """Whether perf has opened its counters."""
        folder = f"/proc/{self.process.pid}/fd"
        try:
            return any("perf_event" in os.readlink(os.path.join(folder, fd))
                       for fd in os.listdir(folder))
        except OSError:  # a descriptor was closed meanwhile
            return False

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=20)
        with self.out:
            return counted(self.out.read())


def run_counted(command, count):
    """run_program(), with its system calls if they are to be counted: (text, s, usage, calls)."""
    if not count:
        return (*run_program(command), None)
    with tempfile.NamedTemporaryFile("r", prefix="rxw-perf-") as out:
        text, seconds, usage = run_program(["perf", "stat", "-x,", "-o", out.name, "-e", EVENT,
                                            "--", *command])
        return text, seconds, usage, counted(out.read())


def alone(command, count=False):
    """A program that plays both ends. Returns (output, elapsed seconds, cost)."""
    text, seconds, usage, calls = run_counted(command, count)
    return text, seconds, {"cpu_s": cpu_seconds(usage), "switches": context_switches(usage),
                           "syscalls": calls}


def both_ends(server_command, ports, client_command, log, count=False, kind="udp", look=None,
              beside=None):
    """
    Runs a server, and a client against it to its end. Returns (the client's output, elapsed
    seconds, the cost of both). look(server) is called before the server is ended. `beside`: another
    client, which is not counted; it prints a line when it has begun, and is ended after the first.
    """
    server = Server(server_command, ports, log, kind)
    other = None
    try:
        if beside:
            other = subprocess.Popen(beside, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            if not other.stdout.readline():
                raise Failed(f"{os.path.basename(beside[0])} did not begin")
        watch = Watch(server.process.pid) if count else None
        text, seconds, usage, calls = run_counted(client_command, count)
        served_calls = watch.end() if watch else None
        if look:
            look(server)
        served = server.finish()
    finally:
        if other:
            other.kill()
            other.communicate()
        server.kill()
    if count and (calls is None or served_calls is None):
        raise Failed(f"{os.path.basename(client_command[0])}: its system calls were not counted")
    return text, seconds, {
        "cpu_s": cpu_seconds(usage) + cpu_seconds(served),
        "switches": context_switches(usage) + context_switches(served),
        "syscalls": calls + served_calls if count else None,
    }


def per_gigabyte(moved, seconds, cost):
    """Rates of a transfer. A run that counts system calls is slower and yields only their
    number."""
    if not moved:
        raise Failed("nothing was moved")
    gigabytes = moved / 1e9
    if cost["syscalls"] is not None:
        return {"syscalls_per_GB": cost["syscalls"] / gigabytes}
    return {"MBps": moved / seconds / 1e6, "cpu_s_per_GB": cost["cpu_s"] / gigabytes,
            "switches_per_GB": cost["switches"] / gigabytes}
