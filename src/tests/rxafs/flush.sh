# SPDX-License-Identifier: BSD-2-Clause
# A server that does not answer holds directories of the kernel for which notifications wait: changes in another cell are seen all
# the same.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
rxafsctl=$top_builddir/src/rxafs/rxafsctl
make_cell
good=$where base=$work
work=$base/away fs_port=0 vl_port=0
mkdir "$work"
make_cell
away=$where away_server=$server
work=$base where=$good
mount_afs mnt --servers "away.example=$away"
timeout -k 1 400 "$python" "$top_srcdir/src/tests/rxafs/flush.py" "$work/mnt" "$rxafsctl" "$afscp" "$good" "$away_server" "$daemon" ||
	fail "flush.py"
unmount_afs mnt "$daemon"
result
