# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's programs, and a client on its library, with volumes that rxfsd serves from a store. The client makes the
# same calls to a cell of OpenAFS's servers before.

. "$here/cell.bash"

keyfile=/etc/openafs/server/KeyFileExt
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
realm=INTEROP.EXAMPLE

# -- OpenAFS's cell --

their() {
	limited 60 "$@" -localauth > made.txt 2>&1 || { echo "$*: $(cat made.txt)"; return 1; }
}

# their_volume NAME: a volume and its clones.
their_volume() {
	their vos create "$address" a "$1" -maxquota 5000 && their vos addsite "$address" a "$1" && their vos release "$1" &&
		their vos backup "$1"
}

their_id() {
	limited 20 vos examine "$1" -noauth -format 2> /dev/null | sed -n 's/^id[[:space:]]*\([0-9]*\).*/\1/p' | head -n 1
}

make_theirs() {
	launch vlserver "$servers/vlserver"
	launch ptserver "$servers/ptserver" -p 16
	wait_port 7003 vlserver && wait_port 7002 ptserver && wait_for databases_ready || return
	their pts createuser alice -id 1 && their pts createuser bob -id 2 && their pts createuser boss -id 3 &&
		their pts adduser boss system:administrators || return
	# Before the file server sees the client: it keeps the groups of a machine.
	their pts createuser "$address" && their pts createuser "${address%.*}.0" && their pts creategroup near &&
		their pts creategroup net && their pts creategroup other && their pts adduser "$address" near &&
		their pts adduser "${address%.*}.0" net && their pts adduser bob near || return
	# Aborts at once, also to a client with many.
	launch fileserver "$servers/fileserver" -abortthreshold 0
	launch volserver "$servers/volserver"
	wait_port 7000 fileserver && wait_port 7005 volserver && wait_for volserver_ready || return
	their_volume uae && their_volume plain && their vos create "$address" a other-uae -maxquota 5000 &&
		their vos create "$address" a other-plain -maxquota 5000
}

# make_calls FILE CODES ID: FILE gets what store_calls prints.
make_calls() {
	limited 100 store_calls "$address" $key 5 $realm "$2" work="$("$3" "$2")" work.ro="$("$3" "$2.readonly")" \
		work.bk="$("$3" "$2.backup")" other="$("$3" "other-$2")" < "$here/store_calls.txt" > "$1" 2> "$1.err" ||
		{ echo "store_calls $2 ended with $?: $(tail -n 1 "$1.err") after $(tail -n 1 "$1")"; return 1; }
}

# What afsio leaves of a longer file, as theirs.afsio.
their_afsio() {
	their vos create "$address" a root.cell || return
	printf 'boss setacl work 1|0|system:anyuser/127|$\nboss create work file file mode=0644\n' |
		limited 20 store_calls "$address" $key 5 $realm plain work="$(their_id root.cell)" > made.txt 2>&1 || return
	printf longer > text
	limited 20 afsio write -file file -cell "$cell_name" -force < text > made.txt 2>&1 || return
	printf x > text
	limited 20 afsio write -file file -cell "$cell_name" -force < text > made.txt 2>&1 || return
	limited 20 afsio read -file file -cell "$cell_name" > theirs.afsio 2> made.txt
}

# -- our server --

our() {
	limited 60 "$@" > made.txt 2>&1 || { echo "$*: $(cat made.txt)"; return 1; }
}

our_volume() {
	our "$rxvol" -S store create "$1" --quota 5000K && our "$rxvol" -S store clone "$1" &&
		our "$rxvol" -S store clone "$1" --backup
}

our_id() {
	limited 20 "$rxvol" -S store examine "$1" 2> /dev/null | sed -n 's/^ *id *\([0-9]*\).*/\1/p' | head -n 1
}

start_server() {
	launch server "$rxfsd" --store store --cell "$cell_name" --listen "$address" --keytab right --require none \
		--allow-anonymous-writes --protection store --rpc-stats
	wait_port 7000 server && wait_port 7003 server && wait_port 7005 server && wait_port 7002 server
}

