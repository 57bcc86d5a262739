# SPDX-License-Identifier: BSD-2-Clause
"""System calls on AFS and on a local file system: the same results, except for those of DIFFERENT. semantics.py DIR LOCAL
[NAME...]: results that are left out."""

import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import time

LINUX = [int(n) for n in os.uname().release.split('-')[0].split('.')[:2]]
# What AFS, or this client, does otherwise: doc/client.md tells why.
DIFFERENT = {
    'link into another directory': 'EXDEV',
    'a link of it': 'ENOENT',
    'FIFO': 'EPERM', 'device': 'EPERM', 'socket': 'EPERM',
    'O_TMPFILE': 'EOPNOTSUPP',
    'fallocate': 'EOPNOTSUPP',
    'user attribute': 'EOPNOTSUPP', 'no attribute': 'EOPNOTSUPP',
    'exchange': 'EINVAL',
    'a handle': 'EOPNOTSUPP' if LINUX >= [6, 8] else 'a handle',
    'link to a symbolic link': 'EPERM',
    'set-ID and sticky bits': 0o755,
    'atime alone': 0,
    'nanoseconds': 2000000000,
    'remove a folder in which a removed file is open': 'ENOTEMPTY',
    'a long symbolic link': 'ENAMETOOLONG',
    'size of a directory': 'whole KiB',
    'mtime of a symbolic link': 'as set',
}
libc = ctypes.CDLL(None, use_errno=True)


class Case:
    """The results of one table on one file system, in order."""

    def __init__(self, root):
        self.root, self.results = root, {}

    def at(self, *names):
        return os.path.join(self.root, *names)

    def note(self, what, result):
        assert what not in self.results, what
        self.results[what] = result

    def do(self, what, fn, *args, **options):
        """Notes the value, or the name of the error."""
        try:
            result = fn(*args, **options)
        except OSError as e:
            result = errno.errorcode[e.errno].replace('ENOTSUP', 'EOPNOTSUPP').replace('EOPEOPNOTSUPP', 'EOPNOTSUPP')
        self.note(what, result)
        return result

    def put(self, name, data=b''):
        with open(self.at(name), 'wb') as f:
            f.write(data)

    def get(self, name):
        with open(self.at(name), 'rb') as f:
            return f.read()


def opened(path, flags, mode=0o666):
    os.close(os.open(path, flags, mode))


def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), '')
    return result


def wrong_paths(c):
    """Each call with each path that leads nowhere."""
    c.put('file', b'x')
    os.mkdir(c.at('dir'))
    os.symlink('loop', c.at('loop'))
    os.symlink('nowhere', c.at('dangling'))
    calls = {
        'stat': os.stat, 'open': lambda p: opened(p, os.O_RDONLY), 'create': lambda p: opened(p, os.O_CREAT | os.O_WRONLY),
        'mkdir': os.mkdir, 'rmdir': os.rmdir, 'unlink': os.unlink, 'truncate': lambda p: os.truncate(p, 1),
        'chmod': lambda p: os.chmod(p, 0o644), 'chown': lambda p: os.chown(p, os.getuid(), -1), 'utime': os.utime,
        'symlink': lambda p: os.symlink('x', p), 'readlink': os.readlink, 'chdir': os.chdir, 'listdir': os.listdir,
        'link from': lambda p: os.link(p, c.at('dir', 'l')), 'link to': lambda p: os.link(c.at('file'), p),
        'rename from': lambda p: os.rename(p, c.at('dir', 'r')), 'rename to': lambda p: os.rename(c.at('dir'), p),
        'mknod': lambda p: os.mknod(p, 0o644 | stat.S_IFREG), 'statvfs': os.statvfs,
    }
    for path in ('nothing/x', 'file/x', 'file/', 'loop', 'loop/x', '', 'n' * 256, 'n' * 256 + '/x', 'dangling/x', 'dir/nothing/x', 'dir/../nothing/x'):
        for name, fn in calls.items():
            if path == '' or not (path == 'loop' and name in ('unlink', 'readlink', 'rename from', 'link from', 'rename to')):
                # An empty path is no path below the root.
                c.do(f'{name} of "{path[:10]}" {len(path)}', lambda: fn(c.at(path) if path else '') and None)
    os.chdir('/')
    c.do('what is left', lambda: sorted(os.listdir(c.root)))


