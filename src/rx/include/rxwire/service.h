/* SPDX-License-Identifier: BSD-2-Clause */
/* Services of a server endpoint. See rxw_service_add(3). */
#ifndef RXWIRE_SERVICE_H
#define RXWIRE_SERVICE_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Serves one call: reads the request and writes the reply with the functions of call.h, except
 * rxw_call_begin() and rxw_call_end(). Returns 0, or the code with which the call is aborted: any
 * other 32-bit number, which the library passes on and does not interpret. The client then discards
 * the reply. Check the request before writing. Runs on a thread of the library where it may block,
 * or on the receiving thread with RXW_SERVICE_INLINE; several run at the same time.
 */
typedef rxw_code (*rxw_handler_fn)(rxw_call *call, void *context);

#define RXW_SERVICE_INLINE 0x1u /* handlers never block and run on the receiving thread */
/*
 * A client must answer a PING before its call gets a worker (rx-protocol 6.7), unless its address
 * was validated within the last minute. This takes one more round trip for the first call.
 * Answers to unvalidated addresses are always limited, but other actions of handlers are not. Use
 * this flag if handlers make calls to their clients; otherwise a request with a forged source
 * address makes the server send packets to a third party.
 */
#define RXW_SERVICE_REACH 0x2u

/*
 * Calls wait for a worker until rxw_service_start(), at most `queue` of them. Not with INLINE or a
 * queue.
 */
#define RXW_SERVICE_HELD 0x4u

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_service_options {
	size_t size;
	uint16_t id;	  /* service id, 1..65535 */
	const char *name; /* for logs and statistics; copied */
	rxw_handler_fn handler;
	void *context;
	unsigned flags;	      /* RXW_SERVICE_… */
	unsigned workers_max; /* workers at the same time; 0 = no separate limit */
	unsigned idle_ms; /* replaces server_idle_ms; 0 = unchanged; RXW_TIMEOUT_OFF = no limit */
	/* classes to offer, at most 8; references are taken; NULL = the null class only */
	rxw_security *const *security;
	size_t security_count;
	/*
	 * Minimum protection of calls, enum rxw_level. Clients that request less get an error of
	 * their class. Classes without an exchange, such as the null class, have RXW_LEVEL_CLEAR;
	 * to exclude anonymous clients at that level, do not offer them.
	 */
	uint8_t level_min;
	/*
	 * With `handler` NULL: each new call is deferred (rxw_call_defer()) and reported to this
	 * queue as RXW_EVENT_CALL with `context` as arg. No thread of the library serves the calls.
	 * Calls that fail, or whose endpoint stops, before they are taken out are not reported.
	 */
	rxw_queue *queue;
	/*
	 * Deferred calls at the same time; a client may have at most eight ninths of them. Further
	 * calls to a queue are refused as busy. 0 = 65,536.
	 */
	unsigned deferred_max;
	unsigned dead_ms; /* replaces the tunable dead-ms, 1000 to 3,600,000; 0 = unchanged */
	/*
	 * Calls of the service that may wait for a worker, beside the limits of the tunable queue;
	 * further ones are refused. 0 = no limit of its own. Without effect with INLINE or a queue.
	 */
	unsigned waiting_max;
	/*
	 * Calls that are refused, since there is no room for them, are aborted with this code. 0:
	 * they get BUSY, and clients of Rx send them again by themselves.
	 */
	rxw_code busy_code;
};

/*
 * Add a service to an endpoint. It exists until rxw_service_remove(), or as long as the endpoint,
 * which owns *service; `service` may be NULL. Several endpoints may use the same handler. Errors:
 * -RXW_EINVAL, -RXW_ESTATE (the id is in use), -RXW_ENOMEM, -RXW_ELIMIT (64 per endpoint). Any
 * thread, also while the endpoint serves calls.
 */
RXW_MUST_USE
int rxw_service_add(rxw_endpoint *endpoint, const struct rxw_service_options *options,
		    rxw_service **service);

/*
 * Begin to serve the calls of a service with RXW_SERVICE_HELD. -RXW_ESTATE: it is not held.
 * -RXW_EINVAL. Any thread.
 */
int rxw_service_start(rxw_service *service);

/* Settings that rxw_service_set() changes: members of struct rxw_service_options, and RXW_SERVICE_REACH. */
enum rxw_service_setting {
	/* at once: */
	RXW_SET_WORKERS_MAX = 1, /* calls that run continue */
	RXW_SET_WAITING_MAX = 2,
	RXW_SET_BUSY_CODE = 3,
	/* for connections that begin later: */
	RXW_SET_IDLE_MS = 4,
	RXW_SET_DEAD_MS = 5,
	RXW_SET_REACH = 6 /* 0 or 1 */
};

/*
 * Change a service that exists, held or serving. -RXW_EVALUE: out of range; -RXW_EINVAL:
 * NULL, or an unknown setting. Any thread, until rxw_service_remove().
 */
int rxw_service_set(rxw_service *service, enum rxw_service_setting setting, int64_t value);

/*
 * Remove a service. New calls get RXW_INVALID_OPERATION (-2), the code for an unknown service.
 * Waits until its calls have ended and replies are acknowledged, and after limit_ms milliseconds
 * aborts the remaining ones with -2; handlers have another 250 ms to return. Then the connections
 * of the service are closed with -2, and the handle is no longer valid. Returns 0, or
 * -RXW_ETIMEDOUT if calls were aborted or a handler has not returned; data of such a handler must
 * exist until rxw_endpoint_destroy() returns. Another service may use the id afterwards.
 * -RXW_EDEADLK on a thread of the library, such as in a handler; -RXW_ESTATE: another thread is
 * removing it; -RXW_EINVAL. Any other thread, but not together with rxw_endpoint_destroy().
 */
int rxw_service_remove(rxw_service *service, unsigned limit_ms);

#ifdef __cplusplus
}
#endif
#endif
