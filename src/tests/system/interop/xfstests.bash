# SPDX-License-Identifier: BSD-2-Clause
# The guest of `xfstests`: it mounts the volumes test and scratch of one server. All users have all rights there.

. "$here/kernel_writes.bash"

tests_of_xfstests() { echo xfstests-all; }

start_openafs() {
	local v
	"$(need cell_ours)" key /etc/openafs/server/KeyFileExt 5 18 \
		0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 || return
	start_cell && openafs_volume test 536870940 && openafs_volume scratch 536870950 || return
	for v in test scratch; do
		limited 60 vos setfields $v -maxquota 20000000 -localauth || return
	done
}

start_rxfsd() {
	local v
	for v in test scratch; do
		"$(need rxvol)" -S store create $v --acl 'system:anyuser all' --quota 20G || return
	done
	start_again_rxfsd
}

guest_number=0
# new_guest: starts a guest, by the name of $guest.
new_guest() {
	guest_number=$((guest_number + 1))
	guest=g$guest_number
	start_guest $guest && guest_ready $guest && at $guest '
		mount -t ext4 /dev/ubda /disk 2> /dev/null || mount -t ext4 /dev/vda /disk || exit
		for d in dev proc sys; do mount --rbind /$d /disk/$d || exit; done
		mkdir -p /disk/dev/pts /disk/dev/shm /disk/mnt/test /disk/mnt/scratch
		mount -t devpts devpts /disk/dev/pts; mount -t tmpfs shm /disk/dev/shm; mount -t tmpfs tmp /disk/tmp
		ip link set lo up; hostname guest; echo "127.0.0.1 localhost guest" > /disk/etc/hosts' 300 && [ "$status" = 0 ]
}

before_xfstests() {
	mkdir -p tree saved
	make_root "$cell_name $address" disk || return
	ip tuntap add dev tap0 mode tap && ip addr add 10.0.2.2/24 dev tap0 && ip link set tap0 up || return
	guest_net=tap,ifname=tap0,script=no,downscript=no
	"start_$KERNEL_SERVER" && new_guest || { echo "no guest: $(cat $guest.dead)"; guest_said $guest; return 1; }
	at $guest "cat > /disk/xfstests/local.config << 'CONFIG'
export FSTYP=afs TEST_DEV=%$cell_name:test TEST_DIR=/mnt/test SCRATCH_DEV=%$cell_name:scratch SCRATCH_MNT=/mnt/scratch
CONFIG"
}

# one_test NAME: `out` is "RESULT " and the line for it, then what the test printed if it failed or took too long.
one_test() {
	at $guest "
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
		begin=\$(date +%s)
		chroot /disk /bin/bash -c 'cd /xfstests && rm -rf results && timeout -k 10 $XFSTESTS_SECONDS ./check $1 > /root/out 2>&1'
		status=\$? seconds=\$((\$(date +%s) - begin)) results=/disk/xfstests/results
		if [ \$status = 124 ] || [ \$status = 137 ]; then
			result=timeout
			for p in /proc/[0-9]*; do
				[ \"\$(readlink \$p/root)\" != /disk ] || kill -9 \${p#/proc/}
			done
			sleep 1
			umount /disk/mnt/test /disk/mnt/scratch
		elif [ -e \$results/$1.notrun ]; then
			result=notrun why=\": \$(cat \$results/$1.notrun)\"
		elif [ \$status = 0 ] && grep -q '^Passed all 1 tests' /disk/root/out; then
			result=pass
		else
			result=fail
		fi 2> /dev/null
		echo \"RESULT \$result $1 \$seconds\$why\"
		[ \$result = pass ] || [ \$result = notrun ] || cat /disk/root/out \$results/$1.out.bad \$results/$1.full \
			\$results/$1.dmesg 2> /dev/null | tail -c 20000" $((XFSTESTS_SECONDS + 300))
}

test_xfstests_all() {
	local t line
	for t in $XFSTESTS; do
		t=generic/${t#generic/}
		if one_test "$t"; then
			line=$(echo "$out" | sed -n 's/^RESULT //p')
			echo "$line" >> lines
			[ "${line%% *}" = pass ] || echo "$out" > "saved/${t//\//-}.txt"
		else
			echo "timeout $t: $(cat $guest.dead)" >> lines
			guest_said $guest > "saved/${t//\//-}.txt"
			kill -KILL "$(cat $guest.pid)" 2> /dev/null
			new_guest || { echo "no guest again: $(cat $guest.dead)"; touch "$work/setup-failed"; return 1; }
		fi
	done
}
