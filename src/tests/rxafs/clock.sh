# SPDX-License-Identifier: BSD-2-Clause
# A server whose clock is an hour fast or slow (K-140): promises, times of files, and tokens. A ticket that is not valid yet for the server is
# explained in the log.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
rxafsctl=$top_builddir/src/rxafs/rxafsctl
rxpt=$top_builddir/src/rxpt/rxpt
${CC:-cc} -D_GNU_SOURCE -shared -fPIC -O1 -o "$work/clock.so" "$top_srcdir/src/tests/rxafs/clock.c" 2> "$work/cc.err" ||
	skip "no compiler for LD_PRELOAD"
kdc_start
finish_all() {
	finish
	kdc_stop
}
trap finish_all EXIT
trap 'exit 99' INT TERM HUP

kdc_principal alice -pw secret
kdc_principal "afs/$KDC_CELL"
kdc_principal "afs-rxgk/_afs.$KDC_CELL"
kdc_keytab "$work/kad" "afs/$KDC_CELL" aes256-cts-hmac-sha1-96
kdc_keytab "$work/gk" "afs-rxgk/_afs.$KDC_CELL" aes256-cts-hmac-sha1-96
cat "$work/gk" > "$work/keytab"
tail -c +3 "$work/kad" >> "$work/keytab"
chmod 600 "$work/keytab"
mkdir -m 700 "$work/store"
{
	"$rxvol" -S "$work/store" init && "$rxpt" -S "$work/store" adduser alice &&
		"$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser rl' &&
		"$rxvol" -S "$work/store" create open --acl 'system:anyuser rlidwka' &&
		"$rxvol" -S "$work/store" create home --acl 'alice rlidwka' --acl 'system:anyuser l' &&
		"$rxvol" -S "$work/store" mount root.cell:open open --rw &&
		"$rxvol" -S "$work/store" mount root.cell:home home --rw
} > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
server_options="--keytab $work/keytab --protection $work/store --pt-port 0 --cell $KDC_CELL"
KRB5CCNAME=FILE:$work/cc
printf 'secret\n' | kinit alice > "$work/kinit.out" 2>&1 || fail "kinit: $(cat "$work/kinit.out")"

# differs A B: by more than ten minutes.
differs() { [ $(($1 - $2)) -gt 600 ] || [ $(($2 - $1)) -gt 600 ]; }

# What promises and times say: NEAR and FAR are two mounts.
files_are_right() {
	echo one > "$near/open/file" && mkdir "$near/open/$1" || fail "$1: changes"
	[ "$(cat "$far/open/file")" = one ] || fail "$1: a new file"
	for name in file "$1"; do
		differs "$(stat -c %Y "$near/open/$name")" "$(date +%s)" && fail "$1: the time of $name is the server's"
		[ "$(stat -c %Y "$near/open/$name")" = "$(stat -c %Y "$far/open/$name")" ] || fail "$1: two times of $name"
	done
	kill -STOP "$server"
	[ "$(timeout 20 cat "$far/open/file")" = one ] || fail "$1: no promise"
	kill -CONT "$server"
	echo two > "$near/open/file"
	[ "$(cat "$far/open/file")" = two ] || fail "$1: a change is not seen"
}

# log_in TEXT [OPTION...]
log_in() {
	what=$1
	shift
	"$rxafsctl" login "$@" --mount "$work/$at" > "$work/login.out" 2>&1 || fail "$what: login: $(cat "$work/login.out")"
}

for shift in 3600 -3600; do
	export LD_PRELOAD="$work/clock.so" CLOCK_SHIFT=$shift
	start_server
	unset LD_PRELOAD CLOCK_SHIFT
	at=near$shift
	mount_afs "near$shift" --cell "$KDC_CELL" --servers "$KDC_CELL=$where" --allow-other
	first=$daemon
	mount_afs "far$shift" --cell "$KDC_CELL" --servers "$KDC_CELL=$where" --allow-other
	near=$work/near$shift/$KDC_CELL far=$work/far$shift/$KDC_CELL
	files_are_right "shift$shift"
	log_in "$shift s" --rxkad
	if [ $shift -gt 0 ]; then
		sh -c "echo x > '$near/home/file'" || fail "a ticket of the present is none for a server that is fast"
	else
		# To this server the ticket begins in an hour.
		sh -c "echo x > '$near/home/file'" 2> /dev/null && fail "a server that is slow takes a ticket of the future"
		grep -q 'refuses a token: .*do the clocks agree' "$work/$at.err" || fail "the log does not explain it: $(cat "$work/$at.err")"
		[ "$(cat "$near/open/file")" = two ] || fail "what everybody may read cannot be read then"
	fi
	unmount_afs "near$shift" "$first"
	unmount_afs "far$shift" "$daemon"
	kill "$server"
	wait "$server"
done
result
