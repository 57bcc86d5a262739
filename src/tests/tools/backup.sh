# SPDX-License-Identifier: BSD-2-Clause
# The guide "Backup and disaster": each of its commands runs, and each row of its table brings back what was lost.

. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol
rxpt=$top_builddir/src/rxpt/rxpt
guide=$top_srcdir/doc/backup.md
for program in "$rxvol" "$rxpt" "$rxfsd" "$afscp"; do
	[ -x "$program" ] || { echo "SKIP: $program is not built"; exit 77; }
done
umask 022
export TZ=UTC
store=$work/store backup=$work/backup
mkdir "$backup" "$backup/tree" "$work/home" "$work/tmp"

# -- the server, as systemd would run it --

start_rxfsd() {
	# Otherwise the line of the last server may be taken for that of this one.
	: > "$work/rxfsd.out"
	"$rxfsd" --store "$store" --protection "$store" --port 0 --vl-port 0 --pt-port 0 > "$work/rxfsd.out" 2> "$work/rxfsd.err" &
	server=$!
	servers="$servers $server"
	wait_for "$work/rxfsd.out" 'fs .* vl ' $server || {
		cat "$work/rxfsd.out" "$work/rxfsd.err"
		echo "rxfsd did not start"
		exit 1
	}
	where=$(sed -n 's/.*fs 127\.0\.0\.1:\([0-9]*\) vl 127\.0\.0\.1:\([0-9]*\).*/127.0.0.1:\2:\1/p' "$work/rxfsd.out")
}
gone= # the server was killed
systemctl() {
	case $1 in
	start) start_rxfsd ;;
	stop) [ -n "$gone" ] || stop_server "$server" TERM || fail "rxfsd ended with $?: $(tail -n 1 "$work/rxfsd.err")" ;;
	esac
}
rxvol() { "$rxvol" "$@"; }
rxpt() { "$rxpt" "$@"; }
afscp() { "$afscp" "$@"; }

# -- commands of the guide --

# type_lines FILE: runs each line of it with the folders of this test; all must succeed.
type_lines() {
	sed -e "s|/srv/afs|$store|g" -e "s|/backup/|$backup/|g" -e "s|/home/|$work/home/|g" -e "s|/tmp/docs|$work/tmp/docs|g" \
		-e "s|-s 127.0.0.1 |-s $where |g" "$1" > "$work/lines"
	[ -s "$work/lines" ] || fail "the guide has no commands there: $1"
	while read -r line; do
		count=$((count + 1))
		eval "$line" > "$work/out" 2> "$work/err" < /dev/null ||
			fail "$line: ended with $?: $(cat "$work/out" "$work/err" | head -n 3)"
	done < "$work/lines"
}
# block N: the Nth block of commands.
block() {
	awk -v n="$1" '/^```/ { if (inside) inside = 0; else { inside = 1; at++ }; next } inside && at == n' "$guide" > "$work/block"
	type_lines "$work/block"
}
# row PATTERN: the commands of the row whose first column matches, one after the other.
row() {
	rows=$((rows + 1))
	sed -n '/^## What is lost/,/^```/p' "$guide" | grep "^| [^|]*$1" > "$work/row"
	[ "$(wc -l < "$work/row")" -eq 1 ] || fail "$(wc -l < "$work/row") rows for $1"
	sed -e 's/^|[^|]*|[^|]*|//' "$work/row" | grep -o '`[^`]*`' | tr -d '`' > "$work/block"
	type_lines "$work/block"
}
count=0
rows=0

# as_before VOLUME: it has what it had at the last export.
as_before() {
	"$rxvol" -S "$store" compare "$1" "$backup/tree/home.alice" --attributes > "$work/out" 2> "$work/err" ||
		fail "$1 is not as before ($what): $(head -n 3 "$work/out" "$work/err")"
	"$rxvol" -S "$store" check > "$work/out" 2>&1 || fail "the store is not sound ($what): $(head -n 3 "$work/out")"
}
vol() {
	"$rxvol" -S "$at" "$@" > "$work/out" 2> "$work/err" || fail "rxvol $*: $(head -n 2 "$work/err")"
}
at=$store
id_of() {
	"$rxvol" -S "$store" examine "$1" | sed -n 's/^ *id *\([0-9]*\)$/\1/p'
}

# -- a home --

