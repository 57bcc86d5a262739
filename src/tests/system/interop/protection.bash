# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's pts with its own ptserver, and then with rxfsd and a database that rxpt has made: the same entries, the
# same questions, the same answers.

keyfile=/etc/openafs/server/KeyFileExt
rxpt=
rxfsd=
pt_ours=

elected() {
	limited 10 udebug "$address" 7002 2> /dev/null | grep -q 'Recovery state 1f'
}

ptserver_ready() {
	# The first transaction that finds the database empty creates it.
	limited 10 pts listmax -noauth > /dev/null 2>&1
	elected
}

theirs() {
	limited 20 pts "$@" -localauth > made.txt 2>&1 || { echo "pts $*: $(cat made.txt)"; return 1; }
}

make_theirs() {
	theirs createuser alice && theirs createuser bob -id 1000 && theirs createuser carol && theirs createuser dave &&
		theirs creategroup staff && theirs creategroup alice:friends -owner alice &&
		theirs creategroup team -id -300 -owner bob && theirs creategroup gone &&
		theirs creategroup closed -owner staff && theirs adduser alice staff &&
		theirs adduser bob staff && theirs adduser carol alice:friends && theirs adduser dave gone &&
		theirs adduser carol system:administrators && theirs setfields closed -access s-m-- &&
		theirs setfields bob -access SOM-- && theirs setfields team -access SOMar &&
		theirs rename dave daniel && theirs delete gone &&
		theirs createuser 10.91.7.1 -id 2001 && theirs createuser 10.91.7.0 && theirs createuser 10.91.0.0 &&
		theirs createuser 10.0.0.0 && theirs createuser 10.91.8.9 && theirs createuser 127.0.0.1 &&
		theirs creategroup near && theirs creategroup far && theirs creategroup both &&
		theirs adduser 10.91.7.1 near && theirs adduser 10.91.7.0 both && theirs adduser 10.91.7.1 both &&
		theirs adduser 10.0.0.0 far && theirs adduser 10.91.0.0 far && theirs adduser 10.91.8.9 near
}

ours() {
	limited 20 "$rxpt" -S store "$@" > made.txt 2>&1 || { echo "rxpt $*: $(cat made.txt)"; return 1; }
}

make_ours() {
	mkdir store && ours adduser alice && ours adduser bob --id 1000 && ours adduser carol dave &&
		ours addgroup staff && ours addgroup alice:friends --owner alice &&
		ours addgroup team --id -300 --owner bob && ours addgroup gone &&
		ours addgroup closed --owner staff && ours member add staff alice bob &&
		ours member add alice:friends carol && ours member add gone dave &&
		ours member add system:administrators carol && ours access closed s-m-- &&
		ours access bob SOM-- && ours access team SOMar && ours rename dave daniel && ours remove gone &&
		ours adduser 10.91.7.1 --id 2001 && ours adduser 10.91.7.0 10.91.0.0 10.0.0.0 10.91.8.9 127.0.0.1 &&
		ours addgroup near far both && ours member add near 10.91.7.1 10.91.8.9 &&
		ours member add both 10.91.7.0 10.91.7.1 && ours member add far 10.0.0.0 10.91.0.0
}

# ask FOLDER NAME ARGUMENTS...: the answer of pts to a question, as FOLDER/NAME.
ask() {
	local folder=$1 name=$2 status
	shift 2
	limited 20 pts "$@" > answer.txt 2>&1
	status=$?
	{ echo "pts $*"; cat answer.txt; echo "status $status"; } > "$folder/$name"
}

entries='alice ALICE 10.91.7.1 10.0.0.0 far bob carol daniel dave staff alice:friends team closed gone anonymous system:anyuser system:authuser
	system:administrators system:backup system:ptsviewers nobody 1 -206 -204 -101 9999 -9999 0'

hosts='10.91.7.1 10.91.7.2 10.91.8.9 10.91.9.9 10.92.1.1 11.0.0.1 127.0.0.1 127.0.0.2 10.91.7.0 10.0.0.0 0.0.0.0 1.7.91.10'

