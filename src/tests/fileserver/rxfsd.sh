#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxfsd as a program: usage, messages, exit status, signals, the service manager, and afscp as its client.

export LC_ALL=C
set -u
rxfsd=$top_builddir/src/fileserver/rxfsd
afscp=$top_builddir/src/afscp/afscp
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

# refused STATUS TEXT OPTION...: expects this status and one line on stderr with the text
refused() {
	want=$1 text=$2
	shift 2
	"$rxfsd" "$@" >"$dir/out" 2>"$dir/err"
	got=$?
	[ $got -eq "$want" ] || fail "exit status $got, not $want: rxfsd $*"
	[ "$(wc -l <"$dir/err")" -eq 1 ] || fail "not one line: rxfsd $*"
	grep -q -- "$text" "$dir/err" || fail "no \"$text\": rxfsd $*"
}

# start OPTION...: in the background; waits until it prints its addresses
start() {
	rm -f "$dir/out"
	mkfifo "$dir/fifo"
	"$rxfsd" --port 0 --vl-port 0 --state "$dir/state" "$@" >"$dir/fifo" 2>"$dir/err" &
	pid=$!
	read -r line <"$dir/fifo"
	rm -f "$dir/fifo"
	case $line in
	"listening fs "*" vl "*" vol "*) ;;
	*) fail "printed \"$line\": rxfsd $*" ;;
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
refused 2 "one of them" --export "$dir/export" --store "$dir/state"
refused 2 rxvol --store "$dir/none"
refused 2 "strict or lazy" --store "$dir/state" --durability often
refused 2 --state --store "$dir/state" --state "$dir/state"
refused 2 "strict or lossy" --export "$dir/export" --state "$dir/state" --audit often
refused 2 "durability is for --store" --export "$dir/export" --state "$dir/state" --durability strict
refused 2 "writes is for --store" --export "$dir/export" --state "$dir/state" --allow-anonymous-writes
refused 2 "watches is for --export: only the server itself changes a store, so there is nothing to watch" --store "$dir/state" --watches 5
refused 2 "audit without a log" --export "$dir/export" --state "$dir/state" --audit strict
refused 2 "interval without a file" --export "$dir/export" --state "$dir/state" --metrics-interval 5
refused 2 "start without a place" --export "$dir/export" --state "$dir/state" --trace-start
refused 2 "without brackets and port" --export "$dir/export" --state "$dir/state" --listen 127.0.0.1:7000
refused 2 "user@REALM" --export "$dir/export" --state "$dir/state" --administrator root
refused 1 "$dir/none/audit" --export "$dir/export" --state "$dir/state" --audit-log "$dir/none/audit"
refused 2 "$dir/state" --store "$dir/state"
refused 2 frobnicate --frobnicate
refused 2 workers-max --export "$dir/export" --workers-max 0
refused 2 port --export "$dir/export" --port 70000
refused 2 stray --export "$dir/export" stray
refused 2 "$dir/none" --export "$dir/none" --state "$dir/state"
refused 2 "inside the export" --export "$dir/export" --state "$dir/export/state"
refused 1 /proc/none --export "$dir/export" --state /proc/none
refused 1 192.0.2.1 --export "$dir/export" --state "$dir/state" --listen 192.0.2.1 --require none
refused 1 "$dir/none" --export "$dir/export" --state "$dir/state" --timeline "$dir/none/here"
refused 1 "process of rxfsd" --reload $$
refused 2 "reload" --reload 0
refused 2 "bos-port 7005 is also the port of --vol-port" --export "$dir/export" --state "$dir/state" --bos --bos-port 7005

# wrong OPTION VALUE TEXT: the check and the start both refuse a file with that setting, name the line, and exit with
# 2.
wrong() {
	printf '[rxfsd]\nexport = %s\n%s = %s\n' "$dir/export" "$1" "$2" >"$dir/wrong.conf"
	refused 2 "wrong.conf:3: .*$3" --config "$dir/wrong.conf" --check-config
	refused 2 "wrong.conf:3: .*$3" --config "$dir/wrong.conf" --state "$dir/untouched"
	[ ! -e "$dir/untouched" ] || fail "a wrong $1 has made the state"
}
mkdir "$dir/open"
chmod 777 "$dir/open"
wrong export "$dir/export" "line 2"
wrong volume "a b" "a b"
wrong volume ends.backup ends.backup
wrong advertise foo foo
wrong advertise 1.2.3 1.2.3
wrong trace-dir "$dir/none" "$dir/none"
wrong trace-dir "$dir/export/hello.txt" directory
wrong trace-dir "$dir/open" write
wrong listen "no host" "no host"
wrong listen 0.0.0.0 "require none"
wrong port 7003 "vl-port 7003"
wrong vl-port 7000 "vl-port 7000"
wrong vol-port 7000 "vol-port 7000"
wrong workers-max 5000 workers-max
wrong affinity 8000 8000
wrong keytab "$dir/none" "$dir/none"
wrong keytab "$dir/export/hello.txt" hello.txt
wrong require crypt keytab
wrong allow nobody nobody
wrong reload 1 "command line"
# A host name that cannot be resolved may be resolved later: refused, but another start may succeed.
"$rxfsd" --export "$dir/export" --listen nonsense.invalid --check-config >"$dir/out" 2>"$dir/err" &&
	fail "--listen nonsense.invalid was accepted"
