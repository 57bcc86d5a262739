#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The package rxafs with the tickets of a KDC: rxafs_log_in(), by rxgk and, where the cell has no service for that, by rxkad.

. "$(dirname "$0")/lib.sh"
. "$top_srcdir/src/tests/system/kdc/kdc.sh"
LIBRXAFS=$top_builddir/src/client/.libs/librxafs.so.0
LD_LIBRARY_PATH=$top_builddir/src/rx/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LIBRXAFS LD_LIBRARY_PATH
[ -e "$LIBRXAFS" ] || { echo 'SKIP: there is no shared library'; exit 77; }
server=
kdc_start
finish() {
	[ -z "$server" ] || { kill "$server" && wait "$server"; }
	kdc_stop
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 99' INT TERM HUP

rxvol=$top_builddir/src/rxvol/rxvol
kdc_principal alice -pw secret
kdc_principal "afs/$KDC_CELL"
kdc_principal "afs-rxgk/_afs.$KDC_CELL"
kdc_keytab "$work/kad" "afs/$KDC_CELL" aes256-cts-hmac-sha1-96
kdc_keytab "$work/gk" "afs-rxgk/_afs.$KDC_CELL" aes256-cts-hmac-sha1-96
cat "$work/gk" > "$work/both"
tail -c +3 "$work/kad" >> "$work/both"
chmod 600 "$work/both" "$work/kad"
{
	"$rxvol" -S "$work/store" init && "$top_builddir/src/rxpt/rxpt" -S "$work/store" adduser alice &&
		"$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser l' &&
		"$rxvol" -S "$work/store" create home --acl 'alice rlidwka' --acl 'system:anyuser l'
} > "$work/init.log" 2>&1 || { cat "$work/init.log"; exit 99; }

for keytab in both kad; do
	rm -f "$work/out"
	"$top_builddir/src/fileserver/rxfsd" --store "$work/store" --listen 127.0.0.1 --port 0 --vl-port 0 --vol-port 0 --keytab "$work/$keytab" \
		--protection "$work/store" --pt-port 0 --cell "$KDC_CELL" > "$work/out" 2> "$work/err" &
	server=$!
	until grep -qs '^listening' "$work/out"; do
		kill -0 $server || { cat "$work/err"; exit 99; }
		sleep 0.05
	done
	ports=$(sed -n 's/^listening fs 127.0.0.1:\([0-9]*\) vl 127.0.0.1:\([0-9]*\).*/\2:\1/p' "$work/out")
	kdestroy > /dev/null 2>&1
	kdc_login alice secret
	python3 -X faulthandler -W error::ResourceWarning - "$KDC_CELL" "$KDC_CELL=127.0.0.1:$ports" "$keytab" << 'END' || { cat "$work/err"; exit 1; }
import os, sys, time
import rxafs

cell, where, keytab = sys.argv[1:]
with rxafs.Client(cell, cells=[where]) as afs, rxafs.Client(cell, cells=[where]) as other:
    try:
        afs.open("home:file", "w")
        raise SystemExit("FAIL: an anonymous user wrote")
    except PermissionError:
        pass
    ends = afs.log_in()
    assert time.time() < ends < time.time() + 100 * 3600, ends
    with afs.open("home:file", "w") as file:
        file.write(keytab)
    # A user of another client has none of it. A second login replaces the token.
    try:
        other.open("home:file").read()
        raise SystemExit("FAIL: an anonymous user reads")
    except PermissionError as error:
        assert error.filename == "home:file", error.filename
    assert afs.log_in(cell) >= ends
    assert afs.open("home:file").read() == keytab
    assert afs.getxattr("home:", "afs.acl")
    os.environ["KRB5CCNAME"] = "FILE:/nonexistent/tickets"
    try:
        afs.log_in()
        raise SystemExit("FAIL: a login without tickets")
    except PermissionError as error:
        assert "kinit" in error.strerror, error.strerror
    # The token of before stays.
    assert afs.open("home:file").read() == keytab
END
	kill $server
	wait $server
	server=
	echo "a login, by keytab $keytab"
done
