# SPDX-License-Identifier: BSD-2-Clause
# Many logins of one user, which wait for a KDC or a server that is silent, and much that he hands over for logins: other users, and look-ups
# of cells, go on, and the daemon keeps little of it (K-123).

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
rxafsctl=$top_builddir/src/rxafs/rxafsctl
[ "$(id -u)" -eq 0 ] || skip "only root can be several users"
setpriv --reuid 65534 --clear-groups true 2> /dev/null || skip "setpriv does not work"
kdc_start
finish_all() {
	kill -CONT "$KDC_PID"
	finish
	kdc_stop
}
trap finish_all EXIT
trap 'exit 99' INT TERM HUP
kdc_principal alice -pw secret
for cell in "$KDC_CELL" silent.example; do
	kdc_principal "afs-rxgk/_afs.$cell"
	kdc_keytab "$work/keytab" "afs-rxgk/_afs.$cell" aes256-cts-hmac-sha1-96
done
chmod 755 "$work"
mkdir -m 700 "$work/store"
{
	"$rxvol" -S "$work/store" init && "$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser rl'
} > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
server_options="--keytab $work/keytab --protection $work/store --pt-port 0 --cell $KDC_CELL"
start_server
# Sockets that nobody reads.
"$python" - "$work/ports" << 'END' &
import os, signal, socket, sys
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for s in sockets:
    s.bind(('127.0.0.1', 0))
with open(sys.argv[1] + '.new', 'w') as f:
    f.write(':'.join(str(s.getsockname()[1]) for s in sockets))
os.rename(sys.argv[1] + '.new', sys.argv[1])
signal.pause()
END
servers="$servers $!"
wait_until 60 test -e "$work/ports" || fail "no sockets"
# The tickets for the silent cell are those for the other one with another name in the address of the service.
mount_afs all --cell "$KDC_CELL" --servers "$KDC_CELL=$where" --servers "silent.example=127.0.0.1:$(cat "$work/ports")" --allow-other
KRB5CCNAME=FILE:$work/initial
printf 'secret\n' | kinit alice > "$work/kinit.out" 2>&1 || fail "kinit: $(cat "$work/kinit.out")"
cp "$work/initial" "$work/service"
KRB5CCNAME=FILE:$work/service
kvno -q "afs-rxgk/_afs.silent.example@$KDC_REALM" "afs-rxgk/_afs.$KDC_CELL@$KDC_REALM" || fail "kvno"
# Ids that are all of one user.
subordinate=
echo "someone:300000:65536" > "$work/subuid"
mount --bind "$work/subuid" /etc/subuid 2> /dev/null && subordinate=300100
kill -STOP "$KDC_PID"
# shellcheck disable=SC2086
timeout -k 1 700 "$python" "$top_srcdir/src/tests/rxafs/logins.py" "$work/all" "$daemon" "$rxafsctl" "$work/initial" "$work/service" $subordinate ||
	fail "logins.py"
kill -CONT "$KDC_PID"
unmount_afs all "$daemon"
result
