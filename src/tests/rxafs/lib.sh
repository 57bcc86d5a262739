# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the scripts of this folder, with their arguments: a cell on loopback, and mounts of it in a mount namespace that
# goes with the script. Nothing is left mounted, whatever happens.

set -u
: "${top_builddir:=.}" "${top_srcdir:=.}"
rxafs=$top_builddir/src/rxafs/rxafs
rxfsd=$top_builddir/src/fileserver/rxfsd
rxvol=$top_builddir/src/rxvol/rxvol
afscp=$top_builddir/src/afscp/afscp

skip() {
	echo "SKIP: $*"
	exit 77
}

for program in "$rxafs" "$rxfsd" "$rxvol" "$afscp"; do
	[ -x "$program" ] || skip "$program is not built"
done
[ -c /dev/fuse ] || skip "there is no /dev/fuse"
{ : <> /dev/fuse; } 2> /dev/null || skip "this user may not open /dev/fuse"
if [ -z "${RXAFS_TEST_INSIDE:-}" ]; then
	unshare --mount --propagation private true 2> /dev/null || skip "this user may not make mount namespaces"
	RXAFS_TEST_INSIDE=1 exec unshare --mount --propagation private sh "$0" "$@"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/rxwire-rxafs-XXXXXX") || exit 99
servers="" mounts="" daemons=""
# Not the tickets of who runs the tests.
KRB5CCNAME=FILE:$work/no-tickets
export KRB5CCNAME
failures=0

# Nothing of a dead daemon answers, so it is killed before its mount is taken away.
finish() {
	for pid in $daemons; do
		kill -9 "$pid" 2> /dev/null
	done
	for at in $mounts; do
		umount -l "$at" 2> /dev/null
	done
	for pid in $servers; do
		kill -CONT "$pid" 2> /dev/null
		kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null
	done
	rm -rf "$work" 2> /dev/null
}
trap finish EXIT
trap 'exit 99' INT TERM HUP

fail() {
	echo "FAIL: $*"
	failures=$((failures + 1))
}

# The end of a script.
result() {
	if [ "$failures" -ne 0 ]; then
		for log in "$work"/*.err; do
			echo "-- $log"
			tail -n 20 "$log"
		done
		echo "$failures checks failed"
		exit 1
	fi
	echo "all checks passed"
	exit 0
}

# wait_until SECONDS COMMAND...: until it succeeds.
wait_until() {
	tries=$((10 * $1))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

# listens_or_ended: the server that was started last. Nobody may have waited for it.
listens_or_ended() {
	grep -q listening "$work/rxfsd.out" || ! kill -0 "$server" 2> /dev/null || grep -q '^State:.Z' "/proc/$server/status"
}

# start_server: rxfsd with the store and $server_options. A second start has the same ports, so they are not among those that the
# kernel gives away while the server is down; without ports (fs_port is 0) some are tried. Sets server (its process) and where.
fs_port=0 vl_port=0 server_options="" next_port=$(($$ * 8))
start_server() {
	asked_port=$fs_port
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		if [ "$asked_port" -eq 0 ]; then
			next_port=$((next_port + 2))
			fs_port=$((10240 + next_port % 20000))
			vl_port=$((fs_port + 1))
		fi
		: > "$work/rxfsd.out"
		# shellcheck disable=SC2086
		"$rxfsd" --store "$work/store" --port "$fs_port" --vl-port "$vl_port" $server_options > "$work/rxfsd.out" 2>> "$work/rxfsd.err" &
		server=$!
		wait_until 60 listens_or_ended
		if grep -q listening "$work/rxfsd.out"; then
			servers="$servers $server"
			where=127.0.0.1:$vl_port:$fs_port
			return
		fi
		kill -9 "$server" 2> /dev/null
		wait "$server"
	done
	cat "$work/rxfsd.err"
	echo "rxfsd did not start"
	exit 1
}

# make_cell: volumes root.cell and work, which anybody may change; work is mounted as "work", and read-write as "rw".
make_cell() {
	mkdir -m 700 "$work/store"
	{
		"$rxvol" -S "$work/store" init &&
			"$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser rlidwka' &&
			"$rxvol" -S "$work/store" create work --acl 'system:anyuser rlidwka' &&
			"$rxvol" -S "$work/store" mount root.cell:work work &&
			"$rxvol" -S "$work/store" mount root.cell:rw work --rw
	} > "$work/rxvol.out" 2>&1 || {
		cat "$work/rxvol.out"
		exit 1
	}
	start_server
}

# mount_afs NAME [OPTION...]: at $work/NAME; sets daemon (its process).
mount_afs() {
	name=$1
	shift
	mkdir -p "$work/$name"
	mounts="$mounts $work/$name"
	"$rxafs" --foreground --cell test.example --servers "test.example=$where" "$@" "$work/$name" 2>> "$work/$name.err" &
	daemon=$!
	daemons="$daemons $daemon"
	wait_until 60 mountpoint -q "$work/$name" || {
		cat "$work/$name.err"
		echo "rxafs did not mount"
		exit 1
	}
}

# unmount_afs NAME DAEMON: the daemon must end by itself with 0.
unmount_afs() {
	timeout 60 umount "$work/$1" || {
		fail "$1 cannot be unmounted"
		umount -l "$work/$1"
	}
	wait "$2"
	status=$?
	[ $status -eq 0 ] || fail "rxafs ended with $status"
}

python=${PYTHON:-python3}
command -v "$python" > /dev/null || skip "there is no python3"
