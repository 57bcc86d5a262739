#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds examples/ against an installed copy as a user would, by pkg-config, and runs them: the single files, shared
# and static; the project in examples/kv, as installed, with the installed rxwgen; and the commands of
# doc/tutorial.md.
# usage: check-examples.sh PREFIX [few]  (PREFIX as given to configure; DESTDIR is respected; few: a server and its clients only)

top=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd) || exit 99
CC=${CC:-cc}
prefix=${1:?usage: check-examples.sh PREFIX [few]}
few=${2-}
dir=$(mktemp -d) || exit 99
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$dir"' EXIT

pc=$(find "$DESTDIR$prefix" -name rxwire.pc | head -n 1)
[ -n "$pc" ] || { echo "FAIL: no rxwire.pc below $DESTDIR$prefix"; exit 1; }
plain_path=$PATH
export PKG_CONFIG_PATH="${pc%/*}"
[ -z "$DESTDIR" ] || export PKG_CONFIG_SYSROOT_DIR="$DESTDIR"
pkg-config --exists rxwire || exit 1
# Dynamic linking needs nothing but the library: rxwire.pc requires no other .pc file and no other flags.
if flags=$(PKG_CONFIG_LIBDIR=${pc%/*} PKG_CONFIG_PATH='' pkg-config --cflags --libs rxwire 2>&1) &&
	! echo "$flags" | grep -E 'krb5|crypto'; then
	echo "PASS: rxwire.pc needs no other package"
else
	echo "FAIL: rxwire.pc needs other packages: $flags"
	exit 1
fi

# folder VARIABLE: its location on this machine; only some versions of pkg-config prepend the system root.
folder() {
	path=$(pkg-config --variable="$1" rxwire)
	case $path in
	"$DESTDIR"/*) echo "$path" ;;
	*) echo "$DESTDIR$path" ;;
	esac
}
libdir=$(folder libdir)
status=0

# build KIND OUTPUT FLAGS...: one example, with the installed headers only.
build() {
	kind=$1
	shift
	case $src in
	*.cc) compiler="${CXX:-c++} -std=c++17" ;;
	*) compiler="$CC -std=c11" ;;
	esac
	# shellcheck disable=SC2086 # the compiler is words
	if $compiler -Wall -Wextra -Werror "$@" > "$dir/log" 2>&1; then
		echo "PASS: $src, $kind"
	else
		echo "FAIL: $src, $kind: $compiler $*"
		cat "$dir/log"
		status=1
	fi
}

san=
case $SANITIZERS in no | '') ;; *) san=-fsanitize=$SANITIZERS ;; esac
for src in "$top"/examples/${few:+shout-}*.c; do
	[ -f "$src" ] || continue
	name=${src##*/}
	name=${name%.c}
	# shellcheck disable=SC2046 # flags are words
	if [ -e "$libdir/librxwire.so" ]; then
		build shared -o "$dir/$name" "$src" $san $(pkg-config --cflags --libs rxwire) \
			-Wl,-rpath,"$libdir"
	fi
	# shellcheck disable=SC2046
	if [ ! -f "$libdir/librxwire.a" ]; then
		:
	elif ! pkg-config --exists libcrypto krb5; then
		echo "SKIP: $src, static (libcrypto or Kerberos cannot be linked with here)"
	else
		build static -o "$dir/$name-static" "$src" $san $(pkg-config --cflags rxwire) \
			"$libdir/librxwire.a" $(pkg-config --static --libs rxwire | sed 's/-lrxwire//') -lpthread
	fi
done
# Programs for files of a cell. Without one they say what is missing.
for src in "$top"/examples/afs/${few:+afs-list}*.c; do
	name=${src##*/}
	name=${name%.c}
	if [ -e "$libdir/librxafs.so" ] && [ -z "$san" ]; then
		# shellcheck disable=SC2046
		build 'shared librxafs' -o "$dir/$name" "$src" $(pkg-config --cflags --libs rxafs) -Wl,-rpath,"$libdir" \
			-Wl,-rpath-link,"$libdir"
	fi
	# shellcheck disable=SC2046
	if [ -f "$libdir/librxafs.a" ] && pkg-config --exists libcrypto krb5; then
		build 'static librxafs' -o "$dir/$name-static" "$src" $san $(pkg-config --cflags rxafs) \
			"$libdir/librxafs.a" "$libdir/librxwire.a" $(pkg-config --static --libs rxafs | sed 's/-lrxafs//; s/-lrxwire//') -lpthread
	fi
done
src=$dir/afs.cc
printf '#include <cstdio>\n#include <rxafs/rxafs.h>\nint main()\n{\n\trxafs_client *client = nullptr;\n\t%s\n\t%s\n\t%s\n}\n' \
	'rxafs_options options = {}; options.size = sizeof options; options.cell = "a/b";' 'rxafs_failure failure;' \
	'return !rxafs_open_client(&options, &client, &failure) || !failure.text[0];' > "$src"
if [ -e "$libdir/librxafs.so" ] && [ -z "$san" ] && echo '#include <string>' | ${CXX:-c++} -x c++ -fsyntax-only - 2> /dev/null; then
	# shellcheck disable=SC2046
	build 'shared librxafs' -Wno-missing-field-initializers -o "$dir/afs-cc" "$src" $(pkg-config --cflags --libs rxafs) -Wl,-rpath,"$libdir" \
		-Wl,-rpath-link,"$libdir" && "$dir/afs-cc" || { echo "FAIL: $src"; status=1; }
fi
for program in "$dir/afs-list" "$dir/afs-list-static"; do
	[ -x "$program" ] || continue
	answer=$(AFSCELL=example.org LD_LIBRARY_PATH="$libdir" "$program" "example.org=127.0.0.1:1" music 2>&1)
	case $answer in
	'music: the path is neither'*) echo "PASS: ${program##*/}" ;;
	*) echo "FAIL: ${program##*/}: $answer"; status=1 ;;
	esac
