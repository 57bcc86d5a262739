# SPDX-License-Identifier: BSD-2-Clause
# The engine of librxwire: threads, locks, timers. Modules from the lowest to the highest; each calls only
# modules listed before it (src/tests/check-calls.py).

rx_sources += \
	src/rx/engine/objects.h src/rx/engine/lock.h \
	src/rx/engine/core/alive.h \
	src/rx/engine/core/constants.c src/rx/engine/core/constants.h \
	src/rx/engine/core/refs.h src/rx/engine/core/engine.h src/rx/engine/core/refs.c \
	src/rx/engine/core/affinity.c src/rx/engine/core/affinity.h \
	src/rx/engine/core/sys.c src/rx/engine/core/sys.h \
	src/rx/engine/sched/files.c src/rx/engine/sched/files.h \
	src/rx/engine/observe/records.c src/rx/engine/observe/records.h \
	src/rx/engine/observe/ring.c src/rx/engine/observe/ring.h src/rx/engine/observe/trace.h \
	src/rx/engine/core/wheel.c src/rx/engine/core/timer.h \
	src/rx/engine/sched/deferral.c \
	src/rx/engine/sched/quick.c src/rx/engine/sched/quick.h src/rx/engine/sched/stalled.c \
	src/rx/engine/sched/workers.c src/rx/engine/sched/sched.h \
	src/rx/engine/sched/jobs.c src/rx/engine/sched/jobs.h \
	src/rx/engine/core/events.c src/rx/engine/core/events.h \
	src/rx/engine/sched/channels.c \
	src/rx/engine/sched/event_queue.c src/rx/engine/sched/queue.h \
	src/rx/engine/send/effects.c src/rx/engine/send/effects.h \
	src/rx/engine/send/batch.c src/rx/engine/send/tx.h \
	src/rx/engine/send/control_packets.c \
	src/rx/engine/send/callback.c \
	src/rx/engine/send/dispatch.c src/rx/engine/send/dispatch.h \
	src/rx/engine/send/send.c \
	src/rx/engine/receive/lifecycle.c src/rx/engine/receive/lifecycle.h \
	src/rx/engine/receive/admit.h src/rx/engine/receive/address_cookie.c \
	src/rx/engine/receive/evict.c \
	src/rx/engine/receive/slow_calls.c \
	src/rx/engine/receive/unvalidated.c \
	src/rx/engine/receive/deliver.c src/rx/engine/receive/verify.h \
	src/rx/engine/receive/authenticate.c \
	src/rx/engine/observe/rxdebug.c src/rx/engine/observe/diag.h \
	src/rx/engine/receive/batch.h src/rx/engine/receive/rx.h \
	src/rx/engine/receive/expire.c \
	src/rx/engine/receive/shared.c \
	src/rx/engine/receive/icmp.c \
	src/rx/engine/receive/lookup.c \
	src/rx/engine/receive/follow.c \
	src/rx/engine/receive/receive.c \
	src/rx/engine/receive/role.c \
	src/rx/engine/receive/fork.c src/rx/engine/receive/fork.h \
	src/rx/engine/stream/read.c src/rx/engine/stream/stream.h \
	src/rx/engine/stream/wait.c \
	src/rx/engine/stream/write.c \
	src/rx/engine/stream/serve.c src/rx/engine/stream/serve.h
