# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/bench: the reports on recorded samples, and the baseline programs; nothing is measured.

check_scripts += src/tests/bench/ladder.sh src/tests/bench/charts.sh
EXTRA_DIST += src/tests/bench/figures.py src/tests/bench/samples.jsonl src/tests/bench/page.md

check_PROGRAMS += src/bench/raw src/bench/rawcall src/bench/long_tcp
check_scripts += src/tests/bench/raw.sh src/tests/bench/rawcall.sh src/tests/bench/long.sh
