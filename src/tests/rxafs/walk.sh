# SPDX-License-Identifier: BSD-2-Clause
# Random walks on a mount and on a twin in a local file system. WALK_SEEDS: how many, WALK_FIRST: the first seed.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs one
first_daemon=$daemon
mount_afs two
first=${WALK_FIRST:-1}

# walk SEED NAME MOUNT...: in a directory of that name.
walk() {
	seed=$1 name=$2
	shift 2
	timeout -k 1 600 "$python" "$top_srcdir/src/tests/rxafs/walk.py" "$work/twin-$name" "$seed" "${WALK_STEPS:-400}" "$@" ||
		fail "seed $seed, $name"
}
for seed in $(seq "$first" $((first + ${WALK_SEEDS:-3} - 1))); do
	walk "$seed" "single$seed" "$work/one/test.example/rw/single$seed"
	walk "$seed" "both$seed" "$work/one/test.example/rw/both$seed" "$work/two/test.example/rw/both$seed"
done
unmount_afs one "$first_daemon"
unmount_afs two "$daemon"
result
