# SPDX-License-Identifier: BSD-2-Clause
# Finds OpenAFS's programs and library, or unpacks its packages into a private folder; sourced by `run`.
#
# Sets openafs_where: "system" if the packages are installed, the folder that they were unpacked to, or "" with the
# reason in openafs_lacks. Nothing is installed, because the packages would start services.

openafs_where=
openafs_lacks=
openafs_packages='libopenafs-dev openafs-fileserver openafs-dbserver openafs-client openafs-krb5'

find_openafs() {
	local private=$build/interop-openafs
	if command -v rxdebug > /dev/null && command -v vos > /dev/null && command -v afsio > /dev/null &&
		[ -x /usr/lib/openafs/fileserver ] && [ -x /usr/lib/openafs/vlserver ] &&
		[ -f /usr/include/rx/rx.h ] && command -v asetkey > /dev/null &&
		[ "${INTEROP_OPENAFS:-}" != private ]; then
		openafs_where=system
	elif [ -f "$private/complete" ]; then
		openafs_where=$private
	else
		fetch_openafs "$private"
	fi
}

# fetch_openafs FOLDER: fetches the packages and those of their dependencies that are not installed.
fetch_openafs() {
	local names log=$work/packages.log deb
	command -v apt-get > /dev/null && command -v dpkg > /dev/null || {
		openafs_lacks='the OpenAFS packages are not installed'
		return
	}
	names=$(needed_packages)
	if [ -z "$names" ] && [ "$(id -u)" -eq 0 ]; then
		timeout 100 apt-get -q update > "$log" 2>&1
		names=$(needed_packages)
	fi
	[ -n "$names" ] || {
		openafs_lacks='apt-get knows no OpenAFS packages'
		return
	}
	rm -rf "$1"
	mkdir -p "$1/debs" && chmod 755 "$1" "$1/debs"
	# shellcheck disable=SC2086 # package names are words
	(cd "$1/debs" && timeout 100 apt-get -q download $names) >> "$log" 2>&1 || {
		openafs_lacks='apt-get could not download the OpenAFS packages'
		return
	}
	for deb in "$1"/debs/*.deb; do
		dpkg -x "$deb" "$1" || { openafs_lacks="$deb cannot be unpacked"; return; }
	done
	rm -rf "$1/debs"
	touch "$1/complete"
	openafs_where=$1
}

# needed_packages: prints their names; nothing if apt-get did not end well, since the list would lack some.
needed_packages() {
	local plan
	# shellcheck disable=SC2086
	plan=$(timeout 100 apt-get -q -s --no-install-recommends install $openafs_packages 2> /dev/null) || return
	echo "$plan" | sed -n 's/^Inst \([^ ]*\) .*/\1/p'
}

# generate_stubs OUT ROOT: compiles interop.xg with OpenAFS's compiler, into OUT/stubs. The generated code includes
# two headers of OpenAFS's build tree that its package lacks.
generate_stubs() {
	local dir=$1/stubs kind
	mkdir -p "$dir" && : > "$dir/afsconfig.h" &&
		printf '#include <stdlib.h>\n#include <string.h>\n' > "$dir/roken.h" || return
	cp "$here/interop.xg" "$dir" && cd "$dir" || return
	for kind in h:h c:xdr.c C:cs.c S:ss.c; do
		"$2/usr/bin/rxgen" -A -x "-${kind%%:*}" -o "interop.${kind#*:}" interop.xg || return
	done
}

# library NAME ROOT: the path of a shared library that may be installed although ROOT is set.
library() {
	ls -d "$2"/usr/lib/*/"$1" /usr/lib/*/"$1" 2> /dev/null | head -n 1
}

