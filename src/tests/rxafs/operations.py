# SPDX-License-Identifier: BSD-2-Clause
"""A table of operations with their results. operations.py MOUNT OTHER: OTHER is another mount of the same cell."""

import ctypes
import errno
import fcntl
import mmap
import os
import socket
import stat
import sys
import time

mount, other = sys.argv[1:]
root = os.path.join(mount, 'test.example', 'rw', 'table')
failures = 0


def fail(text):
    global failures
    failures += 1
    print('FAIL:', text)


def at(*names):
    return os.path.join(root, *names)


def check(what, got, want=True):
    if got != want:
        fail(f'{what}: {got!r:.100}, not {want!r:.100}')


def refused(what, code, fn, *args, **options):
    try:
        fn(*args, **options)
    except OSError as e:
        if e.errno != code:
            fail(f'{what}: {errno.errorcode[e.errno]}, not {errno.errorcode[code]}')
        return
    fail(f'{what}: it succeeded')


def put(path, data=b''):
    with open(path, 'wb') as f:
        f.write(data)


def get(path):
    with open(path, 'rb') as f:
        return f.read()


def files():
    put(at('f'), b'12345')
    check('size', os.stat(at('f')).st_size, 5)
    refused('O_EXCL', errno.EEXIST, os.open, at('f'), os.O_CREAT | os.O_EXCL)
    refused('open of nothing', errno.ENOENT, os.open, at('nothing'), os.O_RDONLY)
    refused('a file as a directory', errno.ENOTDIR, os.open, at('f', 'x'), os.O_RDONLY)
    refused('write to a directory', errno.EISDIR, os.open, root, os.O_WRONLY)
    refused('a long name', errno.ENAMETOOLONG, put, at('n' * 256))
    put(at('n' * 255), b'long')
    check('a name of 255 bytes', get(at('n' * 255)), b'long')
    with open(at('f'), 'ab') as f:
        f.write(b'678')
    check('append', get(at('f')), b'12345678')
    os.truncate(at('f'), 3)
    check('truncated', get(at('f')), b'123')
    os.truncate(at('f'), 10)
    check('grown', get(at('f')), b'123' + bytes(7))
    fd = os.open(at('readonly'), os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o444)
    os.write(fd, b'once')
    os.close(fd)
    check('a file made with mode 0444', (get(at('readonly')), stat.S_IMODE(os.stat(at('readonly')).st_mode)), (b'once', 0o444))
    fd = os.open(at('sparse'), os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b'end', 10_000_000)
    check('a hole', os.pread(fd, 10, 5_000_000), bytes(10))
    os.close(fd)
    check('size with a hole', os.stat(at('sparse')).st_size, 10_000_003)
    check('the other mount', get(os.path.join(other, 'test.example', 'rw', 'table', 'sparse'))[-3:], b'end')
    refused('a temporary file without a name', errno.EOPNOTSUPP, os.open, root, os.O_TMPFILE | os.O_RDWR)
    fd = os.open(at('f'), os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    check('fallocate', (libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(100)), ctypes.get_errno()), (-1, errno.EOPNOTSUPP))
    with mmap.mmap(fd, 10) as m:
        m[0:3] = b'abc'
        m.flush()
    os.close(fd)
    check('written by a map', get(at('f'))[:3], b'abc')


def open_while_removed():
    fd = os.open(at('gone'), os.O_CREAT | os.O_RDWR)
    os.write(fd, b'still')
    os.unlink(at('gone'))
    check('read after unlink', os.pread(fd, 10, 0), b'still')
    check('names after unlink', [n for n in os.listdir(root) if n.startswith('.__afs') or n == 'gone'], [])
    os.write(fd, b' here')
    check('write after unlink', os.pread(fd, 20, 0), b'still here')
    check('links after unlink', os.fstat(fd).st_nlink, 0)
    os.close(fd)
    fd = os.open(at('old'), os.O_CREAT | os.O_RDWR)
    os.write(fd, b'old')
    put(at('new'), b'new')
    os.rename(at('new'), at('old'))
    check('read of a replaced file', os.pread(fd, 10, 0), b'old')
    check('the new file', get(at('old')), b'new')
    os.close(fd)
    for _ in range(100):
        left = [n for n in os.listdir(os.path.join(other, 'test.example', 'rw', 'table')) if n.startswith('.__afs')]
        if not left:
            break
        time.sleep(0.1)
    check('hidden names at the server after the last close', left, [])


