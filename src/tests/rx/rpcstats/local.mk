# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/rpcstats.

check_tests += src/tests/rx/rpcstats/test_rpcstats
