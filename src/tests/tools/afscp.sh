# SPDX-License-Identifier: BSD-2-Clause
# afscp with rxfsd on loopback: every command, every kind of destination, and failures.

. "$top_srcdir/src/tests/tools/lib.sh"

[ -x "$rxfsd" ] || { echo "SKIP: rxfsd is not built"; exit 77; }

tree=$work/export
mkdir -p "$tree/sub/deep" "$tree/many" || exit 99
chmod 755 "$work" "$tree" "$tree/sub" "$tree/sub/deep" "$tree/many"
echo 'hello, world' > "$tree/hello.txt"
: > "$tree/empty"
printf 'x' > "$tree/sub/one-byte"
echo deep > "$tree/sub/deep/file"
# Numbered blocks: a block in the wrong place is detected.
seq 1 700000 > "$tree/large"
ln -s hello.txt "$tree/link"
ln -s sub/deep "$tree/way"
ln -s /etc/passwd "$tree/outside"
ln -s loop "$tree/loop"
i=0
while [ $i -lt 200 ]; do
	echo $i > "$tree/many/a-name-that-takes-two-slots-$i"
	i=$((i + 1))
done
chmod 644 "$tree/hello.txt" "$tree/empty" "$tree/large" "$tree/sub/one-byte" "$tree/sub/deep/file" "$tree"/many/*
chmod 755 "$tree/sub/one-byte"

# Ports that the kernel gives to nobody while the server is down.
"$rxfsd" --export "$tree" --volume demo --port $((8192 + $$ * 2 % 2000)) --vl-port $((8193 + $$ * 2 % 2000)) --state "$work/state" \
	> "$work/rxfsd.out" 2> "$work/rxfsd.err" &
server=$!
servers="$servers $server"
wait_for "$work/rxfsd.out" 'fs .* vl ' $server || {
	cat "$work/rxfsd.out" "$work/rxfsd.err"
	echo "rxfsd did not start"
	exit 1
}
where=$(sed -n 's/.*fs 127\.0\.0\.1:\([0-9]*\) vl 127\.0\.0\.1:\([0-9]*\).*/127.0.0.1:\2:\1/p' "$work/rxfsd.out")

