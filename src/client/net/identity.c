/* SPDX-License-Identifier: BSD-2-Clause */
/* Identities: a user, and his token for each cell. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "client/net/server.h"

#define CELLS_MOST 64u /* with a token, of one identity */

struct cl_identity {
	struct cl_net *net;
	void *owner;
	bool kept; /* its token is, or was, that of another one */
	_Atomic unsigned refs;
	pthread_mutex_t lock; /* covers the members below */
	struct {
		uint32_t cell;
		struct cl_credential *credential;
	} tokens[CELLS_MOST];
	unsigned count;
};

struct cl_identity *cl_identity_create(struct cl_net *net, void *owner)
{
	struct cl_identity *identity = calloc(1, sizeof(*identity));

	if (!identity)
		return NULL;
	identity->net = net;
	identity->owner = owner;
	atomic_init(&identity->refs, 1);
	pthread_mutex_init(&identity->lock, NULL);
	return identity;
}

void *cl_identity_owner(const struct cl_identity *identity)
{
	return identity->owner;
}

struct cl_identity *cl_identity_ref(struct cl_identity *identity)
{
	if (identity)
		atomic_fetch_add(&identity->refs, 1);
	return identity;
}

void cl_credential_unref(struct cl_credential *credential)
{
	if (!credential || atomic_fetch_sub(&credential->refs, 1) != 1)
		return;
	rxw_security_unref(credential->security);
	free(credential);
}

/* Connections with this token are not used any more. */
static void retire_credential(struct cl_net *net, struct cl_credential *credential)
{
	struct cl_server *server;

	if (!credential)
		return;
	for (uint32_t i = 1; (server = cl_server_at(net, i)); i++)
		cl_server_drop_lanes(server, credential);
	cl_credential_unref(credential);
}

void cl_identity_unref(struct cl_identity *identity)
{
	if (!identity || atomic_fetch_sub(&identity->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < identity->count; i++)
		if (identity->kept)
			cl_credential_unref(identity->tokens[i].credential);
		else
			retire_credential(identity->net, identity->tokens[i].credential);
	pthread_mutex_destroy(&identity->lock);
	free(identity);
}

/* The token for a cell, or NULL. */
static struct cl_credential *find_credential(const struct cl_identity *identity, uint32_t cell)
{
	for (unsigned i = 0; i < identity->count; i++)
		if (identity->tokens[i].cell == cell)
			return identity->tokens[i].credential;
	return NULL;
}

struct cl_credential *cl_identity_credential(struct cl_identity *identity, uint32_t cell)
{
	struct cl_credential *credential;

	if (!identity)
		return NULL;
	pthread_mutex_lock(&identity->lock);
	credential = find_credential(identity, cell);
	if (credential)
		atomic_fetch_add(&credential->refs, 1);
	pthread_mutex_unlock(&identity->lock);
	return credential;
}

struct cl_identity *cl_identity_keep(struct cl_identity *identity, uint32_t cell)
{
	struct cl_identity *kept = cl_identity_create(identity->net, identity->owner);

	if (!kept)
		return NULL;
	kept->kept = true;
	kept->tokens[0].cell = cell;
	kept->tokens[0].credential = cl_identity_credential(identity, cell);
	kept->count = 1;
	return kept;
}

bool cl_credential_expired(const struct cl_credential *credential)
{
	return atomic_load(&credential->refused) ||
	       (credential->expires != INT64_MAX && wall_ns() / NS_PER_S >= credential->expires);
}

uint32_t cl_identity_number(struct cl_identity *identity, uint32_t cell)
{
	struct cl_credential *c = cl_identity_credential(identity, cell);
	uint32_t number = c && !cl_credential_expired(c) ? c->number : 0;

	cl_credential_unref(c);
	return number;
}

bool cl_identity_expired(struct cl_identity *identity, uint32_t cell)
{
	struct cl_credential *c = cl_identity_credential(identity, cell);
	bool expired = c && cl_credential_expired(c);

	cl_credential_unref(c);
	return expired;
}

int64_t cl_identity_expires(struct cl_identity *identity, const struct cl_cell *cell)
{
	struct cl_credential *c = cl_identity_credential(identity, cl_cell_number(cell));
	int64_t expires = !c ? 0 : cl_credential_expired(c) ? 1 : c->expires;

	cl_credential_unref(c);
	return expires;
}

/* Put a credential in the place of the one for a cell, which is returned. False: too many cells. */
static bool exchange_credential(struct cl_identity *identity, uint32_t cell, bool same,
				struct cl_credential *credential, struct cl_credential **old)
{
	unsigned i = 0;

	assert(mutex_is_held(&identity->lock));
	while (i < identity->count && identity->tokens[i].cell != cell)
		i++;
	*old = NULL;
	if (i == CELLS_MOST)
		return false;
	if (i == identity->count) {
		identity->tokens[i].cell = cell;
		identity->count++;
	} else {
		*old = identity->tokens[i].credential;
	}
	/* Caches know the user by this number. */
	if (credential && *old && same)
		credential->number = (*old)->number;
	identity->tokens[i].credential = credential;
	return true;
}

static uint32_t take_identity_number(struct cl_net *net)
{
	uint32_t number;

	pthread_mutex_lock(&net->table_lock);
	number = ++net->last_identity;
	pthread_mutex_unlock(&net->table_lock);
	return number;
}

int cl_identity_set_token(struct cl_identity *identity, const struct cl_cell *cell,
			  rxw_security *security, int64_t expires, bool same)
{
	struct cl_credential *credential = NULL, *old;
	bool done;

	if (security) {
		credential = calloc(1, sizeof(*credential));
		if (!credential)
			return -ENOMEM;
		atomic_init(&credential->refs, 1);
		credential->security = rxw_security_ref(security);
		credential->expires = expires;
		credential->number = take_identity_number(identity->net);
	}
	pthread_mutex_lock(&identity->lock);
	done = exchange_credential(identity, cl_cell_number(cell), same, credential, &old);
	pthread_mutex_unlock(&identity->lock);
	retire_credential(identity->net, done ? old : credential);
	return done ? 0 : -ENOSPC;
}
