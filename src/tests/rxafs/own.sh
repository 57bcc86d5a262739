# SPDX-License-Identifier: BSD-2-Clause
# The mount of an ordinary user, as programs use it that look at owners: cp -p, sed -i, git. What the numbers of owners are, there and in a
# mount of root.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "only root can make /dev/fuse usable for another user"
# fusermount3 wants a user with a name: nobody.
[ "$(id -u nobody 2> /dev/null)" = 65534 ] || skip "there is no user nobody"
setpriv --reuid 65534 --regid 65534 --clear-groups true 2> /dev/null || skip "setpriv does not work"
command -v fusermount3 > /dev/null || skip "there is no fusermount3"
command -v git > /dev/null || skip "there is no git"

# The program and its libraries, where that user can read them.
chmod 755 "$work"
make_cell
mkdir "$work/bin" "$work/home" "$work/import"
echo text > "$work/import/file"
for owner in 1234 -204; do
	"$rxvol" -S "$work/store" import "work:/owner$owner" "$work/import" --owner $owner > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
done
cp -rL "$(dirname "$rxafs")/.libs/rxafs" "$work/bin/rxafs" 2> /dev/null || cp "$rxafs" "$work/bin/rxafs"
cp "$top_builddir"/src/rx/.libs/librxwire.so.0 "$work/bin/" 2> /dev/null
chown 65534:65534 "$work/home"
mknod "$work/fuse" c 10 229 2> /dev/null && chmod 666 "$work/fuse" && mount --bind "$work/fuse" /dev/fuse 2> /dev/null ||
	skip "devices cannot be made here"

user() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$work/home" LD_LIBRARY_PATH="$work/bin" timeout -k 1 120 "$@"; }

# as_user [OPTION...]: a mount at home/afs; its process is $daemon.
as_user() {
	user mkdir -p "$work/home/afs"
	mounts="$mounts $work/home/afs"
	user "$work/bin/rxafs" --foreground --cell test.example --servers "test.example=$where" "$@" "$work/home/afs" \
		2>> "$work/own.err" &
	daemon=$!
	daemons="$daemons $daemon"
	wait_until 60 grep -q " $work/home/afs " /proc/self/mountinfo || {
		grep -q 'not permitted\|denied' "$work/own.err" && skip "fusermount3 may not mount here"
		cat "$work/own.err"
		exit 1
	}
}

as_user
dir=$work/home/afs/.test.example/rw
user sh -c "echo one > '$dir/file'" || fail "a file cannot be written"
[ "$(user stat -c %u:%g "$dir/file")" = 65534:65534 ] || fail "the file is not shown as the user's: $(user stat -c %u:%g "$dir/file")"
[ "$(user stat -c %u "$dir/owner1234/file" "$dir/owner-204" | xargs)" = '65534 65534' ] || fail "files of others are not shown as the user's"
user cp -p "$dir/file" "$dir/copy" || fail "cp -p"
user sed -i s/one/two/ "$dir/copy" || fail "sed -i"
[ "$(user cat "$dir/copy")" = two ] || fail "sed -i changed nothing"
user chown 65534:65534 "$dir/file" || fail "chown to the present owner"
user chown 1002 "$dir/file" 2> /dev/null && fail "chown to somebody else"
user git init -q "$dir/repository" || fail "git init"
user sh -c "cd '$dir/repository' && echo text > file && git add file &&
	git -c user.name=user -c user.email=user@example.org commit -qm text && git status --short && git fsck" \
	> "$work/git.out" 2>&1 || fail "git: $(cat "$work/git.out")"
user fusermount3 -u "$work/home/afs" || fail "the user cannot unmount"
wait "$daemon" || fail "rxafs ended with $?"

"$rxafs" --foreground "$work/rxvol.out" > "$work/refused" 2>&1 && fail "a mount at a file"
grep -q 'is not a directory' "$work/refused" || fail "mount at a file: $(cat "$work/refused")"

as_user --numeric-owner
# owners COMMAND...: the numbers of AFS: of an anonymous user, of a user, of a group.
owners() {
	numbers=$("$@" stat -c %u:%g "$dir/file" "$dir/owner1234/file" "$dir/owner-204" | xargs)
	[ "$numbers" = '32766:0 1234:0 4294967092:0' ] || fail "owners $*: $numbers"
}
owners user
user fusermount3 -u "$work/home/afs" || fail "the user cannot unmount"
wait "$daemon" || fail "rxafs ended with $?"
mount_afs root
dir=$work/root/.test.example/rw
owners env
[ "$(stat -c %u "$work/root")" = 0 ] || fail "/afs itself belongs to $(stat -c %u "$work/root")"
unmount_afs root "$daemon"
result
