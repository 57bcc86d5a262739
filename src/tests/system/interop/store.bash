# SPDX-License-Identifier: BSD-2-Clause
# OpenAFS's programs, and a client on its library, with volumes that rxfsd serves from a store. The client makes the
# same calls to a cell of OpenAFS's servers before.

. "$here/cell.bash"

keyfile=/etc/openafs/server/KeyFileExt
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
realm=INTEROP.EXAMPLE

# -- OpenAFS's cell --

their() {
	limited 60 "$@" -localauth > made.txt 2>&1 || { echo "$*: $(cat made.txt)"; return 1; }
}

# their_volume NAME: with a directory "was" in its clones, which is gone in the volume.
their_volume() {
	their vos create "$address" a "$1" -maxquota 5000 && their vos addsite "$address" a "$1" && their vos release "$1" &&
		their vos backup "$1"
}

their_id() {
	limited 20 vos examine "$1" -noauth -format 2> /dev/null | sed -n 's/^id[[:space:]]*\([0-9]*\).*/\1/p' | head -n 1
}

make_theirs() {
	launch vlserver "$servers/vlserver"
	launch ptserver "$servers/ptserver" -p 16
	wait_port 7003 vlserver && wait_port 7002 ptserver && wait_for databases_ready || return
	their pts createuser alice -id 1 && their pts createuser bob -id 2 && their pts createuser boss -id 3 &&
		their pts adduser boss system:administrators || return
	# Aborts at once, also to a client with many.
	launch fileserver "$servers/fileserver" -abortthreshold 0
	launch volserver "$servers/volserver"
	wait_port 7000 fileserver && wait_port 7005 volserver && wait_for volserver_ready || return
	their_volume uae && their_volume plain && their vos create "$address" a other-uae -maxquota 5000 &&
		their vos create "$address" a other-plain -maxquota 5000
}

# make_calls FILE CODES ID: FILE gets what store_calls prints.
make_calls() {
	limited 100 store_calls "$address" $key 5 $realm "$2" work="$("$3" "$2")" work.ro="$("$3" "$2.readonly")" \
		work.bk="$("$3" "$2.backup")" other="$("$3" "other-$2")" < "$here/store_calls.txt" > "$1" 2> "$1.err" ||
		{ echo "store_calls $2 ended with $?: $(tail -n 1 "$1.err") after $(tail -n 1 "$1")"; return 1; }
}

# -- our server --

our() {
	limited 60 "$@" > made.txt 2>&1 || { echo "$*: $(cat made.txt)"; return 1; }
}

our_volume() {
	our "$rxvol" -S store create "$1" --quota 5000K && our "$rxvol" -S store clone "$1" &&
		our "$rxvol" -S store clone "$1" --backup
}

our_id() {
	limited 20 "$rxvol" -S store examine "$1" 2> /dev/null | sed -n 's/^ *id *\([0-9]*\).*/\1/p' | head -n 1
}

make_ours() {
	our_volume uae && our_volume plain && our "$rxvol" -S store create other-uae --quota 5000K &&
		our "$rxvol" -S store create other-plain --quota 5000K &&
		our "$rxpt" -S store adduser alice --id 1 && our "$rxpt" -S store adduser bob --id 2 &&
		our "$rxpt" -S store adduser boss --id 3 &&
		our "$rxpt" -S store member add system:administrators boss || return
	launch server "$rxfsd" --store store --cell "$cell_name" --listen "$address" --keytab right --require none \
		--allow-anonymous-writes --protection store --rpc-stats
	wait_port 7000 server && wait_port 7003 server && wait_port 7005 server && wait_port 7002 server
}

before_store() {
	local cell_ours codes
	rxfsd=$(need rxfsd) && rxpt=$(need rxpt) && rxvol=$(need rxvol) && cell_ours=$(need cell_ours) || return
	"$cell_ours" key $keyfile 5 18 $key || return
	cp $keyfile right
	make_theirs || return
	for codes in uae plain; do
		make_calls theirs.$codes $codes their_id || return
	done
	stop fileserver QUIT
	stop volserver
	stop vlserver
	stop ptserver
	make_ours
}

test_store_calls_uae() {
	make_calls ours.uae uae our_id || fail "$(make_calls ours.uae uae our_id)"
	diff theirs.uae ours.uae > differ || fail "$(head -n 20 differ)"
}
test_store_calls_plain() {
	make_calls ours.plain plain our_id || fail "$(make_calls ours.plain plain our_id)"
	diff theirs.plain ours.plain > differ || fail "$(head -n 20 differ)"
}
