# SPDX-License-Identifier: BSD-2-Clause
"""The harness: programs under test, the context of a test, the list of tests."""

import json
import os
import queue
import random
import struct
import subprocess
import tempfile
import threading
import time

import wire
from peer import LIMIT, End, Failed, Skipped, Socket, equal, want

TESTS = []                      # in the order of the files


def test(item, role='server', harm=False, slow=0, ours=False):
    """Registers a test. `role`: the end under test; `harm`: not for third-party servers; `slow`:
    minimum duration in seconds, so that it starts early; `ours`: not applicable to others."""
    def register(function):
        number = function.__name__.split('_')[2] if function.__name__.startswith('test_C_') else None
        if item is not None:
            equal(number, '%03d' % item, function.__name__)
        TESTS.append({'item': item, 'name': function.__name__, 'role': role, 'harm': harm,
                      'slow': slow, 'ours': ours, 'run': function,
                      'doc': (function.__doc__ or '').strip()})
        return function
    return register


def words(*values):
    return struct.pack('>%dI' % len(values), *[v & 0xffffffff for v in values])


# Requests of the rxperf service and of our endpoint.
def ask_send(size):
    return words(3, 0, 65536, 65536, size)


def ask_receive(size):
    return words(3, 1, 65536, 65536, size)


def ask_rpc(request, reply):
    return words(3, 3, 65536, 65536, request, reply) + wire.pattern(0, request)


def ask(command, *arguments):
    return words(3, command, 65536, 65536, *arguments)


ABORT_WITH, ABORT_BEHIND, WAIT, COUNT, NOTHING, ECHO = range(100, 106)
COOKIE = words(0x4711)


def known_differences(path):
    """Lines "NAME  WHY"."""
    known = {}
    if path:
        with open(path) as f:
            for line in f:
                if line.strip() and not line.startswith('#'):
                    name, why = line.split(None, 1)
                    known[name] = why.strip()
    return known


class Program:
    """A program under test, with lines to and from it."""

    def __init__(self, arguments, listens=True):
        self.listens = listens  # ends at the end of its input
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors)
        self.lines = queue.Queue()
        self.kept = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(line.decode(errors='replace').strip())
        self.lines.put(None)

    def tell(self, line):
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()

    def line(self, begins, limit=None):
        """The rest of the next line with this prefix."""
        for i, kept in enumerate(self.kept):
            if kept.startswith(begins):
                return self.kept.pop(i)[len(begins):].strip()
        while True:
            try:
                line = self.lines.get(timeout=limit or 2 * LIMIT)
            except queue.Empty:
                raise Failed('the program says nothing ("%s")' % begins) from None
            if line is None:
                raise Failed('the program ended: %s' % self.complaint())
            if line.startswith(begins):
                return line[len(begins):].strip()
            self.kept.append(line)

    def complaint(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors='replace')[-2000:].strip() or 'without a word'

    def alive(self):
        return self.process.poll() is None

    def end(self):
        """Its standard error, which holds sanitizer reports."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        if not self.listens:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.seek(0)
        text = self.errors.read().decode(errors='replace')
        self.errors.close()
        return text


class Server:
    """A server: its address, and the program if we started it."""

    def __init__(self, address, program=None):
        self.address, self.program = address, program


class Ours:
    """Programs on librxwire."""
    name = 'rxwire'

    def __init__(self, build):
        self.build = build
        self.endpoint = os.path.join(build, 'src/tests/system/conformance/endpoint')

    def start_server(self, **options):
        p = Program([self.endpoint, 'server'] + ['%s=%s' % o for o in options.items()])
        return Server(('127.0.0.1', int(p.line('port', 60))), p)

    def start_stubs(self, port):
        return Program([os.path.join(self.build, 'src/tests/system/interop/stubs_ours'), 'server',
                        str(port), 'server0'], False)

    def start_client(self, port, options):
        return OurClient(self.endpoint, port, options)


class OurClient:
    def __init__(self, endpoint, port, options):
        self.program = Program([endpoint, 'client', str(port)] +
                               ['%s=%s' % o for o in options.items()])
        self.program.line('ready', 60)
        self.number = 0

    def call(self, *operations):
        """Begins a call. Returns its name."""
        self.number += 1
        self.program.tell('call c%d %s' % (self.number, ' '.join(operations)))
        return 'c%d' % self.number

    def rpc(self, request=4, reply=4):
        return self.call('rpc:%d:%d' % (request, reply), 'sent', 'rest', 'end:0')

    def send(self, size):
        return self.call('command:0:%d' % size, 'write:%d' % size, 'sent', 'rest', 'end:0')

    def result(self, name, limit=None):
        """Code and received bytes of a call."""
        parts = self.program.line(name + ' ', limit).split()
        return int(parts[0]), int(parts[1])

    def end(self):
        return self.program.end()


class OpenAFS:
    """The programs of src/tests/system/interop on OpenAFS's library."""
    name = 'OpenAFS'

    def __init__(self, programs, first_port):
        self.programs = programs
        self.ports = iter(range(first_port, first_port + 200))

    def start_server(self, **options):
        if options:
            raise Skipped('OpenAFS\'s library has no such settings')
        port = next(self.ports)
        p = Program([os.path.join(self.programs, 'afsrx_server'), '-p', str(port), '--procs', '100',
                     '--udp-buffer', '4M'], False)
        want(wait_for_port(port, p), 'the server has not opened port %d' % port)
        # The port opens before the service is ready.
        sock = Socket()
        for _ in range(200):
            c = End(sock, ('127.0.0.1', port), 147)
            c.data(1, 1, ask_rpc(4, 4))
            sock.read(0.1)
            if any(q.type == wire.DATA for q in sock.drain()):
                break
        sock.close()
        return Server(('127.0.0.1', port), p)

    def start_stubs(self, port):
        return Program([os.path.join(self.programs, 'stubs_afs'), 'server', str(port), 'server0'],
                       False)

    def start_client(self, port, options):
        if options:
            raise Skipped('OpenAFS\'s client has no such settings')
        return AfsClient(os.path.join(self.programs, 'afsrx_client'), port)


