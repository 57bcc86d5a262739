# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the scripts of this folder: skips where python3 cannot run the package, and makes modules.

set -u
: "${top_builddir:=.}" "${top_srcdir:=.}"
top_builddir=$(cd "$top_builddir" && pwd) && top_srcdir=$(cd "$top_srcdir" && pwd) || exit 99
here=$top_srcdir/src/tests/python
command -v python3 > /dev/null || { echo 'SKIP: python3 is not installed'; exit 77; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'SKIP: python3 is older than 3.11'; exit 77; }
[ "${SANITIZERS:-no}" = no ] || { echo 'SKIP: python3 cannot load a library with sanitizers'; exit 77; }
LIBRXWIRE=$top_builddir/src/rx/.libs/librxwire.so.0
PYTHONPATH=$top_srcdir/src/python
PYTHONDONTWRITEBYTECODE=1
export LIBRXWIRE PYTHONPATH PYTHONDONTWRITEBYTECODE
[ -e "$LIBRXWIRE" ] || { echo 'SKIP: there is no shared library'; exit 77; }
. "$top_srcdir/src/tests/xg/foreign.sh"
! foreign "$LIBRXWIRE" || exit 77

work=$(mktemp -d "${TMPDIR:-/tmp}/rxwire-python-XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' INT TERM HUP

# module FILE.xg [OPTION...]: writes the module to $work.
module() {
	(cd "$work" && "$top_builddir/src/rxwgen/rxwgen" --python "$@") || exit 1
}