grep -q -- "--listen nonsense.invalid" "$dir/err" || fail "no --listen nonsense.invalid"
refused 1 "--listen nonsense.invalid" --export "$dir/export" --state "$dir/state" --listen nonsense.invalid
refused 2 "--listen 300.1.2.3" --export "$dir/export" --state "$dir/state" --listen 300.1.2.3
# What a unit forbids is named as such, and no second attempt can help.
export NOTIFY_SOCKET=@none
refused 2 "PrivateTmp=no" --export /tmp/rxfsd-no-such-directory --state "$dir/state"
unset NOTIFY_SOCKET
mkdir "$dir/sealed"
if unshare --map-root-user --mount mount -t tmpfs -o ro none "$dir/sealed" 2> "$dir/err"; then
	for option in audit-log metrics-file metrics-socket trace-dir timeline; do
		unshare --map-root-user --mount sh -c 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"' sh "$dir/sealed" \
			env NOTIFY_SOCKET=@none "$rxfsd" --export "$dir/export" --state "$dir/state" \
			"--$option" "$dir/sealed/new/file" > "$dir/out" 2> "$dir/err"
		[ $? -eq 2 ] || fail "--$option on a read-only mount: not status 2"
		grep -q -- "--$option .*ReadWritePaths=$dir/sealed/new$" "$dir/err" || fail "--$option on a read-only mount"
	done
else
	echo "left out: a read-only mount, no namespaces here"
fi
# Errors found during the start name their line, too.
printf '[rxfsd]\nexport = %s\nport = 0\nvl-port = 0\nstate = %s\n metrics-file = %s\n' "$dir/export" "$dir/state" \
	"$dir/none/x.prom" >"$dir/wrong.conf"
refused 1 "wrong.conf:6: --metrics-file $dir/none/x.prom" --config "$dir/wrong.conf"

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

# A state of another version, or with a damaged beginning, is refused and named.
mkdir "$dir/old"
head -c 8192 /dev/zero >"$dir/old/data.volume"
refused 1 "old/data.volume is not a volume store.*move it away" --export "$dir/export" --volume data --state "$dir/old" \
	--port 0 --vl-port 0
# An address space of 1 GiB is enough. (With a sanitizer even that is too small.)
if (ulimit -S -v 1048576 && "$rxfsd" --version) >/dev/null 2>&1; then
	ulimit -S -v 1048576
	start --export "$dir/export" --volume data
	stop
	ulimit -S -v "$(ulimit -H -v)"
else
	echo "SKIP: an address space of 1 GiB is too small for this build"
fi

start --export "$dir/export" --volume data
# The log begins with the settings in effect.
grep -q "^rxfsd: version [0-9]" "$dir/err" || fail "no version in the log"
grep -q "^rxfsd: fs on $fs: protection none; [0-9]* listeners*, back-end [a-z]*, GSO o[nf]*, GRO o[nf]*" "$dir/err" ||
	fail "no line in the log about the file service"
grep -q "^rxfsd: vl on $vl: protection none" "$dir/err" || fail "no line in the log about the location service"
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
[ "$sent" -eq $((3000000 + 2048)) ] || # with the directory
	 fail "the time line has $sent bytes sent"

# Killed during operation, it restarts with the same identity.
start --export "$dir/export" --volume data
before=$("$afscp" -s "$server" stat data:/hello.txt | grep FID)
kill -KILL "$pid"
wait "$pid" 2>/dev/null
pid=
start --export "$dir/export" --volume data
after=$("$afscp" -s "$server" stat data:/hello.txt | grep FID)
[ -n "$before" ] && [ "$before" = "$after" ] || fail "FID $before became $after"
"$afscp" -s "$server" get -q data:/hello.txt "$dir/copy" || fail "afscp get"
stop
# The last figures in the log are those after the last call.
sed -n '/calls in progress have/,$p' "$dir/err" | grep -q "^rxfsd: fetches [1-9]" || fail "no figures at the end"

# Without standard descriptors: no other file gets their numbers.
"$rxfsd" --export "$dir/export" --port 0 --vl-port 0 --state "$dir/state3" --metrics-file "$dir/x.prom" <&- >&- 2>&- &
pid=$!
tries=0
until [ -s "$dir/x.prom" ]; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || fail "it does not start without standard descriptors"
	kill -0 $pid || fail "it has ended without standard descriptors"
	sleep 0.1
done
stop
[ ! -s "$dir/state3/lock" ] || fail "the lock file contains: $(cat "$dir/state3/lock")"
if grep -l "rxfsd: " "$dir/state3"/*; then
	fail "log lines are in the state folder"
fi
exit 0
