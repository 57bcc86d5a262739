#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The raw baseline of small calls: every mode counts its calls; a lost server is reported.

rawcall=$top_builddir/src/bench/rawcall
work=$(mktemp -d) || exit 99
pid=
trap '[ -z "$pid" ] || kill "$pid" 2> /dev/null; rm -rf "$work"' EXIT
failed=0

fail() {
	echo "$*" >&2
	failed=1
}

# value END KEY: a figure of the client or server.
value() {
	sed "s/.*\"$1\":{//; s/}.*//; s/.*\"$2\":\([^,}]*\).*/\1/" "$work/out"
}

# calls MODE OUTSTANDING CALLS OPTIONS...: a run that must succeed; writes its line to $work/out.
calls() {
	mode=$1 out=$2 n=$3
	shift 3
	"$rawcall" --mode "$mode" --outstanding "$out" --calls "$n" "$@" \
		> "$work/out" 2> "$work/err" || {
		fail "$mode, $out outstanding: ended with $?: $(head -n 3 "$work/err")"
		return 1
	}
	grep -q "\"calls\":$n," "$work/out" || fail "$mode, $out outstanding: not $n calls"
	grep -q '"calls_per_s":[1-9]' "$work/out" || fail "$mode, $out outstanding: no rate"
}

# want END KEY WHICH NUMBER: compares with an operator of test, if nothing was retransmitted.
want() {
	grep -q '"resent":0,' "$work/out" || return 0
	test "$(value "$1" "$2")" "$3" "$4" ||
		fail "$mode, $out outstanding: $2 of the $1: $(value "$1" "$2"), not $3 $4"
}

# One message and one system call for each datagram.
for mode in block poll; do
	calls "$mode" 1 200 && {
		want client messages -eq 200
		want client syscalls -ge 400
		want server messages -eq 200
		want server syscalls -ge 400
	}
	calls "$mode" 7 200
done
# One system call for all outstanding messages.
calls mmsg 64 64 && {
	want client messages -eq 64
	want client syscalls -lt 128
}
calls mmsg 1024 5000
calls mmsg 64 3
# A GSO message holds up to 64 datagrams; 65 need two messages.
if calls bursts 64 64; then
	want client messages -eq 1
	calls bursts 65 65 && want client messages -eq 2
	calls bursts 64 6400
	calls bursts 1 100 --size 28 && want client messages -eq 100
	calls bursts 3000 10000
elif grep -q UDP_GRO "$work/err"; then
	echo 'SKIP bursts: the kernel lacks GRO'
	failed=0
fi

for bad in '--mode none' '--outstanding 0' '--size 27' '--seconds 0' \
	'--size 60000 --outstanding 999'; do
	# Several words on purpose.
	# shellcheck disable=SC2086
	"$rawcall" $bad > "$work/out" 2> "$work/err"
	[ $? -eq 2 ] || fail "$bad: did not end with 2"
	grep -q '^rawcall: --.*--help' "$work/err" || fail "$bad: no hint at --help"
done

# The server ends during a run.
children() {
	cat "/proc/$pid/task/$pid/children" 2> /dev/null
}
"$rawcall" --mode block --seconds 60 > "$work/out" 2> "$work/err" &
pid=$!
if [ -r "/proc/$pid/task/$pid/children" ]; then
	while kill -0 "$pid" 2> /dev/null && [ -z "$(children)" ]; do :; done
	kill -9 "$(children | tr -d ' ')"
	wait "$pid"
	[ $? -eq 1 ] || fail 'server killed: did not end with 1'
	grep -q '^rawcall: ' "$work/err" || fail 'server killed: no message'
	pid=
else
	echo 'SKIP server killed: /proc does not list children'
fi
exit $failed
