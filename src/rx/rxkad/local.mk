# SPDX-License-Identifier: BSD-2-Clause
# Security class 2: Kerberos tickets and fcrypt. Each source with its private header.

rx_public_headers += src/rx/include/rxwire/rxkad.h

rx_sources += \
	src/rx/rxkad/rxkad_class.c src/rx/rxkad/rxkad_conn.h \
	src/rx/rxkad/derive.c src/rx/rxkad/derive.h \
	src/rx/rxkad/rxkad_exchange.c src/rx/rxkad/rxkad_packet.c \
	src/rx/rxkad/fcrypt.c src/rx/rxkad/fcrypt.h \
	src/rx/rxkad/ticket.c src/rx/rxkad/ticket.h \
	src/rx/rxkad/print_token.c
