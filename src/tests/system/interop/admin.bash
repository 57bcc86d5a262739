# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's administration libraries on librxwire-classic and on its own library, with a cell that believes anyone.
# admin_afs prints what it did; both must print the same.

. "$here/cell.bash"

before_admin() {
	local ours
	ours=$(need cell_ours) || return
	mkdir -p "$tree/sub"
	echo 'hello, world' > "$tree/hello.txt"
	head -c 5000001 /dev/urandom > "$tree/large"
	"$ours" key /etc/openafs/server/KeyFileExt 3 18 \
		0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 || return
	touch /var/lib/openafs/local/NoAuth
	chmod 755 /etc/openafs /etc/openafs/server /var/lib/openafs /var/lib/openafs/local
	launch bosserver bosserver -noauth -nofork
	make_cell && wait_port 7007 bosserver
}

# round NAME PROGRAM: what it printed goes to NAME.txt, the volume's dump to NAME.dump.
round() {
	limited 100 "$2" "$address" test "$1.dump" > "$1.txt" 2> "$1.log" ||
		fail "$2 ended with $?: $(tail -n 1 "$1.txt") $(tail -n 1 "$1.log")"
}

# If this fails, librxwire-classic is not the cause.
test_admin_theirs() { round theirs admin_afs; }

test_admin_classic() { round classic admin_classic; }

# The same text; and the dumps differ in their dates only.
test_admin_same() {
	local n
	want_line theirs.txt '^partition /vicepa, room yes'
	want_line theirs.txt '^volume adm\.new: id \+0'
	want_line theirs.txt '^member of adm\.user:friends: adm\.user$'
	want_line theirs.txt '^process adm\.sleeper$'
	cmp -s theirs.txt classic.txt || fail "they differ: $(diff theirs.txt classic.txt | tr '\n' '|')"
	[ "$(stat -c %s theirs.dump)" -gt 5000000 ] || fail "the dump has only $(stat -c %s theirs.dump) bytes"
	n=$(cmp -l theirs.dump classic.dump | wc -l)
	[ "$n" -le 64 ] || fail "$n bytes of the dumps differ"
}

# The servers' view: nothing is left of what the programs made.
test_admin_end() {
	limited 20 vos listvldb -noauth > out.txt 2>&1 || fail "vos ended with $?"
	! grep -q '^adm' out.txt || fail "a volume is left: $(grep '^adm' out.txt)"
	limited 20 pts examine adm.user -noauth > out.txt 2>&1
	want_line out.txt "doesn't exist|User or group"
	stop bosserver QUIT || fail "bosserver ended with $?: $(tail -n 1 bosserver.err)"
}
