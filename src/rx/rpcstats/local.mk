# SPDX-License-Identifier: BSD-2-Clause
# Statistics of procedure calls, on top of the RPC layer. Each source with its private header.

rx_sources += \
	src/rx/rpcstats/rpcstats.c src/rx/rpcstats/private.h \
	src/rx/rpcstats/stats_service.c

rx_public_headers += \
	src/rx/include/rxwire/rpcstats.h
