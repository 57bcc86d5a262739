# SPDX-License-Identifier: BSD-2-Clause
client_sources += \
	src/client/cell/cell.h \
	src/client/cell/cellfile.c \
	src/client/cell/cells.c \
	src/client/cell/cells.h \
	src/client/cell/dns.c
