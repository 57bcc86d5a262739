# SPDX-License-Identifier: BSD-2-Clause
"""Plays systemd for rxafs: service.py SOCKET WORK COMMAND... Prints the states that the daemon sends."""
import os
import signal
import socket
import subprocess
import sys
import time

path, work, *command = sys.argv[1:]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(path)
manager.settimeout(60)
daemon = subprocess.Popen(command, env=dict(os.environ, NOTIFY_SOCKET=path), stdin=subprocess.DEVNULL)


def state():
    """The first word of the next state."""
    try:
        text = manager.recv(4096).decode()
    except TimeoutError:
        text = "nothing"
    print(text.split("\n")[0], flush=True)


def metrics():
    """The figures of the daemon."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(work + "/metrics")
    client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    text = b""
    while part := client.recv(65536):
        text += part
    return text.decode()


state()
print("cells:", sorted(os.listdir(work + "/service")), flush=True)
with open(work + "/conf/CellServDB", "a") as f:
    f.write(">added.test\n127.0.0.1 #localhost\n")
daemon.send_signal(signal.SIGHUP)
state()
state()
print("cells:", sorted(os.listdir(work + "/service")), flush=True)
os.listdir(work + "/service/test.example/work")
text = metrics()
for name in "rxafs_status_hits_total", "rxafs_objects", "rxafs_server_up", "rxwire_", "process_cpu_seconds_total":
    print(name, "\n" + name in text, flush=True)
daemon.send_signal(signal.SIGTERM)
before = time.monotonic()
state()
print("status", daemon.wait(60), flush=True)
print("quick", time.monotonic() - before < 30, flush=True)
