# SPDX-License-Identifier: BSD-2-Clause
# Security class 2: Kerberos tickets and fcrypt. Sources and private headers, one pair a line.

rx_sources += \
	src/rx/rxkad/fcrypt.c src/rx/rxkad/fcrypt_vbmi.c src/rx/rxkad/fcrypt.h \
	src/rx/rxkad/fcrypt_tables.h