def existing(c):
    for kind, make in {'file': lambda p: opened(p, os.O_CREAT | os.O_RDWR), 'dir': os.mkdir, 'link': lambda p: os.symlink('file', p)}.items():
        make(c.at(kind))
    c.put('other')
    for kind in ('file', 'dir', 'link'):
        p = c.at(kind)
        for name, fn in {'mkdir': lambda: os.mkdir(p), 'symlink': lambda: os.symlink('x', p), 'link': lambda: os.link(c.at('other'), p),
                         'mknod': lambda: os.mknod(p, 0o644 | stat.S_IFREG), 'exclusive': lambda: opened(p, os.O_CREAT | os.O_EXCL),
                         'as a directory': lambda: opened(p, os.O_RDONLY | os.O_DIRECTORY), 'not followed': lambda: opened(p, os.O_RDONLY | os.O_NOFOLLOW),
                         'for writing': lambda: opened(p, os.O_WRONLY), 'created': lambda: opened(p, os.O_CREAT | os.O_RDONLY),
                         'rmdir': lambda: kind == 'dir' or os.rmdir(p), 'unlink': lambda: kind != 'dir' or os.unlink(p),
                         'truncate': lambda: os.truncate(p, 10), 'readlink': lambda: os.readlink(p), 'list': lambda: os.listdir(p),
                         'with a slash': lambda: os.stat(p + '/') and None, 'with a dot': lambda: os.stat(p + '/.') and None,
                         'rmdir of its dot': lambda: os.rmdir(p + '/.'), 'rmdir of its parent': lambda: os.rmdir(p + '/..'),
                         'unlink of its dot': lambda: os.unlink(p + '/.'), 'mkdir of its dot': lambda: os.mkdir(p + '/.'),
                         'rename of its dot': lambda: os.rename(p + '/.', c.at('x')), 'rename to its parent': lambda: os.rename(c.at('other'), p + '/..'),
                         'create with a slash': lambda: opened(p + '/', os.O_CREAT | os.O_WRONLY)}.items():
            c.do(f'{name}: {kind}', fn)
    c.do('mknod of a regular file', lambda: os.mknod(c.at('made'), 0o600 | stat.S_IFREG))
    c.do('its mode', lambda: oct(os.stat(c.at('made')).st_mode))
    c.do('mkdir with a slash', lambda: os.mkdir(c.at('slash') + '/'))
    c.do('rmdir with a slash', lambda: os.rmdir(c.at('slash') + '/'))
    c.do('FIFO', os.mkfifo, c.at('fifo'))
    c.do('device', os.mknod, c.at('device'), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as s:
        os.chdir(c.root)
        c.do('socket', lambda: s.bind('socket'))
        os.chdir('/')
    c.do('O_TMPFILE', lambda: opened(c.root, os.O_TMPFILE | os.O_RDWR))


def renames(c):
    kinds = ('file', 'link', 'empty', 'full', 'none')

    def make(name, kind):
        if kind == 'file':
            c.put(name, name.encode())
        elif kind == 'link':
            os.symlink('target of ' + name, c.at(name))
        elif kind != 'none':
            os.mkdir(c.at(name))
            if kind == 'full':
                c.put(name + '/in')

    def shown(name):
        p = c.at(name)
        if os.path.islink(p):
            return os.readlink(p)
        return sorted(os.listdir(p)) if os.path.isdir(p) else c.get(name) if os.path.exists(p) else None

    for one in kinds:
        for two in kinds:
            for place in ('', 'sub/'):
                if place and not os.path.exists(c.at('sub')):
                    os.mkdir(c.at('sub'))
                n, m = f'{one}-{two}-{place[:3]}', f'{place}to-{one}-{two}'
                make(n, one)
                make(m, two)
                c.do(f'rename {one} to {two} {place}', os.rename, c.at(n), c.at(m))
                c.note(f'after rename {one} to {two} {place}', (shown(n), shown(m)))
    c.do('into itself', os.rename, c.at('sub'), c.at('sub', 'x'))
    c.do('to its own name', os.rename, c.at('sub'), c.at('sub'))
    c.put('a', b'a')
    os.link(c.at('a'), c.at('b'))
    c.do('to a second name', os.rename, c.at('a'), c.at('b'))
    c.note('both names are left', (os.path.exists(c.at('a')), os.stat(c.at('b')).st_nlink))
    c.do('without replacing', lambda: call(libc.renameat2(-100, c.at('a').encode(), -100, c.at('b').encode(), 1)))
    c.do('exchange', lambda: call(libc.renameat2(-100, c.at('a').encode(), -100, c.at('sub').encode(), 2)))
    c.note('links of a directory', os.stat(c.root).st_nlink)
    os.rename(c.at('sub'), c.at('sub2'))
    c.note('links after a rename', os.stat(c.root).st_nlink)
    os.mkdir(c.at('d1')), os.mkdir(c.at('d2')), os.rename(c.at('d1'), c.at('d2', 'd1'))
    c.note('links after a move', (os.stat(c.root).st_nlink, os.stat(c.at('d2')).st_nlink))


def links(c):
    c.put('f', b'text')
    os.mkdir(c.at('d'))
    c.do('link into another directory', os.link, c.at('f'), c.at('d', 'f'))
    c.do('a link of it', lambda: os.unlink(c.at('d', 'f')))
    c.do('link', os.link, c.at('f'), c.at('g'))
    c.note('count', [os.stat(c.at(n)).st_nlink for n in 'fg'])
    os.chmod(c.at('f'), 0o600)
    with open(c.at('g'), 'ab') as g:
        g.write(b' more')
    c.note('one file', (c.get('f'), stat.S_IMODE(os.stat(c.at('g')).st_mode)))
    c.do('link to a directory', os.link, c.at('d'), c.at('e'))
    os.symlink('f', c.at('s'))
    c.do('link to a symbolic link', lambda: os.link(c.at('s'), c.at('t'), follow_symlinks=False))
    os.unlink(c.at('f'))
    c.note('one is left', (os.stat(c.at('g')).st_nlink, c.get('g')))
    for text in ('x', '/', '..', 'a b', '\n', '#vol', '%vol.', 'x' * 1023, 'd/../g'):
        c.do(f'symlink {text[:9]!r} {len(text)}', os.symlink, text, c.at('sym'))
        c.do(f'readlink {text[:9]!r} {len(text)}', lambda: (os.readlink(c.at('sym')), os.lstat(c.at('sym')).st_size, os.unlink(c.at('sym'))))
    c.do('a long symbolic link', lambda: os.symlink('x' * 2000, c.at('sym2')))
    c.do('an empty one', os.symlink, '', c.at('sym3'))
    os.symlink('d', c.at('to-d'))
    c.do('rmdir of a link to a directory', os.rmdir, c.at('to-d'))
    c.do('mkdir over it', os.mkdir, c.at('to-d'))
    c.do('list through it', os.listdir, c.at('to-d'))
    os.symlink('made-through', c.at('to-new'))
    c.do('create through a link', opened, c.at('to-new'), os.O_CREAT | os.O_WRONLY)
    c.do('exclusively', opened, c.at('to-new'), os.O_CREAT | os.O_WRONLY | os.O_EXCL)
    c.do('it was made', lambda: os.path.exists(c.at('made-through')))
    for i in range(42):
        os.symlink(f'c{i + 1}', c.at(f'c{i}'))
    c.put('c42')
    c.do('42 links', os.stat, c.at('c0'))
    c.do('40 links', lambda: os.stat(c.at('c2')).st_size)


def removed(c):
    """Open files and folders without names."""
    fd = os.open(c.at('f'), os.O_CREAT | os.O_RDWR)
    os.write(fd, b'before')
    os.unlink(c.at('f'))
    c.do('links of a removed file', lambda: os.fstat(fd).st_nlink)
    c.do('read it', os.pread, fd, 10, 0)
    c.do('write it', os.pwrite, fd, b'after', 6)
    c.do('cut it', os.ftruncate, fd, 8)
    c.do('read it again', os.pread, fd, 20, 0)
    c.do('sync it', os.fsync, fd)
    c.put('f', b'new')
    c.do('both', lambda: (os.pread(fd, 20, 0), c.get('f')))
    os.close(fd)
    os.mkdir(c.at('d'))
    fd = os.open(c.at('d'), os.O_RDONLY)
    os.chdir(c.at('d'))
    c.do('rmdir of an open directory', os.rmdir, c.at('d'))
    c.do('its links', lambda: os.fstat(fd).st_nlink)
    c.do('its names', lambda: os.listdir(fd))
    c.do('create in it', lambda: opened('x', os.O_CREAT | os.O_RDWR))
    c.do('mkdir in it', lambda: os.mkdir('x'))
    c.do('stat of "."', lambda: os.stat('.').st_nlink)
    c.do('getcwd', os.getcwd)
    c.do('leave it', os.chdir, '..')
    os.chdir('/')
    os.close(fd)
    os.mkdir(c.at('d1')), os.mkdir(c.at('d2'))
    fd = os.open(c.at('d2'), os.O_RDONLY)
    c.do('rename over an open directory', os.rename, c.at('d1'), c.at('d2'))
    c.do('links of the replaced one', lambda: os.fstat(fd).st_nlink)
    os.close(fd)
    os.mkdir(c.at('held'))
    fd = os.open(c.at('held', 'f'), os.O_CREAT | os.O_RDWR)
    os.unlink(c.at('held', 'f'))
    c.do('names in a folder in which a removed file is open', lambda: os.listdir(c.at('held')))
    c.do('remove a folder in which a removed file is open', os.rmdir, c.at('held'))
    os.close(fd)
    c.put('g', b'old')
    c.put('h', b'new')
    fd = os.open(c.at('g'), os.O_RDONLY)
    os.rename(c.at('h'), c.at('g'))
    c.do('the replaced file', lambda: (os.pread(fd, 9, 0), os.fstat(fd).st_nlink, c.get('g')))
    os.close(fd)


def sizes(c):
    fd = os.open(c.at('f'), os.O_CREAT | os.O_RDWR)
    os.write(fd, b'0123456789')
    for length in (4, 4, 20, 0, 5000, 4096):
        c.do(f'ftruncate {length} {len(c.results)}', lambda: (os.ftruncate(fd, length), os.fstat(fd).st_size, os.pread(fd, 30, 0))[1:])
        c.do(f'truncate {length + 1} {len(c.results)}', lambda: (os.truncate(c.at('f'), length + 1), os.fstat(fd).st_size, os.pread(fd, 30, 0))[1:])
    c.do('a negative length', os.ftruncate, fd, -1)
    c.do('cut a directory', os.truncate, c.root, 0)
    ro = os.open(c.at('f'), os.O_RDONLY)
    c.do('cut by a descriptor for reading', os.ftruncate, ro, 0)
    c.do('write by a descriptor for reading', os.write, ro, b'x')
    os.close(ro)
    wo = os.open(c.at('f'), os.O_WRONLY)
    c.do('read by a descriptor for writing', os.read, wo, 1)
    os.close(wo)
    ap = os.open(c.at('f'), os.O_WRONLY | os.O_APPEND)
    os.ftruncate(fd, 3)
    c.do('append after a cut', lambda: (os.write(ap, b'end'), os.pread(fd, 100, 0)))
    c.do('pwrite with O_APPEND', lambda: (os.pwrite(ap, b'!', 0), os.pread(fd, 100, 0)))
    os.close(ap)
    c.do('behind the end', os.pread, fd, 10, 100000)
    c.do('a negative offset', os.pread, fd, 10, -5)
    c.do('seek before the beginning', os.lseek, fd, -1, os.SEEK_SET)
    c.do('seek to the end', os.lseek, fd, 0, os.SEEK_END)
    c.do('seek data', lambda: (os.lseek(fd, 0, os.SEEK_DATA), os.lseek(fd, 0, os.SEEK_HOLE)))
    c.do('seek data at the end', os.lseek, fd, os.fstat(fd).st_size, os.SEEK_DATA)
    c.do('fallocate', lambda: call(libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(100))))
    # What glibc does in its place.
    c.do('posix_fallocate', lambda: (os.posix_fallocate(fd, 0, 10000), os.fstat(fd).st_size)[1])
    out = os.open(c.at('copy'), os.O_CREAT | os.O_RDWR)
    c.do('sendfile', lambda: (os.sendfile(out, fd, 0, 5000), os.fstat(out).st_size))
    c.do('copy_file_range', lambda: (os.copy_file_range(fd, out, 100, 0, 20000), os.fstat(out).st_size, os.pread(out, 6, 20000)))
    r, w = os.pipe()
    c.do('splice', lambda: (os.splice(fd, w, 6, offset_src=0), os.splice(r, out, 6, offset_dst=0), os.pread(out, 6, 0)))
    c.do('readv and writev', lambda: (os.pwritev(fd, [b'ab', b'', b'cd'], 1), os.pread(fd, 6, 0)))
    for d in (fd, out, r, w):
        os.close(d)
    c.note('blocks', os.stat(c.at('copy')).st_blocks > 0)


