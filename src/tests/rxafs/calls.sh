# SPDX-License-Identifier: BSD-2-Clause
# Calls that reach the server, counted in its audit log.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
server_options="--audit-log $work/audit --audit strict --audit-reads --metrics-socket $work/metrics"
make_cell
mount_afs one
first_daemon=$daemon
mount_afs two
timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/calls.py" "$work/audit" "$work/metrics" "$fs_port" "$work/one/test.example/rw" \
	"$work/two/test.example/rw" "$work/source" "$first_daemon" || fail "calls"
unmount_afs one "$first_daemon"
unmount_afs two "$daemon"
result
