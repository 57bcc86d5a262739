# SPDX-License-Identifier: BSD-2-Clause
# Two mounts of one cell: what was changed through one is seen through the other at once.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
"$rxvol" -S "$work/store" mount root.cell:again work --rw > "$work/rxvol.out" || fail "another mount point"
mount_afs one
first_daemon=$daemon
mount_afs two
mkdir "$work/one/test.example/rw/dir"
OTHER_WAY=again timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/coherent.py" "$work/one/test.example/rw/dir" \
	"$work/two/test.example/rw/dir" || fail "coherent.py"
unmount_afs one "$first_daemon"
unmount_afs two "$daemon"
result
