# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's library against itself: tests the test programs and the namespaces without rxwire.

before_library() {
	launch server afsrx_server -p 7009 --fill --verify --udp-buffer 4M
	wait_port 7009 server
}

test_openafs_itself_bulk() {
	limited 60 afsrx_client -c send -b 64M --fill > send.json || fail "send ended with $?"
	want_field send.json bytes_sent 67108864
	limited 60 afsrx_client -c recv -b 64M --verify > recv.json || fail "recv ended with $?"
	want_field recv.json bytes_received 67108864
	want_field recv.json bad_bytes 0
}

test_openafs_itself_rpc() {
	limited 60 afsrx_client -c rpc -S 100 -R 3000 -T 500 --fill --verify > rpc.json || fail "status $?"
	want_field rpc.json calls 500
	limited 60 afsrx_client -c file -f 4000,80000,0,120000 --fill --verify > file.json || fail "status $?"
	want_field file.json bytes 204000
}

test_openafs_itself_parallel() {
	limited 60 afsrx_client -c recv -b 1M -t 32 -C 4 --verify --udp-buffer 4M > par.json || fail "status $?"
	want_field par.json calls 32
	want_field par.json bytes_received 33554432
}

test_openafs_itself_rxdebug() {
	limited 20 rxdebug 127.0.0.1 7009 -version > version.txt || fail "rxdebug ended with $?"
	want_line version.txt '^AFS version: .*OpenAFS'
	limited 20 rxdebug 127.0.0.1 7009 -rxstats -noconns > stats.txt || fail "rxdebug ended with $?"
	want_line stats.txt 'packets read: data [1-9]'
	stop server || fail "the server received wrong bytes"
}
