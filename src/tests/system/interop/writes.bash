# SPDX-License-Identifier: BSD-2-Clause
# afscp changes a read-write volume of OpenAFS's fileserver. Its files are read back with afscp get and with afsio.

. "$here/cell.bash"

keyfile=/etc/openafs/server/KeyFileExt
source_tree=$work/source
long_name=$(printf 'n%.0s' {1..255})

# The volume root.cell, in which afsio starts, is the one that is written. A second one has a quota of 2000 KiB.
before_writes() {
	local ours
	ours=$(need cell_ours) && need afscp > /dev/null || return
	mkdir -p "$tree"
	echo 'hello, world' > "$tree/hello.txt"
	"$ours" key $keyfile 5 18 0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 || return
	cp $keyfile right
	make_cell || return
	# The file server knows the service itself by this name.
	limited 20 pts createuser afs -id 700 -localauth && limited 20 pts adduser afs system:administrators -localauth || return
	limited 60 vos create "$address" a small -maxquota 2000 -localauth || return
	make_source
}

make_source() {
	mkdir -p "$source_tree/sub/deep/deeper" "$source_tree/empty-folder" "$source_tree/many"
	: > "$source_tree/zero"
	printf x > "$source_tree/sub/one"
	head -c 4096 /dev/urandom > "$source_tree/sub/page"
	head -c 70000 /dev/urandom > "$source_tree/sub/deep/70000"
	echo long > "$source_tree/$long_name"
	echo deep > "$source_tree/sub/deep/deeper/file"
	ln -s sub/one "$source_tree/link"
	ln -s nowhere "$source_tree/sub/dangling"
	local i
	for ((i = 0; i < 120; i++)); do
		echo "$i" > "$source_tree/many/file-$i"
	done
	chmod 640 "$source_tree/sub/page"
	chmod 444 "$source_tree/sub/one"
	touch -d '2021-03-04 05:06:07 UTC' "$source_tree/sub/page" "$source_tree/sub/deep"
}

# admin OPTIONS...: afscp as the service itself, who may change any access list.
admin() {
	ours -x rxkad --key-file right "$@"
}

# wrong OPTIONS...: a command line that is refused.
wrong() {
	local rc
	ours "$@"
	rc=$?
	[ $rc -eq 2 ] || fail "afscp $* ended with $rc, not 2"
}

# read_back PATH FILE: the file of root.cell is the same, by afscp and by afsio.
read_back() {
	rm -f back
	ours_well get "root.cell:$1" back
	same_file "$2" back
	rm -f back
	limited 60 afsio read -file "$1" -cell "$cell_name" > back 2> err.txt
	same_file "$2" back
	rm -f back
}

# At first nobody may write; the access list permits it.
test_writes_acl() {
	refused 'root.cell:zero: Permission denied .*right i \(insert\)' put "$source_tree/zero" root.cell:
	refused 'Permission denied .*right a \(administer\)' acl root.cell: system:anyuser all
	ours_well acl root.cell:
	want_line out.txt '^ rl +system:anyuser$'
	admin acl root.cell: system:anyuser all || fail "acl: $(head -n 1 err.txt)"
	ours_well acl root.cell:
	want_line out.txt '^ rlidwka +system:anyuser$'
	ours_well mkdir root.cell:lists
	ours_well acl root.cell:lists system:authuser write system:administrators rlA
	ours_well acl -n root.cell:lists system:authuser d
	ours_well acl root.cell:lists
	want_line out.txt '^ rlidwk +system:authuser$'
	want_line out.txt '^ rlA +system:administrators$'
	want_line out.txt '^-d +system:authuser$'
	ours_well acl --json root.cell:lists
	want_line out.txt '"system:authuser": "d"'
	ours_well acl root.cell:lists system:authuser none
	ours_well acl root.cell:lists
	! grep -q '^ .*authuser' out.txt || fail "an entry was not removed: $(cat out.txt)"
	refused 'no user or group of one of the names' acl root.cell:lists no.such.user read
	wrong acl root.cell:lists system:anyuser xyz
	want_line err.txt 'use letters of rlidwka'
	admin acl small: system:anyuser all || fail "acl: $(head -n 1 err.txt)"
}

