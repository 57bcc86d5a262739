# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's monitoring tools with rxfsd: vos on the volume service, xstat_fs_test, afsmonitor and scout on the file
# service, and the statistics service with OpenAFS's own stubs.

export_dir=$work/export

before_tools() {
	local p
	p=$(need rxfsd) || return
	mkdir -p "$export_dir/sub" "$work/state"
	echo 'hello, world' > "$export_dir/hello.txt"
	head -c 300000 /dev/urandom > "$export_dir/medium"
	launch server "$p" --export "$export_dir" --volume test --cell "$cell_name" --listen "$address" --require none \
		--port 7000 --vl-port 7003 --vol-port 7005 --state "$work/state" --rpc-stats
	wait_port 7000 server && wait_port 7003 server && wait_port 7005 server || return
	# Calls that the statistics count; afsio ends with 0 even if it failed.
	limited 40 afsio read -file hello.txt -cell "$cell_name" > out.txt 2> err.txt
	limited 40 afsio read -file medium -cell "$cell_name" > out.bin 2>> err.txt
	cmp -s "$export_dir/hello.txt" out.txt && cmp -s "$export_dir/medium" out.bin
}

# tool COMMAND...: runs an OpenAFS program; output in out.txt, errors in err.txt.
tool() {
	alive server || fail "rxfsd has ended: $(head -n 1 server.err)"
	limited 40 "$@" > out.txt 2> err.txt || fail "$* ended with $?: $(head -n 1 err.txt)"
}

# refused PATTERN COMMAND...: expects a failure with that message.
refused() {
	local pattern=$1
	shift
	if limited 40 "$@" > out.txt 2> err.txt; then
		fail "$* was not refused"
	fi
	want_line err.txt "$pattern"
	alive server || fail "rxfsd has ended: $(head -n 1 server.err)"
}

volume_id() {
	limited 40 vos listvldb -noauth -cell "$cell_name" -name test | sed -n 's/.*ROnly: *\([0-9]*\).*/\1/p'
}

test_vos_examine_online() {
	local id
	id=$(volume_id)
	tool vos examine test.readonly -noauth -cell "$cell_name"
	want_line out.txt "^test\.readonly +$id RO +[23][0-9]{2} K +On-line"
	want_line out.txt "^ +ROnly: +$id|ROnly +$id"
	want_line out.txt '^ +Creation +[A-Z][a-z]{2} .* 20[0-9]{2}$'
	want_line out.txt '^ +Last Update +[A-Z][a-z]{2} .* 20[0-9]{2}$'
	want_line out.txt '^ +[1-9][0-9]* accesses in the past day'
	want_line out.txt "server ($address|afs\.$cell_name) partition /vicepa RO Site"
	tool vos examine "$id" -noauth -cell "$cell_name" -format
	want_line out.txt '^name[[:space:]]+test\.readonly$'
	want_line out.txt '^status[[:space:]]+OK$'
	want_line out.txt '^type[[:space:]]+RO$'
	want_line out.txt '^inUse[[:space:]]+Y$'
	want_line out.txt '^filecount[[:space:]]+4$'
	want_line out.txt '^needsSalvaged[[:space:]]+N$'
	tool vos examine test.readonly -noauth -cell "$cell_name" -extended
	want_line out.txt "^test\.readonly +$id RO +[0-9]+ K used .* On-line"
	want_line out.txt 'Raw Read/Write Stats'
}

test_vos_listvol() {
	tool vos listvol "$address" -noauth -cell "$cell_name"
	want_line out.txt 'Total number of volumes on server .* partition /vicepa: 2'
	want_line out.txt '^test\.readonly +[0-9]+ RO +[0-9]+ K On-line'
	want_line out.txt 'Total volumes onLine 2 ; Total volumes offLine 0 ; Total busy 0'
	tool vos listvol "$address" a -noauth -cell "$cell_name" -long
	want_line out.txt '^ +RWrite +[1-9][0-9]*'
	tool vos listvol "$address" a -noauth -cell "$cell_name" -fast
	want_line out.txt "^$(volume_id) *\$"
	tool vos listvol "$address" -noauth -cell "$cell_name" -extended
	want_line out.txt 'Total volumes: 2 on-line, 0 off-line'
	refused 'b|partition' vos listvol "$address" b -noauth -cell "$cell_name"
}