cp_well() {
	"$afscp" -s "$where" "$@" > "$work/out" 2> "$work/err" || {
		fail "afscp $* ended with $?: $(head -n 3 "$work/err")"
		return 1
	}
	[ ! -s "$work/err" ] || fail "afscp $* printed: $(head -n 3 "$work/err")"
}
same() {
	cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# get: names, destinations.
cd "$work" || exit 99
mkdir into
for f in hello.txt empty large sub/one-byte sub/deep/file; do
	cp_well get "demo:$f" copy && same "$tree/$f" copy
	cp_well get "demo:/$f" into/ && same "$tree/$f" "into/${f##*/}"
	cp_well get "demo:$f" - && same "$tree/$f" out
	cp_well get "demo://./$f" /dev/null
done
cp_well get demo:hello.txt && same "$tree/hello.txt" hello.txt
[ "$(stat -c %a into/one-byte)" = "$(printf '%o' $((0755 & ~$(umask))))" ] || fail "mode of the copy: $(stat -c %a into/one-byte)"
cp_well get demo:link copy && same "$tree/hello.txt" copy
cp_well get demo:way/file copy && same "$tree/sub/deep/file" copy
cp_well get demo:sub/../hello.txt copy && same "$tree/hello.txt" copy
mkfifo pipe
cat pipe > piped &
reader=$!
cp_well get demo:large pipe
wait $reader
same "$tree/large" piped
[ -p pipe ] || fail "the pipe was replaced"

# get -r: complete trees, new and into an existing one.
cp_well get -r demo: tree
diff -r --no-dereference "$tree" tree > diff.txt || fail "the copied tree differs: $(head -n 3 diff.txt)"
cp_well get -r demo:sub into
diff -r "$tree/sub" into/sub > diff.txt || fail "the copied folder differs: $(head -n 3 diff.txt)"
cp_well get -r demo:sub into
cp_well get -r demo:hello.txt copy && same "$tree/hello.txt" copy

# ls, stat.
cp_well ls demo:/ && (cd "$tree" && LC_ALL=C ls) > names && same names out
cp_well ls demo:many && [ "$(wc -l < out)" -eq 200 ] || fail "ls: $(wc -l < out) names of 200"
cp_well ls -l demo: && {
	grep -q '^-rw-r--r-- .* 13 .* hello\.txt$' out || fail "ls -l: $(cat out)"
	grep -q '^l.* link -> hello\.txt$' out || fail "ls -l: $(cat out)"
	grep -q '^d.* sub$' out || fail "ls -l: $(cat out)"
}
cp_well ls demo:hello.txt && [ "$(cat out)" = hello.txt ] || fail "ls of a file"
cp_well stat demo:large && grep -q "length  *$(stat -c %s "$tree/large")\$" out || fail "stat: $(cat out)"
cp_well stat --json demo:link && grep -q '"link": "hello.txt"' out || fail "stat --json: $(cat out)"

# Names with controls beyond ASCII, on a terminal and elsewhere.
if command -v script > /dev/null; then
	name=$(printf 'c1\302\2332J\233x')
	: > "$tree/$name" && chmod 644 "$tree/$name"
	script -qec "'$afscp' -s '$where' ls demo:" /dev/null > terminal 2> err < /dev/null
	grep -q 'c1??2J?x' terminal || fail "ls on a terminal: $(grep -a c1 terminal | od -c | head -n 3)"
	cp_well ls demo: && grep -qF "$name" out || fail "ls into a file: $(grep -a c1 out | od -c | head -n 3)"
	rm "$tree/$name"
fi

# bench, and reports.
what=bench
# Each client has made a call before the time is over, however busy the machine is.
for seconds in 0.5 5 50; do
	cp_well bench demo:large --clients 4 --seconds $seconds --range 100000 --json || break
	awk -v a="$(number out calls)" -v b="$(number out fairness_min_mean)" 'BEGIN { exit !(a > 4 && b > 0) }' && break
done
{
	want_more out bytes 0
	want_more out calls 4
	want_more out fairness_min_mean 0
	want out clients 4
}
cp_well bench demo:large --seconds 0.3 && grep -q '^bench: ' out || fail "bench: $(cat out)"
what="get --json"
cp_well get demo:large /dev/null --json && want out bytes "$(stat -c %s "$tree/large")"
cp_well get --stats demo:large /dev/null && grep -q '^copied: ' out || fail "get --stats: $(cat out)"

# A user who cannot exceed the system's socket buffer limits gets no message about them.
if setpriv --bounding-set -net_admin true 2> /dev/null; then
	setpriv --bounding-set -net_admin "$afscp" -s "$where" ls demo: > out 2> err || fail "ls without CAP_NET_ADMIN"
	[ ! -s err ] || fail "ls without CAP_NET_ADMIN printed: $(cat err)"
fi

# Failures: one line, status 1, no file left.
cp_() { "$afscp" -s "$where" "$@"; }
rm -rf empty-place
mkdir empty-place
refused 1 'no/such' cp_ get demo:no/such empty-place/x
refused 1 'no such file' cp_ get demo:sub/nothing empty-place/x
refused 1 'not a directory' cp_ get demo:hello.txt/x empty-place/x
refused 1 'not a directory' cp_ get demo:hello.txt/ empty-place/x
refused 1 'nothere' cp_ get nothere:a empty-place/x
refused 1 'copy it with -r' cp_ get demo:sub empty-place/x
refused 1 'standard output' cp_ get -r demo:sub -
refused 1 'out of the volume' cp_ get demo:outside empty-place/x
refused 1 'out of the volume' cp_ get demo:.. empty-place/x
refused 1 'symbolic links' cp_ get demo:loop empty-place/x
refused 1 'empty-place/none/x' cp_ get demo:hello.txt empty-place/none/x
refused 1 'not empty' cp_ bench demo:empty
refused 1 'bench needs a file' cp_ bench demo:sub
refused 1 'nothing' cp_ ls demo:nothing
refused 1 'location server .* check the order of the ports, -s HOST:VLPORT:FSPORT' \
	"$afscp" -s "$(echo "$where" | sed 's/\(.*\):\(.*\):\(.*\)/\1:\3:\2/')" ls demo:
refused 1 'file server .* check the order of the ports' "$afscp" -s "$(echo "$where" | sed 's/:[0-9]*$//; s/.*:\(.*\)/&:\1/')" ls demo:
refused 1 'nothing' cp_ stat demo:nothing
[ ! -c /dev/full ] || refused 1 'no space left' cp_ get demo:large /dev/full
[ -z "$(ls -A empty-place)" ] || fail "left behind: $(ls -A empty-place)"

# The reader closes the pipe early: no message about the broken pipe.
"$afscp" -s "$where" ls demo:many 2> err | head -n 1 > out
[ ! -s err ] && [ "$(wc -l < out)" -eq 1 ] || fail "ls into head printed: $(cat err)"
"$afscp" -s "$where" get demo:large - 2> err | head -n 1 > out
[ ! -s err ] && [ "$(cat out)" = 1 ] || fail "get into head printed: $(cat err)"

# ended_by STATUS: the copy died of the signal, and printed only one line with "interrupted".
ended_by() {
	[ "$rc" -eq "$1" ] || fail "a stopped copy ended with $rc, not $1: $(cat err)"
	[ "$(grep -c . err)" -eq 1 ] && grep -q interrupted err || fail "a stopped copy printed: $(cat err)"
}

# A signal while the reader of a pipe does not read: it ends at once, by the signal.
mkfifo slow
exec 9<> slow
"$afscp" -s "$where" get demo:large slow 2> err &
copier=$!
dd bs=1 count=1 <&9 > first 2> /dev/null
kill -TERM $copier
wait $copier 2> /dev/null
rc=$?
ended_by 143
exec 9>&-

# A signal in the middle of a file: no partial file is left, and the old one is unchanged. SIGKILL leaves no file
# either where the file system has unnamed files.
echo old > empty-place/huge
truncate -s 40G "$tree/huge" && chmod 644 "$tree/huge"
for signal in HUP TERM KILL; do
	(cd empty-place && exec "$afscp" -s "$where" get demo:huge 2> ../err) &
	copier=$!
	tries=0
	until [ -n "$(find empty-place -name ".huge.*")" ] || ls -l /proc/$copier/fd 2> /dev/null | grep -q 'empty-place.*deleted'; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] && kill -0 $copier 2> /dev/null || break
		sleep 0.05
	done
	kill -$signal $copier
	wait $copier 2> /dev/null
	rc=$?
	case $signal in
	HUP) ended_by 129 ;;
	TERM) ended_by 143 ;;
	KILL) rm -f empty-place/.huge.* ;;
	esac
	[ "$(cat empty-place/huge)" = old ] || fail "the old file has changed"
	[ "$(ls -A empty-place)" = huge ] || fail "left behind: $(ls -A empty-place)"
