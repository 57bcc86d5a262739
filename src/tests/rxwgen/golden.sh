#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The output of rxwgen equals golden/NAME.golden, does not depend on the folder, and compiles without warnings.
# NAME.golden is a line "== FILE" and the text of the file, for each output. `golden.sh --accept` writes it; review it
# before a commit.

top=$(cd "${top_srcdir:-$(dirname "$0")/../../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
rxwgen=$build/src/rxwgen/rxwgen
golden=$top/src/tests/rxwgen/golden
CC=${CC:-cc}
CXX=${CXX:-c++}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0

fail() {
	echo "FAIL: $*"
	status=1
}

# cases COMMAND: run COMMAND NAME OPTION... for each interface with its options.
cases() {
	"$1" shared -b -i
	"$1" values
	"$1" calls -b -i -x -R 4096
	"$1" dense -n -P old_
	"$1" pooled -b --pool
}

make_one() {
	name=$1
	shift
	(cd "$golden" && mkdir -p "$dir/again" &&
		for output in h:-h xdr.c:-c cs.c:-C ss.c:-S; do
			"$rxwgen" "$@" "${output#*:}" -o "$dir/$name.${output%:*}" "$name.xg" || exit 1
		done) || fail "rxwgen $* $name.xg"
	# All four in one run, in another folder; and the Python module.
	(cd "$dir/again" && "$rxwgen" "$@" "$golden/$name.xg") || fail "rxwgen $* .../$name.xg"
	(cd "$golden" && "$rxwgen" "$@" --python -o "$dir/$name.py" "$name.xg") || fail "rxwgen $* --python $name.xg"
	(cd "$dir/again" && "$rxwgen" "$@" --python "$golden/$name.xg") || fail "rxwgen $* --python .../$name.xg"
}

compare() {
	[ "$accept" = no ] || for output in h xdr.c cs.c ss.c py; do
		echo "== $1.$output"
		cat "$dir/$1.$output"
	done > "$golden/$1.golden"
	mkdir -p "$dir/golden"
	awk -v folder="$dir/golden/" '/^== / { file = folder $2; next } { print > file }' "$golden/$1.golden"
	for output in h xdr.c cs.c ss.c py; do
		file=$1.$output
		diff -u "$dir/golden/$file" "$dir/$file" || fail "$file differs from golden/$1.golden"
		cmp "$dir/$file" "$dir/again/$file" || fail "$file depends on the current folder"
	done
}

# quiet FILE COMMAND...: the compiler prints nothing.
quiet() {
	file=$1
	shift
	"$@" -I"$top/src/rx/include" -I"$dir" -fsyntax-only "$file" > "$dir/log" 2>&1 && [ ! -s "$dir/log" ] && return
	fail "$*: ${file##*/}"
	cat "$dir/log"
}

compile() {
	for output in xdr.c cs.c ss.c; do
		# shellcheck disable=SC2086 # CC may carry options
		quiet "$dir/$1.$output" $CC -std=c17 -O2 -Wall -Wextra -pedantic -Wshadow -Wconversion \
			-Wmissing-prototypes -Wstrict-prototypes -Werror
	done
	[ $cxx = no ] && return
	printf '#include "%s.h"\n#include "%s.h"\n' "$1" "$1" > "$dir/$1.cc"
	# shellcheck disable=SC2086
	quiet "$dir/$1.cc" $CXX -std=c++11 -Wall -Wextra -pedantic -Wshadow -Wconversion -Werror
}

accept=no
[ "$1" = --accept ] && accept=yes
cxx=no
echo 'int main() { return 0; }' > "$dir/probe.cc"
# shellcheck disable=SC2086
$CXX -fsyntax-only "$dir/probe.cc" 2> /dev/null && cxx=yes
[ $cxx = yes ] || echo "note: no C++ compiler ($CXX): headers are compiled as C only"

[ -x "$rxwgen" ] || { echo "no $rxwgen: build it first"; exit 99; }
cases make_one
[ $status -eq 0 ] || exit 1
cases compare
cases compile

exit $status
