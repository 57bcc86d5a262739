# SPDX-License-Identifier: BSD-2-Clause
# The base layer of librxwire: arithmetic, bytes, formats. Each source with its private header.

rx_base_sources = \
	src/rx/base/addr.c src/rx/base/addr.h \
	src/rx/base/ascii.h \
	src/rx/base/assert.c src/rx/base/assert.h \
	src/rx/base/bitmap.c src/rx/base/bitmap.h \
	src/rx/base/buf.c src/rx/base/buf.h \
	src/rx/base/cc.c src/rx/base/cc.h src/rx/base/cc_rate.c \
	src/rx/base/debugfmt.c src/rx/base/debugfmt.h \
	src/rx/base/error.c \
	src/rx/base/hash.c src/rx/base/hash.h \
	src/rx/base/measure.c src/rx/base/measure.h \
	src/rx/base/path_probe.c src/rx/base/path_probe.h \
	src/rx/base/rtt.c src/rx/base/rtt.h \
	src/rx/base/wire.c src/rx/base/wire.h src/rx/base/wire_ack.h \
	src/rx/base/xdr.c

rx_transport_sources += $(rx_base_sources)
