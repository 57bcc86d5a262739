# SPDX-License-Identifier: BSD-2-Clause
# rxpt: every command as text and as JSON, what it refuses, several processes at a time, and a running server.

. "$top_srcdir/src/tests/tools/lib.sh"
rxpt=$top_builddir/src/rxpt/rxpt
store=$work/store
mkdir "$store" || exit 99

# pt ARGUMENTS...: succeeds without a message; output in out.
pt() {
	"$rxpt" -S "$store" "$@" > "$work/out" 2> "$work/err" || {
		fail "rxpt $* ended with $?: $(head -n 3 "$work/err")"
		return 1
	}
	[ ! -s "$work/err" ] || fail "rxpt $* printed: $(head -n 3 "$work/err")"
}
# says TEXT: the last output is exactly this.
says() {
	[ "$(cat "$work/out")" = "$1" ] || fail "not \"$1\" but: $(cat "$work/out")"
}
no() {
	status=$1
	pattern=$2
	shift 2
	refused "$status" "$pattern" "$rxpt" -S "$store" "$@"
}

# Only adding makes a database.
no 1 'does not exist' list
[ ! -e "$store/protection.db" ] || fail 'list has made a database'
pt adduser alice && says "made the database $store/protection.db
user alice has the id 1"
pt adduser bob --id 1000 && says 'user bob has the id 1000'
pt adduser carol dave && says 'user carol has the id 1001
user dave has the id 1002'
pt addgroup staff && says 'group staff has the id -206'
pt addgroup alice:friends --owner alice --id -300 && says 'group alice:friends has the id -300'
pt member add staff bob alice && says ''
pt member add -- -300 1002
pt members staff && says 'alice
bob'
pt members alice && says staff
pt members -- -300 && says dave
pt examine staff && says 'group staff
  id       -206
  owner    system:administrators (-204)
  creator  system:administrators (-204)
  access   S-M--
  members  alice bob'
pt examine 1 anonymous && says 'user alice
  id       1
  owner    system:administrators (-204)
  creator  system:administrators (-204)
  access   S----
  quota    20
  groups   staff
user anonymous
  id       32766
  owner    system:administrators (-204)
  creator  system:administrators (-204)
  access   S----
  quota    20
  groups   -'
pt list && [ "$(wc -l < "$work/out")" -eq 13 ] || fail "list: $(cat "$work/out")"
pt list --users && says 'ID          NAME                            OWNER
1           alice                           system:administrators
1000        bob                             system:administrators
1001        carol                           system:administrators
1002        dave                            system:administrators
32766       anonymous                       system:administrators'
pt list --groups
grep -q '^-300 *alice:friends *alice$' "$work/out" || fail "list --groups: $(cat "$work/out")"
pt rename bob robert && pt members staff && says 'alice
robert'
pt chown staff robert && pt examine staff && grep -q '^  owner    robert (1000)$' "$work/out" || fail 'chown'
pt access staff s-mar && pt examine staff && grep -q '^  access   s-mar$' "$work/out" || fail 'access'
pt member remove staff robert alice && pt members staff && says ''
pt remove carol robert && pt examine staff && grep -q '^  owner    system:administrators' "$work/out" ||
	fail 'a removed owner'
pt adduser erin && says 'user erin has the id 1003'

# JSON.
pt examine staff alice --json
command -v python3 > /dev/null && {
	python3 - "$work/out" << 'END' || fail "examine --json: $(cat "$work/out")"
import json, sys
staff, alice = json.load(open(sys.argv[1]))["entries"]
admin = {"name": "system:administrators", "id": -204}
assert staff == {"name": "staff", "id": -206, "kind": "group", "owner": admin, "creator": admin,
                 "access": "s-mar", "quota": 0, "members": [], "groups": []}, staff
assert alice["groups"] == [] and alice["kind"] == "user", alice
END
}
pt adduser frank --json && what=adduser && want "$work/out" id 1004
pt members --json -- -300 && what=members && want "$work/out" id 1002
pt list --json --users && [ "$(grep -c '"kind": "user"' "$work/out")" -eq 5 ] || fail "list --json"

# Machines are users whose name is an address.
pt adduser 10.1.2.3 10.1.0.0 && says 'machine 10.1.2.3 has the id 1005
machine 10.1.0.0 has the id 1006'
pt member add staff 10.1.2.3 && pt members staff && says 10.1.2.3
pt examine 10.1.2.3 && grep -q '^machine 10.1.2.3$' "$work/out" && grep -q '^  groups   staff$' "$work/out" || fail 'examine'
pt examine 10.1.2.3 --json && grep -q '"kind": "machine"' "$work/out" || fail 'the kind of a machine'
pt rename 10.1.2.3 10.1.2.4 && pt members staff && says 10.1.2.4
no 1 'cannot be an administrator' member add system:administrators 10.1.0.0
no 1 'IPv4 address' adduser 10.1.2
no 1 'IPv4 address' adduser 10.1.2.256
no 1 'every machine' adduser 0.0.0.0
no 1 'cannot become a machine' rename alice 10.1.2.5
no 1 'cannot become a machine' rename 10.1.0.0 heidi
pt remove 10.1.2.4 10.1.0.0 && pt members staff && says ''

# Groups in groups.
pt member add staff alice:friends && pt members staff && says 'alice:friends'
pt examine alice:friends && says 'group alice:friends
  id       -300
  owner    alice (1)
  creator  system:administrators (-204)
  access   S-M--
  members  dave
  groups   staff'
