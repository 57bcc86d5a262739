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
	src/rx/engine/files/files.c src/rx/engine/files/files.h \
	src/rx/engine/trace/records.c src/rx/engine/trace/records.h \
	src/rx/engine/trace/ring.c src/rx/engine/trace/ring.h src/rx/engine/trace/trace.h \
	src/rx/engine/timer/wheel.c src/rx/engine/timer/timer.h \
	src/rx/engine/sched/deferral.c \
	src/rx/engine/sched/quick.c src/rx/engine/sched/quick.h src/rx/engine/sched/stalled.c \
	src/rx/engine/sched/workers.c src/rx/engine/sched/sched.h \
	src/rx/engine/jobs/jobs.c src/rx/engine/jobs/jobs.h \
	src/rx/engine/events/events.c src/rx/engine/events/events.h \
	src/rx/engine/queue/channels.c \
	src/rx/engine/queue/event_queue.c src/rx/engine/queue/queue.h \
	src/rx/engine/effects/effects.c src/rx/engine/effects/effects.h \
	src/rx/engine/tx/batch.c src/rx/engine/tx/tx.h \
	src/rx/engine/tx/control_packets.c \
	src/rx/engine/dispatch/callback.c \
	src/rx/engine/dispatch/dispatch.c src/rx/engine/dispatch/dispatch.h \
	src/rx/engine/dispatch/send.c \
	src/rx/engine/conn/lifecycle.c src/rx/engine/conn/lifecycle.h \
	src/rx/engine/admit/admit.h src/rx/engine/admit/address_cookie.c \
	src/rx/engine/admit/evict.c \
	src/rx/engine/admit/slow_calls.c \
	src/rx/engine/admit/unvalidated.c \
	src/rx/engine/verify/deliver.c src/rx/engine/verify/verify.h \
	src/rx/engine/verify/authenticate.c \
	src/rx/engine/diag/rxdebug.c src/rx/engine/diag/diag.h \
	src/rx/engine/rx/batch.h src/rx/engine/rx/rx.h \
	src/rx/engine/rx/expire.c \
	src/rx/engine/rx/shared.c \
	src/rx/engine/rx/icmp.c \
	src/rx/engine/rx/lookup.c \
	src/rx/engine/rx/follow.c \
	src/rx/engine/rx/receive.c \
	src/rx/engine/rx/role.c \
	src/rx/engine/fork/fork.c src/rx/engine/fork/fork.h \
	src/rx/engine/stream/read.c src/rx/engine/stream/stream.h \
	src/rx/engine/stream/wait.c \
	src/rx/engine/stream/write.c \
	src/rx/engine/serve/serve.c src/rx/engine/serve/serve.h
