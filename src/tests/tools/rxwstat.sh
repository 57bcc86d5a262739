# SPDX-License-Identifier: BSD-2-Clause
# rxwstat: an endpoint by packets, a program by its socket, both output formats, the terminal, and errors.

. "$top_srcdir/src/tests/tools/lib.sh"
rxwstat=$top_builddir/src/tools/rxwstat

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
[ "$(grep -c '"endpoint": ' "$work/out")" -eq 3 ] || fail "not three endpoints"
[ "$(grep -c '"answered": true' "$work/out")" -eq 3 ] || fail "not three that answered"
grep -q 'rxwire_windows_total{sent_by=\\"writer\\"}' "$work/out" || fail "no windows by sender"
"$rxwstat" --socket "$work/socket" > "$work/out" 2> "$work/err" || fail "--socket ended with $?: $(cat "$work/err")"
[ "$(grep -c '^  drops ' "$work/out")" -eq 3 ] || fail "no drops"

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
refused 1 'HOST:PORT' "$rxwstat" 127.0.0.1:70000
stop_server "$server" TERM || fail "rxfsd ended with $?"
"$rxwstat" -t 0.01 "$fs" > "$work/out" 2> "$work/err"
[ $? -eq 1 ] || fail "a stopped server"
grep -q 'does not answer' "$work/err" || fail "no message that it does not answer"

result
