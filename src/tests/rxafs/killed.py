# SPDX-License-Identifier: BSD-2-Clause
"""Processes that wait for a server that does not answer can be killed. killed.py ROOT SERVER_PID"""

import fcntl
import os
import signal
import sys
import time

root, server = sys.argv[1], int(sys.argv[2])
failures = 0
GONE = 20  # seconds in which a killed process ends; what waits for the server waits for 60


def at(*names):
    return os.path.join(root, *names)


def fail(text):
    global failures
    failures += 1
    print('FAIL:', text)


def write_file(path, data=b'contents'):
    with open(path, 'wb') as f:
        f.write(data)


def wait_gone(child, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    return False


def stop_server():
    """Until each of its threads has stopped."""
    os.kill(server, signal.SIGSTOP)
    for _ in range(30000):
        states = []
        for task in os.listdir(f'/proc/{server}/task'):
            with open(f'/proc/{server}/task/{task}/stat', encoding='utf-8', errors='replace') as f:
                states.append(f.read().rsplit(')', 1)[1].split()[0])
        if set(states) == {'T'}:
            return
        time.sleep(0.002)
    fail('the server does not stop')


def kill_in(name, prepare, operation, number=signal.SIGKILL):
    """prepare() while the server answers, in the child; its result goes to operation()."""
    ready_r, ready_w = os.pipe()
    go_r, go_w = os.pipe()
    child = os.fork()
    if not child:
        given = prepare()
        os.write(ready_w, b'1')
        os.read(go_r, 1)
        try:
            operation(given)
        except OSError:
            os._exit(1)
        os._exit(0)
    os.read(ready_r, 1)
    stop_server()
    os.write(go_w, b'1')
    time.sleep(0.3)
    try:
        if os.waitpid(child, os.WNOHANG)[0]:
            fail(f'{name}: did not wait for the server')
            return
        os.kill(child, number)
        begin = time.monotonic()
        if not wait_gone(child, GONE):
            fail(f'{name}: the process was still there after {GONE} s')
            os.kill(server, signal.SIGCONT)
            os.waitpid(child, 0)
        else:
            print(f'{name}: gone after {time.monotonic() - begin:.3f} s')
    finally:
        os.kill(server, signal.SIGCONT)
        for fd in (ready_r, ready_w, go_r, go_w):
            os.close(fd)


def state_of(child):
    with open(f'/proc/{child}/stat', encoding='utf-8', errors='replace') as f:
        return f.read().rsplit(')', 1)[1].split()[0]


def fork_doing(operation, *args):
    child = os.fork()
    if child:
        return child
    try:
        operation(*args)
    except OSError:
        pass
    os._exit(0)


def await_states(children, letters):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if all(state_of(child) in letters for child in children):
            return True
        time.sleep(0.01)
    return False


def kill_behind_a_lock():
    """A new name waits for the server with the kernel's lock of its directory. Others that want the lock can be killed."""
    write_file(at('tree', 'sub', 'one'))
    for _ in range(3):
        os.listdir(at('tree', 'sub'))
        os.stat(at('tree', 'sub', 'one'))
        os.path.exists(at('tree', 'sub', 'other'))
    stop_server()
    holder = fork_doing(write_file, at('tree', 'sub', 'new'))
    await_states([holder], 'SD')
    time.sleep(0.3)
    others = [fork_doing(os.stat, at('tree', 'sub', 'other')), fork_doing(os.mkdir, at('tree', 'sub', 'directory')),
              fork_doing(os.stat, at('tree', 'sub', 'another'))]
    await_states(others, 'SD')
    for child in reversed(others):
        os.kill(child, signal.SIGKILL)
        begin = time.monotonic()
        if not wait_gone(child, GONE):
            fail(f'a process behind a lock was still there after {GONE} s')
        else:
            print(f'behind a lock: gone after {time.monotonic() - begin:.3f} s')
    os.kill(server, signal.SIGCONT)
    os.waitpid(holder, 0)


def open_written(name):
    fd = os.open(at(name), os.O_RDWR | os.O_CREAT)
    os.write(fd, b'x' * 100000)
    return fd


def nothing():
    return None


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    os.makedirs(at('tree', 'sub'), exist_ok=True)
    for i in range(20):
        write_file(at('tree', f'f{i}'), b'x' * 10000)
        os.mkdir(at('tree', 'sub', f'd{i}'))
        write_file(at('tree', 'sub', f'd{i}', 'in'))
    # What was written here is in the cache: directories that another client has made are not.
    print('-- changes')
    kill_in('mkdir', nothing, lambda _: os.mkdir(at('tree', 'new')))
    kill_in('create', nothing, lambda _: write_file(at('tree', 'made')))
    kill_in('unlink', nothing, lambda _: os.unlink(at('tree', 'f1')))
    kill_in('rmdir', nothing, lambda _: os.rmdir(at('tree', 'sub', 'd9')))
    kill_in('rename', nothing, lambda _: os.rename(at('tree', 'f2'), at('tree', 'renamed')))
    kill_in('link', nothing, lambda _: os.link(at('tree', 'f3'), at('tree', 'linked')))
    kill_in('symlink', nothing, lambda _: os.symlink('f3', at('tree', 'symlinked')))
    kill_in('chmod', nothing, lambda _: os.chmod(at('tree', 'f4'), 0o600))
    kill_in('truncate', nothing, lambda _: os.truncate(at('tree', 'f5'), 5))
    kill_behind_a_lock()
    print('-- contents')
    kill_in('fsync', lambda: open_written('synced'), os.fsync)
    kill_in('close', lambda: open_written('closed'), os.close)
    kill_in('close, terminated', lambda: open_written('closed2'), os.close, signal.SIGTERM)
    kill_in('statfs', nothing, lambda _: os.statvfs(at('tree')))
    kill_in('cold stat', nothing, lambda _: os.stat(at('cold', 'd1', 'a')))
    kill_in('cold list', nothing, lambda _: os.listdir(at('cold', 'd2')))
    kill_in('cold read', lambda: os.open(at('cold', 'big'), os.O_RDONLY), lambda fd: os.read(fd, 100000))
    kill_in('cold open', nothing, lambda _: os.open(at('cold', 'd3', 'a'), os.O_RDONLY))
    kill_in('cold readlink', nothing, lambda _: os.readlink(at('cold', 'd4', 'link')))
    kill_in('acl', nothing, lambda _: os.getxattr(at('tree'), 'afs.acl'))
    kill_in('flock', lambda: os.open(at('tree', 'f7'), os.O_RDWR), lambda fd: fcntl.flock(fd, fcntl.LOCK_EX))
    print('-- two in one directory')
    first = os.fork()
    if not first:
        # Until the server is stopped.
        signal.sigwait([signal.SIGUSR1])
        os.path.exists(at('cold', 'd5', 'a'))
        os._exit(0)
    stop_server()
    os.kill(first, signal.SIGUSR1)
    second = os.fork()
    if not second:
        time.sleep(0.2)
        os.path.exists(at('cold', 'd5', 'link'))
        os._exit(0)
    time.sleep(0.6)
    os.kill(second, signal.SIGKILL)
    if not wait_gone(second, GONE):
        fail(f'a process that looks up a second name of a directory was still there after {GONE} s')
    os.kill(first, signal.SIGKILL)
    os.kill(server, signal.SIGCONT)
    os.waitpid(first, 0)
    print('-- locks')
    fd = os.open(at('tree', 'f6'), os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX)
    child = os.fork()
    if not child:
        mine = os.open(at('tree', 'f6'), os.O_RDWR)
        fcntl.lockf(mine, fcntl.LOCK_EX)
        os._exit(0)
    time.sleep(0.3)
    os.kill(child, signal.SIGKILL)
    if not wait_gone(child, GONE):
        fail(f'a process that waits for a lock was still there after {GONE} s')
    os.close(fd)
    print('-- afterwards')
    write_file(at('tree', 'last'))
    if open(at('tree', 'last'), 'rb').read() != b'contents':
        fail('the file system does not work afterwards')
    # The lock that the killed process may have got is given back.
    fd = os.open(at('tree', 'f7'), os.O_RDWR)
    for _ in range(600):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.1)
    else:
        fail('the lock of a killed process stays')
    os.close(fd)
    # What had been written before a close that was killed is stored in the background.
    for name in ('closed', 'closed2'):
        for _ in range(600):
            if os.stat(at(name)).st_size == 100000:
                break
            time.sleep(0.1)
        else:
            fail(f'{name} has {os.stat(at(name)).st_size} bytes')
    return 1 if failures else 0


sys.exit(main())
