# SPDX-License-Identifier: BSD-2-Clause
# A cell with a file server of OpenAFS beside rxfsd, which has the location and protection services: vos moves, copies and
# releases volumes between both.

. "$here/vos.bash"

theirs=${address%.*}.2

theirs_ready() {
	limited 10 vos listpart "$theirs" -noauth 2> /dev/null | grep -q vicepa
}

# The file server registers with our location service.
registered() {
	limited 10 vos listaddrs -noauth 2> /dev/null | grep -q "$theirs"
}

before_vos_openafs() {
	rxpt=$(need rxpt) || return
	server_options=(--protection store)
	before_vos && ip addr add "$theirs/24" dev afs0 && echo "$theirs" > /var/lib/openafs/local/NetInfo || return
	launch fileserver "$servers/fileserver" -rxbind
	launch volserver "$servers/volserver" -rxbind
	wait_for theirs_ready && wait_for registered
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

test_openafs_listaddrs() {
	v listaddrs -printuuid
	[ "$(grep -c '^UUID: ' out.txt)" -eq 2 ] || fail "not two servers: $(tr '\n' ' ' < out.txt)"
}

test_openafs_move() {
	v create "$address" a mvol -maxquota 70000
	vol import mvol "$tree"
	v dump mvol -file mvol.dump
	v move mvol "$address" a "$theirs" a
	on "$theirs" mvol RW On-line
	not_on "$address" mvol
	v dump mvol -file moved.dump
	same_dumps mvol.dump moved.dump
	v move mvol "$theirs" a "$address" a
	on "$address" mvol RW On-line
	not_on "$theirs" mvol
	v dump mvol -file moved.dump
	equal_dumps mvol.dump moved.dump ''
	v move mvol "$address" a "$theirs" a -live
	v move mvol "$theirs" a "$address" a -live
	v dump mvol -file moved.dump
	equal_dumps mvol.dump moved.dump ''
}

test_openafs_copy() {
	v copy mvol "$address" a ncopy "$theirs" a
	v dump ncopy -file copy.dump
	same_dumps mvol.dump copy.dump
	v create "$theirs" a tvol
	v copy tvol "$theirs" a ocopy "$address" a
	v dump tvol -file tvol.dump
	v dump ocopy -file copy.dump
	same_dumps tvol.dump copy.dump
}

test_openafs_release() {
	v addsite "$address" a mvol
	v addsite "$theirs" a mvol
	v release mvol
	on "$theirs" mvol.readonly RO On-line
	mkdir -p more
	echo changed > more/changed
	vol import mvol more
	v release mvol
	v dump mvol -file mvol.dump
	v dump "$(id_of mvol.readonly)" -server "$theirs" -partition a -file ro.dump
	same_dumps mvol.dump ro.dump
}

# From their server to ours.
test_openafs_released_from() {
	v addsite "$theirs" a tvol
	v addsite "$address" a tvol
	v release tvol
	on "$address" tvol.readonly RO On-line
	v dump tvol -file tvol.dump
	v dump "$(id_of tvol.readonly)" -server "$address" -partition a -file ro.dump
	same_dumps tvol.dump ro.dump
	v release tvol -f
	v move mvol "$address" a "$theirs" a
	on "$address" mvol.readonly RO On-line
	v release mvol
	v dump mvol -file mvol.dump
	v dump "$(id_of mvol.readonly)" -server "$address" -partition a -file ro.dump
	same_dumps mvol.dump ro.dump
	v move mvol "$theirs" a "$address" a
	v dump mvol -file moved.dump
	same_dumps mvol.dump moved.dump
}

# Their server of the read-write volume is lost: our read-only one takes its place.
test_openafs_convert() {
	local id
	v create "$theirs" a lvol -maxquota 70000
	v addsite "$address" a lvol
	v release lvol
	v dump lvol -file lvol.dump
	id=$(v listvldb lvol && awk '$1 == "RWrite:" { print $2 }' out.txt)
	v zap "$theirs" a lvol
	v convertROtoRW "$address" a lvol -force
	on "$address" lvol RW On-line
	not_on "$address" lvol.readonly
	[ "$(id_of lvol)" = "$id" ] || fail "$(id_of lvol), not $id"
	v dump lvol -file converted.dump
	same_dumps lvol.dump converted.dump
	v remove -id lvol
}

# Our server of the read-write volume is lost: their copy, which we have released, takes its place. OpenAFS's volserver converts it and
# then answers the length of a path, which vos takes for an error: the entry is as before.
test_openafs_convert_theirs() {
	local id
	v create "$address" a tvol -maxquota 70000
	vol import tvol "$tree"
	v addsite "$theirs" a tvol
	v release tvol
	v dump tvol -file tvol.dump
	id=$(v listvldb tvol && awk '$1 == "RWrite:" { print $2 }' out.txt)
	v zap "$address" a tvol
	refused convertROtoRW "$theirs" a tvol -force -localauth
	want_line out.txt 'failed with code 43$'
	v syncvldb "$theirs"
	v syncserv "$theirs"
	on "$theirs" tvol RW On-line
	not_on "$theirs" tvol.readonly
	entry tvol "RWrite: $id" 'number of sites -> 1' "server $theirs partition /vicepa RW Site"
	v dump tvol -file converted.dump
	same_dumps tvol.dump converted.dump
	v remove -id tvol
}

test_openafs_sync() {
	v syncvldb "$theirs"
	v syncvldb "$address"
	v syncserv "$theirs"
	v syncserv "$address"
	entry mvol '^mvol' 'number of sites -> 3'
}

test_openafs_end() {
	stop volserver
	stop fileserver QUIT
	stop server
	limited 60 "$rxvol" -S store check > out.txt 2>&1 || fail "the store has faults: $(head -n 1 out.txt)"
	! grep -i 'assert\|damaged' server.err || fail "the log tells of a fault"
}
