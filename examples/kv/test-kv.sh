#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Two servers and the clients: every procedure, and the refusals.

dir=$(mktemp -d) || exit 99
servers=
status=0
trap 'for s in $servers; do kill $s 2> /dev/null; done; rm -rf "$dir"' EXIT

# start NAME OPTIONS...: starts a server at a free port and sets $port.
start() {
	log=$dir/$1
	shift
	./kv-server -p 0 "$@" > "$log" 2>&1 &
	servers="$servers $!"
	for _ in $(seq 100); do
		port=$(sed -n 's/.* port //p' "$log")
		[ -z "$port" ] || return 0
		kill -0 $! 2> /dev/null || break
		sleep 0.1
	done
	echo "FAIL: kv-server did not start: $(cat "$log")"
	exit 1
}

kv() {
	./kv-client -s "127.0.0.1:$a" -s "127.0.0.1:$b" "$@"
}

kv_a() {
	./kv-client -s "127.0.0.1:$a" "$@"
}

# want STATUS TEXT COMMAND...: the exit status, and a pattern that the output must match; '' matches anything.
want() {
	ends=$1 text=$2
	shift 2
	"$@" > "$dir/out" 2>&1
	rc=$?
	if [ $rc -eq "$ends" ] && { [ -z "$text" ] || grep -q -e "$text" "$dir/out"; }; then
		echo "ok: $*" | cut -c 1-100
	else
		echo "FAIL: $*: status $rc instead of $ends, or no '$text' in:"
		cat "$dir/out"
		status=1
	fi
}

start a -m 64
a=$port
start b
b=$port
head -c 5000000 /dev/urandom > "$dir/large"
head -c 17000000 /dev/urandom > "$dir/too-large"
: > "$dir/empty"
printf one > "$dir/one"

want 0 'five: 5000000 bytes, version 1' kv put five "$dir/large"
want 0 'five: 5000000 bytes, version 2' kv_a put five "$dir/large"
want 0 ":$a: five: 5000000 bytes, version 2" kv stat five
want 0 ":$b: five: 5000000 bytes, version 1" kv stat five
want 0 '' kv get five "$dir/copy"
want 0 '' cmp "$dir/large" "$dir/copy"
want 0 '' kv put nothing "$dir/empty"
want 0 '' kv_a get nothing "$dir/copy"
want 0 '' cmp "$dir/empty" "$dir/copy"
want 0 '^one$' sh -c './kv-client -s $0 put 1 $1 > $2 && ./kv-client -s $0 get 1 && echo' \
	"127.0.0.1:$a" "$dir/one" "$dir/put"

want 1 'there is such a value already (4002)' kv create five "$dir/one"
want 1 'there is no such value (4001)' kv replace six "$dir/one"
want 1 'there is no such value (4001)' kv get six "$dir/none"
want 1 '' test -e "$dir/none"
want 1 'longer than this server takes (4003)' kv_a put big "$dir/too-large"
want 0 'big: 17000000 bytes' ./kv-client -s "127.0.0.1:$b" put big "$dir/too-large"
want 1 'a key has' kv put '' "$dir/one"
want 1 'a key has' kv put "$(printf 'a\nb')" "$dir/one"
want 1 '(-450)' kv stat "$(printf '%300d' 0)"

# Fill the memory of 64 MiB with values of 16 MB.
head -c 16000000 /dev/urandom > "$dir/sixteen"
for i in 1 2 3; do
	want 0 "16000000 bytes, version 1" kv_a put "16-$i" "$dir/sixteen"
done
want 1 'memory is used up (4004)' kv_a put 16-4 "$dir/sixteen"

# More than one page, in order.
i=100
while [ $i -lt 350 ]; do
	kv_a put "page-$i" "$dir/one" > /dev/null || status=1
	i=$((i + 1))
done
kv_a ls > "$dir/list"
want 0 '' sh -c 'test $(grep -c page- '"$dir/list"') -eq 250 && sort -c -k 2 '"$dir/list"
want 0 '       3 page-349' ./kv-many -s "127.0.0.1:$a" $(seq -f 'page-%g' 100 349)
want 1 'no-page: there is no such value' ./kv-many -s "127.0.0.1:$a" page-100 no-page page-101

want 0 '' kv rm five
want 1 'there is no such value (4001)' kv stat five

# Only another host may write.
start c -w 127.0.0.9
want 1 'this host may read, not write (4005)' ./kv-client -s "127.0.0.1:$port" put x "$dir/one"
want 0 '' ./kv-client -s "127.0.0.1:$port" ls

# Values from the beginning, and what is known of a connection.
start d -v "$dir/one" "$dir/large"
want 0 '^one$' sh -c './kv-client -s $0 get one && echo' "127.0.0.1:$port"
want 0 'large: 5000000 bytes, version 1' ./kv-client -s "127.0.0.1:$port" stat large

# A server that is told to stop prints its statistics.
for s in $servers; do
	kill $s
	wait $s || { echo "FAIL: a server ended with $?"; status=1; }
done
servers=
want 0 'KV_Put  *263 calls, 6 refused' cat "$dir/a"
want 0 'KV_Remove  *1 calls, 0 refused' cat "$dir/a"
want 0 'retransmitted  *[0-9]' cat "$dir/a"
want 0 'kv-server: 127.0.0.1 made 1 calls' cat "$dir/d"
./kv-server -p 0 "$dir/none" > "$dir/refused" 2>&1 && { echo "FAIL: a server without its value"; status=1; }
want 0 'none: it cannot be read' cat "$dir/refused"
exit $status
