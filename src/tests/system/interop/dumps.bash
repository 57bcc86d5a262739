# SPDX-License-Identifier: BSD-2-Clause
# Dumps of volumes: what rxvol wrote restored by OpenAFS's vos, and what vos wrote restored by rxvol.

. "$here/cell.bash"

keyfile=/etc/openafs/server/KeyFileExt

# vol OPTIONS...: rxvol with the store; errors in err.txt.
vol() {
	limited 60 "$rxvol" -S store "$@" > out.txt 2> err.txt || fail "rxvol $* ended with $?: $(head -n 1 err.txt)"
}

# their OPTIONS...: an OpenAFS program as the cell itself.
their() {
	limited 60 "$@" -localauth > out.txt 2> err.txt || fail "$* ended with $?: $(cat out.txt err.txt | head -n 1)"
}

# list DUMP: what it has, as DUMP.list.
list() {
	limited 60 python3 -B "$here/list_dump.py" < "$1" > "$1.list" 2> err.txt || fail "$1: $(head -n 1 err.txt)"
}

# same_dumps ONE OTHER: all vnodes are the same.
same_dumps() {
	list "$1"
	list "$2"
	[ -s "$1.list" ] || fail "$1 has no vnodes"
	diff "$1.list" "$2.list" > diff.txt || fail "$1 and $2 differ: $(grep '^[<>]' diff.txt | head -n 2 | tr '\n' ' ')"
}

make_home() {
	local i
	mkdir -p "$tree/sub/deep" "$tree/many" "$tree/empty-folder"
	echo 'hello, world' > "$tree/hello.txt"
	: > "$tree/empty"
	head -c 8192 /dev/urandom > "$tree/sub/page"
	head -c 5000001 /dev/urandom > "$tree/large"
	truncate -s 3000000 "$tree/sub/holes"
	echo deep > "$tree/sub/deep/file"
	ln "$tree/hello.txt" "$tree/again.txt"
	ln -s hello.txt "$tree/link"
	for ((i = 0; i < 500; i++)); do
		echo "$i" > "$tree/many/a-name-that-takes-two-slots-$i"
	done
	chmod 640 "$tree/hello.txt"
	chmod 4755 "$tree/sub/page"
	touch -d '2021-03-04 05:06:07 UTC' "$tree/hello.txt" "$tree/sub"
	vol create home --acl 'system:anyuser rl' --quota 500M --owner 17
	vol import home "$tree" --owner 17
	vol acl home:sub system:authuser rlidwk
	vol acl home:empty-folder -n system:anyuser rl system:authuser k
	vol mount home:mounted root.cell
}

before_dumps() {
	local cell_ours
	rxvol=$(need rxvol) && cell_ours=$(need cell_ours) && command -v python3 > /dev/null || return
	"$cell_ours" key $keyfile 5 18 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 || return
	cp $keyfile right
	(make_home) && start_cell || return
	# The file server knows the service itself by this name.
	limited 20 pts createuser afs -id 700 -localauth && limited 20 pts adduser afs system:administrators -localauth
}

# admin OPTIONS...: afscp as the service itself.
admin() {
	local afscp
	afscp=$(need afscp) || exit 77
	limited 60 "$afscp" -s "$address" -x rxkad --key-file right "$@" > out.txt 2> err.txt ||
		fail "afscp $* ended with $?: $(head -n 1 err.txt)"
}

# Ours to OpenAFS and back: all that a dump has is the same.
test_dumps_ours_restored() {
	vol dump home --file ours.dump
	their vos restore "$address" a theirs -file ours.dump
	limited 20 vos examine theirs -noauth > out.txt 2>&1 || fail "vos examine ended with $?"
	want_line out.txt 'On-line'
	their vos dump theirs -file back.dump
	same_dumps ours.dump back.dump
}

# And as a client reads it.
test_dumps_ours_read() {
	local afscp
	afscp=$(need afscp) || exit 77
	rm -rf copied
	limited 60 "$afscp" -s "$address" get -r theirs: copied > out.txt 2> err.txt || true
	diff -r --no-dereference -x mounted "$tree" copied > diff.txt 2>&1 || fail "the copy differs: $(head -n 1 diff.txt)"
	rm -rf copied
}

# What changed since a clone.
test_dumps_ours_incremental() {
	local changed=$work/changed
	vol clone home --backup
	mkdir -p "$changed/new"
	echo new > "$changed/new/file"
	echo 'another text' > "$changed/other"
	vol import home "$changed" --owner 18
	vol acl home:many system:anyuser none
	vol dump home --since home.backup --file more.dump
	list more.dump
	[ "$(grep -c unchanged more.dump.list)" -gt 500 ] || fail "only $(grep -c unchanged more.dump.list) are unchanged"
	their vos restore "$address" a theirs -file more.dump -overwrite incremental
	vol dump home --file ours2.dump
	their vos dump theirs -file back2.dump
	same_dumps ours2.dump back2.dump
}

# OpenAFS's dump of another volume, with what its file server makes of it.
test_dumps_theirs_restored() {
	their vos create "$address" a made -maxquota 0
	admin acl made: system:anyuser all
	admin put -r "$tree/." made:tree
	their vos dump made -file made.dump
	vol restore made --file made.dump
	vol check
	vol dump made --file made2.dump
	same_dumps made.dump made2.dump
}

test_dumps_theirs_incremental() {
	local since
	since=$(date -u '+%m/%d/%Y %H:%M:%S')
	sleep 1.1
	echo changed > text
	admin put text made:tree/changed
	admin rm made:tree/empty
	their vos dump made "-time" "$since" -file since.dump
	list since.dump
	grep -q unchanged since.dump.list || fail "the dump is a complete one"
	vol restore made --file since.dump
	vol check
	their vos dump made -file made3.dump
	vol dump made --file made4.dump
	same_dumps made3.dump made4.dump
}

# OpenAFS's own reader of dumps, without a server.
test_dumps_restorevol() {
	command -v restorevol > /dev/null || skip "the packages have no restorevol"
	rm -rf restored
	mkdir restored
	(cd restored && limited 60 restorevol -file ../ours.dump -dir . > ../out.txt 2> ../err.txt) ||
		fail "restorevol ended with $?: $(head -n 1 err.txt)"
	[ "$(find restored -name hello.txt | wc -l)" -eq 1 ] || fail "no hello.txt: $(head -n 3 out.txt | tr '\n' ' ')"
	same_file "$tree/large" "$(find restored -name large)"
}