def names():
    os.mkdir(at('d'))
    refused('mkdir again', errno.EEXIST, os.mkdir, at('d'))
    refused('unlink of a directory', errno.EISDIR, os.unlink, at('d'))
    put(at('d', 'in'), b'')
    refused('rmdir of a full directory', errno.ENOTEMPTY, os.rmdir, at('d'))
    refused('rmdir of a file', errno.ENOTDIR, os.rmdir, at('d', 'in'))
    os.link(at('d', 'in'), at('d', 'second'))
    check('links', os.stat(at('d', 'in')).st_nlink, 2)
    check('one inode', os.stat(at('d', 'in')).st_ino, os.stat(at('d', 'second')).st_ino)
    refused('a link into another directory', errno.EXDEV, os.link, at('d', 'in'), at('elsewhere'))
    os.rename(at('d', 'in'), at('d', 'second'))
    check('rename between two names of one file', sorted(os.listdir(at('d'))), ['in', 'second'])
    os.unlink(at('d', 'in'))
    check('links after unlink', os.stat(at('d', 'second')).st_nlink, 1)
    os.mkdir(at('e'))
    os.rename(at('d', 'second'), at('e', 'moved'))
    check('moved to another directory', os.listdir(at('e')), ['moved'])
    os.rename(at('d'), at('e', 'd'))
    check('a moved directory', sorted(os.listdir(at('e'))), ['d', 'moved'])
    check('its parent', os.path.samefile(at('e', 'd', '..'), at('e')))
    refused('a directory into itself', errno.EINVAL, os.rename, at('e'), at('e', 'd', 'e'))
    put(at('plain'))
    refused('a file over a directory', errno.EISDIR, os.rename, at('plain'), at('e'))
    refused('a directory over a file', errno.ENOTDIR, os.rename, at('e', 'd'), at('plain'))
    refused('a FIFO', errno.EPERM, os.mkfifo, at('fifo'))
    os.symlink('plain', at('link'))
    check('readlink', os.readlink(at('link')), 'plain')
    check('through a link', os.path.samefile(at('link'), at('plain')))
    os.symlink('loop', at('loop'))
    refused('a loop of links', errno.ELOOP, os.stat, at('loop'))
    os.symlink('#root.cell.', at('no mount point'))
    check('a link that looks like a mount point', stat.S_ISLNK(os.lstat(at('no mount point')).st_mode))
    libc = ctypes.CDLL(None, use_errno=True)
    for flags, code in ((1, errno.EEXIST), (2, errno.EINVAL)):
        result = libc.renameat2(-100, at('plain').encode(), -100, at('link').encode(), flags)
        check(f'renameat2 with flags {flags}', (result, ctypes.get_errno()), (-1, code))


def attributes():
    put(at('a'), b'')
    os.chmod(at('a'), 0o640)
    check('mode', stat.S_IMODE(os.stat(at('a')).st_mode), 0o640)
    os.utime(at('a'), (1000, 2000))
    check('time', os.stat(at('a')).st_mtime, 2000)
    with open(at('a'), 'r+b', buffering=0) as f:
        f.write(b'x')
        os.utime(at('a'), (1, 12345))
    check('a time set before close', os.stat(at('a')).st_mtime, 12345)
    before = os.stat(at('a')).st_ctime
    check('ctime is not older', before >= 12345)
    s = os.stat(at('a'))
    os.chown(at('a'), s.st_uid, s.st_gid)
    refused('chown to another', errno.EPERM, os.chown, at('a'), s.st_uid + 1, -1)
    check('no names of attributes', os.listxattr(at('a')), [])
    refused('an unknown attribute', errno.ENODATA, os.getxattr, at('a'), 'afs.none')
    refused('a user attribute', errno.EOPNOTSUPP, os.setxattr, at('a'), 'user.x', b'y')
    check('afs.cell', os.getxattr(at('a'), 'afs.cell'), b'test.example')
    check('afs.volume', os.getxattr(at('a'), 'afs.volume'), b'work')
    fid = os.getxattr(at('a'), 'afs.fid').split(b':')
    check('afs.fid', int(fid[1], 16), s.st_ino & 0xffffffff)
    acl = os.getxattr(root, 'afs.acl')
    os.setxattr(root, 'afs.acl', acl)
    check('afs.acl', os.getxattr(root, 'afs.acl'), acl)
    v = os.statvfs(root)
    check('statvfs', v.f_blocks > 0 and v.f_namemax == 255)


