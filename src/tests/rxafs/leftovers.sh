# SPDX-License-Identifier: BSD-2-Clause
# Files that were removed while they were open: after a kill of the daemon the next one with the same cache folder removes what is left
# of them, and nothing else. And promises of objects that leave the cache are given back.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
dir=.test.example/rw
hidden() { "$afscp" -q -s "$where" ls work: | grep -c '__afs'; }
has_hidden() { [ "$(hidden)" = "$1" ]; }

mount_afs mnt --cache "$work/cache"
first=$daemon
echo of-others > "$work/mnt/$dir/.__afs12345"
"$python" - "$work/mnt/$dir" "$work/ready" <<'END' &
import os, signal, sys
files = []
for i in range(5):
    files.append(os.open(f'{sys.argv[1]}/{i}', os.O_CREAT | os.O_RDWR))
    os.write(files[-1], b'text')
    os.fsync(files[-1])
    os.unlink(f'{sys.argv[1]}/{i}')
os.close(files[0])
open(sys.argv[2], 'w').close()
signal.pause()
END
user=$!
wait_until 60 test -e "$work/ready" || fail "the files are not there"
wait_until 60 has_hidden 5 || fail "hidden names: $(hidden), not 4 and that of others"
kill -9 "$first"
wait "$first" 2> /dev/null
kill "$user" 2> /dev/null
umount -l "$work/mnt"

# Another cache folder says nothing of them.
mount_afs other --cache "$work/cache2"
ls "$work/other/$dir" > /dev/null
unmount_afs other "$daemon"
has_hidden 5 || fail "a client without that list has removed hidden names"

mount_afs again --cache "$work/cache"
wait_until 60 has_hidden 1 || fail "hidden names that are left: $(hidden)"
[ "$(cat "$work/again/$dir/.__afs12345")" = of-others ] || fail "a file of others is gone"
# Gone at the end of a process, too, and nothing stays listed.
"$python" -c '
import os, sys
f = os.open(sys.argv[1] + "/x", os.O_CREAT | os.O_RDWR)
os.unlink(sys.argv[1] + "/x")' "$work/again/$dir"
wait_until 60 has_hidden 1 || fail "a hidden name stays after its close"
wait_until 60 sh -c "! [ -s '$work/cache/hidden' ]" || fail "names are listed still: $(cat "$work/cache/hidden")"
unmount_afs again "$daemon"
result
