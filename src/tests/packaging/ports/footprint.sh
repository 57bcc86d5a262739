# SPDX-License-Identifier: BSD-2-Clause
# The size of the libraries and of an idle server, and both ends on one processor: doc/ports.md has the figures. Limits
# on bytes, none on time.

SANITIZERS=${SANITIZERS:-no}
. "$top_srcdir/src/tests/tools/lib.sh"

TEXT_MOST=500000     # bytes of code and constants of librxwire.so
CLASSIC_MOST=90112   # the same for librxwire-classic.so
RXAFS_MOST=385024    # the same for librxafs.so: 376 KiB
IDLE_MOST=3072       # KiB private to an idle server of one listener (RssAnon)
SERVED_MOST=49152    # KiB private to it after 16 concurrent streams

[ "$SANITIZERS" = no ] || { echo "SKIP: sanitizers use additional memory"; exit 77; }
[ "$(getconf PAGESIZE)" -eq 4096 ] || { echo "SKIP: the bounds are for pages of 4 KiB"; exit 77; }
[ -r /proc/self/smaps ] || { echo "SKIP: no /proc"; exit 77; }

# at_most WHAT VALUE BOUND UNIT
at_most() {
	echo "$1: $2 $4, at most $3"
	[ -n "$2" ] && [ "$2" -le "$3" ] || fail "$1: $2 $4, at most $3 are allowed"
}

# of_status FIELD: KiB, of the server.
of_status() {
	sed -n "s/^$1:[[:space:]]*\([0-9]*\) kB\$/\1/p" "/proc/$server/status"
}

# text_of LIBRARY: bytes of its code and constants.
text_of() { size "$1" | awk 'NR == 2 { print $1 }'; }

# Another compiler, another machine or checks that a distribution adds make more or less code of the same source. The
# bound holds where it was measured: GCC 12 for x86-64, with optimisation and without further options, and a linker and
# a C library that pack relocations.
library=$top_builddir/src/rx/.libs/librxwire.so
cc=$(sed -n 's/^CC = //p' "$top_builddir/Makefile")
flags=$(sed -n 's/^CFLAGS = //p' "$top_builddir/Makefile")
measured_as="$($cc -dumpmachine 2> /dev/null) $($cc -dumpversion 2> /dev/null)"
if [ -e "$library" ] && command -v size > /dev/null; then
	text=$(text_of "$library")
	classic=$(text_of "$top_builddir/src/classic/.libs/librxwire-classic.so")
	rxafs=$(text_of "$top_builddir/src/client/.libs/librxafs.so")
	case "$measured_as $flags" in
	*' -f'* | *' -m'*) bounded= ;;
	'x86_64-linux-gnu 12 '*-O[12]*) bounded=yes ;;
	*) bounded= ;;
	esac
	grep -q '^RXW_LIBRARY_LDFLAGS = .*pack-relative-relocs' "$top_builddir/Makefile" || bounded=
	if [ -n "$bounded" ]; then
		at_most "text of librxwire.so" "$text" $TEXT_MOST bytes
		at_most "text of librxwire-classic.so" "$classic" $CLASSIC_MOST bytes
		at_most "text of librxafs.so" "$rxafs" $RXAFS_MOST bytes
	else
		echo "text of librxwire.so: $text bytes, of librxwire-classic.so: $classic, of librxafs.so: $rxafs; not bounded for $measured_as $flags"
	fi
fi

one=
if command -v taskset > /dev/null; then
	cpu=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
	one="taskset -c $cpu"
fi
# One processor for both ends, where taskset permits that.
[ -z "$one" ] || taskset -cp "$cpu" $$ > /dev/null
start_rxperf server --verify --listeners 1
server=$pid
at_most "idle server, its own memory" "$(of_status RssAnon)" $IDLE_MOST KiB
# What the kernel maps of the shared libraries is its own decision.
echo "idle server, resident: $(of_status VmRSS) KiB"

for what in "recv -b 2M" "send -b 2M" "rpc -T 50" "recv -t 16 -b 1M" "send -t 16 -b 1M"; do
	# shellcheck disable=SC2086 # words
	"$rxperf" client -s 127.0.0.1 -p "$port" --verify --listeners 1 -c $what > "$work/out" 2>&1 ||
		fail "${one:+on one processor, }$what: $(tail -n 3 "$work/out")"
done
at_most "server that had 16 streams, its own memory" "$(of_status RssAnon)" $SERVED_MOST KiB
result
