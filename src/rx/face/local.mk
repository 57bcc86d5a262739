# SPDX-License-Identifier: BSD-2-Clause
# Floor 4 of librxwire: the public interface. Sources and private headers, one pair a line.

rx_sources += \
	src/rx/face/call.c \
	src/rx/face/config.c src/rx/face/config.h \
	src/rx/face/connection.c \
	src/rx/face/endpoint.c \
	src/rx/face/engine.c \
	src/rx/face/metrics.c \
	src/rx/face/observer.c src/rx/face/observer.h \
	src/rx/face/security.c \
	src/rx/face/service.c \
	src/rx/face/stats.c \
	src/rx/face/trace.c

rx_public_headers += \
	src/rx/rxwire/call.h \
	src/rx/rxwire/config.h \
	src/rx/rxwire/endpoint.h \
	src/rx/rxwire/engine.h \
	src/rx/rxwire/error.h \
	src/rx/rxwire/metrics.h \
	src/rx/rxwire/rpc.h \
	src/rx/rxwire/rxwire.h \
	src/rx/rxwire/security.h \
	src/rx/rxwire/service.h \
	src/rx/rxwire/stats.h \
	src/rx/rxwire/trace.h \
	src/rx/rxwire/types.h \
	src/rx/rxwire/xdr.h

dist_man_MANS += doc/man/rxw_trace.3