done
# A program that exports metrics and writes traces.
src=$dir/observe.c
printf '#include <rxwire/observe.h>\nint main(void)\n{\n\tchar *text;\n\treturn %s;\n}\n' \
	'rxw_metrics_text(0, 0, &text) <= 0 || !rxw_trace_save(0, text)' > "$src"
if [ -e "$libdir/librxwire.so" ] && [ -z "$san" ]; then
	# shellcheck disable=SC2046
	build 'librxwire-observe' -o "$dir/observe" "$src" $(pkg-config --cflags --libs rxwire-observe) -Wl,-rpath,"$libdir"
	"$dir/observe" || { echo "FAIL: $src"; status=1; }
fi
# The same client in C++ and, with ctypes, in Python.
bindings="$top/examples/bindings"
src=$bindings/shout.cc
if [ ! -e "$libdir/librxwire.so" ] || [ -n "$san" ]; then
	: # they load the library at run time, which an instrumented library does not support
elif echo '#include <string>' | ${CXX:-c++} -x c++ -fsyntax-only - 2> /dev/null; then
	# shellcheck disable=SC2046
	build C++ -o "$dir/shout-cc" "$src" $(pkg-config --cflags --libs rxwire) \
		-Wl,-rpath,"$libdir"
else
	echo "SKIP: examples/bindings/shout.cc (no C++ compiler)"
fi
if [ -e "$libdir/librxwire.so" ] && [ -z "$san" ] && command -v python3 > /dev/null; then
	printf '#!/bin/sh\nLIBRXWIRE="%s/librxwire.so.0" exec python3 "%s/shout.py" "$@"\n' "$libdir" "$bindings" \
		> "$dir/shout-py"
	chmod +x "$dir/shout-py"
