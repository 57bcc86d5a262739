# SPDX-License-Identifier: BSD-2-Clause
# A table of operations and their results.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs one
first_daemon=$daemon
mount_afs two
timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/operations.py" "$work/one" "$work/two" || fail "operations.py"
unmount_afs one "$first_daemon"
unmount_afs two "$daemon"
result
