# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Libraries for other machines: Debian's packages, unpacked; for musl built from Debian's sources. Uses the package
# sources of this machine's apt.

# sources KIND [SUITE]: lines for a sources.list (deb or deb-src) of the main part of one suite.
sources() {
	local site suite
	# shellcheck disable=SC1091
	suite=${PACKAGES_SUITE:-$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")}
	# shellcheck disable=SC2016 # apt expands
	site=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		sed -n "s/ $suite main\$//p" | head -n 1)
	[ -n "$site" ] || { echo "apt has no source for $suite"; return 1; }
	echo "$1 $site ${2:-$suite} main"
}

# relative ROOT: makes absolute links in the root relative, so that they do not lead to files of this machine.
relative() {
	local target link
	find "$1/lib" "$1/usr/lib" -type l -lname '/*' -printf '%l %p\n' |
		while read -r target link; do ln -sfn "$1$target" "$link"; done
}

# debian_root ARCHITECTURE ROOT: unpacks only, runs no program of it. Without /tmp: an emulator opens folders of the
# root instead of the machine's, but creates files in the machine's.
debian_root() {
	local packages=libc6-dev,linux-libc-dev,libjansson-dev,libinih-dev,libssl-dev,libkrb5-dev
	[ ! -d "$2/tmp" ] || rm -r "$2/tmp"
	[ -f "$2/.complete" ] && return
	rm -rf "$2" && mkdir -p "$2" || return 1
	mmdebstrap --variant=extract --arch="$1" --include="$packages,libncurses-dev,libsqlite3-dev,check,libatomic1" --format=tar \
		"${PACKAGES_SUITE:-$(sources suite | cut -d' ' -f 3)}" "$2.tar" "$(sources deb)" &&
		tar -C "$2" --no-same-owner --exclude './dev/*' --exclude ./tmp -xf "$2.tar" && relative "$2" && rm "$2.tar" &&
		touch "$2/.complete"
}

# fetch_source FOLDER PACKAGE [SUITE]: unpacks the upstream source.
fetch_source() {
	local apt=$1/apt.${3:-own} options tarball
	ls -d "$1/$2".tree > /dev/null 2>&1 && return
	mkdir -p "$apt/lists" "$apt/cache/archives/partial" || return 1
	sources deb-src ${3:+"$3"} > "$apt/sources.list" || return 1
	options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/none"
		-o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
	[ -f "$apt/updated" ] || { apt-get "${options[@]}" update && touch "$apt/updated"; } || return 1
	# Remove sources of another suite and of a failed attempt.
	rm -rf "${1:?}/$2.files" "$1/$2.part" && mkdir "$1/$2.files" "$1/$2.part" || return 1
	(cd "$1/$2.files" && apt-get "${options[@]}" source --download-only "$2") || return 1
	# A signature may accompany it.
	tarball=$(find "$1/$2.files" -name '*.orig.tar.*' ! -name '*.asc') && [ -f "$tarball" ] &&
		tar -C "$1/$2.part" --strip-components=1 -xf "$tarball" && mv "$1/$2.part" "$1/$2.tree"
}

# describe ROOT NAME VERSION: writes a pkg-config file for a library without one.
describe() {
	printf 'Name: %s\nDescription: %s\nVersion: %s\nLibs: -L%s/lib -l%s\nCflags: -I%s/include\n' \
		"$2" "$2" "$3" "$1" "$2" "$1" > "$1/lib/pkgconfig/$2.pc"
}

# archive ROOT NAME HEADER SOURCE...: builds a library of a few files.
archive() {
	local root=$1 name=$2 header=$3 source
	shift 3
	for source; do $CC $CFLAGS -c -o "${source%.c}.o" "$source" || return 1; done
	ar rcs "$root/lib/lib$name.a" "${@/%.c/.o}" && cp "$header" "$root/include/"
}

# one_library ROOT SOURCES NAME: in its own shell, with CC and CFLAGS set. Builds only the parts that rxwire needs.
one_library() {
	local root=$1 part host='--host=x86_64-linux-musl --disable-shared'
	cd "$2/$3.tree" || return 1
	case $3 in
	libinih) archive "$root" inih ini.h ini.c && describe "$root" inih 55 ;;
	jansson) { [ -x configure ] || autoreconf -fi; } && ./configure -q $host --prefix="$root" &&
		make -s -C src install && make -s install-pkgconfigDATA ;;
	check) { [ -x configure ] || autoreconf -fi; } &&
		./configure -q $host --prefix="$root" --disable-subunit --disable-build-docs &&
		make -s -C lib && make -s -C src install && cp check_stdint.h "$root/include/" &&
		describe "$root" check 0.15 ;;
	openssl) ./Configure linux-x86_64 --prefix="$root" --libdir=lib no-shared no-tests no-engine no-dso -O1 &&
		make -s -j"$(nproc)" build_libs && make -s install_dev ;;
	# Its one source file is made with tclsh.
	sqlite3) ./configure -q --disable-tcl --disable-readline && make -s sqlite3.c sqlite3.h &&
		archive "$root" sqlite3 sqlite3.h sqlite3.c && describe "$root" sqlite3 3.40 ;;
	krb5) cd src && CPPFLAGS=-I$root/include LDFLAGS=-L$root/lib krb5_cv_attr_constructor_destructor=yes,yes \
		ac_cv_func_regcomp=yes ac_cv_printf_positional=yes ./configure -q $host --enable-static \
		--prefix="$root" --without-system-verto --without-libedit --without-keyutils --disable-rpath \
		--disable-aesni --without-lmdb --disable-pkinit --with-tls-impl=no --with-crypto-impl=builtin &&
		make -s install-mkdirs && for part in util include lib build-tools; do
			make -s -j"$(nproc)" -C $part all && make -s -C $part install || return 1
		done ;;
	esac
}

# musl_libraries ROOT SOURCES: static libraries; a source that this suite no longer has is taken from stable.
musl_libraries() {
	local root=$1 sources=$2 name
	mkdir -p "$root/include" "$root/lib/pkgconfig" "$root/kernel" "$sources" || return 1
	# Headers of the kernel, after those of musl.
	ln -sfn /usr/include/linux "$root/kernel/linux"
	ln -sfn /usr/include/asm-generic "$root/kernel/asm-generic"
	ln -sfn "/usr/include/$(gcc -print-multiarch)/asm" "$root/kernel/asm"
	for name in libinih jansson check openssl krb5 sqlite3; do
		[ -f "$root/.$name" ] && continue
		fetch_source "$sources" "$name" || fetch_source "$sources" "$name" stable || return 1
		(export CC="musl-gcc -idirafter $root/kernel" CFLAGS='-O1 -fPIC' PKG_CONFIG_LIBDIR="$root/lib/pkgconfig"
			$wrap bash -c '. "$0"; one_library "$@"' "$here/libraries.sh" "$root" "$sources" "$name") &&
			touch "$root/.$name" || return 1
	done
}
