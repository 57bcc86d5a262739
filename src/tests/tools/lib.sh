# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the scripts of this folder: programs, a temporary folder, servers, checks.

set -u
: "${top_builddir:=.}" "${top_srcdir:=.}"
rxperf=$top_builddir/src/rxperf/rxperf
afscp=$top_builddir/src/afscp/afscp
rxfsd=$top_builddir/src/fileserver/rxfsd

work=$(mktemp -d "${TMPDIR:-/tmp}/rxwire-tools-XXXXXX") || exit 99
servers=
failures=0

finish() {
	for pid in $servers; do
		kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null
	done
	# Directories of a test may keep out a user who is not root.
	rm -rf "$work" 2> /dev/null || { chmod -R u+rwX "$work"; rm -rf "$work"; }
}
trap finish EXIT
trap 'exit 99' INT TERM HUP

fail() {
	echo "FAIL: $*"
	failures=$((failures + 1))
}

# The end of a script: prints the result and exits.
result() {
	[ "$failures" -eq 0 ] || { echo "$failures checks failed"; exit 1; }
	echo "all checks passed"
	exit 0
}

# wait_for FILE PATTERN PID: waits until a line of FILE matches, while PID lives; at most 60 s.
wait_for() {
	tries=0
	while ! grep -q -- "$2" "$1" 2> /dev/null; do
		kill -0 "$3" 2> /dev/null || return 1
		tries=$((tries + 1))
		[ "$tries" -lt 600 ] || return 1
		sleep 0.1
	done
}

# start_rxperf NAME OPTIONS...: starts a server on a free port of 127.0.0.1; sets pid and port.
start_rxperf() {
	name=$1
	shift
	"$rxperf" server -p 0 --listen 127.0.0.1 "$@" > "$work/$name.out" 2> "$work/$name.err" &
	pid=$!
	servers="$servers $pid"
	wait_for "$work/$name.out" 'ready on' "$pid" || {
		cat "$work/$name.out" "$work/$name.err"
		echo "the server did not start"
		exit 1
	}
	port=$(sed -n 's/.*ready on .*:\([0-9]*\)$/\1/p' "$work/$name.out" | head -n 1)
}

# stop_server PID SIGNAL: returns its exit status.
stop_server() {
	kill -"$2" "$1"
	wait "$1"
	rc=$?
	servers=$(echo " $servers " | sed "s/ $1 / /")
	return $rc
}

# number FILE KEY: the first value of that key in one of our JSON objects.
number() {
	sed -n "s/^ *\"$2\": \\([-0-9.e]*\\),*\$/\\1/p" "$1" | head -n 1
}

# want FILE KEY VALUE
want() {
	[ "$(number "$1" "$2")" = "$3" ] || fail "$2 is \"$(number "$1" "$2")\", not $3 ($what)"
}

# want_more FILE KEY VALUE: greater than VALUE.
want_more() {
	awk -v a="$(number "$1" "$2")" -v b="$3" 'BEGIN { exit !(a != "" && a + 0 > b + 0) }' ||
		fail "$2 is \"$(number "$1" "$2")\", not above $3 ($what)"
}

# refused STATUS PATTERN COMMAND...: expects that exit status, no output on stdout, and one line on stderr with
# PATTERN.
refused() {
	status=$1
	pattern=$2
	shift 2
	"$@" > "$work/refused.out" 2> "$work/refused.err" < /dev/null
	rc=$?
	[ $rc -eq "$status" ] || fail "$* ended with $rc, not $status: $(head -n 3 "$work/refused.err")"
	[ "$(wc -l < "$work/refused.err")" -eq 1 ] ||
		fail "$*: not one line but: $(cat "$work/refused.err")"
	grep -q -- "$pattern" "$work/refused.err" ||
		fail "$*: no \"$pattern\" in: $(cat "$work/refused.err")"
	[ ! -s "$work/refused.out" ] || fail "$*: output on stdout: $(head -n 2 "$work/refused.out")"
}
