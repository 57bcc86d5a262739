# SPDX-License-Identifier: BSD-2-Clause
# The daemon and the server are killed at random moments: what close and fsync have acknowledged is there afterwards, and never
# wrong bytes. KILLS: how often.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
kills=${KILLS:-6} seed=${KILLS_SEED:-$$}
server_options="--durability strict"
make_cell
mkdir -m 700 "$work/cache"
number=0
: > "$work/log"

write_for_a_while() {
	"$python" "$top_srcdir/src/tests/rxafs/kills.py" write "$work/$1/test.example/rw" "$work/log" "$seed" "$number" \
		>> "$work/writer.out" 2>&1 &
	writer=$!
	sleep "$(awk -v s="$seed$2" 'BEGIN { srand(s); print 0.1 + rand() * 1.2 }')"
}

# check MOUNT: and go on with another number.
check() {
	timeout -k 1 200 "$python" "$top_srcdir/src/tests/rxafs/kills.py" check "$work/$1/test.example/rw" "$work/log" "$seed" > "$work/check.out" || {
		fail "after kill $2 (seed $seed): $(grep FAIL "$work/check.out" | head -n 3)"
	}
	number=$(($(sed -n 's/.* //p' "$work/log" | sort -n | tail -n 1) + 1))
}

for i in $(seq "$kills"); do
	mount_afs "mnt$i" --cache "$work/cache" --timeout 60
	if [ $((i % 2)) -eq 0 ]; then
		write_for_a_while "mnt$i" "$i"
		kill -9 "$daemon"
		wait "$writer" "$daemon" 2> /dev/null
		umount -l "$work/mnt$i"
		mount_afs "again$i" --cache "$work/cache" --timeout 60
		check "again$i" "$i of the daemon"
		unmount_afs "again$i" "$daemon"
	else
		write_for_a_while "mnt$i" "$i"
		kill -9 "$server"
		wait "$server" 2> /dev/null
		sleep 0.3
		start_server
		sleep 1
		kill "$writer" 2> /dev/null
		wait "$writer" 2> /dev/null
		check "mnt$i" "$i of the server"
		unmount_afs "mnt$i" "$daemon"
	fi
done
tail -n 3 "$work/writer.out"
echo "$kills kills, $number files"
result
