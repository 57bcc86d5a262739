/* SPDX-License-Identifier: BSD-2-Clause */
/* The constants of every endpoint of an application. */
#include "engine/core/constants.h"

const struct rxw_constants rxw_constants = {
	.batch = 32,
	.spin_us = 100,
	.coalesce_us = 30,
	.refusal_us = 1000,
	.writer_receives = true,
	.call_memory = 2u << 20,
	/*
	 * The queued data of a call stay within two windows of 255 packets and 4 KiB: one window
	 * is in flight, and one is ready when an ACK opens the next.
	 */
	.sendq_packets = 420,
	.abort_rate = 50,
	.answer_rate = 50,
	.unvalidated_max = 8192,
	.reserved_peers = 2,
	.queue_burst_ms = 100,
	.waiters_max = 256,
	.inline_us = 500,
};
