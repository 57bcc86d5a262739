# SPDX-License-Identifier: BSD-2-Clause
# Service keys and tokens, for the classes that need them. Sources and private headers, one pair a line.

rx_sources += \
	src/rx/keys/advice.c src/rx/keys/advice.h \
	src/rx/keys/file.c src/rx/keys/file.h \
	src/rx/keys/keys.c src/rx/keys/keys.h \
	src/rx/keys/keytab.c \
	src/rx/keys/load.c \
	src/rx/keys/negotiated.c src/rx/keys/negotiated.h \
	src/rx/keys/secret.c src/rx/keys/secret.h \
	src/rx/keys/ticket.c src/rx/keys/ticket.h \
	src/rx/keys/token.c

rx_public_headers += \
	src/rx/rxwire/keys.h \
	src/rx/rxwire/token.h
