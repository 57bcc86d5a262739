# SPDX-License-Identifier: BSD-2-Clause
# Tokens of clients, of whatever security class. Each source with its private header.

rx_sources += \
	src/rx/token/cell_ticket.c src/rx/token/cell_ticket.h \
	src/rx/token/token.c

rx_public_headers += \
	src/rx/include/rxwire/token.h
