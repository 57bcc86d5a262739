# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's `bos` → its bosserver, and then our rxfsd: what `bos status` shows, and how all other commands are refused.

key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20

both_running() {
	[ "$(limited 10 bos status "$address" -noauth | grep -c 'currently running normally')" -eq 2 ]
}

# bos_step FILE ARGUMENTS...: a command, its output and its status. bos ends one message with a carriage return.
bos_step() {
	local file=$1 status
	shift
	limited 60 bos "$@" -noauth > answer.txt 2>&1
	status=$?
	{ echo "bos $*"; tr -d '\r' < answer.txt; echo "status $status"; } >> "$file"
}

# Commands that no bosserver carries out for an anonymous caller.
refused() {
	local f=$1 s=$address
	bos_step "$f" create "$s" new simple /bin/true
	bos_step "$f" delete "$s" vlserver
	bos_step "$f" start "$s" vlserver
	bos_step "$f" stop "$s" vlserver
	bos_step "$f" startup "$s" vlserver
	bos_step "$f" startup "$s"
	bos_step "$f" shutdown "$s" vlserver
	bos_step "$f" shutdown "$s"
	bos_step "$f" shutdown "$s" -wait
	bos_step "$f" restart "$s" vlserver
	bos_step "$f" restart "$s" -all
	bos_step "$f" restart "$s" -bosserver
	bos_step "$f" adduser "$s" alice
	bos_step "$f" removeuser "$s" alice
	bos_step "$f" addhost "$s" 10.91.7.9
	bos_step "$f" removehost "$s" 10.91.7.9
	bos_step "$f" setcellname "$s" other.example
	bos_step "$f" listkeys "$s"
	bos_step "$f" removekey "$s" -kvno 5
	bos_step "$f" exec "$s" /bin/true
	bos_step "$f" prune "$s" -all
	bos_step "$f" setauth "$s" off
	bos_step "$f" setrestart "$s" never
	bos_step "$f" setrestricted "$s" 1
	bos_step "$f" getlog "$s" -file /etc/passwd
	bos_step "$f" install "$s" /etc/passwd
	bos_step "$f" uninstall "$s" passwd
	bos_step "$f" status "$s" -instance nothing
}

before_bos() {
	local cell_ours f
	cell_ours=$(need cell_ours) || return
	"$cell_ours" key /etc/openafs/server/KeyFileExt 5 18 $key || return
	cp /etc/openafs/server/KeyFileExt right
	chmod 755 /etc/openafs /etc/openafs/server /var/lib/openafs /var/lib/openafs/local
	for f in vlserver ptserver; do
		printf 'bnode simple %s 1\nparm /bin/sleep 1000\nend\n' "$f"
	done > /etc/openafs/BosConfig
	launch bosserver bosserver -nofork
	wait_port 7007 bosserver && wait_for both_running || return
	limited 20 bos status "$address" -long -noauth > theirs.long 2>&1
	refused theirs
	stop bosserver QUIT
	bos_step none status "$address"
	"$(need rxvol)" -S store init > made.txt 2>&1 || return
	launch server "$(need rxfsd)" --store store --protection store --listen "$address" --keytab right --require none --bos
	wait_for grep -qs '^listening' server.out server.status && alive server
}

# The same text for a server of each kind, but for the command and the dates. This bosserver also complains about its folders.
test_bos_status() {
	want_line server.out " bos $address:7007\$"
	limited 20 bos status "$address" -noauth > status.txt 2>&1 || fail "bos ended with $?"
	cat > want.txt <<- 'END'
		Instance fs, currently running normally.
		    Auxiliary status is: file server running.
		Instance vlserver, currently running normally.
		Instance ptserver, currently running normally.
	END
	diff want.txt status.txt > differ || fail "$(tr '\n' '|' < differ)"
	limited 20 bos status "$address" -instance fs ptserver -noauth > some.txt 2>&1 || fail "bos ended with $?"
	sed '/vlserver/d' want.txt | diff - some.txt > differ || fail "$(tr '\n' '|' < differ)"
}

test_bos_long() {
	limited 20 bos status "$address" -long -noauth > long.txt 2>&1 || fail "bos ended with $?"
	want_line long.txt '^Instance fs, \(type is fs\) currently running normally\.$'
	want_line long.txt "^ +Process last started at $(date +%a) .* \(1 proc starts\)\$"
	want_line long.txt "^ +Command 1 is 'rxfsd'\$"
	sed -n '/^Instance vlserver/,$p' long.txt > ours.long
	for f in ours theirs; do
		sed -e '/access on server directories/d' -e "s/Command 1 is .*/command/" -e 's/started at .* (/started (/' $f.long > $f.plain
	done
	diff theirs.plain ours.plain > differ || fail "$(tr '\n' '|' < differ)"
	! grep -q store long.txt || fail 'arguments of the server are shown'
}

# A token is not needed, and does no harm.
test_bos_localauth() {
	limited 20 bos status "$address" -localauth > local.txt 2>&1 || fail "bos ended with $?"
	diff want.txt local.txt > differ || fail "$(tr '\n' '|' < differ)"
}

test_bos_refused() {
	refused ours
	diff theirs ours > differ || fail "$(grep -c '^[<>]' differ) lines differ: $(head -n 4 differ | tr '\n' '|')"
	awk '/^bos / { call = $0; refused = 0 } /you are not authorized/ { refused = 1 } /^status / && !refused { print call }' ours > left
	[ "$(cat left)" = "bos status $address -instance nothing" ] || fail "not refused: $(head -n 1 left)"
}

# Not even the cell itself controls this server by bos; and what bosserver tells of its folders is not here.
test_bos_refused_all() {
	local command
	while read -r command; do
		# shellcheck disable=SC2086
		limited 60 bos ${command/SERVER/$address} -localauth > answer.txt 2>&1
		want_line answer.txt 'you are not authorized'
	done <<- 'END'
		stop SERVER fs
		shutdown SERVER
		restart SERVER -all
		exec SERVER /bin/true
		getlog SERVER -file /etc/passwd
		install SERVER /etc/passwd
		listkeys SERVER
		listhosts SERVER
		listusers SERVER
		getdate SERVER -file rxfsd
		getrestart SERVER
		getrestricted SERVER
		salvage SERVER -partition a
		salvage SERVER -all
	END
	alive server || fail 'the server has ended'
	limited 20 bos status "$address" -noauth > status.txt 2>&1
	diff want.txt status.txt > differ || fail "$(tr '\n' '|' < differ)"
}

# Without a server there, and without the option, bos says so.
test_bos_none() {
	want_line none 'communications failure|server or network not responding'
	stop server || fail "rxfsd ended with $?: $(tail -n 1 server.err)"
	launch server "$(need rxfsd)" --store store --listen "$address" --keytab right --require none
	wait_for grep -qs '^listening' server.out server.status
	rm -f none
	bos_step none status "$address"
	want_line none 'communications failure|server or network not responding'
	stop server || fail "rxfsd ended with $?: $(tail -n 1 server.err)"
}
