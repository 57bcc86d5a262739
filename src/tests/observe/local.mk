# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/observe. src/tests/system/trace has those of the trace files.

check_tests += src/tests/observe/test_metrics
src_tests_observe_test_metrics_LDADD = $(harness_libs)
