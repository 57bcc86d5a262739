# SPDX-License-Identifier: BSD-2-Clause
# Floor 5 of librxwire: what generated stubs stand on. Sources and private headers, one pair a line.

rx_sources += \
	src/rx/rpc/multi.c \
	src/rx/rpc/procedure.c src/rx/rpc/refusal.h \
	src/rx/rpc/window.c
