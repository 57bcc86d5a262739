# SPDX-License-Identifier: BSD-2-Clause
# Reads through librxafs from a server with two addresses, over two emulated links: both carry the file, and either of them
# dies in the middle.

link='none,rate=60Mbit,delay=5ms'
. "$top_srcdir/src/tests/tools/twolinks.sh"
LIBRXAFS=$top_builddir/src/client/.libs/librxafs.so.0
LD_LIBRARY_PATH=$top_builddir/src/rx/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PYTHONPATH=$top_srcdir/src/python${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
export LIBRXAFS LD_LIBRARY_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
[ -e "$LIBRXAFS" ] || { echo 'SKIP: there is no shared library'; exit 77; }
command -v python3 > /dev/null || { echo 'SKIP: there is no python3'; exit 77; }
reader=$(readlink -f "$top_srcdir/src/tests/tools/pathreads.py")

mkdir files && head -c 16000000 /dev/urandom > files/big
start_far_server --export files --advertise "$RXW_FAR4" --advertise "$RXW_FAR4_2"

received() { awk -v d="$1:" '$1 == d { print $2 }' /proc/net/dev; }
# read_big NAME ARGUMENT...: leaves the bytes that came by the links in $first and $second.
read_big() {
	name=$1
	shift
	first=$(received wire0) second=$(received wire1)
	python3 "$reader" "root.cell=$RXW_FAR4:7003:7000" root.cell:big files/big "$@" > "$name" 2> err ||
		fail "$name: $(tail -n 3 err)"
	first=$(($(received wire0) - first)) second=$(($(received wire1) - second))
}

read_big both
[ "$first" -gt 1000000 ] && [ "$second" -gt 1000000 ] || fail "bytes of the links: $first $second"

# A transport waits 12 s for a dead path.
for which in commands commands2; do
	read_big "$which" 6000000 "$RXW_LINK/$which" 'hole yes'
	awk '{ exit !($1 < 10) }' "$which" || fail "$which: a read waited for $(cat "$which") s"
	echo 'hole no' > "$RXW_LINK/$which"
done
result