# afsio starts in root.cell.
make_ours() {
	local user
	our_volume uae && our_volume plain && our "$rxvol" -S store create other-uae --quota 5000K &&
		our "$rxvol" -S store create other-plain --quota 5000K &&
		our "$rxvol" -S store create root.cell --acl 'system:anyuser all' &&
		our "$rxvol" -S store create docs --acl 'system:anyuser all' --quota 4000K || return
	for user in alice:1 bob:2 boss:3; do
		our "$rxpt" -S store adduser "${user%:*}" --id "${user#*:}" || return
	done
	our "$rxpt" -S store adduser "$address" "${address%.*}.0" && our "$rxpt" -S store addgroup near net other &&
		our "$rxpt" -S store member add near "$address" bob && our "$rxpt" -S store member add net "${address%.*}.0" || return
	our "$rxpt" -S store member add system:administrators boss && our "$rxpt" -S store addgroup staff &&
		our "$rxpt" -S store member add staff alice &&
		our "$rxvol" -S store create private --acl 'staff all' --acl 'system:anyuser rl' --owner alice &&
		our "$rxvol" -S store mount root.cell:private private && start_server
}

# tool COMMAND...: runs an OpenAFS program; output in out.txt, errors in err.txt.
tool() {
	alive server || fail "rxfsd has ended: $(head -n 1 server.err)"
	limited 40 "$@" > out.txt 2> err.txt || fail "$* ended with $?: $(head -n 1 err.txt)"
}

before_store() {
	local cell_ours codes
	rxfsd=$(need rxfsd) && rxpt=$(need rxpt) && rxvol=$(need rxvol) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 $key || return
	cp $keyfile right
	make_theirs || return
	for codes in uae plain; do
		make_calls theirs.$codes $codes their_id || return
	done
	their_afsio || return
	stop fileserver QUIT
	stop volserver
	stop vlserver
	stop ptserver
	make_ours
}

# -- the same calls --

# flat FILE: one line for each call with its results.
flat() {
	awk '/^ / { line = line "|" $0; next } { if (NR > 1) print line; line = $0 } END { print line }' "$1"
}

same_calls() {
	make_calls "ours.$1" "$1" our_id || fail "$(make_calls "ours.$1" "$1" our_id)"
	flat "theirs.$1" | grep -v '^~' > left
	flat "ours.$1" | grep -v '^~' > right.txt
	[ "$(wc -l < left)" -gt 500 ] || fail "only $(wc -l < left) calls"
	diff left right.txt > differ || {
		cat differ
		fail "$(grep -c '^<' differ) calls: $(head -n 4 differ | tr '\n' ' ')"
	}
}

test_store_calls_uae() {
	same_calls uae
}

test_store_calls_plain() {
	same_calls plain
}

# Each of the differences that store_calls.txt explains is one, with or without OpenAFS's own codes.
test_store_differences() {
	local codes
	for codes in uae plain; do
		paste -d '\n' <(flat theirs.$codes | grep '^~') <(flat ours.$codes | grep '^~') |
			awk 'NR % 2 { left = $0; next } { print (left == $0 ? "same" : "differs") }' > marked.$codes
	done
	[ -s marked.uae ] || fail 'store_calls.txt explains no difference'
	paste -d ' ' marked.uae marked.plain > both
	! grep -n '^same same' both || fail "$(grep -c '^same same' both) lines with \"~\" do not differ: number $(grep -n -m 1 '^same same' both)"
}

# Nothing of this has harmed the volumes.
test_store_check() {
	our "$rxvol" -S store check || fail "$(cat made.txt)"
	our "$rxvol" -S store check --fast || fail "$(cat made.txt)"
}

# -- afsio --

# afscp_of OPTIONS...: our client; output in out.txt.
afscp_of() {
	limited 60 "$(need afscp)" -s "$address" "$@" > out.txt 2> err.txt || fail "afscp $* ended with $?: $(head -n 1 err.txt)"
}

