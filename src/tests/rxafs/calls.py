# SPDX-License-Identifier: BSD-2-Clause
"""How many calls reach the server for what programs do. calls.py AUDIT_LOG METRICS_SOCKET PORT ROOT COLD_ROOT SOURCE DAEMON: the cold root
is that of a mount that has seen nothing, the source a new local directory, the daemon the process that serves the root."""

import collections
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

log, metrics, port, root, cold, source, daemon = sys.argv[1:]
failures = 0


def calls_served():
    """That the file service has answered since its start."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(metrics)
        s.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
        text = b''
        while piece := s.recv(65536):
            text += piece
    found = re.findall(r'rxwire_call_duration_seconds_count\{endpoint="[^"]*:' + port + r'",role="server"\} (\d+)', text.decode())
    return int(found[0])


class Calls:
    """Counts the calls of a block. Their names are from the server's audit log, where each object of a bulk call has a line."""

    def __init__(self, what, most, each=1, without=()):
        self.what, self.most, self.each, self.without = what, most, each, without

    def __enter__(self):
        self.settle()
        self.at, self.before = os.path.getsize(log), calls_served()

    def settle(self):
        """Until no more lines come: the log is written in the background."""
        size = -1
        while size != os.path.getsize(log):
            size = os.path.getsize(log)
            time.sleep(0.3)

    def __exit__(self, *error):
        global failures
        self.settle()
        with open(log, encoding='utf-8') as f:
            f.seek(self.at)
            seen = collections.Counter(json.loads(line).get('operation') for line in f)
        count = (calls_served() - self.before) / self.each
        bad = count > self.most or any(seen[name] for name in self.without)
        failures += bad
        print(f'{"FAIL: " if bad else ""}{self.what}: {count:.2f} calls, {self.most} may be {dict(seen)}')


def requests_read():
    """By the daemon, from the kernel, with what else it has read."""
    with open(f'/proc/{daemon}/io', encoding='ascii') as f:
        return int(re.search(r'^syscr: (\d+)', f.read(), re.M)[1])


def count_requests_of_writes():
    """The kernel sends a request for each write(2), and no questions about capabilities beside it."""
    global failures
    if tuple(map(int, re.findall(r'\d+', os.uname().release)[:2])) < (5, 11):
        return
    before = requests_read()
    with open(at('asked'), 'wb', buffering=0) as f:
        for _ in range(500):
            f.write(b'y' * 4096)
    count = requests_read() - before
    failures += count > 750
    print(f'{"FAIL: " if count > 750 else ""}500 writes of 4 KiB: {count} requests')


def write_file(path, data):
    with open(path, 'wb') as f:
        f.write(data)


def at(*names):
    return os.path.join(root, *names)


def main():
    os.mkdir(at('small'))
    with Calls('create, write and close of a small file', 2.05, 100):
        for i in range(100):
            write_file(at('small', f'f{i}'), b'x' * 3000)
    with Calls('stat, open, read and list again', 0):
        for i in range(100):
            os.stat(at('small', f'f{i}'))
            with open(at('small', f'f{i}'), 'rb') as f:
                f.read()
        os.listdir(at('small'))
        os.path.exists(at('small', 'missing'))
    with Calls('unlink', 1.05, 100):
        for i in range(100):
            os.unlink(at('small', f'f{i}'))
    with Calls('500 writes of 4 KiB to one file', 8):
        with open(at('writes'), 'wb', buffering=0) as f:
            for _ in range(500):
                f.write(b'y' * 4096)
    count_requests_of_writes()
    with Calls('16 MiB written', 18, without=('FetchStatus', 'InlineBulkStatus')):
        with open(at('large'), 'wb', buffering=0) as f:
            for _ in range(16):
                f.write(b'z' * 1048576)
    with Calls('16 MiB read', 66):
        with open(os.path.join(cold, 'large'), 'rb', buffering=0) as f:
            while f.read(1048576):
                pass
    os.mkdir(at('names'))
    for i in range(1000):
        write_file(at('names', f'name{i}'), b'')
    with Calls('ls -l of 1,000 names, cold', 30):
        subprocess.run(['ls', '-l', os.path.join(cold, 'names')], check=True, stdout=subprocess.DEVNULL)
    with Calls('ls -l of 1,000 names, again', 0):
        subprocess.run(['ls', '-l', os.path.join(cold, 'names')], check=True, stdout=subprocess.DEVNULL)
    for i in range(200):
        os.makedirs(os.path.join(source, f'd{i // 50}'), exist_ok=True)
        write_file(os.path.join(source, f'd{i // 50}', f'f{i}'), b'q' * 2000)
    subprocess.run(['tar', '-C', source, '-cf', source + '.tar', '.'], check=True)
    os.mkdir(at('untarred'))
    with Calls('untar, for each file', 3.1, 200):
        subprocess.run(['tar', '--no-same-owner', '-C', at('untarred'), '-xf', source + '.tar'], check=True)
    if shutil.which('git'):
        repository = at('git')
        os.environ.update(GIT_CONFIG_COUNT='1', GIT_CONFIG_KEY_0='safe.directory', GIT_CONFIG_VALUE_0='*', HOME=source)
        git = ['git', '-C', repository, '-c', 'user.name=n', '-c', 'user.email=e@example.org', '-c', 'gc.auto=0']
        subprocess.run(['git', 'init', '-q', repository], check=True)
        shutil.copytree(source, os.path.join(repository, 'files'))
        subprocess.run(git + ['add', '.'], check=True)
        subprocess.run(git + ['commit', '-q', '-m', 'all'], check=True)
        subprocess.run(git + ['status', '--porcelain'], check=True)
        time.sleep(1.1)     # the index must be older than now, or git looks at contents
        subprocess.run(git + ['status', '--porcelain'], check=True)
        with Calls('git status, warm', 3):
            subprocess.run(git + ['status', '--porcelain'], check=True)
    return 1 if failures else 0


sys.exit(main())
