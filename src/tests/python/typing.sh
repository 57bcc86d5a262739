#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Annotations of generated modules and of the package: typing.get_type_hints(), mypy --strict where it is installed, and
# the package as pip sees it.

. "$(dirname "$0")/lib.sh"
modules=
for file in "$top_srcdir"/src/afs/*.xg "$top_srcdir"/src/tests/xg/all-types.xg "$top_srcdir"/examples/python/*.xg; do
	module "$file"
	name=$(basename "$file" .xg)
	modules="$modules $(echo "$name" | tr - _)"
done
cd "$work" || exit 99
# shellcheck disable=SC2086 # a list
python3 "$here/typing_check.py" "$top_srcdir" $modules || exit 1
command -v mypy > /dev/null || { echo 'note: mypy is not installed'; exit 0; }
mkdir programs
cp "$top_srcdir"/examples/python/*.py programs/
for name in $modules; do
	set -- "$@" "$name.py"
done
MYPYPATH=$PYTHONPATH mypy --strict --python-version 3.11 --cache-dir "$work/cache" "$@" || exit 1
MYPYPATH=$PYTHONPATH mypy --strict --python-version 3.11 --cache-dir "$work/cache" -p rxafs || exit 1
MYPYPATH=$PYTHONPATH:$work mypy --python-version 3.11 --cache-dir "$work/cache" programs/*.py || exit 1