done
rm -f "$tree/huge" empty-place/huge

# Several files at the same time: a tree, and several sources.
mkdir parallel
cp_well get -r -j 4 demo: parallel/tree
diff -r --no-dereference "$tree" parallel/tree > diff.txt || fail "the tree copied with -j differs: $(head -n 3 diff.txt)"
cp_well get -j 3 demo:hello.txt demo:sub/one-byte demo:empty demo:large parallel && same "$tree/large" parallel/large &&
	same "$tree/hello.txt" parallel/hello.txt
cp_well get -r -j 4 demo:many parallel
cp_well get -r -j 4 --continue --json demo:many parallel && [ "$(number out files)" = 0 ] &&
	[ "$(number out skipped)" = 200 ] || fail "--continue with -j: $(cat out)"
[ "$(stat -c %Y parallel/many)" = "$(stat -c %Y "$tree/many")" ] || fail "time of a directory that was copied with -j"
umask_before=$(umask)
umask 077
cp_well get -rp demo:sub parallel/kept && cp_well get -r demo:sub parallel/less
# A stranger's set-user-ID program does not become one of this user.
chmod 6755 "$tree/sub/one-byte"
cp_well get -p demo:sub/one-byte parallel/program && [ "$(stat -c %a parallel/program)" = 755 ] ||
	fail "mode of a set-user-ID program: $(stat -c %a parallel/program)"
