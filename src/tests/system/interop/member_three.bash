# SPDX-License-Identifier: BSD-2-Clause
# Our rxfsd as a member of a cell with three location and three protection servers of OpenAFS's, which are stopped and started.

. "$here/member.bash"

sites=("$address" "${address%.*}.11" "${address%.*}.12")

# database PROGRAM N: starts the server of this number, which finds itself by its address.
database() {
	local name=$1$2
	echo "${sites[$2]}" > /var/lib/openafs/local/NetInfo
	launch "$name" "$servers/$1" -rxbind -database "$work/db.$name" -logfile "$work/$name.log"
	wait_for started "$name" || { echo "$name does not start: $(tail -n 1 "$name.log")"; return 1; }
}

started() {
	alive "$1" && grep -q 'Starting AFS' "$1.log" 2> /dev/null
}

# in_charge PORT: the address of the site that makes changes.
in_charge() {
	local site
	for site in "${sites[@]}"; do
		limited 10 udebug "$site" "$1" 2> /dev/null | grep -q 'I am sync site .*' &&
			limited 10 udebug "$site" "$1" 2> /dev/null | grep -q 'Recovery state 1f' && echo "$site" && return
	done
	return 1
}

# wait_long COMMAND...: an election takes more than a minute.
wait_long() {
	local i
	for ((i = 0; i < 300; i++)); do
		"$@" && return 0
		sleep 1
	done
	return 1
}

elected_both() {
	limited 10 vos listvldb -noauth > /dev/null 2>&1
	limited 10 pts listmax -noauth > /dev/null 2>&1
	in_charge 7003 > vl.site && in_charge 7002 > pt.site
}

number_of() {
	local i
	for i in 0 1 2; do
		[ "${sites[i]}" != "$1" ] || echo "$i"
	done
}

before_member_three() {
	local cell_ours i d
	rxfsd=$(need rxfsd) && rxvol=$(need rxvol) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 $key || return
	for d in /etc/openafs /etc/openafs/server; do
		{ echo ">$cell_name #test" && printf '%s #a server\n' "${sites[@]}"; } > "$d/CellServDB"
	done
	mkdir config && mkdir -m 700 store || return
	cp /etc/openafs/server/{ThisCell,CellServDB,KeyFileExt} config
	ip addr add "${sites[1]}/24" dev afs0 && ip addr add "${sites[2]}/24" dev afs0 && ip addr add "$ours/24" dev afs0 ||
		return
	for i in 0 1 2; do
		database vlserver $i && database ptserver $i || return
	done
	rm /var/lib/openafs/local/NetInfo
	start_member || return
	wait_long elected_both || { echo "no election"; return 1; }
	# On a busy machine there may be no majority for a moment.
	wait_long p createuser alice -id 1 && wait_long p createuser bob -id 2 && wait_long p createuser boss -id 3 &&
		wait_long p creategroup staff && wait_long p adduser alice staff &&
		wait_long p adduser boss system:administrators || return
	wait_long registered "$ours"
}

test_three_registers() {
	want_line server.err 'registered with the location service of the cell: 10.91.7.3'
	v create "$ours" a work -maxquota 70000
	volume_id work > work.id
	calls 'boss setacl work 2|0|staff/127|system:anyuser/9|$'
	can alice 0 || fail "alice: $(head -n 1 calls.txt)"
	can bob 13 || fail "bob: $(head -n 1 calls.txt)"
}

# Each protection server in turn is away, at first the one that is in charge.
test_three_protection() {
	local i
	for i in "$(number_of "$(cat pt.site)")" 0 1 2; do
		stop "ptserver$i"
		sleep $((2 * age + 1))
		wait_for can alice 0 || fail "alice without ptserver$i: $(head -n 1 calls.txt)"
		wait_for can "new$i" 13 || fail "a stranger without ptserver$i: $(head -n 1 calls.txt)"
		database ptserver "$i" || fail "ptserver$i does not start"
	done
	rm /var/lib/openafs/local/NetInfo
}

# The location server that is in charge is away while the addresses change: another one takes the registration.
test_three_location() {
	local i
	i=$(number_of "$(cat vl.site)")
	stop "vlserver$i"
	echo "f ${address%.*}.99" > config/NetInfo
	tell server HUP
	wait_long grep -q "registered with the location service of the cell: ${address%.*}.99" server.err ||
		fail "not registered: $(tail -n 2 server.err)"
	database vlserver "$i" || fail "vlserver$i does not start"
	rm config/NetInfo /var/lib/openafs/local/NetInfo
	tell server HUP
	wait_for registered "$ours" || fail "not registered: $(tail -n 2 server.err)"
}

test_three_end() {
	stop server || fail "rxfsd ended with $?: $(tail -n 1 server.err)"
	limited 60 "$rxvol" -S store check > out.txt 2>&1 || fail "the store has faults: $(head -n 1 out.txt)"
	! grep -i 'assert\|damaged' server.err || fail "the log tells of a fault"
}
