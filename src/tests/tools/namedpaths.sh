# SPDX-License-Identifier: BSD-2-Clause
# afscp --path: a copy goes only over the paths that are named, and says so if there is none.

link='none,rate=200Mbit,delay=5ms'
. "$top_srcdir/src/tests/tools/twolinks.sh"

make_volume home
start_far_server --store store --allow-anonymous-writes --advertise "$RXW_FAR4" --advertise "$RXW_FAR4_2"
cp_() { "$afscp" -q -s "$RXW_FAR4_2:7003:7000" "$@" > out 2> err < /dev/null; }
# used REPORT: "LOCAL>SERVER BYTES" of each path that has carried bytes.
used() {
	python3 -c 'import json
for p in json.load(open("out")).get("paths", []):
    if p["bytes"]:
        print(p["local"] + ">" + p["server"], p["bytes"])'
}
links() { echo "$2" > "$RXW_LINK/$1"; }
# refuses TEXT OPTION...
refuses() {
	text=$1
	shift
	cp_ get "$@" home:/big copy && fail "$*: the copy ended well"
	grep -q -- "$text" err || fail "$*: $(cat err)"
}

size=9437185
head -c $size /dev/urandom > big
cp_ put big home:/big || fail "put: $(cat err)"

# Each of both; the first link is dead, so nothing may go there.
links commands 'hole yes'
for name in "$RXW_NEAR4_2" "%wire1" ",$RXW_FAR4_2" "$RXW_NEAR4_2%wire1,$RXW_FAR4_2"; do
	cp_ get --json --path "$name" home:/big copy || fail "$name: get ended with $?: $(cat err)"
	cmp -s big copy || fail "$name: the copy differs"
	[ "$(used)" = "$RXW_NEAR4_2>$RXW_FAR4_2:7000 $size" ] || fail "$name: $(used)"
done
cp_ put --json --path "$RXW_NEAR4_2" big home:/big2 || fail "put ended with $?: $(cat err)"
[ "$(used)" = "$RXW_NEAR4_2>$RXW_FAR4_2:7000 $size" ] || fail "put: $(used)"
links commands 'hole no'

# Both.
cp_ get --json --path "$RXW_NEAR4" --path "$RXW_NEAR4_2" home:/big copy || fail "both: $(cat err)"
cmp -s big copy || fail "both: the copy differs"
[ "$(used | grep -o '>' | wc -l)" -eq 2 ] || fail "both: $(used)"

# What is not there.
refuses 'this machine does not have the address 192.0.2.1' --path 192.0.2.1
refuses 'this machine has no interface nosuch' --path %nosuch
refuses "interface wire0 does not have the address $RXW_NEAR4_2" --path "$RXW_NEAR4_2%wire0"
refuses '"foo" is no address' --path "$RXW_NEAR4_2,foo"
refuses 'write LOCAL' --path ,
refuses 'no path of --path leads to file server' --path ",192.0.2.1"
refuses 'no path of --path leads to file server' --path "$RXW_NEAR4_2,$RXW_FAR4"
refuses '1 to 8, or all' --paths 9
[ -e copy ] && rm copy
cp_ get --paths all home:/big copy || fail "--paths all: $(cat err)"
result