# ask_all FOLDER: all questions, as the service itself and as nobody.
ask_all() {
	local auth n
	mkdir "$1"
	# shellcheck disable=SC2086 # entries are words
	limited 60 "$pt_ours" "$address" 7002 right $entries > "$1/calls.localauth" || return
	# shellcheck disable=SC2086
	limited 60 "$pt_ours" "$address" 7002 - $entries > "$1/calls.noauth" || return
	limited 60 "$pt_ours" "$address" 7002 right hosts 1 $hosts > "$1/hosts.localauth" || return
	limited 60 "$pt_ours" "$address" 7002 - hosts 32766 $hosts > "$1/hosts.noauth" || return
	limited 60 "$pt_ours" "$address" 7002 - hosts 1 $hosts > "$1/hosts.noauth-alice" || return
	for auth in localauth noauth; do
		for n in $entries; do
			ask "$1" "examine.$n.$auth" examine "$n" -$auth
			ask "$1" "membership.$n.$auth" membership "$n" -$auth
			ask "$1" "listowned.$n.$auth" listowned "$n" -$auth
		done
		ask "$1" "examine-several.$auth" examine alice staff nobody bob -$auth
		ask "$1" "supergroups.$auth" membership staff -supergroups -$auth
		ask "$1" "expand.$auth" membership alice -expandgroups -$auth
		ask "$1" "listmax.$auth" listmax -$auth
		ask "$1" "list.$auth" listentries -$auth
		ask "$1" "list-users.$auth" listentries -users -$auth
		ask "$1" "list-groups.$auth" listentries -groups -$auth
		ask "$1" "list-all.$auth" listentries -users -groups -$auth
	done
}

before_protection() {
	local cell_ours
	rxfsd=$(need rxfsd) && rxpt=$(need rxpt) && pt_ours=$(need pt_ours) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 || return
	cp $keyfile right
	launch ptserver "$servers/ptserver" -p 16
	wait_port 7002 ptserver && wait_for ptserver_ready && make_theirs || return
	ask_all theirs
	stop ptserver
	make_ours || return
	mkdir export
	launch server "$rxfsd" --export export --volume test --cell "$cell_name" --listen "$address" --require none \
		--keytab right --state state --protection store
	wait_port 7002 server || return
	ask_all ours
}

