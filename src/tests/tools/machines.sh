# SPDX-License-Identifier: BSD-2-Clause
# Rights of machines: afscp calls rxfsd from two addresses, one of which is in a group; in a network of its own.

if [ -z "${machines_inside:-}" ]; then
	command -v unshare > /dev/null && command -v ip > /dev/null && unshare -rn true 2> /dev/null ||
		{ echo "SKIP: no network namespaces, or no ip"; exit 77; }
	export machines_inside=1
	exec unshare -rn sh "$0"
fi
. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol
rxpt=$top_builddir/src/rxpt/rxpt
[ -x "$rxvol" ] && [ -x "$rxfsd" ] || { echo "SKIP: rxvol or rxfsd is not built"; exit 77; }
store=$work/store
server_address=10.91.7.1
one=10.91.7.2 other=10.91.8.3

ip link set lo up || exit 99
for address in $server_address $one $other; do
	ip address add "$address/32" dev lo || exit 99
done

# from ADDRESS: afscp calls from this address from now on.
from() {
	ip route replace local "$server_address" dev lo table local src "$1" || exit 99
}

# pt, vol ARGUMENTS...
pt() {
	"$rxpt" -S "$store" "$@" > "$work/out" 2>&1 || fail "rxpt $*: $(head -n 3 "$work/out")"
}
vol() {
	"$rxvol" -S "$store" "$@" > "$work/out" 2>&1 || fail "rxvol $*: $(head -n 3 "$work/out")"
}

# cp ARGUMENTS...: the exit status of afscp.
cp_of() {
	"$afscp" -q --retry 0 -s "$where" "$@" > "$work/out" 2> "$work/err"
}
# can NAME, cannot NAME: put a file of this name.
can() {
	cp_of put "$work/file" "data:$1" || fail "no right to put $1: $(head -n 1 "$work/err")"
}
cannot() {
	! cp_of put "$work/file" "data:$1" || fail "$1 could be put"
	grep -qi 'permission' "$work/err" || fail "$1: $(head -n 1 "$work/err")"
}
# until COMMAND...: waits until it succeeds; at most 20 s.
until_true() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { fail "not in 20 s: $*"; return; }
		sleep 0.2
	done
}

echo text > "$work/file"
vol create data --acl 'system:anyuser rl'
pt adduser $one 10.91.8.0
grep -q "^machine $one has the id 1$" "$work/out" || fail "adduser: $(cat "$work/out")"
pt addgroup lab net
"$rxvol" -S "$store" acl data "$one" all > "$work/out" 2>&1 && fail 'an access list names a machine'
grep -q 'add it to a group' "$work/out" || fail "rxvol acl: $(cat "$work/out")"
vol acl data lab rlidwk
pt member add lab $one

"$rxfsd" --store "$store" --protection "$store" --listen "$server_address" --require none --port 0 --vl-port 0 --vol-port 0 \
	--pt-port 0 > "$work/rxfsd.out" 2> "$work/rxfsd.err" &
server=$!
servers=$server
wait_for "$work/rxfsd.out" 'fs .* vl ' $server || { cat "$work/rxfsd.out" "$work/rxfsd.err"; exit 1; }
where=$(sed -n 's/.*fs [0-9.]*:\([0-9]*\) vl [0-9.]*:\([0-9]*\).*/10.91.7.1:\2:\1/p' "$work/rxfsd.out")
grep -q "callers on the machine $one may write without a token, because it is in the group lab" "$work/rxfsd.err" ||
	fail "no line about the machine: $(cat "$work/rxfsd.err")"

from $one
can one
from $other
cannot other
cp_of get data:one "$work/copy" && cmp -s "$work/file" "$work/copy" || fail "get: $(head -n 1 "$work/err")"
from $server_address
cannot server

# A network, and changes while the server runs.
pt member add net 10.91.8.0
vol acl data net rlidwk
from $other
until_true cp_of put "$work/file" data:other
pt member remove lab $one
from $one
removed() { ! cp_of put "$work/file" data:one; }
until_true removed
from $other
can again
# An entry against the group of a machine.
vol acl -n data net idwk
cannot more
cp_of get data:one "$work/copy" || fail "get: $(head -n 1 "$work/err")"
pt remove 10.91.8.0
cannot more

stop_server $server TERM || fail "rxfsd ended with $?: $(tail -n 1 "$work/rxfsd.err")"
result
