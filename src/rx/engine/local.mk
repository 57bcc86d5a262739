# SPDX-License-Identifier: BSD-2-Clause
# Floor 3 of librxwire: threads, locks, timers. Sources and private headers, one pair a line.

rx_sources += \
	src/rx/engine/inspect.c
