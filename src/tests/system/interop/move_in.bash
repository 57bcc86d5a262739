# SPDX-License-Identifier: BSD-2-Clause
# rxvol moves volumes from OpenAFS's file server to rxfsd and back, while they are written, and after it was killed after each of its
# remote calls. rxfsd has the location service of the cell.

. "$here/vos_openafs.bash"

state=$work/moves

before_move_in() {
	afscp=$(need afscp) || return
	before_vos_openafs || return
	limited 60 vos create "$theirs" a first -localauth > made.txt 2>&1
}

# m COMMAND OPTIONS...: rxvol as the cell itself; output in move.txt, errors in move.err.
m() {
	limited 120 "$rxvol" "$@" --cell-config /etc/openafs/server --state "$state" > move.txt 2> move.err
}

m_well() {
	m "$@" || fail "rxvol $* ended with $?: $(cat move.err move.txt | tail -n 3 | tr '\n' ' ')"
	echo "$*"
	cat move.txt
}

# is_online SERVER NAME
is_online() {
	limited 60 vos listvol "$1" -localauth 2> err.txt | grep -Eq "^$2 .* On-line"
}

# moved NAME FROM TO DUMP: the volume is there, and only there, as it was, and nothing else of the move is left.
moved() {
	on "$3" "$1" RW On-line
	not_on "$2" "$1"
	v dump "$1" -file moved.dump
	same_dumps "$4" moved.dump
	v examine "$1"
	! grep -q LOCKED out.txt || fail "the entry is locked"
	for server in "$address" "$theirs"; do
		v status "$server"
		want_line out.txt 'No active transactions'
	done
	[ -z "$(ls "$state" 2> /dev/null)" ] || fail "logs are left: $(ls "$state")"
}

# Copies in OpenAFS's partition, also those that its lists leave out.
their_volumes() {
	find /vicepa -maxdepth 1 -name 'V*.vol' | wc -l
}

our_volumes() {
	limited 20 "$rxvol" -S store list | wc -l
}

test_move_in_plain() {
	v create "$address" a tvol -maxquota 70000
	vol import tvol "$tree"
	v dump tvol -file tvol.dump
	v move tvol "$address" a "$theirs" a
	m_well move-in "$theirs" --to "$address" --dry-run
	on "$theirs" tvol RW On-line
	m_well move-in "$theirs" --to "$address"
	want_line move.txt 'the source has no volume any more'
	moved tvol "$theirs" "$address" tvol.dump
	m_well move-in "$address" --to "$theirs" --only tvol
	moved tvol "$address" "$theirs" tvol.dump
	v move tvol "$theirs" a "$address" a
	m_well move-in "$address" --to "$theirs" --only tvol --json
	python3 -c 'import json; m = json.load(open("move.txt"))["moves"][0]; assert m["done"] and m["bytes"] > 12000000, m' ||
		fail "not the expected JSON: $(cat move.txt)"
	moved tvol "$address" "$theirs" tvol.dump
}

# What does not move is named, with the reason, and stays.
test_move_in_refused() {
	v create "$theirs" a off
	v offline "$theirs" a off
	v create "$theirs" a locked
	v lock locked
	v create "$theirs" a unknown
	v delentry unknown
	m move-in "$theirs" --to "$address" --exclude tvol && fail "it succeeded"
	for pattern in 'it is off-line' 'its entry is locked' 'the location service has no entry' '^0 volumes move'; do
		want_line move.txt "$pattern"
	done
	v unlock locked
	m_well move-in "$theirs" --to "$address" --only locked
	v online "$theirs" a off
	v remove -id off
	v zap "$theirs" a "$(limited 20 vos listvol "$theirs" -localauth 2> err.txt | awk '$1 == "unknown" { print $2 }')"
	limited 60 "$rxvol" move-in "$theirs" --cell-config /nowhere > move.txt 2>&1 && fail "it succeeded without a cell"
	want_line move.txt 'give --cell-config DIR'
	"$(need cell_ours)" key wrong 5 18 ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
	m move-in "$theirs" --to "$address" --only tvol --keytab wrong && fail "it succeeded with a wrong key"
	on "$theirs" tvol RW On-line
	rm -rf "$state"
}

# refused PATTERN OPTIONS...: status 1, and a message.
refused() {
	local rc=0
	m "${@:2}" || rc=$?
	[ $rc -eq 1 ] || fail "rxvol ${*:2} ended with $rc"
	want_line move.err "$1"
}

# What was mistyped is named, and nothing moves.
test_move_in_mistyped() {
	refused '--only tvll: no volume has such a name' move-in "$theirs" --to "$address" --only tvol --only tvll
	refused '--exclude tvll: no volume has such a name' move-in "$theirs" --to "$address" --exclude tvll
	refused '--only tvll: no volume has such a name' balance --only tvll
	refused "$theirs has no partition /vicepb; it has: /vicepa" move-in "$theirs:b" --to "$address"
	refused "$address has no partition /vicepc; it has: /vicepa" move-in "$theirs" --to "$address:c"
	limited 60 "$rxvol" move-in "$theirs" --to "$address" --cell interop.example --location "$address:7999" \
		--keytab /etc/openafs/server/KeyFileExt > move.txt 2>&1 && fail "it succeeded without a location server"
	want_line move.txt 'no location server of the cell interop.example answers'
	on "$theirs" tvol RW On-line
	m_well move-in "$theirs" --to "$address" --only tvol --dry-run
	want_line move.txt '^1 volume moves'
	m move-in "$address" --to "$theirs" --dry-run
	want_line move.txt 'root.afs.readonly does not move'
}

