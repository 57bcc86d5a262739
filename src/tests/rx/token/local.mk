# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/token.

check_tests += src/tests/rx/token/test_token
