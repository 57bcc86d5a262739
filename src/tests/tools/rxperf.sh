# SPDX-License-Identifier: BSD-2-Clause
# rxperf client and server on loopback: every command, both output formats, data verified, figures of both ends.

. "$top_srcdir/src/tests/tools/lib.sh"

start_rxperf server --verify
server=$pid

# client WHAT OPTIONS...: a run that must succeed; report in $work/out.
client() {
	what=$1
	shift
	"$rxperf" client -s 127.0.0.1 -p "$port" --verify --json "$@" > "$work/out" 2> "$work/err" || {
		fail "$what: ended with $?: $(head -n 3 "$work/err")"
		return 1
	}
	[ ! -s "$work/err" ] || fail "$what: printed $(head -n 1 "$work/err")"
	want "$work/out" mismatches 0
	grep -q '"server": {' "$work/out" || fail "$what: no figures of the server"
}

client "send, default size" -c send && want "$work/out" bytes 1048576
client "recv" -c recv -b 4M && {
	want "$work/out" bytes 4194304
	want "$work/out" calls 1
	want_more "$work/out" MBps 0
	want_more "$work/out" p50_us 0
	want_more "$work/out" packets_received 100
	want_more "$work/out" acks_sent 0
	want_more "$work/out" syscalls_recv 0
}
for bytes in 0 1 4 1415 1416 1417 65536 1000000; do
	client "send $bytes" -c send -b $bytes && want "$work/out" bytes $bytes
	client "recv $bytes" -c recv -b $bytes && want "$work/out" bytes $bytes
done
client "a port with the host" -p 1 -s "127.0.0.1:$port" -c recv -b 1 && want "$work/out" bytes 1
refused 1 'HOST\[:PORT\]' "$rxperf" client -s '[::1' -c recv
client "rpc" -c rpc -T 50 && {
	want "$work/out" calls 50
	want "$work/out" bytes 10000
}
client "rpc, nothing each way" -c rpc -S 0 -R 0 && want "$work/out" bytes 0
client "rpc, large" -c rpc -S 300000 -R 200000 && want "$work/out" bytes 500000
client "file" -c file -f 64K,4,0,100K,4 && want "$work/out" bytes 167944
client "file, send only" -c file -f 4K && want "$work/out" bytes 4096
client "small reads and writes" -c rpc -S 20000 -R 20000 -r 100 -w 77 && want "$work/out" bytes 40000
client "small window" -c recv -b 300000 -W 3 && want "$work/out" bytes 300000
client "async, one call" -c recv -b 1M --form async && want "$work/out" bytes 1048576
client "async, many, shared connections" -c recv -b 256K -t 16 -C 4 -T 2 && {
	want "$work/out" bytes 8388608
	want "$work/out" calls 32
}
client "async send" -c send -b 256K -t 8 -C 2 -T 2 && want "$work/out" bytes 4194304
client "async rpc" -c rpc -t 64 -C 4 -T 20 && want "$work/out" calls 1280
client "blocking, many" -c rpc -t 8 -C 3 -T 20 --form blocking && want "$work/out" calls 160
client "for a time" -c rpc -t 4 -D 0.3 --interval 0.1 && {
	want_more "$work/out" calls 4
	grep -q '"from_s"' "$work/out" || fail "no intervals"
}
client "bulk for a time, cut at the end" -c recv -b 2000M -t 2 -D 0.2 && want_more "$work/out" bytes 0
# More calls of one client than take turns at once; and most of them still wait when the client ends them.
for way in send recv; do
	client "$way, 300 bulk calls" -c "$way" -b 100K -t 300 && {
		want "$work/out" calls 300
		want "$work/out" bytes 30720000
	}
	client "$way, 300 bulk calls for a time" -c "$way" -b 2000M -t 300 -D 0.3 && want_more "$work/out" bytes 0
done
client "plainest switches" -c recv -b 1M --io msg --gso off --gro off --listeners 1 -W 32 && {
	want "$work/out" bytes 1048576
	grep -q '"io": "msg"' "$work/out" || fail "io msg is not in effect"
}

# More connections than calls, on several ports; each is used.
client "many connections" -c rpc -t 6 -C 2 -T 40 --endpoints 5 --connections 21 --prime && {
	want "$work/out" calls 240
	want "$work/out" endpoints 5
	want "$work/out" connections 21
	want "$work/out" connections_client 21
	want "$work/out" fairness 1.0
	want "$work/out" stream_bytes_min 8000
}
# An open loop: the clock alone decides when calls are due. Only the number of unfinished calls may depend on the
# machine's speed.
for arrivals in even poisson; do
	client "open loop, $arrivals" -c rpc -D 0.5 --rate 200 --arrivals $arrivals --endpoints 2 --connections 4 &&
		awk -v due="$(number "$work/out" calls_due)" -v calls="$(number "$work/out" calls)" \
			-v left="$(number "$work/out" calls_unfinished)" \
			'BEGIN { exit !(due > 0 && due <= 200 && due == calls + left) }' ||
		fail "$what: $(grep calls_ "$work/out")"
