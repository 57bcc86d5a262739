# SPDX-License-Identifier: BSD-2-Clause
# Two mounts (rxafs) of a real OpenAFS cell. The tests are those of src/tests/rxafs, which call the cell test.example.

. "$here/cell.bash"

scripts=$here/../../rxafs
cell=one/test.example

# start_mount NAME: at the folder of that name.
start_mount() {
	mkdir -p "$1"
	launch "mount-$1" "$(need rxafs)" --foreground --cell test.example --servers "test.example=$address" "$work/$1"
	wait_for mountpoint -q "$1" || { echo "no mount at $1: $(head -n 1 "mount-$1.err")"; return 1; }
}

# all_rights VOLUME ID [QUOTA]: a volume in which all users have all rights.
all_rights() {
	make_dump "$1" "$2" "$tree" 127 > dump && limited 60 vos restore "$address" a "$1" -file dump -id "$2" -localauth > vos.txt 2>&1 &&
		limited 60 vos setfields "$1" -maxquota "${3:-20000000}" -localauth > vos.txt 2>&1
}

before_mount() {
	local p
	[ -c /dev/fuse ] || return
	mkdir -p "$tree"
	"$(need cell_ours)" key /etc/openafs/server/KeyFileExt 5 18 \
		0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 || return
	start_cell && all_rights root.cell 536870940 && all_rights work 536870950 && all_rights small 536870960 2000 || return
	start_mount one && start_mount two || return
	for p in work:work rw:work again:work small:small; do
		limited 30 "$(need rxafsctl)" mkmount "$cell/${p%:*}" "${p#*:}" --rw || return
	done
}

# python NAME ARGUMENT...: a script of src/tests/rxafs.
python() {
	local name=$1
	shift
	command -v python3 > /dev/null || skip "python3 is not installed"
	[ -c /dev/fuse ] || skip "there is no /dev/fuse"
	limited 120 python3 -B "$scripts/$name.py" "$@" > "$name.txt" 2>&1 ||
		fail "$(grep -c '^FAIL' "$name.txt") failed: $(grep -v '^[a-z_]*$' "$name.txt" | head -n 3 | tr '\n' ';')"
}

test_mount_operations() { python operations "$work/one" "$work/two"; }

test_mount_semantics() {
	mkdir -p local && mount -t tmpfs local local || skip "there is no tmpfs"
	# The server counts the directory that another one replaces still as a link of the one above.
	python semantics "$work/$cell/rw" "$work/local" 'links of a directory' 'links after a rename' 'links after a move'
}

# The server answers -1 to lengths that its disk does not know, which clients take for a restart.
test_mount_limits() { python limits "$work/one" "$work/two" 'too long'; }

test_mount_walk() {
	python walk "$work/twin-one" 1 300 "$work/$cell/rw/walk"
	python walk "$work/twin-two" 2 300 "$work/$cell/rw/both" "$work/two/test.example/rw/both"
}

test_mount_locks() { python locks "$work/$cell/rw" "$work/two/test.example/rw"; }

test_mount_coherent() {
	mkdir -p "$cell/rw/dir"
	OTHER_WAY=again python coherent "$work/$cell/rw/dir" "$work/two/test.example/rw/dir"
}

# OpenAFS's own client program reads what was written, and the mount goes on after a clone.
test_mount_tools() {
	local fid
	head -c 700000 /dev/urandom > original
	cp original "$cell/rw/for-afsio" || fail "cp ended with $?"
	fid=$(python3 -c 'import os, sys; print(*(int(n, 16) for n in os.getxattr(sys.argv[1], "afs.fid").split(b":")), sep=".")' "$cell/rw/for-afsio") ||
		fail "afs.fid"
	limited 30 afsio fidread -fid "$fid" -cell "$cell_name" > out.bin 2> err.txt
	same_file original out.bin
	limited 60 vos backup work -localauth > vos.txt 2>&1 || fail "vos backup: $(head -n 1 vos.txt)"
	cmp original "$cell/rw/for-afsio" || fail "the file differs after a clone"
	echo later > "$cell/rw/later" || fail 'a write after a clone'
	[ "$(cat two/test.example/rw/later)" = later ] || fail "the other mount does not see it"
}

# A server that starts again: both mounts go on.
test_mount_restart() {
	echo before > "$cell/rw/restart"
	stop fileserver QUIT || fail "the server ended with $?"
	launch fileserver "$servers/fileserver" "${fileserver_options[@]}"
	wait_port 7000 fileserver || fail "the server does not start"
	limited 100 sh -c "echo after >> '$cell/rw/restart'" || fail "a write after the restart ended with $?"
	[ "$(limited 100 cat two/test.example/rw/restart)" = "$(printf 'before\nafter')" ] || fail "the other mount has something else"
}

test_mount_end() {
	local n
	for n in one two; do
		limited 30 umount "$n" || fail "umount $n ended with $?"
		wait_for test -f "mount-$n.status" || fail "rxafs does not end"
		[ "$(cat "mount-$n.status")" = 0 ] || fail "rxafs ended with $(cat "mount-$n.status")"
	done
}
