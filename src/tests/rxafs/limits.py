# SPDX-License-Identifier: BSD-2-Clause
"""What is as large as it can be. limits.py MOUNT OTHER: OTHER is another mount of the same cell. RXAFS_LONG=1: whole sizes.
[NAME...]: what is left out."""

import ctypes
import errno
import mmap
import os
import resource
import shutil
import sys

mount, other = (os.path.join(m, 'test.example') for m in sys.argv[1:3])
root = os.path.join(mount, 'rw', 'limits')
there = os.path.join(other, 'rw', 'limits')
long = bool(os.environ.get('RXAFS_LONG'))
failures = 0


def check(what, got, want=True):
    global failures
    if got != want:
        failures += 1
        print(f'FAIL: {what}: {got!r:.100}, not {want!r:.100}')


def refused(what, code, fn, *args, **options):
    try:
        fn(*args, **options)
    except OSError as e:
        check(what, errno.errorcode[e.errno], errno.errorcode[code])
        return
    check(what, 'done', errno.errorcode[code])


def put(path, data=b''):
    with open(path, 'wb') as f:
        f.write(data)


def get(path):
    with open(path, 'rb') as f:
        return f.read()


def strange_names():
    """All bytes of names, first of one byte each, then of 255."""
    base = os.path.join(root, 'strange').encode()
    os.mkdir(base)
    names = {bytes([b]) for b in range(1, 256) if b not in b'/.'}
    names |= {b'\xff' * 255, b'a' * 255, b'\xe2\x82\xac' * 85, b'\n' * 255, b'-rf', b' ', b'...', b'..x', b'.x.', b'%s%n', b'#vol.', b'%vol.',
              b'\xc3\xa9', b'e\xcc\x81', b'name~', b'.__afs', b'\\', b'a\tb'}
    for name in names:
        put(base + b'/' + name, name)
    for where in (base, os.path.join(there, 'strange').encode()):
        check('strange names', set(os.listdir(where)), names)
        check('contents behind them', [n for n in names if get(where + b'/' + n) != n], [])
    for name in names:
        os.rename(base + b'/' + name, base + b'/xx')
        os.unlink(base + b'/xx')
    check('strange names are gone', os.listdir(base), [])


def long_names():
    d = os.path.join(root, 'long')
    os.mkdir(d)
    put(d + '/f')
    big, most = d + '/' + 'n' * 256, d + '/' + 'm' * 255
    for what, fn, args in (('stat', os.stat, (big,)), ('open', os.open, (big, os.O_RDONLY)), ('create', os.open, (big, os.O_CREAT | os.O_RDWR)),
                           ('mkdir', os.mkdir, (big,)), ('rmdir', os.rmdir, (big,)), ('unlink', os.unlink, (big,)),
                           ('symlink', os.symlink, ('f', big)), ('link', os.link, (d + '/f', big)), ('link from', os.link, (big, d + '/g')),
                           ('rename', os.rename, (d + '/f', big)), ('rename from', os.rename, (big, d + '/g')),
                           ('truncate', os.truncate, (big, 1)), ('chmod', os.chmod, (big, 0o644)), ('utime', os.utime, (big,)),
                           ('in a path', os.stat, (big + '/x',)), ('a long path', os.stat, (d + '/.' * 2100,)),
                           ('a long link', os.symlink, ('x/' * 2048, d + '/s'))):
        refused('ENAMETOOLONG of ' + what, errno.ENAMETOOLONG, fn, *args)
    os.rename(d + '/f', most)
    os.link(most, d + '/' + 'l' * 255)
    os.symlink('t' * 255, d + '/' + 's' * 255)
    os.mkdir(d + '/' + 'd' * 255)
    check('names of 255 bytes', sorted(os.listdir(os.path.join(there, 'long'))), [c * 255 for c in 'dlms'])
    text = '/'.join(['x' * 100] * 10)
    os.symlink(text, d + '/link')
    check('a link of 1,009 bytes', os.readlink(os.path.join(there, 'long', 'link')), text)


