# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/bench: what is made of recorded samples, and that the yardsticks work; nothing
# is measured.

check_scripts += src/tests/bench/ladder.sh src/tests/bench/charts.sh
EXTRA_DIST += src/tests/bench/figures.py src/tests/bench/samples.jsonl src/tests/bench/page.md

check_PROGRAMS += src/bench/raw src/bench/rawcall
check_scripts += src/tests/bench/raw.sh src/tests/bench/rawcall.sh
