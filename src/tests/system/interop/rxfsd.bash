# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's vos, afsio and rxdebug with rxfsd: its location service and its files.

export_dir=$work/export

before_rxfsd() {
	local p i
	p=$(need rxfsd) || return
	mkdir -p "$export_dir/sub/deep" "$export_dir/many" "$work/state"
	echo 'hello, world' > "$export_dir/hello.txt"
	: > "$export_dir/empty"
	echo deep > "$export_dir/sub/deep/file"
	ln -s hello.txt "$export_dir/link"
	head -c 70000001 /dev/urandom > "$export_dir/large"
	for ((i = 0; i < 2000; i++)); do
		echo "$i" > "$export_dir/many/a-name-that-takes-two-slots-$i"
	done
	echo secret > "$export_dir/secret"
	chmod 600 "$export_dir/secret"
	launch server "$p" --export "$export_dir" --volume test --cell "$cell_name" --listen "$address" --require none \
		--port 7000 --vl-port 7003 --state "$work/state"
	wait_port 7000 server && wait_port 7003 server
}

# tool COMMAND...: runs an OpenAFS program; output in out.txt, errors in err.txt.
tool() {
	alive server || fail "rxfsd has ended: $(head -n 1 server.err)"
	limited 40 "$@" > out.txt 2> err.txt || fail "$* ended with $?: $(head -n 1 err.txt)"
}

test_vos_listvldb() {
	tool vos listvldb -noauth -cell "$cell_name"
	want_line out.txt '^test *$'
	want_line out.txt '^ *ROnly: [0-9]+'
	want_line out.txt 'number of sites -> 1'
	want_line out.txt "server ($address|afs\.$cell_name) partition /vicepa RO Site"
	want_line out.txt 'Total entries: [1-9]'
	tool vos listvldb -noauth -cell "$cell_name" -name test
	want_line out.txt '^test *$'
	if limited 40 vos listvldb -noauth -cell "$cell_name" -name no.such.volume > out.txt 2> err.txt; then
		fail "vos found a volume that does not exist"
	fi
	want_line err.txt 'no such entry|VLDB: no such entry'
}

test_vos_listaddrs() {
	tool vos listaddrs -noauth -cell "$cell_name" -printuuid
	want_line out.txt '^UUID: [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{12}'
	want_line out.txt "^(afs\.)?$address|afs\.$cell_name"
}

# vos examine calls the location service, then the volume service (see also tools.bash).
test_vos_examine() {
	limited 60 vos examine test.readonly -noauth -cell "$cell_name" > out.txt 2>&1
	alive server || fail "rxfsd has ended"
	want_line out.txt 'ROnly: [0-9]+|ROnly +[0-9]+'
	want_line out.txt "server ($address|afs\.$cell_name) partition /vicepa RO Site"
}

# read_file PATH: copies a file of the volume root.cell with afsio, which ends with 0 even if it failed.
read_file() {
	tool afsio read -file "$1" -cell "$cell_name"
}

test_afsio_read() {
	read_file hello.txt
	same_file "$export_dir/hello.txt" out.txt
	read_file empty
	same_file "$export_dir/empty" out.txt
	[ ! -s err.txt ] || fail "afsio says: $(head -n 1 err.txt)"
}

test_afsio_read_large() {
	read_file large
	same_file "$export_dir/large" out.txt
	rm -f out.txt
}

test_afsio_read_deep() {
	read_file sub/deep/file
	same_file "$export_dir/sub/deep/file" out.txt
}

test_afsio_read_large_folder() {
	local i
	for i in 0 999 1999; do
		read_file "many/a-name-that-takes-two-slots-$i"
		same_file "$export_dir/many/a-name-that-takes-two-slots-$i" out.txt
	done
}

# A file by its FID alone, without looking up names on the file service.
test_afsio_fidread() {
	local id fid
	tool vos listvldb -noauth -cell "$cell_name" -name test
	id=$(sed -n 's/.*ROnly: *\([0-9]*\).*/\1/p' out.txt | head -n 1)
	[ -n "$id" ] || fail "vos shows no volume id"
	fid=$(find_fid "$id") || skip "afscp, which prints FIDs, is not built, and no guess was right"
	tool afsio fidread -fid "$fid" -cell "$cell_name"
	same_file "$export_dir/hello.txt" out.txt
	tool afsio fidread -fid "$id.999998.7" -cell "$cell_name"
	[ -s err.txt ] && [ ! -s out.txt ] || fail "a FID that does not exist returned $(wc -c < out.txt) bytes"
}

# find_fid VOLUME: the FID of hello.txt, from afscp, or else by trying the lowest numbers.
find_fid() {
	local p v u
	if p=$(find_program afscp); then
		limited 20 "$p" -s "$address" stat test:hello.txt | grep -o "$1\.[0-9]*\.[0-9]*" | grep -m 1 .
		return
	fi
	for v in 2 4 6 8 10 12; do
		for u in $v $((v / 2)) $((v / 2 + 1)) $((v + 1)); do
			limited 20 afsio fidread -fid "$1.$v.$u" -cell "$cell_name" > guess.txt 2> guess.err
			cmp -s guess.txt "$export_dir/hello.txt" && echo "$1.$v.$u" && return
		done
	done
	return 1
}

# From /afs on: root.afs has the mount point of the cell.
test_afsio_by_path() {
	local root
	for root in /afs/$cell_name /afs/.$cell_name; do
		tool afsio read -file "$root/sub/deep/file" -cell "$cell_name"
		same_file "$export_dir/sub/deep/file" out.txt
	done
}

test_afsio_missing() {
	read_file no/such/file
	[ -s err.txt ] || fail "no message about a file that does not exist"
	[ ! -s out.txt ] || fail "$(wc -c < out.txt) bytes of a file that does not exist"
	# Its status may be read, so afsio opens it; afsio prints nothing about a refused fetch.
	read_file secret
	[ ! -s out.txt ] || fail "a file that only its owner may read was served"
	local p
	p=$(find_program afscp) || return 0
	! limited 20 "$p" -s "$address" get test:secret - > out.txt 2> err.txt || fail "afscp read it"
	[ ! -s out.txt ] && want_line err.txt 'ermission denied'
}

test_rxdebug_rxfsd() {
	launch reader afsio read -file large -cell "$cell_name"
	tool rxdebug "$address" 7000 -rxstats -noconns
	want_line out.txt 'packets read: data [1-9]'
	want_line out.txt 'other send counters: ack [0-9]+, data [1-9]'
	tool rxdebug "$address" 7000 -allconnections
	want_line out.txt "^Connection from host $address, port [0-9]+, Cuid"
	want_line out.txt 'security index 0, server conn'
	tool rxdebug "$address" 7000 -version
	want_line out.txt '^AFS version: .*[A-Za-z]'
	tool rxdebug "$address" 7000 -peers -long -noconns
	want_line out.txt "^Peer at host $address, port [1-9]"
	wait_for test -f reader.status
	same_file "$export_dir/large" reader.out
	rm -f reader.out
}

test_rxdebug_rxfsd_vl() {
	tool rxdebug "$address" 7003 -version
	want_line out.txt '^AFS version: .*[A-Za-z]'
	tool rxdebug "$address" 7003 -rxstats
	want_line out.txt 'packets read: data [1-9]'
	stop server || fail "rxfsd ended with $? on SIGTERM: $(tail -n 1 server.err)"
}
