#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The scripts of contrib/bpftrace with rxperf: bpftrace accepts each script. Where the kernel permits, all are run and
# must report calls; otherwise gdb stops at a probe and reads its arguments.

export LC_ALL=C
. "$top_srcdir/src/tests/tools/lib.sh"

scripts=$top_srcdir/contrib/bpftrace
if ! grep -q '^#define RXW_HAVE_SDT 1' "$top_builddir/config.h"; then
	echo "SKIP: built without probes (no sys/sdt.h; Debian package: systemtap-sdt-dev)"
	exit 77
fi
# Sanitizers and breakpoints in the library's code do not work together.
if grep -q '^#define RXW_SANITIZERS' "$top_builddir/config.h"; then
	echo "SKIP: not with a sanitizer"
	exit 77
fi

# A stopped server loses packets; it must be continued before it can end.
start_rxperf silent
silent=$pid
silent_port=$port
kill -STOP "$silent"
trap 'kill -CONT $silent 2> /dev/null; finish' EXIT
start_rxperf server
# rxperf is a libtool script if the library is shared; the script has become the program.
server=$pid

client() {
	"$rxperf" client -c recv -s 127.0.0.1 -p "$port" -b 2M > "$work/client" 2>&1 ||
		fail "rxperf client: $(cat "$work/client")"
}

# stop PID: as Ctrl-C does, then waits; kills it if it does not end.
stop() {
	kill -INT "$1" 2> /dev/null
	(sleep 20 && kill -KILL "$1" 2> /dev/null) > /dev/null 2>&1 &
	watch=$!
	wait "$1" 2> /dev/null
	kill "$watch" 2> /dev/null
	wait "$watch" 2> /dev/null
}

with_bpftrace() {
	[ "$(id -u)" -eq 0 ] || { why="bpftrace wants root"; return 1; }
	command -v bpftrace > /dev/null || { why="no bpftrace"; return 1; }
	for script in "$scripts"/*.bt; do
		timeout 60 bpftrace -d -p "$server" "$script" > "$work/log" 2>&1
		rc=$?
		[ "$rc" -ne 124 ] || { why="bpftrace takes minutes here"; return 1; }
		if [ "$rc" -ne 0 ] ||
		   grep -q '\(ERROR\|error\): *[^U]*bt:' "$work/log"; then
			cat "$work/log"
			fail "bpftrace rejects $script"
		fi
	done
	[ "$failures" -eq 0 ] || return 0
	echo "bpftrace accepts all scripts"

	# It may attach later than it reports: make calls until one is traced, or it has ended.
	bpftrace -B none -p "$server" "$scripts/slowcall.bt" 0 > "$work/slow" 2>&1 &
	tracer=$!
	servers="$servers $tracer"
	tries=0
	while ! grep -Eq '^[0-9a-f]{8} .* server ' "$work/slow"; do
		kill -0 "$tracer" 2> /dev/null || break
		tries=$((tries + 1))
		[ "$tries" -le 100 ] || break
		client
		sleep 0.1
	done
	stop "$tracer"
	if ! grep -Eq '^[0-9a-f]{8} .* server ' "$work/slow"; then
		why="bpftrace cannot attach here: $(tail -n 1 "$work/slow")"
		return 1
	fi
	grep -E '^CID|^[0-9a-f]{8} ' "$work/slow" | head -n 3

	tries=0
	until grep -q '^@sent' "$work/bursts" 2> /dev/null; do
		tries=$((tries + 1))
		[ "$tries" -le 5 ] || { why="bursts.bt saw none"; return 0; }
		bpftrace -p "$server" "$scripts/bursts.bt" > "$work/bursts" 2>&1 &
		tracer=$!
		servers="$servers $tracer"
		wait_for "$work/bursts" Attaching "$tracer"
		for _ in 1 2 3; do
			sleep 1
			client
		done
		stop "$tracer"
	done
	grep -A 4 '^@sent' "$work/bursts"

	# A client whose packets are not read retransmits them at least every 20 s; the script prints every 10 s.
	"$rxperf" client -c send -s 127.0.0.1 -p "$silent_port" -b 20000 --dead-ms 250000 > "$work/lost" 2>&1 &
	lost=$!
	servers="$servers $lost"
	bpftrace -p "$lost" "$scripts/retransmits.bt" > "$work/again" 2>&1 &
	tracer=$!
	servers="$servers $tracer"
	wait_for "$work/again" "^@timeouts.127.0.0.1, $silent_port.: [1-9]" "$tracer"
	told=$?
	stop "$tracer"
	kill -INT "$lost" && wait "$lost"
	[ "$told" -eq 0 ] || { why="retransmits.bt saw none"; return 0; }
	grep '^@[a-z]*\[127.0.0.1, '"$silent_port"'\]' "$work/again" | tail -n 3
	grep -q '^@again\[127.0.0.1, '"$silent_port"'\]: [1-9]' "$work/again" ||
		fail "retransmits.bt does not report retransmitted packets: $(cat "$work/again")"
	echo "bpftrace ran against a server"
}

# The arguments of call_end: client's call, code 0, origin 0.
with_gdb() {
	command -v gdb > /dev/null || { why="$why; no gdb"; return 1; }
	"$top_builddir/libtool" --mode=execute gdb -nx -batch -ex 'set breakpoint pending on' \
		-ex 'set debuginfod enabled off' -ex 'set confirm off' \
		-ex 'break -probe-stap rxwire:call_end' -ex run \
		-ex 'printf "code %d origin %d sent %d\n", $_probe_arg1, $_probe_arg2, $_probe_arg4' \
		-ex kill --args "$rxperf" client -c send -s 127.0.0.1 -p "$port" -b 20000 \
		< /dev/null > "$work/gdb" 2>&1
	if grep -q 'ptrace: \|Couldn.t get registers\|not permitted' "$work/gdb"; then
		why="$why; gdb may not trace here"
		return 1
	fi
	if grep -Eq '^code 0 origin 0 sent [1-9]' "$work/gdb"; then
		echo "gdb stopped at call_end: $(grep '^code' "$work/gdb")"
	else
		cat "$work/gdb"
		fail "gdb did not stop at call_end"
	fi
}

why=
seen=0
with_bpftrace && seen=1
with_gdb && seen=1
[ "$failures" -eq 0 ] || result
if [ "$seen" -eq 0 ]; then
	echo "SKIP: $why"
	exit 77
fi
[ -z "$why" ] || echo "left out: $why"
result
