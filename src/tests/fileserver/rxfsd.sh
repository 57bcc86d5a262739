#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxfsd as a program: usage, messages, exit states, signals, the service manager, and afscp against it.

set -u
rxfsd=$top_builddir/src/fileserver/rxfsd
afscp=$top_builddir/src/tools/afscp
dir=$(mktemp -d "${TMPDIR:-/tmp}/rxfsd-test-XXXXXX") || exit 99
pid=
cleanup() {
	if [ -n "$pid" ]; then
		kill -9 "$pid" 2>/dev/null
	fi
	chmod -R u+rwx "$dir"
	rm -rf "$dir"
}
trap cleanup EXIT

fail() {
	echo "FAIL: $*"
	[ -f "$dir/err" ] && cat "$dir/err"
	exit 1
}

# refused STATUS TEXT OPTION...: ends with this status and one line on stderr that has the text
refused() {
	want=$1 text=$2
	shift 2
	"$rxfsd" "$@" >"$dir/out" 2>"$dir/err"
	got=$?
	[ $got -eq "$want" ] || fail "exit status $got, not $want: rxfsd $*"
	[ "$(wc -l <"$dir/err")" -eq 1 ] || fail "not one line: rxfsd $*"
	grep -q -- "$text" "$dir/err" || fail "no \"$text\": rxfsd $*"
}

# start OPTION...: in the background, until it says where it listens
start() {
	rm -f "$dir/out"
	mkfifo "$dir/fifo"
	"$rxfsd" --port 0 --vl-port 0 --state "$dir/state" "$@" >"$dir/fifo" 2>"$dir/err" &
	pid=$!
	read -r line <"$dir/fifo"
	rm -f "$dir/fifo"
	case $line in
	"listening fs "*" vl "*" vol "*) ;;
	*) fail "said \"$line\" rxfsd $*" ;;
	esac
	fs=${line#listening fs } fs=${fs% vl *}
	vl=${line##* vl } vl=${vl%% vol *}
	server=127.0.0.1:${vl##*:}:${fs##*:}
}

stop() {
	kill -TERM "$pid"
	wait "$pid" || fail "exit status $? after SIGTERM"
	pid=
}

mkdir "$dir/export" "$dir/state"
chmod 755 "$dir/export"
echo "hello, world" >"$dir/export/hello.txt"
head -c 3000000 /dev/urandom >"$dir/export/data"
chmod 644 "$dir/export"/*

refused 2 export
refused 2 frobnicate --frobnicate
refused 2 workers --export "$dir/export" --workers 5
refused 2 workers --export "$dir/export" --workers 9:3
refused 2 port --export "$dir/export" --port 70000
refused 2 stray --export "$dir/export" stray
refused 1 "$dir/none" --export "$dir/none" --state "$dir/state"
refused 1 "inside the export" --export "$dir/export" --state "$dir/export/state"
refused 1 /proc/none --export "$dir/export" --state /proc/none
refused 1 1.2.3 --export "$dir/export" --state "$dir/state" --advertise 1.2.3
refused 1 192.0.2.1 --export "$dir/export" --state "$dir/state" --listen 192.0.2.1 --require none
refused 1 "$dir/none" --export "$dir/export" --state "$dir/state" --timeline "$dir/none/here"
refused 1 ends.backup --export "$dir/export" --state "$dir/state" --volume ends.backup

cat >"$dir/conf" <<END
[rxfsd]
export = $dir/export
volume = configured
window = 64
END
"$rxfsd" --config "$dir/conf" --state "$dir/untouched" --check-config || fail "a good file was refused"
refused 2 "$dir/none" --config "$dir/conf" --export "$dir/none" --check-config
refused 2 "$dir/none" --config "$dir/conf" --keytab "$dir/none" --check-config
refused 2 nobody --config "$dir/conf" --allow nobody --check-config
refused 2 export --check-config
[ ! -e "$dir/untouched" ] || fail "--check-config has made the state"
echo "volumen = x" >>"$dir/conf"
refused 2 volumen --config "$dir/conf" --check-config

start --export "$dir/export" --volume data
refused 1 "in use by another rxfsd" --export "$dir/export" --state "$dir/state" --port 0 --vl-port 0
refused 1 "${fs##*:}" --export "$dir/export" --state "$dir/state2" --port "${fs##*:}" --vl-port 0
"$afscp" -s "$server" get -q data:/data "$dir/copy" || fail "afscp get"
cmp "$dir/export/data" "$dir/copy" || fail "the copy differs"
"$afscp" -s "$server" ls root.cell:/ | grep -q hello.txt || fail "afscp ls"
kill -USR1 "$pid"
tries=0
until grep -q "^rxfsd: fetches" "$dir/err"; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || fail "no statistics on SIGUSR1"
	sleep 0.1
done
stop

start --export "$dir/export" --volume data --timeline "$dir/times"
"$afscp" -s "$server" get -q data:/data "$dir/copy" || fail "afscp get, with a time line"
stop
sent=$(sed -n 's/.*"what":"send".*"bytes":\([0-9]*\).*/\1/p' "$dir/times" | awk '{ n += $1 } END { print n + 0 }')
[ "$sent" -eq 3000000 ] || fail "the time line tells of $sent bytes sent"

# killed in the middle, it comes back with the same identity
start --export "$dir/export" --volume data
before=$("$afscp" -s "$server" stat data:/hello.txt | grep FID)
kill -KILL "$pid"
wait "$pid" 2>/dev/null
pid=
start --export "$dir/export" --volume data
after=$("$afscp" -s "$server" stat data:/hello.txt | grep FID)
[ -n "$before" ] && [ "$before" = "$after" ] || fail "FID $before became $after"
stop
exit 0
