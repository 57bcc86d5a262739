/* SPDX-License-Identifier: BSD-2-Clause */
/* Services: what a server offers, and the workers that serve it. */
#ifndef RXWIRE_SERVICE_H
#define RXWIRE_SERVICE_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Serve one call: read the request, write the reply with the functions of call.h (all but begin and
 * end), return 0 or the code of the ABORT. Output must not be written before the request is read
 * and judged: a code after output voids it.
 */
typedef int32_t (*rxw_handler_fn)(rxw_call *call, void *context);

#define RXW_SERVICE_INLINE 0x1u /* handlers never block: they run on the thread that received */
#define RXW_SERVICE_REACH 0x2u /* a client must prove its address before it gets a worker (6.7) */

/* Zero, set `size`, then fill. */
struct rxw_service_options {
	size_t size;
	uint16_t id;               /* service id, 1..65535 */
	const char *name;          /* for logs and statistics; copied */
	rxw_handler_fn handler;
	void *context;
	unsigned flags;            /* RXW_SERVICE_… */
	unsigned workers_max;      /* at most so many workers at a time; 0 = no limit of its own */
	unsigned idle_ms;          /* overrides server_idle_ms; 0 = leave */
	rxw_security *const *security; /* classes offered; NULL = the null class alone */
	size_t security_count;
};

/*
 * Offer a service on an endpoint. Lives as long as the endpoint. Several endpoints may offer the
 * same handler. Errors: -RXW_EINVAL, -RXW_ESTATE (id taken), -RXW_ENOMEM, -RXW_ELIMIT (16 per
 * endpoint).
 */
int rxw_service_add(rxw_endpoint *endpoint, const struct rxw_service_options *options,
		    rxw_service **service);

#ifdef __cplusplus
}
#endif
#endif
