# SPDX-License-Identifier: BSD-2-Clause
# afscp with the store of rxfsd on loopback: commands that change a volume, and their failures.

. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol

for program in "$rxfsd" "$rxvol"; do
	[ -x "$program" ] || { echo "SKIP: $program is not built"; exit 77; }
done
cd "$work" || exit 99
umask 022
"$rxvol" -S store create small --quota 70M --acl 'system:anyuser all' > made || { cat made; exit 99; }
"$rxvol" -S store create tiny --quota 3M --acl 'system:anyuser all' > made || { cat made; exit 99; }
for volume in home other; do
	"$rxvol" -S store create $volume --acl 'system:anyuser all' > made || { cat made; exit 99; }
done
"$rxfsd" --store store --port 0 --vl-port 0 > rxfsd.out 2> rxfsd.err &
server=$!
servers="$servers $server"
wait_for rxfsd.out 'fs .* vl ' $server || { cat rxfsd.out rxfsd.err; echo "rxfsd did not start"; exit 1; }
where=$(sed -n 's/.*fs 127\.0\.0\.1:\([0-9]*\) vl 127\.0\.0\.1:\([0-9]*\).*/127.0.0.1:\2:\1/p' rxfsd.out)

cp_() { "$afscp" -s "$where" "$@"; }
cp_well() {
	cp_ "$@" > out 2> err < /dev/null || {
		fail "afscp $* ended with $?: $(head -n 3 err)"
		return 1
	}
	[ ! -s err ] || fail "afscp $* printed: $(head -n 3 err)"
}
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
# holds PATH TEXT: whether a file of the volume has that line only.
holds() {
	cp_well get "$1" - && [ "$(cat out)" = "$2" ] || fail "$1 has: $(head -c 100 out)"
}

# Several sources: two that would get the same name are not mixed.
mkdir a b into
echo first > a/same
echo other > b/same
echo alone > b/alone
cp_well mkdir home:/dup home:/dup/a home:/dup/b
for jobs in 1 3; do
	refused 1 '"b/same": not stored: "a/same" gets the same name' cp_ put -j $jobs a/same b/same b/alone home:/dup
	holds home:/dup/same first
	holds home:/dup/alone alone
	cp_well rm home:/dup/same home:/dup/alone
done
cp_well put -r a b/. home:/dup
cp_well put a/same home:/dup/a
cp_well put b/same home:/dup/b
refused 1 'home:/dup/b/same: not copied: home:/dup/a/same gets the same name' \
	cp_ get home:/dup/a/same home:/dup/b/same home:/dup/alone into
[ "$(cat into/same)" = first ] && [ -f into/alone ] || fail "get of several: $(head into/*)"
cp_well put a b -r home:/dup
cp_well get -r home:/dup/a home:/dup/b into
[ "$(cat into/b/same)" = other ] || fail "get -r of several: $(head into/*/*)"

# A source that changes during the copy: --continue does not take the file for a complete one, although its
# length and its time in seconds are those of the source. The threads are busy with pipes when it changes.
mkfifo pipe1 pipe2 pipe3
echo before > source
touch -d @1000000000.1 source
cp_well mkdir home:/changed
cp_ put -j 2 pipe1 pipe2 source pipe3 home:/changed 2> err &
put=$!
exec 3> pipe1 4> pipe2 5> pipe3
echo afters > source
touch -d @1000000000.2 source
exec 3>&- 4>&- 5>&-
wait $put
[ $? -eq 1 ] && grep -q 'changed during the copy' err || fail "put of a source that changed: $(cat err)"
what="put -C of a source that changed"
cp_well put -C --json source home:/changed && want out skipped 0 && want out files 1
holds home:/changed/source afters
cp_well put -C --json source home:/changed && want out skipped 1 && want out files 0

