# SPDX-License-Identifier: BSD-2-Clause
# Random work on the contents of one file, beside a model in memory. WALK_SEEDS: how many, WALK_FIRST: the first seed.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
# Small memory and a cache on disk, so that blocks go and come back.
mount_afs one --memory 1M --cache "$work/cache"
first=${WALK_FIRST:-1}
for seed in $(seq "$first" $((first + ${WALK_SEEDS:-2} - 1))); do
	timeout -k 1 300 "$python" "$top_srcdir/src/tests/rxafs/contents.py" "$seed" "${WALK_STEPS:-1000}" "$work/one/test.example/rw" ||
		fail "seed $seed"
done
unmount_afs one "$daemon"
result
