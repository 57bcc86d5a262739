# SPDX-License-Identifier: BSD-2-Clause
# afscp's commands that look at trees, with two cells on loopback: mount points, patterns, names of any bytes, failures.

. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol

for program in "$rxfsd" "$rxvol"; do
	[ -x "$program" ] || { echo "SKIP: $program is not built"; exit 77; }
done
cd "$work" || exit 99
umask 022

# start_cell NAME VOLUME...: its server; sets server and where.
start_cell() {
	cell=$1
	shift
	for volume in "$@"; do
		"$rxvol" -S "$cell" create "$volume" --acl 'system:anyuser all' > made || { cat made; exit 99; }
	done
	"$rxfsd" --store "$cell" --port 0 --vl-port 0 > "$cell.out" 2> "$cell.err" &
	server=$!
	servers="$servers $server"
	wait_for "$cell.out" 'fs .* vl ' $server || { cat "$cell.out" "$cell.err"; echo "rxfsd did not start"; exit 1; }
	where=$(sed -n 's/.*fs 127\.0\.0\.1:\([0-9]*\) vl 127\.0\.0\.1:\([0-9]*\).*/127.0.0.1:\2:\1/p' "$cell.out")
}
start_cell far.example root.cell
far=$where
start_cell near.example root.cell home data
near=$where
near_server=$server

cp_() { "$afscp" -s near.example="$near" -s far.example="$far" "$@"; }
cp_well() {
	cp_ "$@" > out 2> err < /dev/null || {
		fail "afscp $* ended with $?: $(head -n 3 err)"
		return 1
	}
	[ ! -s err ] || fail "afscp $* printed: $(head -n 3 err)"
}
# shows EXPECTED COMMAND...: the words of the output.
shows() {
	expected=$1
	shift
	cp_well "$@" && [ "$(xargs < out)" = "$expected" ] || fail "afscp $*: $(xargs < out)"
}

# A tree over three volumes and two cells; "home" leads back to the root.
mkdir -p tree/sub/deep
echo one > tree/one
echo two > tree/sub/two
head -c 5000 /dev/zero > tree/sub/large
touch -d '10 days ago' tree/one
ln -s sub/two tree/link
ln -s /etc/passwd tree/outside
ln -s circle tree/circle
cp_well put -r tree/. home:/
cp_well ln home:/sub/two home:/sub/again
echo far > far
"$afscp" -s "$far" put far root.cell:/far > out 2>&1 || fail "put: $(cat out)"
cp_well ln --mount home root.cell:/home
cp_well ln --mount root.cell home:/back
cp_well ln --mount far.example:root.cell root.cell:/far
cp_well ln --mount nothing root.cell:/broken

# Paths by volume and by cell; through mount points and other cells; the last link is followed or not.
for place in home:/sub/two home:sub/../link /afs/near.example/home/sub/two /afs/near.example/home/link \
	/afs/near.example/home/back/home/link /afs/.near.example/home/sub/two root.cell:home/link; do
	cp_well cat "$place" && [ "$(cat out)" = two ] || fail "cat $place: $(cat out)"
done
shows far cat /afs/near.example/far/far
shows '.@cell .far.example .near.example @cell far.example near.example' ls /afs
cp_well cat home:/one home:/sub/two && [ "$(xargs < out)" = 'one two' ] || fail "cat of two: $(cat out)"
cp_well cat 'home:/sub/t*' && [ "$(cat out)" = two ] || fail "cat of a pattern: $(cat out)"
shows 'home/sub/two' ls root.cell:home/sub/two
shows 'back circle link one outside sub' ls /afs/near.example/home
cp_well stat root.cell:/home && grep -q 'mount point #home\.$' out || fail "stat of a mount point: $(cat out)"
cp_well stat /afs/near.example/home/ && grep -q 'type  *directory' out || fail "stat behind a mount point: $(cat out)"

# ls: several, all levels, targets of links and mount points.
shows 'home:/sub: again deep large two root.cell:/: broken far home' ls home:/sub root.cell:/
cp_well ls -l home:/ && grep -q ' link -> sub/two$' out && grep -q '^m.* back -> #root.cell\.$' out || fail "ls -l: $(cat out)"
cp_ ls -R root.cell:/ > out 2> err
[ $? -eq 1 ] && [ "$(wc -l < err)" -eq 1 ] && grep -q '^afscp: root.cell:/broken: ' err || fail "ls -R over a broken mount point: $(cat err)"
grep -qx 'root.cell:/home/sub:' out && grep -qx 'root.cell:/far:' out && [ "$(grep -c '^root.cell:/home/back' out)" -eq 0 ] ||
	fail "ls -R: $(cat out)"
shows 'root.cell:/: broken far home' ls -Rx root.cell:/
cp_well ls -R --json home:/sub && [ "$(wc -l < out)" -eq 2 ] && grep -q '"path": "home:/sub/deep"' out || fail "ls -R --json: $(cat out)"

