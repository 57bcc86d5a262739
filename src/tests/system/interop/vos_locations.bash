# SPDX-License-Identifier: BSD-2-Clause
# The location service of OpenAFS, and then ours: each call that changes its database or lists it, and each command of vos that
# speaks to no other service, has the same results.

keyfile=/etc/openafs/server/KeyFileExt
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
vl_ours=
rxfsd=

vlserver_ready() {
	limited 10 vos listvldb -noauth > /dev/null 2>&1
	limited 10 udebug "$address" 7003 2> /dev/null | grep -q 'Recovery state 1f'
}

# calls FOLDER: all calls of vl_calls.txt, as the cell itself and as nobody.
calls() {
	limited 100 "$vl_ours" "$address" 7003 right < "$here/vl_calls.txt" > "$1/calls" || return
	limited 100 "$vl_ours" "$address" 7003 - < "$here/vl_calls.txt" > "$1/calls.noauth"
}

# vos_step FOLDER ARGUMENTS...: a command, its output and its status. Entries and servers come in any order; the server that has
# our location service is one of its own accord.
vos_step() {
	local folder=$1 status
	shift
	limited 60 vos "$@" -noresolve > answer.txt 2>&1
	status=$?
	sed -e 's/ \.\. */&\n/' -e 's/^ *//' answer.txt | grep -v -e '^ *$' -e "^$address\$" | sed -e '/^UUID: /{/-010203040506$/!d}' | sort > sorted.txt
	{ echo "vos $*"; cat sorted.txt; echo "status $status"; } >> "$folder/vos"
}

# A server that vos asks for its partitions.
serve_volumes() {
	ip addr add "$1/24" dev afs0 && mkdir -m 700 "store.$1" &&
		"$(need rxvol)" -S "store.$1" create "some.$1" > made.txt 2>&1 || return
	launch "server.$1" "$rxfsd" --store "store.$1" --cell "$cell_name" --listen "$1" --keytab right --require none \
		--port 17000 --vl-port 17003 --vol-port 7005
	wait_for grep -q '^listening' "server.$1.out"
}

before_vos_locations() {
	local cell_ours
	rxfsd=$(need rxfsd) && vl_ours=$(need vl_ours) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 $key || return
	cp $keyfile right
	mkdir theirs ours
	serve_volumes 10.91.7.2 && serve_volumes 10.91.7.14 || return
	launch vlserver "$servers/vlserver"
	wait_port 7003 vlserver && wait_for vlserver_ready || return
	calls theirs && commands theirs || return
	stop vlserver
	"$(need rxvol)" -S store init > made.txt 2>&1 || return
	launch server "$rxfsd" --store store --listen "$address" --keytab right --require none \
		--audit-log audit.jsonl
	wait_for grep -qs "^listening" server.out server.status || return
	calls ours && commands ours
}

uuid() {
	printf '%08x-0000-0000-00-00-010203040506' "$1"
}

