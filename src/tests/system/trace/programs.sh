# SPDX-License-Identifier: BSD-2-Clause
# Traces of programs: started and stopped by SIGUSR2, of a complete run, refused in a folder that others may write.

. "$top_srcdir/src/tests/tools/lib.sh"

# one FILE...: exactly one file, in pcapng format, readable by its owner only.
one() {
	[ $# -eq 1 ] && [ -s "$1" ] || { fail "not one file: $*"; return; }
	[ "$(stat -c %a "$1")" = 600 ] || fail "$1 has mode $(stat -c %a "$1")"
	[ "$(od -An -tx4 -N4 "$1" | tr -d ' ')" = 0a0d0d0a ] || fail "$1 is not pcapng"
}

mkdir "$work/s" "$work/c" "$work/f" "$work/open" "$work/export" && chmod 700 "$work/s" "$work/c" "$work/f" &&
	chmod 777 "$work/open" && echo hello > "$work/export/file" || exit 99

start_rxperf server --trace-dir "$work/s" --trace-size 1M --trace-snap 100
[ -z "$(ls -A "$work/s")" ] || fail "a trace without a request"
kill -USR2 "$pid"
wait_for "$work/server.out" 'trace started' "$pid" || fail "SIGUSR2 does not start a trace"
"$rxperf" client -c rpc -s 127.0.0.1 -p "$port" -T 20 --trace-dir "$work/c" > "$work/client.out" 2> "$work/client.err" ||
	fail "client: $(cat "$work/client.err")"
grep -q 'trace of [0-9]* packets' "$work/client.err" || fail "the client does not report its trace"
one "$work"/c/rxwire-*-1.pcapng
kill -USR2 "$pid"
wait_for "$work/server.out" 'trace of [0-9]* packets' "$pid" || fail "SIGUSR2 does not end the trace"
one "$work/s/rxwire-$port-"*-1.pcapng
kill -USR2 "$pid"
kill -USR2 "$pid"
stop_server "$pid" TERM || fail "the server ended with $?"

start_rxperf dull
kill -USR2 "$pid"
wait_for "$work/dull.err" 'trace-dir is not set' "$pid" || fail "no message about SIGUSR2"
stop_server "$pid" TERM || fail "the server ended with $?"

# A running trace is written when the program ends.
"$rxfsd" --export "$work/export" --volume v --listen 127.0.0.1 --port 0 --vl-port 0 --state "$work/state" \
	--trace-dir "$work/f" --trace-start > "$work/rxfsd.out" 2> "$work/rxfsd.err" &
pid=$!
servers="$servers $pid"
wait_for "$work/rxfsd.out" '^listening' "$pid" || { cat "$work/rxfsd.err"; echo "rxfsd did not start"; exit 1; }
fs=$(sed -n 's/.*fs [^ ]*:\([0-9]*\) vl.*/\1/p' "$work/rxfsd.out")
vl=$(sed -n 's/.* vl [^ ]*:\([0-9]*\) vol.*/\1/p' "$work/rxfsd.out")
"$afscp" -s "127.0.0.1:$vl:$fs" get v:file "$work/got" > "$work/afscp.out" 2>&1 ||
	fail "afscp: $(head -n 2 "$work/afscp.out")"
stop_server "$pid" TERM || fail "rxfsd ended with $?"
one "$work/f/rxwire-$fs-"*-1.pcapng
one "$work/f/rxwire-$vl-"*-1.pcapng
grep -q "trace of [0-9]* packets: $work/f/rxwire-$fs-" "$work/rxfsd.err" || fail "rxfsd does not report its trace"

refused 1 'other users can write to it' "$rxperf" server -p 0 --listen 127.0.0.1 --trace-dir "$work/open"
refused 1 'No such file' "$rxperf" server -p 0 --listen 127.0.0.1 --trace-dir "$work/nowhere"
refused 2 'other users can write to it' "$rxfsd" --export "$work/export" --listen 127.0.0.1 --port 0 --vl-port 0 \
	--state "$work/state2" --trace-dir "$work/open"
[ -z "$(ls -A "$work/open")" ] || fail "a file was written in a folder that others may write"

result
