# SPDX-License-Identifier: BSD-2-Clause
"""Many logins of one user. logins.py MOUNT DAEMON RXAFSCTL CACHE-WITH-INITIAL-TICKET CACHE-WITH-SERVICE-TICKETS [SUBORDINATE-ID]"""

import ctypes
import os
import subprocess
import sys
import threading
import time

TEXT, DATA = 8000, 8192
SIZE = TEXT + 4 + DATA
REQUEST = 3 << 30 | SIZE << 16 | ord('A') << 8 | 0x46
MANY = 1234
SOON = 30  # seconds of what waits for nobody; a login at a silent server takes longer
libc = ctypes.CDLL(None, use_errno=True)


def ask(fd, words, data=b''):
    text = b'\0'.join(words) + b'\0\0'
    raw = text.ljust(TEXT, b'\0') + len(data).to_bytes(4, sys.byteorder) + data.ljust(DATA, b'\0')
    buffer = ctypes.create_string_buffer(raw, SIZE)
    if libc.ioctl(fd, ctypes.c_ulong(REQUEST), buffer) < 0:
        return 'errno %d' % ctypes.get_errno()
    return buffer.raw[:TEXT].split(b'\0')[0].decode()


def log_in(at, cache, cell):
    fd = os.open(at, os.O_RDONLY)
    for offset in range(0, len(cache), DATA):
        ask(fd, [b'tickets', b'%d' % offset], cache[offset:offset + DATA])
    answer = ask(fd, [b'login', cell, b'any', b'cache', b' '])
    os.close(fd)
    return answer


def child(user, run):
    """run() in a process of that user, who has a pipe to wait for its orders."""
    process = os.fork()
    if not process:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        try:
            run()
        except BaseException as error:  # pylint: disable=broad-except
            print('FAIL:', error, flush=True)
        os._exit(0)
    return process


def flood(at, cache, cell, to, count):
    """count logins at a time; a line for each answer."""
    lock = threading.Lock()

    def one():
        begun = time.monotonic()
        answer = log_in(at, cache, cell)
        with lock:
            os.write(to, ('%.1f %s\n' % (time.monotonic() - begun, answer)).encode())

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


failures = 0


def check(good, *text):
    global failures
    if not good:
        failures += 1
        print('FAIL:', *text, flush=True)


def goes_on(at, rxafsctl, when):
    """root's own requests, and a look-up of a new name of a cell."""
    for name, command in (('tokens', [rxafsctl, '--mount', at, 'tokens']), ('logout', [rxafsctl, '--mount', at, 'logout']),
                          ('ls', ['ls', at + '/' + when + '.invalid'])):
        begun = time.monotonic()
        try:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SOON + 10, check=False)
        except subprocess.TimeoutExpired:
            pass
        check(time.monotonic() - begun < SOON, '%s: %s takes %.1f s' % (when, name, time.monotonic() - begun))


def resident(daemon):
    with open('/proc/%s/status' % daemon) as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS')) // 1024


def subordinates(at, service, first):
    """Logins at the silent server by many ids of one user: together they have the places of one."""
    out, to = os.pipe()
    processes = [child(first + i, lambda: flood(at, service, b'silent.example', to, 1)) for i in range(40)]
    os.close(to)
    with os.fdopen(out) as f:
        # But for those that have places, all are refused at once.
        answers = [f.readline() for _ in range(30)]
        check(all('this user has too many logins' in a for a in answers), 'subordinate ids', answers[:3])
        out, to = os.pipe()
        other = child(MANY + 1, lambda: flood(at, service, b' ', to, 1))
        os.close(to)
        with os.fdopen(out) as g:
            check('"tokens"' in g.read(), 'a login of another user beside those of subordinate ids')
    for process in processes + [other]:
        os.waitpid(process, 0)


def hold_many(at, ready, go):
    """Tickets of 256 KiB through each of many descriptors."""
    for _ in range(400):
        fd = os.open(at, os.O_RDONLY)
        for offset in range(0, 256 * 1024, DATA):
            ask(fd, [b'tickets', b'%d' % offset], b'x' * DATA)
    os.write(ready, b'r')
    os.read(go, 1)


def main():
    at, daemon, rxafsctl = sys.argv[1:4]
    with open(sys.argv[4], 'rb') as f:
        initial = f.read()
    with open(sys.argv[5], 'rb') as f:
        service = f.read()

    # The initial ticket alone: nobody is asked for more.
    out, to = os.pipe()
    begun = time.monotonic()
    process = child(MANY, lambda: flood(at, initial, b' ', to, 200))
    os.close(to)
    with os.fdopen(out) as f:
        answers = [f.readline()]
        goes_on(at, rxafsctl, 'kdc')
        answers += f.readlines()
    os.waitpid(process, 0)
    check(time.monotonic() - begun < 2 * SOON, 'logins with the initial ticket take %.1f s' % (time.monotonic() - begun))
    check(len(answers) == 200 and all('"error"' in a for a in answers), 'answers', answers[:3])
    check(any('no ticket for a cell' in a for a in answers), 'reasons', answers[:3])

    # A server of the user's own that is silent.
    out, to = os.pipe()
    begun = time.monotonic()
    process = child(MANY, lambda: flood(at, service, b'silent.example', to, 200))
    os.close(to)
    with os.fdopen(out) as f:
        # Most are refused, while the others wait.
        answers = [f.readline() for _ in range(150)]
        goes_on(at, rxafsctl, 'server')
        begun_other = time.monotonic()
        answer = log_in(at, service, b' ')
        check('"tokens"' in answer and time.monotonic() - begun_other < SOON, 'a login of another user', answer)
        answers += f.readlines()
    os.waitpid(process, 0)
    check(time.monotonic() - begun < 10 * SOON, 'logins at a silent server take %.1f s' % (time.monotonic() - begun))
    refused = [a for a in answers if 'too many logins' in a]
    print('silent server: %d logins, %d refused, the slowest %s' % (len(answers), len(refused), max(answers, key=lambda a: float(a.split()[0]))))
    check(len(answers) == 200 and 150 < len(refused) < 200, len(answers), 'answers', len(refused), 'refused', answers[-2:])

    if len(sys.argv) > 6:
        subordinates(at, service, int(sys.argv[6]))

    # What is handed over and not used.
    before = resident(daemon)
    ready, tell = os.pipe()
    stop, go = os.pipe()
    process = child(MANY, lambda: hold_many(at, tell, stop))
    os.read(ready, 1)
    check(resident(daemon) - before < 30, 'the daemon has grown from %d to %d MB' % (before, resident(daemon)))
    answer = log_in(at, service, b' ')
    check('"tokens"' in answer, 'a login of another user meanwhile', answer)
    os.write(go, b'g')
    os.waitpid(process, 0)
    sys.exit(1 if failures else 0)


main()
