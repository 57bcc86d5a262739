# SPDX-License-Identifier: BSD-2-Clause
# vos is killed at its requests, alone or together with a server, and the command is repeated. Then its result is there, with all
# contents, and nothing else is left: no transaction, no volume that no list has, none twice. Two servers of ours.
#
# Each command is killed at some of its requests, spread over all; RXW_VOS_KILLS=all: at each of them.

. "$here/vos_servers.bash"

before_vos_kills() {
	before_vos_servers || return
	rm -rf small
	mkdir -p small/sub
	echo 'hello, world' > small/hello.txt
	head -c 200001 /dev/urandom > small/large
	echo deep > small/sub/file
	"$rxvol" -S store create seed > made.txt 2>&1 && "$rxvol" -S store import seed small > made.txt 2>&1 || return
	limited 60 vos dump seed -file seed.dump -localauth > out.txt 2>&1 || return
	mkdir -p later
	echo later > later/more
	"$rxvol" -S store import seed later > made.txt 2>&1
	limited 60 vos dump seed -file later.dump -localauth > out.txt 2>&1
}

# q COMMAND...: vos as the cell itself; its status.
q() {
	limited 90 vos "$@" -localauth > out.txt 2> err.txt
}

# ended SERVER: no transaction is left. A call of the killed vos may still run in one until the server finds that it is dead.
ended() {
	local t
	q status "$1" || fail "$1 does not answer: $(tr '\n' ' ' < err.txt)"
	sed -n 's/^transaction: \([0-9]*\).*/\1/p' out.txt > tids.txt
	while read -r t; do
		q endtrans "$1" "$t" < /dev/null
	done < tids.txt
	[ ! -s tids.txt ]
}

# What an administrator does when vos was killed: open transactions are ended, locks of entries taken away.
tidy() {
	local s i
	for s in "$address" "$other"; do
		for ((i = 0; i < 900; i++)); do
			ended "$s" && break
			[ "$i" -lt 2 ] || sleep 0.1
		done
	done
	q unlockvldb
}

restart_killed() {
	if [ -f server.status ]; then
		# The port alone tells nothing, since the second server has it, too.
		start_server && wait_for vos_answers "$address" || fail "rxfsd does not start again: $(head -n 1 server.err)"
	fi
	if [ -f other.status ]; then
		start_other || fail "the second rxfsd does not start again: $(head -n 1 other.err)"
	fi
}

# holds NAME SERVER DUMP: the volume of that name or id is on the server, on-line, with the contents of the dump.
holds() {
	q dump "$1" -server "$2" -partition a -file now.dump || fail "$where: no $1 at $2: $(head -n 1 err.txt)"
	list now.dump
	list "$3"
	cmp -s now.dump.list "$3.list" || fail "$where: $1 at $2 has not the contents of $3"
}

# count NAME SERVER: volumes of the name on the server.
count() {
	limited 20 vos listvol "$2" -localauth 2> err.txt | awk -v name="$1" '$1 == name' | wc -l
}

one() {
	local n
	n=$(count "$1" "$2")
	[ "$n" -eq 1 ] || fail "$where: $n volumes $1 at $2"
	q listvol "$2"
	grep -q "^$1 .* On-line" out.txt || fail "$where: $(grep "^$1 " out.txt)"
}

none() {
	local n
	n=$(count "$1" "$2")
	[ "$n" -eq 0 ] || fail "$where: $1 is at $2"
}

# No transaction and no lock is left, and no volume that lists do not show.
clean() {
	local s name
	for s in "$address" "$other"; do
		q status "$s"
		grep -q '^No active transactions' out.txt || fail "$where: transactions at $s"
	done
	q listvldb -locked
	! grep -q 'RWrite' out.txt || fail "$where: a locked entry"
	for name in store store2; do
		limited 60 "$rxvol" -S $name check > out.txt 2>&1 || fail "$where: $name has faults: $(head -n 1 out.txt)"
	done
}

# -- each command: what it needs, what it is, and what is there afterwards --

seeded() {
	q create "$address" a k && q restore "$address" a k -file seed.dump -overwrite incremental ||
		fail "$where: set-up: $(head -n 1 err.txt)"
}

changed() {
	q restore "$address" a k -file later.dump -overwrite incremental
}

need_create() { :; }
run_create() { echo create "$address" a k; }
# One that is not in the database yet is listed, and stays.
check_create() { [ "$(count k "$address")" -ge 1 ] || fail "$where: no volume"; q examine k && want_line out.txt On-line; }

need_remove() { seeded && q backup k; }
run_remove() { echo remove -id k; }
check_remove() { none k "$address"; none k.backup "$address"; q examine k && fail "$where: the entry is there"; }

need_backup() { seeded; }
run_backup() { echo backup k; }
check_backup() { one k "$address"; one k.backup "$address"; holds k.backup "$address" seed.dump; }

