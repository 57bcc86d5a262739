# SPDX-License-Identifier: BSD-2-Clause
# Recorded packets that the tests read (RXW_TEST_SRCDIR "/vectors/NAME.json").

EXTRA_DIST += \
	src/tests/vectors/README.md \
	src/tests/vectors/packets-ack.json \
	src/tests/vectors/packets-data.json \
	src/tests/vectors/packets-jumbo.json \
	src/tests/vectors/packets-misc.json \
	src/tests/vectors/rxgk-exchanges.json \
	src/tests/vectors/rxkad-exchanges.json \
	src/tests/vectors/rxkad-primitives.json \
	src/tests/vectors/rxstats.json \
	src/tests/vectors/scenarios.json
