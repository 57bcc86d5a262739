#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The package rxafs: its C interface is that of the headers, and its functions work with a file server, as its examples do.

. "$(dirname "$0")/lib.sh"
LIBRXAFS=$top_builddir/src/client/.libs/librxafs.so.0
LD_LIBRARY_PATH=$top_builddir/src/rx/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LIBRXAFS LD_LIBRARY_PATH
[ -e "$LIBRXAFS" ] || { echo 'SKIP: there is no shared library'; exit 77; }

python3 "$top_srcdir/src/python/make-rxafs-abi" "$top_srcdir/src/client/include/rxafs" > "$work/_abi.py" || exit 1
cmp "$work/_abi.py" "$top_srcdir/src/python/rxafs/_abi.py" || {
	echo 'FAIL: the headers have changed: run make-rxafs-abi'
	exit 1
}
# shellcheck disable=SC2086 # CC may have options
python3 "$here/abi.py" --rxafs "$top_srcdir" ${CC:-cc} || exit 1

"$top_builddir/src/rxvol/rxvol" -S "$work/store" init > "$work/init.log" 2>&1 || { cat "$work/init.log"; exit 99; }
for name in root.cell music; do
	"$top_builddir/src/rxvol/rxvol" -S "$work/store" create "$name" --acl "system:anyuser all" > "$work/init.log" 2>&1 || { cat "$work/init.log"; exit 99; }
done
"$top_builddir/src/fileserver/rxfsd" --store "$work/store" --listen 127.0.0.1 --port 0 --vl-port 0 --vol-port 0 > "$work/out" 2> "$work/err" &
server=$!
trap 'kill $server; wait $server; rm -rf "$work"' EXIT
while ! grep -qs '^listening' "$work/out"; do
	kill -0 $server || { cat "$work/err"; exit 99; }
	sleep 0.05
done
ports=$(sed -n 's/^listening fs 127.0.0.1:\([0-9]*\) vl 127.0.0.1:\([0-9]*\).*/\2:\1/p' "$work/out")
python3 -X faulthandler -W error::ResourceWarning "$here/rxafs_check.py" "example.org=127.0.0.1:$ports" || exit 1

# The examples.
cells=example.org=127.0.0.1:$ports
cp "$top_srcdir"/examples/python/afs-*.py "$work/"
cd "$work" || exit 99
AFSCELL=example.org
export AFSCELL
mkfifo watched
python3 afs-watch.py music: "$cells" > watched &
watcher=$!
exec 3< watched
read -r line <&3
[ "$line" = watching ] || { echo "FAIL: $line"; exit 1; }
python3 afs-files.py music: "$cells" > files 2> files.err || { cat files.err; exit 1; }
diff -u - files << 'END' || exit 1
ada 10
charles 14
Dear Ada,
No such file or directory
END
read -r line <&3
[ "$line" = 'added letters' ] || { echo "FAIL: $line"; exit 1; }
kill "$watcher"
wait "$watcher"
echo 'the examples print what they should'
