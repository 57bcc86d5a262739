# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/bench: the reports on recorded samples, the baseline programs, and the crowd on a tiny volume; nothing is
# measured.

check_scripts += src/tests/bench/ladder.sh src/tests/bench/charts.sh
EXTRA_DIST += src/tests/bench/figures.py src/tests/bench/samples.jsonl src/tests/bench/page.md

check_PROGRAMS += src/bench/raw src/bench/rawcall src/bench/long_tcp src/bench/crowd_load src/bench/crowd_raw_server
check_scripts += src/tests/bench/raw.sh src/tests/bench/rawcall.sh src/tests/bench/long.sh src/tests/bench/crowd.sh
