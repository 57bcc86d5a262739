# SPDX-License-Identifier: BSD-2-Clause
# Random work on the contents of one file, through one mount and through two. WALK_SEEDS: how many, WALK_FIRST: the first seed.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
# Small memory and a cache on disk, so that blocks go and come back.
mount_afs one --memory 1M --cache "$work/cache"
first_daemon=$daemon
mount_afs two
first=${WALK_FIRST:-1}
for seed in $(seq "$first" $((first + ${WALK_SEEDS:-2} - 1))); do
	for dirs in "$work/one/test.example/rw" "$work/one/test.example/rw $work/two/test.example/rw"; do
		# shellcheck disable=SC2086 # several folders
		timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/contents.py" "$seed" "${WALK_STEPS:-800}" $dirs || fail "seed $seed in $dirs"
		rm -f "$work/one/test.example/rw/contents$seed"
	done
done
unmount_afs one "$first_daemon"
unmount_afs two "$daemon"
result
