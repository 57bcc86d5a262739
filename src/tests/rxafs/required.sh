# SPDX-License-Identifier: BSD-2-Clause
# A server that wants tokens and encryption from everybody (--require crypt), for its location service as well: users with a token use it,
# others are refused with EACCES, also while one with a token looks up the same volume.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
rxafsctl=$top_builddir/src/rxafs/rxafsctl
rxperf=$top_builddir/src/rxperf/rxperf
[ "$(id -u)" -eq 0 ] || skip "only root can be two users"
setpriv --reuid 65534 --regid 65534 --clear-groups true 2> /dev/null || skip "setpriv does not work"
chmod 755 "$work"
"$rxperf" server -p 0 --listen 127.0.0.1 --key-file "$work/keys" > "$work/rxperf.out" 2>&1 &
maker=$!
wait_until 60 test -s "$work/keys" || fail "no keys: $(cat "$work/rxperf.out")"
kill $maker
wait $maker 2> /dev/null
mkdir -m 700 "$work/store"
{
	"$rxvol" -S "$work/store" init && "$top_builddir/src/rxpt/rxpt" -S "$work/store" adduser alice &&
		"$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser rl' --acl 'alice rlidwka' &&
		"$rxvol" -S "$work/store" create home --acl 'alice rlidwka' &&
		"$rxvol" -S "$work/store" mount root.cell:home home --rw
} > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
server_options="--keytab $work/keys --protection $work/store --pt-port 0 --cell test.example --require crypt"
start_server
mount_afs mnt --allow-other
dir=$work/mnt/test.example
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups timeout -k 1 60 "$@"; }

# refused COMMAND...: as a user without a token.
refused() {
	nobody "$@" > "$work/out" 2>&1 && fail "without a token: $*"
	grep -q 'Permission denied' "$work/out" || fail "without a token: $*: $(cat "$work/out")"
}
refused ls "$dir"
"$rxafsctl" --mount "$work/mnt" login --cell test.example --key-file "$work/keys" --principal alice@TEST.EXAMPLE > "$work/login.out" ||
	fail "login: $(cat "$work/login.out")"
echo text > "$dir/home/file" || fail "a user with a token cannot write"
[ "$(cat "$dir/home/file")" = text ] || fail "he cannot read"
"$rxafsctl" --mount "$work/mnt" examine "$dir/home" > "$work/out" || fail "examine: $(cat "$work/out")"
refused cat "$dir/home/file"
refused ls "$dir/home"
# What is known of volumes is asked again.
for _ in 1 2 3; do
	"$rxafsctl" flush "$dir/home" "$dir" 2> "$work/out"
	nobody ls "$dir/home" > "$work/none" 2>&1 &
	ls "$dir/home" > "$work/out" 2>&1 || fail "beside a refused user: $(cat "$work/out")"
	wait $!
done
unmount_afs mnt "$daemon"
result
