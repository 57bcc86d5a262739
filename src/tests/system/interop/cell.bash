# SPDX-License-Identifier: BSD-2-Clause
# A real OpenAFS cell on one machine: our afscp with its location server and file server.

# Without the overseer: vlserver and ptserver, which elect themselves within seconds, then fileserver and volserver.
# The volume comes from a generated dump, since only a cache manager could create files and set the root directory's
# rights.
tree=$work/tree
fileserver_options=(-d 1)

make_tree() {
	local i
	mkdir -p "$tree/sub/deep" "$tree/many"
	echo 'hello, world' > "$tree/hello.txt"
	: > "$tree/empty"
	echo deep > "$tree/sub/deep/file"
	ln -s hello.txt "$tree/link"
	head -c 70000001 /dev/urandom > "$tree/large"
	for ((i = 0; i < 1000; i++)); do
		echo "$i" > "$tree/many/a-name-that-takes-two-slots-$i"
	done
	chmod 640 "$tree/hello.txt"
	touch -d '2021-03-04 05:06:07 UTC' "$tree/hello.txt"
}

# elected PORT: the database server on that port has a quorum (of itself).
elected() {
	limited 10 udebug "$address" "$1" 2> /dev/null | grep -q 'Recovery state 1f'
}

databases_ready() {
	# The first transaction that finds the databases empty creates them.
	limited 10 vos listvldb -noauth > /dev/null 2>&1
	limited 10 pts listmax -noauth > /dev/null 2>&1
	elected 7003 && elected 7002
}

volserver_ready() {
	limited 10 vos listpart "$address" -noauth 2> /dev/null | grep -q vicepa
}

# With the key added: the servers.
start_cell() {
	launch vlserver "$servers/vlserver"
	# Scenarios leave calls that wait, each with a thread.
	launch ptserver "$servers/ptserver" -p 16
	wait_port 7003 vlserver && wait_port 7002 ptserver && wait_for databases_ready || return
	launch fileserver "$servers/fileserver" "${fileserver_options[@]}"
	launch volserver "$servers/volserver"
	wait_port 7000 fileserver && wait_port 7005 volserver && wait_for volserver_ready
}

# With the key added and the tree: servers, then volumes.
make_cell() {
	start_cell || return
	make_dump test 536870999 "$tree" > dump || return
	# afsio starts in root.cell; afscp fetches from both.
	limited 60 vos restore "$address" a test -file dump -localauth &&
		limited 60 vos restore "$address" a root.cell -file dump -localauth
	rm -f dump
}

# The file server has two addresses.
other=10.91.8.1

before_cell() {
	make_tree
	ip addr add "$other/24" dev afs0 || return
	local ours
	ours=$(need cell_ours) || return
	# A key for the servers to authenticate each other; it protects nothing outside these namespaces.
	"$ours" key /etc/openafs/server/KeyFileExt 3 18 \
		0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 && make_cell
}

test_cell_starts() {
	limited 20 vos listvldb -noauth > out.txt 2>&1 || fail "vos ended with $?: $(head -n 1 out.txt)"
	want_line out.txt '^test *$'
	want_line out.txt '^root.cell *$'
	limited 20 vos examine test -noauth > out.txt 2>&1 || fail "vos examine ended with $?"
	want_line out.txt 'On-line'
}

# The exchanges that were recorded with a ptserver have the same results with this one.
test_cell_scenarios() {
	command -v python3 > /dev/null || skip "python3 is not installed"
	# They look up her number.
	limited 20 pts createuser alice -id 1 -localauth > out.txt 2>&1 || fail "pts: $(head -n 1 out.txt)"
	limited 120 python3 -B "$here/../conformance/run" --recorded "$address" > scenarios.txt 2>&1 ||
		fail "$(grep -c '^FAIL' scenarios.txt) differ: $(grep '^FAIL' scenarios.txt | tr '\n' ';')"
	want_line scenarios.txt '^36 passed, 0 failed, 0 skipped'
}

test_cell_afsio() {
	limited 30 afsio read -file large -cell "$cell_name" > out.bin 2> err.txt
	same_file "$tree/large" out.bin
	rm -f out.bin
	limited 30 afsio read -file many/a-name-that-takes-two-slots-999 -cell "$cell_name" > out.txt
	same_file "$tree/many/a-name-that-takes-two-slots-999" out.txt
	limited 30 afsio read -file sub/deep/file -cell "$cell_name" > out.txt
	same_file "$tree/sub/deep/file" out.txt
}