# find.
shows 'home:/one home:/sub/large home:/sub/two' find home:/ -x -type f -size -11 -name '[!a]*'
shows 'home:/one' find home:/ -x -mtime +9
shows 'home:/sub/large' find home:/ -x --size +2k
shows 'home:/ home:/back home:/circle home:/link home:/one home:/outside home:/sub' find -x home:/ -maxdepth 1
shows 'home:/' find home:/ -maxdepth 0
shows 'home:/back' find home:/ -x -type m
shows 'home:/circle home:/link home:/outside' find home:/ -x -type l
cp_ find root.cell: -name two > out 2> err
[ "$(xargs < out)" = 'root.cell:home/sub/two' ] && [ "$(wc -l < err)" -eq 1 ] || fail "find through mount points: $(cat out err)"
cp_well find --json home:/sub -name two && grep -q '^{.*"type": "file".*"path": "home:/sub/two"}$' out || fail "find --json: $(cat out)"
cp_ find --json root.cell:/broken/ home:/one > out 2> err
[ $? -eq 1 ] && grep -q '^{"error": "root.cell:/broken/' out && grep -q '"path": "home:/one"' out || fail "errors as JSON: $(cat out)"

# du: files with several names count once.
cp_well du -s home:/sub && [ "$(cut -f 1 out)" = 10 ] || fail "du -s: $(cat out)"
cp_well du home:/sub && [ "$(wc -l < out)" -eq 2 ] || fail "du: $(cat out)"
cp_well du -sh home:/sub && grep -q 'KiB' out || fail "du -sh: $(cat out)"
cp_well du -sx --json home:/ && grep -q '^{"kib": [0-9]*, "bytes": [0-9]*, "files": 6, "path": "home:/"}$' out || fail "du --json: $(cat out)"

# find and du count a link that is named, or that a pattern matches, as what it is; with a slash it is followed.
cp_well mkdir home:/links
cp_well ln -s ../sub home:/links/folder
cp_well ln -s nowhere home:/links/dangling
cp_well du -s 'home:/links/*' && [ "$(cut -f 1 out | xargs)" = '1 1' ] || fail "du of links: $(cat out)"
shows 'home:/links/dangling home:/links/folder' find 'home:/links/*'
shows 'home:/links/folder/ home:/links/folder/two' find home:/links/folder/ -type d,f -name '[ft]*'
cp_well du -sx root.cell:/home && [ "$(cut -f 1 out)" -gt 5 ] || fail "du of a mount point: $(cat out)"
# The mode of a link is the same everywhere.
cp_well ls -l home:/links && [ "$(grep -c '^lrwxrwxrwx' out)" -eq 2 ] || fail "ls -l of links: $(cat out)"
cp_well ls -l home:/links/folder && grep -q '^lrwxrwxrwx' out || fail "ls -l of a link: $(cat out)"
cp_well rm -r home:/links

# quota, df.
"$rxvol" -S near.example set data --quota 20M > out 2>&1 || "$rxvol" -S near.example quota data 20M > out 2>&1 || fail "rxvol: $(cat out)"
cp_well quota data: home: && grep -q '^data  *20480 ' out && grep -q '^home  *no limit ' out || fail "quota: $(cat out)"
cp_well quota -h data: && grep -q '20.0 MiB' out || fail "quota -h: $(cat out)"
cp_well quota --json data: && grep -q '^{.*"quota_kib": 20480}$' out || fail "quota --json: $(cat out)"
"$afscp" -s "$near" quota --json data: > out 2>&1 && grep -q '"cell": null' out || fail "quota in a cell without a name: $(cat out)"
"$afscp" -s "$near" df --json data: > out 2>&1 && grep -q '"cell": null' out || fail "df in a cell without a name: $(cat out)"
cp_well df data: home:/sub /afs/far.example && [ "$(wc -l < out)" -eq 3 ] || fail "df: $(cat out)"

# Names of any bytes: whole in files and JSON, harmless on a terminal.
name=$(printf 'new\nline \033[31m\377')
echo odd > odd
cp_well put odd "data:/$name"
cp_well mkdir -p 'data:/a b/c:d'
printf 'data:/\0data:/a b\0data:/a b/c:d\0data:/%s\0' "$name" > expected
cp_well find data:/ -print0 && cmp -s out expected || fail "find -print0: $(od -c out)"
cp_well cat "data:/$name" && [ "$(cat out)" = odd ] || fail "cat of an odd name: $(cat out)"
cp_well ls --json data:/ && [ "$(wc -l < out)" -eq 1 ] && grep -q 'name_hex' out || fail "ls --json: $(cat out)"
if command -v script > /dev/null; then
	for command in ls 'ls -l' 'ls -R' find du stat; do
		script -qec "'$afscp' -s near.example=$near $command 'data:/' 'data:/a b' 'data:/$name' 'data:/$name-none'" /dev/null \
			> terminal 2> err < /dev/null
		grep -q "$(printf '\033')" terminal && fail "$command on a terminal: $(od -c terminal | head)"
	done
fi

# A directory without rights does not hide the others.
cp_well mkdir data:/closed data:/open
cp_well put odd data:/open/file
cp_well acl data:/closed system:anyuser none
cp_ find data:/ -type f -name file > out 2> err
[ $? -eq 1 ] && [ "$(wc -l < err)" -eq 1 ] && grep -q '^afscp: data:/closed: Permission denied.*you need the right l' err ||
	fail "find without rights: $(cat err)"
