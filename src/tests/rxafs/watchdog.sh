# SPDX-License-Identifier: BSD-2-Clause
# The daemon is killed while the kernel is told of changes in directories where names are made and removed: all processes end, the
# daemon's own as well. ROUNDS: how often.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
make_cell
mkdir "$work/mnt"
mounts="$work/mnt"
timeout -k 1 700 "$python" "$top_srcdir/src/tests/rxafs/watchdog.py" "$rxafs" "$afscp" "$where" "$work/mnt" "${ROUNDS:-20}" ||
	fail "watchdog.py"
result