mkdir -p "$work/home/alice/docs/deep" "$work/home/alice/bin"
echo report > "$work/home/alice/docs/report"
seq 1 200000 > "$work/home/alice/docs/large"
ln "$work/home/alice/docs/report" "$work/home/alice/docs/same"
ln -s docs/report "$work/home/alice/link"
printf '#!/bin/sh\n' > "$work/home/alice/bin/tool"
chmod 4755 "$work/home/alice/bin/tool"
truncate -s 500000 "$work/home/alice/docs/holes"
vol init
"$rxpt" -S "$store" adduser alice bob > "$work/out" || fail "rxpt: $(cat "$work/out")"
vol create home.alice --acl 'system:anyuser all' --acl 'alice all' --owner alice
vol create home.new
vol import home.alice "$work/home/alice" --owner alice
vol acl home.alice:docs bob rl
vol acl home.alice:docs/deep -n bob rl
vol mount home.alice:new home.new
start_rxfsd

what='every night'
block 1
as_before home.alice.backup
# A user goes on working.
echo later > "$work/later"
afscp -s "$where" put "$work/later" home.alice:docs/later || fail 'afscp put'
block 2
# The complete dump is that of the clone, and the export has the same.
what='the backup is good'
vol export home.alice.backup "$backup/tree/home.alice" --update --delete --attributes
block 3
vol export home.alice "$backup/tree/home.alice" --update --delete --attributes

what='a file'
afscp -s "$where" rm home.alice:docs/report || fail 'afscp rm'
row 'a file, and the clone'
echo report | cmp -s - "$work/tmp/docs/report" || fail 'the file did not come back'
afscp -s "$where" put -p "$work/tmp/docs/report" home.alice:docs/report || fail 'afscp put'

what='the contents of a volume'
id=$(id_of home.alice)
afscp -s "$where" rm -r home.alice:docs home.alice:bin || fail 'afscp rm -r'
row 'the contents of a volume'
vol export home.alice.backup "$work/tmp/clone" --attributes
"$rxvol" -S "$store" compare home.alice "$work/tmp/clone" --attributes > "$work/out" || fail "not as the clone: $(head -n 3 "$work/out")"
# Clients see it.
afscp -s "$where" get home.alice:docs/report "$work/seen" && echo report | cmp -s - "$work/seen" || fail 'no client sees the file'

what='an older state'
row 'an older state'
"$rxvol" -S "$store" compare old.alice "$work/tmp/clone" --attributes > "$work/out" || fail "not as the clone: $(head -n 3 "$work/out")"
vol remove old.alice

what='a volume'
vol remove home.alice.backup
vol remove home.alice
row 'a volume that was removed'
as_before home.alice
[ "$(id_of home.alice)" = "$id" ] || fail "the restored volume has the number $(id_of home.alice), not $id"

