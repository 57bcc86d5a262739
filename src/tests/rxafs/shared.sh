# SPDX-License-Identifier: BSD-2-Clause
# Three mounts of one volume and afscp beside a model, on a busy machine. SHARED_SECONDS: of each of the two parts,
# SHARED_ROUNDS: how often, SHARED_SEED: of the first round.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mount_afs one
first=$daemon
mount_afs two
second=$daemon
mount_afs three
seconds=${SHARED_SECONDS:-5} seed=${SHARED_SEED:-$$}
burners=""
for _ in 1 2; do
	sh -c 'while :; do :; done' &
	burners="$burners $!"
done
servers="$servers $burners"

for round in $(seq "$seed" $((seed + ${SHARED_ROUNDS:-1} - 1))); do
	for part in walk storm; do
		set --
		[ $part = storm ] || set -- "$afscp" "$where"
		timeout -k 1 $((seconds * 4 + 60)) "$python" "$top_srcdir/src/tests/rxafs/shared.py" $part "$round" "$seconds" "$@" \
			"$work/one/test.example/rw" "$work/two/test.example/rw" "$work/three/test.example/rw" ||
			fail "$part, seed $round"
	done
	timeout -k 1 400 "$python" "$top_srcdir/src/tests/rxafs/locks.py" "$work/one/test.example/rw" "$work/two/test.example/rw" ||
		fail "counting under locks"
done
# shellcheck disable=SC2086
kill $burners
unmount_afs one "$first"
unmount_afs two "$second"
unmount_afs three "$daemon"
result