# Two puts of one file: each has a part of its own, which the other one can neither remove nor rename.
parts() { cp_ ls home: 2> err | grep -c '^\.both\..*\.afscp-part$'; }
cp_well put a/same home:/both
mkfifo both1 both2
"$afscp" -s "$where" put - home:/both < both1 2> told &
first=$!
exec 3> both1
tries=0
until [ "$(parts)" = 1 ] || [ $((tries += 1)) -gt 300 ]; do sleep 0.1; done
"$afscp" -s "$where" put - home:/both < both2 2> told2 3>&- &
second=$!
exec 4> both2
until [ "$(parts)" = 2 ] || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done
[ "$(parts)" = 2 ] || fail "two puts of one file have $(parts) parts"
echo earlier >&3
exec 3>&-
wait $first || fail "the earlier put of one file: $(cat told)"
holds home:/both earlier
echo later >&4
exec 4>&-
wait $second || fail "the later put of one file: $(cat told2)"
holds home:/both later
[ "$(parts)" = 0 ] || fail "parts are left"
# Of one source at a time, too: only one of them has the part that -C finds.
head -c 300000 /dev/urandom > twice
: > told
for i in 1 2 3 4 5 6; do "$afscp" -s "$where" put twice home:/both 2>> told || echo "put $i failed" >> told; done &
first=$!
for i in 1 2 3 4 5 6; do cp_well put twice home:/both; done
wait $first
[ ! -s told ] || fail "put beside put of one source: $(cat told)"
cp_well get home:/both got && same twice got
[ "$(parts)" = 0 ] || fail "parts are left"

# A new file that another put replaces before it has bytes: that one stays, whatever becomes of the first.
mkfifo new
"$afscp" -s "$where" put - home:/new < new 2> told &
first=$!
exec 3> new
until cp_ stat home:/new > out 2> err || [ $((tries += 1)) -gt 900 ]; do sleep 0.1; done
cp_well put b/same home:/new
echo first >&3
exec 3>&-
wait $first && fail "put of a new file that another one replaced"
grep -q 'another client has removed it' told || fail "put of a new file: $(cat told)"
holds home:/new other
new_files() { for i in 1 2 3 4 5 6; do "$afscp" -s "$where" put twice home:/new$i 2>> $1 || echo "put $i" >> $1; done; }
new_files told1 &
first=$!
new_files told2
wait $first
[ ! -s told1 ] && [ ! -s told2 ] || fail "two puts of a new file: $(cat told1 told2)"
for i in 1 2 3 4 5 6; do cp_well get home:/new$i got && same twice got; done
# A new file of which a part is stored when another client replaces or removes it: the put stores it anew.
truncate -s 260000000 anew
python3 -c 'import os
f = os.open("anew", os.O_WRONLY)
for at in range(0, 260000000, 1300000):
    os.pwrite(f, b"%4096d" % at, at)'
size_of_anew() { cp_ ls -l home:/anew 2> err | sed -n 's/^-[^ ]* *[0-9]* *[0-9]* *\([0-9]*\) .*/\1/p'; }
# begin_anew: stops a put that has stored some bytes of the file; fails if none was stopped in time.
begin_anew() {
	for attempt in 1 2 3 4 5 6 7 8; do
		cp_well rm -f home:/anew
		"$afscp" -s "$where" put anew home:/ 2> told &
		put=$!
		while kill -s STOP $put 2> /dev/null; do
			length=$(size_of_anew)
			[ "${length:-0}" -gt 0 ] && [ "$length" -lt 250000000 ] && return 0
			kill -s CONT $put
			sleep 0.002
			kill -0 $put 2> /dev/null || break
		done
		wait $put
	done
	echo "not checked: no put was caught while it stored a new file"
	return 1
}
for command in "put b/same home:/anew" "rm home:/anew"; do
	begin_anew || continue
	cp_well $command
	kill -s CONT $put
	wait $put && [ ! -s told ] || fail "put of a new file and $command: $(cat told)"
	cp_well get home:/anew got && same anew got
