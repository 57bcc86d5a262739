# SPDX-License-Identifier: BSD-2-Clause
# afscp sync with rxfsd on loopback: both directions and between volumes, what differs and what is left alone, and failures.

. "$top_srcdir/src/tests/tools/lib.sh"

rxvol=$top_builddir/src/rxvol/rxvol
if [ ! -x "$rxfsd" ] || [ ! -x "$rxvol" ]; then
	echo "SKIP: rxfsd or rxvol is not built"
	exit 77
fi
anyuser='system:anyuser rlidwka'

mkdir -m 700 "$work/store" || exit 99
{
	"$rxvol" -S "$work/store" init &&
		"$rxvol" -S "$work/store" create one --acl "$anyuser" &&
		"$rxvol" -S "$work/store" create two --acl "$anyuser" &&
		"$rxvol" -S "$work/store" create small --acl "$anyuser" --quota 2M &&
		"$rxvol" -S "$work/store" create closed --acl "system:anyuser rl"
} > "$work/rxvol.out" 2>&1 || {
	cat "$work/rxvol.out"
	exit 1
}

# Ports that the kernel gives to nobody while the server is down.
fs_port=$((8192 + $$ * 2 % 2000)) vl_port=$((8193 + $$ * 2 % 2000))
start_server() {
	: > "$work/rxfsd.out"
	"$rxfsd" --store "$work/store" --port "$fs_port" --vl-port "$vl_port" > "$work/rxfsd.out" 2>> "$work/rxfsd.err" &
	server=$!
	servers="$servers $server"
	wait_for "$work/rxfsd.out" 'fs .* vl ' $server || {
		cat "$work/rxfsd.out" "$work/rxfsd.err"
		echo "rxfsd did not start"
		exit 1
	}
	fs_port=$(sed -n 's/.*fs [^ ]*:\([0-9]*\) vl.*/\1/p' "$work/rxfsd.out")
	vl_port=$(sed -n 's/.* vl [^ ]*:\([0-9]*\).*/\1/p' "$work/rxfsd.out")
}
start_server
AFSCP_SERVER=127.0.0.1:$vl_port:$fs_port
export AFSCP_SERVER
cd "$work" || exit 99

# ends STATUS ARGUMENTS...: output is in out and err.
ends() {
	wanted=$1
	shift
	"$afscp" "$@" > out 2> told
	rc=$?
	grep -v 'identity at the file server' told > err
	[ "$rc" = "$wanted" ] || fail "afscp $* ended with $rc, not $wanted: $(head -n 3 err)"
}
well() {
	ends 0 "$@"
	[ ! -s err ] || fail "afscp $* printed: $(head -n 3 err)"
}
# does LINE...: the last command has printed these lines, in any order, and a summary.
does() {
	printf '%s\n' "$@" | grep -v '^$' | sort > wanted
	grep -v '^[0-9]* files compared' out | sort > lines
	cmp -s wanted lines || fail "printed \"$(tr '\n' '|' < lines)\", not \"$(tr '\n' '|' < wanted)\""
}
# same A B: names, kinds, contents, modes and times.
look() {
	(cd "$1" && find . ! -type l -printf '%y %m %Ts %p\n' && find . -type l -printf 'l %l %Ts %p\n') | sort
}
same() {
	diff -r --no-dereference "$1" "$2" > diff.txt || fail "$1 and $2 differ: $(head -n 3 diff.txt)"
	look "$1" | sed 's/ \([0-9]*\)\.[0-9]* / \1 /' > look.one
	look "$2" | sed 's/ \([0-9]*\)\.[0-9]* / \1 /' > look.two
	cmp -s look.one look.two || fail "$1 and $2 look different: $(diff look.one look.two | head -n 4)"
}

