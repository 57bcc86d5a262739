# SPDX-License-Identifier: BSD-2-Clause
# afscp: copies that a signal ends while the server is silent, and what the next run makes of them; commands under a lock that gets lost; times of links.

. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol

for program in "$rxfsd" "$rxvol"; do
	[ -x "$program" ] || { echo "SKIP: $program is not built"; exit 77; }
done
cd "$work" || exit 99
umask 022
"$rxvol" -S store create home --acl 'system:anyuser all' > made || { cat made; exit 99; }
"$rxfsd" --store store --port 0 --vl-port 0 > rxfsd.out 2> rxfsd.err &
server=$!
servers="$servers $server"
wait_for rxfsd.out 'fs .* vl ' $server || { cat rxfsd.out rxfsd.err; echo "rxfsd did not start"; exit 1; }
where=$(sed -n 's/.*fs 127\.0\.0\.1:\([0-9]*\) vl 127\.0\.0\.1:\([0-9]*\).*/127.0.0.1:\2:\1/p' rxfsd.out)

cp_() { "$afscp" -s "$where" "$@"; }
cp_well() {
	cp_ "$@" > out 2> err < /dev/null || {
		fail "afscp $* ended with $?: $(head -n 3 err)"
		return 1
	}
	[ ! -s err ] || fail "afscp $* printed: $(head -n 3 err)"
}
# ends_within SECONDS PID: its status; 137 if it had to be killed.
ends_within() {
	(
		timeout "$1" tail -s 0.1 --pid="$2" -f /dev/null
		[ $? -ne 124 ] || kill -KILL "$2"
	) > /dev/null 2>&1 &
	watch=$!
	wait "$2"
	status=$?
	wait $watch
	return $status
}

# ---- a signal while the server is silent ----

mkdir tree
i=0
while [ $i -lt 30 ]; do
	mkdir tree/d$i
	for n in 0 1 2 3 4 5 6 7 8 9; do
		for m in 0 1 2 3 4 5 6 7 8 9; do echo $i $n $m > tree/d$i/file$n$m; done
	done
	ln -s file00 tree/d$i/link
	i=$((i + 1))
done
find tree -exec touch -h -d @1200000000 {} +

# stop_within COMMAND...: the copy has begun, and its server is stopped; fails if it was always too fast.
stop_within() {
	for attempt in 1 2 3 4 5 6 7 8; do
		cp_well rm -rf home:/copy && cp_well mkdir home:/copy
		# A silent server is waited for, for longer than this test waits.
		"$afscp" -s "$where" -v --dead-ms 600000 --timeout 600 "$@" home:/copy > out 2> err &
		copy=$!
		until [ -s out ]; do
			kill -0 $copy 2> /dev/null || break
			sleep 0.01
		done
		kill -STOP $server
		kill -0 $copy 2> /dev/null && return 0
		kill -CONT $server
		wait $copy
	done
	return 1
}
for how in 'put -r -C tree/.' 'sync tree/'; do
	# shellcheck disable=SC2086
	stop_within $how || fail "$how: it always ends at once"
	sleep 1
	kill -TERM $copy
	ends_within 200 $copy
	ended=$?
	[ $ended -eq 143 ] || fail "$how: ended with $ended while the server is silent: $(cat err)"
	grep -q 'files co' err || fail "$how: it does not say how far it came: $(cat err)"
	kill -CONT $server
	# shellcheck disable=SC2086
	cp_well $how home:/copy
	rm -rf back
	cp_well get -r home:/copy back && diff -r tree back > differs || fail "$how: after another run: $(head -n 5 differs)"
	[ "$(stat -c %Y back/d7/link back/d29/file99 | sort -u)" = 1200000000 ] || fail "$how: times of links: $(stat -c '%n %Y' back/d7/*)"
done

# ---- links ----

# calls_of COMMAND...: the calls that it makes.
calls_of() { cp_ --json "$@" > out 2> err && number out calls; }
mkdir few many
for i in 0 1 2 3 4 5 6 7 8 9; do
	ln -s text few/$i
	for n in 0 1 2 3 4 5 6 7 8 9; do ln -s text many/1$i$n && ln -s text many/2$i$n; done
done
# How often the client looks at addresses and directories is a matter of a few calls; a further one for each link would be 190.
few=$(calls_of put -r few home:/few)
many=$(calls_of put -r many home:/many)
[ $((many - few)) -ge 190 ] && [ $((many - few)) -lt 220 ] || fail "190 links more are $many instead of $few calls"

# ---- locks ----

# begin_locked OPTIONS... -- COMMAND: in the background as $holder; it makes the file "begun".
begin_locked() {
	rm -f begun
	"$afscp" -s "$where" lock "$@" > lock.out 2> lock.err < /dev/null &
	holder=$!
	until [ -e begun ]; do
		kill -0 $holder 2> /dev/null || { fail "lock $*: $(cat lock.err)"; return; }
		sleep 0.05
	done
}
echo text > text
cp_well put text home:/locked
# The file is removed: the command is told soon, although it does not use the file.
begin_locked home:/locked sh -c ': > begun; exec sleep 1000'
cp_well rm home:/locked
ends_within 300 $holder
ended=$?
[ $ended -eq 143 ] || fail "lock: the command goes on without it: $ended, $(cat lock.err)"
grep -q 'the lock is lost; the command gets SIGTERM$' lock.err || fail "lock: $(cat lock.err)"
# A command that ends well was still not protected.
cp_well put text home:/locked
begin_locked home:/locked sh -c 'trap "echo told; exit 0" TERM; : > begun; while :; do sleep 0.1; done'
cp_well rm home:/locked
ends_within 300 $holder
ended=$?
[ $ended -eq 1 ] && [ "$(cat lock.out)" = told ] || fail "lock: without it the status is $ended: $(cat lock.out lock.err)"
# Changes of the file by others do not end the lock.
cp_well put text home:/locked
begin_locked home:/locked sh -c ': > begun; until [ -e go ]; do sleep 0.1; done; exit 7'
cp_well put text home:/locked
# Another one waits as long as it is told to.
refused 1 'home:/locked: .*somebody else has locked the file' cp_ lock home:/locked true
refused 1 'home:/locked: .*somebody else has locked the file' cp_ lock -w 1 home:/locked true
"$afscp" -s "$where" lock --wait 600 home:/locked echo mine > second.out 2> second.err < /dev/null &
second=$!
: > go
ends_within 300 $holder
ended=$?
[ $ended -eq 7 ] && [ ! -s lock.err ] || fail "lock: status $ended: $(cat lock.err)"
ends_within 300 $second
ended=$?
[ $ended -eq 0 ] && [ "$(cat second.out)" = mine ] || fail "lock --wait: $ended, $(cat second.out second.err)"
result