# commands FOLDER: what vos does with the entries and servers that the calls have left, and others.
commands() {
	local f=$1 s=10.91.7.2 m=10.91.7.14
	"$vl_ours" "$address" 7003 right > made.txt <<- 'END' || return
		register 21 10.91.7.14 10.91.7.15
		register 22 10.91.7.16
		create user.alice 2001 2002 2003 0x7000 10.91.7.2:0:4 10.91.7.2:0:2 10.91.7.14:1:2
		create user.bob 2011 2012 2013 0x1000 10.91.7.14:0:4
		create proj.x 2021 2022 2023 0x1000 10.91.7.5:2:4
		create proj.y 2031 2032 2033 0x5000 10.91.7.2:1:4
		create plain 2041 0 0 0x1000 10.91.9.1:0:4
	END
	vos_step "$f" listaddrs -localauth
	vos_step "$f" listaddrs -printuuid -noauth
	vos_step "$f" listaddrs -uuid "$(uuid 21)" -noauth
	vos_step "$f" listaddrs -uuid "$(uuid 21)" -printuuid -noauth
	vos_step "$f" listaddrs -uuid "$(uuid 77)" -noauth
	vos_step "$f" listaddrs -host $m -noauth
	vos_step "$f" listaddrs -host 10.91.7.15 -printuuid -noauth
	vos_step "$f" listaddrs -host 10.91.9.77 -noauth
	vos_step "$f" listvldb -noauth
	vos_step "$f" listvldb -quiet -noauth
	vos_step "$f" listvldb -nosort -localauth
	vos_step "$f" listvldb -name user.alice -noauth
	vos_step "$f" listvldb -name 2012 -noauth
	vos_step "$f" listvldb -name user.alice.readonly -noauth
	vos_step "$f" listvldb -name nothing -noauth
	vos_step "$f" listvldb -name 4711 -noauth
	vos_step "$f" listvldb -server $s -noauth
	vos_step "$f" listvldb -server 10.91.7.15 -noauth
	vos_step "$f" listvldb -server $m -partition b -noauth
	vos_step "$f" listvldb -server $m -partition a -noauth
	vos_step "$f" listvldb -server 10.91.44.44 -noauth
	vos_step "$f" listvldb -partition /vicepb -noauth
	vos_step "$f" lock -id user.alice -localauth
	vos_step "$f" lock -id user.alice -localauth
	vos_step "$f" lock -id user.bob -noauth
	vos_step "$f" lock -id 2023 -localauth
	vos_step "$f" listvldb -locked -noauth
	vos_step "$f" listvldb -locked -server $s -noauth
	vos_step "$f" unlock -id user.alice -localauth
	vos_step "$f" unlock -id user.alice -localauth
	vos_step "$f" lock -id user.alice -localauth
	vos_step "$f" lock -id user.bob -localauth
	vos_step "$f" unlockvldb -server $s -localauth
	vos_step "$f" listvldb -locked -noauth
	vos_step "$f" unlockvldb -localauth
	vos_step "$f" listvldb -locked -noauth
	vos_step "$f" addsite -server $m -partition a -id user.bob -localauth
	vos_step "$f" addsite -server $m -partition a -id user.bob -localauth
	vos_step "$f" addsite -server $s -partition a -id user.bob -localauth
	vos_step "$f" addsite -server $s -partition a -id user.bob -noauth
	vos_step "$f" addsite -server $s -partition a -id proj.x -roid 3333 -localauth
	vos_step "$f" addsite -server $m -partition a -id proj.x -valid -localauth
	vos_step "$f" listvldb -name user.bob -noauth
	vos_step "$f" listvldb -name proj.x -noauth
	vos_step "$f" remsite -server $m -partition a -id user.bob -localauth
	vos_step "$f" remsite -server $m -partition a -id user.bob -localauth
	vos_step "$f" remsite -server $s -partition a -id user.bob -localauth
	vos_step "$f" listvldb -name user.bob -noauth
	vos_step "$f" changeloc -server $s -partition a -id user.bob -localauth
	vos_step "$f" changeloc -server $s -partition z -id user.bob -noauth
	vos_step "$f" listvldb -name user.bob -noauth
	vos_step "$f" backupsys -prefix user -dryrun -localauth
	vos_step "$f" backupsys -prefix user proj -exclude -dryrun -localauth
	vos_step "$f" backupsys -server $s -dryrun -localauth
	vos_step "$f" backupsys -prefix '^us' -xprefix '^user.b' -dryrun -localauth
	vos_step "$f" setaddrs -uuid "$(uuid 21)" -host 10.91.7.24 10.91.7.25 -localauth
	vos_step "$f" listaddrs -uuid "$(uuid 21)" -printuuid -noauth
	vos_step "$f" listvldb -name user.alice -noauth
	vos_step "$f" setaddrs -uuid "$(uuid 21)" -host 10.91.7.2 -localauth
	vos_step "$f" setaddrs -uuid "$(uuid 21)" -host 10.91.7.26 -noauth
	vos_step "$f" setaddrs -uuid "$(uuid 78)" -host 10.91.7.78 -localauth
	vos_step "$f" changeaddr -oldaddr 10.91.9.1 -newaddr 10.91.9.3 -localauth
	vos_step "$f" changeaddr -oldaddr 10.91.7.24 -newaddr 10.91.9.4 -localauth
	vos_step "$f" changeaddr -oldaddr 10.91.7.24 -newaddr 10.91.9.4 -force -localauth
	vos_step "$f" changeaddr -oldaddr 10.91.7.16 -newaddr 10.91.9.5 -localauth
	vos_step "$f" changeaddr -oldaddr 10.91.9.3 -remove -localauth
	vos_step "$f" changeaddr -oldaddr 10.91.7.16 -remove -noauth
	vos_step "$f" changeaddr -oldaddr 10.91.7.16 -remove -localauth
	vos_step "$f" changeaddr -oldaddr 10.91.7.16 -remove -localauth
	vos_step "$f" remaddrs -uuid "$(uuid 21)" -localauth
	vos_step "$f" delentry -id user.alice -noexecute -localauth
	vos_step "$f" delentry -id user.alice -noauth
	vos_step "$f" delentry -id user.alice proj.x -localauth
	vos_step "$f" delentry -id user.alice -localauth
	vos_step "$f" delentry -id 2012 -localauth
	vos_step "$f" remaddrs -uuid "$(uuid 21)" -localauth
	vos_step "$f" remaddrs -uuid "$(uuid 21)" -localauth
	vos_step "$f" delentry -prefix proj -localauth
	vos_step "$f" delentry -server $s -partition b -localauth
	vos_step "$f" delentry -server $s -localauth
	vos_step "$f" listvldb -noauth
	vos_step "$f" listaddrs -noauth -printuuid
}

test_locations_calls() {
	diff theirs/calls ours/calls > differ || fail "$(grep -c '^[<>]' differ) lines differ: $(head -n 3 differ | tr '\n' '|')"
}

test_locations_audit() {
	want_line audit.jsonl '"who":"[^"]*","id":[0-9-]*,"operation":"VL.CreateEntry","fid":"1011.0.0","name":"two","code":0}'
	want_line audit.jsonl '"operation":"VL.SetLock","fid":"1001.0.0","code":363541}'
	want_line audit.jsonl '"operation":"VL.RegisterAddrs","name":"10.91.7.2","code":0}'
	want_line audit.jsonl '"operation":"VL.DeleteEntry","fid":"1002.0.0","code":363546}'
}

# Only administrators change anything. Nobody else may have names compared with expressions.
test_locations_refusals() {
	local f
	for f in theirs ours; do
		awk '/^(create|replace|update|updatename|delete|lock|unlock|register|change) / { call = $0; getline
			if ($0 != "  code 363546") print call ": " $0 }' $f/calls.noauth > left
		[ ! -s left ] || fail "$f: $(head -n 1 left)"
	done
	awk '/^list .*[*[]/ { call = $0; getline; if ($0 != "  code 363546" && call !~ / \.\*$/) print call }' ours/calls.noauth > left
	[ ! -s left ] || fail "not refused: $(head -n 1 left)"
	want_line ours/calls.noauth '^list 0 0 0 0 0 one$'
}

test_locations_vos() {
	diff theirs/vos ours/vos > differ || fail "$(grep -c '^[<>]' differ) lines differ: $(head -n 3 differ | tr '\n' '|')"
}
