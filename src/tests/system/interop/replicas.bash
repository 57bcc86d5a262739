# SPDX-License-Identifier: BSD-2-Clause
# Readers of a volume with copies on three servers, two rxfsd and one of OpenAFS: what a release sends, and what a mount and
# afscp read while one of the servers is killed, silent or without the volume, and after a release that it has missed.

. "$here/vos_openafs.bash"

other=${address%.*}.3
waits=18 # seconds: the dead time of 12, and some for a busy machine

start_other() {
	launch other "$rxfsd" --store store2 --cell "$cell_name" --listen "$other" --keytab right --require none \
		--allow-anonymous-writes
	wait_for answers "$other"
}

answers() {
	limited 10 vos listpart "$1" -noauth 2> /dev/null | grep -q vicepa
}

start_fileserver() {
	launch fileserver "$servers/fileserver" -rxbind
}

# The volume pub has 100 MiB, and everybody may change it.
before_replicas() {
	local i
	[ -c /dev/fuse ] || { echo "there is no /dev/fuse"; return 1; }
	afscp=$(need afscp) && rxafs=$(need rxafs) && rxafsctl=$(need rxafsctl) || return
	before_vos_openafs && ip addr add "$other/24" dev afs0 &&
		"$rxvol" -S store2 create somewhere > made.txt 2>&1 && start_other || return
	server_options+=(--allow-anonymous-writes)
	stop server && start_server || return
	mkdir -p big more mount && echo 'release 0' > big/page || return
	for ((i = 0; i < 20; i++)); do
		head -c 5242880 /dev/urandom > "big/file$i"
	done
	limited 60 vos create "$address" a pub -maxquota 0 -localauth > made.txt &&
		limited 60 "$rxvol" -S store import pub big > made.txt 2>&1 &&
		limited 60 "$rxvol" -S store acl pub system:anyuser rlidwka > made.txt 2>&1
}

# received: the bytes that all servers have received so far.
received() {
	awk '/^ *lo:/ { print $2 }' /proc/net/dev
}

# release VOLUME [MOST]: at most so many bytes are sent to each of two servers.
release() {
	local before
	before=$(received)
	limited 120 vos release "$1" -verbose -localauth > out.txt 2> err.txt ||
		fail "the release of $1: $(cat err.txt out.txt | tail -n 9 | tr '\n' ' ')"
	before=$(($(received) - before))
	[ $before -le $((2 * ${2:-1000000000})) ] || fail "the release of $1 has sent $before bytes"
}

# change TEXT [VOLUME]: the next contents.
change() {
	echo "$1" > more/page
	limited 60 "$afscp" -s "$cell_name=$address" -q put more/page "${2:-pub}:/page" > out.txt 2>&1 || fail "afscp: $(head -n 1 out.txt)"
}

# reads TEXT: the mount and a new client have these contents now, and within the time that a dead server costs.
reads() {
	local began text
	began=$(date +%s)
	limited 60 "$rxafsctl" flush "mount/$cell_name/pub/page" > flush.txt 2>&1
	text=$(limited 60 cat "mount/$cell_name/pub/page" 2> err.txt)
	[ "$text" = "$1" ] || fail "the mount has '$text', not '$1' $(head -n 1 err.txt)"
	[ $(($(date +%s) - began)) -le $waits ] || fail "the mount took $(($(date +%s) - began)) s"
	began=$(date +%s)
	text=$(limited 60 "$afscp" -s "$cell_name=$address" -q cat pub.readonly:/page 2> err.txt)
	[ "$text" = "$1" ] || fail "afscp has '$text', not '$1' $(head -n 1 err.txt)"
	[ $(($(date +%s) - began)) -le $waits ] || fail "afscp took $(($(date +%s) - began)) s"
}

test_replicas_release() {
	local s
	for s in "$address" "$other" "$theirs"; do
		v addsite "$s" a pub
	done
	# A release sends what was changed in the last seconds before the former one, too.
	sleep 4
	change 'release 0'
	release pub
	change 'release 1'
	release pub 1000000
	v dump pub -file pub.dump
	for s in "$other" "$theirs"; do
		v dump "$(id_of pub.readonly)" -server "$s" -partition a -file ro.dump
		same_dumps pub.dump ro.dump
	done
	vol mount root.cell:pub pub
	launch mount "$rxafs" --foreground --cell "$cell_name" --servers "$cell_name=$address" "$work/mount"
	wait_for mountpoint -q mount || fail "no mount: $(head -n 1 mount.err)"
	reads 'release 1'
}

# The copy beside the read-write volume is off-line all the time, so that one of the others is read.
test_replicas_faults() {
	local s
	v offline "$address" a pub.readonly
	for s in other fileserver; do
		reads 'release 1'
		tell $s STOP
		reads 'release 1'
		tell $s CONT
		wait_for answers "$other"
		sleep 2
		reads 'release 1'
		tell $s KILL
		wait_for test -f $s.status
		reads 'release 1'
		"start_$s" || fail "$s does not start again"
	done
	wait_for theirs_ready || fail "OpenAFS's server is not back"
	for s in "$other" "$theirs"; do
		v offline "$s" a pub.readonly
		reads 'release 1'
		v online "$s" a pub.readonly
	done
	v zap "$other" a pub.readonly
	reads 'release 1'
	v online "$address" a pub.readonly
	reads 'release 1'
	v release pub -f
	on "$other" pub.readonly RO On-line
}

# A server that has missed a release: no client reads the old one there, and the next release mends it.
test_replicas_missed() {
	local i
	tell other KILL
	wait_for test -f other.status
	change 'release 2'
	# vos waits for the server.
	limited 200 vos release pub -localauth > out.txt 2> err.txt && fail "the release to a dead server succeeded"
	limited 20 vos unlock pub -localauth > out.txt 2>&1
	reads 'release 2'
	start_other || fail "the other server does not start again"
	for ((i = 0; i < 10; i++)); do
		reads 'release 2'
	done
	v release pub
	v dump pub -file pub.dump
	v dump "$(id_of pub.readonly)" -server "$other" -partition a -file ro.dump
	same_dumps pub.dump ro.dump
	v listvldb pub
	! grep -q 'Not released\|New release\|Old release\|LOCKED' out.txt || fail "the release is not complete"
}

# OpenAFS's server has the read-write volume.
test_replicas_theirs() {
	local s
	v dump pub -file pub.dump
	v restore "$theirs" a tpub -file pub.dump
	for s in "$address" "$other" "$theirs"; do
		v addsite "$s" a tpub
	done
	sleep 4
	change 'release 2' tpub
	release tpub
	change 'release 3' tpub
	release tpub 1000000
	v dump tpub -file pub.dump
	for s in "$address" "$other"; do
		v dump "$(id_of tpub.readonly)" -server "$s" -partition a -file ro.dump
		same_dumps pub.dump ro.dump
	done
}

test_replicas_end() {
	umount mount
	wait_for test -f mount.status
	[ "$(cat mount.status)" -eq 0 ] || fail "rxafs ended with $(cat mount.status)"
	stop other || fail "the other rxfsd ended with $?"
	limited 60 "$rxvol" -S store2 check > out.txt 2>&1 || fail "the other store has faults: $(head -n 1 out.txt)"
	test_openafs_end
	! grep -i 'assert\|damaged' other.err mount.err || fail "a log tells of a fault"
}
