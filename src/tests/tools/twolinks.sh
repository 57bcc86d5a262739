# SPDX-License-Identifier: BSD-2-Clause
# For tests of several paths, sourced in place of lib.sh: two emulated links of the kind $link to another network namespace ($RXW_FAR), which
# has two addresses. A script that is outside of them is run again within.

if [ -z "${RXW_NEAR4_2:-}" ]; then
	RXW_LAB_IPV4=1 RXW_LAB_SECOND=$link exec bash "$top_srcdir/src/tests/link/lab" "$top_builddir" "$link" sh "$0"
fi
. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol
[ -x "$rxvol" ] && [ -x "$rxfsd" ] || { echo "SKIP: rxvol or rxfsd is not built"; exit 77; }
cd "$work" || exit 99

# make_volume NAME: in the store "store".
make_volume() {
	"$rxvol" -S store create "$1" --acl 'system:anyuser all' > made || { cat made; exit 99; }
}

# start_far_server OPTION...: the address at which it is asked is $RXW_FAR4:7003:7000.
start_far_server() {
	: > rxfsd.out
	$RXW_FAR "$rxfsd" "$@" --require none --listen 0.0.0.0 --port 7000 --vl-port 7003 --vol-port 0 > rxfsd.out 2>> rxfsd.err &
	server=$!
	servers=$server
	wait_for rxfsd.out 'fs .* vl ' $server || { cat rxfsd.out rxfsd.err; echo "rxfsd did not start"; exit 1; }
}

# uses REPORT NAME: the numbers of that name for both addresses.
uses() {
	python3 -c 'import json, sys
paths = {p["server"]: p for p in json.load(open(sys.argv[1])).get("paths", [])}
print(*(paths.get(f"{a}:7000", {}).get(sys.argv[2], "none") for a in sys.argv[3:]))' "$1" "$2" "$RXW_FAR4" "$RXW_FAR4_2"
}
