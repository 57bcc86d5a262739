# SPDX-License-Identifier: BSD-2-Clause
# The guide doc/moving.md: each of its commands, in a cell whose database servers and old file server are OpenAFS's.

. "$here/member.bash"

guide=$here/../../../../doc/moving.md

# Here addresses have names.
registered() {
	limited 10 "$(type -P vos)" listaddrs -noauth -noresolve 2> /dev/null | grep -q "^$1\$"
}

before_moving() {
	local cell_ours name
	rxfsd=$(need rxfsd) && rxvol=$(need rxvol) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 $key || return
	make_tree
	rm "$tree/large"
	ip addr add "$theirs/24" dev afs0 && ip addr add "$ours/24" dev afs0 || return
	printf '%s old\n%s new\n' "$theirs" "$ours" >> /etc/hosts
	start_databases && p createuser alice -id 1 || return
	echo "$theirs" > /var/lib/openafs/local/NetInfo
	launch fileserver "$servers/fileserver" -rxbind
	launch volserver "$servers/volserver" -rxbind
	wait_for listening "$theirs" && wait_for registered "$theirs" || return
	rm /var/lib/openafs/local/NetInfo
	make_dump user.alice 536870999 "$tree" > alice.dump || return
	limited 60 "$(type -P vos)" restore "$theirs" a user.alice -file alice.dump -localauth || return
	for name in user.bob user.carol root.cell; do
		limited 60 "$(type -P vos)" create "$theirs" a "$name" -localauth || return
	done
	limited 60 "$(type -P vos)" addsite "$theirs" a root.cell -localauth && limited 60 "$(type -P vos)" release root.cell -localauth &&
		limited 60 "$(type -P vos)" backup user.bob -localauth
}

# -- what stands for the programs of the guide --

scp() { [ -f /etc/openafs/server/ThisCell ]; }
rxfsd() {
	launch server "$rxfsd" "$@" --require none && wait_port 7005 server && wait_for registered "$ours"
}
rxvol() { limited 120 "$rxvol" "$@"; }
vos() { limited 60 "$(type -P vos)" "$@"; }

# block HEADING [N]: runs the lines of the Nth block of commands below a heading; output in out.txt.
block() {
	local line
	awk -v heading="## $1" -v n="${2:-1}" '
		/^## / { below = index($0, heading) == 1 }
		below && /^```/ { if (inside) inside = 0; else { inside = 1; at++ }; next }
		inside && at == n' "$guide" > lines
	[ -s lines ] || fail "the guide has no such block: $1"
	while read -r line; do
		echo "\$ $line"
		eval "${line//\/srv\//$work/}" > out.txt 2> err.txt < /dev/null || fail "$line: ended with $?: $(cat err.txt out.txt | head -n 2 | tr '\n' ' ')"
		cat out.txt
	done < lines
}

test_moving_joins() {
	block 1. 1
	block 1. 2
	block 1. 3
	want_line out.txt '^old'
	want_line out.txt '^new'
}

test_moving_one() {
	v dump user.alice -file before.dump
	block 2.
	want_line out.txt '5 volumes move'
	block 3.
	on "$theirs" user.alice RW On-line
	not_on "$ours" user.alice
	v dump user.alice -file moved.dump
	same_dumps before.dump moved.dump
}

test_moving_all() {
	local name
	block 4. 1
	want_line out.txt 'the source has no volume any more'
	for name in user.alice user.bob user.carol root.cell; do
		on "$ours" "$name" RW On-line
	done
	v dump user.alice -file moved.dump
	same_dumps before.dump moved.dump
	block 4. 2
	v listvol "$ours"
	want_line out.txt '^user\.bob\.backup .* BK .* On-line'
	want_line out.txt '^root\.cell\.readonly .* RO .* On-line'
}

test_moving_balance() {
	block Several
}

test_moving_back() {
	block 5.
	on "$theirs" user.alice RW On-line
	not_on "$ours" user.alice
	v dump user.alice -file moved.dump
	same_dumps before.dump moved.dump
	v release root.cell
}

test_moving_end() {
	stop server
	limited 60 "$rxvol" -S afs check > out.txt 2>&1 || fail "the store has faults: $(head -n 1 out.txt)"
}