def later_time(path, before):
    """Whether its time moves on with a change; the clock has ticked since."""
    return os.stat(path).st_mtime > before


def times(c):
    for n in ('w', 't', 'same', 'o', 'm', 'd', 'x'):
        c.put(n, b'data')
    c.put('empty')
    os.mkdir(c.at('dir'))
    for n in ('rm', 'mv', 'ln'):
        c.put('dir/' + n)
    sub = {}
    for n in ('create', 'mkdir', 'symlink', 'unlink', 'rename', 'link', 'rmdir'):
        os.mkdir(c.at('at-' + n))
        c.put(f'at-{n}/f')
        os.mkdir(c.at(f'at-{n}/d'))
        sub[n] = os.stat(c.at('at-' + n)).st_mtime
    fd = os.open(c.at('o'), os.O_RDWR)
    os.write(fd, b'unstored')
    start = max(os.stat(c.at(n)).st_mtime for n in ('w', 't', 'same', 'o', 'empty', 'm'))
    while time.time() < int(start) + 1.1:
        time.sleep(0.05)
    with open(c.at('w'), 'r+b') as f:
        f.write(b'X')
    c.do('mtime after a write', later_time, c.at('w'), start)
    os.truncate(c.at('t'), 1)
    c.do('mtime after a cut', later_time, c.at('t'), start)
    os.truncate(c.at('o'), 4)
    c.do('mtime after a cut of what was not stored', later_time, c.at('o'), start)
    os.close(fd)
    c.do('mtime after close', later_time, c.at('o'), start)
    opened(c.at('empty'), os.O_WRONLY | os.O_TRUNC)
    c.do('mtime after O_TRUNC of an empty file', later_time, c.at('empty'), start)
    with open(c.at('same'), 'r+b') as f:
        os.ftruncate(f.fileno(), 4)
    c.do('mtime after ftruncate to the same length', later_time, c.at('same'), start)
    with open(c.at('m'), 'r+b') as f, mmap.mmap(f.fileno(), 4) as m:
        m[0:1] = b'M'
        m.flush()
    c.do('mtime after a store by a map', later_time, c.at('m'), start)
    ctime = os.stat(c.at('x')).st_ctime
    os.chmod(c.at('x'), 0o600)
    c.do('ctime after chmod', lambda: os.stat(c.at('x')).st_ctime > ctime and not later_time(c.at('x'), start))
    opened(c.at('at-create', 'n'), os.O_CREAT | os.O_WRONLY)
    os.mkdir(c.at('at-mkdir', 'n'))
    os.symlink('x', c.at('at-symlink', 'n'))
    os.unlink(c.at('at-unlink', 'f'))
    os.rmdir(c.at('at-rmdir', 'd'))
    os.rename(c.at('at-rename', 'f'), c.at('at-rename', 'g'))
    os.link(c.at('at-link', 'f'), c.at('at-link', 'g'))
    for n, before in sub.items():
        c.do(f'mtime of the directory after {n}', later_time, c.at('at-' + n), before)
    os.utime(c.at('d'), (5, 1000000000))
    c.do('utime', lambda: os.stat(c.at('d')).st_mtime)
    os.utime(c.at('d'), ns=(0, 2000000000123456789))
    c.do('nanoseconds', lambda: os.stat(c.at('d')).st_mtime_ns // 10**9 if os.stat(c.at('d')).st_mtime_ns % 10**9 == 0 else 'kept')
    now = time.time()
    os.utime(c.at('d'))
    c.do('utime now', lambda: abs(os.stat(c.at('d')).st_mtime - now) < 5)
    os.utime(c.at('d'), (77, 88))
    c.do('atime alone', lambda: (call(libc.utimensat(-100, c.at('d').encode(), struct.pack('qqqq', 99, 0, 0, (1 << 30) - 2), 0)),
                                 os.stat(c.at('d')).st_mtime == 88 and os.stat(c.at('d')).st_atime == 99)[1])
    for when in (0, 1, 2**31 - 1, 2**31, 2**32 - 1):
        c.do(f'time {when}', lambda: (os.utime(c.at('d'), (when, when)), os.stat(c.at('d')).st_mtime)[1])
    os.symlink('d', c.at('s'))
    os.utime(c.at('s'), (3, 4), follow_symlinks=False)
    c.do('mtime of a symbolic link', lambda: 'as set' if os.lstat(c.at('s')).st_mtime == 4 else os.lstat(c.at('s')).st_mtime)


def file_handle(path):
    """Of name_to_handle_at(); a file system without handles refuses."""
    handle, mount = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136), ctypes.c_int()
    call(libc.name_to_handle_at(-100, path.encode(), handle, ctypes.byref(mount), 0))
    return 'a handle'


