/* SPDX-License-Identifier: BSD-2-Clause */
/* Users and their tokens. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "client/fs/operate.h"
#include "common/held.h"

static rxafs_user *find_user(rxafs_client *client, uint32_t number)
{
	for (rxafs_user *u = htable_first(&client->users, number); u; u = u->link)
		if (u->number == number)
			return u;
	return NULL;
}

int rxafs_create_user(rxafs_client *client, rxafs_user **out)
{
	rxafs_user *user = calloc(1, sizeof *user);

	*out = NULL;
	if (!user)
		return -ENOMEM;
	user->client = client;
	atomic_init(&user->references, 1);
	user->identity = cl_identity_create(client->net, user);
	if (!user->identity) {
		free(user);
		return -ENOMEM;
	}
	*out = user;
	return 0;
}

rxafs_user *rxafs_hold_user(rxafs_user *user)
{
	if (user)
		atomic_fetch_add(&user->references, 1);
	return user;
}

/* Users with a number stay until the client's end. The table has a reference. */
int rxafs_get_user(rxafs_client *client, uint32_t number, rxafs_user **out)
{
	rxafs_user *user;

	assert(number);
	pthread_mutex_lock(&client->lock);
	user = find_user(client, number);
	if (!user && !rxafs_create_user(client, &user)) {
		user->number = number;
		htable_add(&client->users, user);
	}
	*out = rxafs_hold_user(user);
	pthread_mutex_unlock(&client->lock);
	return user ? 0 : -ENOMEM;
}

static void unlist_opener(rxafs_user *opener)
{
	rxafs_user **at = &opener->of->openers;

	pthread_mutex_lock(&opener->client->lock);
	while (*at != opener)
		at = &(*at)->next;
	*at = opener->next;
	pthread_mutex_unlock(&opener->client->lock);
}

void rxafs_put_user(rxafs_user *user)
{
	rxafs_user *of;

	if (!user || atomic_fetch_sub(&user->references, 1) != 1)
		return;
	assert(!user->openers);
	of = user->of;
	if (of)
		unlist_opener(user);
	cl_identity_unref(user->identity);
	free(user);
	rxafs_put_user(of);
}

/* False: its last reference goes just now. */
static bool hold_if_used(rxafs_user *user)
{
	unsigned references = atomic_load(&user->references);

	while (references &&
	       !atomic_compare_exchange_weak(&user->references, &references, references + 1))
		;
	return references > 0;
}

static rxafs_user *make_opener(rxafs_user *user, uint32_t cell)
{
	rxafs_user *opener = calloc(1, sizeof *opener);

	assert(mutex_is_held(&user->client->lock));
	if (!opener)
		return NULL;
	opener->client = user->client;
	atomic_init(&opener->references, 1);
	opener->identity = cl_identity_keep(user->identity, cell);
	if (!opener->identity) {
		free(opener);
		return NULL;
	}
	opener->of = rxafs_hold_user(user);
	opener->next = user->openers;
	user->openers = opener;
	return opener;
}

rxafs_user *fs_hold_opener(rxafs_user *user, uint32_t cell)
{
	uint32_t number = user ? cl_identity_number(user->identity, cell) : 0;
	rxafs_user *opener;

	if (!number)
		return rxafs_hold_user(user);
	pthread_mutex_lock(&user->client->lock);
	opener = user->openers;
	while (opener &&
	       (cl_identity_number(opener->identity, cell) != number || !hold_if_used(opener)))
		opener = opener->next;
	if (!opener)
		opener = make_opener(user, cell);
	pthread_mutex_unlock(&user->client->lock);
	return opener;
}

rxafs_user *fs_present_user(rxafs_user *opener, uint32_t cell, bool stores)
{
	uint32_t then;

	if (!opener || !opener->of)
		return opener;
	then = stores ? cl_identity_number(opener->identity, cell) : 0;
	return then && then != cl_identity_number(opener->of->identity, cell) ? opener : opener->of;
}

static void drop_user_entry(void *item)
{
	rxafs_put_user(item);
}

void fs_free_users(rxafs_client *client)
{
	htable_fini(&client->users, drop_user_entry);
}