# writer: puts files until the file `enough` is there; the names and contents of those that were acknowledged go to `acknowledged`.
writer() {
	local i
	: > acknowledged
	for ((i = 0; ; i++)); do
		[ ! -e enough ] || break
		head -c $((i * 37 % 9000)) /dev/urandom > "written.$i"
		limited 60 "$afscp" -s "$address" -x rxkad --key-file right put "written.$i" "tvol:written/$i" > put.txt 2>> put.err &&
			echo "$i" >> acknowledged
		limited 60 "$afscp" -s "$address" -x rxkad --key-file right put "written.$i" tvol:written/again > put.txt 2>> again.err &&
			echo "$i" > again
	done
}

test_move_in_written() {
	local pid i
	"$rxpt" -S store examine afs > out.txt || fail "no user afs"
	m_well move-in "$theirs" --to "$address" --only tvol
	vol acl tvol afs rlidwk
	rm -f enough
	mkdir -p nothing/written
	vol import tvol nothing
	vol acl tvol:written afs rlidwk
	writer &
	pid=$!
	for i in 1 2 3; do
		m_well move-in "$address" --to "$theirs" --only tvol
		m_well move-in "$theirs" --to "$address" --only tvol
	done
	touch enough
	wait "$pid"
	[ "$(wc -l < acknowledged)" -ge 5 ] || fail "only $(wc -l < acknowledged) files were written: $(tail -n 1 put.err)"
	vol export tvol exported
	while read -r i; do
		same_file "written.$i" "exported/written/$i"
	done < acknowledged
	same_file "written.$(cat again)" exported/written/again
	echo "$(wc -l < acknowledged) files, errors: $(wc -l < put.err)"
	rm -rf exported written.*
}

# killed_move FROM TO NUMBER [DURING]: false: rxvol ended before its call of that number.
killed_move() {
	local preload=("LD_PRELOAD=$programs/killed_at.so" "KILL_AT=$3")
	[ -z "$4" ] || preload+=("KILL_DURING=1")
	limited 60 env "${preload[@]}" "$rxvol" move-in "$1" --to "$2" --only kvol --cell-config /etc/openafs/server \
		--state "$state" > killed.txt 2>&1
	[ $? -eq 137 ]
}

# Kills in both directions, and after each the next run ends what was begun.
killed_moves() {
	local from=$theirs to=$address number next theirs_before ours_before
	v create "$theirs" a kvol
	v dump kvol -file kvol.dump
	theirs_before=$(their_volumes)
	ours_before=$(our_volumes)
	for ((number = ${FIRST:-1}; number < 200; number++)); do
		for next in "$to" "$from"; do
			if ! killed_move "$from" "$to" "$number" "${1:-}"; then
				break 2
			fi
			! { is_online "$from" kvol && is_online "$to" kvol; } || fail "on-line twice after call $number from $from"
			m_well move-in "$from" --to "$to" --only kvol
			moved kvol "$from" "$to" kvol.dump
			to=$from
			from=$next
		done
	done
	[ "$number" -gt 20 ] || fail "only $number calls: $(cat killed.txt)"
	# It moves once more before that, and may be at either server.
	[ $(($(their_volumes) + $(our_volumes))) -eq $((theirs_before + ours_before)) ] ||
		fail "temporary volumes are left: $(their_volumes) and $(our_volumes), before $theirs_before and $ours_before"
	echo "$number calls"
}

test_move_in_killed() {
	killed_moves "${ONLY_SOME:-}"
}

# copying: a transfer runs.
copying() {
	limited 10 vos status "$1" -localauth 2> err.txt | grep -q 'procedure: *Forward'
}

# Killed in the copy of a large volume: the servers go on with it. The command, given again at once, waits for that.
test_move_in_killed_copy() {
	local from=$address to=$theirs next volumes pid i
	mkdir -p heavy
	head -c 100000000 /dev/urandom > heavy/file
	v create "$from" a wvol -maxquota 200000
	vol import wvol heavy
	v dump wvol -file wvol.dump
	volumes=$(($(their_volumes) + $(our_volumes)))
	for i in 1 2 3 4; do
		"$rxvol" move-in "$from" --to "$to" --only wvol --cell-config /etc/openafs/server --state "$state" > killed.txt 2>&1 &
		pid=$!
		wait_for copying "$from"
		kill -KILL "$pid"
		wait "$pid"
		m_well move-in "$from" --to "$to" --only wvol
		moved wvol "$from" "$to" wvol.dump
		next=$from
		from=$to
		to=$next
	done
	[ $(($(their_volumes) + $(our_volumes))) -eq "$volumes" ] || fail "temporary volumes are left after $i kills"
	v remove -id wvol
	rm -rf heavy wvol.dump moved.dump
}

