# SPDX-License-Identifier: BSD-2-Clause
# Headers that the library, the programs and libafs share; they define no symbols.

EXTRA_DIST += src/common/asleep.h src/common/background.h src/common/bytes.h src/common/cancel.h src/common/clock.h src/common/counters.h \
	src/common/cpus.h src/common/failure.h src/common/grow.h src/common/held.h src/common/histogram.h \
	src/common/htable.h src/common/near.h src/common/sigmask.h \
	src/common/siphash.h src/common/sized.h src/common/sql.h src/common/utf8.h