test_writes_sizes() {
	local size
	for size in 0 1 4096 70000 20000001; do
		head -c $size /dev/urandom > plain
		ours_well put plain "root.cell:plain-$size"
		read_back "plain-$size" plain
		ours_well stat "root.cell:plain-$size"
		want_line out.txt "length +$size\$"
	done
	# Over a longer file, and over a shorter one.
	echo short > plain
	ours_well put plain root.cell:plain-70000
	read_back plain-70000 plain
	ours_well put "$source_tree/sub/deep/70000" root.cell:plain-1
	read_back plain-1 "$source_tree/sub/deep/70000"
	ours_well put "$source_tree/zero" root.cell:plain-1
	read_back plain-1 "$source_tree/zero"
	# Holes over older data read as zeros.
	rm -f plain
	truncate -s 15000000 plain
	printf middle | dd of=plain bs=1M seek=5 conv=notrunc status=none
	ours_well put plain root.cell:plain-20000001
	read_back plain-20000001 plain
	rm plain
	ours_well put "$source_tree/$long_name" root.cell:
	read_back "$long_name" "$source_tree/$long_name"
}

# 3 GiB, nearly all of it holes. To save time it is compared with the file that the server keeps it in.
test_writes_huge() {
	local stored
	rm -f huge
	truncate -s 3G huge
	printf begin | dd of=huge conv=notrunc status=none
	printf middle | dd of=huge bs=1M seek=2100 conv=notrunc status=none
	ours_well put huge root.cell:huge
	ours_well stat root.cell:huge
	want_line out.txt 'length +3221225472$'
	stored=$(find /vicepa -type f -size 3145728k)
	[ "$(echo "$stored" | grep -c .)" -eq 1 ] || fail "not one file of 3 GiB on the partition: $stored"
	same_file huge "$stored"
	rm -f huge
	ours_well rm root.cell:huge
}

test_writes_stdin() {
	local p
	p=$(need afscp) || exit 77
	head -c 9000000 /dev/urandom > plain
	limited 60 "$p" -s "$address" put - root.cell:piped < plain > out.txt 2> err.txt || fail "put -: $(head -n 1 err.txt)"
	read_back piped plain
	head -c 9000000 plain | limited 60 "$p" -s "$address" put - root.cell:piped2 || fail "put - from a pipe"
	read_back piped2 plain
	refused 'is a directory.*name a file' put - root.cell: < /dev/null
}

# The service itself as a user: rxkad at each level.
test_writes_rxkad() {
	local l
	for l in clear auth crypt; do
		admin --level $l put "$source_tree/sub/deep/70000" root.cell:kad-$l || fail "put at level $l: $(head -n 1 err.txt)"
		read_back kad-$l "$source_tree/sub/deep/70000"
	done
}

test_writes_tree() {
	local jobs
	for jobs in 1 4; do
		ours_well put -rp -j $jobs "$source_tree" root.cell:tree-$jobs
		rm -rf copied
		ours_well get -rp -j $jobs root.cell:tree-$jobs copied
		diff -r --no-dereference "$source_tree" copied > diff.txt 2>&1 || fail "the copy differs: $(head -n 1 diff.txt)"
		[ "$(stat -c '%a %Y' copied/sub/page copied/sub/deep)" = "$(cd "$source_tree" && stat -c '%a %Y' sub/page sub/deep)" ] ||
			fail "modes or times: $(stat -c '%n %a %y' copied/sub/page copied/sub/deep | tr '\n' ' ')"
		read_back tree-$jobs/sub/deep/70000 "$source_tree/sub/deep/70000"
	done
	rm -rf copied
	# Once more: everything is replaced. With --continue nothing is.
	ours_well put -r "$source_tree/." root.cell:tree-1
	ours_well put -rC --json "$source_tree/." root.cell:tree-1
	want_field out.txt files 0
	[ "$(field skipped out.txt)" -eq 126 ] || fail "$(field skipped out.txt) files skipped instead of 126"
	echo changed > "$source_tree/many/file-7"
	ours_well put -rC --json "$source_tree/." root.cell:tree-1
	want_field out.txt files 1
	read_back tree-1/many/file-7 "$source_tree/many/file-7"
	# Several sources into a directory.
	ours_well mkdir root.cell:several
	ours_well put "$source_tree/zero" "$source_tree/sub/page" root.cell:several
	read_back several/page "$source_tree/sub/page"
	refused 'copy it with -r' put "$source_tree/sub" root.cell:several
	refused 'as several sources require' put "$source_tree/zero" "$source_tree/sub/page" root.cell:several/page
}