# by_both PATH FILE: afsio, by two ways to the volume, and afscp read what FILE has.
by_both() {
	local p
	for p in "$1" "/afs/$cell_name/$1"; do
		tool afsio read -file "$p" -cell "$cell_name"
		same_file "$2" out.txt
	done
	rm -f copy
	afscp_of get "root.cell:$1" copy
	same_file "$2" copy
}

test_store_afsio_read() {
	local size
	for size in 0 1 4095 70000 9000001; do
		head -c $size /dev/urandom > plain
		afscp_of put plain "root.cell:read-$size"
		by_both "read-$size" plain
	done
	afscp_of mkdir root.cell:dir root.cell:dir/deep
	afscp_of put plain root.cell:dir/deep/file
	by_both dir/deep/file plain
	afscp_of ln -s dir/deep/file root.cell:soft
	tool afsio read -file soft -cell "$cell_name"
	same_file plain out.txt
	tool afsio read -file no/such/file -cell "$cell_name"
	[ -s err.txt ] && [ ! -s out.txt ] || fail 'a file that does not exist was read'
}

# overwritten NEW: what `whole` becomes. afsio does not shorten a file.
overwritten() {
	{ cat "$1"; tail -c "+$(($(stat -c %s "$1") + 1))" whole; } > whole.new
	mv whole.new whole
}

# Over a file that exists: Debian's afsio crashes when it creates one, also with OpenAFS.
test_store_afsio_write() {
	local size
	[ "$(cat theirs.afsio)" = xonger ] || fail "OpenAFS's file has: $(cat theirs.afsio)"
	cp plain whole
	for size in 70000 5 0 9000002; do
		head -c $size /dev/urandom > plain
		limited 40 afsio write -file dir/deep/file -cell "$cell_name" -force < plain > out.txt 2> err.txt ||
			fail "afsio write ended with $?: $(head -n 1 err.txt)"
		overwritten plain
		by_both dir/deep/file whole
	done
	cp whole saved
}

test_store_afsio_append() {
	local part
	head -c 100 /dev/urandom > whole
	afscp_of put whole root.cell:dir/appended
	for part in 1 65536 1000001; do
		head -c $part /dev/urandom > plain
		limited 40 afsio append -file dir/appended -cell "$cell_name" < plain > out.txt 2> err.txt ||
			fail "afsio append ended with $?: $(head -n 1 err.txt)"
		cat plain >> whole
		by_both dir/appended whole
	done
}

test_store_afsio_fid() {
	local fid
	afscp_of stat root.cell:dir/appended
	fid=$(sed -n 's/^ *FID *//p' out.txt)
	tool afsio fidread -fid "$fid" -cell "$cell_name"
	same_file whole out.txt
	echo shorter > plain
	limited 40 afsio fidwrite -vnode "$fid" -cell "$cell_name" -force < plain > out.txt 2> err.txt ||
		fail "afsio fidwrite ended with $?: $(head -n 1 err.txt)"
	overwritten plain
	by_both dir/appended whole
}

# read_in FOLDER FILE: docs/page below the mount point of a cell has what FILE has.
read_in() {
	tool afsio read -file "$1/docs/page" -cell "$cell_name"
	same_file "$2" out.txt
}

# A mount point leads to the read-write volume, or to the clone if it is itself in one.
test_store_mounts() {
	echo first > plain
	afscp_of put plain docs:page
	our "$rxvol" -S store mount root.cell:docs docs && our "$rxvol" -S store clone docs &&
		our "$rxvol" -S store clone docs --backup || fail "$(cat made.txt)"
	echo second > plain2
	limited 40 afsio write -file docs/page -cell "$cell_name" -force < plain2 > out.txt 2> err.txt || fail "afsio write: $(cat err.txt)"
	afscp_of get docs:page copy
	same_file plain2 copy
	read_in "/afs/$cell_name" plain2
	for clone in docs.readonly docs.backup; do
		afscp_of get $clone:page copy
		same_file plain copy
	done
	our "$rxvol" -S store clone root.cell || fail "$(cat made.txt)"
	read_in "/afs/$cell_name" plain
	read_in "/afs/.$cell_name" plain2
	# afsio ends with 0 even if it failed.
	limited 40 afsio write -file "/afs/$cell_name/docs/page" -cell "$cell_name" -force < plain2 > out.txt 2> err.txt
	afscp_of get docs.readonly:page copy
	same_file plain copy
	our "$rxvol" -S store clone docs || fail "$(cat made.txt)"
	read_in "/afs/$cell_name" plain2
	our "$rxvol" -S store remove root.cell.readonly || fail "$(cat made.txt)"
	read_in "/afs/$cell_name" plain2
}

