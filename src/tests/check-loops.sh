#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The programs of examples/loops with 10,000 calls at the same time: a long-poll server needs at most 8 threads and
# 40 MiB; a server and a load generator on libuv and on libevent, with one descriptor each. Under sanitizers there are
# 500 calls, and memory is not measured.

top=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
from=$top/examples/loops
CC=${CC:-cc}
calls=10000 threads_max=8 kib_max=40960
san=
case $SANITIZERS in no | '') ;; *) san=-fsanitize=$SANITIZERS calls=500 kib_max= ;; esac
dir=$(mktemp -d) || exit 99
server='' client=''
trap '[ -z "$server" ] || kill "$server"; [ -z "$client" ] || kill "$client"; rm -rf "$dir"' EXIT
status=0

# result STATUS TEXT
result() {
	if [ "$1" -eq 0 ]; then
		echo "PASS: $2"
	else
		echo "FAIL: $2"
		cat "$dir"/*.log
		status=1
	fi
}

# make_program NAME CFLAGS LIBS SOURCE...
make_program() {
	name=$1 cflags=$2 libs=$3 objects=
	shift 3
	for source; do
		# shellcheck disable=SC2086 # flags are words
		$CC -std=gnu11 -g -O2 -Wall -Wextra -Werror $san -I"$top/src/rx/include" $cflags -c "$from/$source" \
			-o "$dir/$name-$source.o" > "$dir/build.log" 2>&1 || return 1
		objects="$objects $dir/$name-$source.o"
	done
	# shellcheck disable=SC2086
	"$build/libtool" --silent --tag=CC --mode=link $CC $san -o "$dir/$name" $objects "$build/src/rx/librxwire.la" \
		$libs > "$dir/build.log" 2>&1
}

# start PROGRAM ARGUMENTS...: serves a port that is free; $port is set.
start() {
	program=$1
	shift
	for port in $(awk 'BEGIN { srand(); for (i = 0; i < 20; i++) print 20000 + int(rand() * 12000) }'); do
		"$dir/$program" serve "$port" "$@" > "$dir/server.log" 2>&1 &
		server=$!
		# It is bound once the kernel lists its port.
		i=0
		while kill -0 $server 2> /dev/null && [ $i -lt 300 ]; do
			grep -qi ":$(printf '%04x' "$port") " /proc/net/udp && return 0
			sleep 0.1
			i=$((i + 1))
		done
		wait $server
		server=
	done
	return 1
}

# end: the server stops as it should.
end() {
	kill "$server" && wait "$server"
	ended=$?
	server=
	return $ended
}

longpoll() {
	make_program longpoll "" "" longpoll.c && start longpoll || return 1
	"$dir/longpoll" wait "$port" $calls > "$dir/client.log" 2>&1 &
	client=$!
	i=0
	while [ "$("$dir/longpoll" count "$port")" != $calls ]; do
		i=$((i + 1))
		[ $i -lt 600 ] && kill -0 $client || return 1
		sleep 0.1
	done
	threads=$(sed -n 's/^Threads:[^0-9]*//p' "/proc/$server/status")
	kib=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server/status")
	echo "longpoll: $calls calls wait: $threads threads, $kib KiB"
	[ "$threads" -le $threads_max ] || return 1
	[ -z "$kib_max" ] || [ "$kib" -le "$kib_max" ] || return 1
	"$dir/longpoll" publish "$port" hello > "$dir/publish.log" && wait $client || return 1
	client=
	end
}

# echo_on LIBRARY SOURCE: no call is answered before all are there at the same time.
echo_on() {
	program=echo-${2%.c}
	make_program "$program" "$(pkg-config --cflags "$1")" "$(pkg-config --libs "$1")" echo.c "$2" && start "$program" 10 $calls || return 1
	"$dir/$program" load "$port" $calls $((2 * calls)) > "$dir/client.log" 2>&1 || return 1
	end || return 1
	grep -qx "$calls calls at the same time" "$dir/server.log"
}

longpoll
result $? "long polls"
for pair in libuv:uv.c libevent:event.c; do
	if pkg-config --exists ${pair%:*} 2> /dev/null; then
		echo_on ${pair%:*} ${pair#*:}
		result $? "${pair%:*}: a server and a load generator"
	else
		echo "SKIP: ${pair%:*} was not found"
	fi
done
exit $status