# A tree with everything in it.
long=$(printf '%0255d' 7)
mkdir -p tree/sub/deep tree/empty tree/many
echo hello > tree/hello
: > tree/nothing
seq 1 300000 > tree/sub/large
echo x > "tree/sub/$long"
echo y > "tree/sub/deep/two
lines"
printf 'z' > "tree/sub/deep/$(printf 'caf\351')"
ln -s hello tree/link
ln -s ../nowhere tree/sub/dangling
touch -h -d '1999-01-02 03:04:05' tree/sub/dangling
i=0
while [ $i -lt 300 ]; do
	echo "number $i" > tree/many/file-$i
	i=$((i + 1))
done
chmod 600 tree/hello
chmod 750 tree/sub/deep
touch -d '2001-02-03 04:05:06' tree/sub/large tree/sub

# There, back, and from volume to volume; the second time nothing is to be done.
well sync tree/ one:/copy
well sync -v tree/ one:/copy
does ''
well sync one:/copy/ back
same tree back
well sync -v one:copy/ back/
does ''
well sync one:/copy two:
well sync -v one:/copy/ two:/copy/
does ''
well sync two:copy/ from-two
same tree from-two
well sync one:copy into
[ -d into/copy ] || fail "the directory has not its own name"
same tree into/copy

# Sizes, times and modes.
echo 'hello again' > tree/hello
touch -d '2002-01-01' tree/many/file-7
chmod 640 tree/many/file-8
well sync -nv tree/ one:copy
does hello many/file-7 many/file-8
well sync -v tree/ one:copy
does hello many/file-7 many/file-8
well sync one:copy/ back
same tree back

# Contents that neither size nor time tell.
touch -r tree/many/file-9 stamp
echo 'NUMBER 9' > tree/many/file-9
touch -r stamp tree/many/file-9
well sync -v tree/ one:copy
does ''
well sync -vc tree/ one:copy
does many/file-9
well sync -vc one:copy/ back
does many/file-9
well sync -vc one:copy/ two:copy/
does hello many/file-7 many/file-8 many/file-9
same tree back
# The same contents with another time.
touch -d '2003-01-01' tree/many/file-10
well sync -vc tree/ one:copy
does many/file-10
well sync -v tree/ one:copy
does ''

# The time of a link, and another text.
touch -h -d '1998-01-01' tree/link
well sync -v tree/ one:copy
does link
well sync -v one:copy/ back
does link many/file-10
well sync -v one:copy/ two:copy/
does link many/file-10
ln -sfn sub tree/link
touch -h -d '1997-01-01' tree/link
touch -d '2001-02-03' tree
well sync tree/ one:copy
well sync one:copy/ back
same tree back

# --update: what is newer stays.
echo newer > back/hello
touch -d '2040-01-01' back/hello
well sync -vu one:copy/ back
does ''
grep -q newer back/hello || fail "--update has replaced a newer file"
well sync -v one:copy/ back
does hello

# --delete, and what is left out.
mkdir -p back/more/below back/keep
echo 1 > back/more/below/file
echo 2 > back/more/object.o
echo 3 > back/keep/file
echo 4 > back/sub/object.o
well sync -v one:copy/ back
does ./ sub/
[ -f back/more/below/file ] || fail "files were removed without --delete"
well sync -nv --delete --exclude '*.o' --exclude /keep/ one:copy/ back
does 'deleting more/below/file' 'deleting more/below/'
[ -f back/more/below/file ] || fail "a dry run has removed files"
well sync -v --delete --exclude '*.o' --exclude /keep/ one:copy/ back
[ -f back/more/object.o ] && [ -f back/sub/object.o ] && [ -f back/keep/file ] || fail "what is excluded was removed"
[ ! -e back/more/below ] || fail "what the source does not have is left"
well sync --delete one:copy/ back
same tree back
well sync --delete back/ one:copy
well sync --include 'file-1?' --exclude 'many/*' --exclude '/sub/**' one:copy/ some
[ "$(find some -type f | grep -c file-1.)" = 10 ] && [ "$(find some -type f | wc -l)" = 12 ] || fail "the patterns took $(find some -type f | wc -l) files"
mkdir -p empty-tree
well sync --delete empty-tree/ two:copy
well ls two:copy
[ ! -s out ] || fail "sync --delete has left $(cat out)"

