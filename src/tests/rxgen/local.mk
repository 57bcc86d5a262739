# SPDX-License-Identifier: BSD-2-Clause
# Tests of rxwgen: invalid input, the program, random interfaces, the front end.

check_scripts += \
	src/tests/rxgen/bad.sh src/tests/rxgen/json.sh src/tests/rxgen/program.sh src/tests/rxgen/random.sh
EXTRA_DIST += src/tests/rxgen/bad src/tests/rxgen/interface.py src/tests/rxgen/json_check.py

check_tests += src/tests/rxgen/test_read
src_tests_rxgen_test_read_LDADD = src/rxgen/librxgen.la $(CHECK_LIBS) $(PTHREAD_LIBS)

# Output of rxwgen, compared with reviewed files. golden.sh --accept updates them.

check_scripts += src/tests/rxgen/golden.sh src/tests/rxgen/layout.sh
check_tests += src/tests/rxgen/test_write
src_tests_rxgen_test_write_LDADD = src/rxgen/librxgen.la $(CHECK_LIBS) $(PTHREAD_LIBS)
src_tests_rxgen_test_write_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup

EXTRA_DIST += \
	src/tests/rxgen/golden/calls.xg src/tests/rxgen/golden/dense.xg \
	src/tests/rxgen/golden/shared.xg src/tests/rxgen/golden/values.xg \
	src/tests/rxgen/golden/calls.golden src/tests/rxgen/golden/dense.golden \
	src/tests/rxgen/golden/shared.golden src/tests/rxgen/golden/values.golden
