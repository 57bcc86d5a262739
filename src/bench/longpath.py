# SPDX-License-Identifier: BSD-2-Clause
"""One transfer across an emulated link, from within `lab` (src/tests/link): one JSON object on standard output.

usage: longpath.py JSON, with what src/bench/long asks for:
  {"programs": folder of the build, "who": "rxwire" | "cubic" | "bbr" | ..., "flows": n, "seconds": s,
   "calls": 0 | n, "bytes": of each call, "ecn": bool, "options": [of rxperf],
   "realtime": both ends run before other programs,
   "task": "flows", "start": also the losses of the first seconds, "beside": rxwire beside a flow of "who",
           "rtts": two flows, one of which has "further" ms more in its round trip}
"""
import json
import os
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import Failed, cpu_seconds, json_object, reap, run_program  # noqa: E402

PORT = "7009"
FAR = os.environ["RXW_FAR"].split()
HOST = os.environ["RXW_FAR4"]
# Room for twice the largest product of rate and round trip with a full queue.
BUFFER = 1 << 27
# What a flow of ours receives, in one call: 256 GiB, which no link here carries in the time. A call of `-c recv` ends after 2 GiB.
FLOW = "0," + ",".join(["4G"] * 64)


def sysctl(path, value):
    for where in ([], FAR):
        subprocess.run([*where, "sh", "-c", f"echo '{value}' > /proc/sys/net/{path}"], check=True)


def emulator(command="counters"):
    """The emulator's counters."""
    with open(os.path.join(os.environ["RXW_LINK"], "log"), encoding="utf-8") as log:
        log.seek(0, os.SEEK_END)
        with open(os.path.join(os.environ["RXW_LINK"], "commands"), "w", encoding="ascii") as f:
            f.write(command + "\n")
        text, end = "", time.monotonic() + 20
        while not text.endswith("\n"):
            text += log.read()
            if time.monotonic() > end:
                raise Failed("the emulator does not answer")
            time.sleep(0.01)
    return json.loads(text)


def emulator_cpu():
    """(user, system) CPU seconds of the emulator. It also runs the kernel's reception of both ends."""
    with open(f"/proc/{os.environ['RXW_EMULATOR']}/stat", encoding="ascii") as f:
        words = f.read().rsplit(")", 1)[1].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(words[11]) / tick, int(words[12]) / tick


def machine_cpu():
    """CPU seconds of all programs on this machine."""
    with open("/proc/stat", encoding="ascii") as f:
        words = list(map(int, f.readline().split()[1:9]))
    # Not idle, not waiting for a disk, not stolen by another machine.
    return (sum(words) - words[3] - words[4] - words[7]) / os.sysconf("SC_CLK_TCK")


class Server:
    """A server at the far end, which is ready once it has said so."""

    def __init__(self, command, name="server"):
        self.path = os.path.join(os.environ["RXW_LINK"], name)
        with open(self.path, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen([*FAR, *command], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT)
        end = time.monotonic() + 20
        while "ready" not in self.said():
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                raise Failed(f"{command[0]}: {self.said()}")
            time.sleep(0.01)

    def said(self):
        with open(self.path, encoding="utf-8") as f:
            return f.read()

    def stop(self):
        """Returns (its JSON object, CPU seconds)."""
        self.process.terminate()
        status, usage = reap(self.process)
        if status != 0:
            raise Failed(f"server: status {status}: {self.said()[-500:]}")
        text = self.said()
        return json.loads(text[text.index("{"):]), cpu_seconds(usage)


def jain(shares):
    return sum(shares) ** 2 / (len(shares) * sum(s * s for s in shares))


class Rxwire:
    """rxperf at both ends."""

    def __init__(self, a):
        self.program = os.path.join(a["programs"], "src/rxperf/rxperf")
        self.options = a["options"]
        self.server = Server([self.program, "server", "--listen", HOST, "-p", PORT, "--json", *self.options],
                             "server-rxwire")

    def client(self, command, *words):
        return [self.program, "client", "-c", command, "-s", HOST, "-p", PORT, "--json", *words, *self.options]

    def flows(self, count, seconds):
        return self.client("file", "-f", FLOW, "-D", str(seconds), "-t", str(count), "--per-stream")

    def result(self, text):
        r = json_object(self.program, text)
        return {"bytes": r["bytes"], "seconds": r["seconds"],
                "fairness": jain(r["stream_bytes"]) if r.get("stream_bytes") and r["bytes"] else 1,
                "acks": r["transport"]["packets.sent.ack"], "data": r["transport"]["packets.received.data"],
                "marks": r["transport"]["marks_received"]}

    def stop(self):
        s, cpu = self.server.stop()
        t = s["transport"]
        return {"server_cpu": cpu, "sent": t["packets.sent.data"], "again": t["retransmitted"],
                "spurious": t["spurious_losses"], "timeouts": t["rto_events"], "mark_events": t["mark_events"],
                "ecn_failures": t["ecn_failures"]}


class Tcp:
    """The kernel's TCP, with one congestion control."""

    def __init__(self, a):
        self.program, self.who = os.path.join(a["programs"], "src/bench/long_tcp"), a["who"]
        # Each alone: what earlier connections learnt is not kept.
        sysctl("ipv4/tcp_no_metrics_save", 1)
        sysctl("ipv4/tcp_rmem", f"4096 131072 {BUFFER}")
        sysctl("ipv4/tcp_wmem", f"4096 65536 {BUFFER}")
        sysctl("ipv4/tcp_ecn", 1 if a["ecn"] else 2)
        self.server = Server([self.program, "server", HOST, PORT], "server-tcp")

    def flows(self, count, seconds):
        return [self.program, "flows", HOST, PORT, self.who, str(count), str(seconds)]

    def result(self, text):
        r = json_object(self.program, text)
        if "call_seconds" in r:
            return r
        return {"bytes": sum(r["flow_bytes"]), "seconds": r["seconds"], "fairness": jain(r["flow_bytes"])}

    def stop(self):
        time.sleep(0.3)  # the server's threads see that the connections are closed
        s, cpu = self.server.stop()
        return {"server_cpu": cpu, "sent": s["segments"], "again": s["retransmitted"]}


def one(a, command, end):
    text, _, usage = run_program(command)
    return {**end.result(text), "client_cpu": cpu_seconds(usage), **end.stop()}


def rxwire(a):
    end = Rxwire(a)
    if a["calls"]:
        # The same connection makes them all.
        return one(a, end.client("recv", "-b", str(a["bytes"]), "-T", str(a["calls"])), end)
    return one(a, end.flows(a["flows"], a["seconds"]), end)


def tcp(a):
    end = Tcp(a)
    if a["calls"]:
        r = one(a, [end.program, "calls", HOST, PORT, a["who"], str(a["bytes"]), str(a["calls"])], end)
        return {"bytes": a["calls"] * a["bytes"], "seconds": sum(r["call_seconds"]), **r}
    return one(a, end.flows(a["flows"], a["seconds"]), end)


def at_once(runs):
    """Runs [(end, command)] side by side. Returns the result of each."""
    started = []
    for i, (end, command) in enumerate(runs):
        path = os.path.join(os.environ["RXW_LINK"], f"client{i}")
        with open(path, "w", encoding="utf-8") as out:
            started.append((end, path, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                                        stderr=subprocess.STDOUT)))
    results = []
    for end, path, process in started:
        status, usage = reap(process)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if status != 0:
            raise Failed(f"client: status {status}: {text[-300:]}")
        results.append({**end.result(text), "client_cpu": cpu_seconds(usage)})
    return results


