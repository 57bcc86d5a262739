# SPDX-License-Identifier: BSD-2-Clause
# rxvol: every command, offline and at a running rxfsd; what it refuses; trees that go in and come out the same.

. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol
rxpt=$top_builddir/src/rxpt/rxpt
[ -x "$rxvol" ] && [ -x "$rxfsd" ] || { echo "SKIP: rxvol or rxfsd is not built"; exit 77; }
umask 022
export TZ=UTC
store=$work/store

# vol ARGUMENTS...: succeeds without a message; output in out.
vol() {
	"$rxvol" -S "$store" "$@" > "$work/out" 2> "$work/err" < /dev/null || {
		fail "$how: rxvol $* ended with $?: $(head -n 3 "$work/err")"
		return 1
	}
	[ ! -s "$work/err" ] || fail "$how: rxvol $* printed: $(head -n 3 "$work/err")"
}
# says TEXT: the last output is exactly this.
says() {
	[ "$(cat "$work/out")" = "$1" ] || fail "$how: not \"$1\" but: $(cat "$work/out")"
}
# shows PATTERN: a line of the last output matches.
shows() {
	grep -q -- "$1" "$work/out" || fail "$how: no \"$1\" in: $(cat "$work/out")"
}
no() {
	status=$1
	pattern=$2
	shift 2
	refused "$status" "$pattern" "$rxvol" -S "$store" "$@"
}
# partly PATTERN ARGUMENTS...: status 1, a line on standard error matches; the result is shown.
partly() {
	pattern=$1
	shift
	"$rxvol" -S "$store" "$@" > "$work/out" 2> "$work/err" < /dev/null
	rc=$?
	[ $rc -eq 1 ] || fail "$how: rxvol $* ended with $rc, not 1"
	grep -q -- "$pattern" "$work/err" || fail "$how: no \"$pattern\" in: $(cat "$work/err")"
}

# -- trees --

# A tree with everything that a volume can hold.
make_tree() {
	mkdir -p "$1/dir/deep" "$1/empty" "$1/closed" "$1/many" || exit 99
	echo 'hello, world' > "$1/hello"
	: > "$1/nothing"
	seq 1 300000 > "$1/large"
	head -c 4097 /dev/zero > "$1/zeros"
	truncate -s 3000000 "$1/holes"
	printf 'end' | dd of="$1/holes" bs=1 seek=2500000 conv=notrunc 2> "$work/dd.log"
	truncate -s 5000000 "$1/hole-only"
	echo deep > "$1/dir/deep/file"
	ln -s hello "$1/link"
	ln -s /no/where "$1/dangling"
	ln -s "$(head -c 1023 /dev/zero | tr '\0' x)" "$1/long-link"
	ln "$1/hello" "$1/hello-again"
	ln "$1/hello" "$1/hello-too"
	echo x > "$1/a name with blanks"
	echo x > "$1/$(printf 'umlaut-\303\274')"
	echo x > "$1/$(printf 'latin-\374')"
	echo x > "$1/$(printf 'new\nline\\and backslash')"
	echo x > "$1/$(head -c 255 /dev/zero | tr '\0' n)"
	echo secret > "$1/closed/file"
	i=0
	while [ $i -lt 300 ]; do
		echo $i > "$1/many/file-with-a-name-of-two-slots-$i"
		i=$((i + 1))
	done
	chmod 4755 "$1/nothing"
	chmod 1777 "$1/empty"
	chmod 400 "$1/zeros"
	chmod 600 "$1/closed/file"
	find "$1" -exec touch -h -d '2001-02-03 04:05:06' {} +
	touch -h -d '1999-12-31 23:59:59' "$1/dir/deep" "$1/link"
	touch -d '2105-01-01 00:00:00' "$1/hello"
	chmod 500 "$1/closed"
}

# Kinds, modes, link counts, lengths, times and names below a directory, sorted.
describe() {
	(cd "$1" && find . -printf '%y %m %n %s %T@ %p %l\n' | sed -E '/^d/s/^(d [0-9]+) [0-9]+ [0-9]+/\1/' | sort)
}

# remove TREE: also by a user who is not root, whom a mode of its directories keeps out.
remove() {
	[ ! -d "$1" ] || chmod -R u+rwX "$1"
	rm -rf "$1"
}

# unreadable DIRECTORY: "compare" and "check" of a store that belongs to its owner, as whom root runs rxvol.
unreadable() {
	mkdir "$1/tree" && seq 100000 > "$1/tree/file" || exit 99
	touch -d '1960-01-01 00:00:00' "$1/tree"
	echo late > "$1/tree/late"
	touch -d '2200-01-01 00:00:00' "$1/tree/late"
	chmod -R a+rX "$1/tree"
	"$rxvol" -S "$1/store" create v > "$work/out" && "$rxvol" -S "$1/store" import v "$1/tree" > "$work/out" ||
		fail "$how: $(cat "$work/out")"
	# Times that a volume cannot have are the nearest ones there.
	"$rxvol" -S "$1/store" compare v "$1/tree" > "$work/out" || fail "$how: compare: $(cat "$work/out")"
	find "$1/store/files" -type f -exec chmod 0 {} +
	for data in '' --data; do
		# shellcheck disable=SC2086 # none or a word
		"$rxvol" -S "$1/store" check $data > "$work/out" 2>&1 && fail "$how: nothing is wrong with mode 000"
		shows 'of vnode 2 cannot be read: Permission denied$'
		shows '^1 fault;'
	done
}

