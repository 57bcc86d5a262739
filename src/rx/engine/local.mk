# SPDX-License-Identifier: BSD-2-Clause
# The engine of librxwire: threads, locks, timers, public functions. Modules from the lowest to the highest; each calls
# only modules listed before it (src/tests/check-calls.py).

rx_transport_sources += src/rx/engine/lock.h src/rx/engine/objects.h

rx_transport_sources += \
	src/rx/engine/core/alive.h \
	src/rx/engine/core/config.c \
	src/rx/engine/core/config.h \
	src/rx/engine/core/constants.h \
	src/rx/engine/core/engine.h \
	src/rx/engine/core/events.c \
	src/rx/engine/core/events.h \
	src/rx/engine/core/refs.c \
	src/rx/engine/core/refs.h \
	src/rx/engine/core/security.c \
	src/rx/engine/core/sys.c \
	src/rx/engine/core/sys.h \
	src/rx/engine/core/timer.h \
	src/rx/engine/core/wheel.c

rx_transport_sources += \
	src/rx/engine/observe/counters.c \
	src/rx/engine/observe/counters.h \
	src/rx/engine/observe/flows.c \
	src/rx/engine/observe/observe.h \
	src/rx/engine/observe/records.c \
	src/rx/engine/observe/records.h \
	src/rx/engine/observe/trace.c \
	src/rx/engine/observe/trace.h

rx_transport_sources += \
	src/rx/engine/sched/channels.c \
	src/rx/engine/sched/event_queue.c \
	src/rx/engine/sched/files.c \
	src/rx/engine/sched/files.h \
	src/rx/engine/sched/inner.h \
	src/rx/engine/sched/jobs.c \
	src/rx/engine/sched/jobs.h \
	src/rx/engine/sched/queue.h \
	src/rx/engine/sched/quick.c \
	src/rx/engine/sched/sched.h \
	src/rx/engine/sched/stalled.c \
	src/rx/engine/sched/workers.c

rx_transport_sources += \
	src/rx/engine/send/dispatch.c \
	src/rx/engine/send/effects.c \
	src/rx/engine/send/effects.h \
	src/rx/engine/send/send.c \
	src/rx/engine/send/tx.h

rx_transport_sources += \
	src/rx/engine/receive/admit.h \
	src/rx/engine/receive/batch.h \
	src/rx/engine/receive/connection.c \
	src/rx/engine/receive/deliver.c \
	src/rx/engine/receive/evict.c \
	src/rx/engine/receive/follow.c \
	src/rx/engine/receive/lifecycle.c \
	src/rx/engine/receive/lifecycle.h \
	src/rx/engine/receive/lookup.c \
	src/rx/engine/receive/receive.c \
	src/rx/engine/receive/role.c \
	src/rx/engine/receive/rx.h \
	src/rx/engine/receive/rxdebug.c \
	src/rx/engine/receive/services.c \
	src/rx/engine/receive/shared.c \
	src/rx/engine/receive/unvalidated.c

rx_transport_sources += \
	src/rx/engine/stream/calls.c \
	src/rx/engine/stream/connpool.c \
	src/rx/engine/stream/observer.h \
	src/rx/engine/stream/read.c \
	src/rx/engine/stream/stream.h \
	src/rx/engine/stream/transfer.c \
	src/rx/engine/stream/wait.c \
	src/rx/engine/stream/write.c

rx_transport_sources += \
	src/rx/engine/public/endpoint.c \
	src/rx/engine/public/engine.c \
	src/rx/engine/public/stats.c

rx_public_headers += \
	src/rx/include/rxwire/call.h \
	src/rx/include/rxwire/config.h \
	src/rx/include/rxwire/connection.h \
	src/rx/include/rxwire/endpoint.h \
	src/rx/include/rxwire/engine.h \
	src/rx/include/rxwire/error.h \
	src/rx/include/rxwire/file.h \
	src/rx/include/rxwire/observe.h \
	src/rx/include/rxwire/connpool.h \
	src/rx/include/rxwire/queue.h \
	src/rx/include/rxwire/afs.h \
	src/rx/include/rxwire/coder.h \
	src/rx/include/rxwire/rpc.h \
	src/rx/include/rxwire/stub.h \
	src/rx/include/rxwire/rxwire.h \
	src/rx/include/rxwire/security.h \
	src/rx/include/rxwire/service.h \
	src/rx/include/rxwire/stats.h \
	src/rx/include/rxwire/trace.h \
	src/rx/include/rxwire/types.h \
	src/rx/include/rxwire/xdr.h

dist_man_MANS += doc/man/rxw_trace.3