def modes(c):
    c.put('f')
    for mode in (0o777, 0o640, 0o400, 0o000, 0o755):
        c.do(f'mode {mode:o}', lambda: (os.chmod(c.at('f'), mode), stat.S_IMODE(os.stat(c.at('f')).st_mode))[1])
    c.do('set-ID and sticky bits', lambda: (os.chmod(c.at('f'), 0o7755), stat.S_IMODE(os.stat(c.at('f')).st_mode))[1])
    before = os.umask(0o027)
    opened(c.at('made'), os.O_CREAT | os.O_WRONLY)
    os.mkdir(c.at('dir'))
    os.umask(before)
    c.do('modes with a umask', lambda: [oct(os.stat(c.at(n)).st_mode) for n in ('made', 'dir')])
    fd = os.open(c.at('late'), os.O_CREAT | os.O_RDWR, 0o444)
    c.do('write to a file made with 0444', os.write, fd, b'text')
    os.close(fd)
    c.do('what was written', c.get, 'late')
    c.do('a handle', file_handle, c.at('f'))
    c.do('chown to the same', os.chown, c.at('f'), os.stat(c.at('f')).st_uid, os.stat(c.at('f')).st_gid)
    c.do('chown to nobody', os.chown, c.at('f'), -1, -1)
    c.do('user attribute', os.setxattr, c.at('f'), 'user.x', b'y')
    c.do('no attribute', os.getxattr, c.at('f'), 'user.none')
    c.put('script', b'#!/bin/sh\necho ran $1\n')
    c.do('execute without x', lambda: subprocess.run([c.at('script'), 'it'], capture_output=True).stdout)
    os.chmod(c.at('script'), 0o755)
    c.do('execute', lambda: subprocess.run([c.at('script'), 'it'], capture_output=True).stdout)
    shutil.copy('/bin/true', c.at('program'))
    c.do('execute a program', lambda: subprocess.run([c.at('program')]).returncode)
    c.do('size of a directory', lambda: 'whole KiB' if os.stat(c.root).st_size % 1024 == 0 and os.stat(c.root).st_size else 'other')


