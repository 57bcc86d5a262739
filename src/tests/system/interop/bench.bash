# SPDX-License-Identifier: BSD-2-Clause
# The cell in which src/bench/fileserver and src/bench/crowd measure OpenAFS's file server beside ours; run by these
# scripts only.
#
# RXW_BENCH_SCRIPT is the script, RXW_BENCH has its options, RXW_BENCH_PATH more folders with programs, such as mkfs.xfs.
# Both servers keep their volumes on the disk of the working folder.

. "$here/cell.bash"

# As for a large server: 128 threads, large caches of vnodes, callbacks and volumes, large socket buffers, no log.
fileserver_options=(-d 0 -p 128 -busyat 600 -rxpck 4096 -s 24000 -l 24000 -cb 1000000 -b 512 -vc 1200
	-udpsize 4194304 -sendsize 1048576)

before_bench() {
	local ours
	ours=$(need cell_ours) && need afscp > /dev/null || return
	mkdir -p "$tree" "$work/vicepa" && echo 'hello, world' > "$tree/hello.txt"
	mount --bind "$work/vicepa" /vicepa && touch /vicepa/AlwaysAttach || return
	"$ours" key /etc/openafs/server/KeyFileExt 5 18 \
		0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 || return
	cp /etc/openafs/server/KeyFileExt right
	make_cell || return
	limited 20 pts createuser afs -id 700 -localauth && limited 20 pts adduser afs system:administrators -localauth &&
		limited 60 vos create "$address" a bench -maxquota 0 -localauth || return
	ours -x rxkad --key-file right acl bench: system:anyuser write
}

test_bench_script() {
	PATH=$PATH${RXW_BENCH_PATH:+:$RXW_BENCH_PATH}
	# shellcheck disable=SC2086 # options are words
	python3 -B "$here/../../../bench/$RXW_BENCH_SCRIPT" $RXW_BENCH --openafs "$address:$(cat fileserver.pid)" ||
		fail "src/bench/$RXW_BENCH_SCRIPT ended with $?"
}