pt examine alice:friends --json && grep -q '"name": "staff"' "$work/out" || fail 'groups of a group'
pt member remove staff alice:friends && pt members staff && says ''

# What is refused, without any change.
pt list && mv "$work/out" "$work/before"
no 1 'exists already' adduser alice
no 1 'exists already.*nothing was changed' adduser grace alice
no 1 'is in use' adduser grace --id 1
no 1 'above 0' adduser grace --id -7
no 1 'less than -1' addgroup crew --id 7
no 1 'no user or group of' addgroup crew --owner nobody
no 1 'blanks' adduser 'two words'
no 1 'look like an id' adduser 12
no 1 "no ':'" adduser a:b
no 1 '63 bytes' adduser a234567890123456789012345678901234567890123456789012345678901234
no 1 'rxpt: alice is a user, not a group' member add alice dave
no 1 'rxpt: staff cannot be a member of itself' member add staff staff
no 1 'system:anyuser is in no group' member add staff system:anyuser
no 1 'no user or group of' member add staff alice nobody
no 1 'rxpt: alice is not a member of staff' member remove staff alice
no 1 'members of system:anyuser cannot be changed' member add system:anyuser alice
no 1 'anonymous is in no group' member add staff anonymous
no 1 'this is a machine: add it with adduser' addgroup 10.1.2.3
no 1 'this is a machine' rename staff 10.1.2.3
no 1 'the predefined entry anonymous cannot be removed' remove anonymous
no 1 'predefined' rename system:backup other
no 1 'is no user or group' examine nobody
no 1 'is no user or group' members 99999999999999999999
no 2 'no such command' frobnicate
no 2 'no command'
no 2 'usage: rxpt -S DIR rename NAME NEWNAME' rename alice
no 2 'usage: rxpt -S DIR list' list alice
no 2 'member add GROUP' member sub staff alice
no 2 'five letters' access staff SOMA
no 2 'five letters' access staff rMOSA
no 2 'one name' adduser x y --id 5
no 2 'not an id' adduser x --id five
no 2 'not an id' adduser x --id 0
no 2 '--id is an option of' list --id 5
no 2 '--owner is an option of' adduser x --owner alice
no 2 'options of list' examine alice --users
export RXWIRE_STORE=
refused 2 '-S DIR, .RXWIRE_STORE or a line "store = DIR" in section .rxfsd. of .* is required' "$rxpt" list
RXWIRE_STORE=$work/missing refused 1 "$work/missing" "$rxpt" list
refused 1 'No such file\|directory that exists' "$rxpt" -S "$work/missing/dir" adduser x
echo 'not a database, and long enough for a header: 0123456789012345678901234567890123456789 0123456789 0123456789' \
	> "$work/other"
refused 1 'not a protection database' "$rxpt" -S "$work/other" list
pt list && cmp -s "$work/before" "$work/out" || fail "refused commands changed: $(diff "$work/before" "$work/out")"

# Several processes at once: no user is lost.
n=0
while [ $n -lt 4 ]; do
	(i=0
	while [ $i -lt 10 ]; do
		"$rxpt" -S "$store" adduser "p$n-$i" > /dev/null 2>> "$work/err.$n" || exit 1
		i=$((i + 1))
	done) &
	eval "job$n=$!"
	n=$((n + 1))
done
n=0
while [ $n -lt 4 ]; do
	eval "wait \$job$n" || fail "process $n: $(cat "$work/err.$n")"
	n=$((n + 1))
done
pt list --users && [ "$(grep -c ' p[0-3]-[0-9] ' "$work/out")" -eq 40 ] || fail "users were lost: $(wc -l < "$work/out")"

# A file beside the database that was made while that was read-only: the message names it. Root writes to all.
if [ "$(id -u)" -ne 0 ]; then
	chmod 400 "$store/protection.db"
	"$rxpt" -S "$store" adduser never > "$work/out" 2>&1
	chmod 600 "$store/protection.db"
	if [ -e "$store/protection.db-shm" ]; then
		"$rxpt" -S "$store" adduser never > "$work/out" 2>&1 && fail "rxpt wrote to a read-only database"
		grep -q 'must be able to write .*/protection.db-shm$' "$work/out" || fail "read-only: $(cat "$work/out")"
		chmod 600 "$store/protection.db-shm"
		pt adduser ever && pt remove ever
	fi
fi

# A running server has the file open, and does not mind changes.
[ -x "$rxfsd" ] || { echo 'rxfsd is not built'; result; }
mkdir "$work/export" && chmod 755 "$work" "$work/export"
"$rxfsd" --export "$work/export" --volume v --port 0 --vl-port 0 --pt-port 0 --protection "$store" \
	--state "$work/state" > "$work/rxfsd.out" 2> "$work/rxfsd.err" &
server=$!
servers="$servers $server"
wait_for "$work/rxfsd.out" ' vol .* pt 127.0.0.1:[1-9]' $server || {
	cat "$work/rxfsd.out" "$work/rxfsd.err"
	fail 'rxfsd with --protection did not start'
}
pt adduser late && pt member add staff late && pt members staff && says late
stop_server $server TERM || fail "rxfsd ended with $?: $(tail -n 1 "$work/rxfsd.err")"
[ "$(ls -A "$store" | xargs)" = 'protection.db protection.db-ids' ] || fail "the store has: $(ls -A "$store")"
# The message of the library, with the option.
refused 1 '--protection: .*not a protection database' "$rxfsd" --export "$work/export" --volume v --port 0 \
	--vl-port 0 --pt-port 0 --protection "$work/other" --state "$work/state"
result
