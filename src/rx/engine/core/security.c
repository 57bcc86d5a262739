/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of security classes: creation and identities. */
#include <stdlib.h>
#include <string.h>

#include "common/sized.h"
#include "engine/objects.h"
#include "engine/lock.h"

/*
 * A class that seals but does not verify, or has one side of an exchange only, is incomplete: no
 * peer could talk to it.
 */
static bool class_is_complete(const struct rxw_security_class *k)
{
	return !k->seal == !k->verify && !k->challenge == !k->check_response;
}

__attribute__((cold)) int rxw_security_create(const struct rxw_security_class *klass, void *data,
					      rxw_security **security)
{
	struct rxw_security *s;

	if (!klass || !security)
		return -RXW_EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -RXW_ENOMEM;
	if (!sized_read(&s->class, sizeof(s->class), klass) || !class_is_complete(&s->class)) {
		free(s);
		return -RXW_EINVAL;
	}
	if (!s->class.name)
		s->class.name = "";
	s->data = data;
	atomic_init(&s->refs, 1);
	*security = s;
	return 0;
}

void *rxw_security_data(const rxw_security *security, void (*destroy)(void *data))
{
	return security && destroy && security->class.destroy == destroy ? security->data : NULL;
}

rxw_security *rxw_security_null(void)
{
	return &rxw_security_null_class;
}

static int identity_of(struct rxw_connection *c, struct rxw_identity *identity)
{
	const struct rxw_security_class *k = &c->p.auth.security->class;
	struct rxw_identity i = {.size = sizeof(i)};
	bool known, failed;

	if (!sized_valid(identity))
		return -RXW_EINVAL;
	if (rxw_conn_inherited(c))
		return -RXW_ESTATE;
	rxw_conn_lock(c);
	known = rxw_pconn_authenticated(&c->p);
	/* A client's connection that failed may have been refused by the server. */
	failed = c->p.error && (c->p.client || !known);
	rxw_conn_unlock(c);
	if (failed)
		return -RXW_ECALL;
	if (!known)
		return -RXW_ESTATE;
	i.index = k->index;
	i.expires = INT64_MAX;
	if (k->identity && k->identity(c->p.auth.sec, &i)) {
		memset(&i, 0, sizeof(i));
		i.index = k->index;
		i.expires = INT64_MAX;
	}
	sized_write(identity, &i, sizeof(i));
	return 0;
}

int rxw_call_identity(const rxw_call *call, struct rxw_identity *identity)
{
	return call ? identity_of(call->conn, identity) : -RXW_EINVAL;
}

int rxw_connection_identity(const rxw_connection *connection, struct rxw_identity *identity)
{
	return connection ? identity_of((struct rxw_connection *)(uintptr_t)connection, identity)
			  : -RXW_EINVAL;
}
