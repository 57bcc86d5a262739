#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The raw baseline of transfers: in every mode, with one stream and several, all bytes arrive.

raw=$top_builddir/src/bench/raw
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	echo "$*" >&2
	failed=1
}

# value END KEY: a figure of the sender or receiver.
value() {
	sed "s/.*\"$1\":{//; s/}.*//; s/.*\"$2\":\([^,}]*\).*/\1/" "$work/out"
}

# move BYTES OPTIONS...: a run that must succeed; writes its line to $work/out.
move() {
	bytes=$1
	shift
	run="$*"
	"$raw" --size 1000 --bytes "$bytes" "$@" > "$work/out" 2> "$work/err" || {
		fail "$run: ended with $?: $(head -n 3 "$work/err")"
		return 1
	}
	grep -q "\"bytes\":$bytes," "$work/out" || fail "$run: not $bytes bytes"
}

# want END KEY WHICH NUMBER: compares with an operator of test.
want() {
	test "$(value "$1" "$2")" "$3" "$4" ||
		fail "$run: $2 of the $1: $(value "$1" "$2"), not $3 $4"
}

modes='msg mmsg'
if move 1000 --mode gso+gro; then
	modes='msg mmsg gso+mmsg gso+gro'
elif grep -q UDP_GRO "$work/err"; then
	echo 'SKIP bursts: the kernel lacks GRO'
	failed=0
fi
for mode in $modes; do
	# 40 windows of 25 datagrams; each half is acknowledged.
	move 1000000 --mode "$mode" --window 25 && {
		want sender acks -le 100
		want receiver acks -eq "$(value sender acks)"
	}
	move 1000000 --mode "$mode" --window 25 --ack 2 --no-merge && want receiver acks -eq 500
	for threads in one each; do
		# Ten streams of 100 datagrams, each acknowledged at least at its end.
		move 1000000 --mode "$mode" --window 25 --streams 10 --threads "$threads" && {
			want receiver acks -ge 10
			want receiver acks -le 100
			grep -q '"streams":10,' "$work/out" || fail "$run: not 10 streams"
		}
		move 1000000 --mode "$mode" --window 25 --streams 10 --threads "$threads" \
			--ack 2 --no-merge && want receiver acks -eq 500
	done
done
# One thread sends for all: with 200 streams many share a system call.
move 1000000 --mode mmsg --window 5 --streams 200 --threads one && want sender messages -eq 1000 &&
	want sender syscalls -lt 600
move 50000 --mode msg --streams 50 --threads each --connect --poll --pin 0,0

for bad in '--mode none' '--window 0' '--streams 0' '--threads some' '--ack 200 --room 200' \
	'--size 7' 'more'; do
	# Several words on purpose.
	# shellcheck disable=SC2086
	"$raw" $bad > "$work/out" 2> "$work/err"
	[ $? -eq 2 ] || fail "$bad: did not end with 2"
	grep -q '^raw: .*--help' "$work/err" || fail "$bad: no hint at --help"
done
exit $failed