done
rm anew got && cp_well rm home:/anew
# In place, where another put writes between two calls of this one.
cp_well put a/same home:/shared && cp_well ln home:/shared home:/shared2
mkfifo shared
"$afscp" -s "$where" put - home:/shared < shared 2> told &
first=$!
exec 3> shared
head -c 8388608 /dev/zero >&3
until cp_ ls -l home:/shared 2> err | grep -q ' 8388608 ' || [ $((tries += 1)) -gt 1200 ]; do sleep 0.1; done
cp_well put b/same home:/shared2
echo first >&3
exec 3>&-
wait $first && fail "two puts in place"
grep -q 'somebody else writes to it' told || fail "two puts in place: $(cat told)"

# A mount point, which others use as well, is not replaced.
mkdir mounts
echo text > mounts/a
ln -s text mounts/b
cp_well mkdir home:/mounts && cp_well ln --mount other home:/mounts/a && cp_well ln --mount other home:/mounts/b
cp_ put -r mounts home:/ 2> told && fail "put -r over mount points"
for name in a b; do
	grep -q "home:/mounts/$name: a mount point of the volume other has this name" told || fail "put -r: $(cat told)"
	cp_well stat home:/mounts/$name && grep -q 'mount point #other' out || fail "the mount point $name is gone"
done

# Files of one time, as a reproducible build makes them: -C does not add to a shorter one that has other contents.
what="put -C of another source of the same time"
for parts in "old new" "equal equal"; do
	printf '%100000s' "${parts% *}" > source
	touch -d @1000000000 source
	cp_well put source home:/changed
	printf '%100000s%100000s' "${parts#* }" more > source
	touch -d @1000000000 source
	cp_well put -C --json source home:/changed && cp_well get home:/changed/source got && same source got
done
cp_well put -C --json source home:/changed && want out skipped 1

# Two names of one file: the threads of -j do not mix two sources there.
mkfifo name1 name2
cp_well mkdir home:/linked && cp_well put a/same home:/linked/name1 && cp_well ln home:/linked/name1 home:/linked/name2
head -c 40000000 /dev/zero | tr '\0' a > name1 &
writers=$!
head -c 40000000 /dev/zero | tr '\0' b > name2 &
cp_well put -j 2 name1 name2 home:/linked
wait $writers $!
cp_well get home:/linked/name1 linked
others=$(tr -d "$(head -c 1 linked)" < linked | wc -c)
[ "$others" -eq 0 ] && [ "$(stat -c %s linked)" = 40000000 ] || fail "$others bytes of the other source"

# mv and ln: a slash at the end means a directory.
cp_well mkdir home:/mv home:/mv/into home:/mv/from
cp_well put a/same home:/mv/one
cp_well put b/same home:/mv/two
cp_well mv home:/mv/one home:/mv/into/
holds home:/mv/into/one first
cp_well mv home:/mv/into/one home:/mv/one
for command in "mv home:/mv/one" "ln home:/mv/one" "ln -s target"; do
	refused 1 'home:/mv/missing/ is not a directory; make it with mkdir' cp_ $command home:/mv/missing/
	refused 1 'home:/mv/two/ is not a directory' cp_ $command home:/mv/two/
done
cp_well mv home:/mv/from home:/mv/renamed/
cp_well ls home:/mv && [ "$(xargs < out)" = "into one renamed two" ] || fail "after mv: $(cat out)"
holds home:/mv/two other

# mkdir, rm, ln: wrong options, things that do not exist.
refused 2 'invalid value "999"' cp_ mkdir -p -m 999 home:/parents/dir
refused 1 'no such file' cp_ ls home:/parents
refused 2 'invalid value "a b"' cp_ ln --mount 'a b' home:/mount
refused 1 'no such file' cp_ rm home:/missing/object
cp_well rm -f home:/missing home:/missing/object home:/dup/missing/object
refused 1 'home:/mv/two: is not a directory' cp_ rm -f home:/mv/two/object
refused 1 'home:/mv/two: is not a directory' cp_ put a/same home:/mv/two/object

