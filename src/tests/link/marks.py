# SPDX-License-Identifier: BSD-2-Clause
"""Run by lab at side a: one case of ECN, a transfer by rxperf from side b that lasts until marks were seen."""

import json
import os
import signal
import subprocess
import sys
import time

BYTES = 24 << 20
PATIENCE = 60


def await_text(path, text):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with open(path, encoding="utf-8") as f:
            found = f.read()
        if text in found:
            return found
        time.sleep(0.01)
    sys.exit(f"no {text!r} in {path}: {found}")


def emulator():
    """The counters of the emulator."""
    link = os.environ["RXW_LINK"]
    before = os.path.getsize(f"{link}/log")
    with open(f"{link}/commands", "w", encoding="ascii") as f:
        f.write("counters\n")
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with open(f"{link}/log", encoding="utf-8") as f:
            f.seek(before)
            line = f.read()
        if line.endswith("\n"):
            return json.loads(line.splitlines()[-1])
        time.sleep(0.01)
    return sys.exit("the emulator does not answer")


def transfer(address, rxperf, options):
    """The reports of client and server."""
    out = f"{os.environ['RXW_LINK']}/server"
    with open(out, "w", encoding="utf-8") as f:
        command = os.environ["RXW_FAR"].split() + [
            rxperf, "server", "--listen", address, "-p", "7009", "--verify", "--json", *options]
        server = subprocess.Popen(command, stdout=f, stderr=subprocess.STDOUT)
    try:
        await_text(out, "ready")
        done = subprocess.run([rxperf, "client", "-c", "recv", "-s", address, "-p", "7009", "-b", str(BYTES), "-T", "2",
                               "--verify", "--json", *options], capture_output=True, text=True, timeout=4 * PATIENCE,
                              check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE)
    with open(out, encoding="utf-8") as f:
        said = f.read()
    return json.loads(done.stdout), json.loads(said[said.index("{"):])


def main():
    case, address, rxperf = sys.argv[1], os.environ[sys.argv[2]], sys.argv[3]
    if ":" in address and not os.path.exists("/proc/net/if_inet6"):
        print("no IPv6")
        return
    client, server = transfer(address, rxperf, sys.argv[4:])
    link = emulator()
    ours, theirs, down = client["transport"], server["transport"], link["down"]
    sent, failures = theirs["marks_sent"], theirs["ecn_failures"]
    print(f"{case}: {client['bytes'] * 8 / client['seconds'] / 1e6:.1f} Mbit/s, marked {sent}, "
          f"CE {ours['marks_received']} of {down['marked']}, reactions {theirs['mark_events']}, failures {failures}, "
          f"dropped {down['dropped'] + down['overflowed']}, again {theirs['retransmitted']}")
    assert client["bytes"] == 2 * BYTES, client["bytes"]
    # The second call's request, if an ACK of the first call has shown that the server reports marks.
    assert ours["marks_sent"] <= (0 if case == "off" else 1), ours["marks_sent"]
    if case == "marked":
        assert sent > BYTES // 1444 and failures == 0
        assert 0 < ours["marks_received"] <= down["marked"] and theirs["mark_events"] > 0
        assert down["dropped"] == 0 and down["overflowed"] == 0 and theirs["loss_events"] == 0
    elif case == "off":
        assert sent == 0 and failures == 0 and ours["marks_received"] == 0 and down["marked"] == 0
    else:
        # The second call learns from the first one.
        assert failures == 1 and 0 < sent < 1000, (sent, failures)
        assert (link["ecn_lost"] > 0) == (case == "lost")
        assert (ours["marks_received"] > 0) == (case == "mangled")


main()
