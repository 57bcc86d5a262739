# SPDX-License-Identifier: BSD-2-Clause
# Programs whose timers interrupt them every 5 ms, as debuggers, profilers and Go's runtime do: git, make with a compiler, SQLite with kills,
# maps of files. Replies of the server are late, so that most operations wait when the signal comes.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
command -v git > /dev/null || skip "there is no git"
"$python" -c 'import sqlite3' 2> /dev/null || skip "python has no sqlite3"
${CC:-cc} -shared -fPIC -O1 -o "$work/timers.so" "$top_srcdir/src/tests/rxafs/timers.c" 2> "$work/cc.err" || skip "no compiler for LD_PRELOAD"
make_cell
mkfifo "$work/control"
"$python" "$top_srcdir/src/tests/rxafs/proxy.py" "$work/control" "$fs_port" > "$work/proxy.out" 2> "$work/proxy.err" &
servers="$servers $!"
wait_until 60 test -s "$work/proxy.out"
where=127.0.0.1:$vl_port:$(cat "$work/proxy.out")
mount_afs mnt --ignore-owner
dir=$work/mnt/test.example/rw
# Status, names, stores and removals: 8 ms each. Data are not held back.
for opcode in 132 133 135 136 137 138 139 140 141 142 65536 65538; do echo "$opcode 8"; done > "$work/control"
printf '[user]\nname = user\nemail = user@example.org\n[safe]\ndirectory = *\n[gc]\nauto = 0\n' > "$work/.gitconfig"

timed() { HOME=$work TIMERS_COUNT=$work/$1.count LD_PRELOAD=$work/timers.so "$@"; }

# signals PROGRAM: how many of them came.
signals() { awk '{ n += $1 } END { print 0 + n }' "$work/$1.count"; }

# A repository on a local disk, cloned into the mount by git's protocol, and packed again there.
git init -q "$work/local" && (
	cd "$work/local" && i=0
	while [ $i -lt 24 ]; do
		mkdir -p d$((i / 8))
		echo "file $i" > d$((i / 8))/f$i
		i=$((i + 1))
	done
	HOME=$work git add . && HOME=$work git commit -qm one && echo more >> d0/f1 && HOME=$work git commit -qam two
) || fail "git commit"
timed git clone -q "file://$work/local" "$dir/clone" || fail "git clone"
(
	cd "$dir/clone" || exit 1
	echo changed > d1/f9 && rm d2/f20 && timed git add -A && timed git commit -qm three && timed git gc -q && timed git fsck --strict &&
		timed git checkout -q HEAD~2 && [ "$(cat d0/f1)" = "file 1" ] && timed git checkout -q - &&
		[ -z "$(timed git status --short)" ] && [ "$(cat d1/f9)" = changed ] && [ ! -e d2/f20 ]
) > "$work/git.out" 2>&1 || fail "git: $(tail -n 5 "$work/git.out")"
HOME=$work git clone -q "file://$dir/clone" "$work/back" && HOME=$work git -C "$work/back" fsck --strict 2> "$work/git.out" &&
	diff -r --exclude=.git "$work/back" "$dir/clone" || fail "the repository is not the same: $(cat "$work/git.out")"

# A build, in a directory of its own.
mkdir "$dir/build"
for i in 1 2 3 4; do echo "int f$i(void) { return $i; }" > "$dir/build/f$i.c"; done
echo 'int f1(void), f4(void); int main(void) { return f1() + f4() != 5; }' > "$dir/build/main.c"
# shellcheck disable=SC2016 # make expands
printf 'program: main.o f1.o f2.o f3.o f4.o\n\t$(CC) -o $@ $^\n%%.o: %%.c\n\t$(CC) -c -o $@ $<\n' > "$dir/build/Makefile"
# The linker driver of GCC ends at SIGALRM.
TIMERS_SIGNAL=$("$python" -c "import signal; print(int(signal.SIGURG))") && export TIMERS_SIGNAL
timed make -s -C "$dir/build" CC="${CC:-cc}" > "$work/build.out" 2>&1 && "$dir/build/program" && make -q -C "$dir/build" ||
	fail "make: $(tail -n 5 "$work/build.out")"
unset TIMERS_SIGNAL

mkdir "$dir/sqlite"
timed "$python" "$top_srcdir/src/tests/rxafs/sqlite.py" "$dir/sqlite" 2 || fail "sqlite.py"

# A shared map, written by page faults, and read by another one.
timed "$python" - "$dir/map" << 'END' || fail "a map"
import mmap, os, sys
size = 3 << 20
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(fd, size)
m = mmap.mmap(fd, size)
for at in range(0, size, 4096):
    m[at:at + 8] = at.to_bytes(8, 'little')
m.flush()
with open(sys.argv[1], 'rb') as f:
    data = f.read()
assert len(data) == size and all(data[at:at + 8] == at.to_bytes(8, 'little') for at in range(0, size, 4096))
END
echo 0 0 > "$work/control"
cat "$work/git.count" "$work/make.count" > "$work/all.count"
[ "$(signals all)" -gt 100 ] || fail "there were only $(signals all) signals"
echo "$(signals all) signals in git and make"
unmount_afs mnt "$daemon"
result