# The part of a path that is wrong is named, and the target of a link that leads nowhere.
cp_well ln -s nothere home:/mv/dangling && cp_well ln -s loop home:/mv/loop
for command in "put a/same home:" "get home:"; do
	refused 1 ' home:/mv/two: is not a directory$' cp_ $command/mv/two/object
	refused 1 ' home:/mv/two: is not a directory$' cp_ $command/mv/two/some/object
	refused 1 ' home:/mv//missing/some/object: "missing": no such file' cp_ $command/mv//missing/some/object
	refused 1 ' home:/mv/dangling/object: "nothere": no such file' cp_ $command/mv/dangling/object
	refused 1 ' home:/mv/loop: too many symbolic links$' cp_ $command/mv/loop/object
done
refused 1 ' home:/mv/dangling: "nothere": no such file' cp_ get home:/mv/dangling
refused 1 ' home:/mv/missing: no such file' cp_ get home:/mv/missing

# get -p: the modes of directories as well, new ones and existing ones.
mkdir modes modes/some
echo text > modes/some/file
chmod 0555 modes
chmod 0500 modes/some
cp_well put -rp modes home:/ && cp_well get -r home:/modes without && cp_well get -rp home:/modes with
[ "$(stat -c %a without without/some | xargs)" = "755 700" ] || fail "get -r: $(stat -c %a without without/some)"
[ "$(stat -c %a with with/some | xargs)" = "555 500" ] || fail "get -rp: $(stat -c %a with with/some)"
cp_well get -rp home:/modes/some without/some && [ "$(stat -c %a without/some/some)" = 500 ] || fail "get -rp into"

# A file system without room for the second directory: --keep-going tries the others, and all failures are counted.
cp_well mkdir home:/many home:/many/1 home:/many/2 home:/many/3
on_full() { unshare -rm sh -c 'mount -t tmpfs -o nr_inodes=3 none into && exec "$@"' - "$afscp" -s "$where" "$@" 2> err; }
if unshare -rm mount -t tmpfs none into 2> /dev/null; then
	on_full get -r home:/many into/m
	grep -q '0 files copied, 1 objects failed, the rest was not attempted' err || fail "get -r, full: $(cat err)"
	on_full get -r --keep-going home:/many into/m
	grep -q '0 files copied, 2 objects failed$' err || fail "get -r --keep-going, full: $(cat err)"
fi

# Paths of 1,000 bytes and more do not hide the reason of a failure.
long=$(printf '%0200d' 0)
deep=deep/$long/$long/$long/$long/$long
mkdir -p "$deep"
ln -s "$(printf '%01025d' 0)" "$deep/link"
cp_ put -r deep home:/ 2> err
grep -q 'link: the target of the link is longer than 1024 bytes$' err || fail "put of a long path: $(cat err)"

# A tree of which nothing can be stored.
"$rxvol" -S store clone other > made || fail "clone: $(cat made)"
cp_ put -r a other.readonly:/ 2> err
grep -q 'a: 0 files copied, 1 objects failed, the rest was not attempted$' err || fail "put, read-only: $(cat err)"

# Missing rights: each message says which.
cp_well mkdir home:/closed && cp_well put a/same home:/closed && cp_well acl home:/closed system:anyuser l
refused 1 'ermission denied.*you need the right l (lookup) on the directory, and r (read)' cp_ get home:/closed/same -
refused 1 'ermission denied.*you need the right i (insert)' cp_ mkdir home:/closed/dir
refused 1 'ermission denied.*you need the right a (administer)' cp_ acl home:/closed system:anyuser all
refused 1 'the server knows no user or group of one of the names' cp_ acl home:/ nobody-at-all read
refused 1 'the server does not accept the name' cp_ mkdir home:/x@sys

# chmod: bits that only administrators may set.
cp_well put a/same home:/dup/same && cp_well chmod 754 home:/dup/same
refused 1 'the mode is 0755, not 4755: servers keep the first digit for administrators' cp_ chmod 4755 home:/dup/same
cp_well chmod u-x home:/dup/same && cp_well stat home:/dup/same && grep -q 'mode  *0655 ' out || fail "chmod: $(cat out)"

