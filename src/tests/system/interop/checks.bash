# SPDX-License-Identifier: BSD-2-Clause
# Functions for writing tests; sourced inside the namespaces.

# run_test NAME: runs the function of that name in a subshell; writes one line of results.
run_test() {
	local function=test_${1//-/_} rc
	echo "== $1"
	rm -f "$work/why"
	if [ -f "$work/setup-failed" ]; then
		(fail "the set-up of its group failed")
	else
		("$function")
	fi
	rc=$?
	if [ $rc -eq 0 ]; then
		echo "PASS: $1"
	elif [ $rc -eq 77 ]; then
		echo "SKIP: $1 ($(cat "$work/why"))"
	else
		echo "FAIL: $1: $(cat "$work/why" 2> /dev/null || echo "status $rc")"
	fi >> "$work/results"
	echo "== $1: $rc"
}

fail() {
	echo "$*" | head -n 1 | cut -c1-300 | tee "$work/why"
	exit 1
}

skip() {
	echo "$*" > "$work/why"
	exit 77
}

# need PROGRAM: prints its path; skips the test if it was not built.
need() {
	find_program "$1" || { echo "$1 is not built" > "$work/why"; return 77; }
}

# limited SECONDS COMMAND...: runs the command with a time limit. Status 124: it was killed.
limited() {
	timeout --kill-after=5 "$@"
}

# port_bound PORT: true if a socket of this namespace is bound to the UDP port.
port_bound() {
	local hex
	hex=$(printf '%04X' "$1")
	cat /proc/net/udp /proc/net/udp6 2> /dev/null | awk -v p=":$hex" '$2 ~ p "$" { found = 1 } END { exit !found }'
}

# launch NAME COMMAND...: starts a server; creates NAME.out, NAME.err, NAME.pid and, at its end, NAME.status. A server
# outlives the test that started it, but not the group.
launch() {
	local name=$1
	shift
	rm -f "$name.pid" "$name.status"
	(
		"$@" > "$name.out" 2> "$name.err" < /dev/null &
		echo $! > "$name.pid.new"
		mv "$name.pid.new" "$name.pid"
		wait $!
		echo $? > "$name.status.new"
		mv "$name.status.new" "$name.status"
	) &
	wait_for test -f "$name.pid"
}

# alive NAME: the server has not ended.
alive() {
	[ ! -f "$1.status" ]
}

# wait_for COMMAND...: waits until it succeeds; fails after 20 s.
wait_for() {
	local i
	for ((i = 0; i < 200; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

# wait_port PORT NAME: waits until the server has its port; fails when it has ended or after 20 s.
wait_port() {
	wait_for bound_or_dead "$1" "$2" && alive "$2" && return 0
	echo "$2 has not opened port $1: $(head -n 1 "$2.err")"
	return 1
}

bound_or_dead() {
	port_bound "$1" || ! alive "$2"
}

# relay PORT SERVER_PORT SEED: a bad network in front of a server: of 1000 datagrams it drops 10, duplicates 10, and
# delays 20 behind a later one.
relay() {
	launch "relay$1" lossy_relay "$1" "$2" "$3" 10 10 20
	wait_port "$1" "relay$1"
}

# want_losses PORT: checks that the relay there has dropped and changed packets; ends it.
want_losses() {
	stop "relay$1" || fail "the relay ended with $?"
	want_positive "relay$1.out" lost
	want_positive "relay$1.out" doubled
	want_positive "relay$1.out" late
}

# tell NAME SIGNAL
tell() {
	kill "-$2" "$(cat "$1.pid")"
}

# stop NAME [SIGNAL]: asks a server to end; returns its status, or 137 if it had to be killed after 20 s.
stop() {
	tell "$1" "${2:-TERM}" 2> /dev/null
	wait_for test -f "$1.status" || tell "$1" KILL
	wait_for test -f "$1.status"
	return "$(cat "$1.status")"
}

# field NAME FILE: the first number of this name in JSON output.
field() {
	grep -o "\"$1\": *-\{0,1\}[0-9][0-9.eE+-]*" "$2" | head -n 1 | sed 's/.*: *//'
}

# want_field FILE NAME VALUE: expects exactly this count in the JSON output.
want_field() {
	local got
	got=$(field "$2" "$1")
	[ -n "$got" ] || fail "no \"$2\" in the output: $(head -c 200 "$1")"
	[ "$got" = "$3" ] || fail "\"$2\" is $got, not $3"
}

# want_positive FILE NAME: expects a number above zero in the JSON output.
want_positive() {
	awk -v v="$(field "$2" "$1")" 'BEGIN { exit !(v + 0 > 0) }' || fail "\"$2\" is not above 0"
}

# want_line FILE PATTERN: expects a line that matches an extended regular expression.
want_line() {
	grep -Eq -- "$2" "$1" || fail "no line like \"$2\" in: $(tr '\n' '|' < "$1" | cut -c1-200)"
}

# want_one_error FILE: expects exactly one line, not empty, on a program's stderr.
want_one_error() {
	[ "$(grep -c . "$1")" -eq 1 ] || fail "not one line on stderr but $(grep -c . "$1"): $(head -n 3 "$1" | tr '\n' '|')"
}

same_file() {
	[ -f "$2" ] || fail "$2 does not exist"
	cmp -s "$1" "$2" || fail "$2 differs from $1: $(cmp "$1" "$2" 2>&1)"
}
