# SPDX-License-Identifier: BSD-2-Clause
# Statistics, the client side of rxdebug, and addresses of interfaces.

classic_headers += src/classic/rx/rx_clock.h src/classic/rx/rx_debug.h
classic_sources += \
	src/classic/watch/addresses.c \
	src/classic/watch/ask.c src/classic/watch/ask.h \
	src/classic/watch/rpcstats.c \
	src/classic/watch/rxdebug.c \
	src/classic/watch/statistics.c