# JSON with names that are not UTF-8.
odd=$(printf 'odd\377')
as_text=$(printf '"\(path\|name\)": "/*odd\303\277"')
cp_well mkdir "home:/$odd"
for command in "ls --json home:/" "ls --json home:/$odd" "stat --json home:/$odd" "acl --json home:/$odd"; do
	cp_well $command && grep -q "$as_text" out || fail "$command: $(cat out)"
done
cp_well ls --json home:/ && grep -q '"name_hex": "6f6464ff"' out || fail "ls --json: $(cat out)"

# Times that AFS cannot have become the nearest ones.
touch -d 1960-01-01T00:00Z source
cp_well put source home:/old && cp_well get home:/old . && [ "$(stat -c %Y old)" = 0 ] || fail "time $(stat -c %Y old)"


# put over an existing file: the old contents stay if it fails. The second call of 64 MiB finds the quota used up.
head -c 80000000 /dev/zero | tr '\0' n > large
head -c 2000000 /dev/zero | tr '\0' o > old
head -c 2100000 /dev/zero | tr '\0' p > other
touch -d @1000000000 large old other
cp_well put old small:/f
cp_well chmod 640 small:/f
refused 1 'quota' cp_ put large small:/f
cp_well get small:/f got && same old got
cp_well ls small: && [ "$(cat out)" = f ] || fail "left after a put that failed: $(cat out)"
# Room for one of two: in place.
cp_well put other tiny:/f
cp_well put old tiny:/f && cp_well get tiny:/f got && same old got
cp_well ls tiny: && [ "$(cat out)" = f ] || fail "left after a put in place: $(cat out)"
refused 1 'quota' cp_ put large tiny:/f
cp_well get tiny:/f got && same old got
# The mode stays; with -p it is that of the source. Bits above 0777 are not copied.
cp_well put other small:/f && cp_well ls -l small:/f && grep -q '^-rw-r----- ' out || fail "mode after put: $(cat out)"
chmod 6604 other
cp_well put -p other small:/f && cp_well stat small:/f && grep -q 'mode  *0604 ' out || fail "mode after put -p: $(cat out)"
# No link is replaced: other names, and links on the way, lead to the new contents.
cp_well ln small:/f small:/f2 && cp_well ln -s f2 small:/f3
cp_well put old small:/f3 && cp_well get small:/f got && same old got
cp_well rm small:/f2 small:/f3
# Without the right d the file is written in place, and the message tells what is lost.
"$rxvol" -S store acl small system:anyuser rliwk > out || fail "rxvol acl: $(cat out)"
cp_well put other small:/f && cp_well get small:/f got && same other got
cp_ put large small:/f 2> err && fail "a file of 80 MB fits"
grep -q 'old contents are gone' err || fail "put in place: $(cat err)"
"$rxvol" -S store acl small system:anyuser all > out || fail "rxvol acl: $(cat out)"
# A file of the user that looks like a part is none.
touch -d @1100000000 old; cp_well put old small:/f && cp_well put old small:/.f.afscp-part
cp_well put old small:/f && cp_well ln -s old small:/g && cp_well put old small:/.g.afscp-part
cp_well ln -sf older small:/g && cp_well ls small: && [ "$(xargs < out)" = ".f.afscp-part .g.afscp-part f g" ] ||
	fail "files of the user: $(xargs < out)"
