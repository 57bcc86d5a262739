# SPDX-License-Identifier: BSD-2-Clause
# Levels of protection of vos and of dumps between servers: two of ours that require encrypted calls of the volume service, and one of
# OpenAFS, which sends as its caller does.

. "$here/vos.bash"

other=${address%.*}.2
theirs=${address%.*}.3

answers() {
	limited 10 vos listpart "$1" -localauth -encrypt 2> /dev/null | grep -q vicepa
}

registered() {
	limited 10 vos listaddrs -noauth 2> /dev/null | grep -q "$theirs"
}

before_vos_levels() {
	rxpt=$(need rxpt) || return
	server_options=(--protection store --require vol:crypt)
	before_vos && ip addr add "$other/24" dev afs0 && ip addr add "$theirs/24" dev afs0 || return
	"$rxvol" -S store2 create somewhere > made.txt 2>&1 || return
	launch other "$rxfsd" --store store2 --cell "$cell_name" --listen "$other" --keytab right --require none \
		--require vol:crypt
	echo "$theirs" > /var/lib/openafs/local/NetInfo || return
	launch fileserver "$servers/fileserver" -rxbind
	launch volserver "$servers/volserver" -rxbind -s2scrypt inherit
	wait_for answers "$other" && wait_for answers "$theirs" && wait_for registered
}

# e COMMAND OPTIONS...: vos as the cell itself, encrypted.
e() {
	v "$@" -encrypt
}

# The servers can be asked at any level, and changed at theirs only.
test_levels_refused() {
	v listvol "$address"
	refused create "$address" a clear -localauth
	refused create "$address" a anonymous -noauth
	e create "$address" a lvol -maxquota 70000
	vol import lvol "$tree"
	refused dump lvol -localauth -file no.dump
	refused backup lvol -localauth
	v unlock lvol
	e backup lvol
	e dump lvol -file lvol.dump
	e dump lvol.backup -file backup.dump
	same_dumps lvol.dump backup.dump
}

# What goes to another server is encrypted as well, since that takes nothing else.
test_levels_ours() {
	e move lvol "$address" a "$other" a
	e dump lvol -file moved.dump
	equal_dumps lvol.dump moved.dump ''
	e addsite "$address" a lvol
	e addsite "$other" a lvol
	e release lvol
	e dump "$(id_of lvol.readonly)" -server "$address" -partition a -file ro.dump
	same_dumps lvol.dump ro.dump
	e remove "$address" a lvol.readonly
	e remove "$other" a lvol.readonly
	e move lvol "$other" a "$address" a
	e dump lvol -file moved.dump
	same_dumps lvol.dump moved.dump
}

test_levels_theirs() {
	e move lvol "$address" a "$theirs" a
	e dump lvol -file moved.dump
	same_dumps lvol.dump moved.dump
	# A clear call makes them send a clear dump, which is refused.
	refused move lvol "$theirs" a "$address" a -localauth
	v unlockvldb
	e move lvol "$theirs" a "$address" a
	e dump lvol -file moved.dump
	same_dumps lvol.dump moved.dump
}

test_levels_end() {
	stop volserver
	stop fileserver QUIT
	stop server
	stop other
	limited 60 "$rxvol" -S store check > out.txt 2>&1 || fail "the store has faults: $(head -n 1 out.txt)"
	! grep -i 'assert\|damaged' server.err other.err || fail "a log tells of a fault"
}
