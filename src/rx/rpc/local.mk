# SPDX-License-Identifier: BSD-2-Clause
# The RPC layer of librxwire: the runtime of generated stubs. Each source with its private header.

rx_sources += \
	src/rx/rpc/multi.c \
	src/rx/rpc/procedure.c src/rx/rpc/refusal.h \
	src/rx/rpc/window.c
