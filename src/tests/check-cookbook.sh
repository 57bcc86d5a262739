#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks the recipes of doc/cookbook.md: each block of code that follows <!-- file NAME --> compiles alone without a
# warning, is formatted like the tree, and fits a screen. Then src/tests/cookbook.c runs them all. The shorter pieces
# of doc/choosing.md compile within a function.

top=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
doc=$top/doc/cookbook.md
CC=${CC:-cc}
lines_max=50
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/recipes" "$dir/run"
status=0

fail() {
	echo "FAIL: $*"
	status=1
}

awk -v to="$dir/recipes/" '
	/^<!-- file [^ ]+ -->$/ { name = $3; next }
	/^```/ && !inside {
		inside = 1
		if (name == "") { print "doc/cookbook.md:" FNR ": a block without a name"; bad = 1; name = "unnamed" }
		next
	}
	/^```/ { inside = 0; close(to name); name = ""; next }
	inside { print > (to name) }
	END { exit bad }' "$doc" || status=1

mkdir "$dir/pieces"
awk -v to="$dir/pieces/" '
	/^```c$/ {
		n++
		file = to "choosing" n ".c"
		print "#include <sys/epoll.h>\n#include <rxwire/queue.h>\n#include \"kv.h\"" > file
		print "void piece(rxw_connection *, rxw_call *, kv_entry, rxw_call_fn, void *, int, rxw_queue *);" > file
		print "void piece(rxw_connection *connection, rxw_call *call, kv_entry entry, rxw_call_fn finished," > file
		print "	   void *lookup, int loop, rxw_queue *queue)\n{" > file
		next
	}
	/^```/ && file { print "}" > file; close(file); file = ""; next }
	file { print > file }
	END { exit n < 3 }' "$top/doc/choosing.md" || fail "doc/choosing.md has fewer pieces of C than it had"

cp "$top/examples/kv/kv.xg" "$dir" || exit 99
(cd "$dir" && "$build/src/rxwgen/rxwgen" -b -x --pool kv.xg) || exit 99
san=
case $SANITIZERS in no | '') ;; *) san=-fsanitize=$SANITIZERS ;; esac

compile() {
	# shellcheck disable=SC2086 # the compiler is words
	$CC -std=gnu11 -g -O1 -Wall -Wextra -Werror $san -I"$top/src/rx/include" -I"$dir" -c "$1" -o "$dir/run/$(basename "$1" .c).o" \
		> "$dir/log" 2>&1 || { fail "${1##*/} does not compile"; cat "$dir/log"; }
}

recipes=0
for file in "$dir"/recipes/*.c; do
	recipes=$((recipes + 1))
	compile "$file"
	length=$(wc -l < "$file")
	[ "$length" -le $lines_max ] || fail "${file##*/} has $length lines, more than a screen of $lines_max"
	if command -v clang-format-14 > /dev/null; then
		clang-format-14 --style=file:"$top/.clang-format" "$file" | diff "$file" - || fail "${file##*/} is not formatted"
	fi
done
for file in "$dir"/pieces/*.c; do
	# shellcheck disable=SC2086
	$CC -std=gnu11 -Wall -Wextra -Wno-unused -Wno-unused-parameter -Werror -I"$top/src/rx/include" -I"$dir" -fsyntax-only "$file" ||
		fail "a piece of doc/choosing.md does not compile: ${file##*/}"
done
for file in "$dir"/kv.xdr.c "$dir"/kv.cs.c "$dir"/kv.ss.c "$top/src/tests/cookbook.c"; do
	compile "$file"
done

for unit in "$dir"/recipes/*.service; do
	[ -f "$unit" ] || continue
	command -v systemd-analyze > /dev/null || { echo "left out: ${unit##*/}, systemd-analyze was not found"; continue; }
	# The program need not exist: another one replaces it.
	sed -i "s|^ExecStart=[^ ]*|ExecStart=$(command -v env)|" "$unit"
	systemd-analyze verify "$unit" > "$dir/log" 2>&1
	! grep -F "${unit##*/}" "$dir/log" || fail "${unit##*/}: systemd-analyze complains"
done

[ $status -eq 0 ] || exit $status
# shellcheck disable=SC2086
"$build/libtool" --silent --tag=CC --mode=link $CC $san -o "$dir/run/cookbook" "$dir"/run/*.o \
	"$build/src/observe/librxwire-observe.a" "$build/src/rx/librxwire.la" -lpthread \
	> "$dir/log" 2>&1 || { cat "$dir/log"; fail "the recipes do not link"; exit $status; }
mkdir "$dir/files"
"$dir/run/cookbook" "$dir/files" > "$dir/log" 2>&1 || { cat "$dir/log"; fail "the recipes do not run"; }
[ $status -ne 0 ] || echo "PASS: doc/cookbook.md, $recipes recipes"
exit $status
