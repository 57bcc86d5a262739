# SPDX-License-Identifier: BSD-2-Clause
# Programs at work in a mount: git, make and a compiler, tar, rsync, cp, SQLite with kills. What is missing is left out by name.
# RXAFS_LONG=1: 5,000 files for git, 60 kills of SQLite in each journal mode.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
# root's programs set owners, and the server refuses that.
mount_afs mnt --ignore-owner
dir=$work/mnt/test.example/rw
if [ -n "${RXAFS_LONG:-}" ]; then files=5000 kills=60; else files=300 kills=6; fi

has() { command -v "$1" > /dev/null || { echo "left out: there is no $1"; return 1; }; }

# make_tree DIR: names, modes, times, links and sizes of all kinds.
make_tree() {
	mkdir -p "$1/sub/deep/er" "$1/empty"
	i=0
	while [ $i -lt 60 ]; do
		head -c $((i * i * 37)) /dev/zero | tr '\0' "$(printf '\\%03o' $((97 + i % 26)))" > "$1/sub/file$i"
		i=$((i + 1))
	done
	head -c 3000000 /dev/urandom > "$1/big"
	cp /bin/true "$1/program"
	chmod 755 "$1/program"
	chmod 600 "$1/sub/file3"
	chmod 444 "$1/sub/file4"
	ln "$1/sub/file5" "$1/sub/second name"
	ln -s ../big "$1/sub/deep/link"
	ln -s nowhere "$1/dangling"
	: > "$1/sub/$(printf 'caf\303\251 \t\\ *?')"
	: > "$1/$(printf '%0250d' 7)"
	touch -d @1000000000 "$1/big" "$1/sub/file7"
	touch -h -d @1100000000 "$1/dangling"
	touch -d @1200000000 "$1/empty"
	# AFS has whole seconds.
	find "$1" -exec touch -h -d @1300000000 '{}' +
}

