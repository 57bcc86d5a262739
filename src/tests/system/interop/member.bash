# SPDX-License-Identifier: BSD-2-Clause
# Our rxfsd as a member of a cell of OpenAFS's: location and protection servers, and a file server of OpenAFS beside it.

. "$here/cell.bash"

keyfile=/etc/openafs/server/KeyFileExt
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
realm=INTEROP.EXAMPLE
theirs=${address%.*}.2
ours=${address%.*}.3
age=2

start_databases() {
	launch vlserver "$servers/vlserver"
	launch ptserver "$servers/ptserver" -p 16
	wait_port 7003 vlserver && wait_port 7002 ptserver && wait_for databases_ready
}

start_member() {
	launch server "$rxfsd" --store store --cell-config config --listen "$ours" --require none --identity-age $age \
		--allow-anonymous-writes
	# OpenAFS's volume server has the same port at another address.
	wait_for listening_or_dead "$ours" && alive server && return 0
	echo "rxfsd does not serve: $(tail -n 1 server.err)"
	return 1
}

# listening ADDRESS: vos finds a volume service there.
listening() {
	limited 10 vos listpart "$1" -noauth 2> /dev/null | grep -q vicepa
}

listening_or_dead() {
	listening "$1" || ! alive server
}

registered() {
	limited 10 vos listaddrs -noauth 2> /dev/null | grep -q "^$1\$"
}

p() {
	limited 20 pts "$@" -localauth > made.txt 2>&1 || { echo "pts $*: $(cat made.txt)"; return 1; }
}

before_member() {
	local cell_ours
	rxfsd=$(need rxfsd) && rxvol=$(need rxvol) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 $key || return
	make_tree
	rm "$tree/large"
	head -c 12000001 /dev/urandom > "$tree/large"
	mkdir config && mkdir -m 700 store || return
	cp /etc/openafs/server/{ThisCell,CellServDB,KeyFileExt} config
	echo chief > config/UserList
	ip addr add "$theirs/24" dev afs0 && ip addr add "$ours/24" dev afs0 || return
	start_databases && p createuser alice -id 1 && p createuser bob -id 2 && p createuser boss -id 3 &&
		p creategroup staff && p adduser alice staff && p adduser boss system:administrators || return
	start_member && wait_for registered "$ours" || return
	echo "$theirs" > /var/lib/openafs/local/NetInfo
	launch fileserver "$servers/fileserver" -rxbind
	launch volserver "$servers/volserver" -rxbind
	wait_for listening "$theirs" && wait_for registered "$theirs" || return
	# The database servers read it as well, when they start again.
	rm /var/lib/openafs/local/NetInfo
}

# v COMMAND OPTIONS...: vos as the cell itself; output in out.txt, errors in err.txt.
v() {
	alive server || fail "rxfsd has ended: $(head -n 1 server.err)"
	limited 60 vos "$@" -localauth > out.txt 2> err.txt ||
		fail "vos $* ended with $?: $(cat err.txt out.txt | grep . | tail -n 2 | tr "\n" " ")"
}

vol() {
	limited 60 "$rxvol" -S store "$@" > vol.txt 2>&1 || fail "rxvol $* ended with $?: $(head -n 1 vol.txt)"
}

# list DUMP: what it has, as DUMP.list.
list() {
	limited 60 python3 -B "$here/list_dump.py" < "$1" > "$1.list" 2> err.txt || fail "$1: $(head -n 1 err.txt)"
}

same_dumps() {
	list "$1"
	list "$2"
	[ -s "$1.list" ] || fail "$1 has no vnodes"
	diff "$1.list" "$2.list" > diff.txt || fail "$1 and $2 differ: $(grep '^[<>]' diff.txt | head -n 2 | tr '\n' ' ')"
}

# on SERVER NAME TYPE STATE: the server has the volume.
on() {
	v listvol "$1"
	want_line out.txt "^${2//./\\.} +[0-9]+ $3 +[0-9]+ K $4"
}

not_on() {
	v listvol "$1"
	! grep -q "^$2 " out.txt || fail "$2 is on $1: $(grep "^$2 " out.txt)"
}

volume_id() {
	limited 20 vos examine "$1" -noauth -format 2> /dev/null | sed -n 's/^id[[:space:]]*\([0-9]*\).*/\1/p' | head -n 1
}

# calls LINE...: what store_calls prints for these calls at our server, in calls.txt.
calls() {
	printf '%s\n' "$@" > script
	limited 60 store_calls "$ours" $key 5 $realm plain work="$(cat work.id)" < script > calls.txt 2> err.txt ||
		fail "store_calls ended with $?: $(tail -n 1 err.txt)"
}

test_member_registers() {
	v listaddrs -printuuid
	[ "$(grep -c '^UUID: ' out.txt)" -eq 2 ] || fail "not two servers: $(tr '\n' ' ' < out.txt)"
	want_line server.err 'registered with the location service of the cell: 10.91.7.3'
}

