# SPDX-License-Identifier: BSD-2-Clause
# Files of read-only volumes that the kernel reads from the disk cache by itself (FUSE_PASSTHROUGH): never other bytes than those of the
# version that was opened, whatever happens to the file, the cache and the daemon.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
[ "$(id -u)$(awk "{ print \$3 }" /proc/self/uid_map)" = 04294967295 ] || skip "this is not root of the machine"
old=$(uname -r | awk -F. '{ print $1 * 1000 + $2 < 6009 }')
[ "$old" = 0 ] || skip "the kernel cannot read files by itself"
make_cell
mkdir -m 700 "$work/cache"
mount_afs write
writer=$daemon
cat > "$work/release" <<- END
	#!/bin/sh
	exec "$rxvol" -S "$work/store" clone work > "$work/clone.out" 2>&1
END
chmod +x "$work/release"
# steps WHAT [ARGUMENT...]: what through.py does, with a mount of the cache.
steps() {
	timeout -k 1 200 "$python" "$top_srcdir/src/tests/rxafs/through.py" "$work" "$@" > "$work/steps.out" 2>&1 ||
		fail "$1: $(tail -n 5 "$work/steps.out")"
}
read_again() {
	mount_afs "$1" --cache "$work/cache" --cache-size 24M --metrics-socket "$work/metrics"
	steps "$2" "$work/$1/test.example/work"
	unmount_afs "$1" "$daemon"
}

steps prepare
"$rxvol" -S "$work/store" clone root.cell > "$work/clone.out" 2>&1 || fail "root.cell cannot be cloned"
mount_afs read --cache "$work/cache" --cache-size 24M --metrics-socket "$work/metrics"
here=$work/read/test.example/work
for what in read versions turns direct readers programs evict; do
	steps $what "$here"
done
unmount_afs read "$daemon"
used=$(du -sk "$work/cache" | cut -f 1)
[ "$used" -le 25000 ] || fail "a cache of 24 MiB has $used KiB"

read_again again trusted
ls "$work/cache"/whole-* > /dev/null 2>&1 || fail "nothing is kept as a whole: $(ls -l "$work/cache")"
# Damage, as of a crash.
for file in "$work/cache"/whole-*; do
	printf damaged | dd of="$file" bs=1 seek=300000 conv=notrunc 2> /dev/null
done
read_again damaged trusted
for file in "$work/cache"/whole-*; do
	truncate -s 300000 "$file"
done
read_again cut trusted
rm "$work/cache"/whole-*
read_again gone trusted
: > "$work/cache/whole-4000000"
head -c 100 /dev/urandom | dd of="$work/cache/index" bs=1 seek=200 conv=notrunc 2> /dev/null
read_again unknown trusted
[ ! -e "$work/cache/whole-4000000" ] || fail "a file of nobody was left in the cache"

# The end of the daemon, by force, with such a file open.
mount_afs killed --cache "$work/cache" --cache-size 24M --metrics-socket "$work/metrics"
steps killed "$work/killed/test.example/work" "$daemon"
umount -l "$work/killed"
read_again after trusted
unmount_afs write "$writer"
result
