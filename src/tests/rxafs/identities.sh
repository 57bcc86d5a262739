# SPDX-License-Identifier: BSD-2-Clause
# Several users of one mount: each has the rights of his token, and sees nothing that another one has fetched (K-126, K-161).

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
rxafsctl=$top_builddir/src/rxafs/rxafsctl
rxpt=$top_builddir/src/rxpt/rxpt
rxperf=$top_builddir/src/rxperf/rxperf
for program in "$rxafsctl" "$rxpt" "$rxperf"; do
	[ -x "$program" ] || skip "$program is not built"
done
[ "$(id -u)" -eq 0 ] || skip "only root can be several users"
setpriv --reuid 65534 --clear-groups true 2> /dev/null || skip "setpriv does not work"
chmod 755 "$work"

# A server with keys, and a user.
"$rxperf" server -p 0 --listen 127.0.0.1 --key-file "$work/keys" > "$work/rxperf.out" 2> "$work/rxperf.err" &
maker=$!
wait_until 60 test -s "$work/keys" || fail "no keys"
kill "$maker"
wait "$maker" 2> /dev/null
mkdir -m 700 "$work/store"
{
	"$rxvol" -S "$work/store" init && "$rxpt" -S "$work/store" adduser alice && "$rxpt" -S "$work/store" adduser bob &&
		"$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser rl' &&
		"$rxvol" -S "$work/store" create work --acl 'alice rlidwka' --acl 'system:anyuser l' &&
		"$rxvol" -S "$work/store" mount root.cell:work work --rw
} > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
server_options="--keytab $work/keys --protection $work/store --pt-port 0 --cell test.example"
start_server
mount_afs mnt --allow-other
dir=$work/mnt/test.example/work

# as ALICE_UID or NOBODY: alice has a token, nobody has none.
alice() { timeout -k 1 60 setpriv --reuid 1001 --clear-groups "$@"; }
nobody() { timeout -k 1 60 setpriv --reuid 65534 --clear-groups "$@"; }

chmod 644 "$work/keys"
alice sh -c "echo x > '$dir/early'" 2> /dev/null && fail "a file was made without a token"
# logs_in PRINCIPAL: alice's processes.
logs_in() {
	alice "$rxafsctl" login --cell test.example --key-file "$work/keys" --principal "$1@TEST.EXAMPLE" --mount "$work/mnt" \
		> "$work/login.out" 2>&1 || fail "login: $(cat "$work/login.out")"
}
logs_in alice
alice "$rxafsctl" tokens --mount "$work/mnt" | grep -q test.example || fail "no token after the login"
nobody "$rxafsctl" tokens --mount "$work/mnt" | grep -q test.example && fail "somebody else has the token"

alice sh -c "mkdir '$dir/secret' && echo hidden > '$dir/secret/file' && echo open > '$dir/listed'" || fail "alice cannot write"
alice "$rxafsctl" acl "$dir/secret" system:anyuser none || fail "alice cannot change the access list"
[ "$(alice cat "$dir/secret/file")" = hidden ] || fail "alice cannot read her file"
alice ls -l "$dir/secret" "$dir" > "$work/alice.ls" || fail "alice cannot list"

# All of it is in the caches now: of the daemon and of the kernel.
nobody cat "$dir/secret/file" > "$work/stolen" 2> /dev/null && fail "nobody reads the secret file"
[ -s "$work/stolen" ] && fail "nobody got bytes"
nobody ls "$dir/secret" > "$work/stolen" 2> /dev/null && fail "nobody lists the secret folder"
[ -s "$work/stolen" ] && fail "nobody got names"
nobody stat "$dir/secret/file" > "$work/stolen" 2> /dev/null && fail "nobody sees attributes in the secret folder"
nobody ls "$dir" > "$work/nobody.ls" || fail "nobody cannot list what anyuser may list"
nobody cat "$dir/listed" > /dev/null 2>&1 && fail "nobody reads without r"
nobody sh -c "echo x > '$dir/listed'" 2> /dev/null && fail "nobody writes"
nobody rm "$dir/listed" 2> /dev/null && fail "nobody removes"
nobody mkdir "$dir/new" 2> /dev/null && fail "nobody makes"

# What alice gives others see, and what she takes they lose.
alice "$rxafsctl" acl "$dir/secret" system:anyuser read || fail "acl"
[ "$(nobody cat "$dir/secret/file")" = hidden ] || fail "nobody cannot read what was given"
alice "$rxafsctl" acl "$dir/secret" system:anyuser none || fail "acl"
nobody cat "$dir/secret/file" > /dev/null 2>&1 && fail "nobody reads what was taken away"

# What was written to an open file is stored with the token that it was opened with (K-081), also as another principal or without a
# token. No process may be forked by the one that has the file open: each close of a descriptor stores.
# writes_around NAME COMMAND...: between the write and the close.
writes_around() {
	around=$1
	shift
	rm -f "$work/go" "$work/written"
	timeout -k 1 60 "$python" -c 'import os, sys, time
written = open(sys.argv[3], "w")
os.setgroups([])
os.setuid(1001)
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o644)
os.write(fd, sys.argv[2].encode())
print("written", file=written, flush=True)
while not os.path.exists(sys.argv[4]):
    time.sleep(0.05)
os.close(fd)' "$dir/secret/$around" "$around" "$work/written" "$work/go" 2> "$work/writer.err" &
	writer=$!
	wait_until 30 grep -qs written "$work/written"
	"$@"
	: > "$work/go"
	wait "$writer" || fail "$around: $(cat "$work/writer.err")"
}
writes_around other logs_in bob
alice sh -c "echo x > '$dir/secret/bob'" 2> /dev/null && fail "bob writes where alice may"
logs_in alice
writes_around kept alice "$rxafsctl" logout --mount "$work/mnt"

# Without the token alice is like others.
alice cat "$dir/secret/file" > /dev/null 2>&1 && fail "alice reads after the logout"
logs_in alice
[ "$(alice cat "$dir/secret/other" "$dir/secret/kept")" = otherkept ] || fail "stores after another login and the logout"
unmount_afs mnt "$daemon"
result
