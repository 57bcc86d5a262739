# SPDX-License-Identifier: BSD-2-Clause
"""Calls that a server never ends. unending.py CONTROL NEAR FAR: the pipe of proxy.py, which the answers to FAR pass."""

import errno
import os
import sys
import threading
import time

control, near, far = sys.argv[1:]
FETCH_DATA, FETCH_STATUS, BULK_STATUS, FETCH_DATA_64, STORE_DATA_64 = 130, 132, 65536, 65537, 65538
NEVER = 3600 * 1000
failures = 0


def check(what, condition):
    global failures
    if not condition:
        failures += 1
        print('FAIL:', what, flush=True)


def delay(milliseconds, *opcodes):
    with open(control, 'w', encoding='ascii') as f:
        f.write('0 0\n' + ''.join(f'{opcode} {milliseconds}\n' for opcode in opcodes))
    time.sleep(0.1)


def error_of(operation):
    try:
        operation()
    except OSError as e:
        return errno.errorcode[e.errno]
    return None


def all_together(operation, count):
    """The errors of threads that do the same."""
    errors = []
    threads = [threading.Thread(target=lambda: errors.append(error_of(operation)), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 100
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    return errors


def read_file(path):
    with open(path, 'rb') as f:
        return f.read()


def write_file(path, data):
    with open(path, 'wb') as f:
        f.write(data)


write_file(f'{near}/file', b'x' * 100000)
check('the file before', read_file(f'{far}/file') == b'x' * 100000)

begun = time.monotonic()
write_file(f'{near}/file', b'y' * 200000)
write_file(f'{near}/new', b'new')
delay(NEVER, FETCH_STATUS, BULK_STATUS)
check('3 threads that want one status', all_together(lambda: os.stat(f'{far}/file'), 3) == ['ETIMEDOUT'] * 3)
check('a new name', error_of(lambda: os.stat(f'{far}/new')) == 'ETIMEDOUT')
check('a list', error_of(lambda: os.listdir(far)) == 'ETIMEDOUT')
print(f'statuses: {time.monotonic() - begun:.1f} s', flush=True)
delay(0)
check('the file, after its status came', os.stat(f'{far}/file').st_size == 200000)

begun = time.monotonic()
delay(NEVER, FETCH_DATA, FETCH_DATA_64)
check('3 threads that read one file', all_together(lambda: read_file(f'{far}/file'), 3) == ['ETIMEDOUT'] * 3)
print(f'contents: {time.monotonic() - begun:.1f} s', flush=True)
delay(0)
check('the file, after its contents came', read_file(f'{far}/file') == b'y' * 200000)

delay(7000, STORE_DATA_64)
check('a store that takes longer than reads may', error_of(lambda: write_file(f'{far}/file', b'z' * 1000)) is None)
delay(0)
check('what it has stored', read_file(f'{near}/file') == b'z' * 1000)
sys.exit(failures != 0)
