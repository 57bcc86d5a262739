# SPDX-License-Identifier: BSD-2-Clause
# Floor 3 of librxwire: threads, locks, timers. Sources and private headers, one pair a line.

rx_sources += \
	src/rx/engine/actions.c \
	src/rx/engine/callbacks.c \
	src/rx/engine/clock.c \
	src/rx/engine/errors.c \
	src/rx/engine/idle.c \
	src/rx/engine/inspect.c \
	src/rx/engine/internal.h \
	src/rx/engine/listener.c src/rx/engine/batch.h \
	src/rx/engine/lock.h \
	src/rx/engine/objects.c \
	src/rx/engine/question.c \
	src/rx/engine/receive.c \
	src/rx/engine/shard.c \
	src/rx/engine/timer.c \
	src/rx/engine/trace.c src/rx/engine/trace.h src/rx/engine/tracering.h \
	src/rx/engine/tracedead.c \
	src/rx/engine/tracefile.c src/rx/engine/tracefile.h \
	src/rx/engine/transmit.c \
	src/rx/engine/unproven.c \
	src/rx/engine/verify.c src/rx/engine/verify.h \
	src/rx/engine/waiting.c \
	src/rx/engine/worker.c