fi
# begin PROGRAM [ARGUMENT]: runs a server; if the port is taken, tries another one. Sets port and server (empty: it failed).
begin() {
	for attempt in 1 2 3 4 5; do
		port=$((20000 + ($$ + attempt * 1009) % 12000))
		rm -f "$dir/server.log" # do not wait for the output of an earlier run
		"$dir/$1" $port ${2:+"$2"} > "$dir/server.log" 2>&1 &
		server=$!
		for _ in $(seq 40); do
			grep -qs serving "$dir/server.log" && break
			kill -0 $server 2> /dev/null || break
			sleep 0.25
		done
		grep -qs serving "$dir/server.log" && break
		kill $server 2> /dev/null
		wait $server
		server=
	done
}
# talk SUFFIX KIND: server and client of one kind.
talk() {
	[ -x "$dir/shout-server$1" ] && [ -x "$dir/shout-client$1" ] || return 0
	begin "shout-server$1"
	if [ -n "$server" ] &&
		answer=$("$dir/shout-client$1" 127.0.0.1 $port "hello there" 2>&1) &&
		[ "$answer" = "11 bytes: HELLO THERE" ] && others "$1" $port && kill $server && wait $server; then
		echo "PASS: the examples talk to each other, $2"
	else
		echo "FAIL: the examples talk to each other, $2: $answer"
		cat "$dir/server.log"
		status=1
	fi
	[ -z "$server" ] || kill $server 2> /dev/null
	server=
}
# others SUFFIX PORT: the clients in other languages, which load the shared library.
others() {
	[ -z "$1" ] || return 0
	for other in cc py; do
		[ -x "$dir/shout-$other" ] || continue
		answer=$("$dir/shout-$other" 127.0.0.1 "$2" "hello there" 2>&1)
		[ "$answer" = "11 bytes: HELLO THERE" ] || { answer="shout-$other: $answer"; return 1; }
		# If the server refuses a text, the client prints the error in words.
		if refused=$("$dir/shout-$other" 127.0.0.1 "$2" "$(printf '%1500s' x)" 2>&1) ||
			! echo "$refused" | grep -q 'could not read the operation code'; then
			answer="shout-$other: $refused"
			return 1
		fi
		echo "PASS: examples/bindings/shout.$other"
	done
}
talk '' shared
talk -static static
[ -z "$few" ] || exit $status

# store SUFFIX KIND: a file goes to the server and comes back. The client says what is missing, and what is refused.
store() {
	[ -x "$dir/file-server$1" ] && [ -x "$dir/file-client$1" ] || return 0
	client=$dir/file-client$1
	rm -rf "$dir/box"
	mkdir "$dir/box"
	begin "file-server$1" "$dir/box"
	head -c 3000000 /dev/urandom > "$dir/sent"
	if [ -n "$server" ] && "$client" 127.0.0.1 $port put name "$dir/sent" &&
		"$client" 127.0.0.1 $port get name "$dir/got" && cmp "$dir/sent" "$dir/got" && cmp "$dir/sent" "$dir/box/name" &&
		! "$client" 127.0.0.1 $port get other "$dir/got" 2> "$dir/log" && grep -q ENOENT "$dir/log" &&
		! "$client" 127.0.0.1 $port put ../name "$dir/got" 2> "$dir/log" && grep -q EACCES "$dir/log" &&
		[ "$(ls -A "$dir/box")" = name ] && kill $server && wait $server; then
		echo "PASS: examples/file-server.c, $2"
	else
		echo "FAIL: examples/file-server.c, $2"
		cat "$dir/log" "$dir/server.log"
		status=1
	fi
	[ -z "$server" ] || kill $server 2> /dev/null
	server=
}
store '' shared
store -static static

# The example of doc/porting.md: both sides in one process.
for kind in '' -static; do
	[ -x "$dir/ported$kind" ] || continue
	answer=$("$dir/ported$kind" 2>&1)
	if [ "$answer" = "$(printf 'sum: 50005000\none more than is allowed: 4100')" ]; then
		echo "PASS: examples/ported.c${kind:+, static}"
	else
		echo "FAIL: examples/ported.c${kind:+, static}: $answer"
		status=1
	fi
done

# An application's own security class: the server accepts only clients with its key.
psk() {
	trap '[ -z "$server" ] || kill "$server" 2> /dev/null' EXIT
	cp -r "$(folder examples)/psk" "$dir/psk" && cd "$dir/psk" || return 1
	make CC="$CC" CFLAGS="-O2 -std=c11 -Wall -Wextra -Werror $san" LDFLAGS="-Wl,-rpath,$libdir" || return 1
	head -c 32 /dev/urandom > key && head -c 32 /dev/urandom > other || return 1
	for attempt in 1 2 3 4 5; do
		port=$((20000 + ($$ + attempt * 1013) % 12000))
		./hello serve $port key > server.log 2>&1 &
		server=$!
		for _ in $(seq 40); do
			grep -qs serving server.log && break
			kill -0 $server 2> /dev/null || break
			sleep 0.25
		done
		grep -qs serving server.log && break
		kill $server 2> /dev/null
		wait $server
		server=
	done
	[ -n "$server" ] && ./hello ask $port key | grep -x 'hello, keyholder' &&
		! ./hello ask $port other 2> refused && grep "not the server's key" refused &&
		kill $server && wait $server
}
if [ -e "$libdir/librxwire.so" ] && ! pkg-config --exists libcrypto; then
	echo "SKIP: examples/psk: no libcrypto"
