# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's protection server, and then ours: calls that change the database, by administrators, users and callers without an identity, and the
# commands of pts have the same results.

keyfile=/etc/openafs/server/KeyFileExt
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
pt_ours=

ptserver_ready() {
	limited 10 pts listmax -noauth > /dev/null 2>&1
	limited 10 udebug "$address" 7002 2> /dev/null | grep -q 'Recovery state 1f'
}

calls() {
	limited 100 "$pt_ours" "$address" 7002 right script < "$here/pts_calls.txt" > "$1/calls"
}

# pts_step FOLDER ARGUMENTS...: a command, its output and its status. Lists come in any order.
pts_step() {
	local folder=$1 status
	shift
	limited 60 pts "$@" > answer.txt 2>&1
	status=$?
	{ echo "pts $*"; sort answer.txt; echo "status $status"; } >> "$folder/pts"
}

# commands FOLDER: each subcommand, with its options, on what the calls have left.
commands() {
	local f=$1
	pts_step "$f" createuser ann -localauth
	pts_step "$f" createuser -name ben cle -id 800 801 -localauth
	pts_step "$f" createuser ann -localauth
	pts_step "$f" createuser dan -id 800 -localauth
	pts_step "$f" createuser dan -noauth
	pts_step "$f" createuser 10.7.8.9 -localauth
	pts_step "$f" creategroup crew -localauth
	pts_step "$f" creategroup ann:friends ann:others -owner ann -localauth
	pts_step "$f" creategroup ben:friends -owner ann -localauth
	pts_step "$f" creategroup fixed -id -900 -localauth
	pts_step "$f" creategroup fixed2 -id 900 -localauth
	pts_step "$f" creategroup ann:none -owner nobody -localauth
	pts_step "$f" creategroup ann:none -owner ann -noauth
	pts_step "$f" adduser -user ann ben cle -group crew ann:friends -localauth
	pts_step "$f" adduser ann crew -localauth
	pts_step "$f" adduser nobody crew -localauth
	pts_step "$f" adduser ann nothing -localauth
	pts_step "$f" adduser ann crew -noauth
	pts_step "$f" removeuser cle crew -localauth
	pts_step "$f" removeuser cle crew -localauth
	pts_step "$f" removeuser -user ann ben -group ann:friends -localauth
	pts_step "$f" removeuser ann crew -noauth
	pts_step "$f" membership crew ann ann:friends -localauth
	pts_step "$f" membership ann -noauth
	pts_step "$f" examine ann ben crew ann:friends -localauth
	pts_step "$f" examine nothing -localauth
	pts_step "$f" setfields ann -access SO--- -localauth
	pts_step "$f" setfields ann -groupquota 5 -localauth
	pts_step "$f" setfields crew ann:friends -access SOMar -localauth
	pts_step "$f" setfields crew -access s-m-- -localauth
	pts_step "$f" setfields crew -access xyz -localauth
	pts_step "$f" setfields crew -access SOMar -noauth
	pts_step "$f" setfields ann -groupquota 9 -noauth
	pts_step "$f" examine ann crew ann:friends -localauth
	pts_step "$f" examine crew -noauth
	pts_step "$f" rename ann anna -localauth
	pts_step "$f" rename ann:friends ann:pals -localauth
	pts_step "$f" rename ann:others anna:others -localauth
	pts_step "$f" rename crew ben -localauth
	pts_step "$f" rename anna ann -noauth
	pts_step "$f" rename nothing something -localauth
	pts_step "$f" rename anna ann -localauth
	pts_step "$f" chown fixed ann -localauth
	pts_step "$f" chown ann:pals ben -localauth
	pts_step "$f" chown ben crew -localauth
	pts_step "$f" chown fixed nothing -localauth
	pts_step "$f" chown fixed ben -noauth
	pts_step "$f" listowned ann ben -localauth
	pts_step "$f" listowned ann -noauth
	pts_step "$f" listmax -noauth
	pts_step "$f" setmax -user 20000 -localauth
	pts_step "$f" setmax -group -6000 -localauth
	pts_step "$f" setmax -user 30000 -noauth
	pts_step "$f" listmax -noauth
	pts_step "$f" createuser eva -localauth
	pts_step "$f" creategroup last -localauth
	pts_step "$f" listentries -localauth
	pts_step "$f" listentries -users -localauth
	pts_step "$f" listentries -groups -localauth
	pts_step "$f" listentries -users -groups -localauth
	pts_step "$f" listentries -noauth
	pts_step "$f" delete eva last -localauth
	pts_step "$f" delete eva -localauth
	pts_step "$f" delete ben -noauth
	pts_step "$f" delete ben -localauth
	pts_step "$f" delete system:anyuser -localauth
	pts_step "$f" membership crew -localauth
	printf '%s\n' 'createuser by.source' 'adduser by.source crew' 'examine by.source' 'nothing' > source.pts
	pts_step "$f" source source.pts -localauth
	printf '%s\n' 'createuser by.hand' 'sleep 0' 'adduser by.hand crew' 'membership crew' 'quit' > input.pts
	pts_step "$f" interactive -localauth < input.pts
	pts_step "$f" interactive -noauth < input.pts
	pts_step "$f" membership crew by.hand by.source -localauth
	pts_step "$f" creategroup -name inner middle outer -localauth
	pts_step "$f" adduser by.hand inner -localauth
	pts_step "$f" adduser inner middle -localauth
	pts_step "$f" adduser -user inner middle -group outer -localauth
	pts_step "$f" adduser inner inner -localauth
	pts_step "$f" adduser inner outer -noauth
	pts_step "$f" membership -nameorid inner middle outer by.hand -supergroups -localauth
	pts_step "$f" membership inner -supergroups -noauth
	pts_step "$f" membership -nameorid by.hand outer middle -expandgroups -localauth
	pts_step "$f" membership -nameorid by.hand inner -supergroups -expandgroups -localauth
	pts_step "$f" examine -nameorid outer middle -localauth
	pts_step "$f" removeuser inner outer -localauth
	pts_step "$f" removeuser inner outer -localauth
	pts_step "$f" membership outer -localauth
	pts_step "$f" delete middle -localauth
	pts_step "$f" membership -nameorid outer inner -supergroups -localauth
}

