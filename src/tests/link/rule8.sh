# SPDX-License-Identifier: BSD-2-Clause
# ECN at a real socket with a scripted peer on another host: rule 8 of rx-wide-windows. See rule8.py.

. "$top_srcdir/src/tests/link/needs.sh"
RXW_LAB_IPV4=1 bash "$here/lab" "$top_builddir" none,delay=5ms \
	"$python" -B "$here/rule8.py" "$top_builddir/src/rxperf/rxperf"
