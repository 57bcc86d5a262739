/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who a process is (K-121): the user of its session, else that of its file system user id, which a setuid program and a server
 * for others have changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxafs/mount.h"
#include "rxafs/users/sessions.h"

rxafs_user *find_caller(struct mount *mount, const struct fuse_ctx *context)
{
	rxafs_user *user;

	/* It could be in a session, which must not have the tokens outside. */
	if (!sessions_find(mount->sessions, context->pid, &user))
		return NULL;
	if (!user && rxafs_get_user(mount->client, (uint32_t)context->uid + 1, &user))
		return NULL;
	return user;
}

/* NAME:FIRST:COUNT, as newuidmap(1) reads it. */
static bool read_subordinates(char *line, char **name, unsigned long *first, unsigned long *count)
{
	char *colon = strchr(line, ':');

	if (!colon || sscanf(colon, ":%lu:%lu", first, count) != 2)
		return false;
	*colon = '\0';
	*name = line;
	return true;
}

/* The first number of the user whose line has `wanted`, or of the user with that name. False: there is none. */
static bool find_subordinates(FILE *f, const char *user, uid_t wanted, char owner[256], uid_t *uid)
{
	unsigned long first, count;
	char *line = NULL, *name;
	bool found = false;
	size_t room = 0;

	rewind(f);
	while (!found && getline(&line, &room, f) > 0)
		found = read_subordinates(line, &name, &first, &count) && strlen(name) < 256 &&
			(user ? !strcmp(name, user) : wanted >= first && wanted - first < count);
	if (found) {
		strcpy(owner, name);
		*uid = (uid_t)first;
	}
	free(line);
	return found;
}

uid_t find_accountable(uid_t uid)
{
	char owner[256], same[256];
	uid_t first = uid;
	FILE *f = uid ? fopen("/etc/subuid", "re") : NULL;

	if (f && find_subordinates(f, NULL, uid, owner, &first))
		find_subordinates(f, owner, 0, same, &first);
	if (f)
		fclose(f);
	return first;
}