# Without a ticket nobody writes to a volume of alice's.
test_store_afsio_refused() {
	rm -f copy
	limited 40 afsio write -file private/page -cell "$cell_name" -force < plain > out.txt 2> err.txt
	limited 40 afsio append -file private/page -cell "$cell_name" < plain > out.txt 2>> err.txt
	[ -s err.txt ] || fail 'afsio says nothing'
	! limited 20 "$(need afscp)" -s "$address" put plain private:page > out.txt 2> err.txt || fail 'afscp wrote it'
	want_line err.txt 'ermission denied'
}

# -- vos --

# value NAME: of vos examine -format.
value() {
	sed -n "s/^$1[[:space:]]*//p" out.txt | head -n 1
}

# want_value NAME PATTERN
want_value() {
	[[ $(value "$1") =~ ^$2$ ]] || fail "$1 is \"$(value "$1")\" instead of $2"
}

test_store_vos_listvldb() {
	tool vos listvldb -noauth -cell "$cell_name" -name docs
	want_line out.txt "RWrite: $(our_id docs) +ROnly: $(our_id docs.readonly) +Backup: $(our_id docs.backup)"
	want_line out.txt 'number of sites -> 2'
	want_line out.txt "server ($address|afs\.$cell_name) partition /vicepa RW Site"
	want_line out.txt "server ($address|afs\.$cell_name) partition /vicepa RO Site"
	tool vos listvldb -noauth -cell "$cell_name"
	want_line out.txt '^docs *$'
	want_line out.txt '^root.cell *$'
	tool vos listvldb -noauth -cell "$cell_name" -name private
	! grep -q 'ROnly\|Backup' out.txt || fail "clones that nobody made: $(cat out.txt)"
}