test_member_create() {
	v create "$ours" a work -maxquota 70000
	on "$ours" work RW On-line
	volume_id work > work.id
	v examine work
	want_line out.txt "server $ours partition /vicepa RW Site"
}

# Users and groups that pts has, as the file service sees them.
test_member_users() {
	calls 'boss acl work' \
		'boss setacl work 2|0|staff/127|system:anyuser/9|$' \
		'alice mkdir work top top mode=0755' \
		'bob mkdir work no no mode=0755' \
		'anyone mkdir work no no mode=0755' \
		'alice acl work' \
		'boss setacl work 1|0|nobody.here/127|$' \
		'bob acl work' \
		'chief setacl work 3|0|staff/127|bob/2|system:anyuser/9|$'
	want_line calls.txt '^boss setacl work 2.* -> 0'
	want_line calls.txt '^alice mkdir work top top mode=0755 -> 0'
	want_line calls.txt '^bob mkdir .* -> 13'
	want_line calls.txt '^anyone mkdir .* -> 13'
	want_line calls.txt '^  acl 2.0.staff/127.system:anyuser/9'
	want_line calls.txt '^boss setacl work 1.* -> 22'
	want_line calls.txt '^chief setacl .* -> 0'
}

# can USER CODE: what the file service answers when the user makes a directory.
can() {
	calls "$1 mkdir work new new mode=0755" "$1 rmdir work new"
	grep -q "^$1 mkdir .* -> $2\$" calls.txt
}

# Within twice the time for which an answer is used.
test_member_pts() {
	p adduser bob staff || fail "$(cat made.txt)"
	wait_for can bob 0 || fail "bob is not in the group: $(head -n 1 calls.txt)"
	p removeuser bob staff || fail "$(cat made.txt)"
	wait_for can bob 13 || fail "bob is still in the group: $(head -n 1 calls.txt)"
	p createuser carol -id 4 && p adduser carol staff || fail "$(cat made.txt)"
	wait_for can carol 0 || fail "carol is not in the group: $(head -n 1 calls.txt)"
	p rename carol carla || fail "$(cat made.txt)"
	wait_for can carol 13 || fail "carol is still known: $(head -n 1 calls.txt)"
	wait_for can carla 0 || fail "carla is not known: $(head -n 1 calls.txt)"
}

test_member_move() {
	vol import work "$tree"
	v dump work -file work.dump
	v move work "$ours" a "$theirs" a
	on "$theirs" work RW On-line
	not_on "$ours" work
	v dump work -file moved.dump
	same_dumps work.dump moved.dump
	v move work "$theirs" a "$ours" a
	on "$ours" work RW On-line
	not_on "$theirs" work
	v dump work -file moved.dump
	same_dumps work.dump moved.dump
}

test_member_release() {
	v addsite "$ours" a work
	v addsite "$theirs" a work
	v release work
	on "$theirs" work.readonly RO On-line
	on "$ours" work.readonly RO On-line
	v dump work -file work.dump
	v dump "$(volume_id work.readonly)" -server "$theirs" -partition a -file ro.dump
	same_dumps work.dump ro.dump
	v syncvldb "$ours"
	v syncserv "$ours"
}

# While no protection server answers, who is known goes on, anonymous callers are served, and others are told to come back.
test_member_outage() {
	can alice 0 || fail "alice: $(head -n 1 calls.txt)"
	stop ptserver
	sleep $((2 * age + 1))
	wait_for can alice 0 || fail "alice is not known any more: $(head -n 1 calls.txt)"
	calls 'anyone status work' 'alice status work'
	want_line calls.txt '^anyone status work -> 0'
	want_line calls.txt '^alice status work -> 0'
	can stranger 110 || fail "a stranger: $(head -n 1 calls.txt)"
	launch ptserver "$servers/ptserver" -p 16
	wait_port 7002 ptserver || fail "the ptserver does not start"
	wait_for can stranger 13 || fail "the stranger: $(head -n 1 calls.txt)"
	want_line server.err 'the protection server .* answers again'
}

test_member_restart() {
	stop server || fail "rxfsd ended with $?: $(tail -n 1 server.err)"
	stop vlserver
	start_member || fail "$(tail -n 1 server.err)"
	can alice 0 || fail "alice: $(head -n 1 calls.txt)"
	launch vlserver "$servers/vlserver"
	wait_for grep -q 'registered with the location service' server.err || fail "not registered: $(tail -n 2 server.err)"
	v listaddrs -printuuid
	[ "$(grep -c '^UUID: ' out.txt)" -eq 2 ] || fail "not two servers: $(tr '\n' ' ' < out.txt)"
}

test_member_end() {
	stop volserver
	stop fileserver QUIT
	stop server
	limited 60 "$rxvol" -S store check > out.txt 2>&1 || fail "the store has faults: $(head -n 1 out.txt)"
	! grep -i 'assert\|damaged' server.err || fail "the log tells of a fault"
}
