# SPDX-License-Identifier: BSD-2-Clause
# Our clients as the cell's own servers, with its KeyFileExt, against OpenAFS's ptserver, vlserver and fileserver, at
# each level. The cell is set up as in cell.bash, but with an aes256 key.

. "$here/cell.bash"

keyfile=/etc/openafs/server/KeyFileExt
ours=

before_localauth_cell() {
	ours=$(need cell_ours) && need afscp > /dev/null || return
	mkdir -p "$tree/sub"
	echo 'hello, world' > "$tree/hello.txt"
	head -c 20000001 /dev/urandom > "$tree/large"
	"$ours" key $keyfile 5 18 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 || return
	cp $keyfile right
	make_cell
	cp $keyfile saved
	rm $keyfile
	"$ours" key $keyfile 5 18 ff02030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
	cp $keyfile wrong-key
	rm $keyfile
	"$ours" key $keyfile 6 18 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
	cp $keyfile wrong-number
	cp saved $keyfile
}

# well WHAT PORT LEVEL CALLS
well() {
	limited 60 "$ours" "$1" "$address" "$2" right "$3" "$4" > out.txt 2> err.txt ||
		fail "$1 at level $3 ended with $?: $(head -n 1 err.txt)"
	want_line out.txt "^calls $4 "
}

test_localauth_ptserver() {
	local l
	for l in 0 1 2; do
		well pt 7002 $l 300
	done
}

test_localauth_vlserver() {
	local l
	for l in 0 1 2; do
		well vl 7003 $l 300
		want_line out.txt 'name test entries 2$'
	done
}

test_localauth_fileserver() {
	local l p
	p=$(need afscp)
	for l in clear auth crypt; do
		rm -f copy
		limited 60 "$p" -s "$address" -v -x rxkad --level $l --key-file right get test:large copy 2> err.txt ||
			fail "afscp at level $l ended with $?: $(head -n 1 err.txt)"
		same_file "$tree/large" copy
		want_line err.txt "rxkad, $l"
	done
	rm -f copy
}

test_localauth_cell_wrong_key() {
	local what
	for what in 'pt 7002' 'vl 7003'; do
		set -- $what
		limited 20 "$ours" "$1" "$address" "$2" wrong-key 2 1 > out.txt 2> err.txt && fail "$1 accepted another key"
		want_line err.txt 'code 19270407$'
		limited 20 "$ours" "$1" "$address" "$2" wrong-number 2 1 > out.txt 2> err.txt && fail "$1 accepted another key number"
		want_line err.txt 'code 19270408$'
	done
}
