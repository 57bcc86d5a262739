/* SPDX-License-Identifier: BSD-2-Clause */
/* Users and their tokens. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "client/fs/operate.h"

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

void rxafs_put_user(rxafs_user *user)
{
	if (!user || atomic_fetch_sub(&user->references, 1) != 1)
		return;
	cl_identity_unref(user->identity);
	free(user);
}

static void drop_user_entry(void *item)
{
	rxafs_put_user(item);
}

void fs_free_users(rxafs_client *client)
{
	htable_fini(&client->users, drop_user_entry);
}