# A beginning of the file with its time is continued, anything else is replaced.
test_writes_continue() {
	head -c 5000000 /dev/urandom > whole
	head -c 2000000 whole > part
	touch -d '2020-01-02 03:04:05 UTC' whole part
	ours_well put part root.cell:resumed
	ours_well put -C --json whole root.cell:resumed
	want_field out.txt bytes 3000000
	read_back resumed whole
	ours_well put -C --json whole root.cell:resumed
	want_field out.txt skipped 1
	touch -d '2020-01-02 03:04:06 UTC' whole
	ours_well put -C --json whole root.cell:resumed
	want_field out.txt bytes 5000000
}

test_writes_names() {
	ours_well mkdir root.cell:names root.cell:names/a
	ours_well mkdir -p root.cell:names/x/y/z
	ours_well mkdir -p root.cell:names/x/y/z
	ours_well mkdir -m 750 root.cell:names/private
	ours_well stat root.cell:names/private
	want_line out.txt 'mode +0750 '
	refused 'names/a: exists already; -p' mkdir root.cell:names/a
	refused 'no such file' mkdir root.cell:names/no/dir
	refused 'too long' mkdir "root.cell:names/${long_name}n"
	ours_well put "$source_tree/sub/page" root.cell:names/one
	ours_well put "$source_tree/sub/deep/70000" root.cell:names/two
	# Renaming: over a file, into a directory, of directories.
	ours_well mv root.cell:names/one root.cell:names/two
	read_back names/two "$source_tree/sub/page"
	refused 'no such file' stat root.cell:names/one
	ours_well mv root.cell:names/two root.cell:names/a
	read_back names/a/two "$source_tree/sub/page"
	ours_well mv root.cell:names/a root.cell:names/x
	read_back names/x/a/two "$source_tree/sub/page"
	refused 'the target is inside the source' mv root.cell:names/x root.cell:names/x/y/z/w
	refused 'different volumes.*get and put' mv root.cell:names/x small:
	refused 'no such file' mv root.cell:names/nothing root.cell:names/x
	refused 'into itself' mv root.cell:names/x root.cell:names/x
	refused 'are the same file' mv root.cell:names/x/a/two root.cell:names/x/a
	# Links.
	ours_well ln root.cell:names/x/a/two root.cell:names/x/a/second
	read_back names/x/a/second "$source_tree/sub/page"
	ours_well stat root.cell:names/x/a/two
	want_line out.txt 'links +2$'
	refused 'hard links stay in one directory' ln root.cell:names/x/a/two root.cell:names/other
	refused 'File exists.*choose another name' ln root.cell:names/x/a/two root.cell:names/x/a/second
	ours_well ln -s x/a/two root.cell:names/soft
	ours_well stat root.cell:names/soft
	want_line out.txt 'symbolic link to x/a/two'
	read_back names/soft "$source_tree/sub/page"
	ours_well put "$source_tree/sub/deep/70000" root.cell:names/soft
	read_back names/x/a/two "$source_tree/sub/deep/70000"
	cp "$source_tree/sub/page" soft
	ours_well put soft root.cell:names
	read_back names/x/a/two "$source_tree/sub/page"
	ours_well ln -s -f x/a/second root.cell:names/soft
	ours_well ls -l root.cell:names
	want_line out.txt ' soft -> x/a/second$'
	ours_well ln --mount small root.cell:names/mount
	ours_well stat root.cell:names/mount
	want_line out.txt 'mode +0644 '
	want_line out.txt 'mount point #small\.$'
	ours_well ln --mount %other.example:root.cell root.cell:names/mount2
	ours_well stat root.cell:names/mount2
	want_line out.txt 'mount point %other\.example:root\.cell\.$'
	# Paths lead through it.
	refused 'names/mount/x: no such file' get root.cell:names/mount/x
	ours_well put "$source_tree/sub/page" root.cell:names/mount/through
	ours_well get small:through back
	same_file "$source_tree/sub/page" back
	rm -f back
	ours_well rm small:through
	# Modes.
	ours_well chmod 600 root.cell:names/x/a/two
	ours_well stat root.cell:names/x/a/two
	want_line out.txt 'mode +0600 '
	ours_well chmod -r go+rX root.cell:names/x
	ours_well stat root.cell:names/x/a/two
	want_line out.txt 'mode +0644 '
	# Removal.
	refused 'is a directory; remove it with -r' rm root.cell:names/x
	refused 'no such file' rm root.cell:names/nothing
	ours_well rm -f root.cell:names/nothing
	refused 'the root of a volume' rm -r root.cell:
	ours_well rm root.cell:names/soft root.cell:names/mount root.cell:names/mount2
	ours_well rm -r root.cell:names
	refused 'no such file' stat root.cell:names
	limited 30 afsio read -file tree-1/zero -cell "$cell_name" > out.txt 2> err.txt
	same_file "$source_tree/zero" out.txt
}

