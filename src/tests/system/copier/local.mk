# SPDX-License-Identifier: BSD-2-Clause
# afscp with a scripted cell, see run and cell.py; the packet formats are those of ../conformance/wire.py.

check_scripts += src/tests/system/copier/hostile.sh
EXTRA_DIST += src/tests/system/copier/cell.py src/tests/system/copier/run
