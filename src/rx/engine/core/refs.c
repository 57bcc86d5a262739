/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference counts of connections, calls and security classes. conn/lifecycle.c frees the first
 * two.
 */
#include <stdlib.h>

#include "engine/objects.h"

void rxw_conn_ref(struct rxw_connection *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void rxw_conn_unref(struct rxw_connection *c)
{
	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
		c->ep->upcalls->free_connection(c);
}

void rxw_call_ref(struct rxw_call *call)
{
	atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
}

void rxw_call_unref(struct rxw_call *call)
{
	if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) == 1)
		call->conn->ep->upcalls->free_call(call);
}

rxw_security *rxw_security_ref(rxw_security *security)
{
	if (security && atomic_load_explicit(&security->refs, memory_order_relaxed))
		atomic_fetch_add_explicit(&security->refs, 1, memory_order_relaxed);
	return security;
}

void rxw_security_unref(rxw_security *security)
{
	/* Static classes have a count of 0 and are never freed. */
	if (!security || !atomic_load_explicit(&security->refs, memory_order_relaxed) ||
	    atomic_fetch_sub(&security->refs, 1) != 1)
		return;
	if (security->class.destroy)
		security->class.destroy(security->data);
	free(security);
}
