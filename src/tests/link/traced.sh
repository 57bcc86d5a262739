# SPDX-License-Identifier: BSD-2-Clause
# Marks of ECN in packet traces of both ends, and in their drawings. See traced.py. The link is slow enough that a server
# with a thread sanitizer on a busy machine fills it.

. "$top_srcdir/src/tests/link/needs.sh"
failed=0
for address in RXW_FAR4 RXW_FAR6; do
	RXW_LAB_IPV4='' bash "$here/lab" "$top_builddir" \
		none,rate=20Mbit,delay=10ms,queue=400ms,discipline=codel,ecn=yes \
		"$python" -B "$here/traced.py" "$top_builddir" $address "$python" || { echo "FAIL: $address"; failed=1; }
done
exit $failed
