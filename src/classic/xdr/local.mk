# SPDX-License-Identifier: BSD-2-Clause
# XDR coders with the interface of classic Rx; identities and opaque values.

classic_headers += \
	src/classic/rx/xdr.h src/classic/rx/xdr_prototypes.h src/classic/rx/rx_atomic.h src/classic/rx/rx_identity.h \
	src/classic/rx/rx_opaque.h src/classic/rx/rx_queue.h
classic_sources += \
	src/classic/xdr/bytes.c src/classic/xdr/call.c src/classic/xdr/identity.c src/classic/xdr/length.c \
	src/classic/xdr/memory.c src/classic/xdr/numbers.c src/classic/xdr/opaque.c src/classic/xdr/room.c \
	src/classic/xdr/room.h src/classic/xdr/values.c
