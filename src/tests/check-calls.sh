#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Modules call each other in one direction only: runs check-calls.py on the objects of this build.

export LC_ALL=C
top=${top_srcdir:-$(dirname "$0")/../..}
for tool in python3 nm; do
	command -v $tool > /dev/null 2>&1 || { echo "SKIP: $tool was not found (Debian packages: python3, binutils)"; exit 77; }
done
# With link-time optimisation, objects have no code and no symbols that nm could list.
{ nm -P src/rx/base/hash.o || nm -P src/rx/base/.libs/hash.o; } 2> /dev/null | grep -q ' T ' ||
	{ echo "SKIP: the objects of this build name no functions (optimised when linking)"; exit 77; }
exec python3 -B "$top/src/tests/check-calls.py" .
