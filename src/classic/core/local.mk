# SPDX-License-Identifier: BSD-2-Clause
# The engine, services, connections, calls and streams.

classic_headers += \
	src/classic/rx/rx.h src/classic/rx/rx_event.h src/classic/rx/rx_globals.h \
	src/classic/rx/rx_multi.h src/classic/rx/rx_null.h src/classic/rx/rx_packet.h src/classic/rx/rxkad_convert.h src/classic/rx/rx_prototypes.h \
	src/classic/rx/rx_pthread.h src/classic/rx/rx_types.h src/classic/rx/rx_user.h
classic_sources += \
	src/classic/core/calls.c src/classic/core/clients.c src/classic/core/connections.c src/classic/core/core.h \
	src/classic/core/multi.c src/classic/core/services.c src/classic/core/start.c src/classic/core/streams.c \
	src/classic/core/values.c