# More than the quota, which OpenAFS lets a store exceed by 1 MiB.
test_writes_refusals() {
	head -c 6000000 /dev/zero | tr '\0' x > plain
	refused 'small:big: .*[Qq]uota.*larger quota' put plain small:big
	refused 'root.cell:tree-1/zero: is not a directory' put plain root.cell:tree-1/zero/x
	ours_well mkdir root.cell:several/plain
	refused 'several/plain is a directory; .*cannot replace it' put plain root.cell:several
	refused 'no such file' put plain root.cell:no/such/place
	refused 'cannot open "nothing-here"' put nothing-here root.cell:x
	refused 'no such volume' put plain no.such.volume:x
	ours_well mkdir root.cell:closed
	ours_well put "$source_tree/zero" root.cell:closed/file
	ours_well acl root.cell:closed system:anyuser rla
	refused 'right i \(insert\)' mkdir root.cell:closed/x
	refused 'right d \(delete\)' rm root.cell:closed/file
	refused 'right d \(delete\) on the old directory' mv root.cell:closed/file root.cell:opened
	ours_well acl root.cell:closed system:anyuser all
	# The other files of a tree are copied, and the quota ends the copy.
	rm -rf full
	mkdir full
	for i in 1 2 3 4 5 6 7 8 9; do cp plain full/f$i; done
	! ours put -r full small:full || fail 'a copy into a full volume ended with 0'
	want_line err.txt 'larger quota'
	want_line err.txt 'objects failed, the rest was not attempted$'
	! ours put -r -j 3 full small:full3 || fail 'a copy with several jobs into a full volume ended with 0'
	want_line err.txt 'objects failed, the rest was not attempted$'
	ours put -r --keep-going full small:full
	[ "$(grep -c 'larger quota' err.txt)" -gt 4 ] || fail "--keep-going did not go on: $(cat err.txt)"
	rm -rf full
}

test_writes_locks() {
	local p
	p=$(need afscp) || exit 77
	cat > under-lock <<-EOF
		touch locked
		until [ -e unlock ]; do sleep 0.05; done
		exit 7
	EOF
	rm -f locked unlock
	launch holder "$p" -s "$address" lock root.cell:several/page bash under-lock
	wait_for test -e locked || fail "the command did not run: $(cat holder.err)"
	ours_well stat root.cell:several/page
	refused 'somebody else has locked the file; try again later' lock root.cell:several/page true
	refused 'somebody else has locked the file' lock -s root.cell:several/page true
	touch unlock
	wait_for test -f holder.status
	[ "$(cat holder.status)" -eq 7 ] || fail "the status of the command became $(cat holder.status)"
	# Readers share.
	rm -f locked unlock
	launch reader "$p" -s "$address" lock -s root.cell:several/page bash under-lock
	wait_for test -e locked || fail "the command did not run: $(cat reader.err)"
	ours_well lock -s root.cell:several/page echo -s shared
	[ "$(cat out.txt)" = '-s shared' ] || fail "the command printed: $(cat out.txt)"
	refused 'somebody else has locked the file' lock root.cell:several/page true
	tell reader TERM
	wait_for test -f reader.status
	[ "$(cat reader.status)" -eq 143 ] || fail "a command that was stopped: $(cat reader.status)"
	ours_well lock root.cell:several/page true
	ours lock root.cell:several/page /no/such/program
	local rc=$?
	[ $rc -eq 127 ] || fail "a command that does not exist ended with $rc"
}

