# SPDX-License-Identifier: BSD-2-Clause
# What several kinds of tests share: each list is the sources of one part.

support_test_class = src/tests/support/test_class.c src/tests/support/test_class.h
support_internals = src/tests/support/internals.c src/tests/support/internals.h $(support_test_class)
support_counters = src/tests/support/counters.h
support_host = src/tests/support/host.c src/tests/support/host.h $(support_test_class)
support_challenger = src/tests/support/challenger.c src/tests/support/challenger.h
support_constants = src/tests/support/constants.c src/tests/support/constants.h
support_asked = src/tests/support/asked.c src/tests/support/asked.h
support_asked_flags = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=aligned_alloc,--wrap=posix_memalign