# find_classic: sets classic_include and classic_lib to librxwire-classic of the build folder or of an installed tree;
# librxwire must be found through the paths in classic_paths. Empty: it is not built.
classic_include=
classic_lib=
classic_paths=
find_classic() {
	if [ -e "$build/src/classic/.libs/librxwire-classic.so" ]; then
		classic_include=$(cd "$here/../../../classic" && pwd)
		classic_lib=$build/src/classic/.libs/librxwire-classic.so
		classic_paths=${classic_lib%/*}:$build/src/rx/.libs
	elif [ -e "$build/lib/librxwire-classic.so" ]; then
		classic_include=$build/include/rxwire-classic
		classic_lib=$build/lib/librxwire-classic.so
		classic_paths=$build/lib
	fi
}

# compile_classic OUT ROOT: compiles the programs on OpenAFS's library once more, unchanged, with librxwire-classic.
compile_classic() {
	local out=$1 root=$2 flags p
	flags=(-std=gnu17 -D_GNU_SOURCE -DAFS_PTHREAD_ENV -O2 -g -I"$classic_include" ${root:+-isystem "$root/usr/include"})
	for p in client server; do
		# shellcheck disable=SC2086 # CC may carry options
		${CC:-cc} "${flags[@]}" -Wall -Werror -o "$out/classic_$p" "$here/afsrx_$p.c" "$here/afsrx_util.c" \
			"$here/afsrx_rxkad.c" "$classic_lib" -Wl,-rpath,"$classic_paths",-rpath-link,"$classic_paths" \
			-pthread || return
	done
	# shellcheck disable=SC2086
	${CC:-cc} "${flags[@]}" -w -I"$out/stubs" -o "$out/stubs_classic" "$here/stubs_afs.c" "$here/afsrx_util.c" \
		"$out"/stubs/interop.{xdr,cs,ss}.c "$classic_lib" \
		-Wl,-rpath,"$classic_paths",-rpath-link,"$classic_paths" -pthread
}

# compile_served OUT ROOT CRYPTO ROKEN: served.c with stubs that OpenAFS's rxgen writes from our interface files. The file service and
# the callback service share types, so they become one file; callbacks go to several clients at a time. Requests that
# served.c does not serve are refused with RXGEN_OPCODE.
compile_served() {
	local out=$1/served root=$2 xg=$here/../../../afs f kind flags
	mkdir -p "$out/afs" && : > "$out/afsconfig.h" && cp "$1/stubs/roken.h" "$xg"/{afsvol,vl,afs-common}.xg "$out" &&
		cd "$out" || return
	{
		cat "$xg/rxafs.xg"
		sed -e '/afs-common/d' -e 's/^\(\(Probe\|CallBack\)(.*)\) = /\1 multi = /' "$xg/rxafscb.xg"
	} > rxafs.xg
	for f in afsvol vl rxafs; do
		for kind in h:h c:xdr.c C:cs.c S:ss.c; do
			"$root/usr/bin/rxgen" -A -x "-${kind%%:*}" -o "$f.${kind#*:}" "$f.xg" || return
		done
	done
	{
		echo '#define REFUSE(name) int __attribute__((weak)) name(void) { return -455; }'
		sed -n 's/^extern afs_int32 \(S[A-Za-z]*_\{0,1\}[A-Za-z0-9]*\)(.*/REFUSE(\1)/p' ./*.h
	} > refused.c
	flags=(-std=gnu17 -D_GNU_SOURCE -DAFS_PTHREAD_ENV -O2 -g -I. ${root:+-isystem "$root/usr/include"})
	# Their generated code is not ours: no warnings about it.
	# shellcheck disable=SC2086 # CC may carry options
	${CC:-cc} -I"$classic_include" "${flags[@]}" -Wall -Wextra -Werror -c "$here/served.c" -o served.o &&
		${CC:-cc} -I"$classic_include" "${flags[@]}" -w -o "$1/served_classic" served.o refused.c \
			{afsvol,vl,rxafs}.{xdr,ss}.c rxafs.cs.c ${root:+-L"$root/usr/lib"} "$classic_lib" \
			-l:librxstat.a -l:libopr.a \
			-Wl,-rpath,"$classic_paths",-rpath-link,"$classic_paths" -pthread || return
	# shellcheck disable=SC2086
	${CC:-cc} -I"$classic_include" "${flags[@]}" -w -o "$1/served_client_classic" "$here/served_client.c" refused.c \
		rxafs.{xdr,cs,ss}.c ${root:+-L"$root/usr/lib"} "$classic_lib" -l:libopr.a \
		-Wl,-rpath,"$classic_paths",-rpath-link,"$classic_paths" -pthread || return
	# shellcheck disable=SC2086
	${CC:-cc} "${flags[@]}" -Wall -Wextra -Werror -c "$here/served_client.c" -o client.o &&
		${CC:-cc} "${flags[@]}" -w -o "$1/served_client" client.o refused.c rxafs.{xdr,cs,ss}.c \
			${root:+-L"$root/usr/lib"} -l:libafsrpc.a "$3" "$4" \
			-Wl,--disable-new-dtags,-rpath,"${3%/*}:${4%/*}" -pthread
}

