# SPDX-License-Identifier: BSD-2-Clause
"""Changes by one client while replies to another one are late (K-047 to K-050): what the second client is told by them is never
believed beyond the change. delays.py CONTROL NEAR FAR: the pipe of proxy.py, which FAR's replies pass; NEAR's do not."""

import os
import sys
import threading
import time

control, near, far = sys.argv[1:]
FETCH_DATA, FETCH_STATUS, STORE_DATA, STORE_STATUS, BULK_STATUS, FETCH_DATA_64, STORE_DATA_64 = 130, 132, 133, 135, 65536, 65537, 65538
CREATE = 137
LATE = 150
failures = 0


def check(what, condition):
    global failures
    if not condition:
        failures += 1
        print('FAIL:', what)


def delay(*opcodes):
    with open(control, 'w', encoding='ascii') as f:
        f.write('0 0\n' + ''.join(f'{opcode} {LATE}\n' for opcode in opcodes))
    time.sleep(0.02)


def write_file(path, data, flags=0):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    os.write(fd, data)
    os.close(fd)


def read_file(path):
    with open(path, 'rb') as f:
        return f.read()


def during(slow, change):
    """Do `change` while `slow` waits for its late reply."""
    results = []
    thread = threading.Thread(target=lambda: results.append(slow()))
    thread.start()
    time.sleep(LATE / 3000)
    change()
    thread.join()
    return results[0]


def same_everywhere(what, name, data):
    path = os.path.join(far, name)
    check(f'{what}: contents', read_file(path) == data)
    check(f'{what}: size', os.stat(path).st_size == len(data))
    check(f'{what}: size by the first client', os.stat(os.path.join(near, name)).st_size == len(data))
    delay()
    check(f'{what}: contents again', read_file(path) == data)


def late_status(i):
    """The promise of a late status is one that was broken before it came (K-047), and the status that of before."""
    a, b = os.path.join(near, 'status'), os.path.join(far, 'status')
    write_file(a, b'0' * 10)
    os.chmod(a, 0o600)
    delay(FETCH_STATUS, BULK_STATUS)
    during(lambda: os.stat(b), lambda: write_file(a, b'1' * (20 + i)))
    same_everywhere('late FetchStatus', 'status', b'1' * (20 + i))
    delay(FETCH_STATUS, BULK_STATUS)
    os.utime(a, (5, 5))
    during(lambda: os.stat(b), lambda: os.chmod(a, 0o640 if i % 2 else 0o644))
    check('late FetchStatus: mode', os.stat(b).st_mode & 0o777 == (0o640 if i % 2 else 0o644))
    check('late FetchStatus: time', os.stat(b).st_mtime == 5)
    delay()


def late_data(i):
    a, b = os.path.join(near, 'data'), os.path.join(far, 'data')
    write_file(a, bytes([i]) * 300000)
    delay(FETCH_DATA, FETCH_DATA_64)
    new = bytes([i + 100]) * 300000
    got = during(lambda: read_file(b), lambda: write_file(a, new))
    check('late FetchData: bytes that were never there', not set(got) - {i, i + 100, 0})
    same_everywhere('late FetchData', 'data', new)


def late_names(i):
    """The contents of a directory, with a name that comes and one that goes meanwhile."""
    a, b = os.path.join(near, f'names{i}'), os.path.join(far, f'names{i}')
    os.mkdir(a)
    write_file(os.path.join(a, 'old'), b'')
    delay(FETCH_DATA, FETCH_DATA_64)

    def change():
        write_file(os.path.join(a, 'new'), b'')
        os.unlink(os.path.join(a, 'old'))
    during(lambda: os.listdir(b), change)
    check('late names', os.listdir(b) == ['new'])
    check('late names: the new one', os.path.exists(os.path.join(b, 'new')))
    check('late names: the old one', not os.path.exists(os.path.join(b, 'old')))
    delay()


def late_statuses(i):
    """InlineBulkStatus of a directory whose files change meanwhile."""
    a, b = os.path.join(near, f'many{i}'), os.path.join(far, f'many{i}')
    os.mkdir(a)
    for n in range(30):
        write_file(os.path.join(a, str(n)), b'x')
    delay(BULK_STATUS)
    during(lambda: [e.stat() for e in os.scandir(b)],
           lambda: [write_file(os.path.join(a, str(n)), b'y' * (n + 2)) for n in range(0, 30, 3)])
    for n in range(30):
        want = n + 2 if n % 3 == 0 else 1
        check(f'late InlineBulkStatus: size of {n}', os.stat(os.path.join(b, str(n))).st_size == want)
    delay()


def late_store(i):
    """The reply to an own store, and another client's store after it (K-049)."""
    a, b = os.path.join(near, 'store'), os.path.join(far, 'store')
    write_file(a, b'a' * 1000)
    read_file(b)
    delay(STORE_DATA, STORE_DATA_64)
    during(lambda: write_file(b, b'b' * 1000), lambda: write_file(a, b'c' * 500))
    want = read_file(a)
    check('late StoreData: one of the orders', want in (b'c' * 500 + b'b' * 500, b'b' * 1000))
    same_everywhere('late StoreData', 'store', want)
    # And a truncation by the other one.
    delay(STORE_DATA, STORE_DATA_64)
    during(lambda: write_file(b, b'd' * 1000), lambda: os.truncate(a, 10 + i))
    want = read_file(a)
    same_everywhere('late StoreData and a truncation', 'store', want)


def late_own_status(i):
    """A status that is asked for before an own change, and told after it (K-049); two own changes (K-050)."""
    b = os.path.join(far, 'own')
    write_file(b, b'1' * 100)
    write_file(os.path.join(near, 'own'), b'2' * 100)
    delay(FETCH_STATUS, BULK_STATUS)
    during(lambda: os.stat(b), lambda: write_file(b, b'3' * (200 + i), os.O_TRUNC))
    same_everywhere('own change during FetchStatus', 'own', b'3' * (200 + i))
    delay(CREATE)
    threads = [threading.Thread(target=write_file, args=(os.path.join(far, f'own{i}.{n}'), b'')) for n in range(6)]
    for thread in threads:
        thread.start()
        write_file(os.path.join(near, f'near{i}.{threads.index(thread)}'), b'')
    for thread in threads:
        thread.join()
    delay()
    want = sorted(os.listdir(near))
    check('several creations at a time', sorted(os.listdir(far)) == want)
    check('their names', all(os.path.exists(os.path.join(far, name)) for name in want))


def main():
    rounds = int(os.environ.get('DELAYS_ROUNDS', '3'))
    for i in range(1, rounds + 1):
        for test in (late_status, late_data, late_names, late_statuses, late_store, late_own_status):
            begin = time.monotonic()
            test(i)
            if i == 1:
                print(f'{test.__name__}: {time.monotonic() - begin:.1f} s')
    return 1 if failures else 0


sys.exit(main())