chmod 755 "$tree/sub/one-byte"
umask "$umask_before"
[ "$(stat -c %a parallel/kept/one-byte parallel/less/one-byte | tr '\n' ' ')" = '755 700 ' ] ||
	fail "modes with and without -p: $(stat -c %a parallel/kept/one-byte parallel/less/one-byte)"

# A large file whose copy was killed: -C continues its part, if the file is the same; another get replaces it.
head -c 20000000 /dev/zero | tr '\0' b > "$tree/big"
chmod 644 "$tree/big"
mkdir resumed
killed() {
	# The copy may end before it is killed: once more then.
	for try in 1 2 3 4 5 6 7 8 9 10; do
		rm -f resumed/big resumed/.big.*
		"$afscp" -s "$where" get "$@" demo:big resumed 2> err &
		copy=$!
		until [ -s "$(echo resumed/.big.*.afscp-part)" ] || [ -e resumed/big ]; do :; done
		kill -KILL $copy 2> err
		wait $copy 2> err
		[ -e resumed/big ] || break
	done
	[ "$(ls -A resumed | wc -l)" = 1 ] && [ -s "$(echo resumed/.big.*.afscp-part)" ] ||
		fail "after SIGKILL, try $try: $(ls -lA resumed) $(cat err)"
}
what="get -C of a part"
killed
cp_well get -C --json demo:big resumed && same "$tree/big" resumed/big
[ "$(number out bytes)" -lt 20000000 ] && [ "$(number out bytes)" -gt 0 ] || fail "$(number out bytes) bytes after a part"
[ "$(ls -A resumed)" = big ] || fail "left after get -C: $(ls -A resumed)"
rm resumed/big
killed -C
cp_well get --json demo:big resumed && same "$tree/big" resumed/big && want out bytes 20000000
[ "$(ls -A resumed)" = big ] || fail "left after get: $(ls -A resumed)"
rm resumed/big
killed
head -c 20000000 /dev/zero | tr '\0' c > "$tree/big"
cp_well get -C --json demo:big resumed && same "$tree/big" resumed/big && want out bytes 20000000
rm -f resumed/.big.* resumed/big
# A file of the user that has the name of the part stays, and is not continued.
killed
part=$(echo resumed/.big.*.afscp-part)
for option in -q -C; do
	echo mine > "$part"
	"$afscp" -s "$where" get $option demo:big resumed 2> err || fail "get $option beside a file like a part: $(cat err)"
	[ "$(wc -l < err)" = 1 ] && grep -q 'afscp-part" is not its beginning' err || fail "a file like a part: $(cat err)"
	same "$tree/big" resumed/big
	[ "$(cat "$part")" = mine ] || fail "get $option has replaced a file like a part"
	rm -f resumed/big
done
rm -f "$part" "$tree/big"

# Pipes by links without a path; a directory's contents; holes; names of one file; directories that cannot be written.
"$afscp" -s "$where" get demo:large /dev/stdout 2> err | cat > piped
same "$tree/large" piped
cat pipe > piped &
reader=$!
cp_well get demo:large /dev/fd/5 5> pipe
wait $reader
same "$tree/large" piped
for form in demo:sub/ demo:sub/.; do
	rm -rf contents
	cp_well get -r $form contents && cp_well get -rC $form contents
	diff -r "$tree/sub" contents > diff.txt || fail "get -r $form twice: $(head -n 3 diff.txt)"