cp_well rm small:/.f.afscp-part small:/.g.afscp-part small:/g
# Nor a file that somebody has locked: the lock would be one of the old file.
vnode_of() { cp_well stat --json "$1" && number out vnode; }
cp_well put a/same home:/locked
before=$(vnode_of home:/locked)
cp_well lock home:/locked "$afscp" -s "$where" put b/same home:/locked
[ "$(vnode_of home:/locked)" = "$before" ] || fail "a locked file was replaced"
holds home:/locked other
cp_well put a/same home:/locked
[ "$(vnode_of home:/locked)" != "$before" ] || fail "a file without a lock was written in place"
# SIGKILL: the old contents stay, and the part, which -C continues. The process is looked at while it is stopped.
head -c 20000000 large > big
{ head -c 4096 old; head -c 2000000 /dev/zero; } > pieces
dd if=/dev/null of=pieces bs=4096 seek=1000 2> dd.err && cat big >> pieces
fallocate -p -o 4096 -l 4091904 pieces 2> /dev/null
part_of_f() { cp_ ls -l small: 2> err | sed -n 's/^-[^ ]* *1 *[0-9]* *\([0-9]*\) .* \.f\..*\.afscp-part$/\1/p'; }
# begin_part SOURCE: leaves a part of it, with some bytes; fails if the process was never stopped in time.
begin_part() {
	for attempt in 1 2 3 4 5 6 7 8; do
		cp_well put old small:/f
		"$afscp" -s "$where" put "$1" small:/f 2> told &
		put=$!
		while kill -s STOP $put 2> /dev/null; do
			length=$(part_of_f)
			[ "${length:-0}" -gt 0 ] && break
			kill -s CONT $put
			sleep 0.002
			kill -0 $put 2> /dev/null || break
		done
		kill -s KILL $put 2> /dev/null
		wait $put 2> /dev/null
		length=$(part_of_f)
		[ "${length:-0}" -gt 0 ] && return 0
	done
	return 1
}
if begin_part pieces; then
	cp_well get small:/f got && same old got
	what="put -C of a part"
	cp_well put -C --json pieces small:/f && want out bytes $(($(stat -c %s pieces) - length))
	cp_well get small:/f got && same pieces got
	cp_well ls small: && [ "$(cat out)" = f ] || fail "the part is left: $(cat out)"
else
	echo "not checked: no put was caught while it had a part"
fi
# Without -C the next put of the same source replaces it.
if begin_part pieces; then
	cp_well put pieces small:/f && cp_well get small:/f got && same pieces got
	cp_well ls small: && [ "$(cat out)" = f ] || fail "the part is left: $(cat out)"
fi
cp_well put old small:/f
# ln -sf and put -r of a link: the same.
cp_well ln -sf elsewhere small:/f && cp_well stat small:/f && grep -q 'link to elsewhere' out || fail "ln -sf: $(cat out)"
cp_well ls small: && [ "$(cat out)" = f ] || fail "left after ln -sf: $(cat out)"

# Options of ln that would have no effect, and bits of a mode that only administrators set.
refused 2 'only with -s or --mount' cp_ ln -f home:/both home:/more
refused 2 'symbolic link with -s, or' cp_ ln -s --mount other home:/more
refused 1 'mode 0755, not 1755' cp_ mkdir -m 1755 home:/sticky
# A reader of JSON that has gone, and an output that cannot be written.
mkfifo gone
exec 5<> gone 6> gone 5<&-
cp_ ls --json home: >&6 2> told
status=$?
exec 6>&-
[ $status -eq 141 ] && [ ! -s told ] || fail "ls --json to nobody ended with $status: $(cat told)"
if [ -c /dev/full ]; then
	cp_ ls --json home: > /dev/full 2> told
	[ $? -eq 1 ] && grep -q 'No space left' told || fail "ls --json to a full disk: $(cat told)"
fi

# Files that say 0 bytes, or more than they have.
for f in /proc/version /proc/sys/kernel/ostype /sys/kernel/mm/transparent_hugepage/enabled; do
	cat $f > content 2> /dev/null || continue
	cp_well put $f home:/pseudo && cp_well get home:/pseudo got && same content got
done
if [ -r /proc/sys/kernel/pty/max ]; then
	cat /proc/sys/kernel/pty/max > content
	cp_well put -r /proc/sys/kernel/pty home:/ && cp_well get home:/pty/max got && same content got
fi

# Holes of 1 MiB and more are not sent, also behind few bytes.
for at in 0 5000 10000; do
	head -c 4096 old | dd of=holes bs=4096 seek=$at conv=notrunc 2> dd.err || fail "dd: $(cat dd.err)"
