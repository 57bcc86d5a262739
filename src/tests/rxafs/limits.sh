# SPDX-License-Identifier: BSD-2-Clause
# What is as large as it can be: names, paths, directories, offsets, open files, quotas, and a disk that is too small for the cache.
# RXAFS_LONG=1: 64,435 names in a directory and 10,000 open files.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
{
	"$rxvol" -S "$work/store" create small --acl 'system:anyuser rlidwka' --quota 2000K &&
		"$rxvol" -S "$work/store" mount root.cell:small small --rw
} > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
# The cache may have 1 GB, and its disk has 2 MB.
mkdir "$work/disk"
mount -t tmpfs -o size=2m cache "$work/disk" || skip "there is no tmpfs"
mounts="$mounts $work/disk"
mount_afs one --cache "$work/disk/cache"
first_daemon=$daemon
mount_afs two
second_daemon=$daemon
timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/limits.py" "$work/one" "$work/two" || fail "limits.py"

# More than the disk holds, written and read, and read again by a daemon that finds the cache full.
dir=$work/one/test.example/rw
head -c 8000000 /dev/urandom > "$work/original"
cp "$work/original" "$dir/big" || fail "a file larger than the cache's disk cannot be written"
cmp "$work/original" "$dir/big" || fail "a file larger than the cache's disk is read wrong"
cmp "$work/original" "$work/two/test.example/rw/big" || fail "it is stored wrong"
unmount_afs one "$first_daemon"
mount_afs one --cache "$work/disk/cache"
first_daemon=$daemon daemon=$second_daemon
cmp "$work/original" "$dir/big" || fail "a file larger than the cache's disk is read wrong after a restart"
cp "$dir/big" "$dir/copy" && cmp "$work/original" "$work/two/test.example/rw/copy" || fail "its copy"
unmount_afs one "$first_daemon"
unmount_afs two "$daemon"
result