test_writes_bench() {
	ours_well ls root.cell:
	cp out.txt names.before
	ours_well bench root.cell: --mix read=60,write=20,stat=10,create=6,remove=4 --size 1K-100K --clients 4 --seconds 2 --json
	local op
	for op in read write stat create remove; do
		want_line out.txt "\"$op\": \\{"
	done
	want_positive out.txt calls
	want_positive out.txt p99_us
	ours_well bench root.cell:several --mix write=1 --seconds 1
	want_line out.txt '^  write .* calls/s'
	ours_well ls root.cell:
	same_file names.before out.txt
	wrong bench root.cell: --mix jump=1
}

# begin_put PLACE: starts a put of 150 MB, which takes seconds, and holds it in its second call of 64 MiB. A status would
# wait for the end of the call, so this looks at the server's disk, where no other file is as long.
begin_put() {
	local p i
	p=$(need afscp) || exit 77
	[ -z "$(long_files)" ] || fail "a long file is there: $(long_files)"
	launch putter "$p" -s "$address" --window 8 put whole "$1"
	for ((i = 0; i < 600; i++)); do
		held && break
		sleep 0.1
	done
	[ $i -lt 600 ] || fail "the put does not proceed: $(cat putter.err)"
	[ ! -f putter.status ] || fail 'the put has ended'
}

long_files() {
	find /vicepa -type f -size +65600k
}

held() {
	tell putter STOP 2> /dev/null || return 0
	[ -z "$(long_files)" ] || return 0
	tell putter CONT
	return 1
}

# A signal ends a put at once; --continue completes it.
test_writes_interrupted() {
	head -c 150000000 /dev/urandom > whole
	touch -d '2020-01-02 03:04:05 UTC' whole
	begin_put root.cell:cut
	tell putter TERM
	tell putter CONT
	wait_for test -f putter.status
	[ "$(cat putter.status)" -eq 143 ] || fail "an interrupted put ended with $(cat putter.status)"
	want_one_error putter.err
	want_line putter.err 'interrupted'
	ours_well put -C --json whole root.cell:cut
	[ "$(field bytes out.txt)" -lt 90000000 ] || fail "$(field bytes out.txt) bytes were stored again"
	ours_well get root.cell:cut back
	same_file whole back
	rm -f back
	ours_well rm root.cell:cut
}

# The server restarts in the middle of a put of a file and of a tree.
test_writes_restart() {
	local p
	p=$(need afscp) || exit 77
	begin_put root.cell:whole
	launch planter "$p" -s "$address" put -r -j 2 "$source_tree" root.cell:planted
	tell fileserver QUIT
	tell putter CONT
	wait_for test -f fileserver.status || fail 'the file server has not stopped'
	[ ! -f putter.status ] || fail 'the put ended before the server did'
	launch fileserver "$servers/fileserver" -d 1
	limited 100 bash -c 'until [ -f putter.status ] && [ -f planter.status ]; do sleep 0.2; done' ||
		fail "still copying: $(cat putter.err planter.err)"
	[ "$(cat putter.status)" -eq 0 ] || fail "the put ended with $(cat putter.status): $(cat putter.err)"
	[ "$(cat planter.status)" -eq 0 ] || fail "the put -r ended with $(cat planter.status): $(cat planter.err)"
	ours_well get root.cell:whole back
	same_file whole back
	rm -rf back whole copied
	ours_well get -r root.cell:planted copied
	diff -r --no-dereference "$source_tree" copied > diff.txt 2>&1 || fail "the copy differs: $(head -n 1 diff.txt)"
}
