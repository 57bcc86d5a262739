# SPDX-License-Identifier: BSD-2-Clause
# Tests of rxwgen: invalid input, the program, random interfaces, the front end.

check_scripts += \
	src/tests/rxwgen/bad.sh src/tests/rxwgen/json.sh src/tests/rxwgen/program.sh src/tests/rxwgen/random.sh
EXTRA_DIST += src/tests/rxwgen/bad src/tests/rxwgen/interface.py src/tests/rxwgen/json_check.py

check_tests += src/tests/rxwgen/test_read
src_tests_rxwgen_test_read_LDADD = src/rxwgen/librxwgen.la $(CHECK_LIBS) $(PTHREAD_LIBS)

# Output of rxwgen, compared with reviewed files. golden.sh --accept updates them.

check_scripts += src/tests/rxwgen/golden.sh src/tests/rxwgen/layout.sh
check_tests += src/tests/rxwgen/test_write
src_tests_rxwgen_test_write_LDADD = src/rxwgen/librxwgen.la $(CHECK_LIBS) $(PTHREAD_LIBS)
src_tests_rxwgen_test_write_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup

EXTRA_DIST += \
	src/tests/rxwgen/golden/calls.xg src/tests/rxwgen/golden/dense.xg \
	src/tests/rxwgen/golden/pooled.xg src/tests/rxwgen/golden/pooled.golden \
	src/tests/rxwgen/golden/shared.xg src/tests/rxwgen/golden/values.xg \
	src/tests/rxwgen/golden/calls.golden src/tests/rxwgen/golden/dense.golden \
	src/tests/rxwgen/golden/shared.golden src/tests/rxwgen/golden/values.golden
