# SPDX-License-Identifier: BSD-2-Clause
"""One transfer across an emulated link, from within `lab` (src/tests/link): one JSON object on standard output.

usage: longpath.py JSON, with what src/bench/long asks for:
  {"programs": folder of the build, "who": "rxwire" | "cubic" | "bbr" | ..., "flows": n, "seconds": s,
   "calls": 0 | n, "bytes": of each call, "ecn": bool, "options": [of rxperf]}
"""
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import Failed, cpu_seconds, json_object, reap, run_program  # noqa: E402

PORT = "7009"
FAR = os.environ["RXW_FAR"].split()
HOST = os.environ["RXW_FAR4"]
# Room for twice the largest product of rate and round trip with a full queue.
BUFFER = 1 << 27


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


class Server:
    """A server at the far end, which is ready once it has said so."""

    def __init__(self, command):
        self.path = os.path.join(os.environ["RXW_LINK"], "server")
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


def rxwire(a):
    rxperf = os.path.join(a["programs"], "src/tools/rxperf")
    server = Server([rxperf, "server", "--listen", HOST, "-p", PORT, "--json", *a["options"]])
    client = [rxperf, "client", "-c", "recv", "-s", HOST, "-p", PORT, "--json", *a["options"]]
    if a["calls"]:
        # The same connection makes them all.
        text, _, usage = run_program([*client, "-b", str(a["bytes"]), "-T", str(a["calls"])])
    else:
        text, _, usage = run_program([*client, "-b", str((1 << 31) - 4), "-D", str(a["seconds"]),
                                      "-t", str(a["flows"])])
    r = json_object(rxperf, text)
    s, server_cpu = server.stop()
    return {"bytes": r["bytes"], "seconds": r["seconds"], "fairness": r["fairness"],
            "client_cpu": cpu_seconds(usage), "server_cpu": server_cpu,
            "sent": s["transport"]["packets.sent.data"], "again": s["transport"]["retransmitted"]}


def tcp(a):
    program = os.path.join(a["programs"], "src/bench/long_tcp")
    # Each alone: what earlier connections learnt is not kept.
    sysctl("ipv4/tcp_no_metrics_save", 1)
    sysctl("ipv4/tcp_rmem", f"4096 131072 {BUFFER}")
    sysctl("ipv4/tcp_wmem", f"4096 65536 {BUFFER}")
    sysctl("ipv4/tcp_ecn", 1 if a["ecn"] else 2)
    server = Server([program, "server", HOST, PORT])
    if a["calls"]:
        words = ["calls", HOST, PORT, a["who"], str(a["bytes"]), str(a["calls"])]
    else:
        words = ["flows", HOST, PORT, a["who"], str(a["flows"]), str(a["seconds"])]
    text, _, usage = run_program([program, *words])
    r = json_object(program, text)
    time.sleep(0.3)  # the server's threads see that the connections are closed
    s, server_cpu = server.stop()
    figures = {"client_cpu": cpu_seconds(usage), "server_cpu": server_cpu, "sent": s["segments"],
               "again": s["retransmitted"]}
    if a["calls"]:
        return {"call_seconds": r["call_seconds"], "bytes": a["calls"] * a["bytes"],
                "seconds": sum(r["call_seconds"]), **figures}
    return {"bytes": sum(r["flow_bytes"]), "seconds": r["seconds"], "fairness": jain(r["flow_bytes"]),
            **figures}


def main():
    a = json.loads(sys.argv[1])
    user, system = emulator_cpu()
    r = rxwire(a) if a["who"] == "rxwire" else tcp(a)
    link, (user_end, system_end) = emulator(), emulator_cpu()
    print(json.dumps({**r, "emulator_user": user_end - user, "emulator_system": system_end - system,
                      "link": link}))


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        print(f"failed: {e}", file=sys.stderr)
        sys.exit(1)