what='a damaged file'
systemctl stop
# The largest of all files that hold data.
object=$(find "$store/files" -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
truncate -s 10 "$object"
start_rxfsd
"$rxvol" -S "$store" check > "$work/out" 2>&1 && fail 'the check found nothing'
row 'calls damaged'
as_contents() {
	vol export home.alice "$work/tmp/contents"
	cmp "$work/tmp/contents/docs/large" "$work/home/alice/docs/large" || fail 'the file is not as before'
}
as_contents
"$rxvol" -S "$store" check > "$work/out" 2>&1 || fail "the store is not sound ($what): $(head -n 3 "$work/out")"

what='access lists'
vol acl home.alice:docs bob none alice none
vol acl home.alice:docs/deep system:anyuser none
row 'access lists'
as_before home.alice

what='the protection database'
"$rxpt" -S "$store" remove bob > "$work/out" || fail "rxpt: $(cat "$work/out")"
row 'the protection database'
"$rxpt" -S "$store" examine bob > "$work/out" 2>&1 || fail "bob is gone: $(cat "$work/out")"
as_before home.alice

what='the metadata'
systemctl stop
gone=1
rm -r "$store/meta"
row 'the folder .meta'
gone=
as_before home.alice
systemctl stop
gone=1
rm -r "$store/meta" "$store/copy/state"
"$rxvol" -S "$store" list > "$work/out" 2> "$work/err" && fail 'the store can be opened'
row 'the metadata and their copy'
gone=
as_before home.alice
[ "$(id_of home.alice)" = "$id" ] || fail "the rescued volume has the number $(id_of home.alice), not $id"
"$rxpt" -S "$store" examine bob > "$work/out" 2>&1 || fail "bob is gone: $(cat "$work/out")"
rm -r "$store.old"

what='the disk'
kill -KILL "$server"
wait "$server" 2> /dev/null
rm -rf "$store"
gone=1
row 'the disk of the store'
block 4
as_before home.alice
[ "$(id_of home.alice)" = "$id" ] || fail "the restored volume has the number $(id_of home.alice), not $id"

# -- files around the limits of blocks and of the parts of a map --

# as_sizes VOLUME: its files have the bytes of those in "sizes".
as_sizes() {
	rm -rf "$work/back"
	vol export "$1" "$work/back"
	diff -r "$work/sizes" "$work/back" > "$work/out" 2>&1 || fail "$1 is not as before ($what): $(head -n 3 "$work/out")"
	"$rxvol" -S "$store" check --data > "$work/out" 2>&1 || fail "the store is not sound ($what): $(head -n 3 "$work/out")"
}
what='a dump that is restored at once'
mkdir "$work/sizes"
for size in 0 8192 65536 8388607 8388608 8388609 30000000; do
	seq -f "%.0f $size" 4000000 | head -c $size > "$work/sizes/$size"
done
vol create sizes
vol import sizes "$work/sizes"
vol clone sizes
"$rxvol" -S "$store" dump sizes.readonly 2> "$work/err" | "$rxvol" -S "$store" restore copy > "$work/out" 2>> "$work/err" ||
	fail "dump | restore: $(head -n 2 "$work/err" "$work/out")"
as_sizes copy
what='an incremental dump'
truncate -s 9000000 "$work/sizes/30000000"
seq 1500000 >> "$work/sizes/30000000"
seq 1500000 >> "$work/sizes/8388609"
truncate -s 20000000 "$work/sizes/0"
vol import sizes "$work/sizes" --update --compare
"$rxvol" -S "$store" dump sizes --since sizes.readonly 2> "$work/err" | "$rxvol" -S "$store" restore copy --replace > "$work/out" 2>> "$work/err" ||
	fail "dump --since | restore: $(head -n 2 "$work/err" "$work/out")"
as_sizes copy
vol remove copy
vol remove sizes.readonly
vol remove sizes

# -- interruptions --

# killed COMMAND...: rxvol is killed several times on the way, then the command is given until it succeeds.
killed() {
	for delay in 0.02 0.05 0.1; do
		rm -f "$work/tmp/dump"
		"$rxvol" -S "$other" "$@" > "$work/out" 2> "$work/err" < /dev/null &
		pid=$!
		sleep $delay
		kill -KILL $pid 2> /dev/null
		wait $pid 2> /dev/null
		"$rxvol" -S "$other" check > "$work/out" 2>&1 || fail "rxvol $* was killed: $(head -n 3 "$work/out")"
	done
	rm -f "$work/tmp/dump"
	"$rxvol" -S "$other" "$@" > "$work/out" 2> "$work/err" || fail "rxvol $* after kills: $(head -n 3 "$work/err")"
}
what='killed'
other=$work/other
"$rxvol" -S "$other" create big > "$work/out" || fail 'create'
killed import big "$work/home/alice" --update --delete
killed dump big --file "$work/tmp/dump"
at=$other
# A signal leaves no part of a dump under its name.
for turn in 1 2 3 4 5; do
	rm -f "$work/tmp/dump"
	"$rxvol" -S "$other" dump big --file "$work/tmp/dump" > "$work/out" 2> "$work/err" &
	pid=$!
	until [ -e "$work/tmp/dump" ] || ! kill -0 $pid 2> /dev/null; do
		sleep 0.001
	done
	kill -TERM $pid 2> /dev/null
	wait $pid && continue
	[ ! -e "$work/tmp/dump" ] || fail "a dump that was stopped left $(wc -c < "$work/tmp/dump") bytes (turn $turn)"
done
"$rxvol" -S "$other" dump big > /dev/null 2> "$work/err" && fail 'a dump to a device'
grep -q 'standard output: is a device' "$work/err" || fail "a dump to a device: $(head -n 1 "$work/err")"
vol dump big --file "$work/big"
for delay in 0.01 0.03 0.1; do
	"$rxvol" -S "$other" restore again --file "$work/big" > "$work/out" 2> "$work/err" &
	pid=$!
	sleep $delay
	kill -KILL $pid 2> /dev/null
	wait $pid 2> /dev/null
	"$rxvol" -S "$other" check > "$work/out" 2>&1 || fail "a restore was killed: $(head -n 3 "$work/out")"
	"$rxvol" -S "$other" remove again > "$work/out" 2>&1
done
vol restore again --file "$work/big"
killed export again "$work/tmp/again" --update --delete --attributes
vol compare again "$work/home/alice"
vol compare again "$work/tmp/again" --attributes
vol compare again "$work/tmp/again"
vol clone again
vol import again "$work/tmp/contents" --update --delete
killed restore-from again.readonly
vol compare again "$work/tmp/again" --attributes
at=$store

what='a home moves'
vol create home.new
block 5
# Two lines of the table are its head.
[ "$(sed -n '/^## What is lost/,/^```/p' "$guide" | grep -c '^| ')" -eq $((rows + 2)) ] || fail 'the table has other rows'
[ "$count" -ge 30 ] || fail "only $count commands"
stop_server "$server" TERM || fail "rxfsd ended with $?: $(tail -n 1 "$work/rxfsd.err")"
result