need_backup_again() { seeded && q backup k && changed; }
run_backup_again() { echo backup k; }
check_backup_again() { one k.backup "$address"; holds k.backup "$address" later.dump; }

need_clone() { seeded; }
run_clone() { echo clone k -toname kc -readonly; }
check_clone() { one k "$address"; [ "$(count kc "$address")" -ge 1 ] || fail "$where: no clone"; holds k "$address" seed.dump; }

need_clone_writable() { seeded; }
run_clone_writable() { echo clone k -toname kc -readwrite; }
check_clone_writable() { check_clone; }

need_dump() { seeded; }
run_dump() { echo dump k -file killed.dump; }
check_dump() { one k "$address"; list killed.dump; list seed.dump; cmp -s killed.dump.list seed.dump.list || fail "$where: another dump"; }

need_dump_clone() { seeded; }
run_dump_clone() { echo dump k -clone -file killed.dump; }
check_dump_clone() { check_dump; none k.readonly "$address"; }

need_restore() { :; }
run_restore() { echo restore "$address" a k -file seed.dump; }
check_restore() { [ "$(count k "$address")" -ge 1 ] || fail "$where: no volume"; holds k "$address" seed.dump; }

need_restore_full() { seeded; }
run_restore_full() { echo restore "$address" a k -file later.dump -overwrite full; }
check_restore_full() { one k "$address"; holds k "$address" later.dump; }

need_restore_onto() { seeded && changed; }
run_restore_onto() { echo restore "$address" a k -file seed.dump -overwrite incremental; }
check_restore_onto() { one k "$address"; holds k "$address" seed.dump; }

need_release() { seeded && q addsite "$address" a k && q addsite "$other" a k; }
run_release() { echo release k; }
check_release() {
	one k "$address"
	one k.readonly "$address"
	one k.readonly "$other"
	holds k.readonly "$address" "${1:-seed.dump}"
	holds k.readonly "$other" "${1:-seed.dump}"
	q listvldb k
	! grep -q 'Not released\|New release\|LOCKED' out.txt || fail "$where: the release is not complete"
}

need_release_again() { need_release && q release k && changed; }
run_release_again() { echo release k; }
check_release_again() { check_release later.dump; }

need_move() { seeded && q backup k; }
run_move() { echo move k "$address" a "$other" a; }
check_move() { one k "$other"; none k "$address"; none k.backup "$address"; holds k "$other" seed.dump; }

# The last step removes the backup volume. vos does not come back to it once it has had the volume itself deleted there, but says that there
# is no such volume. Only then is a backup volume without its volume left: not one that vos did not reach, nor after a move that is whole.
again_move() {
	local id
	[ "$(count k "$address")" -eq 0 ] || return 0
	id=$(limited 20 vos listvol "$address" -localauth 2> err.txt | awk '$1 == "k.backup" { print $2 }')
	[ -n "$id" ] || return 0
	grep -q 'Deleting old volume [0-9]* on source' killed.txt ||
		fail "$where: k is gone, k.backup is not, and vos was killed before that: $(tail -n 1 killed.txt)"
	one k "$other"
	! q move k "$address" a "$other" a || fail "$where: the repeat has moved a volume that is not there"
	grep -q 'Could not fetch the information about volume' err.txt || fail "$where: $(head -n 1 err.txt)"
	q zap "$address" a "$id" || fail "$where: $(head -n 1 err.txt)"
}
need_move_live() { seeded; }
run_move_live() { echo move k "$address" a "$other" a -live; }
check_move_live() { check_move; }

need_copy() { seeded; }
run_copy() { echo copy k "$address" a kc "$other" a; }
check_copy() { one k "$address"; [ "$(count kc "$other")" -ge 1 ] || fail "$where: no copy"; holds k "$address" seed.dump; holds kc "$other" seed.dump; }

# The entry may have the new name by then.
again_rename() { q examine k || q rename kc k; }
need_rename() { seeded && q backup k; }
run_rename() { echo rename k kc; }
check_rename() { one kc "$address"; none k "$address"; none k.backup "$address"; one kc.backup "$address"; }

need_convert() { seeded && q addsite "$other" a k && q release k && q zap "$address" a k; }
run_convert() { echo convertROtoRW "$other" a k -force; }
check_convert() { one k "$other"; none k.readonly "$other"; holds k "$other" seed.dump; }

need_convert_clone() { seeded && q addsite "$address" a k && q release k && changed && q zap "$address" a k; }
run_convert_clone() { echo convertROtoRW "$address" a k -force; }
check_convert_clone() { one k "$address"; none k.readonly "$address"; holds k "$address" seed.dump; }

need_addsite() { seeded; }
run_addsite() { echo addsite "$other" a k; }
check_addsite() { q listvldb k; want_line out.txt 'number of sites -> 2'; }

