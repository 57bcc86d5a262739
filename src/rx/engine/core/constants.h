/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constants of an endpoint. Applications cannot change them; tests can, with
 * rxw_endpoint_create_with(). doc/notes/mechanisms.md has measurements.
 */
#ifndef RXW_ENGINE_CONSTANTS_H
#define RXW_ENGINE_CONSTANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/endpoint.h>

struct rxw_constants {
	unsigned batch; /* messages per receive or send system call, 1..64 */

	/* receive: microseconds; 0 = none */
	unsigned spin_us;	/* a caller that receives for itself polls before it sleeps */
	unsigned coalesce_us;	/* a caller that receives bulk data delays its next receive call */
	unsigned refusal_us;	/* delay of an overloaded server's listener */
	bool writer_receives;	/* the handler of a server's only call receives its own ACKs */


	/* memory */
	size_t call_memory;	/* bytes of received data queued by one call */
	unsigned sendq_packets; /* packets in a send queue before its writer waits */

	/* unvalidated peers (rx-protocol 12.3) */
	unsigned abort_rate;	       /* ABORT packets per second */
	unsigned answer_rate;	       /* VERSION and DEBUG answers per second */
	unsigned unvalidated_max;      /* connections of all of them */

	/* workers */
	unsigned reserved_peers; /* kept for peers that have no call in progress; 0 = no shares */
	unsigned queue_burst_ms; /* a queue that never ran empty in this time is limited; 0 = never */
	unsigned waiters_max;	 /* blocked workers that workers_max does not count; 0 = none */
	unsigned inline_us;	 /* run time of an inline handler; 0 = no limit */

	/* tests: faults in socket operations (io/faults.h); NULL = none */
	const struct rxw_io_faults *faults;
	/* tests: 0 steers by connection id, 1 by address, 2 never to the connection's socket */
	int steer;
};

extern const struct rxw_constants rxw_constants;

/* As rxw_endpoint_create(), with other constants, which are copied except for `faults`. */
int rxw_endpoint_create_with(rxw_engine *engine, const struct rxw_endpoint_options *options,
			     const struct rxw_constants *constants, rxw_endpoint **endpoint);

#endif
