# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's vos moves, copies and releases volumes between servers of a cell. The first is rxfsd, which also has the location
# service; the second is another rxfsd.

. "$here/vos.bash"

other=${address%.*}.2

start_other() {
	launch other "$rxfsd" --store store2 --cell "$cell_name" --listen "$other" --keytab right --require none
	wait_for vos_answers "$other"
}

vos_answers() {
	limited 10 vos listpart "$1" -noauth 2> /dev/null | grep -q vicepa
}

before_vos_servers() {
	before_vos && ip addr add "$other/24" dev afs0 &&
		"$rxvol" -S store2 create somewhere > made.txt 2>&1 && start_other
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

test_servers_move() {
	v create "$address" a mvol -maxquota 70000
	vol import mvol "$tree"
	v backup mvol
	v dump mvol -file mvol.dump
	v move mvol "$address" a "$other" a
	on "$other" mvol RW On-line
	not_on "$address" mvol
	not_on "$address" mvol.backup
	entry mvol 'server 10.91.7.2 partition /vicepa RW Site'
	v dump mvol -file moved.dump
	same_dumps mvol.dump moved.dump
	v move mvol "$other" a "$address" a
	not_on "$other" mvol
	v dump mvol -file moved.dump
	equal_dumps mvol.dump moved.dump ''
	v move mvol "$address" a "$other" a -live
	v move mvol "$other" a "$address" a -live
	on "$address" mvol RW On-line
	v dump mvol -file moved.dump
	equal_dumps mvol.dump moved.dump ''
}

test_servers_copy() {
	v copy mvol "$address" a ncopy "$other" a
	on "$other" ncopy RW On-line
	v dump ncopy -file copy.dump
	same_dumps mvol.dump copy.dump
}

test_servers_release() {
	v addsite "$address" a mvol
	v addsite "$other" a mvol
	v release mvol
	on "$address" mvol.readonly RO On-line
	on "$other" mvol.readonly RO On-line
	v dump mvol -file mvol.dump
	v dump "$(id_of mvol.readonly)" -server "$other" -partition a -file ro.dump
	same_dumps mvol.dump ro.dump
	mkdir -p more
	echo changed > more/changed
	vol import mvol more
	v release mvol
	v dump mvol -file mvol.dump
	v dump "$(id_of mvol.readonly)" -server "$other" -partition a -file ro.dump
	same_dumps mvol.dump ro.dump
	v listvldb mvol
	! grep -q 'Not released\|New release\|LOCKED' out.txt || fail "the release is not complete"
}

# The read-only volume on the site that the volume leaves stays, and is released to from the new one.
test_servers_move_released() {
	v move mvol "$address" a "$other" a
	on "$address" mvol.readonly RO On-line
	on "$other" mvol RW On-line
	v dump mvol -file moved.dump
	same_dumps mvol.dump moved.dump
	v release mvol -f
	v dump "$(id_of mvol.readonly)" -server "$address" -partition a -file ro.dump
	same_dumps mvol.dump ro.dump
	v move mvol "$other" a "$address" a
	v dump mvol -file moved.dump
	same_dumps mvol.dump moved.dump
	v release mvol
}

# The server of the read-write volume is lost, that of a read-only one takes its place.
test_servers_convert() {
	local id
	v create "$address" a lvol -maxquota 70000
	vol import lvol "$tree"
	v addsite "$other" a lvol
	v release lvol
	v dump lvol -file lvol.dump
	id=$(id_of lvol)
	v zap "$address" a lvol
	v convertROtoRW "$other" a lvol -force
	on "$other" lvol RW On-line
	not_on "$other" lvol.readonly
	entry lvol 'server 10.91.7.2 partition /vicepa RW Site' 'number of sites -> 1'
	v dump lvol -file converted.dump
	same_dumps lvol.dump converted.dump
	v addsite "$other" a lvol
	v addsite "$address" a lvol
	v release lvol
	v move lvol "$other" a "$address" a
	[ "$(id_of lvol)" = "$id" ] || fail "$(id_of lvol), not $id"
	v dump lvol -file converted.dump
	same_dumps lvol.dump converted.dump
	v remove "$other" a lvol.readonly
	v remove "$address" a lvol.readonly
	v remove -id lvol
}

# A second server that does not answer does not keep the first site from its release.
test_servers_dead_site() {
	stop other
	rm -rf more
	mkdir more
	echo more > more/later
	vol import mvol more
	# vos itself waits for the server to come back.
	limited 120 vos release mvol -localauth > out.txt 2>&1
	v dump mvol -file mvol.dump
	v dump "$(id_of mvol.readonly)" -server "$address" -partition a -file ro.dump
	same_dumps mvol.dump ro.dump
	start_other || fail "the second server does not start again: $(head -n 1 other.err)"
	v unlock mvol
	v release mvol
	v dump "$(id_of mvol.readonly)" -server "$other" -partition a -file ro.dump
	same_dumps mvol.dump ro.dump
}

test_servers_end() {
	local store
	stop server
	stop other
	for store in store store2; do
		limited 60 "$rxvol" -S "$store" check > out.txt 2>&1 || fail "$store has faults: $(head -n 1 out.txt)"
	done
	! grep -i 'assert\|damaged' server.err other.err || fail "a log tells of a fault"
}
