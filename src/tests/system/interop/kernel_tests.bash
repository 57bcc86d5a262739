# SPDX-License-Identifier: BSD-2-Clause
# The tests of `kernel`, inside its namespace: four servers of one tree, and a guest that mounts all of them.

export_dir=$work/export
servers=' '

finish() {
	local p
	for p in $servers $(cat guest.pid 2> /dev/null); do
		kill -KILL "$p" 2> /dev/null
	done
	wait
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

# ---- the exported tree ----

pattern() { seq -f "$1 %08g of a file that is read by many" "$2"; }

make_export() {
	local i d
	mkdir -p "$export_dir"/{many,names,tree,live,passing,pub,links}
	chmod 755 "$export_dir"
	cd "$export_dir" || exit 1
	echo hello > hello
	touch -d @1000000000 hello
	: > empty
	ln -s hello link
	ln -s nowhere dangling
	ln -s loop loop
	ln -s "$(printf '%01000d' 0)" links/long
	head -c 20971520 /dev/urandom > mid
	truncate -s 5G sparse
	echo far | dd of=sparse bs=1 seek=$((1179648 * 4096)) conv=notrunc 2> /dev/null
	(cd many && seq -f 'name-of-file-%g' 5000 | xargs touch)
	echo no > secret && chmod 600 secret
	mkdir -m 700 closed && echo no > closed/file
	echo yes > passing/file && chmod 711 passing
	echo script > script && chmod 755 script
	echo fixed > fixed && chmod 444 fixed
	touch 'names/with space' 'names/"quoted"' "names/$(printf 'caf\303\251')" "names/$(printf '%0250d' 0)" \
		'names/..three' 'names/-dash' "names/$(printf 'bad\377')"
	echo one > links/a && ln links/a links/b && ln links/a links/c
	d=deep
	for ((i = 0; i < 20; i++)); do d=$d/d$i; done
	mkdir -p $d && echo bottom > $d/leaf
	for ((i = 1; i <= 60; i++)); do
		mkdir -p tree/$((i % 6))
		pattern "$i" $((i * 40)) > tree/$((i % 6))/f$i
	done
	for i in rename-over overwrite append truncate delete chmod kind; do pattern $i 2000 > live/$i; done
	pattern moved 10 > live/moved && mkdir live/dir && echo in > live/dir/file
	ln -s dir live/turn && echo linked > live/linked
	pattern slow 60000 > live/slow
	echo public > pub/file && echo private > private
	for i in 1 2 3 4 5 6; do echo "cached $i" > cached$i; done
	chmod -R o+rX . && chmod 600 secret && chmod 700 closed && chmod 711 passing
	cd "$work" || exit 1
}

# serve NAME ADDRESS OPTION...: starts rxfsd on the AFS ports, the only ones that the kernel uses.
serve() {
	local name=$1 i=0
	"$rxfsd" --export "$export_dir" --volume "$name" --state "$work/state-$name" --listen "$2" \
		--cell "$name.cell" "${@:3}" > "$name.log" 2>&1 &
	eval "server_$name=$!"
	servers="$servers$! "
	until grep -q '^listening' "$name.log"; do
		kill -0 $! 2> /dev/null && [ $i -lt 300 ] || { cat "$name.log"; echo "rxfsd $name does not start"; exit 1; }
		sleep 0.1
		i=$((i + 1))
	done
}

# ---- the guest ----

out='' status='' dead=''

# guest COMMAND [SECONDS]: runs it in the guest. Sets out and status.
guest() { at guest "$1" "${2:-90}" || { dead=$(cat guest.dead); return 1; }; }

# same TEST WANTED COMMAND [SECONDS]: compares the output of a command of the guest.
same() {
	guest "$3" "${4:-90}" || { fail "$1" "$dead"; return 1; }
	if [ "$2" = "$out" ]; then pass "$1"; else fail "$1" "wanted \"$2\", got \"$(echo "$out" | head -n 5)\""; fi
}

# like TEST PATTERN COMMAND: the output must match PATTERN.
like() {
	guest "$3" "${4:-90}" || { fail "$1" "$dead"; return 1; }
	if echo "$out" | grep -qE "$2"; then pass "$1"; else fail "$1" "wanted /$2/, got \"$(echo "$out" | head -n 5)\""; fi
}

# turns TEST WANTED COMMAND: waits until the output is WANTED.
turns() {
	same "$1" "$2" "i=0; while [ \"\$($3)\" != '$2' ] && [ \$i -lt 300 ]; do sleep 0.2; i=\$((i + 1)); done; $3" 150
}

sum() { sha256sum "$@" | cut -d' ' -f1; }

# ---- the tests ----

test_mounts() {
	local id
	id=$(sed -n 's/.*volume none (\([0-9]*\)).*/\1/p' none.log)
	same kernel-mount ok 'guest mount "#none.cell:none." /none'
	# "%" is the read-write volume only.
	same kernel-mount-read-write ENOMEDIUM 'guest mount "%none.cell:none." /mnt'
	same kernel-mount-number 'ok hello' "echo \$(guest mount '#none.cell:$id' /mnt; cat /mnt/hello; umount /mnt)"
	same kernel-mount-readonly 'ok hello' 'echo $(guest mount "#none.cell:none.readonly" /mnt; cat /mnt/hello; umount /mnt)'
	same kernel-mount-root-cell 'ok hello' 'echo $(guest mount "#none.cell:root.cell." /mnt; cat /mnt/hello; umount /mnt)'
	same kernel-mount-dynamic 'ok hello' 'echo $(guest mount none /afs dyn; cat /afs/none.cell/hello; umount /afs/none.cell /afs)'
	same kernel-mount-backup ENOMEDIUM 'guest mount "#none.cell:none.backup" /mnt'
	same kernel-mount-missing ENOMEDIUM 'guest mount "#none.cell:other." /mnt'
	same kernel-mount-twice 'ok hello' 'echo $(guest mount "#none.cell:none." /mnt; cat /mnt/hello; umount /mnt)'
}

test_listing() {
	same kernel-list "$(cd "$export_dir" && echo ./*)" 'cd /none && echo ./*'
	same kernel-5000-names 5000 'ls /none/many | wc -l'
	same kernel-5000-different 5000 'ls /none/many | sort -u | wc -l'
	same kernel-5000-stat 5000 'ls -l /none/many | grep -c "^-rw"'
	same kernel-names "$(cd "$export_dir/names" && for f in *; do printf '%s' "$f" | od -An -tx1; done)" \
		'cd /none/names && for f in *; do printf "%s" "$f" | od -An -tx1; done'
	same kernel-deep bottom "cat /none/deep/$(seq -s/ -f 'd%g' 0 19)/leaf"
	same kernel-parent "$(cd "$export_dir" && echo ./*)" 'cd /none/deep/d0/d1/../../.. && echo ./*'
	same kernel-kinds 'directory symbolic link regular file regular empty file' \
		'cd /none && echo $(stat -c %F tree link hello empty)'
}

test_attributes() {
	same kernel-modes '644 755 444 755' 'cd /none && echo $(stat -c %a hello script fixed tree)'
	same kernel-sizes '6 0 5368709120 20971520' 'cd /none && echo $(stat -c %s hello empty sparse mid)'
	same kernel-mtime 1000000000 'stat -c %Y /none/hello'
	same kernel-owner "$(stat -c '%u %g' "$export_dir/hello")" 'stat -c "%u %g" /none/hello'
	same kernel-directory-links "$(stat -c %h "$export_dir/tree")" 'stat -c %h /none/tree'
	same kernel-link-count '3 3 3' 'cd /none/links && echo $(stat -c %h a b c)'
	same kernel-hard-link 1 'cd /none/links && stat -c %i a b c | sort -u | wc -l'
	same kernel-statfs 0 'stat -f /none > /dev/null; echo $?'
}

test_reading() {
	local offsets='1 77 3000 1234 5'
	same kernel-small-file hello 'cat /none/hello'
	same kernel-empty-file 0 'cat /none/empty | wc -c'
	same kernel-sequential "$(sum "$export_dir/mid")" 'sha256sum /none/mid | cut -d" " -f1'
	same kernel-random "$(for o in $offsets; do dd if="$export_dir/mid" bs=4096 skip="$o" count=1 2> /dev/null; done | md5sum)" \
		"for o in $offsets; do dd if=/none/mid bs=4096 skip=\$o count=1 2> /dev/null; done | md5sum"
	same kernel-odd-offsets "$(dd if="$export_dir/mid" bs=1717 skip=333 count=777 2> /dev/null | md5sum)" \
		'echo 3 > /proc/sys/vm/drop_caches; dd if=/none/mid bs=1717 skip=333 count=777 2> /dev/null | md5sum'
	same kernel-beyond-4g "$(dd if="$export_dir/sparse" bs=4096 skip=1179648 count=2 2> /dev/null | md5sum)" \
		'dd if=/none/sparse bs=4096 skip=1179648 count=2 2> /dev/null | md5sum'
	same kernel-hole "$(head -c 65536 /dev/zero | md5sum)" 'dd if=/none/sparse bs=65536 skip=50000 count=1 2> /dev/null | md5sum'
	same kernel-past-end 0 'dd if=/none/hello bs=4096 skip=5 count=1 2> /dev/null | wc -c'
	same kernel-across-end 2 'dd if=/none/hello bs=4 skip=1 2> /dev/null | wc -c'
	same kernel-mapping "$(sum "$export_dir/tree/5/f59")" 'guest map /none/tree/5/f59 | sha256sum | cut -d" " -f1'
	same kernel-tree "$(cd "$export_dir/tree" && find . -type f | sort | xargs sha256sum | sha256sum)" \
		'cd /none/tree && find . -type f | sort | xargs sha256sum | sha256sum'
	same kernel-many-readers "$(sum "$export_dir/tree/0/f60")" \
		'echo 3 > /proc/sys/vm/drop_caches; cd /none/tree; for i in 1 2 3 4 5 6 7 8; do cat */* | md5sum > /tmp/r$i & done; wait
		[ $(cat /tmp/r? | sort -u | wc -l) = 1 ] && sha256sum 0/f60 | cut -d" " -f1'
	same kernel-again "$(sum "$export_dir/mid")" \
		'echo 3 > /proc/sys/vm/drop_caches; sha256sum /none/mid | cut -d" " -f1'
}

test_links() {
	same kernel-symlink 'hello hello' 'echo $(readlink /none/link) $(cat /none/link)'
	same kernel-symlink-dangling ENOENT 'guest try read /none/dangling'
	same kernel-symlink-loop ELOOP 'guest try read /none/loop'
	same kernel-symlink-long 1000 'readlink /none/links/long | tr -d "\n" | wc -c'
}

test_errors() {
	same kernel-missing ENOENT 'guest try read /none/nofile'
	same kernel-no-directory ENOTDIR 'guest try read /none/hello/x'
	same kernel-is-directory EISDIR 'guest try write /none/tree'
	same kernel-unreadable EACCES 'guest try read /none/secret'
	same kernel-closed EACCES 'guest try list /none/closed'
	same kernel-closed-inside EACCES 'guest try read /none/closed/file'
	same kernel-passing EACCES 'guest try list /none/passing'
}

test_locks() {
	same kernel-lock-flock ok 'guest lock flock-shared /none/hello'
	same kernel-lock-read ok 'guest lock read /none/hello'
	same kernel-lock-two 'ok ok' 'echo $(guest lock flock-shared /none/hello & guest lock read /none/hello; wait)'
}

test_writing() {
	local call
	for call in create:/none/new mkdir:/none/new unlink:/none/hello rename:'/none/hello /none/new' \
		link:'/none/hello /none/new' symlink:'x /none/new' write:/none/hello append:/none/hello \
		truncate:/none/hello chmod:/none/hello chown:/none/hello utime:/none/hello rmdir:/none/tree; do
		same "kernel-read-only-${call%%:*}" EROFS "guest try ${call%%:*} ${call#*:}"
	done
}

# The server's tree changes below a mounted volume; the guest sees each change soon.
test_changes() {
	local l=$export_dir/live
	guest 'cd /none/live && cat * > /dev/null; ls -lR . > /dev/null; readlink turn'
	pattern new-over 900 > "$l/.new" && chmod 644 "$l/.new" && mv "$l/.new" "$l/rename-over"
	turns kernel-live-rename-over "$(sum "$l/rename-over")" 'sha256sum /none/live/rename-over | cut -d" " -f1'
	pattern OVERWRITE 2000 | head -c "$(stat -c %s "$l/overwrite")" | dd of="$l/overwrite" conv=notrunc 2> /dev/null
	turns kernel-live-overwrite "$(sum "$l/overwrite")" 'sha256sum /none/live/overwrite | cut -d" " -f1'
	pattern more 3000 >> "$l/append"
	turns kernel-live-append "$(sum "$l/append")" 'sha256sum /none/live/append | cut -d" " -f1'
	truncate -s 100 "$l/truncate"
	turns kernel-live-truncate 100 'cat /none/live/truncate | wc -c'
	rm "$l/delete"
	turns kernel-live-delete ENOENT 'guest try read /none/live/delete'
	mv "$l/moved" "$l/moved-2"
	turns kernel-live-rename "$(sum "$l/moved-2")" 'sha256sum /none/live/moved-2 2> /dev/null | cut -d" " -f1'
	turns kernel-live-renamed-away ENOENT 'guest try stat /none/live/moved'
	mv "$l/dir" "$l/dir-2"
	turns kernel-live-rename-directory in 'cat /none/live/dir-2/file'
	rm "$l/turn" && ln -s linked "$l/turn"
	turns kernel-live-symlink linked 'readlink /none/live/turn'
	rm "$l/kind" && mkdir "$l/kind" && chmod 755 "$l/kind"
	turns kernel-live-kind directory 'stat -c %F /none/live/kind'
	ln "$l/linked" "$l/linked-2"
	turns kernel-live-hard-link linked 'cat /none/live/linked-2'
	echo other > "$l/linked"
	turns kernel-live-hard-link-write 'other' 'cat /none/live/linked-2'
	chmod 600 "$l/chmod"
	turns kernel-live-chmod EACCES 'guest try read /none/live/chmod'
	(cd "$l" && mkdir -m 755 born && for i in 1 2 3; do echo $i > born/$i; done)
	turns kernel-live-new-directory '1 2 3' 'echo $(cat /none/live/born/*)'
}

# Replaced by a rename while it is read: the result is all old, all new, or an error, but not mixed.
test_open_file() {
	local old new
	old=$(sum "$export_dir/live/slow")
	guest 'mkfifo /tmp/go; (guest slow /none/live/slow /tmp/go > /tmp/slow 2> /tmp/slow.err; echo $? > /tmp/slow.rc) &
		until [ -s /tmp/slow ]; do sleep 0.1; done; echo 1 > /proc/sys/vm/drop_caches'
	pattern late 60000 > "$export_dir/live/.slow" && chmod 644 "$export_dir/live/.slow"
	new=$(sum "$export_dir/live/.slow")
	mv "$export_dir/live/.slow" "$export_dir/live/slow"
	turns kernel-open-seen "$new" 'sha256sum /none/live/slow | cut -d" " -f1'
	guest ': > /tmp/go; until [ -s /tmp/slow.rc ]; do sleep 0.1; done; echo $(cat /tmp/slow.rc) $(sha256sum /tmp/slow | cut -d" " -f1)' ||
		{ fail kernel-open-not-mixed "$dead"; return; }
	case $out in
	"0 $old" | "0 $new") pass kernel-open-not-mixed ;;
	0\ *) fail kernel-open-not-mixed "a mixture: $out" ;;
	*) pass kernel-open-not-mixed ;;
	esac
}

