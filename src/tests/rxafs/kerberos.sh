# SPDX-License-Identifier: BSD-2-Clause
# Tokens from Kerberos tickets of a real KDC: caches of several kinds, the mount of one user, which follows kinit, renewal, and the end of
# a token with changes that are not stored yet (K-123, K-131).

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
rxafsctl=$top_builddir/src/rxafs/rxafsctl
rxpt=$top_builddir/src/rxpt/rxpt
kdc_start
finish_all() {
	[ -z "${keeper:-}" ] || kill "$keeper" 2> /dev/null
	finish
	kdc_stop
}
trap finish_all EXIT
trap 'exit 99' INT TERM HUP

kdc_principal alice -pw secret
kdc_principal bob -pw secret
kdc_principal "afs/$KDC_CELL"
kdc_principal "afs-rxgk/_afs.$KDC_CELL"
kdc_keytab "$work/kad" "afs/$KDC_CELL" aes256-cts-hmac-sha1-96
kdc_keytab "$work/gk" "afs-rxgk/_afs.$KDC_CELL" aes256-cts-hmac-sha1-96
cat "$work/gk" > "$work/keytab"
tail -c +3 "$work/kad" >> "$work/keytab"
chmod 600 "$work/keytab"
mkdir -m 700 "$work/store"
{
	"$rxvol" -S "$work/store" init && "$rxpt" -S "$work/store" adduser alice && "$rxpt" -S "$work/store" adduser bob &&
		"$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser rl' &&
		"$rxvol" -S "$work/store" create home --acl 'alice rlidwka' --acl 'system:anyuser l' &&
		"$rxvol" -S "$work/store" create other --acl 'bob rlidwka' --acl 'system:anyuser l' &&
		"$rxvol" -S "$work/store" create open --acl 'system:anyuser rlidwk' &&
		"$rxvol" -S "$work/store" mount root.cell:home home --rw &&
		"$rxvol" -S "$work/store" mount root.cell:open open --rw &&
		"$rxvol" -S "$work/store" mount root.cell:other other --rw
} > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
server_options="--keytab $work/keytab --protection $work/store --pt-port 0 --cell $KDC_CELL"
start_server
# mount_cell NAME [OPTION...]
mount_cell() {
	name=$1
	shift
	mount_afs "$name" --cell "$KDC_CELL" --servers "$KDC_CELL=$where" "$@"
}
ctl() { "$rxafsctl" --mount "$work/$mounted" "$@"; }

# -- caches, in a mount for all users --
mounted=all
mount_cell all --allow-other
dir=$work/all/$KDC_CELL
# logs_in CACHE [OPTION...]: with the tickets there; a file can be written then, and cannot before and after.
logs_in() {
	cache=$1
	shift
	KRB5CCNAME=$cache
	printf 'secret\n' | kinit alice > "$work/kinit.out" 2>&1 || {
		echo "left out: no cache $cache here"
		return
	}
	sh -c "echo x > '$dir/home/before'" 2> /dev/null && fail "$cache: a file was made before the login"
	ctl login "$@" > "$work/login.out" 2>&1 || fail "$cache: login $*: $(cat "$work/login.out")"
	sh -c "echo x > '$dir/home/file'" || fail "$cache: a file cannot be made after the login"
	ctl tokens > "$work/tokens.out"
	grep -q "$KDC_CELL alice@$KDC_REALM ${class:-rxgk},crypt uid 0, until" "$work/tokens.out" || fail "$cache: tokens: $(cat "$work/tokens.out")"
	ctl logout || fail "$cache: logout"
	ctl tokens | grep -q . && fail "$cache: a token after the logout"
	kdestroy > /dev/null 2>&1
}
logs_in "FILE:$work/cc"
logs_in "$work/cc"
class=rxkad
logs_in "FILE:$work/cc" --rxkad
class=
mkdir -m 700 "$work/dir"
logs_in "DIR:$work/dir"
logs_in "KEYRING:session:rxafs-test"
logs_in "KCM:"
ls /dev/shm /tmp | grep -q '^rxafs-......$' && fail "a copy of the tickets is left"
KRB5CCNAME=FILE:$work/none ctl login > "$work/login.out" 2>&1 && fail "a login without tickets"
grep -q 'no Kerberos tickets; get some with kinit' "$work/login.out" || fail "login without tickets: $(cat "$work/login.out")"
KRB5CCNAME=FILE:$work/cc
export KRB5CCNAME
kdc_login alice secret
ctl login --cell nowhere.test > "$work/login.out" 2>&1 && fail "a login to a cell that does not exist"

# before_the_end LIFE COMMAND: with tickets of $life seconds; where the machine is too slow for them, of twice as many.
before_the_end() {
	life=$1
	until "$2"; do
		life=$((life * 2))
		[ $life -le 64 ] || return 1
	done
}

