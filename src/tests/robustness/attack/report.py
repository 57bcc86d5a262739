#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a table of the cost of each attack for honest clients. usage: report.py GOODPUT [OPTION...] [NAME...]

Runs in a network namespace, where the attackers' addresses belong to other hosts, if the kernel permits; otherwise on
loopback, where they belong to this host. RESULTS=FILE: output of goodput from an earlier run.
"""
import json
import os
import subprocess
import sys

FOREIGN = 'ip link set lo up && ip route add local 10.0.0.0/8 dev lo && RXW_ATTACK_FROM=10.1.0.1 exec "$@"'


def command(program):
    for flags in ("-n", "-rn"):
        prefix = ["unshare", flags, "sh", "-c", FOREIGN, "sh"]
        try:
            if not subprocess.run(prefix + ["true"], capture_output=True, check=False).returncode:
                return prefix + program, "other hosts"
        except OSError:
            break
    return program, "this host"


def main():
    if "RESULTS" in os.environ:
        with open(os.environ["RESULTS"], encoding="utf-8") as f:
            text, whose = f.read(), "other hosts"
    else:
        run, whose = command(sys.argv[1:])
        text = subprocess.run(run, stdout=subprocess.PIPE, check=True, text=True).stdout
    print(f"Attackers' addresses: {whose}.\n")
    print("| attack | packets/s to the server, to the sink | calls/s during the attack, with the sink | share |"
          " held, MiB | connections | dropped by the kernel |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        r = json.loads(line)
        print(f"| {r['title']} | {r['rate']:,}, {r['rate_sink']:,} | {r['attacked']:,}, {r['sink']:,} |"
              f" {r['ratio']:.2f} | {r['held_mib']:.0f} | {r['connections']:,} | {r['kernel_drops']:,} |")


main()