# Processes of one guest, with and without tokens.
test_keys() {
	same kernel-key-mount 'ok ok ok' 'echo $(guest with /keys/alice crypt.cell guest mount "#crypt.cell:crypt." /crypt
		guest with /keys/alice auth.cell guest mount "#auth.cell:auth." /auth; guest mount "#rules.cell:rules." /rules)'
	same kernel-key-mount-without EACCES 'guest mount "#crypt.cell:root.cell." /mnt'
	same kernel-key-read "$(sum "$export_dir/mid")" \
		'guest with /keys/alice crypt.cell sha256sum /crypt/mid | cut -d" " -f1'
	same kernel-key-auth "$(sum "$export_dir/tree/1/f1")" \
		'guest with /keys/alice auth.cell sha256sum /auth/tree/1/f1 | cut -d" " -f1'
	same kernel-key-list 5000 'guest with /keys/alice crypt.cell ls -l /crypt/many | grep -c "^-rw"'
	guest 'guest with /keys/alice crypt.cell cat /crypt/cached1 /crypt/cached2; guest with /keys/alice auth.cell cat /auth/cached1'
	same kernel-key-cached-file EACCES 'guest try read /crypt/cached1'
	same kernel-key-cached-file-auth EACCES 'guest try read /auth/cached1'
	same kernel-key-cached-listing EACCES 'guest try list /crypt/many'
	same kernel-key-new-name EACCES 'guest try read /crypt/cached3'
	same kernel-key-still-there 'cached 1' 'guest with /keys/alice crypt.cell cat /crypt/cached1'
	same kernel-key-gone EACCES 'guest expiring /keys/alice crypt.cell guest try read /crypt/cached4'
	like kernel-key-ended 'EKEYEXPIRED|EACCES' 'guest with /keys/ended crypt.cell guest try read /crypt/cached5'
	like kernel-key-unknown 'EKEYREJECTED' 'guest with /keys/unknown crypt.cell guest try read /crypt/cached6'
	# A user's token is of no use with a server that has no keys; the other mounts go on.
	like kernel-key-server-without 'EKEYREJECTED' 'guest with /keys/alice none.cell guest try read /none/cached1'
	same kernel-key-others-go-on 'cached 1' 'cat /none/cached1'
	same kernel-rules-alice private 'guest with /keys/alice rules.cell cat /rules/private'
	same kernel-rules-bob EACCES 'guest with /keys/bob rules.cell guest try read /rules/private'
	same kernel-rules-nobody EACCES 'guest try read /rules/private'
	same kernel-rules-nobody-new EACCES 'guest try read /rules/cached1'
	same kernel-rules-public public 'cat /rules/pub/file'
	same kernel-key-read-only EROFS 'guest with /keys/alice crypt.cell guest try create /crypt/new'
	same kernel-key-lock ok 'guest with /keys/alice crypt.cell guest lock read /crypt/hello'
}

