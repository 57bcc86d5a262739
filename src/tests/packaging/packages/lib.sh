# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Clean roots of Debian for the tests of packages: made once, kept as a tar archive, unpacked for each use.

# Packages for building and testing beyond build-essential, and for inspecting packages.
build_packages=debhelper,pkg-config,libjansson-dev,libinih-dev,libssl-dev,libkrb5-dev,check,python3
build_packages+=,libfuse3-dev,libncurses-dev,libsqlite3-dev,cmark-gfm,mandoc,systemtap-sdt-dev,systemd,fakeroot,iproute2
# For a site that follows the administrator's guide: a KDC, and what the packages recommend and suggest.
# The manager of a user needs libpam-systemd and dbus.
site_packages=fuse3,libpam-systemd,dbus,krb5-kdc,krb5-admin-server,krb5-user,logrotate,curl
root_packages=$build_packages,lintian,autopkgtest,libseccomp2,$site_packages

result() { printf '%s: %s\n' "$1" "$2"; }
pass() { result PASS "$1"; }
fail() { result FAIL "$1"; status=1; }
skip() { result SKIP "$1 ($2)"; }

# suite_of_host: the release for the roots: that of this machine, else the stable one.
suite_of_host() {
	# shellcheck disable=SC1091
	(. /etc/os-release; [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-stable}" || echo stable)
}

# make_root TAR PACKAGES: with mmdebstrap's default mirror, or $PACKAGES_MIRROR.
make_root() {
	[ -s "$1" ] && return 0
	rm -f "$1".*.part
	mmdebstrap --variant=buildd --format=tar --include="$2" "${PACKAGES_SUITE:-$(suite_of_host)}" \
		"$1.$$.part" ${PACKAGES_MIRROR:+"$PACKAGES_MIRROR"} && mv "$1.$$.part" "$1"
}

# make_tarball BUILD VERSION FOLDER: the upstream tarball, as `make dist` makes it, which succeeds even if tar leaves
# out a file.
make_tarball() {
	mkdir -p "$3" && make -C "$1" dist-xz > "$3/dist.log" 2>&1 && ! grep '^tar: ' "$3/dist.log" &&
		mv "$1/rxwire-$2.tar.xz" "$3/" && return
	tail -n 5 "$3/dist.log"
	return 1
}

# The prefix that runs a command as the first user.
as_user="setpriv --reuid=1000 --regid=1000 --clear-groups"

# unpack_root TAR FOLDER
unpack_root() {
	mkdir -p "$2" && tar -C "$2" --numeric-owner --exclude './dev/*' -xf "$1"
}

# in_root FOLDER COMMAND...: in its own namespaces, without a network but loopback ($NETWORK=yes: with the machine's
# network); processes that the command leaves running end with it.
in_root() {
	local root=$1
	shift
	# shellcheck disable=SC2016 # the inner shell expands
	unshare --mount --pid --ipc --uts $([ "${NETWORK:-no}" = yes ] || echo --net) --fork --kill-child \
		sh -c 'root=$1; shift
			mount --make-rprivate / && mount --bind "$root" "$root" || exit 99
			mount -t proc proc "$root/proc" && mount -t tmpfs tmp "$root/dev" || exit 99
			mkdir "$root/dev/shm" "$root/dev/pts" && chmod 1777 "$root/dev/shm"
			for d in null zero full random urandom tty; do
				: > "$root/dev/$d"; mount --bind "/dev/$d" "$root/dev/$d" || exit 99
			done
			mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" && ln -s pts/ptmx "$root/dev/ptmx"
			ln -s /proc/self/fd "$root/dev/fd" && ln -s fd/0 "$root/dev/stdin" &&
				ln -s fd/1 "$root/dev/stdout" && ln -s fd/2 "$root/dev/stderr" || exit 99
			hostname "${ROOT_NAME:-clean}"
			[ "${NETWORK:-no}" = yes ] || ip link set lo up 2> /dev/null
			exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
				DEBIAN_FRONTEND=noninteractive LC_ALL="${ROOT_LOCALE:-C.UTF-8}" TZ="${ROOT_TZ:-UTC}" \
				chroot "$root" "$@"' sh "$root" "$@" < /dev/null
}
