#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxwgen --json: each interface file of the tree, compared with an independent reader (src/tests/xg/xgread.py).

top=$(cd "${top_srcdir:-$(dirname "$0")/../../..}" && pwd) || exit 99
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
rxwgen=$build/src/rxwgen/rxwgen
command -v python3 > /dev/null || { echo 'python3 is not installed'; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0

fail() {
	echo "FAIL: $*"
	status=1
}

for file in "$top"/src/afs/*.xg "$top/src/tests/xg/all-types.xg"; do
	"$rxwgen" --json "$file" > "$dir/stdout.json" || { fail "rxwgen --json $file"; continue; }
	python3 -B "$top/src/tests/rxwgen/json_check.py" "$file" "$dir/stdout.json" || fail "$file"
	"$rxwgen" --json -o "$dir/file.json" "$file" || fail "rxwgen --json -o ... $file"
	cmp "$dir/stdout.json" "$dir/file.json" || fail "-o differs from standard output: $file"
done

# Values that the files above do not contain. An invalid file gives no JSON.
cd "$dir" || exit 99
printf '%s\n' 'const A = 1 << 40; /* caf\303\251 */' 'const B = "text";' 'const C = -5;' \
	'union u switch (bool b) { case TRUE: int i; default: void; };' 'package P_' \
	'F(IN string s<A / 4294967296>, OUT int *r) split = 7;' > x.xg
"$rxwgen" --json x.xg > x.json || fail "rxwgen --json x.xg"
python3 - << 'END' || fail "values in x.json"
import json

tree = json.load(open("x.json", encoding="utf-8"))
assert tree["format"] == 1 and tree["inputs"] == ["x.xg"]
assert {c["name"]: c["value"] for c in tree["constants"]} == {"A": 1 << 40, "B": "text", "C": -5}
arms = tree["types"][0]["arms"]
assert [a["case"] for a in arms] == [1, None] and arms[0]["label"] == "TRUE"
assert arms[0]["type"] == "int" and arms[1]["type"] == "void"
package = tree["packages"][0]
assert package["name"] == "P_" and package["statindex"] is None
procedure = package["procedures"][0]
assert procedure["split"] is True and procedure["opcode"] == 7 and "multi" not in procedure
s, r = procedure["parameters"]
assert (s["direction"], s["type"], s["shape"], s["bound"]) == ("IN", "string", "counted", 256)
assert (r["direction"], r["type"], r["shape"]) == ("OUT", "int", "value")
assert (r["file"], r["line"], r["column"]) == ("x.xg", 6, 41)
END
echo 'const A = ;' > bad.xg
"$rxwgen" --json bad.xg > bad.json 2> /dev/null && fail "an invalid file is accepted"
[ ! -s bad.json ] || fail "JSON of an invalid file"

[ $status -ne 0 ] || echo "the JSON of all interfaces is complete"
exit $status
