#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The program rxwgen: options, exit status, output files, dependency files.

top=$(cd "${top_srcdir:-$(dirname "$0")/../../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
rxwgen=$build/src/rxwgen/rxwgen
dir=$(mktemp -d) || exit 99
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir" || exit 99
export LC_ALL=C
status=0

fail() {
	echo "FAIL: $*"
	status=1
}

# expect STATUS TEXT ARGUMENT...: rxwgen exits with STATUS and prints TEXT.
expect() {
	code=$1
	words=$2
	shift 2
	"$rxwgen" "$@" > out.log 2>&1
	got=$?
	[ $got -eq "$code" ] || fail "rxwgen $*: exit status $got, not $code: $(cat out.log)"
	[ -z "$words" ] || grep -qF -- "$words" out.log || fail "rxwgen $*: no '$words' in: $(cat out.log)"
}

# files NAME...: the current folder contains these files and .xg files, and no others.
files() {
	rm -f out.log
	got=$(ls -A | grep -v '[.]xg$' | tr '\n' ' ')
	[ "$got" = "${*:+$* }" ] || fail "files: $got, not $*"
	rm -f -- *.h *.c *.d *.py
}

mkdir a sub 'b c'
cd a || exit 99
printf 'package P_\nF(IN int x) = 1;\n' > x.xg
printf 'const A = 1;\nconst B = ;\n' > bad.xg
printf '#include "y.xg"\n#include <z.xg>\nstruct s { t u; };\n' > with.xg
printf 'struct t { int x; };\n' > ../sub/y.xg
printf 'const Z = 3;\n' > '../b c/z.xg'

expect 0 'rxwgen ' --version
[ "$(wc -l < out.log)" -eq 1 ] || fail "--version is not one line"
expect 0 'usage: rxwgen' --help
for option in -h -c -C -S -r -y -o -M -I -D -U -i -x -b -P -R -L -w -W -n -u -A -k -d -z --json --python --copy --pool --version; do
	grep -q -- "$option" out.log || fail "--help does not name $option"
done

# Wrong command lines.
expect 2 'no input file'
expect 2 'more than one input file: y' x.xg y
expect 2 'not supported' -p x.xg
expect 2 'see rxwgen --help' -o y.h x.xg
expect 2 'see rxwgen --help' -r -o y.h x.xg
expect 2 'see rxwgen --help' --json -h x.xg
expect 2 'see rxwgen --help' --json -M x.d x.xg
expect 2 'see rxwgen --help' --json --python x.xg
expect 2 'see rxwgen --help' --python -S x.xg
expect 2 'see rxwgen --help' --python -M x.d x.xg
expect 2 'See rxwgen --help' -q x.xg
expect 2 'See rxwgen --help' -o
for limit in n =1 n= n=0 n=x n=1x n=2147483648; do
	expect 2 "-L takes" -L $limit x.xg
done
for bytes in 3 x 1x -1 2147483648; do
	expect 2 "-R takes" -R $bytes x.xg
done
expect 2 'no file name' folder/
files

# Files that cannot be read or written.
expect 1 'nowhere.xg: No such file or directory' nowhere.xg
expect 1 '../sub: Is a directory' ../sub
expect 1 'nowhere/x.h: No such file or directory' -h -o nowhere/x.h x.xg
expect 1 'nowhere/x.d: No such file or directory' -M nowhere/x.d x.xg
expect 1 'bad.xg:2:11: error: ' bad.xg
expect 1 'x.xg:1:1: error: the line has more than 65536 bytes' -h -o y.h "$(
	mkdir ../long && awk 'BEGIN { while (i++ < 65536) printf "x"; print "" }' > ../long/x.xg
	echo ../long/x.xg)"
files

# Limits that require large inputs.
awk 'BEGIN { for (i = 0; i < 300000; i++) print "/* this line has 60 bytes, so that the whole is too large */" }' \
	> ../long/large.xg
expect 1 'large.xg: File too large' ../long/large.xg
awk 'BEGIN { for (i = 0; i < 70000; i++) print "#include \"empty.xg\"" }' > ../long/often.xg
: > ../long/empty.xg
expect 1 'empty.xg: the input is larger than 64 MiB' ../long/often.xg
awk 'BEGIN {
	for (i = 0; i < 15; i++) print "#define M" i " M" i + 1 " M" i + 1
	print "#define M15 const"
	for (i = 0; i < 400; i++) print "%M0"
}' > ../long/macros.xg
expect 1 'error: all macros together expand to more than' ../long/macros.xg
files

# All outputs are written, or none.
mkdir x.ss.c
expect 1 'x.ss.c: Is a directory' x.xg
rmdir x.ss.c
files

# A pipe or a link is not replaced by a file.
mkfifo pipe.h
: > held.h
ln -s held.h link.h
cat pipe.h > copy.h &
expect 0 '' -h -o pipe.h x.xg
expect 0 '' -h -o link.h x.xg
if [ -p pipe.h ]; then wait $!; else fail 'a pipe was replaced'; echo > pipe.h; kill $!; fi
[ -L link.h ] || fail 'a link was replaced'
cmp held.h copy.h || fail 'a pipe and a link got different text'
rm -f out.log
files copy.h held.h link.h pipe.h

