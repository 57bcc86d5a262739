# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's vos and pts as the cell's own servers (-localauth, -encrypt) against rxfsd and our protection server.
# cell_ours writes the KeyFileExt, since asetkey takes keys of these types from a keytab only.

keyfile=/etc/openafs/server/KeyFileExt
export_dir=$work/export
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
ours=
other=ff02030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20

before_localauth_server() {
	local p
	p=$(need rxfsd) && ours=$(need cell_ours) || return
	mkdir -p "$export_dir" "$work/state"
	echo 'hello, world' > "$export_dir/hello.txt"
	"$ours" key $keyfile 5 18 $key || return
	cp $keyfile right
	launch server "$p" --export "$export_dir" --volume test --cell "$cell_name" --listen "$address" \
		--keytab right --require crypt --port 7000 --vl-port 7003 --vol-port 7005 --state "$work/state"
	launch pt "$ours" ptserver 7002 right 2
	wait_port 7000 server && wait_port 7003 server && wait_port 7005 server && wait_port 7002 pt
}

tool() {
	limited 40 "$@" > out.txt 2> err.txt || fail "$* ended with $?: $(head -n 1 err.txt)"
}

# refused PATTERN COMMAND...: expects a failure with that message.
refused() {
	local pattern=$1
	shift
	limited 50 "$@" > out.txt 2>&1 && fail "$* was not refused"
	want_line out.txt "$pattern"
	alive server && alive pt || fail "one of our servers has ended"
}

test_localauth_vos_vl() {
	tool vos listvldb -localauth -encrypt
	want_line out.txt '^test *$'
	tool vos listaddrs -localauth -encrypt -printuuid
	want_line out.txt '^UUID: '
}

test_localauth_vos_vol() {
	tool vos listvol "$address" -localauth -encrypt
	want_line out.txt 'Total volumes onLine 2 ; Total volumes offLine 0 ; Total busy 0'
	tool vos examine test.readonly -localauth -encrypt
	want_line out.txt '^test\.readonly +[0-9]+ RO +[0-9]+ K +On-line'
	tool vos partinfo "$address" -localauth -encrypt
	want_line out.txt 'Free space on partition /vicepa'
	tool vos status "$address" -localauth -encrypt
}

# Its -localauth is at level crypt; -encrypt with it still requires a user's token.
test_localauth_pts() {
	tool pts listmax -localauth
	want_line out.txt 'Max user id is 4711 and max group id is -815'
	want_line pt.out '^call by the service itself, level 2$'
}

# OpenAFS's -localauth without -encrypt is at level clear: the service itself may read at that level, too. Others get
# a permission error.
test_localauth_weaker() {
	tool vos listvldb -localauth
	want_line out.txt '^test *$'
	tool vos listvol "$address" -localauth
	want_line out.txt 'Total volumes onLine 2 '
	tool vos examine test.readonly -localauth
	refused 'no permission access for call' vos listvldb -noauth
	refused 'super user|no permission' vos listvol "$address" -noauth
	refused . pts listmax -noauth
}

# A wrong key with the right number, and a number that the servers do not have.
test_localauth_wrong_key() {
	rm $keyfile
	"$ours" key $keyfile 5 18 $other
	refused 'ticket|19270407' vos listvldb -localauth -encrypt
	refused 'ticket|19270407' pts listmax -localauth
	rm $keyfile
	"$ours" key $keyfile 6 18 $key
	refused 'key|19270408' vos listvldb -localauth -encrypt
	refused 'key|19270408' pts listmax -localauth
	cp right $keyfile
	tool vos listvldb -localauth -encrypt
}

# A new key, while the server runs.
test_localauth_new_key() {
	"$ours" key $keyfile 7 17 0102030405060708090a0b0c0d0e0f10
	refused 'key|19270408' vos listvldb -localauth -encrypt
	cat $keyfile > right
	tell server HUP
	wait_for grep -q 'keys of the service: changed' server.err
	tool vos listvldb -localauth -encrypt
	tool vos listvol "$address" -localauth -encrypt
	stop server || fail "rxfsd ended with $?"
	stop pt || fail "our protection server ended with $?"
}
