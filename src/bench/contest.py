# SPDX-License-Identifier: BSD-2-Clause
"""The measurements: each contestant is one way to move the same bytes, and yields samples."""
import os
import re
import subprocess

from measure import Failed, Server, free_port, run_client

PLAIN = ["--io", "msg", "--gso", "off", "--gro", "off", "--listeners", "1",
         "--window", "32"]


# For `rxperf server` only.
SERVER_OPTIONS = ("--short",)


class Missing(Exception):
    """A program that this contestant needs is missing."""


class Place:
    """Paths of the programs and files of this run."""

    def __init__(self, source, build, work, total):
        self.source = source
        self.build = build
        self.work = work
        self.bytes = total
        self.openafs = None
        self.export = None
        self.help = {}

    def program(self, *candidates):
        for c in candidates:
            path = os.path.join(self.build, c)
            if os.access(path, os.X_OK):
                return path
        raise Missing(f"{os.path.basename(candidates[0])} is not built")

    def tool(self, name):
        """A script of src/bench that measures on its own."""
        path = os.path.join(self.source, "src/bench", name)
        if not os.access(path, os.X_OK):
            raise Missing(f"{name} is not there")
        return path

    def offers(self, program, option):
        """Whether the help text of our program lists this option."""
        if program not in self.help:
            r = subprocess.run([self.program(program), "client", "--help"], text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
            self.help[program] = set(re.findall(r"--[a-z][a-z0-9-]*", r.stdout)) | \
                set(SERVER_OPTIONS)
        return option in self.help[program]

    def log(self, name):
        return os.path.join(self.work, name.replace(" ", "-").replace("/", "-") + ".log")

    def openafs_programs(self):
        """The folder with afsrx_client and afsrx_server, built by the interoperation tests."""
        if self.openafs is None:
            run = os.path.join(self.source, "src/tests/system/interop/run")
            self.openafs = ""
            if os.path.exists(run):
                r = subprocess.run(["bash", run, "--programs", self.build], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
                words = r.stdout.split()
                self.openafs = next((w for w in reversed(words) if os.path.isdir(w)), "")
                for w in words:
                    if w.endswith("afsrx_client"):
                        self.openafs = os.path.dirname(w)
        if not os.access(os.path.join(self.openafs, "afsrx_client"), os.X_OK):
            raise Missing("the programs on OpenAFS's library could not be built")
        return self.openafs

    def exported_file(self):
        """A folder with one file of the transfer's size, read once so that it is cached."""
        if self.export is None:
            folder = os.path.join(self.work, "export")
            os.mkdir(folder, 0o755)
            path = os.path.join(folder, "large")
            block = os.urandom(1 << 20)
            with open(path, "wb") as f:
                left = self.bytes
                while left:
                    left -= f.write(block[:min(left, len(block))])
            os.chmod(path, 0o644)
            with open(path, "rb") as f:
                while f.read(1 << 22):
                    pass
            self.export = folder
        return self.export


class Contestant:
    """
    `name` is its name in the table; sample() runs it once. A long one may skip rounds: it runs in
    each `every`th, from the first. `counted`: its system calls are counted.
    """

    every = 1
    counted = True

    def __init__(self, place, name):
        self.place = place
        self.name = name

    def sample(self):
        raise NotImplementedError


def transfer(bytes_moved, seconds, cpu):
    return {"MBps": bytes_moved / seconds / 1e6, "cpu_s_per_GB": cpu / (bytes_moved / 1e9)}


class Raw(Contestant):
    def __init__(self, place, name, *options):
        super().__init__(place, name)
        self.options = options

    def sample(self):
        command = [self.place.program("src/bench/raw"), "--bytes", str(self.place.bytes),
                   "--size", "1444", *self.options]
        r, _, _ = run_client(command)
        return {"MBps": r["GBps"] * 1e3, "cpu_s_per_GB": r["cpu_s_per_GB"]}


class Rxperf(Contestant):
    """rxperf client -c recv from our own server, both with the same options."""

    def __init__(self, place, name, calls=1, options=()):
        super().__init__(place, name)
        self.calls = calls
        self.options = list(options)

    def sample(self):
        rxperf = self.place.program("src/rxperf/rxperf")
        port = free_port()
        each = self.place.bytes // self.calls
        server = Server([rxperf, "server", "-p", str(port), *self.options], [port],
                        self.place.log("rxperf-server"))
        try:
            r, _, cpu = run_client([rxperf, "client", "-c", "recv", "-s", "127.0.0.1", "-p",
                                    str(port), "-b", str(each), "-t", str(self.calls), "--json",
                                    *self.options])
            cpu += server.stop()
        finally:
            server.kill()
        if r["bytes"] != each * self.calls:
            raise Failed(f"rxperf: {r['bytes']} bytes of {each * self.calls}")
        return transfer(r["bytes"], r["seconds"], cpu)


class OpenAfs(Contestant):
    """The same service and command with OpenAFS's library at both ends."""

    def sample(self):
        folder = self.place.openafs_programs()
        port = free_port()
        server = Server([os.path.join(folder, "afsrx_server"), "-p", str(port)], [port],
                        self.place.log("afsrx-server"))
        try:
            r, _, cpu = run_client([os.path.join(folder, "afsrx_client"), "-c", "recv", "-s",
                                    "127.0.0.1", "-p", str(port), "-b", str(self.place.bytes)])
            cpu += server.stop()
        finally:
            server.kill()
        if r["bytes"] != self.place.bytes or r.get("error"):
            raise Failed(f"afsrx_client: {r['bytes']} bytes, error {r.get('error')}")
        return transfer(r["bytes"], r["seconds"], cpu)


class Fileserver(Contestant):
    """A contestant in which rxfsd serves one large file."""

    def serve(self):
        place = self.place
        rxfsd = place.program("src/fileserver/rxfsd")
        fs_port, vl_port = free_port(), free_port()
        state = os.path.join(place.work, "state")
        os.makedirs(state, exist_ok=True)
        server = Server([rxfsd, "--export", place.exported_file(), "--volume", "bench", "--port",
                         str(fs_port), "--vl-port", str(vl_port), "--state", state],
                        [fs_port, vl_port], place.log("rxfsd"))
        return server, f"127.0.0.1:{vl_port}:{fs_port}"


class AfscpGet(Fileserver):
    def sample(self):
        afscp = self.place.program("src/afscp/afscp")
        server, where = self.serve()
        try:
            # Its own clock, as with rxperf: neither includes the start of a process.
            r, _, cpu = run_client([afscp, "-s", where, "get", "--json", "bench:/large",
                                    "/dev/null"])
            cpu += server.stop()
        finally:
            server.kill()
        if r.get("bytes", 0) < self.place.bytes:
            raise RuntimeError(f"afscp get moved {r.get('bytes')} of {self.place.bytes} bytes")
        return transfer(r["bytes"], r["seconds"], cpu)


class AfscpBench(Fileserver):
    def __init__(self, place, name, clients, seconds):
        super().__init__(place, name)
        self.clients = clients
        self.seconds = seconds

    def sample(self):
        afscp = self.place.program("src/afscp/afscp")
        server, where = self.serve()
        try:
            r, _, cpu = run_client([afscp, "-s", where, "bench", "bench:/large", "--clients",
                                    str(self.clients), "--seconds", str(self.seconds), "--json"])
            resident = server.status_kib("VmHWM")
            cpu += server.stop()
        finally:
            server.kill()
        s = {"MBps": r["MBps"], "resident_MiB": resident / 1024}
        if r.get("bytes"):
            s["cpu_s_per_GB"] = cpu / (r["bytes"] / 1e9)
        return s


class Twins:
    """A program that alternates between two variants: each run yields values for both."""

    def __init__(self, place, program):
        self.place = place
        self.name = program
        self.left = {}

    def figures(self, key):
        if key not in self.left:
            r, _, _ = run_client([self.place.program(self.name)])
            common = {k: v for k, v in r.items() if not isinstance(v, dict)}
            self.left = {k: {**common, **v} for k, v in r.items() if isinstance(v, dict)}
        if key not in self.left:
            raise Missing(f"{key} was not there when this was built")
        return self.left.pop(key)


class Twin(Contestant):
    """One of the two. Its samples are times per call or per reply."""

    def __init__(self, twins, name, key):
        super().__init__(twins.place, name)
        self.twins = twins
        self.key = key

    def sample(self):
        return self.twins.figures(self.key)


def small_things(place):
    """Times instead of rates: the cost of stubs and coders."""
    small, xdr = Twins(place, "src/bench/small"), Twins(place, "src/bench/xdr")
    return [
        Twin(small, "small call by hand", "by_hand"),
        Twin(small, "small call by stubs", "stubs"),
        Twin(xdr, "XDR compiled", "compiled"),
        Twin(xdr, "XDR libtirpc", "libtirpc"),
    ]


def contestants(place, seconds):
    """All of them, in the order of a round."""
    return [
        Raw(place, "raw gso+gro 255", "--mode", "gso+gro", "--window", "255"),
        Rxperf(place, "rxperf recv"),
        OpenAfs(place, "OpenAFS library"),
        Rxperf(place, "rxperf recv plain", options=PLAIN),
        AfscpGet(place, "afscp get"),
        Rxperf(place, "rxperf recv 32 calls", calls=32),
        AfscpBench(place, "afscp bench 32", 32, seconds),
        AfscpBench(place, "afscp bench 100", 100, seconds),
        Raw(place, "raw mmsg 255", "--mode", "mmsg", "--window", "255"),
        Raw(place, "raw gso+mmsg 255", "--mode", "gso+mmsg", "--window", "255"),
        Raw(place, "raw gso+gro 32", "--mode", "gso+gro", "--window", "32"),
        Raw(place, "raw mmsg 32", "--mode", "mmsg", "--window", "32"),
        Raw(place, "raw msg 32", "--mode", "msg", "--window", "32"),
        *small_things(place),
    ]


def switches(place):
    """One option changed at a time, to show the effect of each on this machine."""
    steps = [("defaults", [])]
    for switch, values in (("gso", ["off"]), ("gro", ["off"]),
                           ("listeners", ["1", "2"]),
                           ("window", ["32", "64", "128"]),
                           ("io", ["msg"])):
        steps += [(f"--{switch} {v}", [f"--{switch}", v]) for v in values]
    steps.append(("plain", PLAIN))
    return [Rxperf(place, f"{name}, {calls}", calls=calls, options=options)
            for name, options in steps for calls in (1, 16)]