[ "$(cat out)" = data:/open/file ] || fail "find beside a closed directory: $(cat out)"
refused 1 'data:/closed: Permission denied' cp_ ls data:/closed
refused 1 'data:/closed/x: Permission denied' cp_ cat data:/closed/x

# Wrong input.
refused 2 'is unknown' cp_ dir home:
refused 2 'ls takes' cp_ ls
refused 2 '"home" is not VOLUME:PATH' cp_ find home
refused 2 '--type' cp_ find home: -type x
refused 2 '--size' cp_ find home: -size big
refused 2 '--mtime' cp_ find home: -mtime soon
refused 2 'maxdepth' cp_ find home: -maxdepth -1
refused 2 '--print0 is for find' cp_ ls --print0 home:
refused 2 'for du, df and quota' cp_ stat --human-readable home:
refused 1 'nothere: no such volume' cp_ find nothere:
refused 1 'no such file' cp_ cat home:/none
refused 1 'is a directory' cp_ cat home:/sub
refused 1 'not a directory' cp_ find home:/one/x
refused 1 'not a directory' cp_ du home:/one/
refused 1 'symbolic links' cp_ cat home:/circle
refused 1 'out of the volume' cp_ cat home:/outside
refused 1 'out of the volume' cp_ ls home:/../x
refused 1 'nothing' cp_ ls root.cell:/broken/
refused 1 'no such file' cp_ ls /afs/no-such-cell
refused 2 'completion takes' cp_ completion csh
refused 2 'completion takes bash, zsh or fish' cp_ completion
refused 2 'option --foo is unknown' cp_ find home: -foo
refused 1 'sub is a directory' cp_ lock home:/sub true
refused 1 'the cell is unknown; name its servers with -s no-such-cell=HOST' cp_ ls /afs/no-such-cell/

# Links of the greatest length; mount points in place of files and links.
long=$(printf '%1024s' | tr ' ' x)
cp_well ln -s "$long" data:/long
cp_well stat --json data:/long && grep -q "\"link\": \"$long\"" out || fail "a link of 1024 bytes: $(cat out)"
refused 1 '1 to 1024 bytes' cp_ ln -s "${long}x" data:/longer
cp_well put odd data:/plain
for name in plain long; do
	cp_well ln --mount home -f data:/$name
	cp_well stat data:/$name && grep -q 'mount point #home\.$' out || fail "a mount point in place of $name: $(cat out)"
done
refused 1 'exist' cp_ ln --mount home -f data:/open
cp_well rm data:/plain data:/long

# Trees that are changed stay in their volume.
cp_well mkdir -p data:/gone/x/y
cp_well put odd data:/gone/x/file
cp_well ln --mount home data:/gone/x/mount
cp_well chmod -r u=rwX,go= data:/gone
cp_well ls -l home:/ && grep -q '^-rw-r--r-- .* one$' out || fail "chmod -r went through a mount point: $(cat out)"
cp_well rm -r data:/gone
refused 1 'no such file' cp_ ls data:/gone
shows 'back circle link one outside sub' ls home:

# Many names: links are read, modes changed and names removed some at a time.
mkdir -p wide/a/b wide/c
for i in $(seq 30); do
	ln -s "$i" "wide/link$i"
	echo x > "wide/a/b/file$i"
	mkdir "wide/c/dir$i"
	echo x > "wide/c/dir$i/file"
done
cp_well put -r wide data:/
cp_well ls -l data:/wide && [ "$(sed -n 's/.* link\([0-9]*\) -> \1$/x/p' out | wc -l)" -eq 30 ] || fail "ls -l of links: $(cat out)"
cp_well chmod -r go= data:/wide
cp_well find data:/wide --json && [ "$(grep -c '"mode": 384' out)" -eq 60 ] && [ "$(grep -c '"mode": 448' out)" -eq 34 ] || fail "chmod -r: $(cat out)"
cp_well acl data:/wide/c/dir7 system:anyuser rla
cp_ rm -r data:/wide > out 2> err
[ $? -eq 1 ] && [ "$(wc -l < err)" -eq 1 ] && grep -q '^afscp: data:/wide/c/dir7/file: ' err || fail "rm -r without a right: $(cat err)"
shows 'data:/wide data:/wide/c data:/wide/c/dir7 data:/wide/c/dir7/file' find data:/wide
cp_well acl data:/wide/c/dir7 system:anyuser all
cp_well rm -r data:/wide
# Two who remove the same do not disturb each other.
cp_well put -r wide data:/
cp_ rm -rf data:/wide > out2 2> err2 &
cp_well rm -rf data:/wide
wait $! && [ ! -s err2 ] || fail "rm -rf beside another: $(cat err2)"
refused 1 'no such file' cp_ ls data:/wide

# The servers end, one after the other.
stop_server "$near_server" KILL
refused 1 'check that .* running' cp_ --retry 0 --dead-ms 1000 ls home:
refused 1 'check that .* running' cp_ --retry 0 --dead-ms 1000 du home:
result
