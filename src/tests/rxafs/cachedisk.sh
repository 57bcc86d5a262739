# SPDX-License-Identifier: BSD-2-Clause
# The disk cache as users see it: smaller than one file, on a full disk, damaged between two mounts and during one. Whatever is
# wrong with it, the bytes are right.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
here=test.example/rw
mount_afs first
head -c 25000000 /dev/urandom > "$work/truth"
cp "$work/truth" "$work/first/$here/file"
unmount_afs first "$daemon"

# compare WHAT MOUNT: of the file, and of a part of it that is read after others.
compare() {
	cmp "$work/truth" "$work/$2/$here/file" || fail "$1: wrong bytes"
	tail -c 3000001 "$work/$2/$here/file" | cmp - "$work/tail" || fail "$1: wrong bytes at the end"
}
tail -c 3000001 "$work/truth" > "$work/tail"

# pass WHAT FOLDER [OPTION...]: a mount that reads.
pass() {
	what=$1 folder=$2
	shift 2
	turn=$((turn + 1))
	mount_afs "m$turn" --cache "$folder" "$@"
	compare "$what" "m$turn"
	unmount_afs "m$turn" "$daemon"
}
turn=0

mkdir -m 700 "$work/small" "$work/cache" "$work/disk"
pass 'a cache smaller than the file' "$work/small" --cache-size 8M
pass 'the same again' "$work/small" --cache-size 8M
used=$(du -sk "$work/small" | cut -f 1)
[ "$used" -le 8400 ] || fail "a cache of 8 MiB has $used KiB"

pass 'an empty cache' "$work/cache"
used=$(du -sk "$work/cache" | cut -f 1)
[ "$used" -ge 20000 ] || fail "the cache has $used KiB of a file of 24 MiB"
"$python" - "$work/cache/blocks" <<- 'END'
	import sys
	with open(sys.argv[1], 'r+b') as f:
	    for at in range(0, 25000000, 300000):
	        f.seek(at)
	        f.write(b'damaged')
END
pass 'damaged blocks' "$work/cache"
pass 'an undamaged cache' "$work/cache"
truncate -s 9000000 "$work/cache/blocks"
pass 'a cut file of blocks' "$work/cache"
head -c 3000 /dev/urandom >> "$work/cache/index"
pass 'an index with garbage behind' "$work/cache"
head -c 100 /dev/urandom | dd of="$work/cache/index" bs=1 seek=200 conv=notrunc 2> /dev/null
pass 'a damaged index' "$work/cache"
rm "$work/cache/index"
pass 'no index' "$work/cache"
rm "$work/cache/blocks"
pass 'no blocks' "$work/cache"

# While it is in use.
mount_afs used --cache "$work/cache"
head -c 5000000 "$work/used/$here/file" | cmp -n 5000000 - "$work/truth" || fail 'the first part is wrong'
truncate -s 0 "$work/cache/blocks"
compare 'a cache that is cut while it is used' used
rm -f "$work/cache/blocks" "$work/cache/index"
compare 'a cache that is removed while it is used' used
unmount_afs used "$daemon"

if mount -t tmpfs -o size=6m,mode=0700 none "$work/disk" 2> /dev/null; then
	mounts="$mounts $work/disk"
	pass 'a small file system' "$work/disk"
	head -c 6000000 /dev/zero > "$work/disk/filler" 2> /dev/null
	mount_afs full --cache "$work/disk"
	compare 'a full disk' full
	cp "$work/truth" "$work/full/$here/copy" || fail 'a full disk of the cache is the error of a write'
	cmp "$work/truth" "$work/full/$here/copy" || fail 'a file that was written beside a full disk is wrong'
	rm "$work/disk/filler"
	compare 'room again' full
	unmount_afs full "$daemon"
fi
result
