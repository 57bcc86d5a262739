# SPDX-License-Identifier: BSD-2-Clause
# rxwstat: an endpoint by packets, a program by its socket, both output formats, the terminal, and errors.

. "$top_srcdir/src/tests/tools/lib.sh"
rxwstat=$top_builddir/src/rxwstat/rxwstat

mkdir "$work/export" && echo hello > "$work/export/file" && chmod -R a+rX "$work" || exit 99
"$rxfsd" --export "$work/export" --volume v --listen 127.0.0.1 --port 0 --vl-port 0 --state "$work/state" \
	--metrics-socket "$work/socket" > "$work/rxfsd.out" 2> "$work/rxfsd.err" &
server=$!
servers="$servers $server"
wait_for "$work/rxfsd.out" '^listening' "$server" || { cat "$work/rxfsd.err"; echo "rxfsd did not start"; exit 1; }
fs=$(sed -n 's/.*fs \([^ ]*\) vl.*/\1/p' "$work/rxfsd.out")
vl=$(sed -n 's/.* vl [^ ]*:\([0-9]*\) vol.*/\1/p' "$work/rxfsd.out")
"$afscp" -s "127.0.0.1:$vl:${fs##*:}" get v:file "$work/got" > "$work/afscp.out" 2>&1 ||
	fail "afscp: $(head -n 2 "$work/afscp.out")"

# By packets.
"$rxwstat" -a "$fs" > "$work/out" 2> "$work/err" || fail "ended with $?: $(cat "$work/err")"
grep -q "^$fs: rxfsd" "$work/out" || fail "no version: $(head -n 1 "$work/out")"
grep -q '  from 127.0.0.1:[0-9]*, id [0-9a-f]*/[0-9a-f]*, class 0 (null)' "$work/out" || fail "no connection in: $(cat "$work/out")"
grep -q '  peer 127.0.0.1:[0-9]*: rtt [0-9.]* ms' "$work/out" || fail "no peer"
"$rxwstat" -a --json "$fs" > "$work/out" 2> "$work/err" || fail "--json ended with $?: $(cat "$work/err")"
what=json
want_more "$work/out" calls_executed 0
want_more "$work/out" data_received 0
want_more "$work/out" packets_sent 0
grep -q '"answered": true' "$work/out" || fail "it did not answer"
grep -q '"metrics"' "$work/out" && fail "metrics without a socket"

# By its socket: three endpoints, and figures that only the socket has.
"$rxwstat" --json --socket "$work/socket" > "$work/out" 2> "$work/err" || fail "--socket ended with $?: $(cat "$work/err")"
# Calls in progress name their endpoint as well, further to the right: the server may still be calling afscp.
[ "$(grep -c '^ \{6\}"endpoint": ' "$work/out")" -eq 3 ] || fail "not three endpoints"
[ "$(grep -c '"answered": true' "$work/out")" -eq 3 ] || fail "not three that answered"
grep -q 'rxwire_windows_total{sent_by=\\"writer\\"}' "$work/out" || fail "no windows by sender"
"$rxwstat" --socket "$work/socket" > "$work/out" 2> "$work/err" || fail "--socket ended with $?: $(cat "$work/err")"
[ "$(grep -c '^  drops ' "$work/out")" -eq 3 ] || fail "no drops"

# A call in progress: it is in the list, with its flow. The file for Prometheus names no peer.
start_rxperf performer --metrics-socket "$work/perf.socket" --metrics-file "$work/perf.prom" --metrics-interval 0.1
performer=$pid
"$rxperf" client -s 127.0.0.1 -p "$port" -c recv -b 2000M -D 600 > "$work/client.out" 2>&1 &
client=$!
servers="$client $servers"
tries=0
until "$rxwstat" --json --socket "$work/perf.socket" > "$work/out" 2> "$work/err" &&
	[ "$(grep -c '"direction": ' "$work/out")" -eq 1 ] && grep -q '"direction": "sending"' "$work/out" &&
	grep -q '"peer_window": [1-9]' "$work/out" && grep -q '"rtt_s": [0-9.e-]*[1-9]' "$work/out" &&
	grep -q '"bytes_sent": [1-9][0-9]\{5\}' "$work/out"; do
	tries=$((tries + 1))
	[ "$tries" -lt 300 ] && kill -0 "$client" || { fail "the call is not listed: $(cat "$work/out" "$work/err")"; break; }
	sleep 0.1
done
what="the list of calls"
for member in cwnd peer_window rtt_s rtt_min_s packets_sent rate; do
	want_more "$work/out" $member 0
done
grep -q '"controller": "[a-z]*"' "$work/out" || fail "no controller"
grep -q '"calls_left_out": 0' "$work/out" || fail "no count of further calls"
"$rxwstat" --socket "$work/perf.socket" > "$work/out" 2> "$work/err" || fail "rxperf: ended with $?: $(cat "$work/err")"
grep -q '^  CALL .* CWND/WINDOW' "$work/out" || fail "no table of calls: $(cat "$work/out")"
grep -q '^  127.0.0.1:[0-9]* *out  *[0-9.]* *[0-9]*/[0-9]* ' "$work/out" || fail "no call in the table: $(cat "$work/out")"
wait_for "$work/perf.prom" '^rxwire_senders{.*} [1-9]' "$performer" || fail "no sender in the metrics"
grep -q "peer=" "$work/perf.prom" && fail "the metrics name peers"
kill "$client" && wait "$client" 2> /dev/null
servers=${servers#* }

# The peer that has moved the most bytes is the first one.
sent=$("$rxwstat" "$fs" 2> "$work/err" | sed -n 's/^  peer .* again), \([0-9]*\) bytes, received \([0-9]*\) bytes$/\1 \2/p' |
	awk '{ if (NR > 1 && $1 + $2 > last) bad = 1; last = $1 + $2 } END { print NR, bad + 0 }')
case $sent in
0\ * | *\ 1) fail "the peers of $fs are in no order: $sent" ;;
esac

# On a terminal, if script(1) provides one.
"$rxwstat" --live "$fs" > "$work/out" 2> "$work/err" < /dev/null
[ $? -ne 0 ] || fail "--live without a terminal succeeded"
if script -qec true /dev/null > /dev/null 2>&1 && ! grep -q 'without curses' "$work/err"; then
	TERM=vt100 script -qec "stty cols 120 rows 40; '$rxwstat' --live -n 2 -i 0.1 --socket '$work/socket'" /dev/null \
		> "$work/screen" 2>&1 < /dev/null || fail "--live ended with $?"
	grep -q "$fs" "$work/screen" || fail "the terminal does not show $fs"
	grep -q 'calls/s' "$work/screen" || fail "the terminal shows no rates"
else
	echo "left out: the live view (no script(1), or built without curses)"
fi

refused 2 'no endpoint' "$rxwstat"
refused 2 'mutually exclusive' "$rxwstat" --json --live "$fs"
refused 1 '/nowhere: ' "$rxwstat" --socket /nowhere
refused 2 'HOST:PORT' "$rxwstat" 127.0.0.1:70000
stop_server "$server" TERM || fail "rxfsd ended with $?"
"$rxwstat" -t 0.01 "$fs" > "$work/out" 2> "$work/err"
[ $? -eq 1 ] || fail "a stopped server"
grep -q 'does not answer' "$work/err" || fail "no message that it does not answer"

result
