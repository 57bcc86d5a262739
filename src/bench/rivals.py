# SPDX-License-Identifier: BSD-2-Clause
"""Competitors of the ladder: OpenAFS's library, the kernel alone, TCP, nginx, our fileserver."""
import os
import shutil

import rungs
from contest import Contestant, Missing
from measure import Failed, free_port, free_tcp_port, json_object
from spending import alone, both_ends, per_gigabyte


OPENAFS_MOST = 100  # streams: with more it is too slow
IPERF3_MOST = 128   # its maximum number of streams
CURL_MOST = 300     # its maximum number of concurrent transfers


def installed(program, package):
    """The path of a system program. /usr/sbin is not in users' PATH."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if not path:
        raise Missing(f"{program} is not installed (Debian package: {package})")
    return path


class Raw(Contestant):
    """src/bench/raw: bursts both ways, acknowledged at half the window."""

    def __init__(self, place, name, x=1, threads="each", window=255, options=(), part=1.0):
        super().__init__(place, name)
        self.x = x
        self.bytes = int(place.bytes * part)
        self.options = ["--streams", str(x), "--threads", threads, "--window", str(window),
                        *options]

    def sample(self, count=False):
        raw = self.place.program("src/bench/raw")
        text, _, cost = alone([raw, "--bytes", str(self.bytes), "--size", "1444", "--mode",
                               "gso+gro", *self.options], count)
        r = json_object(raw, text)
        rates = per_gigabyte(r["bytes"], r["seconds"], cost)
        data = r["bytes"] / r["size"]
        return rates if count else {**rates, "acks_per_data": r["receiver"]["acks"] / data}


class OpenAfs(Contestant):
    """rxperf's commands with OpenAFS's library at both ends, without jumbograms."""

    def __init__(self, place, name, x, command="recv"):
        super().__init__(place, name)
        self.x = x
        self.command = command
        self.part = 1 / 16
        if x > 16:  # it becomes very slow
            self.part, self.every, self.counted = 1 / 512, 4, False

    def sample(self, count=False):
        folder = self.place.openafs_programs()
        client = os.path.join(folder, "afsrx_client")
        port = free_port()
        each = max(int(self.place.bytes * self.part) // self.x, 1 << 16)
        text, _, cost = both_ends(
            [os.path.join(folder, "afsrx_server"), "-p", str(port), "--no-jumbo"], [port],
            [client, "-c", self.command, "-s", "127.0.0.1", "-p", str(port), "-b", str(each), "-t",
             str(self.x), "--no-jumbo"], self.place.log("afsrx"), count)
        r = json_object(client, text)
        if r["bytes"] != each * self.x or r.get("error"):
            raise Failed(f"afsrx_client: {r['bytes']} of {each * self.x} bytes, error "
                         f"{r.get('error')}")
        return per_gigabyte(r["bytes"], r["seconds"], cost)


class Iperf3(Contestant):
    """TCP with default settings, from the server to the client, with the data in memory."""

    def __init__(self, place, name, x):
        super().__init__(place, name)
        self.x = x

    def sample(self, count=False):
        iperf3 = installed("iperf3", "iperf3")
        port = free_tcp_port()
        text, _, cost = both_ends(
            [iperf3, "-s", "-p", str(port)], [port],
            [iperf3, "-c", "127.0.0.1", "-p", str(port), "-R", "-J", "-P", str(self.x), "-n",
             str(self.place.bytes)], self.place.log("iperf3"), count, kind="tcp")
        r = json_object(iperf3, text)
        try:
            total = r["end"]["sum_received"]
        except KeyError:
            raise Failed(f"iperf3: {r.get('error', 'no sums in its report')}") from None
        return per_gigabyte(total["bytes"], total["seconds"], cost)


NGINX = """daemon off;
worker_processes auto;
{user}
pid {work}/nginx.pid;
error_log {work}/nginx-error.log;
events {{ worker_connections 1024; }}
http {{
	access_log off;
	sendfile on;
	tcp_nopush on;
	client_body_temp_path {work}/nginx-body;
	proxy_temp_path {work}/nginx-proxy;
	fastcgi_temp_path {work}/nginx-fastcgi;
	uwsgi_temp_path {work}/nginx-uwsgi;
	scgi_temp_path {work}/nginx-scgi;
	server {{
		listen 127.0.0.1:{port};
		root {root};
	}}
}}
"""


class Nginx(Contestant):
    """sendfile over TCP, to one curl with that many connections, each fetching a part of the
    file."""

    def __init__(self, place, name, x):
        super().__init__(place, name)
        self.x = x

    def sample(self, count=False):
        nginx, curl = installed("nginx", "nginx-light"), installed("curl", "curl")
        place, port = self.place, free_tcp_port()
        path = os.path.join(place.work, "nginx.conf")
        with open(path, "w") as f:
            # The work folder is private to this user; root's workers would run as nobody.
            f.write(NGINX.format(work=place.work, port=port, root=place.exported_file(),
                                 user="user root;" if os.geteuid() == 0 else ""))
        each = place.bytes // self.x
        text, _, cost = both_ends(
            [nginx, "-c", path, "-e", os.path.join(place.work, "nginx-error.log")], [port],
            [curl, "-s", "-f", "-Z", "--parallel-immediate", "--parallel-max", str(self.x), "-o",
             "/dev/null", "-r", f"0-{each - 1}", "-w", "%{size_download} %{time_total}\n",
             f"http://127.0.0.1:{port}/large?[1-{self.x}]"], place.log("nginx"), count, kind="tcp")
        done = [line.split() for line in text.splitlines()]
        moved = sum(int(words[0]) for words in done)
        if moved != each * self.x:
            raise Failed(f"curl: {moved} bytes of {each * self.x}")
        return per_gigabyte(moved, max(float(words[1]) for words in done), cost)


class AfscpBench(Contestant):
    """rxfsd and `afscp bench`: a file in the page cache, each client an endpoint of its own."""

    def __init__(self, place, name, x, seconds):
        super().__init__(place, name)
        self.x = x
        self.seconds = seconds

    def sample(self, count=False):
        place = self.place
        rxfsd, afscp = place.program("src/fileserver/rxfsd"), place.program("src/afscp/afscp")
        fs, vl, vol = free_port(), free_port(), free_port()
        state = os.path.join(place.work, "state")
        os.makedirs(state, exist_ok=True)
        resident = []
        text, _, cost = both_ends(
            [rxfsd, "--export", place.exported_file(), "--volume", "bench", "--port", str(fs),
             "--vl-port", str(vl), "--vol-port", str(vol), "--state", state], [fs, vl],
            [afscp, "-s", f"127.0.0.1:{vl}:{fs}", "bench", "bench:/large", "--clients", str(self.x),
             "--seconds", str(self.seconds), "--json"], place.log("rxfsd"), count,
            look=lambda server: resident.append(server.status_kib("VmHWM") / 1024))
        r = json_object(afscp, text)
        s = per_gigabyte(r["bytes"], r["seconds"], cost)
        return s if count else {**s, "MBps": r["MBps"], "resident_MiB": resident[0]}


def raws(place, clients):
    made = [Raw(place, "raw, ACKs not thinned", options=("--ack", "2", "--no-merge"), part=1 / 8)]
    for x in clients:
        part = rungs.share(x)
        made.append(Raw(place, "raw, a thread each", x, part=part))
        if x > 1:
            made.append(Raw(place, "raw, one thread", x, "one", part=part))
    if rungs.MANY in clients:
        made += [Raw(place, f"raw, window 32, {text}", rungs.MANY, threads, 32)
                 for threads, text in (("each", "a thread each"), ("one", "one thread"))]
    return made


def contestants(place, clients, seconds):
    made = raws(place, clients)
    for x in clients:
        if x <= OPENAFS_MOST:
            made += [OpenAfs(place, "OpenAFS library", x),
                     OpenAfs(place, "OpenAFS library, send", x, "send")]
        if x <= IPERF3_MOST:
            made.append(Iperf3(place, "TCP, iperf3", x))
        if x <= CURL_MOST:
            made.append(Nginx(place, "nginx sendfile", x))
        made.append(AfscpBench(place, "afscp bench", x, seconds))
    return made
