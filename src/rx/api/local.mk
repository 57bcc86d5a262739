# SPDX-License-Identifier: BSD-2-Clause
# Floor 4 of librxwire: the public interface. Sources and private headers, one pair a line.

rx_sources += \
	src/rx/api/calls.c \
	src/rx/api/config.c src/rx/api/config.h \
	src/rx/api/connection.c \
	src/rx/api/counters.c src/rx/api/counters.h \
	src/rx/api/endpoint.c \
	src/rx/api/engine.c \
	src/rx/api/transfer.c \
	src/rx/api/flows.c src/rx/api/flows.h \
	src/rx/api/observer.c src/rx/api/observer.h \
	src/rx/api/connpool.c \
	src/rx/api/queues.c \
	src/rx/api/security.c \
	src/rx/api/services.c \
	src/rx/api/settings.c src/rx/api/settings.h \
	src/rx/api/stats.c \
	src/rx/api/trace.c

rx_public_headers += \
	src/rx/rxwire/call.h \
	src/rx/rxwire/config.h \
	src/rx/rxwire/connection.h \
	src/rx/rxwire/endpoint.h \
	src/rx/rxwire/engine.h \
	src/rx/rxwire/error.h \
	src/rx/rxwire/file.h \
	src/rx/rxwire/observe.h \
	src/rx/rxwire/connpool.h \
	src/rx/rxwire/queue.h \
	src/rx/rxwire/afs.h \
	src/rx/rxwire/coder.h \
	src/rx/rxwire/rpc.h \
	src/rx/rxwire/stub.h \
	src/rx/rxwire/rxwire.h \
	src/rx/rxwire/security.h \
	src/rx/rxwire/service.h \
	src/rx/rxwire/stats.h \
	src/rx/rxwire/trace.h \
	src/rx/rxwire/types.h \
	src/rx/rxwire/xdr.h

dist_man_MANS += doc/man/rxw_trace.3