test_vos_partitions() {
	tool vos listpart "$address" -noauth -cell "$cell_name"
	want_line out.txt '^ +/vicepa *$'
	want_line out.txt '^Total: 1$'
	tool vos partinfo "$address" -noauth -cell "$cell_name"
	want_line out.txt 'Free space on partition /vicepa: [0-9]+ K blocks out of total [1-9][0-9]+$'
	awk '/Free space/ { exit !($6 <= $(NF)) }' out.txt || fail "more space is free than exists: $(cat out.txt)"
	refused . vos partinfo "$address" b -noauth -cell "$cell_name"
}

test_vos_status() {
	tool vos status "$address" -noauth -cell "$cell_name"
	want_line out.txt '^No active transactions on'
}

# Every call that would start a transaction is refused.
test_vos_refusals() {
	refused 'not a super user' vos dump -id test.readonly -noauth -cell "$cell_name" -file dumped
	refused 'super user|no permission' vos remove -server "$address" -partition a -id test \
		-noauth -cell "$cell_name"
	refused 'super user|no permission' vos create "$address" a other -noauth -cell "$cell_name"
	[ "$(volume_id)" ] || fail "the volume has disappeared"
}

test_vos_volume_service_rxdebug() {
	tool rxdebug "$address" 7005 -version
	want_line out.txt '^AFS version: .*[A-Za-z]'
	tool rxdebug "$address" 7005 -rxstats -noconns
	want_line out.txt 'packets read: data [1-9]'
}

# collection NUMBER: writes the output of xstat_fs_test to out.txt; the program ends with 0 even if it failed.
collection() {
	tool xstat_fs_test "$address" -collID "$1" -onceonly
	! grep -q 'failed, code' out.txt || fail "$(grep 'failed, code' out.txt)"
}

# shown NAME: the number before a name in out.txt.
shown() {
	sed -n "s/^[[:space:]]*\([0-9]*\) $1\$/\1/p" out.txt | head -n 1
}

# want_shown NAME LOW HIGH
want_shown() {
	local n
	n=$(shown "$1")
	[ -n "$n" ] || fail "no $1 in the output"
	{ [ "$n" -ge "$2" ] && [ "$n" -le "$3" ]; } || fail "$1 is $n, not within $2..$3"
}

test_xstat_empty() {
	collection 0
	want_line out.txt 'AFS_XSTATSCOLL_CALL_INFO \(coll 0\)'
	tool xstat_fs_test "$address" -collID 4 -onceonly
	want_line out.txt 'failed, code=1'
}

test_xstat_figures() {
	local before
	collection 1
	before=$(shown rx_dataPacketsRead)
	want_shown numPerfCalls 1 1000
	want_shown rx_dataPacketsSent 100 100000
	want_shown rx_dataPacketsRead 4 100000
	want_shown rx_nServerConns 1 1000
	want_shown rx_nPeerStructs 1 1000
	want_shown rx_bogusHost 0 0
	want_shown host_NumHostEntries 1 1000
	collection 1
	[ "$(shown rx_dataPacketsRead)" -gt "$before" ] || fail "packets read: $before, before and after a call"
}

test_xstat_procedures() {
	collection 2
	want_line out.txt '^[[:space:]]*[1-9][0-9]+ epoch'
	want_line out.txt '^ +FetchData: [2-9][0-9]* ops \([2-9][0-9]* OK\); sum=[0-9]+\.[0-9]+, .*max=0\.[0-9]+'
	want_line out.txt '^ +GetXStats: [1-9][0-9]* ops'
	want_line out.txt '^ +StoreData: 0 ops \(0 OK\); sum=0\.000000, .*min=999999'
	want_line out.txt '^FetchData: [2-9][0-9]* xfers \([2-9][0-9]* OK\)'
	want_line out.txt '\[bytes: sum=29[3-9], min=[0-9]+, max=[1-9][0-9]+\]|\[bytes: sum=3[0-9]{2}, min=[0-9]+, max=[1-9][0-9]+\]'
	want_line out.txt '^StoreData: 0 xfers'
}

test_xstat_callbacks() {
	collection 3
	want_shown BreakCallBacks 0 1000
	want_shown AddCallBack 0 1000
	want_shown nCBs 0 1000
}

# on_screen NAME COMMAND: runs a program that needs a terminal; its screen goes to NAME.out. Its input has neither a
# key nor an end, which would keep it busy.
on_screen() {
	command -v script > /dev/null || skip 'script is not installed'
	TERM=vt100 launch "$1" bash -c 'sleep 25 | timeout 20 script -qc "$0" /dev/null' "$2"
}