test_store_vos_examine() {
	local type name
	for name in docs.RW docs.readonly.RO docs.backup.BK; do
		type=${name##*.}
		name=${name%.*}
		tool vos examine "$name" -noauth -cell "$cell_name" -format
		want_value name "$name"
		want_value id "$(our_id "$name").*"
		want_value type "$type"
		want_value status OK
		want_value inUse Y
		want_value needsSalvaged N
		want_value parentID "$(our_id docs).*"
		want_value maxquota 4000
		want_value diskused '[1-9][0-9]*'
		want_value filecount '[1-9][0-9]*'
		want_value creationDate "$(ours_of "$name" created).*"
		want_value copyDate "$(ours_of "$name" copied).*"
		want_value updateDate "$(ours_of "$name" updated).*"
		[ $type = RO ] || want_value backupDate "$(ours_of docs.backup cloned).*"
		cp out.txt "vos.$name"
	done
	[ "$(grep ^diskused vos.docs)" = "$(grep ^diskused vos.docs.readonly)" ] || fail 'the new clone has another size'
	tool vos examine docs -noauth -cell "$cell_name"
	want_line out.txt "^docs +$(our_id docs) RW +[0-9]+ K +On-line"
	want_line out.txt 'MaxQuota +4000 K'
	tool vos examine docs.backup -noauth -cell "$cell_name"
	want_line out.txt "^docs.backup +$(our_id docs.backup) BK +[0-9]+ K +On-line"
}

# ours_of VOLUME NAME: seconds since 1970, of a date that rxvol prints.
ours_of() {
	date -d "$(limited 20 "$rxvol" -S store examine "$1" | sed -n "s/^ *$2 *\([0-9].*\)/\1/p")" +%s
}

test_store_vos_listvol() {
	local volumes
	volumes=$(limited 20 "$rxvol" -S store list | wc -l)
	tool vos listvol "$address" -noauth -cell "$cell_name"
	want_line out.txt "^docs +$(our_id docs) RW +[0-9]+ K On-line"
	want_line out.txt "^docs.readonly +$(our_id docs.readonly) RO +[0-9]+ K On-line"
	want_line out.txt "^docs.backup +$(our_id docs.backup) BK +[0-9]+ K On-line"
	[ "$(grep -c On-line out.txt)" -ge "$volumes" ] || fail "$(grep -c On-line out.txt) volumes instead of $volumes"
	our "$rxvol" -S store offline private --message moving || fail "$(cat made.txt)"
	tool vos listvol "$address" -noauth -cell "$cell_name"
	want_line out.txt 'private.*Off-line|Could not attach'
	our "$rxvol" -S store online private || fail "$(cat made.txt)"
}

# ask_volume NAME: what GetVolumeStatus tells, by OpenAFS's stubs. The client wants a promise on another volume first.
ask_volume() {
	echo 'anyone volume asked' | limited 20 store_calls "$address" $key 5 $realm uae first="$(our_id root.cell)" \
		asked="$(our_id "$1")" > out.txt 2> err.txt || fail "store_calls ended with $?: $(head -n 1 err.txt)"
}

# The reason for which a volume is off-line reaches users.
test_store_offline() {
	our "$rxvol" -S store offline docs --message 'back at noon' || fail "$(cat made.txt)"
	ask_volume docs
	want_line out.txt 'offline "back at noon"'
	! limited 20 "$(need afscp)" -s "$address" --retry 0 ls docs: > out.txt 2> err.txt || fail 'afscp reads a volume that is off-line'
	want_line err.txt 'off-line.*"back at noon"'
	tool vos examine docs -noauth -cell "$cell_name"
	want_line out.txt 'Off-line|Could not attach'
	our "$rxvol" -S store online docs || fail "$(cat made.txt)"
	ask_volume docs
	want_line out.txt 'offline ""'
}

test_store_vos_server() {
	tool vos status "$address" -noauth -cell "$cell_name"
	want_line out.txt '^No active transactions on'
	tool vos partinfo "$address" -noauth -cell "$cell_name"
	awk '/Free space/ { found = 1; exit !($6 <= $(NF) && $6 > 0) } END { exit !found }' out.txt || fail "$(cat out.txt)"
	tool vos listaddrs -noauth -cell "$cell_name"
	want_line out.txt "^(afs\.)?$address|afs\.$cell_name"
}

# -- statistics --

# shown NAME: the number before a name in out.txt.
shown() {
	sed -n "s/^[[:space:]]*\([0-9]*\) $1\$/\1/p" out.txt | head -n 1
}

collection() {
	tool xstat_fs_test "$address" -collID "$1" -onceonly
	! grep -q 'failed, code' out.txt || fail "$(grep 'failed, code' out.txt)"
}

stores() {
	collection 2
	sed -n 's/^ *StoreData: \([0-9]*\) ops (\([0-9]*\) OK).*/\2/p' out.txt | head -n 1
}

test_store_xstat() {
	local before after made
	collection 0
	collection 1
	[ "$(shown rx_dataPacketsRead)" -gt 0 ] || fail 'no packets were read'
	before=$(stores)
	made=$(sed -n 's/^ *CreateFile: [0-9]* ops (\([0-9]*\) OK).*/\1/p' out.txt | head -n 1)
	for i in 1 2 3; do afscp_of put plain root.cell:counted-$i; done
	after=$(stores)
	[ $((after - before)) -ge 3 ] || fail "3 stores, and $before became $after"
	want_line out.txt "^ *CreateFile: [0-9]+ ops \(($((made + 3))) OK\)"
	want_line out.txt '^StoreData: [1-9][0-9]* xfers'
	collection 3
	[ "$(shown AddCallBack)" -gt 0 ] && [ "$(shown BreakCallBacks)" -gt 0 ] || fail "callbacks: $(head -n 30 out.txt | tr '\n' ' ')"
}

test_store_afsmonitor() {
	command -v script > /dev/null || skip 'script is not installed'
	TERM=vt100 launch monitor bash -c 'sleep 25 | timeout 20 script -qc "$0" /dev/null' \
		"afsmonitor -fshosts $address -output $work/monitored -detailed -frequency 1"
	wait_for grep -q '^StoreData: [1-9][0-9]* xfers' monitored || fail 'afsmonitor wrote no statistics of stores'
	! grep -qi 'failed' monitored || fail "afsmonitor: $(grep -i -m 1 failed monitored)"
}

test_store_scout() {
	command -v script > /dev/null || skip 'script is not installed'
	TERM=vt100 launch scout bash -c 'sleep 25 | timeout 20 script -qc "$0" /dev/null' "scout -server $address -frequency 1"
	wait_for grep -q 'Probe 1 results' scout.out || fail 'scout showed no results'
	want_line scout.out "$address.*a:[1-9][0-9]+"
}

# The callback service of afscp, while it holds promises and a lock. It has no cache to show.
test_store_cmdebug() {
	local port found=
	rm -f locked unlock
	launch holder "$(need afscp)" -s "$address" lock root.cell:counted-1 bash -c 'touch locked; until [ -e unlock ]; do sleep 0.05; done'
	wait_for test -e locked || fail "afscp lock: $(cat holder.err)"
	tool rxdebug "$address" 7000 -allconnections
	for port in $(sed -n 's/^Connection from host .*, port \([0-9]*\), .*/\1/p' out.txt | sort -u); do
		port_bound "$port" || continue
		limited 20 cmdebug -servers "$address" -port "$port" -addrs > answer.txt 2>&1
		! grep -q '^Error Translation$' answer.txt || found=$port
		[ -z "$found" ] || break
	done
	[ -n "$found" ] || fail "no callback service answers cmdebug: $(tail -n 1 answer.txt)"
	want_line answer.txt '^UUID: [0-9a-f-]*$'
	limited 20 cmdebug -servers "$address" -port "$found" -long > answer.txt 2>&1
	want_line answer.txt 'RPC interface mismatch'
	alive holder || fail 'afscp has ended'
	touch unlock
	wait_for test -f holder.status
	[ "$(cat holder.status)" -eq 0 ] || fail "afscp lock ended with $(cat holder.status): $(cat holder.err)"
}

# -- pts, rxdebug --

test_store_pts() {
	tool pts examine boss -noauth -cell "$cell_name"
	want_line out.txt '^Name: boss, id: 3,'
	tool pts membership system:administrators -noauth -cell "$cell_name"
	want_line out.txt '^  boss$'
	tool pts membership staff -noauth -cell "$cell_name"
	want_line out.txt '^  alice$'
	tool pts membership alice -localauth -cell "$cell_name"
	want_line out.txt '^  staff$'
}

test_store_rxdebug() {
	local port
	for port in 7000 7002 7003 7005; do
		tool rxdebug "$address" $port -version
		want_line out.txt '^AFS version: .*[A-Za-z]'
		tool rxdebug "$address" $port -rxstats -noconns
		want_line out.txt 'packets read: data [1-9]'
	done
	tool rxdebug "$address" 7000 -peers -long -noconns
	want_line out.txt "^Peer at host $address, port [1-9]"
}

# All has survived a restart.
test_store_end() {
	stop server || fail "rxfsd ended with $? on SIGTERM: $(tail -n 1 server.err)"
	! grep -Ei 'damage|internal' server.err > left || fail "$(head -n 1 left)"
	our "$rxvol" -S store check || fail "$(cat made.txt)"
	start_server || fail "$(tail -n 1 server.err)"
	by_both dir/deep/file saved
	stop server || fail "rxfsd ended with $? on SIGTERM: $(tail -n 1 server.err)"
}
