# SPDX-License-Identifier: BSD-2-Clause
# flock() of processes at two mounts: one at a time, and each sees what the one before has written. And a lock lasts until its own end.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
head -c 100000 /dev/zero > "$work/zeros"
"$afscp" -q -s "$where" put "$work/zeros" work:unread || fail "afscp put"
mount_afs one
first=$daemon
mount_afs two
second=$daemon
timeout -k 1 300 "$python" "$top_srcdir/src/tests/rxafs/locks.py" "$work/one/.test.example/rw" "$work/two/.test.example/rw" ||
	fail "locks.py"
mkdir "$work/control"
timeout -k 1 300 "$python" "$top_srcdir/src/tests/rxafs/reopened.py" "$work/one" "$work/one/.test.example/rw/unread" "$server" "$work/control" ||
	fail "reopened.py"
umount "$work/control" 2> /dev/null
unmount_afs one "$first"
unmount_afs two "$second"
result
