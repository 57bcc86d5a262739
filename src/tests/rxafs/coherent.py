# SPDX-License-Identifier: BSD-2-Clause
"""What one mount changes another sees at once. coherent.py ONE TWO: the same directory in two mounts."""

import os
import sys
import time

one, two = sys.argv[1:]
failures = 0


def check(what, condition):
    global failures
    if not condition:
        failures += 1
        print('FAIL:', what)


def write_file(path, data):
    with open(path, 'wb') as f:
        f.write(data)


def read_file(path):
    with open(path, 'rb') as f:
        return f.read()


def exists(*names):
    return os.path.exists(os.path.join(*names))


def working_directory():
    """A working directory survives changes beside it."""
    os.makedirs(os.path.join(one, 'cwd', 'a', 'b'))
    for i in range(1000):
        os.chdir(os.path.join(two, 'cwd', 'a', 'b'))
        here = os.getcwd()
        write_file(os.path.join(one, 'cwd', f'n{i}'), b'') if i % 2 else os.mkdir(os.path.join(one, 'cwd', 'a', f'd{i}'))
        try:
            check(f'working directory after change {i}', os.getcwd() == here)
        except FileNotFoundError:
            check(f'there is no working directory after change {i}', False)
            break
        os.stat(os.path.join(two, 'cwd', 'a', 'b'))
    os.chdir('/')


def renamed_directories():
    """Two directories change places: what is behind their names is never that of before."""
    for name in ('x', 'y'):
        os.makedirs(os.path.join(one, 'swap', name))
        write_file(os.path.join(one, 'swap', name, 'who'), name.encode())
    swap = os.path.join(one, 'swap')
    first, second = b'x', b'y'
    stale = 0
    for _ in range(300):
        seen = read_file(os.path.join(two, 'swap', 'x', 'who')), read_file(os.path.join(two, 'swap', 'y', 'who'))
        stale += seen != (first, second)
        os.rename(os.path.join(swap, 'x'), os.path.join(swap, 't'))
        stale += exists(two, 'swap', 'x')
        os.rename(os.path.join(swap, 'y'), os.path.join(swap, 'x'))
        os.rename(os.path.join(swap, 't'), os.path.join(swap, 'y'))
        first, second = second, first
    check(f'{stale} stale looks at renamed directories', not stale)


def contents():
    """The same second, the same size: contents still change (K-159)."""
    a, b = os.path.join(one, 'same'), os.path.join(two, 'same')
    write_file(a, b'0' * 100)
    stale = 0
    for i in range(300):
        data = b'%03d' % i * 20
        write_file(a, data)
        stale += read_file(b) != data
        os.utime(a, (1, 1))
        stale += os.stat(b).st_mtime != 1
        os.chmod(a, 0o600 if i % 2 else 0o644)
        stale += os.stat(b).st_mode & 0o777 != (0o600 if i % 2 else 0o644)
    check(f'{stale} stale looks at a file', not stale)
    # Through an open descriptor, and through a map.
    write_file(a, b'first')
    with open(b, 'rb') as f:
        check('the first contents', f.read() == b'first')
        write_file(a, b'other')
        f.seek(0)
        check('contents through an open descriptor', f.read() == b'other')


def sizes():
    """The end of a file that another mount has made longer, through an open descriptor, after fsync."""
    a, b = os.path.join(one, 'grows'), os.path.join(two, 'grows')
    writer = os.open(a, os.O_RDWR | os.O_CREAT)
    reader = os.open(b, os.O_RDWR)
    stale = 0
    for i in range(1, 200):
        data = bytes([i]) * (37 * i)
        os.ftruncate(writer, 0)
        os.pwrite(writer, data, 0)
        os.fsync(writer)
        stale += os.pread(reader, 100000, 0) != data
    check(f'{stale} stale ends of a file', not stale)
    os.close(writer)
    os.close(reader)


def appended():
    """What is appended goes behind what another mount has appended since the file was opened here."""
    a, b = os.path.join(one, 'long'), os.path.join(two, 'long')
    write_file(a, b'a' * 100)
    reader = os.open(b, os.O_RDWR)
    os.pread(reader, 100, 0)
    with open(a, 'ab') as f:
        f.write(b'b' * 20000)
    writer = os.open(b, os.O_WRONLY | os.O_APPEND)
    os.write(writer, b'c' * 9000)
    os.close(writer)
    want = b'a' * 100 + b'b' * 20000 + b'c' * 9000
    check('appended bytes where they were written', read_file(a) == want)
    check('appended bytes in the other mount', read_file(b) == want)
    os.close(reader)


def names():
    """Names that come and go, missing ones too."""
    stale = 0
    for i in range(300):
        stale += exists(two, f'name{i}')
        write_file(os.path.join(one, f'name{i}'), b'')
        stale += not exists(two, f'name{i}')
        stale += f'name{i}' not in os.listdir(two)
        os.unlink(os.path.join(one, f'name{i}'))
        stale += exists(two, f'name{i}')
    check(f'{stale} stale looks at names', not stale)


def two_ways():
    """A directory that is reached by two mount points has two places (K-021)."""
    root = os.path.dirname(one)
    other = os.path.join(os.path.dirname(root), os.environ['OTHER_WAY'], os.path.basename(one))
    os.makedirs(os.path.join(one, 'ways', 'in'))
    os.chdir(os.path.join(other, 'ways', 'in'))
    here = os.getcwd()
    for _ in range(20):
        os.stat(os.path.join(one, 'ways', 'in'))
        os.listdir(os.path.join(one, 'ways'))
        os.stat(os.path.join(other, 'ways', 'in'))
        check('a working directory below another mount point stays', os.getcwd() == here)
    os.rename(os.path.join(one, 'ways', 'in'), os.path.join(one, 'ways', 'out'))
    check('a rename is seen below the other mount point', exists(other, 'ways', 'out') and not exists(other, 'ways', 'in'))
    os.chdir('/')


def main():
    for test in (working_directory, renamed_directories, contents, sizes, appended, names, two_ways):
        begin = time.monotonic()
        test()
        print(f'{test.__name__}: {time.monotonic() - begin:.1f} s')
    return 1 if failures else 0


sys.exit(main())
