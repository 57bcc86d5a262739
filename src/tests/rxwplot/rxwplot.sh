# SPDX-License-Identifier: BSD-2-Clause
# rxwplot: a traced transfer with losses, captures made by hand, damaged files; the program as it is installed.

. "$top_srcdir/src/tests/tools/lib.sh"
rxwplot=$top_builddir/src/rxwplot/rxwplot
python=${PYTHON3:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' > /dev/null 2>&1 || {
	echo 'SKIP: python3 was not found (Debian package: python3)'
	exit 77
}
# The program has the version of the others.
[ "$("$python" -B "$rxwplot" --version)" = "$("$rxperf" --version | sed "s/rxperf/rxwplot/")" ] ||
	fail "--version: $("$python" -B "$rxwplot" --version), $("$rxperf" --version)"
mkdir -m 700 "$work/t" || exit 99
"$python" -B "$top_srcdir/src/tests/rxwplot/plot.py" "$rxwplot" "$rxperf" "$work/t" || fail "see above"
refused 1 'No such file' "$python" -B "$rxwplot" "$work/nowhere"
refused 1 'neither a pcapng nor a pcap file' "$python" -B "$rxwplot" "$top_srcdir/src/tests/tools/lib.sh"
mkfifo "$work/fifo" && { echo > "$work/fifo" & }
refused 1 'not a pipe' "$python" -B "$rxwplot" "$work/fifo"

result