# Other kinds under the same name.
rm -rf kinds there
mkdir -p kinds/was-file there/was-dir/full there/was-link there/was-dir2
echo f > kinds/was-dir
ln -s f kinds/was-dir2
echo f > there/was-file
echo f > there/was-dir/full/file
rmdir there/was-link
ln -s x there/was-link
echo l > kinds/was-link
well sync there/ two:kinds
ends 23 sync kinds/ two:kinds
grep -q 'with --delete' err || fail "no word about directories in the way: $(cat err)"
well sync --delete kinds/ two:kinds
well sync --delete two:kinds/ there
same kinds there

# Mount points are not entered, and not removed.
well mkdir two:m
well ln --mount one two:m/point
well put tree/hello two:m/file
ends 0 sync two:m/ m
grep -q 'it is a mount point' err || fail "no word about the mount point"
[ ! -e m/point ] || fail "a mount point was entered"
ends 0 sync --cross-mounts two:m/ m
[ -f m/point/copy/hello ] || fail "a mount point was not entered: $(cat err)"
well ln --mount two two:m/itself
ends 0 sync --cross-mounts --exclude /copy --exclude /kinds two: circle
grep -q 'as one above it' err || fail "no word about the circle"
well ln --mount one two:m/twin
ends 23 sync --cross-mounts --exclude itself two:m/ twins
grep -q 'another mount point' err || fail "no word about a volume with two mount points: $(cat err)"
[ "$(find twins -name hello | wc -l)" = 1 ] || fail "a volume with two mount points was not copied once"
ends 23 sync --delete empty-tree/ two:m
well ls two:m
grep -q point out || fail "a mount point was removed"
well rm two:m/point two:m/itself two:m/twin

# The destination in the source.
ends 0 sync one:copy/sub/ one:copy/sub/inner
ends 0 sync one:copy/sub/ one:copy/sub/inner
grep -q 'it is the destination' err || fail "no word about the destination in the source"
well rm -r one:copy/sub/inner
ends 1 sync one:copy one:
grep -q 'same directory' err || ends 1 sync one:copy/ one:copy/

# Single objects.
well sync tree/hello two:
well sync tree/hello two:other
well sync tree/link two:
well cat two:other
cmp -s out tree/hello || fail "a single file has other contents"
well sync tree/hello two:new/
well cat two:new/hello
cmp -s out tree/hello || fail "a single file in a new directory has other contents"
well sync tree/hello two:new/
[ ! -s err ] || fail "a directory with a slash: $(cat err)"
ends 1 sync tree/hello two:other/
well sync /proc/version two:version
well cat two:version
cat /proc/version > version
cmp -s out version || fail "a file of /proc was not read"
well sync two:other single
cmp -s single tree/hello || fail "a single file has other contents"
[ "$(stat -c '%a %Y' single)" = "$(stat -c '%a %Y' tree/hello)" ] || fail "mode or time of a single file"
well sync -v two:other single
does ''
well sync two:link .
[ "$(readlink link)" = sub ] || fail "a single link"

# A link to a directory at the destination.
mkdir real
ln -s real to-real
well sync one:copy/sub/ to-real
diff -r --no-dereference tree/sub real || fail "the link to a directory was not followed"
well mkdir two:real
well ln -s real two:to-real
well sync tree/sub/ two:to-real
well ls two:real
grep -q large out || fail "the link at the destination was not followed"

# More directories than descriptors.
mkdir wide
(cd wide && seq -f 'd%g' 1 600 | xargs mkdir)
(ulimit -n 100 && exec "$afscp" sync wide/ two:wide) > out 2> err || fail "more directories than descriptors, up: $(head -n 3 err)"
(ulimit -n 100 && exec "$afscp" sync two:wide/ wide-back) > out 2> err || fail "more directories than descriptors, down: $(head -n 3 err)"
same wide wide-back
well rm -r two:wide

