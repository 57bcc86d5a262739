# SPDX-License-Identifier: BSD-2-Clause
# Tests of rxwgen: invalid input, the program, random interfaces, the front end.

check_scripts += \
	src/tests/rxgen/bad.sh src/tests/rxgen/json.sh src/tests/rxgen/program.sh src/tests/rxgen/random.sh
EXTRA_DIST += src/tests/rxgen/bad src/tests/rxgen/interface.py src/tests/rxgen/json_check.py

check_tests += src/tests/rxgen/test_read
src_tests_rxgen_test_read_LDADD = src/rxgen/librxgen.la $(CHECK_LIBS) $(PTHREAD_LIBS)

include src/tests/rxgen/golden/local.mk
