# SPDX-License-Identifier: BSD-2-Clause
# rxvol dump of volumes with damaged files and directories: what is refused, what is left out, what a restore has then.

. "$top_srcdir/src/tests/tools/lib.sh"
rxvol=$top_builddir/src/rxvol/rxvol
[ -x "$rxvol" ] || { echo "SKIP: rxvol is not built"; exit 77; }
umask 022
store=$work/store other=$work/other
at=$store

vol() {
	"$rxvol" -S "$at" "$@" > "$work/out" 2> "$work/err" < /dev/null || fail "rxvol $*: $(head -n 3 "$work/err" "$work/out")"
}
# named ONE TEXT...: lines of standard error have these texts.
named() {
	for text; do
		grep -q -- "$text" "$work/err" || fail "no \"$text\" in: $(cat "$work/err")"
	done
}
# partly ARGUMENTS...: ends with status 1 and a result.
partly() {
	"$rxvol" -S "$store" "$@" > "$work/out" 2> "$work/err" < /dev/null
	rc=$?
	[ $rc -eq 1 ] || fail "rxvol $* ended with $rc, not 1: $(cat "$work/err")"
}
# damage PATH: the object of a file loses its end.
damage() {
	number=$("$rxvol" -S "$store" which "home:$1" --json | sed -n 's/^ *"vnode": \([0-9]*\),*$/\1/p')
	object=$(find "$store/files" -type f -path "*/$(printf %x "$number").*")
	[ -n "$object" ] || fail "$1 has no object"
	truncate -s 10 "$object"
}
# expect_rest: the volume "again" has all of the tree but the damaged files.
expect_rest() {
	at=$other
	rm -rf "$work/back"
	vol export again "$work/back"
	diff -r "$work/tree" "$work/back" > "$work/diff"
	sed "s|$work/tree||" "$work/diff" | sort > "$work/missing"
	printf 'Only in /docs: large\nOnly in : huge\n' | sort | cmp -s - "$work/missing" ||
		fail "the restored volume lacks other things: $(cat "$work/missing")"
	vol compare again "$work/back"
	vol check
	at=$store
}

mkdir -p "$work/tree/docs/deep" "$work/tree/other"
seq 200000 > "$work/tree/docs/large"
seq 300000 > "$work/tree/huge"
seq 100000 > "$work/tree/other/sound"
seq 1000 > "$work/tree/docs/deep/small"
ln "$work/tree/other/sound" "$work/tree/other/again"
vol create home
vol import home "$work/tree"
vol clone home
vol dump home.readonly --file "$work/whole"

damage docs/large
damage huge
partly dump home --file "$work/dump"
named 'home: cannot be dumped, since 2 objects are damaged: home:/huge, home:/docs/large; restore or remove'
[ ! -e "$work/dump" ] || fail 'a part of a dump was left'
partly dump home --damaged fail --file "$work/dump"
refused 2 'damaged "all": give skip or fail' "$rxvol" -S "$store" dump home --damaged all --file "$work/dump"

partly dump home --damaged skip --file "$work/dump"
named '^rxvol: home:/huge: skipped: is damaged$' '^rxvol: home:/docs/large: skipped: is damaged$'
grep -q '; 2 damaged ones left out$' "$work/out" || fail "the result: $(cat "$work/out")"
at=$other
vol init
vol restore again --file "$work/dump"
expect_rest

# Changes since a clone: the directory with the name comes in full.
echo more > "$work/tree/other/more"
vol import home:other "$work/tree/other" --update
partly dump home --since home.readonly --damaged skip --file "$work/more"
at=$other
vol restore again --file "$work/more"
expect_rest
# A volume in which the files are sound loses them, since the dump does not have them.
at=$other
vol restore sound --file "$work/whole"
vol restore sound --file "$work/more"
vol compare sound "$work/back"

result
