# SPDX-License-Identifier: BSD-2-Clause
# Debian's kernels in an emulator, for `kernel` and `kernel_writes`; sourced. Files of a guest are in the working
# folder: NAME.log (its console), to-NAME (its input), NAME.pid, NAME.dead (why it cannot be used any more).

# guests_lack: prints why no guest can run here.
guests_lack() {
	local p cc=${CC:-gcc}
	[ "$(uname -m)" = x86_64 ] || { echo "the guest's kernel is for x86-64"; return; }
	[ "$(id -u)" = 0 ] || { echo "a network namespace needs root"; return; }
	for p in qemu-system-x86_64 busybox cpio depmod modprobe dpkg-deb apt-get unshare ip "${cc%% *}"; do
		command -v "$p" > /dev/null || { echo "$p is not installed"; return; }
	done
	busybox --list 2> /dev/null | grep -qx insmod || { echo "busybox has no insmod"; return; }
	unshare -n true 2> /dev/null || echo "network namespaces are not available"
}

# unpack_kernel FOLDER PACKAGE...: unpacks, once, the kernel that the first known package depends on. Sets kernel and
# release, or kernel_lacks.
unpack_kernel() {
	local package name=
	kernel=$1 kernel_lacks=
	shift
	if [ ! -e "$kernel/ready" ]; then
		mkdir -p "$kernel" || return
		for package; do
			name=$(apt-cache depends "$package" 2> /dev/null |
				sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1)
			[ -z "$name" ] || break
		done
		[ -n "$name" ] || { kernel_lacks="no package like $1 is known here"; return; }
		(cd "$kernel" && timeout 240 apt-get -q download "$name") > "$kernel/log" 2>&1 || {
			kernel_lacks="$name cannot be downloaded"
			return
		}
		dpkg-deb -x "$kernel"/linux-image-*.deb "$kernel/x" && rm -f "$kernel"/*.deb && : > "$kernel/ready" || {
			kernel_lacks="$name cannot be unpacked"
			return
		}
	fi
	release=$(basename "$kernel"/x/lib/modules/*)
	depmod -b "$kernel/x" "$release" 2> /dev/null
}

# guest_program NAME SOURCE: links a program of the guest statically into the folder guest-root; 1 if it cannot be done.
guest_program() {
	# shellcheck disable=SC2086 # CC may carry options
	${CC:-gcc} -static -O1 -o "guest-root/bin/$1" "$here/$2" 2> "$1.compile"
}

# copy_modules MODULE...: these and what they need, in an order in which they can be loaded.
copy_modules() {
	local m file number=10
	for file in $(for m; do
		modprobe -d "$kernel/x" -S "$release" --show-depends "$m" 2> /dev/null |
			sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++'); do
		cp "$file" "guest-root/m/$number-$(basename "$file")"
		number=$((number + 1))
	done
}

# make_root CELLS FOLDER...: the guest's folder guest-root: a shell, the modules, the helper, and a loop that runs commands
# from the serial line. CELLS has lines "CELL ADDRESS"; FOLDERs are made to mount on.
make_root() {
	local cells=$1 p
	shift
	mkdir -p guest-root/{bin,sbin,m,proc,sys,dev,tmp,keys} "${@/#/guest-root/}"
	guest_program guest kernel_guest.c || return
	cp "$(command -v busybox)" guest-root/bin/busybox
	for p in $(busybox --list | grep -vx busybox); do
		ln -s busybox "guest-root/bin/$p"
	done
	ln -s /bin/guest guest-root/sbin/request-key
	[ -n "${guest_linux:-}" ] || copy_modules fcrypt pcbc dns_resolver kafs e1000 \
		${guest_disk:+crc32c_generic virtio_pci virtio_blk ext4}
	echo "$cells" > guest-root/cells
	cat > guest-root/init << 'GUEST'
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
stty -echo
dmesg -n 1
for m in /m/*; do [ ! -e $m ] || insmod $m; done
ip link set vec0 name eth0 2> /dev/null
ip link set lo up; ip addr add 10.0.2.15/24 dev eth0; ip link set eth0 up
ip route add default via 10.0.2.2
echo 1 > /proc/sys/kernel/keys/gc_delay
[ -z "$server" ] || sed -i "s/ .*/ $server/" /cells
while read cell address; do echo "add $cell $address" > /proc/fs/afs/cells; done < /cells
echo READY
while read n command; do
	echo "BEGIN $n"
	echo "$command" | base64 -d > /tmp/command
	sh /tmp/command 2>&1
	status=$?
	echo
	echo "END $n $status"
done
GUEST
	chmod 755 guest-root/init
}