# compile_store OUT ROOT CRYPTO ROKEN: the client of the group store, with stubs for the file service and the callback
# service in one file, since they share types. Callbacks without a handler are refused with RXGEN_OPCODE.
compile_store() {
	local out=$1/store root=$2 xg=$here/../../../afs kind flags
	mkdir -p "$out" && : > "$out/afsconfig.h" && cp "$1/stubs/roken.h" "$xg/afs-common.xg" "$out" && cd "$out" || return
	{ cat "$xg/rxafs.xg"; sed '/afs-common/d' "$xg/rxafscb.xg"; } > rxafs.xg
	for kind in h:h c:xdr.c C:cs.c S:ss.c; do
		"$root/usr/bin/rxgen" -A -x "-${kind%%:*}" -o "rxafs.${kind#*:}" rxafs.xg || return
	done
	{
		echo '#define REFUSE(name) int __attribute__((weak)) name(void) { return -455; }'
		sed -n 's/^extern afs_int32 \(S[A-Za-z]*_\{0,1\}[A-Za-z0-9]*\)(.*/REFUSE(\1)/p' rxafs.h
	} > refused.c
	flags=(-std=gnu17 -D_GNU_SOURCE -DAFS_PTHREAD_ENV -O2 -g -I. ${root:+-isystem "$root/usr/include"})
	# Their generated code is not ours: no warnings about it.
	# shellcheck disable=SC2086 # CC may carry options
	${CC:-cc} "${flags[@]}" -Wall -Wextra -Werror -c "$here/store_calls.c" -o calls.o &&
		${CC:-cc} "${flags[@]}" -w -o "$1/store_calls" calls.o refused.c rxafs.{xdr,cs,ss}.c \
			${root:+-L"$root/usr/lib"} -l:libafsrpc.a "$3" "$4" \
			-Wl,--disable-new-dtags,-rpath,"${3%/*}:${4%/*}" -pthread
}

# compile_admin OUT ROOT CRYPTO ROKEN: admin_afs on OpenAFS's administration libraries, as Debian compiled them, once with
# its library and once with librxwire-classic. An included header that Debian lacks has only numbers.
compile_admin() {
	local out=$1 root=$2 libs flags other
	mkdir -p "$out/stubs/afs" && : > "$out/stubs/afs/afs_AdminErrors.h" || return
	flags=(-std=gnu17 -D_GNU_SOURCE -DAFS_PTHREAD_ENV -O2 -g -Wall -Werror)
	libs=(-L"$root/usr/lib/afs" -L"$root/usr/lib" '-Wl,--start-group' -l:libvosadmin.a -l:libptsadmin.a
		-l:libbosadmin.a -l:libclientadmin.a -l:libafsadminutil.a -l:libkasadmin.a -l:libafsauthent.a
		'-Wl,--end-group')
	other=("$3" "$4" '-Wl,--disable-new-dtags' -lcrypt -lresolv -pthread)
	# shellcheck disable=SC2086 # CC may carry options
	${CC:-cc} "${flags[@]}" -I"$out/stubs" ${root:+-isystem "$root/usr/include"} -o "$out/admin_afs" \
		"$here/admin_afs.c" "${libs[@]}" -l:libafsrpc.a "${other[@]}" \
		-Wl,-rpath,"${3%/*}:${4%/*}" || return
	# shellcheck disable=SC2086
	${CC:-cc} "${flags[@]}" -I"$classic_include" -I"$out/stubs" ${root:+-isystem "$root/usr/include"} \
		-o "$out/admin_classic" "$here/admin_afs.c" "${libs[@]}" "$classic_lib" -l:librxstat.a \
		-l:libafsint.a -l:libafscom_err.a "${other[@]}" \
		-Wl,-rpath,"${3%/*}:${4%/*}:$classic_paths",-rpath-link,"$classic_paths"
}