# An input is not overwritten.
cp x.xg x.h
expect 1 'x.h: this is an input file' x.h
expect 1 'x.xg: this is an input file' -h -o x.xg x.xg
expect 1 'x.xg: this is an input file' -M x.xg x.xg
expect 1 'x.xg: this is an input file' --json -o ../a/x.xg x.xg
cmp x.h x.xg || fail 'an input was overwritten'
files x.h
expect 2 '-o and -M name the same file: y' -h -o y -M y x.xg
for prefix in 1x 'x y' x-; do
	expect 2 '-P takes the beginning of a name' -P "$prefix" x.xg
done
files

# A failed run does not change an existing file.
echo old > bad.h
expect 1 'bad.xg:2:11: error: ' bad.xg
[ "$(cat bad.h)" = old ] || fail "a failed run changed an old output"
files bad.h

# Options select the outputs.
expect 0 '' x.xg
files x.cs.c x.h x.ss.c x.xdr.c
for one in -h:x.h -c:x.xdr.c -y:x.xdr.c -C:x.cs.c -S:x.ss.c '-r:x.cs.c x.ss.c' '-hC:x.cs.c x.h'; do
	expect 0 '' "${one%%:*}" x.xg
	# shellcheck disable=SC2086 # names are words
	files ${one#*:}
done
# JSON.
expect 0 '"format": 1' --json x.xg
files
expect 0 '' --json -o y.d x.xg
files y.d
expect 1 'nowhere/y.d: No such file or directory' --json -o nowhere/y.d x.xg
# Python: the name of the module is an identifier.
expect 0 '' --python x.xg
files x.py
cp x.xg 2a-b.c.xg
expect 0 '' --python 2a-b.c.xg
rm 2a-b.c.xg
files _2a_b_c.py
expect 0 '' --python -o y.d x.xg
files y.d
expect 1 'nowhere/y.d: No such file or directory' --python -o nowhere/y.d x.xg
expect 1 'bad.xg:2:11: error: ' --python bad.xg
files
# Input from a pipe.
"$rxwgen" -h -o stdin.h /dev/stdin < x.xg || fail "standard input"
files stdin.h
expect 0 '' -A -k -d -z -h ../a/x.xg
files x.h
# -u: the stubs are those without it.
expect 0 'warning: -u: ' -u -C -o u.c x.xg
expect 0 '' -C -o plain.c x.xg
grep -v 'Made by' u.c > u.d
grep -v 'Made by' plain.c | cmp - u.d || fail "-u changes the stubs"
files plain.c u.c u.d
(umask 027 && expect 0 '' -h -o y.h x.xg)
[ "$(ls -l y.h | cut -c 1-10)" = -rw-r----- ] || fail "the umask is not respected: $(ls -l y.h)"
files y.h

# The output does not depend on the current folder.
expect 0 '' -x -b x.xg
mkdir ../again
(cd ../again && "$rxwgen" -x -b "$dir/a/x.xg") || fail "a second run failed"
for f in x.h x.xdr.c x.cs.c x.ss.c; do
	cmp "$f" "../again/$f" || fail "$f differs from run to run"
done
files x.cs.c x.h x.ss.c x.xdr.c

# Includes and dependency files.
expect 1 "cannot find the include file 'y.xg'" with.xg
expect 0 '' -I ../sub -I '../b c' -M with.d with.xg
cat > expected <<'EOF'
with.h with.xdr.c with.cs.c with.ss.c: with.xg \
 ../sub/y.xg \
 ../b\ c/z.xg

with.xg:

../sub/y.xg:

../b\ c/z.xg:
EOF
diff -u expected with.d || fail "-M"
rm expected
files with.cs.c with.d with.h with.ss.c with.xdr.c
expect 0 '' -I ../sub -I '../b c/' -h -o o.h -M o.d -i with.xg
head -n 1 o.d | grep -qx 'o.h: with.xg \\' || fail "-M with -o: $(cat o.d)"
grep -q '#include "y.h"' o.h || fail "-i: the header does not include y.h"
grep -q 'struct t {' o.h && fail "-i: the header has what y.xg defines"
files o.d o.h
# An absolute file name, and an include file that cannot be read.
printf '#include "%s"\n' "$dir/sub/y.xg" > absolute.xg
expect 0 '' -h absolute.xg
files absolute.h
printf '#include "sub"\n' > folder.xg
expect 1 "folder.xg:1:10: error: cannot read '../sub': Is a directory" -I .. folder.xg
files
# A warning is printed once, although each output has a pass of its own.
printf 'package P_\nF(IN string x<>) = 1;\n' > warn.xg
expect 0 "warn.xg:2:13: warning: 'x'" -w warn.xg
[ "$(grep -c warning: out.log)" -eq 1 ] || fail "a warning is printed more than once"
files warn.cs.c warn.h warn.ss.c warn.xdr.c
expect 0 "rxwgen: warning: -L none:" -h -L x=5 -L none=3 warn.xg
files warn.h

# Each output has its own macro.
printf '%s\n' '#ifdef RPC_HDR' '%/* in the header */' '#elif defined(RPC_XDR)' '%/* in the coders */' \
	'#elif defined RPC_CLIENT' '%/* in the client */' '#endif' '#ifdef RPC_SERVER' \
	'%/* in the server */' '#endif' > each.xg
expect 0 '' each.xg
for pair in h:header xdr.c:coders cs.c:client ss.c:server; do
	[ "$(grep -h '^/[*] in the ' "each.${pair%%:*}")" = "/* in the ${pair#*:} */" ] ||
		fail "% lines of each.${pair%%:*}"
done
files each.cs.c each.h each.ss.c each.xdr.c

[ $status -ne 0 ] || echo "options, files and exit statuses of rxwgen are right"
exit $status
