# SPDX-License-Identifier: BSD-2-Clause
# Broken promises overtake replies (K-047 to K-050): one of two clients has its replies through a proxy that delays them. DELAYS_ROUNDS: how
# often.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs near
first=$daemon
mkfifo "$work/control"
"$python" "$top_srcdir/src/tests/rxafs/proxy.py" "$work/control" "$fs_port" > "$work/proxy.out" 2> "$work/proxy.err" &
servers="$servers $!"
wait_until 60 test -s "$work/proxy.out"
direct=$where
where=127.0.0.1:$vl_port:$(cat "$work/proxy.out")
mount_afs far
timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/delays.py" "$work/control" "$work/near/test.example/rw" "$work/far/test.example/rw" ||
	fail "delays.py"
where=$direct
unmount_afs near "$first"
unmount_afs far "$daemon"
result
