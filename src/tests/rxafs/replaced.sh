# SPDX-License-Identifier: BSD-2-Clause
# Volumes that are removed, made again under their names, cloned for the first time, off-line, and moved to another server; and what
# df(1) shows when nobody answers.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs mnt
ctl=$top_builddir/src/rxafs/rxafsctl
store() { "$rxvol" -S "$work/store" "$@" > "$work/rxvol.out" 2>&1 || fail "rxvol $*: $(cat "$work/rxvol.out")"; }
reads() { [ "$(timeout 50 cat "$work/mnt/$1" 2> "$work/cat.err")" = "$2" ]; }
rw=.test.example/rw

echo first > "$work/mnt/$rw/file" || fail "a file cannot be written"
reads "$rw/file" first || fail "the first volume"

# Removed: at once an error that says so, and the mount point can still be seen.
store remove work
wait_until 60 sh -c "! ls '$work/mnt/$rw' 2> '$work/ls.err'" || fail "a volume that was removed can be listed"
begin=$(date +%s)
ls "$work/mnt/$rw" 2> "$work/ls.err" && fail "a volume that was removed can be listed again"
grep -q 'No such device' "$work/ls.err" || fail "a volume that was removed: $(cat "$work/ls.err")"
[ $(($(date +%s) - begin)) -lt 40 ] || fail "the error took $(($(date +%s) - begin)) s"
ls -l "$work/mnt/.test.example" > "$work/ls.out" 2>&1 || fail "the directory of its mount points: $(cat "$work/ls.out")"

# Another one with its name: that it is unknown is remembered for 5 s.
store create work --acl 'system:anyuser rlidwka'
wait_until 60 sh -c "{ echo second > '$work/mnt/$rw/file'; } 2> /dev/null" || fail "the second volume: $(ls "$work/mnt/$rw" 2>&1)"
reads "$rw/file" second || fail "the second volume has other contents"
reads ".test.example/work/file" second || fail "by the other mount point: $(cat "$work/cat.err")"

# The first clone is looked for when the record is renewed: after an hour, or when a user says so. In a read-only volume a mount
# point leads to the read-only one.
store clone work
echo third > "$work/mnt/$rw/file"
store clone root.cell
echo new > "$work/mnt/.test.example/new"
reads test.example/new new || fail "before the record is renewed: $(cat "$work/cat.err")"
"$ctl" flush "$work/mnt/test.example" || fail "rxafsctl flush"
"$ctl" flush "$work/mnt/$rw" || fail "rxafsctl flush of the volume behind it"
[ -e "$work/mnt/test.example/new" ] && fail "the first clone of root.cell is not followed"
reads test.example/work/file second || fail "the clone of the volume behind it: $(cat "$work/mnt/test.example/work/file")"
reads "$rw/file" third || fail "the read-write path"
reads .test.example/new new || fail "the read-write path of root.cell"

# Off-line: the reason is told.
store offline work --message 'back at noon'
"$ctl" examine "$work/mnt/$rw" > "$work/examine.out" 2>&1 || fail "rxafsctl examine: $(cat "$work/examine.out")"
grep -q 'back at noon' "$work/examine.out" || fail "examine does not tell the reason: $(cat "$work/examine.out")"
cat "$work/mnt/$rw/other" > /dev/null 2>&1 &
reader=$!
wait_until 60 grep -q 'off-line: back at noon' "$work/mnt.err" || fail "the log does not tell the reason"
kill -9 $reader
wait $reader 2> /dev/null
timeout -k 1 5 cat "$work/mnt/$rw/other" > /dev/null 2>&1
[ "$(grep -c 'back at noon' "$work/mnt.err")" = 1 ] || fail "the log tells the reason more than once"
store online work
wait_until 60 reads "$rw/file" third || fail "on-line again: $(cat "$work/cat.err")"

# The space that was seen last, while nobody answers; an error where nothing was seen.
df=$(df -k "$work/mnt/$rw" | tail -n 1)
kill -STOP "$server"
sleep 6
[ "$(df -k "$work/mnt/$rw" | tail -n 1 | cut -d' ' -f1-3)" = "$(echo "$df" | cut -d' ' -f1-3)" ] || fail "df without a server: $(df -k "$work/mnt/$rw" 2>&1)"
kill -CONT "$server"
unmount_afs mnt "$daemon"
mount_afs cold
stat "$work/cold/test.example" > /dev/null 2>&1
kill -STOP "$server"
timeout 20 df "$work/cold/test.example" > "$work/df.out" 2>&1 && fail "df of a volume that was never seen: $(cat "$work/df.out")"
kill -CONT "$server"
unmount_afs cold "$daemon"
result
