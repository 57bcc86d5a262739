# SPDX-License-Identifier: BSD-2-Clause
"""Processes of a benchmark: starting, waiting, stopping by pid, and counting their CPU time."""
import json
import os
import resource
import signal
import socket
import subprocess
import time


class Failed(Exception):
    """A program failed. The text names it and the reason."""


def run_first():
    """This process, and those that it starts, run before all ordinary ones, so that other work on the machine does not count."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError as e:
        raise Failed(f"real-time priority is not permitted here (root, and the control group of the CPU must have some): {e}") from e


def free_port():
    """A UDP port that is currently free on all local addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def free_tcp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def port_is_bound(port, kind="udp"):
    for table in (f"/proc/net/{kind}", f"/proc/net/{kind}6"):
        try:
            with open(table) as f:
                next(f)
                for line in f:
                    if int(line.split()[1].rsplit(":", 1)[1], 16) == port:
                        return True
        except OSError:
            pass
    return False


def reap(process):
    """Waits for a process. Returns its exit status and resource usage (of all its threads)."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage


def cpu_seconds(usage):
    return usage.ru_utime + usage.ru_stime


def context_switches(usage):
    return usage.ru_nvcsw + usage.ru_nivcsw


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "(it said nothing)"


class Server:
    """A server that runs in the background until finish() or stop(). `ports`: open when ready. `end`: a signal."""

    def __init__(self, command, ports, log, kind="udp", end=signal.SIGTERM):
        self.command, self.end = command, end
        self.log = open(log, "w+")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while not all(port_is_bound(p, kind) for p in ports):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise Failed(f"{os.path.basename(command[0])}: did not start: {self.said()}")
            time.sleep(0.01)

    def said(self):
        self.log.flush()
        self.log.seek(0)
        return last_line(self.log.read())

    def status_kib(self, field):
        """A line of /proc/PID/status such as VmHWM, in KiB."""
        with open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        return 0

    def kill(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """Ends it. Returns its CPU seconds."""
        return cpu_seconds(self.finish())

    def finish(self):
        """Ends it. Returns its resource usage, including that of children it waited for."""
        if self.process.poll() is not None:
            raise Failed(f"{os.path.basename(self.command[0])}: ended early: {self.said()}")
        self.process.send_signal(self.end)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                return usage
            time.sleep(0.005)
        self.process.kill()
        return reap(self.process)[1]


def run_program(command, timeout=600):
    """Runs a program to its end. Returns (output, elapsed seconds, resource usage)."""
    read_end, write_end = os.pipe()
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=write_end,
                               stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    previous = signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.alarm(timeout)
    try:
        with os.fdopen(read_end) as out:
            text = out.read()
        errors = process.stderr.read()
        process.stderr.close()
        status, usage = reap(process)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    elapsed = time.monotonic() - start
    if status != 0:
        raise Failed(f"{os.path.basename(command[0])}: exit status {status}: "
                     f"{last_line(errors or text)}")
    return text, elapsed, usage


def json_object(program, text):
    """The last JSON object in a program's output: one line, or the whole text."""
    for line in reversed(text.strip().splitlines() or [""]):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                break
    try:
        return json.loads(text)
    except ValueError:
        raise Failed(f"{os.path.basename(program)}: printed no JSON: {last_line(text)}") from None


def run_client(command, want_json=True, timeout=600):
    """Runs a program to its end. Returns (its JSON object or None, elapsed seconds, CPU
    seconds)."""
    text, elapsed, usage = run_program(command, timeout)
    return json_object(command[0], text) if want_json else None, elapsed, cpu_seconds(usage)


def lift_limits():
    """Raises the limit of descriptors to the user's maximum. A hundred clients need it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
