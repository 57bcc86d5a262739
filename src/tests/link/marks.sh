# SPDX-License-Identifier: BSD-2-Clause
# ECN between two network namespaces: a queue that marks, and paths that change or lose marks. See marks.py.

. "$top_srcdir/src/tests/link/needs.sh"
failed=0
path=none,rate=100Mbit,delay=10ms,queue=400ms

# check CASE ADDRESS SETTINGS [OPTION...]: one case of marks.py, over a link with these settings, rxperf with options
check() {
	case=$1 address=$2 settings=$3
	shift 3
	RXW_LAB_IPV4='' bash "$here/lab" "$top_builddir" "$path,$settings" "$python" -B "$here/marks.py" "$case" \
		"$address" "$top_builddir/src/rxperf/rxperf" "$@" && return
	echo "FAIL: $case with $settings $*"
	failed=1
}

check marked RXW_FAR4 discipline=codel,ecn=yes
check marked RXW_FAR4 discipline=codel,ecn=yes --congestion reno
check marked RXW_FAR6 discipline=step,step=5ms
check bleached RXW_FAR4 down-ecn-bits=cleared
check bleached RXW_FAR6 down-ecn-bits=ect1
check mangled RXW_FAR4 down-ecn-bits=ce
check lost RXW_FAR4 down-ecn-bits=lost
check off RXW_FAR4 discipline=codel,ecn=yes --ecn off
check off RXW_FAR4 discipline=codel,ecn=yes --window 255
exit $failed