need_remsite() { seeded && q addsite "$other" a k; }
run_remsite() { echo remsite "$other" a k; }
check_remsite() { q listvldb k; want_line out.txt 'number of sites -> 1'; }

# -- the driver --

# Everything of the last turn goes.
sweep() {
	local s name
	tidy
	for s in "$address" "$other"; do
		for name in $(limited 20 vos listvol "$s" -localauth 2> err.txt | awk '$1 ~ /^k/ && $2 ~ /^[0-9]+$/ { print $2 }'); do
			q zap "$s" a "$name" -force
		done
	done
	for name in k kc; do
		q delentry "$name"
	done
	rm -f killed.dump
}

# one_kill COMMAND N KIND
one_kill() {
	local command=$1 result also=()
	where="$command killed at $2 ($3)"
	case $3 in
	server) also=(server.pid) ;;
	other) also=(other.pid) ;;
	esac
	sweep
	"need_$command" || fail "$where: the set-up: $(head -n 1 err.txt)"
	# shellcheck disable=SC2046
	result=$(limited 120 python3 -B "$here/kill_at.py" "$2" "${also[@]}" -- vos $("run_$command") -verbose -localauth 2> killed.txt | tail -n 1)
	case $result in
	killed\ *) where="$command killed at $2, in truth at ${result#* } ($3)" ;;
	'ended 0 '*)
		# It has none after this one, or this machine was too slow.
		"check_$command"
		read -r _ _ total busy <<< "$result"
		[ "$busy" -eq 0 ] || fail "$where: a call was refused as busy"
		return
		;;
	*) fail "$where: $result $(head -n 1 killed.txt)" ;;
	esac
	[ "$3" = vos ] || wait_for test -f "${also[0]%.pid}.status"
	restart_killed
	tidy
	! declare -F "again_$command" > /dev/null || "again_$command"
	# shellcheck disable=SC2046
	q $("run_$command")
	"check_$command"
	tidy
	clean
	kills=$((kills + 1))
}

# kill_command COMMAND: at its requests, in turn alone, with the server, and with the second server.
kill_command() {
	local n step kinds=(vos server other) kills=0 total=0 requests
	one_kill "$1" 1000 vos
	requests=$total
	step=$((requests / 4 + 1))
	[ "${RXW_VOS_KILLS:-}" = all ] && step=1
	for ((n = 1; n <= requests; n += step)); do
		if [ "$step" -eq 1 ]; then
			one_kill "$1" "$n" vos
			one_kill "$1" "$n" server
			one_kill "$1" "$n" other
		else
			one_kill "$1" "$n" "${kinds[$((n / step % 3))]}"
		fi
	done
	echo "$1: $requests requests, $kills kills"
	[ "$kills" -gt 0 ] || fail "$1 was never killed"
}

test_kills_create() { kill_command create; }
test_kills_remove() { kill_command remove; }
test_kills_backup() { kill_command backup && kill_command backup_again; }
test_kills_clone() { kill_command clone && kill_command clone_writable; }
test_kills_dump() { kill_command dump && kill_command dump_clone; }
test_kills_restore() { kill_command restore && kill_command restore_full && kill_command restore_onto; }
test_kills_release() { kill_command release && kill_command release_again; }
test_kills_move() { kill_command move && kill_command move_live; }
test_kills_copy() { kill_command copy; }
test_kills_rename() { kill_command rename; }
test_kills_convert() { kill_command convert && kill_command convert_clone; }
test_kills_sites() { kill_command addsite && kill_command remsite; }

# quick COMMAND...: the command succeeds, and none of its calls is refused since its channel is still in use by the call before,
# which would make vos wait for seconds.
quick() {
	local result status requests busy
	result=$(limited 120 python3 -B "$here/kill_at.py" 1000000 -- vos "$@" -localauth 2> killed.txt | tail -n 1)
	read -r _ status requests busy <<< "$result"
	[ "$status" = 0 ] || fail "vos $*: $(head -n 1 killed.txt)"
	[ "$busy" -eq 0 ] || fail "vos $*: $busy of $requests calls were refused as busy"
}

# RXW_VOS_RUNS: so many commands.
test_kills_busy() {
	local i runs=${RXW_VOS_RUNS:-10}
	sweep
	for ((i = 0; i < runs; i += 5)); do
		quick create "$address" a k
		quick backup k
		quick restore "$address" a kc -file seed.dump
		quick remove -id kc
		quick remove -id k
	done
}

# After all of them the servers have what they had before.
test_kills_end() {
	sweep
	stop server
	stop other
	for store in store store2; do
		limited 60 "$rxvol" -S "$store" check > out.txt 2>&1 || fail "$store has faults: $(head -n 1 out.txt)"
	done
	! grep -i 'assert\|damaged' server.err other.err || fail "a log tells of a fault"
}
