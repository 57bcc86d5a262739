# SPDX-License-Identifier: BSD-2-Clause
# A server holds an answer back until another client has heard of the change, or 5 s: processes that are killed meanwhile, here and
# elsewhere, do not let the change fail.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs near
first=$daemon
mount_afs far
timeout -k 1 500 "$python" "$top_srcdir/src/tests/rxafs/heldback.py" "$work/near/test.example/rw" "$work/far/test.example/rw" "$daemon" ||
	fail "heldback.py"
unmount_afs near "$first"
unmount_afs far "$daemon"
result
