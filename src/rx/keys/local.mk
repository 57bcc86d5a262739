# SPDX-License-Identifier: BSD-2-Clause
# Service keys: key files, keytabs, and memory for secrets. Each source with its private header.

rx_sources += \
	src/rx/keys/file.c \
	src/rx/keys/keys.c src/rx/keys/keys.h \
	src/rx/keys/keytab.c \
	src/rx/keys/load.c

rx_public_headers += \
	src/rx/include/rxwire/keys.h