# A limit of the length of files.
rm -rf limited
(ulimit -f 100 && exec "$afscp" sync one:copy/sub/large limited/) > out 2> err
[ $? = 23 ] && grep -q 'too large' err || fail "with a limit of the length of files: $(cat err)"
(ulimit -f 100 && exec "$afscp" get one:copy/sub/large limited/large) > out 2> err
[ $? = 1 ] && grep -q 'too large' err || fail "get with a limit of the length of files: $(cat err)"
[ -z "$(ls -A limited)" ] || fail "a limit of the length of files has left $(ls -A limited)"

# Wrong input.
seq 1 300000 > heavy-one
echo small > small-one
ends 1 sync nowhere one:
ends 1 sync one:nowhere here
ends 1 sync missing-volume: here
ends 2 sync tree
ends 2 sync --bwlimit fast tree/ one:copy
ends 2 sync --exclude '' tree/ one:copy
ends 1 sync tree/ here
grep -q 'in AFS' err || fail "no word about two local paths"
ends 1 sync tree/ one:copy/hello
ends 2 ls --delete one:
ends 23 sync tree/ closed:
grep -q 'right' err || fail "no word about rights: $(cat err)"
ends 1 sync two:other ''
ends 1 sync '' two:
mkfifo pipe
ends 23 sync two:other pipe
[ -p pipe ] || fail "a pipe was replaced"
well sync --delete two:other pipe
[ -f pipe ] || fail "a pipe was not replaced"

# Directories where nothing may be removed, or nothing be made.
well mkdir two:box
well acl two:box system:anyuser rli
well sync heavy-one two:box
well sync small-one two:box
well ls two:box
[ "$(sort out | tr '\n' ' ')" = 'heavy-one small-one ' ] || fail "a drop box has $(cat out)"
well cat two:box/heavy-one
cmp -s out heavy-one || fail "a large file in a drop box has other contents"
well mkdir two:fixed
well sync heavy-one two:fixed/
well acl two:fixed system:anyuser rlw
echo more >> heavy-one
well sync heavy-one two:fixed/
well cat two:fixed/heavy-one
cmp -s out heavy-one || fail "a large file that is overwritten has other contents"
: > heavy-one
well sync heavy-one two:fixed/
well cat two:fixed/heavy-one
[ ! -s out ] || fail "an empty file that is overwritten has contents"
well sync -v heavy-one two:fixed/
does ''
ends 23 sync small-one two:fixed/
grep -q 'right' err || fail "no word about the right to make a file: $(cat err)"

mkfifo tree/fifo
ends 0 sync tree/ one:copy
grep -q fifo err || fail "no word about a pipe"
rm tree/fifo

# JSON: one object in each line.
echo 'with "quotes"' > 'tree/a "name"'
well sync --json tree/ one:copy
grep -c '^{.*}$' out > count
[ "$(cat count)" = "$(wc -l < out)" ] || fail "lines that are no objects"
grep -q '"action":.*"copy"' out && grep -q '"summary":' out || fail "JSON: $(cat out)"
grep '"summary":' out | grep '"transport":' | grep -q '"copied": 1,' || fail "the report in JSON: $(cat out)"
well sync --stats tree/ one:copy
grep -q 'files compared, 0 copied' out && grep -q '^copied' out || fail "--stats: $(cat out)"
ends 1 sync --json nowhere one:
grep -q '"error":' out || fail "no error as JSON: $(cat out)"

# A volume that becomes full ends it; nothing incomplete has the name of a file.
mkdir -p heavy
for i in 1 2 3 4 5 6; do
	seq 1 150000 > heavy/big-$i
