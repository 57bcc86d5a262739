# SPDX-License-Identifier: BSD-2-Clause
# flock() of processes at two mounts: one at a time, and each sees what the one before has written.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs one
first=$daemon
mount_afs two
second=$daemon
timeout -k 1 300 "$python" "$top_srcdir/src/tests/rxafs/locks.py" "$work/one/.test.example/rw" "$work/two/.test.example/rw" ||
	fail "locks.py"
unmount_afs one "$first"
unmount_afs two "$second"
result