done
what="put of holes"
cp_well put --json holes home:/holes && want out bytes "$(stat -c %s holes)"
[ "$(number out packets_sent)" -lt 1000 ] || fail "$(number out packets_sent) packets for 12 KiB"
cp_well get home:/holes got && same holes got

# A directory that is full: one line, which says so.
"$rxvol" -S store create full --acl 'system:anyuser all' > out || fail "rxvol create: $(cat out)"
long=$(head -c 240 /dev/zero | tr '\0' x)
mkdir names more
(cd names && seq 1 7300 | sed "s/.*/$long&/" | xargs touch)
(cd more && touch ${long}a ${long}b ${long}c && mkdir ${long}d && ln -s x ${long}e)
"$rxvol" -q -S store import full names > out 2>&1
refused 1 'full:/x*a: the directory is full' cp_ put /dev/null "full:/${long}a"
cp_ put -r more/. full:/ 2> err
[ $? -eq 1 ] && [ "$(wc -l < err)" -eq 2 ] && grep -q 'the directory is full: 5 more names do not fit' err ||
	fail "put -r into a full directory: $(cat err)"

# Small new files are made and stored some at a time. One that cannot be stored leaves no empty file, and a file of /proc
# among them has its contents.
mkdir -p smalls/sub
for i in 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29; do printf "%0$((i * 1000))d" 0 > smalls/sub/$i; done
: > smalls/none
chmod 444 smalls/sub/11
touch -d @1000000000 smalls/sub/12
what="put -r of small files"
cp_well put -r --json smalls home:/ && want out files 21 && want out bytes "$(cat smalls/sub/* | wc -c)"
cp_well get -r home:/smalls smalls2 && diff -r smalls smalls2 || fail "small files differ"
[ "$(stat -c '%a %Y' smalls2/sub/12)" = "644 1000000000" ] && [ "$(stat -c %a smalls2/sub/11)" = 444 ] ||
	fail "modes and times of small files: $(stat -c '%n %a %Y' smalls2/sub/1[12])"
cp_well put -rC --json smalls home:/ && want out skipped 21 && want out files 0
[ "$(number out calls)" -lt 20 ] || fail "put -C of 21 files: $(number out calls) calls"
if [ -r /proc/sys/kernel/pty/max ]; then
	cp_well put -r /proc/sys/kernel/pty home:/smalls && cp_well get home:/smalls/pty/max got
	cat /proc/sys/kernel/pty/max > content && same content got
fi
cp_well rm -f tiny:/f
rm -rf smalls && mkdir smalls
for i in $(seq 150); do head -c 30000 large > smalls/$i; done
cp_ put -r smalls tiny:/ 2> err && fail "150 files of 30 KB fit into 3 MB"
grep -q 'quota is used up' err && grep -q 'tiny:/smalls: .* files copied, .* failed' err || fail "put -r, quota: $(cat err)"
cp_well ls -l tiny:/smalls && [ "$(grep -c . out)" -gt 20 ] && [ "$(grep -c -v ' 30000 ' out)" -eq 0 ] ||
	fail "put -r, quota: $(grep -v ' 30000 ' out | head -n 3)"

# Space, rights, and the reason why a volume is off-line.
cp_well df small: home:/ && grep -q '^small: .* quota 70.* (.* %); .* free' out && grep -q '^home: .* no limit' out || fail "df: $(cat out)"
what="df --json"
cp_well df --json small: && want out quota_kib 71680
cp_well stat home:/ && grep -q 'rights  *rlidwka of the caller, rlidwka of anyone' out || fail "stat: $(cat out)"
"$rxvol" -S store offline small --message 'back at noon' > out || fail "rxvol offline: $(cat out)"
refused 1 'off-line.*: "back at noon"' cp_ --retry 0 ls small:
refused 1 'off-line.*: "back at noon"' cp_ --retry 0 put old small:/f
"$rxvol" -S store online small > out || fail "rxvol online: $(cat out)"

