# SPDX-License-Identifier: BSD-2-Clause
# Hosts with several addresses: if nothing answers at the first one, the next is used. In a network of its own.

if [ -z "${RXWIRE_OWN_NETWORK:-}" ]; then
	unshare -n -m true 2> /dev/null || { echo "SKIP: no network of its own (unshare -n -m)"; exit 77; }
	top_builddir=$(cd "${top_builddir:-.}" && pwd) top_srcdir=$(cd "${top_srcdir:-.}" && pwd)
	export top_builddir top_srcdir
	RXWIRE_OWN_NETWORK=1 exec unshare -n -m sh "$0"
fi
. "$top_srcdir/src/tests/tools/lib.sh"
rxwstat=$top_builddir/src/rxwstat/rxwstat

[ -x "$rxfsd" ] || { echo "SKIP: rxfsd is not built"; exit 77; }
command -v ip > /dev/null || { echo "SKIP: there is no ip(8)"; exit 77; }
ip link set lo up && ip addr add 10.8.8.7/32 dev lo && ip addr add 10.8.8.8/32 dev lo &&
	ip -6 addr add fd00:8::8/128 dev lo nodad 2> /dev/null ||
	{ echo "SKIP: no addresses can be added"; exit 77; }
: > "$work/hosts"
mount --bind "$work/hosts" /etc/hosts || { echo "SKIP: /etc/hosts cannot be replaced"; exit 77; }
mkdir "$work/export" && chmod 755 "$work" "$work/export"

# serve ADDRESS: rxfsd and rxperf, only there.
serve() {
	: > "$work/rxfsd.out"
	: > "$work/rxperf.out"
	"$rxfsd" --export "$work/export" --volume demo --listen "$1" --require none --state "$work/state" --port 7000 --vl-port 7003 \
		> "$work/rxfsd.out" 2> "$work/rxfsd.err" &
	fs=$!
	"$rxperf" server -p 7009 --listen "$1" > "$work/rxperf.out" 2>&1 &
	perf=$!
	servers="$servers $fs $perf"
	wait_for "$work/rxfsd.out" 'fs .* vl ' $fs && wait_for "$work/rxperf.out" 'ready on' $perf || {
		cat "$work/rxfsd.err" "$work/rxperf.out"
		exit 1
	}
}
stop() {
	stop_server $fs TERM || fail "rxfsd ended with $?"
	stop_server $perf TERM || fail "rxperf ended with $?"
}
# reached HOST
reached() {
	"$afscp" -s "$1" ls demo: > "$work/out" 2>&1 || fail "afscp, $1: $(cat "$work/out")"
	"$rxwstat" "$1" > "$work/out" 2>&1 || fail "rxwstat, $1: $(cat "$work/out")"
	"$rxperf" client -c rpc -s "$1" > "$work/out" 2>&1 || fail "rxperf, $1: $(cat "$work/out")"
}
printf '%s\n' 'fd00:8::8 both' '10.8.8.8 both' '10.8.8.7 two' '10.8.8.8 two' > "$work/hosts"
serve 10.8.8.8
reached both
reached two
stop
serve fd00:8::8
reached both
stop
refused 1 'two\|10.8.8' "$afscp" -s two --retry 0 --timeout 1 --dead-ms 1000 ls demo:

result
