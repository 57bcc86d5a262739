# SPDX-License-Identifier: BSD-2-Clause
# afscp put of a large file to a server with two addresses, over two emulated links: both carry it, one dies or never answers, both die, the
# server restarts, two commands store one file. The contents appear in one step.

link='none,rate=60Mbit,delay=5ms'
. "$top_srcdir/src/tests/tools/twolinks.sh"

make_volume home
start_server() {
	start_far_server --store store --allow-anonymous-writes --advertise "$RXW_FAR4" --advertise "$RXW_FAR4_2"
}
start_server

cp_() { "$afscp" -q -s "$RXW_FAR4:7003:7000" "$@" 2> err < /dev/null; }
here() { $RXW_FAR "$afscp" -q -s "127.0.0.1:7003:7000" "$@" > here.out 2>&1 < /dev/null; }
# same FILE: the server has these bytes under the name "big".
same() {
	rm -f copy
	here get home:/big copy || fail "$2: get: $(head -n 3 here.out)"
	cmp -s "$1" copy || fail "$2: the file differs"
}
links() { echo "$2" > "$RXW_LINK/$1"; }
# when_begun PID: waits until the server has bytes of a session that has begun after the last call of now().
now() { : > mark; }
when_begun() {
	tries=0
	until [ "$(find store/files/new -type f -newer mark -size +600k 2> /dev/null | wc -l)" -ge 1 ]; do
		kill -0 "$1" 2> /dev/null && [ $((tries += 1)) -lt 3000 ] || { fail "the put has not begun"; return 1; }
		sleep 0.02
	done
}

# sent DEVICE: the bytes that it has sent.
sent() { awk -v device="$1:" '$1 == device { print $10 }' /proc/net/dev; }
# when_both_carry PID BYTES BYTES: waits until each path has sent 200 kB more.
when_both_carry() {
	tries=0
	until [ $(($(sent wire0) - $2)) -gt 200000 ] && [ $(($(sent wire1) - $3)) -gt 200000 ]; do
		kill -0 "$1" 2> /dev/null && [ $((tries += 1)) -lt 3000 ] || { fail "both do not carry"; return 1; }
		sleep 0.02
	done
}

head -c 17825793 /dev/urandom > big
head -c 17825793 /dev/zero | tr '\0' n > new

# Both carry it; nothing of it shows before the end.
cp_ put --json big home:/big > both || fail "put ended with $?: $(head -n 3 err)"
same big both
set -- $(uses both bytes)
[ "$1" -gt 1500000 ] && [ "$2" -gt 1500000 ] && [ $(($1 + $2)) -ge 17825793 ] || fail "bytes of the paths: $*"

# One path on request.
cp_ put --json --paths 1 new home:/big > one || fail "put --paths 1 ended with $?: $(head -n 3 err)"
same new one
[ "$(uses one bytes)" = "none none" ] || fail "one: $(uses one bytes)"

# A path dies in the middle: the first, or the second. The other one takes longer than until that is noticed. The contents were others before.
from=big
for which in commands commands2; do
	other=$([ $which = commands ] && echo commands2 || echo commands)
	now
	set -- "$(sent wire0)" "$(sent wire1)"
	cp_ put --json $from home:/big > died &
	put=$!
	when_begun $put && when_both_carry $put "$@" && links $which 'hole yes' && links $other 'rate 15Mbit'
	wait $put || fail "$which: put ended with $?: $(head -n 3 err)"
	links $which 'hole no'
	links $other 'rate 60Mbit'
	same $from $which
	set -- $(uses died losses)
	[ $(($1 + $2)) -ge 1 ] || fail "$which: no loss was noticed: $*"
	from=new
done

# The second one never answers.
links commands2 'hole yes'
cp_ put --json big home:/big > silent || fail "silent: put ended with $?: $(head -n 3 err)"
same big silent
set -- $(uses silent bytes)
[ "$2" -eq 0 ] || fail "silent: $*"
links commands2 'hole no'

# Both die: one message, and the file is as it was. The server drops what had come.
now
cp_ put --timeout 2s --retry 0 new home:/big &
put=$!
when_begun $put && links commands 'hole yes' && links commands2 'hole yes'
wait $put && fail "both: put ended well"
[ "$(grep -c 'within 2 s' err)" -eq 1 ] || fail "both: $(head -n 3 err)"
links commands 'hole no'
links commands2 'hole no'
same big both