# Our rxwstat reads the answers of OpenAFS's servers and agrees with rxdebug.
test_cell_rxwstat() {
	local stat theirs ours
	stat=$(find_program rxwstat) || skip "rxwstat is not built"
	limited 30 "$stat" --all --json "$address:7000" "$address:7002" > out.json 2> err.txt ||
		fail "rxwstat ended with $?: $(head -n 1 err.txt)"
	[ "$(grep -c '"version": "OpenAFS' out.json)" -eq 2 ] || fail "not two versions: $(grep version out.json | tr '\n' ' ')"
	[ "$(grep -c '"answered": true' out.json)" -eq 2 ] || fail "not two that answered DEBUG packets"
	[ "$(grep -c '"layout": "S"' out.json)" -eq 2 ] || fail "not two of layout S"
	want_line out.json '"role": "server"'
	want_line out.json '"rtt_ms": [0-9.]+'
	# The servers' counters only grow: the value that we read lies between two of rxdebug's.
	executed() {
		limited 10 rxdebug "$address" 7000 -noconns > out.txt 2>&1
		sed -n 's/^Free packets: .*calls: \([0-9]*\),.*/\1/p' out.txt | head -n 1
	}
	theirs=$(executed)
	limited 30 "$stat" --json "$address:7000" > out.json 2> err.txt || fail "rxwstat ended with $?"
	ours=$(sed -n 's/^ *"calls_executed": \([0-9]*\),*$/\1/p' out.json)
	[ -n "$theirs" ] && [ "$theirs" -gt 0 ] && [ "$ours" -ge "$theirs" ] && [ "$ours" -le "$(executed)" ] ||
		fail "rxdebug says $theirs, then $(executed) calls, rxwstat between them $ours: $(head -n 2 out.txt)"
	limited 30 "$stat" --all "$address:7000" > out.txt 2> err.txt || fail "rxwstat ended with $?"
	want_line out.txt '^  from [0-9.]+:[0-9]+, id [0-9a-f]+/[0-9a-f]+, class 0 \(null\)'
	want_line out.txt '^  peer [0-9.]+:[0-9]+: rtt'
}

# ours OPTIONS...: runs afscp; output in out.txt, errors in err.txt.
ours() {
	local p
	p=$(need afscp) || exit 77
	limited 60 "$p" -s "$address" "$@" > out.txt 2> err.txt
}

ours_well() {
	ours "$@" || fail "afscp $* ended with $?: $(head -n 1 err.txt)"
}

# refused PATTERN OPTIONS...: expects status 1 and one line that matches PATTERN.
refused() {
	local pattern=$1 rc
	shift
	ours "$@"
	rc=$?
	[ $rc -eq 1 ] || fail "afscp $* ended with $rc, not 1"
	want_one_error err.txt
	want_line err.txt "$pattern"
}

test_afscp_get() {
	local f
	for f in hello.txt empty sub/deep/file; do
		rm -f copy
		ours_well get "test:$f" copy
		same_file "$tree/$f" copy
	done
}

# bytes_of ADDRESS: of the file in out.txt, a report, that came over this one.
bytes_of() {
	python3 -c 'import json, sys
report = json.load(open("out.txt"))
print(sum(p["bytes"] for p in report.get("paths", []) if p["server"] == f"{sys.argv[1]}:7000"))' "$1"
}

test_afscp_get_large() {
	rm -f copy
	ours_well get --json test:large copy
	same_file "$tree/large" copy
	rm -f copy
	[ $(($(bytes_of "$address") + $(bytes_of "$other"))) -eq 70000001 ] && [ "$(bytes_of "$other")" -gt 0 ] ||
		fail "$(bytes_of "$address") bytes came by one address, $(bytes_of "$other") by the other one"
	limited 20 rxdebug "$address" 7000 -rxstats -noconns > stats.txt || fail "rxdebug ended with $?"
	want_line stats.txt 'other send counters: .*data [1-9]'
}

test_afscp_get_stdout() {
	ours_well get test:large -
	same_file "$tree/large" out.txt
	: > out.txt
}

test_afscp_get_tree() {
	rm -rf copied
	ours_well get -r test: copied
	diff -r --no-dereference "$tree" copied > diff.txt 2>&1 || fail "the copy differs: $(head -n 1 diff.txt)"
	rm -rf copied
}

test_afscp_ls() {
	ours_well ls test:
	for f in hello.txt empty large link many sub; do
		want_line out.txt "^$f/?\$"
	done
	ours_well ls test:many
	[ "$(grep -c '^a-name-that-takes-two-slots-' out.txt)" -eq 1000 ] ||
		fail "$(grep -c . out.txt) names instead of 1000"
	ours_well ls -l test:
	want_line out.txt '^-rw-r-----.* 13 .*2021-03-04 05:06 hello\.txt$'
	want_line out.txt '^-.* 70000001 .* large$'
	want_line out.txt '^d.* sub$'
}

test_afscp_stat() {
	ours_well stat test:hello.txt
	want_line out.txt 'length +13$'
	want_line out.txt 'mode +0640 '
	want_line out.txt '2021-03-04 05:06'
	want_line out.txt 'type +file'
	ours_well stat test:sub
	want_line out.txt 'type +directory'
	ours_well stat test:
	want_line out.txt 'type +directory'
	want_line out.txt 'FID +[0-9]+\.1\.1$'
}

test_afscp_symlink() {
	ours_well ls -l test:
	want_line out.txt '^l.* link -> hello\.txt$'
	ours_well stat test:link
	want_line out.txt 'type +symbolic link to hello\.txt'
}

test_afscp_missing_path() {
	rm -f copy
	refused 'no/such/file|no such file|No such file' get test:no/such/file copy
	[ ! -e copy ] || fail "a file was left under the final name"
}

test_afscp_missing_volume() {
	rm -f copy
	refused 'no\.such\.volume' get no.such.volume:x copy
	[ ! -e copy ] || fail "a file was left under the final name"
}

test_afscp_bench() {
	ours_well bench test:large --clients 8 --seconds 2 --json
	want_positive out.txt bytes
	want_positive out.txt MBps
	# The fileserver has survived it and still serves others.
	limited 30 afsio read -file hello.txt -cell "$cell_name" > out.txt
	same_file "$tree/hello.txt" out.txt
}

# A client that has ended holds no callback promises: the next writer need not wait for it.
test_afscp_gives_up() {
	promises() {
		limited 30 xstat_fs_test "$address" -collID 3 -onceonly > out.txt 2>&1
		sed -n 's/^[[:space:]]*\([0-9]*\) nCBs$/\1/p' out.txt | head -n 1
	}
	local before after
	before=$(promises)
	ours_well ls -l test:many
	ours_well get test:large - > /dev/null
	ours_well bench test:large --clients 4 --seconds 0.5
	after=$(promises)
	[ -n "$before" ] && [ "$after" -le "$before" ] || fail "$before promises have become $after"
}