before_pts() {
	local cell_ours
	rxfsd=$(need rxfsd) && pt_ours=$(need pt_ours) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 $key || return
	cp $keyfile right
	mkdir theirs ours
	launch ptserver "$servers/ptserver" -p 16
	wait_port 7002 ptserver && wait_for ptserver_ready || return
	calls theirs && commands theirs || return
	stop ptserver
	"$(need rxvol)" -S store init > made.txt 2>&1 || return
	launch server "$rxfsd" --store store --listen "$address" --cell "$cell_name" --keytab right --require none --protection store \
		--audit-log audit.jsonl
	wait_for grep -qs '^listening' server.out server.status || return
	calls ours && commands ours
}

test_pts_audit() {
	want_line audit.jsonl '"who":"alice@INTEROP.EXAMPLE","id":1,"operation":"PT.NewEntry","name":"alice:mine","code":0}'
	want_line audit.jsonl '"who":"bob@INTEROP.EXAMPLE","id":2,"operation":"PT.AddToGroup","name":"carol","to_name":"alice:shut","code":267269}'
	want_line audit.jsonl '"operation":"PT.ChangeEntry","name":"alice","to_name":"alicia","code":0}'
}

test_pts_commands() {
	diff theirs/pts ours/pts > differ || fail "$(grep -c '^[<>]' differ) lines differ: $(head -n 3 differ | tr '\n' '|')"
}

test_pts_calls_change() {
	diff theirs/calls ours/calls > differ || fail "$(grep -c '^[<>]' differ) lines differ: $(head -n 3 differ | tr '\n' '|')"
}