# A signal in the middle: the file is as it was, and the space of what had come is free soon, when the calls have ended.
now
"$afscp" -q -s "$RXW_FAR4:7003:7000" put new home:/big 2> err < /dev/null &
put=$!
when_begun $put && kill $put
wait $put 2> /dev/null && fail "put ended well in spite of SIGTERM"
tries=0
while [ -n "$(find store/files/new -type f -newer mark -size +600k 2> /dev/null)" ]; do
	[ $((tries += 1)) -lt 1000 ] || { fail "SIGTERM: the session has not ended"; break; }
	sleep 0.02
done
same big SIGTERM

# The server is killed in the middle, and comes back: the put begins anew.
now
cp_ put --retry 60s new home:/big &
put=$!
if when_begun $put; then
	kill -9 $server
	wait $server 2> /dev/null
	start_server
fi
wait $put || fail "restart: put ended with $?: $(head -n 3 err)"
same new restart

# Two commands at the same time: one of the two contents, whole.
cp_ put big home:/big &
put=$!
"$afscp" -q -s "$RXW_FAR4:7003:7000" put new home:/big 2> err2 < /dev/null &
other=$!
wait $put || fail "two: put ended with $?: $(head -n 3 err)"
wait $other || fail "two: put ended with $?: $(head -n 3 err2)"
here get home:/big copy2 || fail "two: get: $(head -n 3 here.out)"
cmp -s big copy2 || cmp -s new copy2 || fail "two: the file is a mixture"

# A tree, and a file with holes.
mkdir tree && cp big tree/a && cp new tree/b && truncate -s 300M tree/c && dd if=big of=tree/c bs=1M seek=100 count=9 conv=notrunc 2> /dev/null
cp_ put -r tree home:/ || fail "tree: put ended with $?: $(head -n 3 err)"
here get -r home:/tree got || fail "tree: get: $(head -n 3 here.out)"
for name in a b c; do cmp -s tree/$name got/$name || fail "tree: $name differs"; done

# sync: large files go over both paths, new ones and changed ones; a small one and a limit of the rate do not need the second.
cp_ sync --json tree/ home:/synced > sync.json || fail "sync: ended with $?: $(head -n 3 err)"
tail -n 1 sync.json > synced
set -- $(uses synced bytes)
[ "$1" -gt 3000000 ] && [ "$2" -gt 3000000 ] && [ $(($1 + $2)) -ge 35651586 ] || fail "sync: bytes of the paths: $*"
cp new tree/a && head -c 1000 big > tree/small
cp_ sync --stats tree/ home:/synced > stats || fail "sync again: ended with $?: $(head -n 3 err)"
grep -q '4 files compared, 2 copied (17826793 bytes)' stats && [ "$(grep -c '^ *path .* RTT ' stats)" = 2 ] || fail "stats: $(cat stats)"
cp_ sync --stats tree/ home:/synced > stats || fail "sync of nothing: ended with $?: $(head -n 3 err)"
grep -q '4 files compared, 0 copied (0 bytes)' stats || fail "stats of nothing: $(cat stats)"
rm -rf got
here get -rp home:/synced got || fail "synced: get: $(head -n 3 here.out)"
diff -r tree got || fail "sync: the trees differ"
[ "$(cd tree && stat -c '%n %Y %a' -- *)" = "$(cd got && stat -c '%n %Y %a' -- *)" ] || fail "sync: times or modes differ"

# A source that changes while it goes over both paths: the later contents, whole; rename over it, as well.
cp big tree/b
now
cp_ sync tree/ home:/synced &
sync=$!
when_begun $sync && cat new > tree/b
wait $sync || fail "changed: sync ended with $?: $(head -n 3 err)"
here get home:/synced/b copy3 || fail "changed: get: $(head -n 3 here.out)"
cmp -s tree/b copy3 || fail "changed: the file differs"

# Nothing is left of sessions that have ended.
[ -z "$(here ls home: | grep -v '^[a-z]*$')" ] || fail "left: $(here ls home:)"
result