done
(mkdir -p here && cd here && cp_well get -r demo:sub/.) && diff -r "$tree/sub" here || fail "get -r DIR/. without a destination"
mkdir "$tree/special" && chmod 755 "$tree/special"
truncate -s 20M "$tree/special/hole" && echo end >> "$tree/special/hole"
echo linked > "$tree/special/one" && ln "$tree/special/one" "$tree/special/two" && ln "$tree/special/one" "$tree/special/three"
chmod 644 "$tree"/special/*
cp_well get -r demo:special special
diff -r "$tree/special" special > diff.txt || fail "get -r of links: $(head -n 3 diff.txt)"
[ "$(stat -c %b special/hole)" -lt 2000 ] || fail "a hole takes $(stat -c %b special/hole) blocks"
[ "$(stat -c %h special/two)" = 3 ] || fail "$(stat -c %h special/two) names of one file, not 3"
cp_well get -rC --json demo:special/. special && want out files 2
[ "$(stat -c %h special/two)" = 3 ] || fail "$(stat -c %h special/two) names of one file after get -C, not 3"
echo more > "$tree/special/more"
chmod 644 "$tree/special/more"
chmod 555 "$tree/special"
cp_well get -rp demo:special held && cp_well get -rp demo:special/. held && cp_well get -rpC demo:special/. held
[ "$(stat -c %a held)" = 555 ] || fail "mode of a directory with get -rp: $(stat -c %a held)"
if setpriv --reuid=65534 --regid=65534 --clear-groups true 2> /dev/null; then
	mkdir -m 777 others && mkdir others/a && chmod 777 others/a
	for way in -rpC -rp -r; do
		setpriv --reuid=65534 --regid=65534 --clear-groups "$afscp" -s "$where" get $way demo:special others/a > out 2>&1 ||
			fail "get $way into a directory of mode 0555: $(cat out)"
		rm -f others/a/special/one
	done
fi
chmod 755 "$tree/special"
rm -rf "$tree/special"

# The volume is read-only: each change is refused, with the remedy, and command lines are checked.
readonly_='name the read-write volume'
refused 1 "$readonly_" cp_ put "$tree/hello.txt" demo:
refused 1 "$readonly_" cp_ rm demo:hello.txt
refused 1 "$readonly_" cp_ mkdir demo:new
refused 1 "$readonly_" cp_ mv demo:hello.txt demo:other
refused 1 "$readonly_" cp_ ln demo:hello.txt demo:other
refused 1 "$readonly_" cp_ ln -s text demo:other
refused 1 "$readonly_" cp_ ln --mount user demo:other
refused 1 "$readonly_" cp_ chmod 600 demo:hello.txt
refused 1 "$readonly_" cp_ lock demo:hello.txt true
refused 1 "$readonly_" cp_ acl demo: someone read
refused 1 "$readonly_" cp_ bench demo: --mix read=1
cp_well acl demo: && grep -q '^ rl' out || fail "acl: $(cat out)"
cp_well lock -s demo:hello.txt echo -s there && [ "$(cat out)" = '-s there' ] || fail "lock: $(cat out)"
refused 2 'has no rights' cp_ acl demo: someone
refused 2 'rlidwka' cp_ acl demo: someone +r
refused 2 'not a mode' cp_ chmod 9 demo:hello.txt
refused 2 'read=70' cp_ bench demo: --mix walk=1
refused 2 'range' cp_ bench demo: --mix read=1 --size 9-8
refused 2 'SOURCE... and VOLUME:PATH' cp_ put demo:
refused 2 'is not VOLUME:PATH' cp_ rm demo

# Every promise was given up, also by copies that failed or were stopped, except the one that was killed.
promises() {
	lines=$(grep -c 'promises allowed' "$work/rxfsd.err")
	kill -USR1 "$server"
	tries=0
	while [ "$(grep -c 'promises allowed' "$work/rxfsd.err")" -eq "$lines" ] && [ $tries -lt 600 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	sed -n 's/.*allowed [0-9]*; promises \([0-9]*\) .*/\1/p' "$work/rxfsd.err" | tail -n 1
}
before=$(promises)
cp_well get -r demo:sub into
cp_well ls -l demo:many
cp_well bench demo:large --clients 3 --seconds 0.2
[ "$(promises)" -le "$before" ] || fail "$before promises have become $(promises)"
[ "$before" -le 4 ] || fail "$before promises were left behind"

# Times are kept; existing files of the same length and time need not be copied again.
touch -d '2001-02-03 04:05:06 UTC' "$tree/sub/deep/file" "$tree/sub/deep"
touch -h -d '2001-02-03 04:05:07 UTC' "$tree/link"
mkdir kept
cp_well get -r demo:sub kept
[ "$(stat -c '%Y' kept/sub/deep/file kept/sub/deep | tr '\n' ' ')" = '981173106 981173106 ' ] ||
	fail "times of the copies: $(stat -c '%y' kept/sub/deep/file kept/sub/deep)"
inode=$(stat -c %i kept/sub/deep/file)
echo longer > kept/sub/one-byte
cp_well get -r -C --json demo:sub kept && [ "$(number out files)" = 1 ] && [ "$(number out skipped)" = 1 ] ||
	fail "--continue: $(cat out)"
