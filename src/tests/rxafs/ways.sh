# SPDX-License-Identifier: BSD-2-Clause
# Ways to mount: a line of fstab for root and for users, mount -t fuse.rxafs, and a container without privileges.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "only root can change /etc/fstab in its own name space"
[ "$(id -u nobody 2> /dev/null)" = 65534 ] || skip "there is no user nobody"
setpriv --reuid 65534 --regid 65534 --clear-groups true 2> /dev/null || skip "setpriv does not work"
[ -f /etc/fstab ] || skip "there is no /etc/fstab"
make_cell

# The program where nobody can read it, and as a helper of mount(8).
chmod 755 "$work"
mkdir "$work/bin" "$work/up" "$work/home"
cp -rL "$(dirname "$rxafs")/.libs/rxafs" "$work/bin/rxafs.bin" 2> /dev/null || cp "$rxafs" "$work/bin/rxafs.bin"
cp "$top_builddir"/src/rx/.libs/librxwire.so.0 "$work/bin/" 2> /dev/null
mkdir "$work/home/afs"
chown -R 65534:65534 "$work/home"
mknod "$work/fuse" c 10 229 2> /dev/null && chmod 666 "$work/fuse" && mount --bind "$work/fuse" /dev/fuse 2> /dev/null ||
	skip "devices cannot be made here"
sbin=$(readlink -f /sbin)
mount -t tmpfs -o mode=755 up "$work/up" && mkdir "$work/up/new" "$work/up/work" &&
	printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$work/bin" "$work/bin/rxafs.bin" > "$work/up/new/mount.fuse.rxafs" &&
	chmod 755 "$work/up/new/mount.fuse.rxafs" &&
	mount -t overlay -o "lowerdir=$sbin,upperdir=$work/up/new,workdir=$work/up/work" overlay "$sbin" 2> /dev/null ||
	skip "there is no overlay file system"
mounts="$mounts $work/up $sbin"
user() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$work/home" timeout -k 1 120 "$@"; }

# The process of a daemon in the background, by the mount.
daemon_of() { grep -lsz "$1" /proc/[0-9]*/cmdline | sed -n 's,/proc/\([0-9]*\)/cmdline,\1,p' | xargs; }

at=$work/afs
mkdir "$at"
options="cell=test.example,servers=test.example=$where"
cat > "$work/fstab" << FSTAB
none $at fuse.rxafs $options,allow_other,nosuid,nodev,_netdev,noauto 0 0
none $work/home/afs fuse.rxafs $options,user,noauto 0 0
FSTAB
mount --bind "$work/fstab" /etc/fstab || skip "/etc/fstab cannot be replaced"
mounts="$mounts $at $work/home/afs"

timeout 60 mount "$at" > "$work/mount.out" 2>&1 || fail "mount by fstab: $(cat "$work/mount.out")"
daemons="$daemons $(daemon_of "$at")"
grep -q " $at fuse.rxafs .*nosuid,nodev" /proc/mounts || fail "options: $(grep " $at " /proc/mounts)"
echo root > "$at/.test.example/rw/file" || fail "root cannot write"
[ "$(user cat "$at/test.example/rw/file")" = root ] || fail "another user cannot read with allow_other"
timeout 60 umount "$at" || fail "umount"
mountpoint -q "$at" && fail "it is still mounted"

timeout 60 mount -t fuse.rxafs -o "$options,ro" none "$at" || fail "mount -t fuse.rxafs"
daemons="$daemons $(daemon_of "$at")"
[ "$(cat "$at/test.example/rw/file")" = root ] || fail "a read-only mount shows no file"
touch "$at/.test.example/rw/file" 2> /dev/null && fail "a read-only mount was changed"
user cat "$at/test.example/rw/file" 2> /dev/null && fail "another user reads without allow_other"
timeout 60 umount "$at" || fail "umount"
# What reads the output of the program that mounts does not wait for the end of the mount.
timeout 60 mount -t fuse.rxafs -o "$options" none "$at" 2>&1 | timeout 60 cat > "$work/mount.out" || fail "the daemon keeps the output of its starter"
daemons="$daemons $(daemon_of "$at")"
mountpoint -q "$at" || fail "mount beside a reader of its output: $(cat "$work/mount.out")"
timeout 60 umount "$at" || fail "umount"
timeout 60 mount -t fuse.rxafs -o "$options,nonsense=1" none "$at" > "$work/mount.out" 2>&1 && fail "a mount with an unknown option"
grep -q nonsense "$work/mount.out" || fail "unknown option: $(cat "$work/mount.out")"

if [ -u "$(command -v mount)" ] && command -v fusermount3 > /dev/null; then
	user mount "$work/home/afs" > "$work/mount.out" 2>&1 || fail "a user's mount by fstab: $(cat "$work/mount.out")"
	daemons="$daemons $(daemon_of "$work/home/afs")"
	user sh -c "echo user > '$work/home/afs/.test.example/rw/users'" || fail "the user cannot write"
	[ "$(user cat "$work/home/afs/test.example/rw/users")" = user ] || fail "the user cannot read"
	ls "$work/home/afs" > /dev/null 2>&1 && fail "root looks into a user's mount"
	user fusermount3 -u "$work/home/afs" || fail "the user cannot unmount"
else
	echo "left out: mount or fusermount3 has no set-user-ID bit"
fi

# In a user namespace nobody is root, and no set-user-ID program is needed.
if user unshare --user --map-root-user --mount true 2> /dev/null; then
	mkdir -m 777 "$work/inside"
	user env LD_LIBRARY_PATH="$work/bin" unshare --user --map-root-user --mount --propagation private sh -c "
		'$work/bin/rxafs.bin' --cell test.example --servers 'test.example=$where' '$work/inside' || exit 1
		echo container > '$work/inside/.test.example/rw/container' || exit 2
		[ \"\$(cat '$work/inside/test.example/rw/container')\" = container ] || exit 3
		cp -p '$work/inside/test.example/rw/container' '$work/inside/.test.example/rw/copy' || exit 4
		ls -l '$work/inside/test.example/rw' && umount '$work/inside' || exit 5" > "$work/container.out" 2>&1 ||
		fail "a container without privileges: status $?: $(cat "$work/container.out")"
	mountpoint -q "$work/inside" && fail "the container's mount is seen outside"
else
	echo "left out: users may not make user namespaces"
fi
result