# Set-id bits come back only for the files of the user who exports, if asked for.
owner="--owner $(id -u)"

# same_tree A B
same_tree() {
	diff -r --no-dereference "$1" "$2" > "$work/diff" || fail "$how: $1 and $2 differ: $(head -n 3 "$work/diff")"
	describe "$1" > "$work/status1"
	describe "$2" > "$work/status2"
	cmp -s "$work/status1" "$work/status2" ||
		fail "$how: status differs: $(diff "$work/status1" "$work/status2" | head -n 6)"
}

tree=$work/tree
make_tree "$tree"
odd=$work/odd
mkdir -p "$odd/a" "$odd/b"
echo x > "$odd/a/file"
ln "$odd/a/file" "$odd/b/file"
echo x > "$odd/bin@sys"
ln -s "$(head -c 1025 /dev/zero | tr '\0' x)" "$odd/too-long"
mkfifo "$odd/fifo"
special=1
if command -v python3 > /dev/null; then
	python3 -c 'import socket, os, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind("socket")' "$odd"
	special=2
fi
device=
mknod "$odd/device" c 1 3 2> "$work/mknod.log" && device=yes

# -- every command --

# mount_points VOLUME: has the directories "dir" and "empty", and the mount points "mnt" and "dir/rw".
mount_points() {
	v=$1
	vol create "$v.gone"
	vol mount "$v:empty/gone" "$v.gone" --rw
	vol mount "$v:empty/back" "$v"
	vol mounts "$v.gone" && shows "^$v:/empty/gone  *$v.gone  (always read-write)\$"
	vol remove "$v.gone"
	vol mounts "$v.gone" && shows "^$v:/empty/gone  *$v.gone  (always read-write)  DANGLING: no such volume\$"
	vol mounts "$v" && [ "$(wc -l < "$work/out")" -eq 4 ] || fail "$how: mounts: $(cat "$work/out")"
	shows "^$v:/mnt  *root.cell  DANGLING: no such volume\$"
	shows "^$v:/dir/rw  *example.org:root.cell.readonly  (always read-write)\$"
	shows "^$v:/empty/back  *$v\$"
	vol mounts --json && want "$work/out" count 4 && want "$work/out" dangling 2 && shows '"state": "cell"'
	no 1 'nowhere: no such volume' mounts nowhere
	no 1 'hello: is a file, not a mount point' unmount "$v:hello"
	no 1 'link: is a symbolic link, not a mount point' unmount "$v:link"
	no 1 'dir: is a directory, not a mount point' unmount "$v:dir"
	no 1 "none: does not exist; \"rxvol mounts $v\" shows" unmount "$v:none"
	no 2 'is the root directory of a volume; give the path of a mount point' unmount "$v:/"
	vol unmount "$v:empty//gone" && says ''
	vol unmount "$v:empty/back" --json && shows "\"text\": \"#$v.\""
	vol mounts "$v" && [ "$(wc -l < "$work/out")" -eq 2 ] || fail "$how: mounts after unmount: $(cat "$work/out")"

	vol which "$v:/mnt" && shows "  mount point  $v:/mnt\$"
	vol which "$v:/link" && shows "  link  $v:/link\$"
	vol which "$v:/dir/deep/file" && shows "^$id\.[0-9]*\.[0-9]*  file  $v:/dir/deep/file\$"
	fid=$(sed 's/  .*//' "$work/out")
	vol which "$fid" && says "$fid  file  $v:/dir/deep/file"
	vnode=${fid#*.}
	unique=${vnode#*.}
	vnode=${vnode%.*}
	vol which "$id.$vnode" && says "$fid  file  $v:/dir/deep/file"
	vol which "$v" "$vnode" && says "$fid  file  $v:/dir/deep/file"
	vol which "$v" "$vnode" "$unique" --json && want "$work/out" vnode "$vnode" && shows "\"$v:/dir/deep/file\""
	no 1 "this object was removed; the number belongs to $v:/dir/deep/file now, as $fid" which "$id.$vnode.9$unique"
	no 1 'vnode 4000000000 of volume .*: no object has this number' which "$v" 4000000000
	no 2 'vnode: give VOLUME:PATH, a FID such as' which vnode
	no 2 'give VOLUME:PATH, a FID such as' which "$id"
	no 2 '0: give the number of a vnode' which "$v" 0
	vol which "$v:/hello" && fid=$(sed 's/  .*//' "$work/out")
	vol which "$fid" && says "$fid  file  $v:/hello
$fid  file  $v:/hello-again
$fid  file  $v:/hello-too"
	vol which "$v:" && says "$id.1.1  directory  $v:/"
	vol which "$id.1" && says "$id.1.1  directory  $v:/"
}

# everything PREFIX: on volumes whose names begin with PREFIX.
everything() {
	v=$1
	vol create "$v" --acl 'system:anyuser rl' --acl 'system:authuser write 17 none' --quota 100M --owner 7
	shows "^volume $v has the id [0-9]*\$"
	id=$(sed -n 's/.* id //p' "$work/out")
	vol examine "$v"
	shows "^  id *$id\$"
	shows '^  quota *100.0 MiB$'
	shows '^  state *online$'
	shows '^  files *1$'
	vol examine "$id" && shows "^volume $v\$"
	vol acl "$v" && says "$v:/
  system:administrators rlidwka
  system:authuser rlidwk
  system:anyuser rl"
	vol create "$v.other" --id 1000$2 && says "volume $v.other has the id 1000$2"

	vol acl "$v:/" system:anyuser none 42 rli && says ''
	vol acl -n "$v" system:authuser da && says ''
	vol acl "$v:" && says "$v:/
  system:administrators rlidwka
  system:authuser rlidwk
  42 rli
  not system:authuser da"
	vol acl "$v" --json && shows '"rights": "rlidwk"' && shows '"id": -204'
	vol acl "$v" -n system:authuser none

	vol quota "$v" && says "$v: 2.0 KiB used, quota 100.0 MiB"
	"$rxvol" -S "$store" quota "$v" 1K > "$work/out" 2> "$work/err" || fail "$how: a low quota ended with $?"
	grep -q "^rxvol: $v: 2.0 KiB are used, more than the new quota of 1.0 KiB: nothing can be stored" "$work/err" ||
		fail "$how: a low quota: $(cat "$work/err")"
	vol quota "$v:" 1G && says ''
	vol quota "$v" && says "$v: 2.0 KiB used, quota 1.0 GiB"
	"$rxvol" -S "$store" quota "$v" 0 > "$work/out" 2> "$work/err" || fail "$how: quota 0 ended with $?"
	grep -q "^rxvol: $v: it has no limit now$" "$work/err" || fail "$how: quota 0: $(cat "$work/err")"
	vol quota "$v" && says "$v: 2.0 KiB used, quota no limit"

	# shellcheck disable=SC2086 # none or two words
	vol import "$v" "$tree" $owner
	count=$(find "$tree" -mindepth 1 -printf x | wc -c)
	shows "^import: $count files, directories and links, "
	# shellcheck disable=SC2086
	vol import "$v" "$tree" $owner
	shows "^import: 0 files, directories and links, 0 bytes; $(find "$tree" ! -type d -printf x | wc -c) there already\$"
	remove "$work/back"
	vol export "$v" "$work/back" --set-id
	shows "^export: $count files, directories and links, "
	same_tree "$tree" "$work/back"
	[ "$(stat -c %b "$work/back/hole-only")" -lt 128 ] || fail "$how: the export has no holes"
	mkdir "$work/part.$v"
	vol export "$v:dir//./deep/" "$work/part.$v"
	same_tree "$tree/dir/deep" "$work/part.$v"
	vol import "$v:/dir/new" "$tree/dir" --owner 33 --json && want "$work/out" skipped 0
	vol export "$v:/dir/new" "$work/new.$v" --set-id && same_tree "$tree/dir" "$work/new.$v"
	vol list --json && shows "\"name\": \"$v\""
	vol examine "$v" --json && want "$work/out" files $((count + 1 - 2 + 3))
	# 300,000 lines and the holes' ends, but not the holes.
	used=$(number "$work/out" used_kib)
	[ "$used" -gt 2000 ] || fail "$how: used_kib is $used"

	partly 'fifo: skipped: a FIFO' import "$v:odd" "$odd"
	grep -q 'bin@sys: skipped: ' "$work/err" || fail "$how: a name that ends in @sys was taken: $(cat "$work/err")"
	grep -q 'too-long: skipped: ' "$work/err" || fail "$how: a long link was taken"
	[ $special -eq 1 ] || grep -q 'socket: skipped: a socket' "$work/err" || fail "$how: a socket was taken"
	[ -z "$device" ] || grep -q 'device: skipped: a device' "$work/err" || fail "$how: a device was taken"
	shows '^import: 4 files, directories and links, '
	vol export "$v:odd" "$work/odd.$v"
	[ "$(cat "$work/odd.$v/b/file")" = x ] && [ "$(stat -c %h "$work/odd.$v/a/file")" = 1 ] ||
		fail "$how: a link across directories did not become a copy"
	# Names that exist are kept; directories are added to.
	mkdir -p "$work/more/a"
	echo new > "$work/more/a/file"
	echo new > "$work/more/a/second"
	partly 'a/file: skipped: exists' import "$v:odd" "$work/more"
	shows '^import: 1 files, directories and links, 4 bytes; 1 skipped$'
	partly 'exists already' export "$v:odd" "$work/odd.$v"

	vol mount "$v:mnt" root.cell && says ''
	vol mount "$v:/dir/rw" example.org:root.cell.readonly --rw --json && shows '"text": "%example.org:root.cell.readonly."'
	rm -rf "$work/mounts"
	vol export "$v:/dir" "$work/mounts"
	[ "$(readlink "$work/mounts/rw")" = '%example.org:root.cell.readonly.' ] || fail "$how: a mount point was not exported"

	mount_points "$v"
	vol clone "$v" && shows "^volume $v.readonly has the id [0-9]*\$"
	ro=$(sed -n 's/.* id //p' "$work/out")
	vol clone "$v" --backup && shows "^volume $v.backup has the id [0-9]*\$"
	vol import "$v:later" "$work/more"
	vol clone "$v" --backup
	vol export "$v.readonly" "$work/ro.$v" && [ ! -e "$work/ro.$v/later" ] || fail "$how: a clone has later changes"
	vol export "$v.backup" "$work/backup.$v" && [ -e "$work/backup.$v/later/a/second" ] || fail "$how: the new clone is old"
	vol examine "$v" && shows "^  ro id *$ro\$"
	no 1 'a clone cannot be changed' acl "$v.readonly" system:anyuser all
	no 1 'a clone cannot be changed' import "$v.readonly:x" "$work/more"
	no 1 "^rxvol: $v.readonly: a clone cannot be changed" import "$v.readonly" "$tree/empty"
	no 1 'only a read-write volume' clone "$v.backup"
	no 1 "remove .readonly and .backup first" remove "$v"
	vol rename "$v" "$v-new"
	vol examine "$v-new.readonly"
	no 1 'renamed with its read-write' rename "$v-new.readonly" "$v-x"
	vol rename "$v-new" "$v"
	vol remove "$v.readonly" && says ''
	no 1 "$v.readonly: no such volume" examine "$v.readonly"
	vol remove "$v.backup"

	vol offline "$v" --message 'new disk'
	vol examine "$v" && shows '^  state *offline: new disk$'
	vol acl "$v" 43 rl && vol acl "$v" && shows '^  43 rl$'
	vol export "$v:dir/deep" "$work/offline.$v" && same_tree "$tree/dir/deep" "$work/offline.$v"
	vol online "$v"
	vol acl "$v:closed" > "$work/acl"

	vol check && says 'the store is sound'
	vol check --fast --json && want "$work/out" faults 0
	vol remove "$v.other" --json && shows '"removed"'
	vol remove "$v"
	no 1 'no such volume; ' remove "$v"
	vol check && says 'the store is sound'
	vol list && says ''
}

# -- what is refused, in the same way here and there --
bad_input() {
	vol create taken
	no 1 'taken: a volume with this name exists' create taken
	no 1 'number exists already; choose another' create other --id "$("$rxvol" -S "$store" examine taken --json | sed -n 's/^ *"id": \([0-9]*\),/\1/p')"
	no 1 'nowhere: no such volume; ' examine nowhere
	no 1 '4711: no such volume' quota 4711
	no 2 'quota "abc": give a number of bytes' quota taken abc
	no 2 'quota "-1"' quota taken -- -1
	no 2 'quota "2000T": at most' quota taken 2000T
	no 2 'quota "1X"' create other --quota 1X
	no 2 '12: not a volume name' create 12
	no 2 'a.readonly: not a volume name' create a.readonly
	no 2 'a/b: not a volume name' create a/b
	no 2 'not a volume name' rename taken ''
	no 2 'has no rights after it' create other --acl 'system:anyuser'
	no 2 'has no rights after it' create other --acl ' '
	no 2 'rights "rx": use letters of rlidwka' create other --acl 'system:anyuser rx'
	no 2 'nobody: no such user or group; ' create other --acl 'nobody rl'
	no 2 'nobody: no such user or group; ' create other --owner nobody
	no 2 'rights "rwx"' acl taken system:anyuser rwx
	no 2 'has no rights after it' acl taken system:anyuser
	no 1 'room for 20 entries' acl taken 1 r 2 r 3 r 4 r 5 r 6 r 7 r 8 r 9 r 10 r 11 r 12 r 13 r 14 r 15 r 16 r 17 r 18 r 19 r 20 r
	no 1 'taken:/no/such: No such file' acl taken:no/such
	no 2 '".." cannot be in a path' acl taken:a/../b
	no 1 'nowhere/: No such file or directory; give a directory' import taken "$work/nowhere/"
	no 1 'Not a directory; give a directory' import taken "$tree/hello"
	no 1 'taken:/no/such: No such file' import taken:no/such "$tree/dir"
	no 1 'taken:/no: No such file' export taken:no "$work/never"
	[ ! -e "$work/never" ] || fail "$how: an export that failed left a directory"
	[ -d "$work/closed" ] || mkdir -m 500 "$work/closed"
	[ "$(id -u)" -eq 0 ] || no 1 'closed: the store belongs to the user [0-9]*, who cannot write there: Permission denied; give a directory' export taken "$work/closed"
	no 1 'cannot be made' export taken "$work/no/such"
	no 1 'exists already; choose another name' mount taken: root.cell
	no 2 'a b: not the name or number of a volume' mount taken:m 'a b'
	no 2 'only a volume can be given' examine taken:path
	no 2 'the name of a volume is missing' examine :path
	no 2 'usage: rxvol -S DIR rename VOLUME NEWNAME' rename taken
	no 2 'usage: rxvol move-in SERVER' move-in
	no 2 'mend: no such command; see' mend
	no 2 'examin: no such command: did you mean examine?; see' examin taken
	no 2 '--rw is an option of mount' list --rw
	no 2 'message: at most 127 bytes' offline taken --message "$(head -c 128 /dev/zero | tr '\0' x)"
	no 2 'longer than 4095 bytes' acl "taken:$(head -c 30000 /dev/zero | tr '\0' x)"
	vol remove taken
}

how=offline
# The directory of -S may come from the environment or the server's configuration. An empty variable: from neither.
export RXWIRE_STORE=
refused 2 '-S DIR, .RXWIRE_STORE or a line "store = DIR" in section .rxfsd. of .*/rxfsd.conf is required' "$rxvol" list
refused 2 'no command' "$rxvol" -S "$store"
no 1 'store' list
[ ! -e "$store" ] || fail 'list has made a store'
vol init && says "made the store $store"
no 1 "$store: has a store already" init
"$rxvol" -S "$work/elsewhere" create first > "$work/out" 2>&1 || fail "create without a store: $(cat "$work/out")"
says "made the store $work/elsewhere
volume first has the id 536870912"
everything one 1
bad_input

# A check names what is damaged by numbers, and which its path.
"$rxvol" -S "$work/broken" create v > "$work/out" 2>&1 && mkdir -p "$work/large/dir" && seq 1 30000 > "$work/large/dir/file" &&
	"$rxvol" -S "$work/broken" import v "$work/large" > "$work/out" 2>&1 || fail "a store to damage: $(cat "$work/out")"
find "$work/broken/files" -type f -exec rm {} +
"$rxvol" -S "$work/broken" check > "$work/out" 2> "$work/err"
[ $? -eq 1 ] && tail -n 1 "$work/out" | grep -q '^[1-9][0-9]* faults\{0,1\}; "rxvol which VOLUME VNODE" shows the path of a vnode$' ||
	fail "a check of a damaged store: $(cat "$work/out" "$work/err")"
vnode=$(sed -n 's/.*vnode \([0-9][0-9]*\).*/\1/p' "$work/out" | head -n 1)
"$rxvol" -S "$work/broken" which v "${vnode:-0}" > "$work/out" 2>&1 && grep -q '  file  v:/dir/file$' "$work/out" ||
	fail "which of vnode $vnode of a damaged store: $(cat "$work/out")"

# Somebody else's files, also in part.
if [ "$(id -u)" -eq 0 ] && chown 4711 "$store/meta/db" 2> "$work/err"; then
	no 1 "$store belongs to root, but $store/meta/db to user 4711: all of it must belong to the user" list
	chown 0 "$store/meta/db"
	if chmod 711 "$work" && setpriv --reuid=4711 --regid=4711 --clear-groups test -x "$rxvol" 2> "$work/err"; then
		refused 1 "$store belongs to root: give the command as that user, or as root" \
			setpriv --reuid=4711 --regid=4711 --clear-groups "$rxvol" -S "$store" list
	fi
fi

# Names of users come from the store's database.
# The users may be there before the volumes.
mkdir -m 700 "$work/people"
"$rxpt" -S "$work/people" adduser alice > "$work/pt" 2>&1 &&
	"$rxvol" -S "$work/people" create home --acl 'alice write' >> "$work/pt" 2>&1 &&
	"$rxvol" -S "$work/people" acl home > "$work/pt" 2>&1 && grep -q '^ *alice rlidwk$' "$work/pt" ||
	fail "a store beside users: $(cat "$work/pt")"

"$rxpt" -S "$store" adduser alice > "$work/pt" 2>&1 && "$rxpt" -S "$store" addgroup staff >> "$work/pt" 2>&1 ||
	fail "rxpt: $(cat "$work/pt")"
vol create names --owner alice --acl 'staff read'
vol acl names && shows '^  staff rl$'
# A list whose names are too long for clients.
long=$(head -c 60 /dev/zero | tr '\0' u)
users= entries=
for i in 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26; do
	users="$users $long$i"
	entries="$entries $long$i rlidwk"
done
# shellcheck disable=SC2086 # words
"$rxpt" -S "$store" adduser $users > "$work/pt" 2>&1 || fail "rxpt: $(cat "$work/pt")"
# shellcheck disable=SC2086
no 1 '^rxvol: names:/: the text of the access list would have [0-9]* bytes.*groups' acl names $entries
vol acl names && says 'names:/
  staff rl
  system:administrators rlidwka'
# shellcheck disable=SC2086
vol acl names ${entries% "$long"25*}
# shellcheck disable=SC2086
no 1 '^rxvol: more: .*groups' create more --acl "$entries"
vol remove names
rm "$store/protection.db"

# A tree that is read while it changes, and what may not be read, are not fatal.
if [ "$(id -u)" -ne 0 ]; then
	mkdir "$work/locked"
	echo x > "$work/locked/file"
	chmod 000 "$work/locked/file"
	vol create locked
	partly 'file: skipped: Permission denied' import locked "$work/locked"
	vol remove locked
fi

# The quota ends an import, with what there is.
vol create small --quota 64K
"$rxvol" -S "$store" import small "$tree" > "$work/out" 2> "$work/err"
[ $? -eq 1 ] && grep -q "the volume's quota is used up; .*were imported" "$work/err" || fail "a full volume: $(cat "$work/err")"
vol check && says 'the store is sound'
vol remove small

# -- a store that cannot be used --
how=unusable
rm -rf "$work/damaged"
cp -r "$work/elsewhere" "$work/newer" && cp -r "$work/elsewhere" "$work/damaged" && cp -r "$work/elsewhere" "$work/garbage"
sed -i '1s/[0-9][0-9]*/999/' "$work/newer/FORMAT"
refused 1 'newer version' "$rxvol" -S "$work/newer" list
printf 'rxw' > "$work/damaged/FORMAT"
"$rxvol" -S "$work/damaged" list > "$work/out" 2> "$work/err" && grep -q 'FORMAT was lost or damaged' "$work/err" || fail "a damaged FORMAT: $(cat "$work/err")"
head -c 100 /dev/urandom > "$work/garbage/FORMAT"
"$rxvol" -S "$work/garbage" list > "$work/out" 2> "$work/err" && cmp -s "$work/damaged/FORMAT" "$work/garbage/FORMAT" || fail "a FORMAT of garbage: $(cat "$work/err")"
# Damage: the copy repairs, use-copy goes on with it, a rescue makes a new store.
rm "$work/damaged/meta/db"
"$rxvol" -S "$work/damaged" check > "$work/out" 2> "$work/err" && grep -q 'repaired from the copy' "$work/err" || fail "a lost database: $(cat "$work/err")"
rm -r "$work/damaged/meta"
"$rxvol" -S "$work/damaged" check > "$work/out" 2> "$work/err" && grep -q 'repaired from the copy' "$work/err" || fail "no metadata: $(cat "$work/err")"
rm "$work/damaged/meta/db" "$work/damaged/meta/mark" "$work/damaged/closed"
refused 1 'use-copy' "$rxvol" -S "$work/damaged" list
"$rxvol" -S "$work/foreign" init > "$work/out" 2>&1 || fail "another store: $(cat "$work/out")"
"$rxvol" -S "$work/foreign" check > "$work/out" 2>&1 && [ -e "$work/foreign/copy/FORMAT" ] || fail "no copy: $(cat "$work/out")"
refused 1 'it is that of another store; look at --copy' "$rxvol" -S "$work/damaged" --copy "$work/foreign" use-copy
# Nobody can tell whether the copy has all changes: then it has to be named.
refused 1 "damaged had all changes until 20.* UTC; it may lack later ones; .*--copy $work/damaged use-copy" "$rxvol" -S "$work/damaged" use-copy
"$rxvol" -S "$work/damaged" --copy "$work/damaged" use-copy > "$work/out" && grep -q 'all changes until 20' "$work/out" && "$rxvol" -S "$work/damaged" check > "$work/out" 2> "$work/err" && [ ! -s "$work/err" ] || fail "use-copy: $(cat "$work/out" "$work/err")"
for within in damaged/files damaged/new; do
	"$rxvol" rescue "$work/damaged" "$work/$within" > "$work/out" 2>&1 && fail "a rescue to $within"
	grep -q "lies in the store $work/damaged; choose" "$work/out" || fail "a rescue to $within: $(cat "$work/out")"
done
[ ! -e "$work/damaged/new" ] || fail "a rescue that is refused has made its target"
"$rxvol" rescue "$work/damaged" "$work/rescued" > "$work/out" && grep -q 'nothing is lost' "$work/out" || fail "a rescue: $(cat "$work/out")"
"$rxvol" -S "$work/rescued" check > "$work/out" || fail "a rescued store: $(cat "$work/out")"
# The store remembers the directory of the copy: a command that does not name one makes no second copy, and an older one is not offered.
cp -r "$work/elsewhere" "$work/moved" && mkdir -m 700 "$work/far" || exit 99
"$rxvol" -S "$work/moved" list > "$work/out" 2>&1 && [ -e "$work/moved/copy/db" ] || fail "no copy in the store: $(cat "$work/out")"
"$rxvol" -S "$work/moved" --copy "$work/far" list > "$work/out" 2>&1 && [ -e "$work/far/copy/db" ] || fail "no copy elsewhere: $(cat "$work/out")"
cmp -s "$work/moved/copy/state" "$work/far/copy/state" && fail "two copies"
cp "$work/moved/copy/state" "$work/state" || exit 99
"$rxvol" -S "$work/moved" create after > "$work/out" 2>&1 || fail "create: $(cat "$work/out")"
cmp -s "$work/moved/copy/state" "$work/state" || fail "the copy in the store was written, too"
rm -r "$work/moved/copy"
"$rxvol" -S "$work/moved" list > "$work/out" 2>&1 || fail "list: $(cat "$work/out")"
[ ! -e "$work/moved/copy" ] || fail "a second copy was made"
cp -r "$work/elsewhere/copy" "$work/moved/copy" || exit 99
rm "$work/moved/meta/db" "$work/moved/meta/mark" "$work/moved/closed"
refused 1 "copy $work/far use-copy" "$rxvol" -S "$work/moved" list
refused 1 "$work/far had all changes until 20.*copy $work/far use-copy" "$rxvol" -S "$work/moved" use-copy
mv "$work/far" "$work/away"
"$rxvol" -S "$work/moved" list > "$work/out" 2> "$work/err"
[ $? -eq 1 ] && grep -q "bring back $work/far" "$work/err" || fail "a copy that is away: $(cat "$work/err")"
refused 1 "is in $work/far, which cannot be opened" "$rxvol" -S "$work/moved" use-copy
mv "$work/away" "$work/far"
"$rxvol" -S "$work/moved" --copy "$work/far" use-copy > "$work/out" && "$rxvol" -S "$work/moved" examine after > "$work/out" || fail "the copy elsewhere: $(cat "$work/out")"
# A copy of the whole store does not write there, and naming the store itself leads back.
cp -r "$work/moved" "$work/twice" && cp "$work/far/copy/state" "$work/state" || exit 99
"$rxvol" -S "$work/twice" create other > "$work/out" 2>&1 || fail "a store that was copied: $(cat "$work/out")"
cmp -s "$work/far/copy/state" "$work/state" || fail "a store that was copied writes to the first one's copy"
"$rxvol" -S "$work/moved" --copy "$work/moved" list > "$work/out" 2>&1 && [ ! -e "$work/moved/COPY" ] || fail "not back in the store: $(cat "$work/out")"
mkdir -m 755 "$work/plain"
refused 1 'chmod 700' "$rxvol" -S "$work/plain" init
refused 1 'plain: has no store; make one with' "$rxvol" -S "$work/plain" list
refused 1 'absent: has no store; make one with' "$rxvol" -S "$work/absent" list
chmod 755 "$work/garbage"
refused 1 'chmod 700' "$rxvol" -S "$work/garbage" list
chmod 700 "$work/plain" "$work/garbage"
echo x > "$work/plain/file"
refused 1 "$work/plain" "$rxvol" -S "$work/plain" list
refused 1 "not empty" "$rxvol" -S "$work/plain" init
refused 1 "$work/plain/file" "$rxvol" -S "$work/plain/file" list

# Another process has it, and takes no requests. The lock is that of rxvol itself, which waits in the FIFO.
how=locked
if command -v python3 > /dev/null; then
	mkfifo "$work/hold"
	python3 -c 'import fcntl, sys
f = open(sys.argv[1] + "/lock", "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
fcntl.flock(f, fcntl.LOCK_EX)
print("locked", flush=True)
open(sys.argv[2]).read()' "$store" "$work/hold" > "$work/holder" &
	holder=$!
	servers="$servers $holder"
	wait_for "$work/holder" locked $holder || fail 'the lock was not taken'
	refused 1 'takes no requests at .*/control' "$rxvol" -S "$store" list
	# A socket that a killed server left is no server.
	python3 -c 'import socket, sys, os; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind("control")' "$store"
	refused 1 'takes no requests at .*/control' "$rxvol" -S "$store" list
	: > "$work/hold"
	wait $holder
	servers=$(echo " $servers " | sed "s/ $holder / /")
	vol list && says ''
	[ -S "$store/control" ] || fail 'the stale socket is gone'
fi

# -- at a server --
how=server
start_rxfsd() {
	: > "$work/rxfsd.out"
	"$rxfsd" --store "$store" --port 0 --vl-port 0 "$@" > "$work/rxfsd.out" 2> "$work/rxfsd.err" &
	server=$!
	servers="$servers $server"
	wait_for "$work/rxfsd.out" 'fs .* vl ' $server || {
		cat "$work/rxfsd.out" "$work/rxfsd.err"
		echo "rxfsd did not start"
		exit 1
	}
	where=$(sed -n 's/.*fs 127\.0\.0\.1:\([0-9]*\) vl 127\.0\.0\.1:\([0-9]*\).*/127.0.0.1:\2:\1/p' "$work/rxfsd.out")
}
start_rxfsd
[ "$(stat -c %a "$store/control")" = 600 ] || fail "the socket has the mode $(stat -c %a "$store/control")"
everything two 2
bad_input
grep -q 'control: user .*"command":"create"' "$work/rxfsd.err" || fail 'the log names no requests'

# What an administrator changes is seen by clients at once.
vol create seen --acl 'system:anyuser rl'
vol import seen "$tree/dir"
"$afscp" -s "$where" get seen:deep/file "$work/fetched" > "$work/out" 2>&1 || fail "afscp: $(cat "$work/out")"
cmp -s "$tree/dir/deep/file" "$work/fetched" || fail 'the fetched file differs'
vol offline seen
"$afscp" -s "$where" --retry 0 get seen:deep/file "$work/fetched" > "$work/out" 2>&1 && fail 'an offline volume was read'
vol online seen
vol remove seen
"$afscp" -s "$where" --retry 0 ls seen: > "$work/out" 2>&1 && fail 'a removed volume was listed'

# Two requests at a time: one that runs long does not hold up the other.
vol create long
mkdir "$work/big"
truncate -s 64M "$work/big/sparse"
head -c 200000000 /dev/zero | tr '\0' x > "$work/big/file"
"$rxvol" -S "$store" import long "$work/big" > "$work/long.out" 2>&1 &
import=$!
vol list && shows ' long$'
wait $import || fail "the long import: $(cat "$work/long.out")"
vol quota long && shows '^long: 190\.[0-9] MiB used\|^long: 254'
vol remove long

stop_server "$server" TERM || fail "rxfsd ended with $?"
[ ! -e "$store/control" ] || fail 'the socket is left after a stop'

# A killed server leaves its socket; rxvol and the next server go on.
how='after a kill'
start_rxfsd
vol create kept
kill -KILL "$server"
wait "$server" 2> /dev/null
servers=$(echo " $servers " | sed "s/ $server / /")
vol examine kept
start_rxfsd
vol list && shows ' kept$'
stop_server "$server" TERM || fail "rxfsd ended with $?"
vol check && says 'the store is sound'

# A path that is too long for the address of a socket.
how='a long path'
deep=$work/$(head -c 120 /dev/zero | tr '\0' d)
mkdir "$deep"
store=$deep/store
vol init
start_rxfsd
vol create far
vol list && shows ' far$'
stop_server "$server" TERM || fail "rxfsd ended with $?"

# -- root, and a store of another user --
how='modes that limit the caller'
mkdir "$work/mine"
if [ "$(id -u)" -ne 0 ] || { chmod 755 "$work" && chown 54322:54322 "$work/mine" 2> "$work/err"; }; then
	unreadable "$work/mine"
fi

how=root
# closed TREE: as Debian makes homes, of a third user; links lead out of it.
closed() {
	mkdir -p "$1/private/deep"
	echo secret > "$1/private/deep/key"
	echo text > "$1/text"
	ln -s /etc/passwd "$1/link"
	ln -s /etc "$1/directory-link"
	ln "$1/text" "$1/text-again"
	chmod 600 "$1/text" "$1/private/deep/key"
	chmod 700 "$1" "$1/private" "$1/private/deep"
	chown -hR 54321:54321 "$1"
}
# brought VOLUME: what was imported is what the tree has, and links are links.
brought() {
	vol export "$1" "$work/brought"
	diff -r --no-dereference "$work/home" "$work/brought" > "$work/diff" || fail "$how: $(head -n 3 "$work/diff")"
	[ "$(readlink "$work/brought/directory-link")" = /etc ] || fail "$how: a link became something else"
	[ "$(stat -c %a "$work/brought/text")" = 600 ] || fail "$how: a mode was lost"
	rm -rf "$work/brought"
}
other='setpriv --reuid=54322 --regid=54322 --clear-groups'
if [ "$(id -u)" -eq 0 ] && chmod 755 "$work" && mkdir "$work/other" && chown 54322:54322 "$work/other" &&
	$other "$rxfsd" --version > "$work/out" 2>&1; then
	chmod 700 "$work/other"
	closed "$work/home"
	# The new store belongs to the owner of the directory that it is made in.
	store=$work/other/store
	vol create offline-home
	[ "$(stat -c %u "$store" "$store/FORMAT" | sort -u)" = 54322 ] || fail "$how: the store does not belong to the owner of its directory"
	no 1 'the store belongs to the user 54322, who cannot write there: Permission denied; give a directory' export offline-home /
	vol import offline-home "$work/home"
	says 'import: 7 files, directories and links, 12 bytes'
	brought offline-home
	vol import offline-home "$work/home"
	says 'import: 0 files, directories and links, 0 bytes; 5 there already'
	[ -z "$(find "$store" ! -user 54322)" ] || fail "$how: files of the store belong to root"
	: > "$work/rxfsd.out"
	$other "$rxfsd" --store "$store" --port 0 --vl-port 0 > "$work/rxfsd.out" 2> "$work/rxfsd.err" &
	server=$!
	servers="$servers $server"
	wait_for "$work/rxfsd.out" 'fs .* vl ' $server || fail "$how: the server does not start: $(cat "$work/rxfsd.err")"
	how='root, at a server'
	vol create served-home
	vol import served-home "$work/home"
	brought served-home
	[ -z "$(find "$store" ! -user 54322)" ] || fail "$how: files of the store belong to root"
	# The user of the store alone may not read it, and no link leads root elsewhere.
	chmod 755 "$work/home"
	$other "$rxvol" -S "$store" import served-home:again "$work/home" > "$work/out" 2> "$work/err"
	[ $? -eq 1 ] && grep -q 'private: skipped: Permission denied' "$work/err" ||
		fail "$how: the user of the store reads what is closed: $(cat "$work/err")"
	stop_server "$server" TERM || fail "$how: the server ended with $?"
	grep -v ' INFO\|: version\|control: user' "$work/rxfsd.err" | grep -i 'error' && fail "$how: the server complains"
else
	echo "left out: root and a store of another user"
fi

result
