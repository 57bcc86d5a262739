# SPDX-License-Identifier: BSD-2-Clause
# Answers to changes that are lost, with a change that was done and with one that was not; silence, another port of a NAT, and an outage
# that is longer than the client waits.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
server_options="--durability strict"
make_cell
mount_afs direct
first=$daemon
timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/outages.py" "$work/mnt/test.example/rw" "$work/direct/test.example/rw" \
	"$work/brief/test.example/rw" "$work" "$fs_port" "$server" \
	"$rxfsd" --store "$work/store" --port "$fs_port" --vl-port "$vl_port" --durability strict &
test=$!
servers="$servers $test"
wait_until 60 test -s "$work/relay" || fail "there is no relay"
direct=$where
where=127.0.0.1:$vl_port:$(cat "$work/relay")
mount_afs mnt
second=$daemon
mount_afs brief --timeout 10
where=$direct
touch "$work/go"
wait $test || fail "outages.py"
# The server that it has started last.
server=$(cat "$work/server")
servers="$servers $server"
unmount_afs direct "$first"
unmount_afs mnt "$second"
unmount_afs brief "$daemon"
result