[ "$(stat -c %i kept/sub/deep/file)" = "$inode" ] && same "$tree/sub/one-byte" kept/sub/one-byte ||
	fail "--continue copied the wrong files"

# Several sources; a symbolic link as the destination is followed.
mkdir several
cp_well get demo:hello.txt demo:sub/one-byte demo:empty several && same "$tree/hello.txt" several/hello.txt &&
	same "$tree/sub/one-byte" several/one-byte
refused 1 'no such file' cp_ get demo:nothing demo:large several
same "$tree/large" several/large
refused 1 'as several sources require' cp_ get demo:hello.txt demo:large several/hello.txt
ln -s several/large pointer
cp_well get demo:hello.txt pointer && same "$tree/hello.txt" several/large
[ -L pointer ] || fail "the link at the destination was replaced"
refused 1 'no such directory' cp_ get demo:hello.txt newdir/

what="ls --json"
cp_well ls --json demo:sub && grep -q '"name": "one-byte"' out && grep -q '"type": "directory"' out ||
	fail "ls --json: $(cat out)"

# Unreadable objects are skipped: the rest is copied, and kept. (rxfsd lists such an object and refuses to read it.)
mkdir "$tree/mixed" "$tree/mixed/locked" "$tree/mixed/z"
for f in a b z/c locked/d; do echo $f > "$tree/mixed/$f"; done
chmod 755 "$tree/mixed" "$tree/mixed/z"
chmod 644 "$tree/mixed/a" "$tree/mixed/z/c" "$tree/mixed/locked/d"
chmod 600 "$tree/mixed/b"
chmod 700 "$tree/mixed/locked"
"$afscp" -s "$where" get -r demo:mixed mixed > out 2> err
rc=$?
[ $rc -eq 1 ] || fail "a copy with unreadable objects ended with $rc"
same "$tree/mixed/a" mixed/a
same "$tree/mixed/z/c" mixed/z/c
[ "$(wc -l < err)" -eq 3 ] && grep -q 'mixed/b: Permission denied' err && grep -q 'mixed/locked: Permission denied' err &&
	grep -q '2 files copied, 2 objects failed$' err || fail "unreadable objects: $(cat err)"

# The server restarts during a copy and a bench: they wait for it, and report that once.
ports=${where#127.0.0.1:}
mkdir "$tree/wood"
i=0
while [ $i -lt 400 ]; do
	seq $i 3000 > "$tree/wood/f$i"
	i=$((i + 1))
done
chmod 755 "$tree/wood"
chmod 644 "$tree"/wood/*
"$afscp" -s "$where" get -r demo:wood wood > out 2> err &
copier=$!
"$afscp" -s "$where" bench demo:large --clients 2 --seconds 3 --range 10000 --json > bench.out 2> bench.err &
bench=$!
servers="$servers $copier $bench"
tries=0
until [ "$(ls -A wood 2> /dev/null | wc -l)" -gt 20 ]; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] && kill -0 $copier 2> /dev/null || break
	sleep 0.01
done
stop_server $server TERM || fail "rxfsd ended with $?"
"$rxfsd" --export "$tree" --volume demo --port "${ports#*:}" --vl-port "${ports%:*}" --state "$work/state" \
	> "$work/rxfsd2.out" 2> "$work/rxfsd2.err" &
server=$!
servers="$servers $server"
wait_for "$work/rxfsd2.out" 'fs .* vl ' $server || fail "rxfsd did not start again: $(cat "$work/rxfsd2.err")"
wait $copier || fail "a copy did not survive a restart: $(head -n 3 err)"
wait $bench || fail "bench did not survive a restart: $(cat bench.err)"
diff -r "$tree/wood" wood > diff.txt || fail "copied across a restart: $(head -n 3 diff.txt)"
[ "$(wc -l < err)" -le 1 ] || fail "a restart was reported more than once: $(cat err)"
what="bench across a restart"
want_more bench.out calls 2

# The server ends while afscp is idle: the error has its address.
stop_server $server TERM || fail "rxfsd ended with $?"
refused 1 'it is running' "$afscp" -s "$where" --retry 0 --dead-ms 1000 ls demo:/

result