# Variables of the environment instead of -s and -S.
AFSCP_SERVER=$where "$afscp" ls small: > out 2>&1 || fail "AFSCP_SERVER: $(cat out)"
AFSCP_SERVER=127.0.0.1:x refused 2 'AFSCP_SERVER: invalid' "$afscp" ls small:
AFSCP_SERVER=127.0.0.1:1:1 cp_well ls small:
RXWIRE_STORE=store "$rxvol" list > out 2>&1 || fail "RXWIRE_STORE: $(cat out)"
grep -q small out || fail "RXWIRE_STORE: $(cat out)"

# Patterns: get, ls and rm.
cp_well mkdir -p home:/glob/d1 home:/glob/d2
for f in glob/a.txt glob/b.txt glob/.c.txt glob/x 'glob/[x]' glob/d1/in.txt glob/d2/in.txt; do
	cp_well put a/same "home:/$f"
done
cp_well ls 'home:/glob/*.txt' && [ "$(xargs < out)" = 'a.txt b.txt' ] || fail "ls of a pattern: $(xargs < out)"
cp_well ls -l 'home:/glob/?.txt' && [ "$(wc -l < out)" -eq 2 ] || fail "ls -l of a pattern: $(cat out)"
refused 1 'no such file' cp_ ls 'home:/glob/*.none'
mkdir globbed
cp_well get 'home:/glob/*.txt' globbed && [ "$(ls -A globbed | xargs)" = 'a.txt b.txt' ] || fail "get of a pattern: $(ls -A globbed)"
cp_well get 'home:/glob/[x]' one && [ -f one ] || fail "get of a name like a pattern"
refused 1 'in.txt: not copied: ' cp_ get 'home:/glob/d*/in.txt' globbed
refused 1 'no such file' cp_ get 'home:/glob/*.none' globbed
refused 1 'several sources' cp_ get 'home:/glob/*.txt' -
cp_well rm 'home:/glob/d*/*.txt' 'home:/glob/b*'
cp_well ls home:/glob/d2 && [ ! -s out ] || fail "rm of a pattern: $(cat out)"
cp_well ls home:/glob && [ "$(xargs < out)" = '.c.txt [x] a.txt d1 d2 x' ] || fail "rm of a pattern: $(xargs < out)"

# -v names the files, --json lists them and the errors.
cp_well put a/same home:/glob/a.txt
"$afscp" -s "$where" get -v home:/glob/a.txt globbed > out 2> err && [ "$(cat out)" = home:/glob/a.txt ] || fail "get -v: $(cat out err)"
cp_ get -C --json home:/glob/a.txt home:/glob/x home:/glob/none globbed > out 2> err
[ $? -eq 1 ] && grep -q '"result": "skipped"' out && grep -q '"result": "copied"' out &&
	grep -q '"home:/glob/none: .*no such file' out || fail "get --json: $(cat out)"
cp_ get --json home:/glob/none globbed > out 2> err
[ $? -eq 1 ] && grep -q '"home:/glob/none: .*no such file' out || fail "get --json of nothing: $(cat out)"
cp_well put --json a/same home:/glob/a.txt && grep -q '"name": "home:/glob/a.txt"' out || fail "put --json: $(cat out)"

# A deep tree with few descriptors.
hundred=$(printf 'd/%.0s' $(seq 100))
mkdir deeptree
(cd deeptree && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do mkdir -p "$hundred" && cd "$hundred" && echo $i > file; done)
(ulimit -n 256 && exec "$afscp" -s "$where" put -r deeptree home:/) > out 2> err || fail "put -r of a deep tree: $(head -c 300 err)"
(ulimit -n 256 && exec "$afscp" -s "$where" get -r home:/deeptree deeper) > out 2> err || fail "get -r of a deep tree: $(head -c 300 err)"
[ "$(cd deeptree && find . | wc -l)" = "$(cd deeper && find . | wc -l)" ] && [ "$(find deeper -name file | wc -l)" = 14 ] ||
	fail "of $(find deeptree | wc -l) objects of a deep tree $(find deeper | wc -l) came back"
cp_well rm -r home:/deeptree

result