def deep_paths():
    """Deeper than a path can tell."""
    os.mkdir(root + '/deep')
    os.chdir(root + '/deep')
    levels = 60
    for _ in range(levels):
        os.mkdir('d' * 100)
        os.chdir('d' * 100)
    put('bottom', b'here')
    check('the file below', get('bottom'), b'here')
    for _ in range(levels):
        os.chdir('..')
    check('back at the top', os.getcwd(), root + '/deep')
    fd = os.open(there + '/deep', os.O_RDONLY)
    for _ in range(levels):
        below = os.open('d' * 100, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    check('the same in the other mount', os.listdir(fd), ['bottom'])
    os.close(fd)
    os.chdir('/')
    shutil.rmtree(root + '/deep')
    check('gone', os.path.exists(root + '/deep'), False)


def many_names():
    """AFS has room for 64,435 short names."""
    d = os.path.join(root, 'many')
    os.mkdir(d)
    count = 64435 if long else 1500
    for i in range(count):
        os.close(os.open(f'{d}/n{i}', os.O_CREAT | os.O_WRONLY))
    if long:
        refused('one more name', errno.EFBIG, os.open, d + '/n64435', os.O_CREAT | os.O_WRONLY)
        refused('one more folder', errno.EFBIG, os.mkdir, d + '/folder')
        os.unlink(d + '/n5')
        put(d + '/n5', b'again')
    for where in (d, os.path.join(there, 'many')):
        names = os.listdir(where)
        check('names', (len(names), set(names)), (count, {f'n{i}' for i in range(count)}))
        check('sizes', sum(e.stat(follow_symlinks=False).st_size for e in os.scandir(where)), 5 if long else 0)
    if long:
        return
    shutil.rmtree(d)
    check('names of the directory are gone', os.path.exists(os.path.join(there, 'many')), False)


def many_open_files():
    count = 10000 if long else 800
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = max(limit[1], count + 100) if os.getuid() == 0 else limit[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 100), hard))
    d = os.path.join(root, 'open')
    os.mkdir(d)
    fds = [os.open(f'{d}/{i}', os.O_CREAT | os.O_RDWR) for i in range(count)]
    for i, fd in enumerate(fds):
        os.write(fd, b'%d' % i)
    for i in range(0, count, 8):
        os.unlink(f'{d}/{i}')
    check('contents of open files', [i for i, fd in enumerate(fds) if os.pread(fd, 10, 0) != b'%d' % i], [])
    for fd in fds:
        os.close(fd)
    at = os.path.join(there, 'open')
    check('files that stay', [i for i in range(count) if i % 8 and get(f'{at}/{i}') != b'%d' % i], [])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[0], hard))


def far_offsets():
    """Around 2^31 and 2^32."""
    f = os.path.join(root, 'far')
    places = [0, 2**31 - 3, 2**32 - 3, 2**32 + 2**20 + 1, 5 * 2**30]
    fd = os.open(f, os.O_CREAT | os.O_RDWR)
    for n, at in enumerate(places):
        check(f'write at {at}', os.pwrite(fd, b'six%03d' % n, at), 6)
    os.fsync(fd)
    size = places[-1] + 6
    for name in (f, os.path.join(there, 'far')):
        check('size', os.stat(name).st_size, size)
        with open(name, 'rb', buffering=0) as g:
            for n, at in enumerate(places):
                check(f'read at {at}', os.pread(g.fileno(), 8, at), b'six%03d' % n + bytes(2) * (at != places[-1]))
                check(f'before {at}', os.pread(g.fileno(), 4096, max(at - 5000, 6)), bytes(4096) if at else b'\0' * 4096)
            check('behind the end', os.pread(g.fileno(), 8, size), b'')
            with mmap.mmap(g.fileno(), 4096, prot=mmap.PROT_READ, offset=2**32 + 2**20) as m:
                check('mapped beyond 2^32', m[1:7], b'six003')
            check('SEEK_DATA at data', os.lseek(g.fileno(), 0, os.SEEK_DATA), 0)
            hole = os.lseek(g.fileno(), 0, os.SEEK_HOLE)
            check('SEEK_HOLE', hole <= size and not any(hole <= at < hole + 4096 for at in places[:-1]))
            refused('SEEK_DATA behind the end', errno.ENXIO, os.lseek, g.fileno(), size, os.SEEK_DATA)
    os.ftruncate(fd, 2**32 + 1)
    check('cut at 2^32+1', (os.fstat(fd).st_size, os.pread(fd, 10, 2**32 - 3)), (2**32 + 1, b'six0'))
    os.ftruncate(fd, 5 * 2**30 + 6)
    check('grown again', os.pread(fd, 10, 5 * 2**30), bytes(6))
    os.close(fd)
    with open(os.path.join(there, 'far'), 'rb', buffering=0) as g:
        check('what was cut off', (os.pread(g.fileno(), 10, 2**32 - 3), os.pread(g.fileno(), 10, 5 * 2**30)), (b'six0' + bytes(6), bytes(6)))
    os.truncate(f, 2**31)
    check('cut by path', os.stat(os.path.join(there, 'far')).st_size, 2**31)
    with open(f, 'ab') as g:
        g.write(b'end')
    check('append at 2^31', get_tail(os.path.join(there, 'far'), 3), b'end')
    refused('a negative length', errno.EINVAL, os.truncate, f, -1)
    if 'too long' not in sys.argv[3:]:
        refused('too long', errno.EFBIG, os.truncate, f, 2**63 - 1)


