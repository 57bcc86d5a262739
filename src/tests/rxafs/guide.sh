# SPDX-License-Identifier: BSD-2-Clause
# Runs the commands of doc/client.md as they are written and in their order, against servers on loopback and a KDC. Commands of an installed
# system are left out; a command that is not known here is a failure.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
[ "$(id -u)" -eq 0 ] || skip "only root can mount for itself and for others here"
. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
kdc_start
finish_all() {
	finish
	umount -l "$work/home/afs" 2> /dev/null
	umount -l "$work/all" 2> /dev/null
	kdc_stop
}
trap finish_all EXIT
trap 'exit 99' INT TERM HUP
build=$(cd "$top_builddir" && pwd)
document=$(cd "$top_srcdir" && pwd)/doc/client.md

for p in alice bob job; do kdc_principal $p -pw secret; done
kdc_principal "afs/$KDC_CELL"
kdc_principal "afs-rxgk/_afs.$KDC_CELL"
kdc_keytab "$work/kad" "afs/$KDC_CELL" aes256-cts-hmac-sha1-96
kdc_keytab "$work/gk" "afs-rxgk/_afs.$KDC_CELL" aes256-cts-hmac-sha1-96
cat "$work/gk" > "$work/keytab"
tail -c +3 "$work/kad" >> "$work/keytab"
chmod 600 "$work/keytab"
mkdir -m 700 "$work/store"
{
	"$rxvol" -S "$work/store" init && "$build/src/rxpt/rxpt" -S "$work/store" adduser alice &&
		"$build/src/rxpt/rxpt" -S "$work/store" adduser bob &&
		"$rxvol" -S "$work/store" create root.cell --acl 'system:anyuser rl' &&
		"$rxvol" -S "$work/store" create home --acl 'alice rlidwka' --acl 'system:anyuser l' &&
		"$rxvol" -S "$work/store" mount root.cell:home home --rw
} > "$work/rxvol.out" 2>&1 || fail "$(cat "$work/rxvol.out")"
server_options="--keytab $work/keytab --protection $work/store --pt-port 0 --cell $KDC_CELL"
start_server

# The programs as an installation has them, but for the ports: those of the test.
mkdir "$work/bin" "$work/home" "$work/run" "$work/all"
for program in rxvol rxafsctl; do
	folder=$program
	[ $program = rxafsctl ] && folder=rxafs
	printf '#!/bin/sh\nexec "%s/src/%s/%s" "$@"\n' "$build" $folder $program > "$work/bin/$program"
done
cat > "$work/bin/rxfsd" << END
#!/bin/sh
exec "$build/src/fileserver/rxfsd" --port 0 --vl-port 0 --listen 127.0.0.1 "\$@" > "$work/own.out" 2> "$work/own-rxfsd.err"
END
cat > "$work/bin/rxafs" << END
#!/bin/sh
own=127.0.0.1
case "\$*" in
*test.example*)
	until grep -q listening "$work/own.out" 2> /dev/null; do sleep 0.1; done
	own=\$(sed -n 's/^listening fs [^ ]*:\([0-9]*\) vl [^ ]*:\([0-9]*\).*/127.0.0.1:\2:\1/p' "$work/own.out")
	;;
esac
for word; do
	shift
	[ "\$word" = test.example=127.0.0.1 ] && word=test.example=\$own
	set -- "\$@" "\$word"
done
exec "$build/src/rxafs/rxafs" --servers "$KDC_CELL=$where" "\$@"
END
printf '#!/bin/sh\necho installed\n' > "$work/bin/make"
chmod 755 "$work/bin"/*
printf 'echo job\n' > "$work/run/job"
kdc_admin "$KDC_REALM" "ktadd -k $work/run/job.keytab -norandkey job"
PATH=$work/bin:$PATH HOME=$work/home
export PATH HOME KRB5CCNAME
cd "$work/run" || exit 99

# Lines of blocks without a language; the sections above a line decide which mount there is.
awk '/^```/ { inside = !inside; shell = $0 == "```"; next } inside && shell { print FNR ":" $0 }' "$document" > "$work/lines"
tried=0
personal=yes
while IFS=: read -r number line; do
	line=$(echo "$line" | sed "s/EXAMPLE\.ORG/$KDC_REALM/g; s/example\.org/$KDC_CELL/g")
	case $line in
	'sudo apt install '* | 'systemctl --user enable '*) echo "left out: $line"; continue ;;
	'sudo systemctl enable --now rxafs')
		# The mount of all users, as the unit makes it, with a home cell.
		line="rxafs --cell $KDC_CELL --allow-other $work/all"
		personal=
		;;
	# A node of a cluster has the mount of all users.
	'kinit -k '*) personal= ;;
	'kinit '*) line="echo secret | $line" ;;
	'rxafsctl login --session' | 'rxafsctl logout --session')
		case $line in *logout*) continue ;; esac
		sh -c 'echo 0 > /proc/self/loginuid' 2> /dev/null || { echo "left out: $line"; continue; }
		line="sh -c 'echo 0 > /proc/self/loginuid && $line && rxafsctl logout --session'"
		;;
	'rxafsctl acl ~/afs'*)
		# The mount of the user again, from here on.
		sh -c "rxafs --cell $KDC_CELL ~/afs" < /dev/null || fail "the mount of the user"
		personal=yes
		;;
	'rxafs '* | 'rxafsctl '* | 'rxvol '* | 'rxfsd '* | 'mkdir '* | 'ls '* | 'echo '* | 'fusermount3 '*) ;;
	*)
		fail "$document:$number: no test covers: $line"
		continue
		;;
	esac
	[ -n "$personal" ] || line=$(echo "$line" | sed "s|\(rxafsctl [a-z]*\)|\1 --mount $work/all|g")
	case $line in
	*'&') sh -c "exec ${line%&}" > "$work/out" 2>&1 < /dev/null &
		servers="$servers $!"
		;;
	*)
		if timeout 120 sh -ec "$line" > "$work/out" 2>&1 < /dev/null; then
			echo "tried: $line"
			tried=$((tried + 1))
		else
			fail "$document:$number: $line: $(cat "$work/out")"
		fi
		;;
	esac
done < "$work/lines"
umount "$work/home/afs" "$work/all" || fail "umount"
[ "$tried" -ge 25 ] || fail "too few commands were tried: $tried"
result