def direct(c):
    """O_DIRECT, maps and ordinary reads see one content."""
    fd = os.open(c.at('f'), os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    plain = os.open(c.at('f'), os.O_RDWR)
    page = mmap.mmap(-1, 4096)
    os.ftruncate(fd, 12288)
    with mmap.mmap(fd, 12288) as m:
        m[4096:4100] = b'mmap'
        m.flush()
        c.do('direct read of what a map wrote', lambda: (os.preadv(fd, [page], 4096), page[:4]))
        page[:6] = b'direct'
        c.do('direct write', os.pwritev, fd, [page], 8192)
        c.do('seen by the map', lambda: m[8192:8198])
        c.do('seen by read', os.pread, plain, 6, 8192)
        os.pwrite(plain, b'plain', 0)
        c.do('direct read of what was written', lambda: (os.preadv(fd, [page], 0), page[:5]))
        c.do('the map of what was written', lambda: m[:5])
    os.close(fd)
    ap = os.open(c.at('f'), os.O_WRONLY | os.O_APPEND)
    c.do('read before an append', os.pread, plain, 9, 12288)
    os.write(ap, b'appended')
    c.do('read of what was appended', os.pread, plain, 9, 12288)
    os.close(ap)
    ap = os.open(c.at('f'), os.O_RDWR | os.O_APPEND)
    c.do('a map of a file that is open for appending', lambda: mmap.mmap(ap, 4096)[:5])
    os.close(ap)
    os.close(plain)


def range_lock(kind, start=0, length=0):
    return struct.pack('hhqqi4x', kind, 0, start, length, 0)


def refused_lock(fd, fn):
    try:
        fn(fd)
    except OSError as e:
        return errno.errorcode[e.errno]
    return 'got it'


def other_process(path, fn):
    """The result of a lock by another process."""
    r, w = os.pipe()
    if not os.fork():
        fd = os.open(path, os.O_RDWR)
        os.write(w, refused_lock(fd, fn).encode())
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        result = f.read()
    os.wait()
    return result


def locks(c):
    ofd_set = 37
    exclusive = lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5)
    p = c.at('f')
    c.put('f', b'0' * 100)
    a, b = os.open(p, os.O_RDWR), os.open(p, os.O_RDWR)
    fcntl.fcntl(a, ofd_set, range_lock(fcntl.F_WRLCK, 0, 10))
    own = lambda fd: fcntl.fcntl(fd, ofd_set, range_lock(fcntl.F_WRLCK, 0, 10)) and None
    c.note('a lock of another description', refused_lock(b, own))
    twin = os.dup(a)
    os.close(a)
    c.note('it stays while there is a second descriptor', refused_lock(b, own))
    os.close(twin)
    for _ in range(100):
        result = refused_lock(b, own)
        if result == 'got it':
            break
        time.sleep(0.02)
    c.note('it goes with the description', result)
    os.close(b)
    a = os.open(p, os.O_RDONLY)
    fcntl.lockf(a, fcntl.LOCK_SH | fcntl.LOCK_NB, 10, 5)
    c.note('a lock for reading', other_process(p, exclusive))
    os.close(a)
    for _ in range(100):
        result = other_process(p, exclusive)
        if result == 'got it':
            break
        time.sleep(0.02)
    c.note('it goes with a descriptor for reading', result)
    a, b = os.open(p, os.O_RDWR), os.open(p, os.O_RDWR)
    exclusive(a)
    os.close(b)
    c.note('any close takes locks of the process', other_process(p, exclusive))
    exclusive(a)
    fcntl.lockf(a, fcntl.LOCK_UN, 2, 8)
    c.note('a hole in a range', [other_process(p, lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, n, at)) for n, at in ((2, 8), (3, 5), (3, 11))])
    fcntl.flock(a, fcntl.LOCK_SH)
    c.note('flock beside ranges', other_process(p, lambda fd: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)))
    c.note('flock shared', other_process(p, lambda fd: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)))
    c.do('upgrade', fcntl.flock, a, fcntl.LOCK_EX | fcntl.LOCK_NB)
    c.note('after the upgrade', other_process(p, lambda fd: fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)))
    os.close(a)


