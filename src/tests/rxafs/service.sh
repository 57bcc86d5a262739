# SPDX-License-Identifier: BSD-2-Clause
# rxafs as a service: the units and the configuration file that are installed, the capabilities of the unit, what the service manager is told,
# a reload, metrics, a start over the mount of a dead daemon, mount(8).

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
system=$top_srcdir/src/rxafs/system
[ "$(id -u)" -eq 0 ] || skip "only root can try the unit of the machine"
setpriv --bounding-set=-all,+sys_admin --no-new-privs true 2> /dev/null || skip "setpriv does not work"
make_cell

# -- units --
mkdir -p "$work/units/user"
for unit in rxafs.service user/rxafs.service user/rxafs-login.service; do
	sed -e "s|@bindir@/rxafs[ctl]*|$(command -v env)|" -e 's|@sysconfdir@|/etc|g' "$system/$unit.in" > "$work/units/$unit"
done
if command -v systemd-analyze > /dev/null; then
	systemd-analyze verify "$work/units/rxafs.service" > "$work/verify.out" 2>&1
	grep -v "Command 'man" "$work/verify.out" | grep 'rxafs[.]service' && fail "systemd-analyze complains about the unit"
	for unit in rxafs rxafs-login; do
		systemd-analyze --user verify "$work/units/user/$unit.service" > "$work/verify.out" 2>&1
		grep -v "Command 'man" "$work/verify.out" | grep "${unit}[.]service" && fail "systemd-analyze complains about the user's unit"
	done
	# What is left is the view of the file system, which the mount must share, and the user, who must be root.
	systemd-analyze security --offline=yes --threshold=43 "$work/units/rxafs.service" > "$work/security.out" 2>&1 || {
		tail -n 3 "$work/security.out"
		fail "the unit is more exposed than it was"
	}
else
	echo "left out: there is no systemd-analyze"
fi
for word in Protect PrivateTmp PrivateDevices PrivateMounts ReadWritePaths ReadOnlyPaths InaccessiblePaths BindPaths RootDirectory TemporaryFileSystem; do
	grep "^$word" "$system/rxafs.service.in" && fail "a mount in a view of its own would be seen by nobody"
done

# -- the configuration --
sed 's|@sysconfdir@|/etc|g' "$system/rxafs.conf.in" > "$work/rxafs.conf"
"$rxafs" --config "$work/rxafs.conf" --check-config "$work" > "$work/config.out" 2>&1 || fail "the configuration: $(cat "$work/config.out")"
sed 's/^;\([a-z-]* = .*\)/\1/' "$work/rxafs.conf" > "$work/all.conf"
"$rxafs" --config "$work/all.conf" --check-config "$work" > "$work/config.out" 2>&1 || fail "its examples: $(cat "$work/config.out")"

# -- the daemon with the capabilities of the unit --
mkdir "$work/service" "$work/conf" "$work/cache"
printf '>listed.test\n127.0.0.1 #localhost\n' > "$work/conf/CellServDB"
cat > "$work/service.conf" << END
[rxafs]
cell = test.example
servers = test.example=$where
config-dir = $work/conf
allow-other = yes
cache = $work/cache
metrics-socket = $work/metrics
END
mounts="$mounts $work/service"
capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' "$system/rxafs.service.in" | tr "[:upper:]" "[:lower:]" | sed 's/cap_/+/g; s/ /,/g')
timeout 300 "$python" "$top_srcdir/src/tests/rxafs/service.py" "$work/notify" "$work" \
	setpriv --bounding-set="-all,$capabilities" --no-new-privs "$rxafs" --foreground --config "$work/service.conf" "$work/service" \
	> "$work/service.out" 2> "$work/service.err" || fail "service.py: $(cat "$work/service.err")"
cat > "$work/service.want" << 'END'
READY=1
cells: ['.@cell', '.listed.test', '.test.example', '@cell', 'listed.test', 'test.example']
RELOADING=1
READY=1
cells: ['.@cell', '.added.test', '.listed.test', '.test.example', '@cell', 'added.test', 'listed.test', 'test.example']
rxafs_status_hits_total True
rxafs_objects True
rxafs_server_up True
rxwire_ True
process_cpu_seconds_total True
STOPPING=1
status 0
quick True
END
diff "$work/service.want" "$work/service.out" || fail "the service"
mountpoint -q "$work/service" && fail "the mount outlives the service"

# -- a start over the mount of a dead daemon --
mount_afs again
# The kernel keeps the attributes of the directory beyond the end of the daemon.
ls -l "$work/again" > "$work/list" && stat "$work/again" > "$work/list" || fail "ls"
kill -9 "$daemon"
wait "$daemon" 2> /dev/null
mount_again() { ! ls "$work/again" > /dev/null 2>&1; }
wait_until 60 mount_again || fail "a dead mount answers"
"$rxafs" --cell test.example --servers "test.example=$where" "$work/again" 2> "$work/second.err" || fail "no start: $(cat "$work/second.err")"
ls "$work/again/test.example/work" > /dev/null || fail "the second mount does not work"
umount "$work/again" || fail "umount"
mountpoint -q "$work/again" && fail "a dead mount is left below the second one"

# -- as mount(8) calls it for fstab and autofs: mount(8) itself finds only what is installed --
helper=$(command -v mount.fuse3 || command -v mount.fuse) || helper=
if [ -n "$helper" ]; then
	mkdir "$work/bin" "$work/fstab"
	printf '#!/bin/sh\nexec "%s/src/rxafs/rxafs" "$@"\n' "$(cd "$top_builddir" && pwd)" > "$work/bin/rxafs"
	chmod 755 "$work/bin/rxafs"
	mounts="$mounts $work/fstab"
	PATH=$work/bin:$PATH "$helper" test.example "$work/fstab" -t fuse.rxafs \
		-o "servers=test.example=$where,allow_other,nosuid,nodev,_netdev,x-systemd.automount" > "$work/mount.out" 2>&1 ||
		fail "mount: $(cat "$work/mount.out")"
	ls "$work/fstab/test.example/work" > /dev/null || fail "the mount of mount(8) does not work"
	umount "$work/fstab" || fail "umount"
else
	echo "left out: there is no mount.fuse"
fi
result