# --keep renews in time.
ends() { ctl tokens --json | sed -n 's/.*"expires": \([0-9]*\).*/\1/p'; }
later() { [ "$(ends)" -gt "${first:-0}" ]; }
keeps() {
	kdc_login alice secret -l ${life}s -r 10m
	"$rxafsctl" login --keep --mount "$work/all" > "$work/keep.out" 2>&1 &
	keeper=$!
	wait_until 60 test -s "$work/keep.out"
	first=$(ends)
	wait_until $((2 * life)) later
	kept=$?
	kill "$keeper"
	wait "$keeper" 2> /dev/null
	keeper=
	return $kept
}
before_the_end 8 keeps || fail "login --keep has renewed nothing: $(cat "$work/keep.out")"
unmount_afs all "$daemon"

# -- the mount of one user --
kdestroy > /dev/null 2>&1
mounted=one
mount_cell one
dir=$work/one/$KDC_CELL
sh -c "echo x > '$dir/home/early'" 2> /dev/null && fail "a file was made without tickets"
kdc_login alice secret
sh -c "echo x > '$dir/home/file'" || fail "the mount does not follow kinit"
sh -c "echo x > '$dir/other/file'" 2> /dev/null && fail "alice writes in bob's volume"
kdc_login bob secret
sh -c "echo x > '$dir/other/file'" || fail "the mount does not follow another kinit"
sh -c "echo x > '$dir/home/file'" 2> /dev/null && fail "bob writes in alice's volume"
ctl logout
sh -c "echo x > '$dir/other/file'" 2> /dev/null && fail "bob writes after the logout"
kdc_login bob secret
sh -c "echo x > '$dir/other/file'" 2> /dev/null && fail "a mount after logout follows kinit"
ctl login > /dev/null || fail "login"
sh -c "echo x > '$dir/other/file'" || fail "bob cannot write after the login"

# A token that ends: nothing is written as anonymous, changes wait for the next one.
cat > "$work/dirty.py" <<'END'
import os, sys, time
path, go = sys.argv[1:]
fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
os.write(fd, b'kept' * 1000)
print('written', flush=True)
while not os.path.exists(go):
    time.sleep(0.05)
os.write(fd, b'more' * 1000)
os.close(fd)
print('closed', flush=True)
END
written_or_ended() { grep -q written "$work/dirty.out" || ! kill -0 "$writer" 2> /dev/null || grep -q '^State:.Z' "/proc/$writer/status"; }
uses_short_ticket() {
	kdc_login alice secret -l ${life}s -r ${life}s
	sh -c "echo x > '$dir/home/file'" || return
	"$python" "$work/dirty.py" "$dir/home/dirty" "$work/go" > "$work/dirty.out" 2>&1 &
	writer=$!
	wait_until 60 written_or_ended
	grep -q written "$work/dirty.out" && return
	wait "$writer"
	return 1
}
before_the_end 4 uses_short_ticket || fail "a short ticket is not used: $(cat "$work/dirty.out")"
expired() { ctl tokens | grep -q expired; }
wait_until $((life + 60)) expired || fail "the token does not end"
cat > "$work/open.py" <<'END'
import errno, sys
try:
    open(sys.argv[1], 'w').close()
    print('made')
except OSError as e:
    print(errno.errorcode[e.errno])
END
for path in home/late open/late; do
	[ "$("$python" "$work/open.py" "$dir/$path")" = EKEYEXPIRED ] || fail "$path after the end: $("$python" "$work/open.py" "$dir/$path")"
done
ls "$dir/home" > /dev/null || fail "what anybody may list cannot be listed after the end"
kdc_login alice secret
touch "$work/go"
wait "$writer" || fail "changes are lost with the token: $(cat "$work/dirty.out")"
[ "$(wc -c < "$dir/home/dirty")" -eq 8000 ] || fail "the file has $(wc -c < "$dir/home/dirty") bytes"

# The mount renews a ticket that can be renewed.
is_renewed() {
	kdc_login alice secret -l ${life}s -r 10m
	sh -c "echo x > '$dir/home/file'" && first=$(ends) && wait_until $((2 * life)) later
}
before_the_end 8 is_renewed || fail "the mount has renewed nothing"
sh -c "echo x > '$dir/home/file'" || fail "a renewed ticket is not used"
unmount_afs one "$daemon"

# The KDC is silent: the end of the mount does not wait for it.
kdestroy > /dev/null 2>&1
export KRB5_TRACE="$work/trace"
mount_cell one
unset KRB5_TRACE
kdc_login alice secret
kill -STOP "$KDC_PID"
# The daemon looks for the service's ticket by itself, in 10 seconds at most.
asks() { grep -q "Sending request" "$work/trace" 2> /dev/null; }
wait_until 60 asks || fail "the daemon does not ask the KDC"
before=$(date +%s%N)
kill "$daemon"
wait "$daemon" || fail "rxafs ended with $?"
spent=$((($(date +%s%N) - before) / 1000000))
kill -CONT "$KDC_PID"
[ $spent -lt 10000 ] || fail "the end took $spent ms while the KDC was silent"
result