# same GLOB [sorted]: their answers with these names are ours.
same() {
	local f name
	for f in theirs/$1; do
		name=${f##*/}
		if [ "${2:-}" = sorted ]; then
			sort "$f" > left && sort "ours/$name" > right.txt
		else
			cp "$f" left && cp "ours/$name" right.txt
		fi
		diff left right.txt > differ || fail "$(head -n 1 "$f"): $(tr '\n' '|' < differ)"
	done
}

test_pts_examine() {
	same 'examine*'
	want_line ours/examine.alice.noauth '^Name: alice, id: 1, owner: system:administrators, creator: system:administrators,'
	want_line ours/examine.bob.noauth 'flags: SOM--, group quota: 20'
	want_line ours/examine.-206.noauth '^Name: staff, id: -206'
	want_line ours/examine.closed.noauth 'Permission denied'
	want_line ours/examine.nobody.noauth "User or group doesn't exist so couldn't look up id for nobody"
}

test_pts_membership() {
	same 'membership*'
	want_line ours/membership.staff.noauth '^  alice$'
	want_line ours/membership.carol.localauth '^  system:administrators$'
	want_line ours/membership.alice.noauth 'Permission denied'
	same 'supergroups*'
	same 'expand*' sorted
}

test_pts_listowned() {
	same 'listowned*'
	want_line ours/listowned.system:administrators.localauth '^  staff$'
	want_line ours/listowned.alice.noauth 'Permission denied'
}

test_pts_listmax() {
	same 'listmax*'
	want_line ours/listmax.noauth '^Max user id is 2006 and max group id is -305\.$'
}

# Theirs are in the order of the database.
test_pts_listentries() {
	same 'list.*' sorted
	same 'list-*' sorted
	want_line ours/list-users.localauth '^alice +1 +-204 +-204'
	want_line ours/list-groups.localauth '^team +-300 +1000 +-204'
	want_line ours/list-users.noauth 'Permission denied'
}

# Nobody without an identity changes anything.
test_pts_refusals() {
	ask ours "refused" createuser mallory -noauth
	want_line ours/refused 'Permission denied'
	ask ours "refused" creategroup evil -noauth
	want_line ours/refused 'Permission denied'
	ask ours "refused" adduser bob system:administrators -noauth
	want_line ours/refused 'Permission denied'
	ask ours "refused" removeuser carol system:administrators -noauth
	want_line ours/refused 'Permission denied'
	ask ours "refused" delete alice -noauth
	want_line ours/refused 'Permission denied'
	ask ours "refused" rename alice mallory -noauth
	want_line ours/refused 'Permission denied'
	ask ours "refused" chown staff bob -noauth
	want_line ours/refused 'Permission denied'
	ask ours "refused" setfields alice -access SOMar -noauth
	want_line ours/refused 'Permission denied'
	ask ours "refused" setmax -user 9999 -noauth
	want_line ours/refused 'Permission denied'
	ask ours again examine alice -noauth
	sed 1d ours/again > left
	sed 1d ours/examine.alice.noauth | diff left - > differ || fail "alice has changed: $(tr '\n' '|' < differ)"
}

# A change is visible while the server runs.
test_pts_changes() {
	ours adduser late || fail "$(cat made.txt)"
	seen() {
		limited 20 pts examine late -noauth > out.txt 2>&1 && grep -q '^Name: late, id: 2007,' out.txt
	}
	wait_for seen || fail "not seen: $(head -n 1 out.txt)"
	ours member add staff late
	member() {
		limited 20 pts membership staff -noauth > out.txt 2>&1 && grep -q '^  late$' out.txt
	}
	wait_for member || fail "no member: $(tr '\n' '|' < out.txt)"
	ours remove late
	gone() { ! seen; }
	wait_for gone || fail "not gone: $(head -n 1 out.txt)"
	want_line out.txt "User or group doesn't exist"
}

# Lists that do not fit into one reply.
test_pts_long_lists() {
	local names
	names=$(seq -f 'u%05.0f' 1 2500)
	# shellcheck disable=SC2086 # names are words
	ours adduser $names || fail "$(cat made.txt)"
	ours addgroup everyone || fail "$(cat made.txt)"
	# shellcheck disable=SC2086
	ours member add everyone $names || fail "$(cat made.txt)"
	complete() {
		limited 20 pts listentries -users -localauth > out.txt 2>&1 && [ "$(grep -c '^u[0-9]' out.txt)" -eq 2500 ]
	}
	wait_for complete || fail "$(grep -c '^u[0-9]' out.txt) users of 2500"
	[ "$(sort out.txt | uniq -d | wc -l)" -eq 0 ] || fail "users are listed twice"
	limited 20 pts listentries -users -groups -localauth > out.txt 2>&1
	[ "$(wc -l < out.txt)" -eq $((1 + 2500 + 11 + 13)) ] || fail "$(wc -l < out.txt) lines for all entries"
	limited 20 pts membership everyone -noauth > out.txt 2>&1
	[ "$(grep -c '^  u[0-9]' out.txt)" -eq 2500 ] || fail "$(grep -c '^  u[0-9]' out.txt) members of 2500"
}

# Each call, with all its results. Only theirs adds the members of a group to what GetCPS returns for the group, and
# repeats groups in what GetCPS2 returns for a machine.
test_pts_calls() {
	local f
	for f in theirs ours; do
		sed -i '/^GetCPS2\{0,1\} -/s/:.*/:/; /^GetCPS2 200/s/:.*/:/' "$f"/calls.*
	done
	same 'calls*'
	want_line ours/calls.localauth '^GetCPS 1: code 0 over 0: -206 -102 -101 1$'
}

# The groups of a machine are those of its address and of the networks that it is in.
test_pts_machines() {
	same 'hosts*'
	want_line ours/hosts.noauth '^10.91.7.1: GetHostCPS 0: code 0 over 0: -305 -304 -303$'
	want_line ours/hosts.noauth '^10.91.9.9: GetHostCPS 0: code 0 over 0: -304$'
	want_line ours/hosts.localauth '^10.91.7.2: GetCPS2 1: code 0 over 0: -305 -304 -206 -102 -101 1$'
	want_line ours/examine.10.91.7.1.noauth '^Name: 10.91.7.1, id: 2001,'
	ask ours machines membership 10.91.7.1 -localauth
	want_line ours/machines '^  near$'
	ask ours machines membership near -noauth
	want_line ours/machines '^  10.91.8.9$'
}

# Our server has answered all that without a complaint.
test_pts_end() {
	stop server || fail "rxfsd ended with $? on SIGTERM: $(tail -n 1 server.err)"
	! grep -Ei 'error|damaged' server.err > left || fail "$(head -n 1 left)"
	[ "$(ls -A store | xargs)" = "protection.db protection.db-ids" ] || fail "the store has: $(ls -A store | xargs)"
}
