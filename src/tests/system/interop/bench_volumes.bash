# SPDX-License-Identifier: BSD-2-Clause
# The servers with which src/bench/volumes measures the volume service: first OpenAFS's, then two of ours, on the same disk.
#
# RXW_BENCH has the options of the script; RXW_BENCH_FOLDER the dumps and the stores that it has made.

. "$here/cell.bash"
. "$here/vos_servers.bash"

measure_volumes() {
	# shellcheck disable=SC2086 # options are words
	python3 -B "$here/../../../bench/volumes" $RXW_BENCH --folder "$RXW_BENCH_FOLDER" --inside "$@" ||
		fail "src/bench/volumes ended with $?"
}

before_bench_volumes() {
	local ours
	rxfsd=$(need rxfsd) && rxvol=$(need rxvol) && ours=$(need cell_ours) || return
	mkdir -p "$work/vicepa" && mount --bind "$work/vicepa" /vicepa && touch /vicepa/AlwaysAttach || return
	"$ours" key $keyfile 5 18 $key && cp $keyfile right && ip addr add "$other/24" dev afs0
}

test_bench_volumes_openafs() {
	start_cell || fail "OpenAFS's servers do not start"
	limited 60 vos create "$address" a databases -localauth
	measure_volumes databases "$address" "$(cat vlserver.pid)" "$address" "$(cat ptserver.pid)"
	measure_volumes openafs "$address" "$(cat volserver.pid)"
	stop volserver
	stop fileserver QUIT
	stop ptserver
	stop vlserver
	return 0
}

test_bench_volumes_ours() {
	local name
	rm -rf store store2
	"$rxvol" -S store create root.cell --acl 'system:anyuser rl' > made.txt 2>&1
	"$rxvol" -S store2 create somewhere > made.txt 2>&1
	start_server && start_other || fail "rxfsd does not start: $(head -n 1 server.err)"
	limited 60 vos create "$address" a databases -localauth
	measure_volumes databases "$address" "$(cat server.pid)"
	measure_volumes rxfsd "$address" "$(cat server.pid)" "$other" "$(cat other.pid)"
	stop other
	stop server
	rm -rf store2
	for name in site million; do
		rm -rf store
		cp -r "$RXW_BENCH_FOLDER/$name" store
		start_server || fail "rxfsd does not start on $name: $(head -n 1 server.err)"
		measure_volumes "$name" "$address" "$(cat server.pid)"
		stop server
	done
	return 0
}
