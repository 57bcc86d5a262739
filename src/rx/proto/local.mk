# SPDX-License-Identifier: BSD-2-Clause
# The protocol core of librxwire: one folder for each module.

rx_proto_sources = \
	src/rx/proto/state.h \
	src/rx/proto/peer/auth.h src/rx/proto/peer/challenge.c src/rx/proto/peer/seal.c \
	src/rx/proto/peer/core.h src/rx/proto/peer/run.c src/rx/proto/peer/event.h \
	src/rx/proto/peer/output.h src/rx/proto/peer/control.c \
	src/rx/proto/peer/peer.h src/rx/proto/peer/peer.c src/rx/proto/peer/path.c \
	src/rx/proto/peer/slab.h src/rx/proto/peer/slab.c \
	src/rx/proto/peer/validation.h src/rx/proto/peer/validation.c \
	src/rx/proto/peer/wide.h src/rx/proto/peer/wide.c \
	src/rx/proto/recv/recv.h src/rx/proto/recv/ack.c \
	src/rx/proto/recv/recvq.h src/rx/proto/recv/recvq.c \
	src/rx/proto/send/send.h src/rx/proto/send/ack_input.c src/rx/proto/send/loss.c src/rx/proto/send/proof.c \
	src/rx/proto/send/send_timer.c src/rx/proto/send/transmit.c \
	src/rx/proto/send/pmtu.h src/rx/proto/send/pmtu.c src/rx/proto/send/units.c \
	src/rx/proto/send/sendq.h src/rx/proto/send/sendq.c src/rx/proto/send/sent.h src/rx/proto/send/sent.c \
	src/rx/proto/conn/call.h src/rx/proto/conn/call_input.c src/rx/proto/conn/call_life.c \
	src/rx/proto/conn/call_timer.c src/rx/proto/conn/finished_call.c \
	src/rx/proto/conn/conn.h src/rx/proto/conn/conn.c src/rx/proto/conn/conn_auth.c \
	src/rx/proto/conn/conn_input.c src/rx/proto/conn/move.c src/rx/proto/conn/table.c

rx_transport_sources += $(rx_proto_sources)
