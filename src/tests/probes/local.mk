# SPDX-License-Identifier: BSD-2-Clause
# Static probes: their manual page, their notes in the library, scripts that use them.

check_scripts += src/tests/probes/notes.sh
check_scripts += src/tests/probes/scripts.sh
