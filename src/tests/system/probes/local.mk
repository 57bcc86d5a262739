# SPDX-License-Identifier: BSD-2-Clause
# Static probes: their manual page, their notes in the library, scripts that use them.

check_scripts += src/tests/system/probes/notes.sh
check_scripts += src/tests/system/probes/scripts.sh
