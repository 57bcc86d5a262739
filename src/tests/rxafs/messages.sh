# SPDX-License-Identifier: BSD-2-Clause
# rxafsctl with wrong input, and rxafs with a wrong home cell or root volume: what failed, on which thing, and what to do.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs mnt
ctl=$top_builddir/src/rxafs/rxafsctl
dir=$work/mnt/.test.example/rw
mkdir "$dir/sub"
echo text > "$dir/file"
ln -s sub "$dir/link"

# says PATTERN COMMAND...: it fails, and the message has the pattern.
says() {
	pattern=$1
	shift
	timeout 60 "$ctl" "$@" > "$work/said" 2>&1 && fail "$*: succeeds: $(cat "$work/said")"
	grep -q -- "$pattern" "$work/said" || fail "$*: $(cat "$work/said")"
}
# works COMMAND...
works() { timeout 60 "$ctl" "$@" > "$work/said" 2>&1 || fail "$*: $(cat "$work/said")"; }

for command in examine quota whereis flush lsmount rmmount; do
	says "$dir/none: .*no such name\|$dir/none: No such file" "$command" "$dir/none"
	says 'not in a mount of rxafs' "$command" "$work/rxvol.out"
	says 'usage' "$command"
done
says "$dir/sub: this is no mount point" lsmount "$dir/sub"
says "$dir/sub: this is no mount point" rmmount "$dir/sub"
says "$dir/file: this is no mount point" lsmount "$dir/file"
says 'does not name a volume' mkmount "$dir/new" 'bad/name'
says 'shorter' mkmount "$dir/new" aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhh
says "$dir/sub: .*exists already" mkmount "$dir/sub" work
says 'is no quota' quota "$dir" many
says 'is no quota' quota "$dir" 99999999999
says 'no volume is there' examine "$work/mnt"
says "$dir/sub: .*does it know all names" acl "$dir/sub" no.such.user read
says 'no rights' acl "$dir/sub" system:anyuser nonsense
says 'NAME without RIGHTS' acl "$dir/sub" system:anyuser
says 'only directories' acl "$dir/file" system:anyuser read
says 'no access list' acl "$work/mnt"
says 'no access list' acl "$work"
says 'name the mount with --mount\|not in a mount' cells
says "$work: this is not in a mount" --mount "$work" checkservers
says 'cell no.such.cell is not known' --mount "$work/mnt" logout --cell no.such.cell
says "$work/none" --mount "$work/mnt" login --cache "$work/none"
says 'no command' --mount "$work/mnt"
says 'nonsense' nonsense

works examine "$dir/sub"
works examine "$dir/link"
works examine "$dir/link/.."
works examine "$work/mnt/test.example"
works quota "$dir"
works flush "$dir/file"
works whereis "$dir"
works lsmount "$work/mnt/test.example/work"
works mkmount "$dir/mount" work
works rmmount "$dir/mount"
# Not permitted: which right is missing.
mkdir "$dir/limited"
works mkmount "$dir/limited/old" work
"$ctl" quota "$dir" > "$work/said"
grep -q 'no quota\|quota [1-9]' "$work/said" || fail "quota: $(cat "$work/said")"
works acl "$dir/limited" system:anyuser rliwk
says 'rights ia .*and a is missing' mkmount "$dir/limited/new" work
says 'rights d .*and d is missing' rmmount "$dir/limited/old"
"$ctl" --mount "$work/mnt" tokens > "$work/said" 2>&1
grep -q 'no tokens; get one with rxafsctl login' "$work/said" || fail "tokens: $(cat "$work/said")"
# Cells that are none, also in the log.
says 'nowhere is no cell of CellServDB' examine "$work/mnt/nowhere"
says 'cell nowhere.invalid is not known\|no answer from DNS about cell nowhere.invalid' examine "$work/mnt/.nowhere.invalid"
grep -q 'cell nowhere.invalid' "$work/mnt.err" || fail "the log has nothing of an unknown cell"
# A mount where one is already.
for place in "$work/mnt" "$work/mnt/" "$work/./mnt"; do
	timeout 20 "$rxafs" --cell test.example --servers "test.example=$where" "$place" > "$work/said" 2>&1 && fail "a second mount at $place"
	grep -q 'rxafs is mounted there already$' "$work/said" || fail "a second mount: $(cat "$work/said")"
done
if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 --clear-groups true 2> /dev/null; then
	chmod 755 "$work"
	timeout 20 setpriv --reuid 65534 --clear-groups "$rxafs" --cell test.example --servers "test.example=$where" "$work/mnt" > "$work/said" 2>&1 &&
		fail "a second mount by another user"
	grep -q 'rxafs is mounted there already, by another user' "$work/said" || fail "a second mount by another user: $(cat "$work/said")"
fi
unmount_afs mnt "$daemon"

# As the unit runs it, where only processes are shown that can be traced.
if [ "$(id -u)" -eq 0 ] && mount -t proc -o hidepid=4 proc /proc 2> /dev/null; then
	ours=$rxafs
	limited() { exec setpriv --bounding-set -all,+sys_admin "$ours" "$@"; }
	rxafs=limited
	mount_afs hid --allow-other
	says 'hides it (hidepid)' --mount "$work/hid" session true
	rxafs=$ours
	unmount_afs hid "$daemon"
	umount /proc
fi

mkdir "$work/etc"
mkdir -p "$work/odd"
mounts="$mounts $work/odd"
# warns PATTERN OPTION...
warns() {
	pattern=$1
	shift
	: > "$work/odd.err"
	"$rxafs" --foreground "$@" "$work/odd" 2> "$work/odd.err" &
	daemons="$daemons $!"
	odd=$!
	wait_until 60 grep -q -- "$pattern" "$work/odd.err" || fail "rxafs $*: $(cat "$work/odd.err")"
	kill "$odd" 2> /dev/null
	wait "$odd"
}
warns 'home cell no-such-cell.*--servers' --config-dir "$work/etc" --cell no-such-cell
warns 'root volume no.such.volume of cell test.example.*--root-volume' --cell test.example --servers "test.example=$where" \
	--root-volume no.such.volume
warns 'a root volume needs a home cell.*--cell' --config-dir "$work/etc" --root-volume root.cell
result