# A read-only copy moves as well, and is not kept twice.
test_move_in_replica() {
	m_well move-in "$address" --to "$theirs" --only tvol
	v addsite "$theirs" a tvol
	v release tvol
	v dump tvol.readonly -file tvol.dump
	m_well move-in "$theirs" --to "$address" --only 'tvol*'
	for type in RW RO; do
		v listvol "$address"
		want_line out.txt "^tvol(\\.readonly)? +[0-9]+ $type +[0-9]+ K On-line"
	done
	not_on "$theirs" tvol
	not_on "$theirs" tvol.readonly
	v dump tvol.readonly -file moved.dump
	same_dumps tvol.dump moved.dump
	entry tvol 'number of sites -> 2'
	mkdir -p more
	echo later > more/later
	vol import tvol more
	v release tvol
	v addsite "$theirs" a tvol
	v release tvol
	m_well move-in "$theirs" --to "$address" --only 'tvol*'
	want_line move.txt 'removed at the source; the target has a copy already'
	not_on "$theirs" tvol.readonly
	entry tvol 'number of sites -> 2'
	v remove -id tvol.readonly
}

# Without its logs, a killed move is gone on with only if that is asked for.
test_move_in_take_over() {
	local number from=$theirs to=$address next tried=0
	is_online "$from" kvol || { from=$address && to=$theirs; }
	for ((number = 10; number < 60; number += 6)); do
		killed_move "$from" "$to" "$number" "" || break
		rm -rf "$state"
		limited 20 vos examine kvol -localauth > out.txt 2>&1
		if ! grep -q LOCKED out.txt; then
			m_well move-in "$from" --to "$to" --only kvol
			next=$from
			from=$to
			to=$next
			continue
		fi
		tried=$((tried + 1))
		if m move-in "$from" --to "$to" --only kvol; then
			on "$to" kvol RW On-line
		fi
		m_well move-in "$from" --to "$to" --only kvol --take-over
		on "$to" kvol RW On-line
		not_on "$from" kvol
		next=$from
		from=$to
		to=$next
	done
	[ "$tried" -ge 3 ] || fail "only $tried moves were killed while the entry was locked"
	v dump kvol -file moved.dump
	same_dumps kvol.dump moved.dump
}

restart_server() {
	tell server KILL
	wait_for test -f server.status
	start_server && wait_for registered
}

# rxfsd, which is the target and also has the location service, is killed during moves. OpenAFS's server notices that only after seven
# minutes; only its temporary clone has to wait for that.
test_move_in_server_killed() {
	local i failed=0 pid
	m move-in "$address" --to "$theirs" --only tvol
	v dump tvol -file tvol.dump
	for ((i = 0; i < 5; i++)); do
		m move-in "$theirs" --to "$address" --only tvol &
		pid=$!
		sleep "0.$((i * 7 + 10))"
		restart_server || fail "rxfsd does not start again: $(head -n 1 server.err)"
		wait $pid || failed=$((failed + 1))
		! { is_online "$theirs" tvol && is_online "$address" tvol; } || fail "on-line twice"
		m move-in "$theirs" --to "$address" --only tvol
		on "$address" tvol RW On-line
		not_on "$theirs" tvol
		v dump tvol -file moved.dump
		same_dumps tvol.dump moved.dump
		m_well move-in "$address" --to "$theirs" --only tvol
	done
	[ -z "$(ls "$state")" ] || fail "logs are left: $(ls "$state")"
	echo "$failed of $i moves failed"
}

# rxvol does not remove or rename what the location service has an entry of.
test_move_in_entries() {
	v create "$address" a evol
	for command in 'remove evol' 'rename evol fvol'; do
		# shellcheck disable=SC2086
		limited 20 "$rxvol" -S store $command > vol.txt 2>&1 && fail "rxvol $command was not refused"
		want_line vol.txt "the location service has an entry of the volume.*vos ${command%% *}"
	done
	v rename evol fvol
	v remove -id fvol
	vol create gvol
	vol rename gvol hvol
	vol remove hvol
}

test_move_in_balance() {
	local i
	for i in 1 2 3; do
		v create "$address" a "bvol$i" -maxquota 70000
		vol import "bvol$i" "$tree"
	done
	m_well balance "$address" "$theirs"
	want_line move.txt '/vicepa .* full'
	m_well balance --do --only 'bvol*' --most 2
	[ "$(limited 20 vos listvol "$theirs" -localauth | grep -c '^bvol.* On-line')" -eq 2 ] || fail "not two volumes moved: $(cat move.txt)"
	m_well balance --json
	python3 -c 'import json; b = json.load(open("move.txt")); assert len(b["partitions"]) == 2 and "moves" in b, b' ||
		fail "not the expected JSON: $(cat move.txt)"
}

test_move_in_end() { test_openafs_end; }
