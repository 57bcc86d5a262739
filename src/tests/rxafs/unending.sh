# SPDX-License-Identifier: BSD-2-Clause
# A server that answers PINGs but never ends a call: what reads ends after --timeout, what changes has as long as it needs.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs near
first=$daemon
mkfifo "$work/control"
"$python" "$top_srcdir/src/tests/rxafs/proxy.py" "$work/control" "$fs_port" > "$work/proxy.out" 2> "$work/proxy.err" &
servers="$servers $!"
wait_until 10 test -s "$work/proxy.out"
direct=$where
where=127.0.0.1:$vl_port:$(cat "$work/proxy.out")
mount_afs far --timeout 4
timeout -k 1 300 "$python" "$top_srcdir/src/tests/rxafs/unending.py" "$work/control" "$work/near/test.example/rw" "$work/far/test.example/rw" ||
	fail "unending.py"
where=$direct
unmount_afs near "$first"
unmount_afs far "$daemon"
result