elif (psk) > "$dir/log" 2>&1; then
	echo "PASS: examples/psk: a client with the key is known by name, one without is refused"
else
	echo "FAIL: examples/psk"
	cat "$dir/log"
	status=1
fi

# step WHAT COMMAND...: runs in the project's folder, unless an earlier step failed.
step() {
	what=$1
	shift
	[ -z "$broken" ] || return 1
	if (cd "$dir/kv" && "$@") > "$dir/log" 2>&1 < /dev/null; then
		echo "PASS: examples/kv: $what"
	else
		echo "FAIL: examples/kv: $what: $*"
		tail -n 60 "$dir/log"
		status=1
		broken=yes
	fi
}

# The project, copied from its installed location. Its three configure scripts share what they find out.
echo "cache_file=$dir/config.cache" > "$dir/config.site"
export CONFIG_SITE="$dir/config.site"
export CFLAGS="-O2 -g $san" LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
PATH=$(folder bindir):$PATH
rxwgen=$(folder rxwgen)
broken=
cp -r "$(folder examples)/kv" "$dir/kv" || exit 1
step bootstrap sh bootstrap
step configure ./configure CC="$CC"
step 'it has found the installed rxwgen' grep -x "RXWGEN = $rxwgen" Makefile
step 'no warnings' make -j 2 CFLAGS="$CFLAGS -Werror"
step 'dependencies' grep -q 'kv[.]ss[.]c:.* kv[.]xg' kv.ss.c.d
step 'make check' make check
[ -z "$broken" ] || cat "$dir/kv/test-kv.log" 2> /dev/null
# From a tarball, with a separate build folder and read-only sources.
step 'make distcheck' make distcheck DISTCHECK_CONFIGURE_FLAGS="CC='$CC'"

# A project with interfaces in a folder of their own that include each other.
broken=
mkdir -p "$dir/kv/subfolder/src" "$dir/kv/subfolder/m4" "$dir/kv/subfolder/build"
cd "$dir/kv/subfolder" || exit 1
cp "$(folder rxwgen_am)" .
cp "$(folder rxwgen_m4)" m4
cat > configure.ac <<'END'
AC_INIT([subfolder], [1])
AC_CONFIG_MACRO_DIRS([m4])
AM_INIT_AUTOMAKE([foreign subdir-objects -Wall -Werror])
AC_PROG_CC
PKG_CHECK_MODULES([RXWIRE], [rxwire])
RXW_PROG_RXWGEN
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
END
cat > Makefile.am <<'END'
XG_FILES = src/common.xg src/more.xg
AM_RXWGENFLAGS = -i
include rxwgen.am
AM_CPPFLAGS = -I$(builddir)/src
AM_CFLAGS = $(RXWIRE_CFLAGS)
LDADD = $(RXWIRE_LIBS)
check_PROGRAMS = program
program_SOURCES = src/program.c
nodist_program_SOURCES = src/common.h src/common.xdr.c src/more.h src/more.xdr.c src/more.cs.c
TESTS = program
END
echo 'struct thing { afs_int32 a[3]; };' > src/common.xg
printf '#include "common.xg"\npackage MORE_\nDo(IN thing *t, OUT thing *u) = 7;\n' > src/more.xg
printf '#include "more.h"\nint main(void) { thing t = {{7}}; return t.a[0] != MORE_OP_Do; }\n' \
	> src/program.c
step 'interfaces in a subfolder' sh -c "cd subfolder && autoreconf -fi && cd build &&
	../configure CC='$CC' && make -j 2 check && make -q -W ../src/common.xg src/more.cs.c; test \$? -eq 1"
cd "$top" || exit 1

# With another installation prefix the tutorial's settings are required.
unset PKG_CONFIG_PATH LD_LIBRARY_PATH CONFIG_SITE
PATH=$plain_path RXWIRE_PREFIX=$DESTDIR$prefix top_srcdir=$top timeout -k 10 200 sh "$top/src/tests/check-tutorial.sh"
case $? in
0) ;;
124 | 137) status=1; echo "FAIL: doc/tutorial.md: timed out" ;;
*) status=1 ;;
esac
exit $status