done
want "$work/out" in_flight 16
client "open loop beyond what is possible" -c recv -b 4M -D 0.2 --rate 1000000 -t 2 && {
	want_more "$work/out" calls_unfinished 1000
	want_more "$work/out" backlog_max 1000
}
client "bulk beside small calls" -c rpc -t 2 -T 50 --mix recv -b 500K --mix-streams 3 --per-stream && {
	want "$work/out" calls 100
	grep -q '"mix": {' "$work/out" || fail "no figures of the bulk streams"
	[ "$(grep -c '"stream_bytes": \[' "$work/out")" -eq 2 ] || fail "no bytes of each stream"
}
# Human-readable output, with intervals.
what="text report"
"$rxperf" client -c rpc -s 127.0.0.1 -p "$port" -D 0.3 --interval 0.1 > "$work/out" 2>&1 ||
	fail "$what: ended with $?"
grep -q 'MB/s' "$work/out" && grep -q 'calls/s$' "$work/out" && grep -q '^server: ' "$work/out" ||
	fail "$what: $(cat "$work/out")"

"$rxperf" client -c rpc -s 127.0.0.1 -p "$port" -D 0.2 --rate 100 --mix send > "$work/out" 2>&1 ||
	fail "$what: ended with $?"
grep -q 'open loop .* calls scheduled' "$work/out" &&
	grep -q 'mix       send, 1 streams' "$work/out" || fail "$what: $(cat "$work/out")"

# A client stopped by a signal reports its results.
what="interrupted client"
"$rxperf" client -c rpc -s 127.0.0.1 -p "$port" -D 600 --interval 0.1 > "$work/stopped" 2>&1 &
client=$!
servers="$servers $client"
wait_for "$work/stopped" 'calls/s' $client || fail "$what: no interval line"
stop_server $client INT || fail "$what: ended with $?"
grep -q '^rpc 127.0.0.1' "$work/stopped" || fail "$what: no report: $(cat "$work/stopped")"

# Figures on demand, and at the end.
what="server's figures"
kill -USR1 "$server"
wait_for "$work/server.out" '^served: ' "$server" || fail "$what: none on SIGUSR1"
stop_server "$server" TERM || fail "$what: the server ended with $?"
[ "$(grep -c '^served: ' "$work/server.out")" -eq 2 ] || fail "$what: $(cat "$work/server.out")"
[ ! -s "$work/server.err" ] || fail "the server printed: $(head -n 3 "$work/server.err")"

# The bytes of a call that has not ended, in each direction: no call has ended, and the bytes grow.
for way in send:bytes_in recv:bytes_out; do
	what="figures of a ${way%:*} in progress"
	start_rxperf "progress-${way%:*}" --json
	progress=$pid
	"$rxperf" client -s 127.0.0.1 -p "$port" -c "${way%:*}" -b 2000M -D 600 > "$work/client.out" 2>&1 &
	client=$!
	servers="$client $servers"
	tries=0
	until grep -q "\"${way#*:}\": [1-9]" "$work/progress-${way%:*}.out"; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] && kill -0 "$client" || { fail "$what: none"; break; }
		kill -USR1 "$progress"
		sleep 0.1
	done
	grep -q '"calls": [1-9]' "$work/progress-${way%:*}.out" && fail "$what: the call has ended"
	kill "$client" && wait "$client" 2> /dev/null
	servers=${servers#* }
	stop_server "$progress" TERM || fail "$what: the server ended with $?"
done

# A server with short handlers, and its figures as JSON.
what="short handlers"
start_rxperf short --short --json
client "$what" -c rpc -T 100 && want "$work/out" calls 100
# One that would have to wait for the rest of its request ends the call; calls with more data wait without a thread.
"$rxperf" client -s 127.0.0.1 -p "$port" -c send -b 40000 -W 2 > "$work/out" 2>&1 && fail "$what: one has waited"
client "$what, bulk" -c recv -b 1M && want "$work/out" bytes 1048576
client "$what, bulk" -c send -b 1M && want "$work/out" bytes 1048576
stop_server "$pid" INT || fail "$what: the server ended with $?"
sed 1d "$work/short.out" > "$work/figures"
what="JSON figures of the server"
want "$work/figures" calls 102
want "$work/figures" calls_failed 1
want_more "$work/figures" bytes 2117151

# IPv6, if available.
what=IPv6
"$rxperf" server -p 0 --listen ::1 > "$work/six.out" 2> "$work/six.err" &
pid=$!
servers="$servers $pid"
if wait_for "$work/six.out" 'ready on' $pid; then
	port=$(sed -n 's/.*ready on \[::1\]:\([0-9]*\)$/\1/p' "$work/six.out")
	"$rxperf" client -c recv -b 3M -s ::1 -p "$port" --verify --json > "$work/out" 2> "$work/err" ||
		fail "$what: ended with $?: $(cat "$work/err")"
	want "$work/out" bytes 3145728
	stop_server $pid TERM || fail "$what: the server ended with $?"
else
	echo "note: IPv6 is not available and was not tested: $(cat "$work/six.err")"
fi

result