def directories():
    os.mkdir(at('many'))
    for i in range(500):
        put(at('many', f'name{i:04}'))
    with os.scandir(at('many')) as scan:
        seen = [next(scan).name for _ in range(100)]
        for i in range(0, 500, 2):
            os.unlink(at('many', f'name{i:04}'))
        for i in range(50):
            put(at('many', f'more{i}'))
        seen += [e.name for e in scan]
    check('no name twice in one scan', len(seen), len(set(seen)))
    odd = {f'name{i:04}' for i in range(1, 500, 2)}
    check('names that stayed are all in the scan', odd - set(seen), set())
    for entry in os.scandir(at('many')):
        if entry.inode() != os.stat(entry.path).st_ino:
            fail(f'd_ino of {entry.name}')
            break
    check('"." and ".."', os.stat(at('many', '.')).st_ino, os.stat(at('many')).st_ino)


def dns_answers():
    """Whether the first name server answers at all; without one nothing is known of a cell."""
    server = '127.0.0.1'
    if os.path.exists('/etc/resolv.conf'):
        found = [line.split()[1] for line in get('/etc/resolv.conf').decode().splitlines() if line.startswith('nameserver')]
        server = found[0] if found else server
    query = b'\0\1\1\0\0\1\0\0\0\0\0\0\2no\4such\0\0\1\0\1'
    with socket.socket(socket.AF_INET6 if ':' in server else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        try:
            s.connect((server, 53))
            s.send(query)
            return len(s.recv(1000)) > 0
        except OSError:
            return False


def cells():
    check('the dynamic root', {'test.example', '.test.example', '@cell', '.@cell'} <= set(os.listdir(mount)))
    check('@cell', os.readlink(os.path.join(mount, '@cell')), 'test.example')
    for name in ('HEAD', '.git', '.Trash', 'test'):
        refused(f'no cell {name}', errno.ENOENT, os.stat, os.path.join(mount, name))
    refused('no cell no.such', errno.ENOENT if dns_answers() else errno.ETIMEDOUT, os.stat, os.path.join(mount, 'no.such'))
    refused('mkdir in the dynamic root', errno.EROFS, os.mkdir, os.path.join(mount, 'dir'))
    refused('a file in the dynamic root', errno.EROFS, os.open, os.path.join(mount, 'file'), os.O_CREAT | os.O_WRONLY)
    point = os.path.join(mount, 'test.example', 'work')
    check('a mount point is a directory', stat.S_ISDIR(os.lstat(point).st_mode))
    before = os.lstat(point).st_ino
    os.listdir(point)
    check('its inode stays when it is entered', os.stat(point).st_ino, before)
    refused('rmdir of a mount point', errno.EBUSY, os.rmdir, point)
    refused('rename into another volume', errno.EXDEV, os.rename, at('a'), os.path.join(mount, '.test.example', 'a'))
    os.mkdir(at('amd64_linux26'))
    put(at('amd64_linux26', 'program'), b'for this machine')
    if os.uname().machine == 'x86_64':
        check('@sys', get(at('@sys', 'program')), b'for this machine')
        put(at('tool.amd64_linux26'), b'suffix')
        check('.@sys', get(at('tool.@sys')), b'suffix')


def locks():
    with open(at('locked'), 'w+b') as a, open(at('locked'), 'r+b') as b:
        fcntl.flock(a, fcntl.LOCK_EX)
        refused('a second lock', errno.EAGAIN, fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there = os.path.join(other, 'test.example', 'rw', 'table', 'locked')
        with open(there, 'r+b') as c:
            refused('a lock in another mount', errno.EAGAIN, fcntl.flock, c, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(a, fcntl.LOCK_UN)
            fcntl.flock(c, fcntl.LOCK_EX | fcntl.LOCK_NB)
            refused('a lock that another mount has', errno.EAGAIN, fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(at('locked'), 'r+b') as a:
        fcntl.lockf(a, fcntl.LOCK_EX, 10, 0)
        child = os.fork()
        if not child:
            with open(at('locked'), 'r+b') as b:
                try:
                    fcntl.lockf(b, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5)
                except OSError:
                    fcntl.lockf(b, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10)
                    os._exit(0)
            os._exit(1)
        check('ranges', os.waitpid(child, 0)[1], 0)


def main():
    os.mkdir(root)
    os.umask(0o022)
    for table in (files, open_while_removed, names, attributes, directories, cells, locks):
        print(table.__name__)
        table()
    return 1 if failures else 0


sys.exit(main())
