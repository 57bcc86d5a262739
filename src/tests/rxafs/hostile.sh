# SPDX-License-Identifier: BSD-2-Clause
# Texts of a hostile server: rxafsctl prints no control characters of them, and they begin no lines of the log.

. "${top_srcdir:-.}/src/tests/rxafs/lib.sh"
rxafsctl=$top_builddir/src/rxafs/rxafsctl
[ -x "$rxafsctl" ] || skip "rxafsctl is not built"
mkdir -p "$work/mnt"
mounts=$work/mnt
PYTHONPATH="$top_srcdir/src/tests/system/copier:$top_srcdir/src/tests/system/conformance" PYTHONDONTWRITEBYTECODE=1 \
	timeout -k 1 400 "$python" "$top_srcdir/src/tests/rxafs/hostile.py" "$rxafs" "$rxafsctl" "$work/mnt" || fail "hostile.py"
result