# start_guest NAME [COMMAND...]: starts a guest of the folder guest-root; COMMAND precedes the emulator's. guest_net is its
# network; guest_disk, if set, the image of a disk; guest_server another address for all cells; guest_linux a kernel for user
# mode in place of the emulator.
start_guest() {
	local name=$1
	shift
	: > "$name.log"
	[ -e initrd ] || (cd guest-root && find . | cpio -o -H newc 2> /dev/null | gzip -1) > initrd
	mkfifo "to-$name"
	exec {guest_input}<> "to-$name"
	if [ -n "${guest_linux:-}" ]; then
		"$@" "$guest_linux" mem=768M initrd=initrd rdinit=/init con0=fd:0,fd:1 con=null panic=1 quiet \
			${guest_server:+"server=$guest_server"} \
			"vec0:transport=tap,${guest_net#tap,},depth=64" "ubd0=$guest_disk" < "to-$name" > "$name.log" 2> "$name.qemu" &
	else
		# The kernel's timer check counts interrupts for 10 ms, and panics if the emulator got no CPU time then.
		"$@" qemu-system-x86_64 -accel tcg -m 768 -smp 1 -display none -monitor none -serial stdio -no-reboot \
			-kernel "$kernel"/x/boot/vmlinuz-* -initrd initrd \
			-append "console=ttyS0 panic=1 quiet no_timer_check rdinit=/init${guest_server:+ server=$guest_server}" \
			${guest_disk:+-drive "file=$guest_disk,format=raw,if=virtio,cache=unsafe"} \
			-netdev "${guest_net:-user},id=n0" -device e1000,netdev=n0 < "to-$name" > "$name.log" 2> "$name.qemu" &
	fi
	echo $! > "$name.pid"
}

guest_log() { tr -d '\r' < "$1.log"; }

# await NAME PATTERN SECONDS: waits for a line of the guest that matches. If the guest stays silent, it is dead.
await() {
	local end=$((SECONDS + $3)) panic='Kernel panic|kernel BUG|BUG: kernel'
	until guest_log "$1" | grep -aq "$2"; do
		if ! kill -0 "$(cat "$1.pid")" 2> /dev/null; then
			echo 'the guest has stopped' > "$1.dead"
		elif [ $SECONDS -gt $end ]; then
			echo "the guest does not answer after $3 s" > "$1.dead"
		elif guest_log "$1" | grep -aqE "$panic"; then
			sleep 1
			echo "the guest's kernel: $(guest_log "$1" | grep -aE "$panic" | head -n 1)" > "$1.dead"
		fi
		[ ! -e "$1.dead" ] || return 1
		sleep 0.1
	done
}

guest_ready() { await "$1" '^READY' 200; }

guest_commands=0
# ask NAME COMMAND: begins a command in the guest, which `answer` waits for.
ask() {
	[ ! -e "$1.dead" ] || return 1
	guest_commands=$((guest_commands + 1))
	eval "asked_$1=$BASHPID-$guest_commands"
	printf '%s %s\n' "$BASHPID-$guest_commands" "$(printf '%s\n' "$2" | base64 -w 0)" > "to-$1"
}

# answer NAME [SECONDS]: waits for its end. Sets out and status.
answer() {
	local asked=asked_$1
	out='' status=''
	[ ! -e "$1.dead" ] || return 1
	await "$1" "^END ${!asked} " "${2:-90}" || return 1
	out=$(guest_log "$1" | sed -n "/^BEGIN ${!asked}\$/,/^END ${!asked} /p" | sed '1d;$d')
	status=$(guest_log "$1" | sed -n "s/^END ${!asked} //p")
}

# at NAME COMMAND [SECONDS]: both.
at() { ask "$1" "$2" && answer "$1" "${3:-90}"; }

# guest_said NAME: the end of what the guest printed, without the marks of commands.
guest_said() { guest_log "$1" | grep -avE '^(BEGIN|END) ' | tail -n 30; }