# Changes while the server was down are seen, also by a client that does not call: the server notifies it of the
# restart.
test_restart() {
	guest 'cat /none/cached2 /none/cached3 > /dev/null'
	kill -TERM $server_none
	wait $server_none
	echo 'changed meanwhile' > "$export_dir/cached2"
	echo 'fresh' > "$export_dir/fresh"
	serve none 10.77.0.1 --require none
	turns kernel-restart-new-file fresh 'cat /none/fresh 2> /dev/null'
	turns kernel-restart-changed 'changed meanwhile' 'cat /none/cached2 2> /dev/null'
	same kernel-restart-same 'cached 3' 'cat /none/cached3'
}

# A ticket of 60 s that expires while it is used.
test_ending_ticket() {
	"$cell_ours" token keys alice@TEST.CELL 60 0 > short || { fail kernel-ticket-used "no ticket"; return; }
	guest "echo '$(base64 -w 0 short)' | base64 -d > /keys/short"
	same kernel-ticket-used 'cached 5' 'guest with /keys/short crypt.cell cat /crypt/cached5'
	sleep 65
	like kernel-ticket-ended 'EKEYEXPIRED|EACCES' 'guest with /keys/short crypt.cell guest try read /crypt/cached6'
	same kernel-ticket-others 'cached 5' 'guest with /keys/alice crypt.cell cat /crypt/cached5'
}

