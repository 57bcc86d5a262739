/* SPDX-License-Identifier: BSD-2-Clause */
/* Users and their tokens. */
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

/* Users stay until the client's end: their identities are keys of caches. */
int rxafs_get_user(rxafs_client *client, uint32_t number, rxafs_user **out)
{
	rxafs_user *user;

	pthread_mutex_lock(&client->lock);
	user = find_user(client, number);
	if (!user && (user = calloc(1, sizeof *user))) {
		user->client = client;
		user->number = number;
		atomic_init(&user->references, 1);
		user->identity = cl_identity_create(client->net);
		if (user->identity) {
			htable_add(&client->users, user);
		} else {
			free(user);
			user = NULL;
		}
	}
	if (user)
		atomic_fetch_add(&user->references, 1);
	pthread_mutex_unlock(&client->lock);
	*out = user;
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

int rxafs_set_token(rxafs_user *user, const char *cell, rxw_security *security, int64_t expires)
{
	struct cl_cell *of;
	int result = cl_cells_find(user->client->cells, cell, 0, &of);

	return result ? result : cl_identity_set_token(user->identity, of, security, expires);
}
