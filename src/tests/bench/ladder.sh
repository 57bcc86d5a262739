#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The ladder's report on recorded samples: figures, page, plots, and refused input.

here=$(cd "$(dirname "$0")" && pwd) || exit 99
bench=$here/../../bench
python=${PYTHON3:-python3}
command -v "$python" > /dev/null || { echo 'python3 is not installed'; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
export MPLCONFIGDIR="$dir/matplotlib"

fail() {
	echo "$*" >&2
	exit 1
}

PYTHONPATH=$bench "$python" -B "$here/figures.py" "$here/samples.jsonl" || fail 'figures.py'

# Writes between the markers of a page and changes nothing else. A second report gives the same page.
report() {
	"$python" -B "$bench/ladder" --from "$here/samples.jsonl" --page "$dir/page.md" > "$dir/out"
}
printf 'before\n<!-- ladder:begin -->\nold\n<!-- ladder:end -->\nafter\n' > "$dir/page.md"
report || fail "no report: $(tail -n 3 "$dir/out")"
cp "$dir/page.md" "$dir/once.md"
report && cmp -s "$dir/page.md" "$dir/once.md" || fail 'a second report differs'
# Plots depend on the installed packages.
grep -v -e '^!\[' -e '^Plots: ' "$dir/page.md" | cat -s > "$dir/text.md"
diff -u "$here/page.md" "$dir/text.md" || fail 'the page is not as expected'

if "$python" -c 'import matplotlib' 2> "$dir/err"; then
	for name in throughput cpu syscalls switches clients latency load instructions; do
		[ -s "$dir/performance/ladder-$name.svg" ] || fail "no ladder-$name.svg"
		grep -q "(performance/ladder-$name.svg)" "$dir/page.md" || fail "no $name in the page"
	done
else
	grep -q '^SKIP plots: .*python3-matplotlib' "$dir/out" || fail 'no message about plots'
	grep -q '^Plots: SKIP: .*python3-matplotlib' "$dir/page.md" || fail 'the page does not mention plots'
fi

# The data of the page of results: only rows that were measured.
mkdir "$dir/data"
"$python" -B "$bench/ladder" --from "$here/samples.jsonl" --page "$dir/page.md" --data "$dir/data" > "$dir/out" ||
	fail "no data: $(tail -n 3 "$dir/out")"
cat > "$dir/throughput.csv" << 'EOF'
configuration,"MB/s, 1 stream",CPU-s/GB,"MB/s, 32 streams",CPU-s/GB
"one listener, one datagram per system call",100,8,,
"defaults, server sends",3300 ±9%,0.50,,
"OpenAFS library, server sends",110 ±9%,21,,
EOF
diff -u "$dir/throughput.csv" "$dir/data/throughput.csv" || fail 'throughput.csv is not as expected'
for name in clients small-calls; do
	[ "$(wc -l < "$dir/data/$name.csv")" -gt 1 ] || fail "no rows in $name.csv"
done

# A page without markers is not changed.
echo 'no markers' > "$dir/page.md"
report 2> "$dir/err" && fail 'a page without markers was accepted'
grep -q 'has no markers' "$dir/err" || fail "markers: $(cat "$dir/err")"
[ "$(cat "$dir/page.md")" = 'no markers' ] || fail 'a page without markers was written'

# Invalid samples.
for bad in '{"type": "state"' '[1]' '{"round": 1}'; do
	echo "$bad" > "$dir/bad.jsonl"
	"$python" -B "$bench/ladder" --from "$dir/bad.jsonl" --no-write 2> "$dir/err" > "$dir/out"
	[ $? -eq 2 ] && grep -q 'bad.jsonl:1: ' "$dir/err" || fail "$bad: $(cat "$dir/err")"
done