# tree_of DIR: all of it in a form that can be compared.
tree_of() { (cd "$1" && find . -printf '%P %y %m %T@ %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum); }

try_copies() {
	make_tree "$work/tree"
	tree_of "$work/tree" > "$work/want"
	cp -a "$work/tree" "$dir/cp" || fail "cp -a"
	tree_of "$dir/cp" | cmp - "$work/want" || fail "cp -a made another tree"
	[ "$dir/cp/sub/file5" -ef "$dir/cp/sub/second name" ] || fail "cp -a made no link"
	cp -a "$dir/cp" "$dir/cp2" && tree_of "$dir/cp2" | cmp - "$work/want" || fail "cp -a inside the mount"
	tar -C "$work/tree" -cf "$work/tar" . && mkdir "$dir/tar" && tar -C "$dir/tar" -xpf "$work/tar" || fail "tar -x"
	tree_of "$dir/tar" | cmp - "$work/want" || fail "tar -x made another tree"
	tar -C "$dir/tar" -df "$work/tar" --no-same-owner 2>&1 | grep -v 'Uid differs\|Gid differs' && fail "tar -d finds differences"
	mkdir "$work/back" && tar -C "$dir/tar" -cf - . | tar -C "$work/back" -xpf - && tree_of "$work/back" | cmp - "$work/want" ||
		fail "tar -c from the mount"
	mv "$dir/tar" "$dir/cp2/moved" && tree_of "$dir/cp2/moved" | cmp - "$work/want" || fail "mv of a tree"
	mv "$dir/cp2/moved" "$work/out" && tree_of "$work/out" | cmp - "$work/want" || fail "mv out of the mount"
	diff -r --no-dereference "$dir/cp" "$work/out" || fail "diff -r"
	rm -rf "$dir/cp2" && [ ! -e "$dir/cp2" ] || fail "rm -rf"
	has rsync || return 0
	rsync -aH "$work/tree/" "$dir/rsync" || fail "rsync -a"
	tree_of "$dir/rsync" | cmp - "$work/want" || fail "rsync -a made another tree"
	rsync -aHni --no-o --no-g --delete "$work/tree/" "$dir/rsync" > "$work/rsync.out" || fail "rsync again"
	[ ! -s "$work/rsync.out" ] || fail "rsync would change: $(head -3 "$work/rsync.out")"
	echo changed >> "$work/tree/sub/file9"
	rm "$work/tree/program"
	rsync -aH --no-o --no-g --delete "$work/tree/" "$dir/rsync" && [ ! -e "$dir/rsync/program" ] &&
		cmp "$work/tree/sub/file9" "$dir/rsync/sub/file9" || fail "rsync --delete"
	rsync -aHc --inplace --no-o --no-g "$dir/cp/" "$dir/rsync" && cmp "$dir/cp/sub/file9" "$dir/rsync/sub/file9" || fail "rsync --inplace"
}

git_here() { HOME=$work git "$@"; }

try_git() {
	has git || return 0
	printf '[user]\nname = user\nemail = user@example.org\n[safe]\ndirectory = *\n[gc]\nauto = 0\n[init]\ndefaultBranch = main\n' \
		> "$work/.gitconfig"
	git_here init -q "$dir/git" || fail "git init"
	(
		cd "$dir/git" || exit 1
		i=0
		while [ $i -lt $files ]; do
			mkdir -p "d$((i / 50))"
			echo "file $i" > "d$((i / 50))/f$i"
			i=$((i + 1))
		done
		git_here add . && git_here commit -qm one && [ -z "$(git_here status --short)" ] && echo more >> d0/f1 &&
			[ "$(git_here status --short)" = " M d0/f1" ] && git_here commit -qam two && git_here checkout -qb side HEAD~1 &&
			[ "$(cat d0/f1)" = "file 1" ] && echo side >> d0/f2 && git_here commit -qam side && git_here checkout -q main &&
			git_here merge -qm merged side && git_here tag -a -m v1 v1 && git_here gc -q && git_here fsck --strict &&
			echo unfinished >> d0/f3 && git_here stash -q && [ "$(cat d0/f3)" = "file 3" ] && git_here stash pop -q &&
			[ "$(tail -n 1 d0/f3)" = unfinished ]
	) > "$work/git.out" 2>&1 || fail "git: $(tail -n 5 "$work/git.out")"
	{
		git_here clone -q "file://$dir/git" "$dir/clone" && git_here clone -q "$dir/git" "$work/clone" &&
			[ -z "$(git_here -C "$dir/clone" status --short)" ] && git_here -C "$dir/clone" fsck &&
			diff -r --exclude=.git "$dir/clone" "$work/clone" && git_here -C "$dir/clone" worktree add -q "$dir/worktree" HEAD~1 &&
			git_here -C "$dir/clone" push -q origin HEAD:pushed && [ "$(git_here -C "$dir/git" rev-parse pushed)" = "$(git_here -C "$dir/clone" rev-parse HEAD)" ]
	} > "$work/git.out" 2>&1 || fail "git clone: $(tail -n 5 "$work/git.out")"
}

try_build() {
	has make && has "${CC:-cc}" || return 0
	mkdir "$dir/build"
	(
		cd "$dir/build" || exit 1
		i=0
		echo 'int shared(int);' > shared.h
		{
			echo '#include "shared.h"'
			echo 'int shared(int n) { return n + 1; }'
		} > shared.c
		while [ $i -lt 12 ]; do
			printf '#include "shared.h"\nint f%s(int n) { return shared(n); }\n' $i > f$i.c
			i=$((i + 1))
		done
		{
			echo '#include "shared.h"'
			seq -f 'int f%g(int);' 0 11
			echo 'int main(void) { int n = 0;'
			seq -f 'n = f%g(n);' 0 11
			echo 'return n != 12; }'
		} > main.c
		cat > Makefile <<- 'MAKE'
			objects = $(patsubst %.c,%.o,$(wildcard f*.c))
			program: main.o libf.a stamp; $(CC) -o $@ main.o libf.a
			libf.a: $(objects) shared.o; $(AR) rcs $@ $^
			%.o: %.c shared.h; $(CC) -c -o $@ $<
			stamp: main.c; : > $@
		MAKE
		export CC="${CC:-cc}"
		make -s -j2 program && ./program && make -q program || exit 1
		sleep 1.1
		touch shared.h main.c && ! make -q program && make -s -j2 program && make -q program || exit 1
		[ stamp -nt shared.c ] && [ ! main.c -nt stamp ] && strip program && ./program
	) > "$work/build.out" 2>&1 || fail "a build: $(tail -n 5 "$work/build.out")"
}

try_sqlite() {
	"$python" -c 'import sqlite3' 2> /dev/null || { echo "left out: python has no sqlite3"; return 0; }
	mkdir "$dir/sqlite"
	timeout -k 1 500 "$python" "$top_srcdir/src/tests/rxafs/sqlite.py" "$dir/sqlite" "$kills" || fail "sqlite.py"
}

for part in copies git build sqlite; do
	echo "$part"
	"try_$part"
done
unmount_afs mnt "$daemon"
result
