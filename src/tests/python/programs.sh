#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Python clients of rxperf and rxfsd.

. "$(dirname "$0")/lib.sh"
servers=
finish() {
	for pid in $servers; do
		kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null
	done
	rm -rf "$work"
}
trap finish EXIT

# first_line FIFO: the first line of a program that has just been started; it writes to FIFO, which stays open.
first_line() {
	exec 3< "$1"
	read -r line <&3
}

module "$top_srcdir/src/afs/rxperf.xg"
for name in afs-common rxafs rxafscb vl; do
	module -i "$top_srcdir/src/afs/$name.xg"
done
cd "$work" || exit 99

mkfifo out
"$top_builddir/src/rxperf/rxperf" server -p 0 --listen 127.0.0.1 > out 2> err &
servers="$servers $!"
exec 3< out
while read -r line <&3; do
	case $line in
	*'ready on '*:*) break ;;
	esac
done
python3 -X faulthandler "$here/programs.py" rxperf "${line##*:}" || { cat err; exit 1; }
exec 3<&-

mkdir export state
head -c 3000001 /dev/urandom > export/file
mkfifo out2
"$top_builddir/src/fileserver/rxfsd" --export export --volume export --port 0 --vl-port 0 --state state > out2 2> err &
servers="$servers $!"
first_line out2
case $line in
"listening fs "*" vl "*" vol "*) ;;
*) echo "rxfsd printed \"$line\""; cat err; exit 1 ;;
esac
fs=${line#listening fs } fs=${fs%% *}
vl=${line##* vl } vl=${vl%% *}
python3 -X faulthandler "$here/programs.py" rxfsd "$fs" "$vl" "$work/export" || { cat err; exit 1; }
