#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds examples/ against an installed copy as a user would, by pkg-config, shared and static, and
# lets the client talk to the server.
# usage: check-examples.sh PREFIX        (PREFIX as given to configure; DESTDIR is respected)

top=${top_srcdir:-$(dirname "$0")/../..}
CC=${CC:-cc}
prefix=${1:?usage: check-examples.sh PREFIX}
dir=$(mktemp -d) || exit 99
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$dir"' EXIT

pc=$(find "$DESTDIR$prefix" -name rxwire.pc | head -n 1)
[ -n "$pc" ] || { echo "FAIL: no rxwire.pc below $DESTDIR$prefix"; exit 1; }
export PKG_CONFIG_PATH="${pc%/*}"
[ -z "$DESTDIR" ] || export PKG_CONFIG_SYSROOT_DIR="$DESTDIR"
libdir=$(pkg-config --variable=libdir rxwire) || exit 1
libdir=$DESTDIR$libdir
status=0
built=0

# build KIND OUTPUT FLAGS... : one example; the installed headers must do, ours are not in the path.
build() {
	kind=$1
	shift
	if $CC -std=c11 -Wall -Wextra -Werror "$@" > "$dir/log" 2>&1; then
		built=$((built + 1))
		echo "PASS: $src, $kind"
	else
		echo "FAIL: $src, $kind: $CC $*"
		cat "$dir/log"
		status=1
	fi
}

san=
case $SANITIZERS in no | '') ;; *) san=-fsanitize=$SANITIZERS ;; esac
for src in "$top"/examples/*.c; do
	[ -f "$src" ] || continue
	name=${src##*/}
	name=${name%.c}
	# shellcheck disable=SC2046 # flags are words
	if [ -e "$libdir/librxwire.so" ]; then
		build shared -o "$dir/$name" "$src" $san $(pkg-config --cflags --libs rxwire) \
			-Wl,-rpath,"$libdir"
	fi
	# shellcheck disable=SC2046
	if [ -f "$libdir/librxwire.a" ]; then
		build static -o "$dir/$name-static" "$src" $san $(pkg-config --cflags rxwire) \
			"$libdir/librxwire.a" $(pkg-config --static --libs-only-other rxwire) -lpthread
	fi
done
# talk SUFFIX KIND: server and client of one kind; a port that is taken leads to another.
talk() {
	[ -x "$dir/shout-server$1" ] && [ -x "$dir/shout-client$1" ] || return 0
	for attempt in 1 2 3 4 5; do
		port=$((20000 + ($$ + attempt * 1009) % 12000))
		"$dir/shout-server$1" $port > "$dir/server.log" 2>&1 &
		server=$!
		for _ in $(seq 40); do
			grep -q serving "$dir/server.log" && break
			kill -0 $server 2> /dev/null || break
			sleep 0.25
		done
		grep -q serving "$dir/server.log" && break
		kill $server 2> /dev/null
		wait $server
		server=
	done
	if [ -n "$server" ] &&
		answer=$("$dir/shout-client$1" 127.0.0.1 $port "hello there" 2>&1) &&
		[ "$answer" = "11 bytes: HELLO THERE" ] && kill $server && wait $server; then
		echo "PASS: the examples talk to each other, $2"
	else
		echo "FAIL: the examples talk to each other, $2: $answer"
		cat "$dir/server.log"
		status=1
	fi
	[ -z "$server" ] || kill $server 2> /dev/null
	server=
}
talk '' shared
talk -static static

if [ "$built$status" = 00 ]; then
	echo "SKIP: examples: none was there to build"
	exit 77
fi
exit $status