done
ends 1 sync -j1 heavy/ small:
grep -q -i 'quota\|space\|full' err || fail "no word about the quota: $(cat err)"
rm -rf got
ends 0 sync small:/ got
for i in got/*; do
	[ ! -e "$i" ] || cmp -s "$i" "heavy/${i##*/}" || fail "$i is not complete"
done

well sync --delete empty-tree/ small:
rm -rf full && mkdir full
i=0
while [ $i -lt 600 ]; do
	seq 1 1400 > full/file-$i
	i=$((i + 1))
done
ends 1 sync -j1 full/ small:full
grep -q -i 'quota\|space\|full' err || fail "no word about the quota for small files: $(cat err)"
rm -rf got
ends 0 sync small:full/ got
[ -n "$(ls got)" ] || fail "nothing was stored before the quota was used up"
for i in got/*; do
	cmp -s "$i" "full/${i##*/}" || fail "$i is not complete"
done

# A limit of the rate.
began=$(date +%s)
well sync --bwlimit 400 heavy/big-1 two:slow
[ $(($(date +%s) - began)) -ge 1 ] || fail "--bwlimit has no effect"

# A source that changes while it is read, and one that vanishes.
rm -rf moving
mkdir moving
seq 1 100000 > moving/z-slow
echo 1 > moving/a-gone
"$afscp" sync -j1 -q --bwlimit 150 moving/ two:moving > out 2> err &
pid=$!
tries=0
until "$afscp" ls two:moving 2> /dev/null | grep -q . || [ $tries -ge 200 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
# However slow this machine is, the sync does not go on meanwhile.
kill -STOP $pid
rm moving/a-gone
kill -CONT $pid
wait $pid
rc=$?
[ $rc = 24 ] || fail "with a file that vanished it ended with $rc: $(cat err)"
grep -q vanished err || fail "no word about a file that vanished"

# A source that gets other contents while it is copied is copied again, a local one and one in AFS.
rm -rf moving && mkdir moving
seq 1 200000 > moving/file
"$afscp" sync --bwlimit 300 moving/ two:changing > out 2> err &
pid=$!
tries=0
until "$afscp" find two:changing 2> /dev/null | grep -q afscp-part || [ $tries -ge 200 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
kill -STOP $pid
seq 1 90000 | tr 1 9 > moving/file
kill -CONT $pid
wait $pid || fail "with a file that changes it ended with $?: $(cat err)"
well cat two:changing/file
cmp -s out moving/file || fail "a file that changes has other contents"
"$afscp" sync --bwlimit 150 two:changing/ changing > out 2> err &
pid=$!
tries=0
until [ -d changing ] || [ $tries -ge 200 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
sleep 0.3
kill -STOP $pid
seq 1 60000 | tr 1 8 > moving/file
well put moving/file two:changing/file
kill -CONT $pid
wait $pid || fail "with a file in AFS that changes it ended with $?: $(cat err)"
cmp -s changing/file moving/file || fail "a file in AFS that changes has other contents"

# The server is killed in the middle, and starts again.
rm -rf long && mkdir long
seq 1 200000 > long/file
"$afscp" sync --bwlimit 600 long/ two:long > out 2> err &
pid=$!
tries=0
until "$afscp" find two:long 2> /dev/null | grep -q afscp-part || [ $tries -ge 200 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
stop_server $server KILL
start_server
wait $pid || fail "with a server that was killed it ended with $?: $(cat err)"
well sync two:long/ long-back
same long long-back

# The same with small files, which are made and stored some at a time.
rm -rf crowd && mkdir crowd
i=0
while [ $i -lt 2000 ]; do
	echo "number $i" > crowd/file-$i
	i=$((i + 1))
done
"$afscp" sync crowd/ two:crowd > out 2> err &
pid=$!
tries=0
until "$afscp" ls two:crowd 2> /dev/null | grep -q file || [ $tries -ge 200 ]; do
	tries=$((tries + 1))
	sleep 0.01
done
stop_server $server KILL
start_server
wait $pid || fail "with small files and a server that was killed it ended with $?: $(cat err)"
well sync -v crowd/ two:crowd
does ''
well sync two:crowd/ crowd-back
same crowd crowd-back

# Changes are done, but a server that was killed cannot say so: MakeDir, Symlink, CreateFile, StoreData64. One sync waits for each.
python=${PYTHON3:-python3}
if command -v "$python" > /dev/null; then
	rm -rf lost && mkdir -p lost/below
	echo one > lost/one
	echo two > lost/below/two
	ln -s one lost/link
	lost=""
	for i in 141: 139:/link 137:/one 65538:/one; do
		call=${i%%:*}
		mkfifo "control-$call"
		"$python" "$top_srcdir/src/tests/rxafs/proxy.py" "control-$call" "$fs_port" > "proxy-$call" 2> "proxy-$call.err" &
		servers="$servers $!"
		wait_for "proxy-$call" . $! || fail "the proxy did not start: $(cat "proxy-$call.err")"
		echo "$call 600000" > "control-$call"
		AFSCP_SERVER=127.0.0.1:$vl_port:$(cat "proxy-$call") "$afscp" sync lost/ "two:lost-$call" > "out-$call" 2> "err-$call" &
		lost="$lost $!"
		tries=0
		until "$afscp" stat "two:lost-$call${i#*:}" > stat.out 2>&1 || [ $tries -ge 600 ]; do
			tries=$((tries + 1))
			sleep 0.05
		done
	done
	stop_server $server KILL
	start_server
	for call in 141 139 137 65538; do
		echo "0 0" > "control-$call"
	done
	for pid in $lost; do
		wait "$pid" || fail "a sync with a lost answer ended with $?: $(cat err-*)"
	done
	for call in 141 139 137 65538; do
		rm -rf lost-back
		well sync "two:lost-$call/" lost-back
		same lost lost-back
	done
fi

# An interrupt: the command ends by the signal, and can be repeated.
rm -rf part
"$afscp" sync --bwlimit 200 two:long/ part > out 2> err &
pid=$!
tries=0
until [ -d part ] || [ $tries -ge 200 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
kill -TERM $pid
wait $pid
rc=$?
[ $rc = 143 ] || fail "after an interrupt it ended with $rc"
[ -z "$(ls -A part)" ] || fail "an interrupt has left $(ls -A part)"
well sync two:long/ part
same long part
"$afscp" sync --bwlimit 200 long/ two:again > out 2> err &
pid=$!
tries=0
until "$afscp" find two:again 2> /dev/null | grep -q afscp-part || [ $tries -ge 200 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
kill -TERM $pid
wait $pid
[ $? = 143 ] || fail "after a signal it ended with $?"
well sync long/ two:again
well sync two:again/ again
same long again

# Holes stay holes on both sides, at the beginning, within and at the end.
mkdir sparse
{ echo a; truncate -s 24M sparse/middle; } > sparse/middle
echo b >> sparse/middle
truncate -s 30M sparse/middle
truncate -s 28M sparse/begin && echo c >> sparse/begin
truncate -s 40M sparse/all
before=$(du -sk store | cut -f 1)
well sync sparse/ two:sparse
after=$(du -sk store | cut -f 1)
[ $((after - before)) -lt 10000 ] || fail "holes take $((after - before)) KiB at the server"
well sync two:sparse/ sparse.back
same sparse sparse.back
[ "$(du -sk sparse.back | cut -f 1)" -lt 10000 ] || fail "holes take $(du -sk sparse.back) KiB after sync"
# A file that cannot be replaced has no old bytes where the new one has a hole.
mkdir kept
head -c 5000000 /dev/urandom > kept/file
well sync kept/ two:kept
well acl two:kept system:anyuser rliwk
truncate -s 0 kept/file && truncate -s 3M kept/file && echo end >> kept/file && truncate -s 6M kept/file
well sync kept/ two:kept
well sync two:kept/ kept.back
same kept kept.back

result
