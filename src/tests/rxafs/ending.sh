# SPDX-License-Identifier: BSD-2-Clause
# The end of the daemon by a signal while processes hold a lock, wait for it, have files open, and wait for a server.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell

# end_by_term SECONDS: the daemon ends with what was written stored.
end_by_term() {
	kill -TERM "$daemon"
	wait_until "$1" sh -c "! kill -0 $daemon 2> /dev/null" || fail "$2: the daemon did not end in $1 s"
	wait "$daemon"
	status=$?
	[ $status -eq "${3:-0}" ] || fail "$2: rxafs ended with $status"
	mountpoint -q "$work/mnt" && fail "$2: it is still mounted"
}

# A process holds a lock with something written, three wait for it, and one has a directory open.
mount_afs mnt
"$python" - "$work/mnt/.test.example/rw/file" "$work/ready" <<'END' &
import fcntl, os, sys, time
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(f, fcntl.LOCK_EX)
os.write(f, b'written under the lock')
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        g = os.open(sys.argv[1], os.O_RDWR)
        try:
            fcntl.flock(g, fcntl.LOCK_EX)
        except OSError:
            pass
        os._exit(0)
    children.append(child)
d = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
def waits(child):
    with open(f'/proc/{child}/syscall') as s:
        return s.read().startswith('73 ')
def sleeps(child):
    with open(f'/proc/{child}/stat') as s:
        return s.read().rsplit(')', 1)[1].split()[0] in 'SD'
end = time.monotonic() + 60
while not all(sleeps(c) for c in children) and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(0.5)
open(sys.argv[2], 'w').close()
for c in children:
    os.waitpid(c, 0)
END
holder=$!
wait_until 60 test -e "$work/ready" || fail "the processes did not start"
end_by_term 30 "a lock with waiters"
wait_until 30 sh -c "! kill -0 $holder 2> /dev/null" || fail "the processes did not end"
wait "$holder" || fail "the processes ended with $?"
mount_afs mnt
[ "$(cat "$work/mnt/.test.example/rw/file")" = 'written under the lock' ] || fail "what was written is lost"

# Nobody uses it: soon.
begin=$(date +%s%N)
end_by_term 30 "nobody uses it"
echo "ended within $((($(date +%s%N) - begin) / 1000000)) ms"

# Processes wait for a server that is silent.
mount_afs mnt
ls "$work/mnt/.test.example/rw" > /dev/null
kill -STOP "$server"
for i in 1 2 3; do
	stat "$work/mnt/test.example/work/$i" > /dev/null 2>&1 &
	waiting="${waiting:-} $!"
	mkdir "$work/mnt/.test.example/rw/$i" > /dev/null 2>&1 &
	waiting="$waiting $!"
done
sleep 0.5
end_by_term 30 "processes wait for a server"
for pid in $waiting; do
	wait_until 30 sh -c "! kill -0 $pid 2> /dev/null" || fail "a process still waits"
done
kill -CONT "$server"
result
