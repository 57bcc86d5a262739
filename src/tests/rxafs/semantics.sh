# SPDX-License-Identifier: BSD-2-Clause
# The same system calls on AFS and on a local file system have the same results, but for a list of differences.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs one
mkdir "$work/local"
mount -t tmpfs local "$work/local" || skip "there is no tmpfs"
mounts="$mounts $work/local"
timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/semantics.py" "$work/one/test.example/rw" "$work/local" || fail "semantics.py"
unmount_afs one "$daemon"
result
