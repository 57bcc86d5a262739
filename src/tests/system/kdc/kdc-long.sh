#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Loads that run longer than their tickets: rxperf client and afscp bench renew their tokens before expiry, or when
# expiry aborts a call, and no call fails. Without another ticket they report that.
#
# Tickets live for seconds. A load that gets no processor for so long finds that its new ticket has expired, and ends.
# Then all is done again with tickets that live four times as long.

. "${top_srcdir:-.}/src/tests/system/kdc/programs.sh"

LIFE=${1:-4} # seconds of a ticket
# No peer is declared dead, even if a load is paused for long.
patient='--dead-ms 3600000'
fsd= loads=
finish() {
	for p in $loads $server $fsd; do
		kill -KILL "$p"
		wait "$p"
	done 2> /dev/null
	kdc_stop
}
trap finish EXIT

# ended_early NAME: what to do when a load has ended that should go on
ended_early() {
	if [ "$LIFE" -lt 256 ] && grep -q 'Ticket expired\|ticket has expired' "$dir/$1.err"; then
		echo "tickets of $LIFE s were too short for $1"
		trap - EXIT
		finish
		exec sh "$0" $((4 * LIFE))
	fi
	cat "$dir/$1.err"
	kdc_fail "$1 ended"
}

mkdir -p "$KDC_DIR/fs/export" "$KDC_DIR/perf"
head -c 100000 /dev/urandom > "$KDC_DIR/fs/export/file"
kdc_principal afs/$KDC_CELL
kdc_principal afs-rxgk/_afs.$KDC_CELL
kdc_keytab "$dir/keytab" afs/$KDC_CELL "$(kdc_enctype 18)"
kdc_keytab "$dir/keytab" afs-rxgk/_afs.$KDC_CELL "$(kdc_enctype 18)"
dir=$KDC_DIR/fs
fs $patient --keytab "$KDC_DIR/keytab" --cell $KDC_CELL --require fs:crypt --require vl:none --require vol:none
fsd=$server server=
dir=$KDC_DIR/perf
perf $patient --keytab "$KDC_DIR/keytab" --cell $KDC_CELL

# load NAME CLASS COMMAND...: in the background, with its own tickets; its process id is in $dir/NAME.pid
load() {
	of=$1 as=$2
	shift 2
	kdc_principal "$of" -randkey -maxlife ${LIFE}s
	kdc_keytab "$dir/$of.keytab" "$of" "$(kdc_enctype 18)"
	"$@" -x "$as" --cell $KDC_CELL --keytab "$dir/$of.keytab" $patient > "$dir/$of.out" 2> "$dir/$of.err" &
	echo $! > "$dir/$of.pid"
	loads="$loads $!"
}
rxperf_load() {
	of=$1 as=$2
	shift 2
	load "$of" "$as" "$rxperf" client -s 127.0.0.1 -p "$port" -c rpc --interval 0.1 "$@"
}
bench_load() {
	load "$1" "$2" "$afscp" -s "$at" bench vol:/file --clients 2 --range 4K --seconds 3600
}
# until_so NAME COMMAND...: waits until the command succeeds, as long as the load runs
until_so() {
	of=$1
	shift
	until "$@"; do
		kill -0 "$(cat "$dir/$of.pid")" 2> /dev/null || ended_early "$of"
		sleep 0.05
	done
}
tickets() {
	grep -c "ISSUE.*, $1@$KDC_REALM for afs" "$KDC_DIR/kdc.log"
}
at_least() {
	[ "$(tickets "$1")" -ge "$2" ]
}
# goes NAME: it has made calls; both clients of a bench have, in addition to the one that looked up the volume
goes() {
	case $1 in
	*bench*) [ "$(grep -c "is $1@" "$KDC_DIR/fs/log")" -ge 3 ] ;;
	*) grep -q 'calls/s' "$dir/$1.out" ;;
	esac
}
signal() {
	kill "-$2" "$(cat "$dir/$1.pid")"
}
# ended_well NAME N: stops it; it must have renewed its token at least N times
ended_well() {
	# A script's background jobs ignore SIGINT, and afscp then ignores it, too. It reports, then dies of the
	# signal.
	case $1 in
	bench*) signal "$1" TERM; want=143 ;;
	*) signal "$1" INT; want=0 ;;
	esac
	status=0
	wait "$(cat "$dir/$1.pid")" || status=$?
	[ $status -eq $want ] || ended_early "$1"
	n=$(sed -n 's/^  tokens *\([0-9]*\) .*/\1/p' "$dir/$1.out")
	[ "${n:-0}" -ge "$2" ] || { cat "$dir/$1.out"; kdc_fail "$1 renewed its token ${n:-0} times, not $2"; }
	total=$((total + n))
}
total=0

# The running loads renew before each ticket's end. The paused ones are stopped until theirs has expired, which aborts
# calls. A client with its own key loses it, because the KDC has a new one by then.
for class in rxkad rxgk; do
	rxperf_load even-$class $class --rate 100 -D 3600
done
stopped='open one many bench lost-open lost-one lost-bench'
for class in rxkad rxgk; do
	rxperf_load open-$class $class --rate 100 -D 3600
	rxperf_load one-$class $class -D 3600
	rxperf_load many-$class $class -t 4 -D 3600
	bench_load bench-$class $class
	rxperf_load lost-open-$class $class --rate 100 -D 3600
	rxperf_load lost-one-$class $class -D 3600
	bench_load lost-bench-$class $class
	for name in $stopped; do
		until_so $name-$class goes $name-$class
		signal $name-$class STOP
	done
	for name in open one bench; do
		kdc_keytab "$dir/newer" lost-$name-$class "$(kdc_enctype 18)"
	done
done
sleep $((LIFE + 1))
for class in rxkad rxgk; do
	for name in $stopped; do
		tickets $name-$class > "$dir/$name-$class.had"
		signal $name-$class CONT
	done
done
for class in rxkad rxgk; do
	for name in open one many bench; do
		# A new request shows that the ticket before it is in use.
		until_so $name-$class at_least $name-$class $(($(cat "$dir/$name-$class.had") + 2))
		ended_well $name-$class 1
	done
	for name in lost-open lost-one lost-bench; do
		if wait "$(cat "$dir/$name-$class.pid")"; then kdc_fail "$name-$class went on without a ticket"; fi
		grep -q 'expired' "$dir/$name-$class.err" ||
			{ cat "$dir/$name-$class.err"; kdc_fail "$name-$class does not report the expired ticket"; }
	done
	until_so even-$class at_least even-$class 4
	ended_well even-$class 2
done
loads=
echo "10 loads of two classes outlived their tickets: $total renewals; 6 without another ticket reported that"
