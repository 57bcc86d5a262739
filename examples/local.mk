# SPDX-License-Identifier: BSD-2-Clause
# The examples are not part of the build: `make installcheck` builds them against the installed copy.

example_sources =

EXTRA_DIST += $(example_sources) src/tests/check-examples.sh