def listings(c):
    for i in range(300):
        c.put(f'n{i}')
    fd = os.open(c.root, os.O_RDONLY)
    c.do('names', lambda: len(os.listdir(fd)))
    os.unlink(c.at('n7'))
    c.put('new')
    c.do('names again by the same descriptor', lambda: (len(os.listdir(fd)), 'new' in os.listdir(fd), 'n7' in os.listdir(fd)))
    with os.scandir(c.root) as scan:
        for entry in scan:
            os.unlink(entry.path)
    c.do('names after all were removed in a scan', os.listdir, fd)
    os.close(fd)


TABLES = (wrong_paths, existing, renames, links, removed, sizes, times, modes, direct, locks, listings)


def main():
    wrong = 0
    os.umask(0o022)
    for table in TABLES:
        found = []
        for base in sys.argv[1:3]:
            root = os.path.join(base, table.__name__)
            os.mkdir(root)
            found.append(Case(root))
            table(found[-1])
        afs, local = (c.results for c in found)
        bad = [k for k in local if afs[k] != DIFFERENT.get(k, local[k]) and k not in sys.argv[3:]]
        print(f'{table.__name__}: {len(local)} results')
        for k in bad:
            print(f'FAIL: {k}: {afs[k]!r:.100}, not {DIFFERENT.get(k, local[k])!r:.100}')
        wrong += len(bad)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
