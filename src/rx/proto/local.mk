# SPDX-License-Identifier: BSD-2-Clause
# Floor 1 of librxwire: the state machines. Sources and private headers, one pair a line.

rx_sources += \
	src/rx/proto/ack.c \
	src/rx/proto/ackinput.c \
	src/rx/proto/call.c src/rx/proto/call.h \
	src/rx/proto/callinput.c \
	src/rx/proto/calltimer.c \
	src/rx/proto/connauth.c \
	src/rx/proto/connection.c src/rx/proto/connection.h \
	src/rx/proto/conntable.c \
	src/rx/proto/control.c \
	src/rx/proto/ended.c \
	src/rx/proto/internal.h src/rx/proto/parts.h src/rx/proto/proto.h \
	src/rx/proto/peer.c src/rx/proto/peer.h \
	src/rx/proto/question.c \
	src/rx/proto/recvq.c \
	src/rx/proto/run.c \
	src/rx/proto/security.c src/rx/proto/security.h \
	src/rx/proto/security_null.c src/rx/proto/security_test.c \
	src/rx/proto/seen.h \
	src/rx/proto/sendq.c \
	src/rx/proto/slab.c src/rx/proto/slab.h \
	src/rx/proto/strangers.c \
	src/rx/proto/transmit.c