test_end() {
	same kernel-unmount 0 'cd /; umount /none; echo $?'
	same kernel-unmount-keys 0 'umount /crypt && umount /auth && umount /rules; echo $?'
	same kernel-complaints '' \
		"dmesg | grep -iE 'BUG:|Oops|kernel BUG|WARNING:|kAFS: .*(\<bad|mismatch|not match)'"
}

count() { awk -v name="rxwire_cookies_$1_total" 'index($1, name "{") == 1 { n += $2 } END { print n + 0 }' metrics; }

test_flood() {
	# 500 places per second become free, so that the guest gets one now and then.
	if [ "$(count sent)" -eq 0 ]; then
		fail kernel-cookies "no client got a cookie: $(cat unvalidated.log)"
	elif [ "$(count returned)" -gt 0 ]; then
		pass kernel-cookies
	else
		skip kernel-cookies 'no address was validated: the guest got one of the few places, or did not answer'
	fi
}

make_export
key=0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20
"$cell_ours" key keys 5 18 $key && "$cell_ours" key other-keys 9 18 "${key//0/7}" || exit 1
"$cell_ours" token keys alice@TEST.CELL 86400 0 > guest-root/keys/alice &&
	"$cell_ours" token keys bob@TEST.CELL 86400 0 > guest-root/keys/bob &&
	"$cell_ours" token keys alice@TEST.CELL 3600 86400 > guest-root/keys/ended &&
	"$cell_ours" token other-keys alice@TEST.CELL 86400 0 > guest-root/keys/unknown || exit 1
serve none 10.77.0.1 --require none --metrics-file "$work/metrics"
serve crypt 10.77.0.2 --require crypt --keytab keys
serve auth 10.77.0.3 --require fs:auth --keytab keys
serve rules 10.77.0.4 --require none --keytab keys --allow 'alice@TEST.CELL /' --allow 'anonymous /pub'
if [ -n "$flood" ]; then
	python3 -B "$here/unvalidated.py" 7000 12000 250 > unvalidated.log 2>&1 &
	servers="$servers$! "
fi
start_guest guest
guest_ready guest || dead=$(cat guest.dead)
test_mounts
test_listing
test_attributes
test_reading
test_links
test_errors
test_locks
test_writing
test_changes
test_open_file
test_keys
test_restart
[ -z "$long" ] || test_ending_ticket
test_end
if [ -n "$flood" ]; then
	test_flood
fi
guest 'echo; (sleep 1; poweroff -f) &'
if [ "$failed" -gt 0 ]; then
	for s in none crypt auth rules; do tail -n 6 $s.log | sed "s/^/  rxfsd $s: /"; done
	guest_said guest | sed 's/^/  guest: /'
fi
echo "in $SECONDS s"
summary
