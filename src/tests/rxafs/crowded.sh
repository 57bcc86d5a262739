# SPDX-License-Identifier: BSD-2-Clause
# A directory of many names that two clients change. CROWDED_NAMES: how many (at most 64,000), CROWDED_CHANGES: of them.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
names=${CROWDED_NAMES:-3000}
mkdir "$work/names"
(cd "$work/names" && seq -f 'name%.0f' "$names" | xargs touch)
"$afscp" -q -s "$where" put -r -j 16 "$work/names" work: || fail "the names cannot be made"
mount_afs one
first=$daemon
mount_afs two
timeout -k 1 $((200 + names / 100)) "$python" "$top_srcdir/src/tests/rxafs/crowded.py" "$work/one/test.example/rw/names" \
	"$work/two/test.example/rw/names" "${CROWDED_CHANGES:-40}" || fail "crowded.py"
unmount_afs one "$first"
unmount_afs two "$daemon"
result