def get_tail(path, length):
    with open(path, 'rb') as f:
        f.seek(-length, os.SEEK_END)
        return f.read()


def no_such_operations():
    """What AFS cannot do is refused by its name, so that programs do it otherwise."""
    libc = ctypes.CDLL(None, use_errno=True)
    f = os.path.join(root, 'plain')
    put(f, b'x' * 10000)
    with open(f, 'r+b') as g:
        for what, mode in (('allocate', 0), ('keep size', 1), ('punch', 3), ('collapse', 8), ('zero', 16), ('insert', 32)):
            result = libc.fallocate(g.fileno(), mode, ctypes.c_long(4096), ctypes.c_long(4096))
            check(f'fallocate: {what}', (result, ctypes.get_errno()), (-1, errno.EOPNOTSUPP))
        with open(os.path.join(root, 'copy'), 'w+b') as h:
            check('copy_file_range', os.copy_file_range(g.fileno(), h.fileno(), 6000, 2000, 0) > 0)
            check('what it copied', (os.pread(h.fileno(), 10, 0), os.fstat(h.fileno()).st_size > 0), (b'x' * 10, True))
    for what, fn in (('FIFO', lambda p: os.mkfifo(p)), ('device', lambda p: os.mknod(p, 0o60644, os.makedev(1, 2)))):
        refused(what, errno.EPERM, fn, os.path.join(root, 'special'))


def writes_until_full(path):
    """Bytes that were acknowledged, and the error."""
    done = 0
    try:
        with open(path, 'wb', buffering=0) as f:
            for _ in range(200):
                f.write(b'q' * 65536)
                os.fsync(f.fileno())
                done += 65536
    except OSError as e:
        return done, e.errno
    return done, 0


def full_quota():
    """small may hold 2,000 KiB: an error at write, fsync or close, and later writes work (K-078)."""
    d, o = os.path.join(mount, 'small'), os.path.join(other, 'small')
    put(d + '/kept', b'k' * 300000)
    done, error = writes_until_full(d + '/fill')
    check('the error of a full quota', error in (errno.EDQUOT, errno.ENOSPC))
    check('what was acknowledged is there', get(o + '/fill')[:done] == b'q' * done and done > 1000000)
    for what in ('write or close', 'fsync'):
        try:
            with open(d + '/kept', 'r+b', buffering=0) as f:
                f.seek(300000)
                f.write(b'm' * 400000)
                if what == 'fsync':
                    os.fsync(f.fileno())
                os.close(os.dup(f.fileno()))
            check(f'no error at {what}', 'done', 'an error')
        except OSError as e:
            check(f'error at {what}', e.errno in (errno.EDQUOT, errno.ENOSPC))
    check('statvfs', os.statvfs(d).f_bavail * os.statvfs(d).f_frsize < 400000)
    check('contents before it', get(d + '/kept')[:300000] == get(o + '/kept')[:300000] == b'k' * 300000)
    os.unlink(d + '/fill')
    put(d + '/later', b'l' * 900000)
    check('writes after room was made', get(o + '/later') == b'l' * 900000)
    with open(d + '/more', 'wb') as f:
        f.write(b'n' * 100000)
    check('the file that could not be written', get(o + '/more') == b'n' * 100000)


def main():
    os.mkdir(root)
    for part in (strange_names, long_names, deep_paths, many_names, many_open_files, far_offsets, no_such_operations, full_quota):
        print(part.__name__, flush=True)
        part()
    return 1 if failures else 0


sys.exit(main())