test_afsmonitor() {
	on_screen monitor "afsmonitor -fshosts $address -output $work/monitored -detailed -frequency 1"
	wait_for grep -q '^StoreData: 0 xfers' monitored || fail "afsmonitor wrote no statistics"
	grep -v '^$' monitored > out.txt
	want_line out.txt 'AFS_XSTATSCOLL_FULL_PERF_INFO \(coll 2\)'
	want_line out.txt '^ +FetchData: [2-9][0-9]* ops \([2-9][0-9]* OK\)'
	want_shown rx_dataPacketsSent 100 100000
	! grep -qi 'failed' monitored || fail "afsmonitor: $(grep -i -m 1 failed monitored)"
}

test_scout() {
	on_screen scout "scout -server $address -frequency 1"
	wait_for grep -q 'Probe 1 results' scout.out || fail "scout showed no results"
	want_line scout.out "$address.*a:[1-9][0-9]+"
}

test_rxstat_version() {
	tool afsrx_stats "$address" 7000 version
	want_line out.txt '^version 1$'
	tool afsrx_stats "$address" 7000 on
	want_line out.txt '^process 1 peers 1$'
	tool afsrx_stats "$address" 7005 on
	want_line out.txt '^process 1 peers 1$'
}

# The file service is interface 7, volume locations 15, the volume service 16, this service 9.
test_rxstat_process() {
	tool afsrx_stats "$address" 7003 process
	want_line out.txt '^version 1 entries [1-9][0-9]* words [1-9][0-9]* clock 1[0-9]{9}\.[0-9]{6}$'
	want_line out.txt ' server interface 7 function (0|36) of 4[23] calls [2-9] sent 3[0-9]{5} '
	want_line out.txt ' server interface 15 function [0-9]+ of 28 calls [1-9]'
	want_line out.txt ' server interface 16 function 21 of 34 calls [1-9]'
	want_line out.txt ' run 0\.[0-9]{6} least 0\.[0-9]{6} most 0\.[0-9]{6}$'
	! grep -q '^peer [^-]' out.txt || fail "peers among the figures of the process"
}

test_rxstat_peers() {
	tool afsrx_stats "$address" 7000 peers
	want_line out.txt "^peer $address port [1-9][0-9]* server interface 7 function (0|36) of 4[23] calls [1-9]"
	want_line out.txt "^peer $address port [1-9][0-9]* server interface 9 "
	! grep -q '^peer -' out.txt || fail "entries without a peer"
}

test_rxstat_refusals() {
	tool afsrx_stats "$address" 7000 change
	want_line out.txt '^codes 1 1 1 1 1 1$'
	tool afsrx_stats "$address" 7000 on
	want_line out.txt '^process 1 peers 1$'
}

# Interfaces without a number of their own get service << 16 | port.
test_rxstat_rxperf() {
	local p
	p=$(need rxperf) || exit 77
	launch perf "$p" server -p 7009 --rpc-stats
	wait_port 7009 perf || fail 'rxperf server has not started'
	limited 40 "$p" client -s 127.0.0.1 -p 7009 -c rpc -S 100 -R 200 -T 50 > rpc.txt 2> err.txt ||
		fail "rxperf client ended with $?: $(head -n 1 err.txt)"
	tool afsrx_stats 127.0.0.1 7009 process
	want_line out.txt '^peer - port 0 server interface 9641825 function 0 of 1 calls 50 sent 10200 '
	tool afsrx_stats 127.0.0.1 7009 peers
	want_line out.txt '^peer 127\.0\.0\.1 port [1-9][0-9]* server interface 9641825 function 0 of 1 calls 50 '
	stop perf || fail "rxperf server ended with $? on SIGTERM"
}

# Another machine: a second network namespace behind a pair of interfaces. It may not read the statistics.
test_rxstat_far() {
	launch far unshare --net sleep 60
	local pid
	pid=$(cat far.pid)
	sleep 0.3
	ip link add near0 type veth peer name far0 && ip link set far0 netns "$pid" &&
		ip addr add 10.91.8.1/24 dev near0 && ip link set near0 up &&
		nsenter --net="/proc/$pid/ns/net" sh -c \
			'ip addr add 10.91.8.2/24 dev far0 && ip link set far0 up && ip route add default via 10.91.8.1' ||
		skip 'a second network is not available'
	tool nsenter --net="/proc/$pid/ns/net" afsrx_stats "$address" 7000 version
	refused 'returned 1$' nsenter --net="/proc/$pid/ns/net" afsrx_stats "$address" 7000 process
	refused 'returned 1$' nsenter --net="/proc/$pid/ns/net" afsrx_stats "$address" 7000 peers
	tell far KILL
	stop server || fail "rxfsd ended with $? on SIGTERM: $(tail -n 1 server.err)"
}
