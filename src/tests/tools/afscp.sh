# SPDX-License-Identifier: BSD-2-Clause
# afscp against rxfsd on loopback: every command, every kind of destination, and what can go wrong.

. "$top_srcdir/src/tests/tools/lib.sh"

[ -x "$rxfsd" ] || { echo "SKIP: rxfsd is not built"; exit 77; }

tree=$work/export
mkdir -p "$tree/sub/deep" "$tree/many" || exit 99
chmod 755 "$work" "$tree" "$tree/sub" "$tree/sub/deep" "$tree/many"
echo 'hello, world' > "$tree/hello.txt"
: > "$tree/empty"
printf 'x' > "$tree/sub/one-byte"
echo deep > "$tree/sub/deep/file"
# Numbers in the data: a block in the wrong place shows.
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

"$rxfsd" --export "$tree" --volume demo --port 0 --vl-port 0 --state "$work/state" \
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
	[ ! -s "$work/err" ] || fail "afscp $* said: $(head -n 3 "$work/err")"
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

# get -r: whole trees, new and into one that is there.
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

# bench, and reports.
what=bench
cp_well bench demo:large --clients 4 --seconds 0.5 --range 100000 --json && {
	want_more out bytes 0
	want_more out calls 4
	want_more out fairness_min_mean 0
	want out clients 4
}
cp_well bench demo:large --seconds 0.3 && grep -q '^bench: ' out || fail "bench: $(cat out)"
what="get --json"
cp_well get demo:large /dev/null --json && want out bytes "$(stat -c %s "$tree/large")"
cp_well get --stats demo:large /dev/null && grep -q '^copied: ' out || fail "get --stats: $(cat out)"

# What goes wrong: one line, status 1, nothing left behind.
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
refused 1 'nothing' cp_ stat demo:nothing
[ ! -c /dev/full ] || refused 1 'no space left' cp_ get demo:large /dev/full
[ -z "$(ls -A empty-place)" ] || fail "left behind: $(ls -A empty-place)"

# A signal while the reader of a pipe does not read: it ends at once.
mkfifo slow
exec 9<> slow
"$afscp" -s "$where" get demo:large slow 2> err &
copier=$!
dd bs=1 count=1 <&9 > first 2> /dev/null
kill -TERM $copier
wait $copier
[ $? -ne 0 ] || fail "a copy that was stopped claims success"
exec 9>&-

# A signal in the middle of a file: nothing is left, the old one is neither lost nor changed.
echo old > empty-place/huge
truncate -s 40G "$tree/huge" && chmod 644 "$tree/huge"
(cd empty-place && exec "$afscp" -s "$where" get demo:huge 2> ../err) &
copier=$!
tries=0
while [ -z "$(find empty-place -name ".huge.*")" ]; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] && kill -0 $copier 2> /dev/null || break
	sleep 0.05
done
kill -TERM $copier
wait $copier
rc=$?
[ $rc -eq 1 ] && grep -q interrupted err || fail "a copy that was stopped ended with $rc: $(cat err)"
[ "$(cat empty-place/huge)" = old ] || fail "the old file is gone"
[ "$(ls -A empty-place)" = huge ] || fail "left behind: $(ls -A empty-place)"

# The server goes away in the middle of nothing: said with an address.
stop_server $server TERM || fail "rxfsd ended with $?"
refused 1 'is it running' "$afscp" -s "$where" --dead-ms 1000 ls demo:/

result
