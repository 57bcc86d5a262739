# SPDX-License-Identifier: BSD-2-Clause
# While the server is stopped: processes that wait for it can be killed, signals that they handle do not end their operations,
# and the file system can be unmounted.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mkdir -p "$work/cold"
for d in d1 d2 d3 d4 d5; do
	mkdir "$work/cold/$d"
	echo a > "$work/cold/$d/a"
	ln -s a "$work/cold/$d/link"
done
head -c 3000000 /dev/zero > "$work/cold/big"
"$afscp" -q -s "$where" put -r "$work/cold" work: || fail "afscp put"
"$afscp" -q -s "$where" put "$work/cold/big" work:unread || fail "afscp put"
mount_afs mnt
timeout -k 1 700 "$python" "$top_srcdir/src/tests/rxafs/killed.py" "$work/mnt/test.example/rw" "$server" || fail "killed.py"

# Signals that a program handles: no operation ends with EINTR.
timeout -k 1 300 "$python" - "$work/mnt/test.example/rw/signals" <<'END' || fail "an operation ended by a signal that is handled"
import os, signal, sys
root = sys.argv[1]
signal.signal(signal.SIGALRM, lambda number, frame: None)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
os.mkdir(root)
for i in range(100):
    fd = os.open(f'{root}/{i}', os.O_CREAT | os.O_EXCL | os.O_RDWR)
    os.write(fd, b'x' * 5000)
    os.close(fd)
    os.rename(f'{root}/{i}', f'{root}/r{i}')
    os.stat(f'{root}/r{i}')
    os.listdir(root)
for i in range(100):
    os.unlink(f'{root}/r{i}')
os.rmdir(root)
signal.setitimer(signal.ITIMER_REAL, 0)
END

# Unmounting while the server is away. Reads of a process that was killed are in progress: the kernel then tells nothing of the
# end of its descriptor.
ls "$work/mnt/test.example/work/tree" > "$work/list"
stat "$work/mnt/test.example/work/unread" > "$work/stat"
kill -STOP "$server"
cat "$work/mnt/test.example/work/unread" > "$work/bytes" 2> /dev/null &
reader=$!
wait_until 60 grep -q folio_wait "/proc/$reader/wchan" || fail "a read does not wait for its server"
kill -9 "$reader"
wait "$reader" 2> /dev/null
begin=$(date +%s%N)
timeout 20 umount "$work/mnt" || fail "umount ended with $?"
wait_until 20 eval '! kill -0 "$daemon" 2> /dev/null' || fail "the daemon of an unmounted file system is still there after 20 s"
wait "$daemon" || fail "rxafs ended with $?"
echo "unmounted and ended within $((($(date +%s%N) - begin) / 1000000)) ms, without a server"
kill -CONT "$server"

# And with it.
mount_afs again
ls "$work/again/test.example/work/tree" > "$work/list2"
cmp "$work/list" "$work/list2" || fail "another list after the second mount"
begin=$(date +%s%N)
unmount_afs again "$daemon"
echo "unmounted and ended within $((($(date +%s%N) - begin) / 1000000)) ms"
result