class AfsClient:
    def __init__(self, path, port):
        self.path, self.port = path, port
        self.runs = {}

    def begin(self, *arguments):
        name = 'c%d' % (len(self.runs) + 1)
        self.runs[name] = Program([self.path, '-p', str(self.port), '--deadline', '20'] +
                                  list(arguments), False)
        return name

    def rpc(self, request=4, reply=4):
        return self.begin('-c', 'rpc', '-S', str(request), '-R', str(reply))

    def send(self, size):
        return self.begin('-c', 'send', '-b', str(size))

    def call(self, *operations):
        raise Skipped('OpenAFS\'s client cannot be told so')

    def result(self, name, limit=None):
        answer = json.loads('{' + self.runs[name].line('{', limit or 2 * LIMIT))
        return answer['error'], answer['bytes_received']

    def end(self):
        return ''.join(p.end() for p in self.runs.values())


def wait_for_port(port, program):
    """Waits until this UDP port is in use, since the program does not report it. False if it
    ended."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until and program.alive():
        with open('/proc/net/udp') as f:
            if any(line.split()[1].endswith(':%04X' % port) for line in f.readlines()[1:]):
                return True
        time.sleep(0.02)
    return False


def free_port():
    s = Socket()
    port = s.port
    s.close()
    return port


class Context:
    """The context of a test: sockets, connections, programs. All end with it."""

    def __init__(self, under, server, service, foreign):
        self.under, self.shared, self.service, self.foreign = under, server, service, foreign
        self.sockets, self.programs = [], []
        # Scripted clients have an address that no other test uses, nor a listener. Otherwise a server that still
        # repeats its reply to a client that is gone could reach the next socket with the same port.
        self.home = '127.%d.%d.%d' % tuple(random.SystemRandom().randint(1, 254) for _ in range(3))

    @property
    def ours(self):
        return isinstance(self.under, Ours)

    def need_ours(self, why='only our endpoint can be told to'):
        if not self.ours:
            raise Skipped(why)

    def need_perf(self):
        if self.service != 147:
            raise Skipped('needs the rxperf service (147)')

    # -- a server under test --

    def own(self, **options):
        """A server for this test alone, with these options if it is ours."""
        return self.server(**(options or {'listeners': 1} if self.ours else {}))

    def server(self, **options):
        """A server for this test alone."""
        if self.foreign:
            raise Skipped('needs a server of its own')
        s = self.under.start_server(**options)
        self.programs.append(s.program)
        return s

    def stubs(self):
        """A server of interop.xg, service 40, with compiled stubs."""
        if self.foreign:
            raise Skipped('needs a server of its own')
        for _ in range(5):
            port = free_port()      # if the port was taken meanwhile, try another
            p = self.under.start_stubs(port)
            self.programs.append(p)
            if wait_for_port(port, p):
                break
        else:
            raise Failed('no port for a server')
        server = Server(('127.0.0.1', port), p)
        # The port opens before the service is ready, and packets in between may be dropped.
        probe = self.conn(server, service=40)
        for call in range(1, 1000):
            probe.data(call, 1, words(1))
            try:
                answer = probe.next(call=call, limit=1, match=lambda q: q.type in (wire.DATA, wire.ABORT))
            except Failed:
                continue
            if answer.code != -2:
                return server
            time.sleep(0.01)
        raise Failed('the service is not offered')

    def socket(self, **where):
        host = self.shared.address[0] if self.shared else '127.0.0.1'
        if host.startswith('127.'):
            where.setdefault('bind', self.home)
        self.sockets.append(Socket(host, **where))
        return self.sockets[-1]

    def conn(self, server=None, sock=None, service=None, **fields):
        """The client of a connection to a server under test."""
        server = server or self.shared
        c = End(sock or self.socket(), server.address, service or self.service, True, **fields)
        if self.service != 147:
            c.fence = lambda call=1, first=1: self.fence_by_call(c)
        return c

    def fence_by_call(self, c):
        """As End.fence(), for calls that end with an ABORT and so answer no PING: makes one more
        call."""
        self.fences = getattr(self, 'fences', 1000) + 1
        self.served(c, self.fences, 3)
        before = [p for p in c.sock.waiting if c.mine(p)]
        c.sock.waiting = [p for p in c.sock.waiting if not c.mine(p)]
        return before

    def request(self):
        """A small request that any server of the service answers."""
        return ask_rpc(4, 4) if self.service == 147 else b''

    def served(self, c, call=1, channel=0, **fields):
        """One small call that must be answered. Returns the last packet of the reply."""
        c.data(call, 1, self.request(), channel=channel, **fields)
        return self.answer(c, call, channel)

    def proven(self, server=None, **fields):
        """A connection with a validated address: call 1 is served and acknowledged."""
        c = self.conn(server, **fields)
        self.prove(c, self.served(c))
        return c

    def prove(self, c, p):
        """Acknowledges the reply `p` to call 1, and answers the PING that this may draw."""
        c.ack(1, 2, wire.REQUESTED, serial=p.serial)
        for q in c.fence(first=2):
            if q.reason == wire.PING:
                c.ack(1, 2, wire.PING_RESPONSE, serial=q.serial)

    def answer(self, c, call=1, channel=0):
        def ends(p):
            if self.service == 147:
                return p.call == call and p.type == wire.DATA
            return p.call == call and (p.type == wire.ABORT or
                                       p.type == wire.DATA and p.flags & wire.LAST)

        p = self.outlive_busy(c, channel, lambda: c.data(call, 1, self.request(), channel=channel), ends)
        self.whole(p)
        return p

    def whole(self, p):
        """Whether the packet holds the complete reply to a small call of rxperf."""
        if self.service == 147:
            equal(p.body[-4:], COOKIE, 'the reply\'s end')
            want(p.flags & wire.LAST, 'the reply has no LAST_PACKET')

    def outlive_busy(self, c, channel, again, match):
        """The packet that `match` accepts. The request is sent again for every BUSY (C-016).

        The handler of the previous call may still be running. Our server must not send BUSY then.
        OpenAFS's does, with the number after that call's, whichever call was refused."""
        while True:
            p = c.next(channel=channel, match=lambda q: q.type == wire.BUSY or match(q))
            if p.type != wire.BUSY:
                return p
            want(not self.ours, 'BUSY, with call %d' % p.call)
            time.sleep(0.02)
            again()

    # -- a client under test --

    def listen(self):
        """A port of the scripted server."""
        return Listener(self.socket(bind='127.0.0.1'))

    def client(self, listener, **options):
        c = self.under.start_client(listener.sock.port, options)
        self.programs.append(c)
        return c

    def close(self):
        """Ends everything. Returns error output of the programs, and malformed packets."""
        problems = []
        for p in self.programs:
            text = p.end()
            if 'ERROR: ' in text or 'runtime error' in text or 'WARNING: ThreadSanitizer' in text:
                problems.append(text[-3000:])
        for s in self.sockets:
            s.close()
        return problems


class Listener:
    """The scripted server's port."""

    def __init__(self, sock):
        self.sock = sock

    def accept(self, call=1, limit=None):
        """Waits for the first DATA of a new connection. Returns the server's end, and that
        packet."""
        p = self.sock.next(lambda q: q.type == wire.DATA and q.seq == 1 and q.call == call, limit,
                           'the first packet of a call')
        return End(self.sock, p.address, p.service, False, p.epoch, p.cid, p.security), p

    def request(self, call=1, limit=None):
        """As accept(), for a small call with a complete request."""
        end, first = self.accept(call, limit)
        want(first.flags & wire.LAST, 'the request is more than one packet')
        return end, first


def reply(end, first, body=None):
    """The one-packet reply to a small rxperf call (4 bytes requested)."""
    return end.data(first.call, 1, (wire.pattern(0, 4) + COOKIE) if body is None else body,
                    channel=first.channel)
