# SPDX-License-Identifier: BSD-2-Clause
# The protocol core of librxwire: one folder for each module, with one header.

rx_proto_sources = \
	src/rx/proto/auth/auth.h src/rx/proto/auth/challenge.c src/rx/proto/auth/null.c \
	src/rx/proto/auth/seal.c \
	src/rx/proto/call/call.h src/rx/proto/call/call_life.c src/rx/proto/call/deadline.c \
	src/rx/proto/call/call_input.c src/rx/proto/call/call_timer.c \
	src/rx/proto/conn/conn.h src/rx/proto/conn/conn.c src/rx/proto/conn/conn_auth.c \
	src/rx/proto/conn/finished_call.c src/rx/proto/conn/conn_input.c src/rx/proto/conn/move.c src/rx/proto/conn/table.c \
	src/rx/proto/conn/verified.c \
	src/rx/proto/core/core.h src/rx/proto/core/run.c \
	src/rx/proto/event/event.h src/rx/proto/event/event.c \
	src/rx/proto/output/output.h src/rx/proto/output/control.c \
	src/rx/proto/peer/peer.h src/rx/proto/peer/cookie.h src/rx/proto/peer/cookie.c src/rx/proto/peer/path.c \
	src/rx/proto/peer/peer.c src/rx/proto/peer/wide.h src/rx/proto/peer/wide.c \
	src/rx/proto/peer/table.h \
	src/rx/proto/recv/recv.h src/rx/proto/recv/ack.c src/rx/proto/recv/data.c \
	src/rx/proto/recvq/recvq.h src/rx/proto/recvq/later.c src/rx/proto/recvq/recvq.c \
	src/rx/proto/send/send.h src/rx/proto/send/pmtu.h src/rx/proto/send/ack_input.c src/rx/proto/send/loss.c \
	src/rx/proto/send/pmtu.c src/rx/proto/send/proof.c src/rx/proto/send/send_timer.c src/rx/proto/send/transmit.c \
	src/rx/proto/send/units.c \
	src/rx/proto/sendq/sendq.h src/rx/proto/sendq/repack.h src/rx/proto/sendq/sendq.c src/rx/proto/sendq/scoreboard.c \
	src/rx/proto/sent/sent.h src/rx/proto/sent/sent.c \
	src/rx/proto/slab/slab.h src/rx/proto/slab/slab.c \
	src/rx/proto/state.h src/rx/proto/state_roam.h

rx_sources += $(rx_proto_sources)
