# SPDX-License-Identifier: BSD-2-Clause
# For the tests of `link`: sets here and python; skips the test where the lab does not run.

here=$top_srcdir/src/tests/link
python=${PYTHON3:-python3}
command -v "$python" > /dev/null || { echo "SKIP: python3 is not installed"; exit 77; }

why=$(bash "$here/lab" "$top_builddir" none true)
case $? in
0) ;;
77) echo "$why"; exit 77 ;;
*) echo "lab does not run a command: $why"; exit 1 ;;
esac