def sums(results, *more):
    """The figures of several flows as those of one transfer."""
    r = {"bytes": sum(x["bytes"] for x in results), "seconds": max(x["seconds"] for x in results),
         "flow_bps": [x["bytes"] * 8 / x["seconds"] for x in results]}
    for key in ("client_cpu", "server_cpu", "sent", "again"):
        r[key] = sum(x[key] for x in [*results, *more] if key in x)
    return r


def beside(a):
    """A call of ours and a flow of TCP, for the same time."""
    ours, other = Rxwire(a), Tcp(a)
    results = at_once([(ours, ours.flows(1, a["seconds"])), (other, other.flows(1, a["seconds"]))])
    ends = [ours.stop(), other.stop()]
    return {**sums(results, *ends), "ends": [{**x, **y} for x, y in zip(results, ends)]}


def rtts(a):
    """Two flows to one server. One begins in a third namespace, behind a link that only delays."""
    here = os.readlink("/proc/self/ns/net")
    sleeper = subprocess.Popen(["unshare", "--net", "sleep", "1000000"])
    there = f"/proc/{sleeper.pid}/ns/net"
    while os.readlink(there) == here:
        time.sleep(0.01)
    inside = ["nsenter", "-t", str(sleeper.pid), "-n"]
    link = subprocess.Popen([os.path.join(a["programs"], "src/tests/link/link"), "--delay", f"{a['further'] / 2}ms",
                             "--realtime", "--a", there, "--b", f"/proc/{os.getpid()}/ns/net", "--name-b", "wire1"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        if "ready" not in link.stdout.readline():
            raise Failed("the second link does not start")
        for command in (["ip", "addr", "add", "10.94.1.1/24", "dev", "wire1"],
                        [*inside, "ip", "addr", "add", "10.94.1.2/24", "dev", "wire0"],
                        [*inside, "ip", "route", "add", "default", "via", "10.94.1.1"],
                        [*FAR, "ip", "route", "add", "10.94.1.0/24", "via", os.environ["RXW_NEAR4"]],
                        ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]):
            subprocess.run(command, check=True)
        end = (Rxwire if a["who"] == "rxwire" else Tcp)(a)
        command = end.flows(a["flows"] // 2, a["seconds"])
        results = at_once([(end, command), (end, [*inside, *command])])
        return {**sums(results, end.stop()), "ends": results}
    finally:
        link.terminate()
        sleeper.terminate()
        link.wait()
        sleeper.wait()


def start(a):
    """A transfer, with the link's counters of its first seconds: [time, entered, dropped by the queue]."""
    series, done = [], threading.Event()

    def watch():
        began = time.monotonic()
        while not done.wait(0.02) and time.monotonic() < began + 4:
            c = emulator()["down"]
            series.append([round(time.monotonic() - began, 3), c["entered"], c["overflowed"]])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        r = (rxwire if a["who"] == "rxwire" else tcp)(a)
    finally:
        done.set()
        watcher.join()
    return {**r, "start": series}


def main():
    a = json.loads(sys.argv[1])
    (user, system), all_before, began = emulator_cpu(), machine_cpu(), time.monotonic()
    if a["realtime"]:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    task = a.get("task", "flows")
    if task == "flows":
        r = rxwire(a) if a["who"] == "rxwire" else tcp(a)
    else:
        r = {"beside": beside, "rtts": rtts, "start": start}[task](a)
    link, (user_end, system_end) = emulator(), emulator_cpu()
    took, everything = time.monotonic() - began, machine_cpu() - all_before
    mine = r["client_cpu"] + r["server_cpu"] + user_end - user + system_end - system
    print(json.dumps({**r, "emulator_user": user_end - user, "emulator_system": system_end - system,
                      "others": max(0, everything - mine) / took, "link": link}))


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        print(f"failed: {e}", file=sys.stderr)
        sys.exit(1)
