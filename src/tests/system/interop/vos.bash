# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's vos as the administrator of a cell whose only server is rxfsd, which has its location service, too.

keyfile=/etc/openafs/server/KeyFileExt
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
tree=$work/tree

server_options=()

start_server() {
	launch server "$rxfsd" --store store --cell "$cell_name" --listen "$address" --keytab right --require none \
		"${server_options[@]}"
	wait_port 7000 server && wait_port 7003 server && wait_port 7005 server
}

before_vos() {
	local cell_ours i
	rxfsd=$(need rxfsd) && rxvol=$(need rxvol) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 $key || return
	cp $keyfile right
	mkdir -p "$tree/sub/deep" "$tree/many"
	echo 'hello, world' > "$tree/hello.txt"
	# Beyond the quota that a new volume has before it gets its contents.
	head -c 12000001 /dev/urandom > "$tree/large"
	echo deep > "$tree/sub/deep/file"
	ln "$tree/hello.txt" "$tree/again.txt"
	ln -s hello.txt "$tree/link"
	for ((i = 0; i < 300; i++)); do
		echo "$i" > "$tree/many/a-name-that-takes-two-slots-$i"
	done
	"$rxvol" -S store create root.cell --acl 'system:anyuser rl' > made.txt 2>&1 || return
	[ ${#server_options[@]} -eq 0 ] || "$rxpt" -S store adduser afs --id 700 > made.txt 2>&1 || return
	start_server
}

# v COMMAND OPTIONS...: vos as the cell itself; output in out.txt, errors in err.txt.
v() {
	alive server || fail "rxfsd has ended: $(head -n 1 server.err)"
	limited 60 vos "$@" -localauth > out.txt 2> err.txt ||
		fail "vos $* ended with $?: $(cat err.txt out.txt | grep . | tail -n 2 | tr "\n" " ")"
}

# vol OPTIONS...: rxvol, through the running server.
vol() {
	limited 60 "$rxvol" -S store "$@" > vol.txt 2>&1 || fail "rxvol $* ended with $?: $(head -n 1 vol.txt)"
}

# entry NAME PATTERN...: the entry of the database of locations has these lines.
entry() {
	local name=$1
	shift
	v listvldb "$name"
	for pattern; do
		want_line out.txt "$pattern"
	done
}

# is_there NAME TYPE STATE: the volume service has it.
is_there() {
	v listvol "$address"
	want_line out.txt "^${1//./\\.} +[0-9]+ $2 +[0-9]+ K $3"
}

is_gone() {
	v listvol "$address"
	! grep -q "^$1 " out.txt || fail "$1 is still there: $(grep "^$1 " out.txt)"
}

id_of() {
	limited 20 vos listvol "$address" -localauth 2> err.txt | awk -v name="$1" '$1 == name { print $2 }'
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

# equal_dumps OLD NEW LETTERS: all bytes of the vnodes, and all members of the headers but these, are equal.
equal_dumps() {
	local d
	for d in "$1" "$2"; do
		limited 60 python3 -B "$here/list_dump.py" --exact < "$d" > "$d.exact" 2> err.txt || fail "$d: $(head -n 1 err.txt)"
		grep -q '^bytes ' "$d.exact" || fail "$d has no vnodes"
	done
	diff "$1.exact" "$2.exact" | grep '^[<>]' | grep -v "^[<>] header [${3:-=}] " > diff.txt
	[ ! -s diff.txt ] || fail "$1 and $2 differ: $(head -n 2 diff.txt | tr '\n' ' ')"
}

# refused COMMAND...: vos fails, and the server goes on.
refused() {
	limited 60 vos "$@" > out.txt 2>&1 && fail "vos $* was not refused"
	alive server || fail "rxfsd has ended: $(head -n 1 server.err)"
}

test_vos_create() {
	v create "$address" a tvol -maxquota 70000
	entry tvol '^tvol' 'RWrite: [0-9]+' 'number of sites -> 1'
	is_there tvol RW On-line
	v examine tvol
	want_line out.txt 'MaxQuota +70000 K'
	refused create "$address" a tvol -localauth
	refused create "$address" a other -noauth
	vol import tvol "$tree"
	vol acl tvol system:anyuser rl
}

# A volume of rxvol becomes one of the cell when vos first changes it.
test_vos_rxvol() {
	vol create ours
	entry ours '^ours' 'RWrite: [0-9]+'
	v backup ours
	is_there ours.backup BK On-line
	entry ours 'Backup: [0-9]+'
	v remove -id ours.backup
	v remove -id ours
	is_gone ours
	refused examine ours -localauth
}

test_vos_backup() {
	v backup tvol
	is_there tvol.backup BK On-line
	entry tvol 'Backup: [0-9]+'
	v dump tvol -file before.dump
	v dump tvol.backup -file backup.dump
	same_dumps before.dump backup.dump
	date '+%m/%d/%Y %H:%M' > since
	mkdir -p more
	echo more > more/another
	vol import tvol more
	v dump tvol.backup -file backup2.dump
	same_dumps backup.dump backup2.dump
	v backup tvol
	v dump tvol -file after.dump
	v dump tvol.backup -file backup3.dump
	same_dumps after.dump backup3.dump
	v backupsys
}

test_vos_dump() {
	local size
	v dump tvol -file whole.dump
	v dump tvol -clone -file clone.dump
	same_dumps whole.dump clone.dump
	v dump tvol -omitdirs -file sparse.dump
	v size tvol -dump
	size=$(sed -n 's/^dump_size: *//p' out.txt)
	[ "$size" = "$(stat -c %s whole.dump)" ] || fail "size $size, not $(stat -c %s whole.dump)"
	refused dump tvol -noauth -file no.dump
}

test_vos_restore() {
	v restore "$address" a rvol -file whole.dump
	is_there rvol RW On-line
	v dump rvol -file back.dump
	same_dumps whole.dump back.dump
	rm -rf copied
	vol check
}

test_vos_restore_onto() {
	v restore "$address" a svol -file backup.dump
	v dump tvol "-time" "$(cat since)" -file later.dump
	v restore "$address" a svol -file later.dump -overwrite incremental
	v dump svol -file svol.dump
	same_dumps after.dump svol.dump
	v restore "$address" a svol -file before.dump -overwrite full
	v dump svol -file svol.dump
	same_dumps before.dump svol.dump
	v restore "$address" a svol.ro -file before.dump -readonly
	is_there svol.ro RO On-line
}

# A dump that ends early leaves the volume as it was.
test_vos_restore_damaged() {
	head -c 100000 whole.dump > cut.dump
	tail -c 5 whole.dump >> cut.dump
	refused restore "$address" a rvol -file cut.dump -overwrite incremental -localauth
	v online "$address" a rvol
	v dump rvol -file back.dump
	same_dumps whole.dump back.dump
	refused restore "$address" a cutvol -file cut.dump -localauth
	is_gone cutvol
	vol check
}

test_vos_clone() {
	v clone tvol -toname cvol
	is_there cvol BK On-line
	v clone tvol -toname cvol2 -readonly
	is_there cvol2 RO On-line
	v dump tvol -file whole.dump
	# Clones are in no entry.
	v dump "$(id_of cvol2)" -server "$address" -partition a -file cvol2.dump
	same_dumps whole.dump cvol2.dump
	v remove "$address" a "$(id_of cvol)"
	v remove "$address" a "$(id_of cvol2)"
	is_gone cvol
	vol check
}

# A clone for writing has contents of its own.
test_vos_clone_writable() {
	local id
	v clone tvol -toname wvol -readwrite
	is_there wvol RW On-line
	id=$(id_of wvol)
	v dump "$id" -server "$address" -partition a -file wvol.dump
	same_dumps whole.dump wvol.dump
	mkdir -p written
	echo written > written/alone
	vol import wvol written
	v dump tvol -file again.dump
	same_dumps whole.dump again.dump
	v dump "$id" -server "$address" -partition a -file wvol2.dump
	list wvol2.dump
	! diff -q wvol.dump.list wvol2.dump.list > /dev/null || fail "the clone was not changed"
	# Of a clone, and in the place of nothing that is there.
	v clone tvol.backup -toname bvol -readwrite
	is_there bvol RW On-line
	refused clone tvol -toname other -toid "$id" -readwrite -localauth
	v remove "$address" a "$id"
	v remove "$address" a "$(id_of bvol)"
	is_gone wvol
	vol check
}

test_vos_release() {
	v addsite "$address" a tvol
	v release tvol
	entry tvol 'ROnly: [0-9]+' 'number of sites -> 2'
	is_there tvol.readonly RO On-line
	echo released > more/released
	vol import tvol more
	v dump tvol.readonly -file ro.dump
	same_dumps whole.dump ro.dump
	v release tvol
	v dump tvol -file whole.dump
	v dump tvol.readonly -file ro.dump
	same_dumps whole.dump ro.dump
	v release tvol -f
	! grep -q 'Not released\|New release' out.txt || fail "the release is not complete"
}

# The read-only volume takes the place of its read-write one, which is lost; not of one that is here.
test_vos_convert() {
	local id ro
	v create "$address" a lost -maxquota 70000
	vol import lost "$tree"
	v addsite "$address" a lost
	v release lost
	v dump lost -file lost.dump
	id=$(id_of lost) ro=$(id_of lost.readonly)
	refused convertROtoRW "$address" a lost -force -localauth
	vol import lost more
	v zap "$address" a lost
	is_gone lost
	v convertROtoRW "$address" a lost -force
	is_there lost RW On-line
	is_gone lost.readonly
	[ "$(id_of lost)" = "$id" ] || fail "$(id_of lost), not $id"
	v dump lost -file converted.dump
	same_dumps lost.dump converted.dump
	vol import lost more
	v addsite "$address" a lost
	v release lost
	[ "$(id_of lost.readonly)" = "$ro" ] || fail "$(id_of lost.readonly), not $ro"
	v remove "$address" a "$ro"
	v remove -id lost
	vol check
}

test_vos_names() {
	v rename rvol renamed
	entry renamed '^renamed'
	is_there renamed RW On-line
	refused examine rvol -localauth
	v setfields renamed -maxquota 123456
	v examine renamed
	want_line out.txt 'MaxQuota +123456 K'
	v offline "$address" a renamed
	is_there renamed RW Off-line
	v online "$address" a renamed
	is_there renamed RW On-line
}

test_vos_locks() {
	v lock renamed
	entry renamed LOCKED
	refused backup renamed -localauth
	v unlock renamed
	v backup renamed
	v lock renamed
	v unlockvldb
}

test_vos_sync() {
	v delentry renamed
	refused examine renamed -localauth
	v syncvldb "$address"
	entry renamed '^renamed'
	v syncserv "$address"
	v listvldb
	v status "$address"
	v partinfo "$address"
	v listaddrs
}

# What was made is there after a restart, and transactions are not.
test_vos_restart() {
	kill -KILL "$(cat server.pid)"
	wait_for test -f server.status
	start_server || fail "rxfsd does not start again: $(head -n 1 server.err)"
	entry tvol 'ROnly: [0-9]+' 'number of sites -> 2'
	v dump tvol -file again.dump
	same_dumps whole.dump again.dump
}

test_vos_remove() {
	v remove -id tvol
	is_gone tvol.backup
	# The read-only volume stays without it.
	is_there tvol.readonly RO On-line
	v dump tvol.readonly -file ro.dump
	same_dumps whole.dump ro.dump
	v remove "$address" a tvol.readonly
	is_gone tvol.readonly
	v zap "$address" a svol -force
	vol check
}

dump_stalls() {
	limited 10 vos status "$address" -localauth 2> err.txt | grep -q 'lastProcName.*Dump\|: Dump'
}

# A dump whose client takes nothing more does not keep the server from its end.
test_vos_end() {
	mkfifo stalled
	exec 9<> stalled
	limited 60 vos dump renamed -file stalled -localauth > dump.txt 2>&1 9>&- &
	wait_for dump_stalls || { cat err.txt; vos status "$address" -localauth; fail "no dump runs: $(head -n 1 dump.txt)"; }
	stop server || [ "$(cat server.status)" -lt 128 ] || fail "rxfsd had to be killed"
	exec 9>&-
	wait $!
	limited 60 "$rxvol" -S store check > out.txt 2>&1 || fail "the store has faults: $(head -n 1 out.txt)"
	! grep -i 'assert\|damaged' server.err || fail "the log has $(grep -i -m 1 'assert\|damaged' server.err)"
}