# chosen GROUP: it will be run.
chosen() {
	[ -z "$programs_only" ] && [[ " $groups " == *" $1 "* ]]
}

# wanted GROUP: it will be run, and librxwire-classic is built.
wanted() {
	[ -n "$classic_lib" ] && chosen "$1"
}

# compile_programs FOLDER: compiles our programs on OpenAFS's library (linked in, so that they run without its
# packages), the writer of volume dumps and the relay.
compile_programs() {
	local out=$1 root= cc=${CC:-cc} p kad crypto roken
	mkdir -p "$out"
	[ "$openafs_where" = system ] || root=$openafs_where
	# rxkad's tickets need Heimdal's cryptography, which has no static library.
	crypto=$(library libhcrypto.so.5 "$root")
	roken=$(library libroken.so.19 "$root")
	{
		for p in client server stats; do
			kad=()
			[ $p = stats ] || kad=("$here/afsrx_rxkad.c")
			# shellcheck disable=SC2086 # CC may carry options
			$cc -std=gnu17 -D_GNU_SOURCE -DAFS_PTHREAD_ENV -O2 -g ${root:+-isystem "$root/usr/include"} \
				-o "$out/afsrx_$p" "$here/afsrx_$p.c" "$here/afsrx_util.c" "${kad[@]}" \
				${root:+-L"$root/usr/lib"} -l:libafsrpc.a ${kad:+"$crypto" "$roken" \
				-Wl,--disable-new-dtags,-rpath,"${crypto%/*}:${roken%/*}"} -pthread || openafs_lacks=1
		done
		(generate_stubs "$out" "$root") || openafs_lacks=1
		# Their generated code is not ours: no warnings about it.
		# shellcheck disable=SC2086
		$cc -std=gnu17 -D_GNU_SOURCE -DAFS_PTHREAD_ENV -O2 -g -w -I"$out/stubs" \
			${root:+-isystem "$root/usr/include"} -o "$out/stubs_afs" "$here/stubs_afs.c" \
			"$here/afsrx_util.c" "$out"/stubs/interop.{xdr,cs,ss}.c \
			${root:+-L"$root/usr/lib"} -l:libafsrpc.a -pthread || openafs_lacks=1
		find_classic
		[ -z "$classic_lib" ] || compile_classic "$out" "$root" || openafs_lacks=1
		! wanted served || (compile_served "$out" "$root" "$crypto" "$roken") || openafs_lacks=1
		! { chosen store || chosen member || chosen member_three; } || (compile_store "$out" "$root" "$crypto" "$roken") || openafs_lacks=1
		! wanted admin || compile_admin "$out" "$root" "$crypto" "$roken" || openafs_lacks=1
		for p in make_dump lossy_relay; do
			# shellcheck disable=SC2086
			$cc -std=gnu17 -D_GNU_SOURCE -O2 -g -o "$out/$p" "$here/$p.c" || openafs_lacks=1
		done
		# shellcheck disable=SC2086
		$cc -std=gnu17 -D_GNU_SOURCE -O2 -shared -fPIC -o "$out/killed_at.so" "$here/killed_at.c" || openafs_lacks=1
	} > "$work/compile.log" 2>&1
	[ -z "$openafs_lacks" ] || {
		tail -n 20 "$work/compile.log"
		echo "FAIL: interop-programs: a program does not compile"
		echo "0 passed, 1 failed, 0 skipped"
		exit 1
	}
}
