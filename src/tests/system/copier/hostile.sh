# SPDX-License-Identifier: BSD-2-Clause
# afscp with scripted servers: hostile ones, failing ones, replicas.

command -v python3 > /dev/null || { echo "SKIP: python3 is not installed"; exit 77; }
python3 -B "$top_srcdir/src/tests/system/copier/run" --build "$top_builddir"
