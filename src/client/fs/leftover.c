/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hidden files that a killed client has left (K-097). The cache folder has a list of hidden files; the next client that has the folder
 * removes those that are still there.
 */
#include "client/fs/leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/fs/operate.h"
#include "common/clock.h"

/* For one file of an earlier client. */
#define LEFTOVER_NS (60 * (uint64_t)NS_PER_S)

/* A file of an earlier client. */
struct leftover {
	struct leftover *next;
	char cell[CL_CELL_NAME];
	uint32_t volume, directory, directory_unique, vnode, unique;
};

struct fs_leftovers {
	int file;	      /* lines of hidden files, "+" or "-" first */
	pthread_mutex_t lock; /* of what follows */
	struct leftover *list;
	unsigned listed; /* lines that are still right */
	bool removing;
};

void fs_name_hidden(char name[24], uint32_t vnode, uint32_t unique)
{
	/* The FID is unique in the volume, so the name is in the directory. */
	snprintf(name, 24, FS_HIDDEN_PREFIX "%X%X", vnode & 0xffffff, unique);
}

static bool same_leftover(const struct leftover *a, const struct leftover *b)
{
	return !strcmp(a->cell, b->cell) && a->volume == b->volume && a->vnode == b->vnode &&
	       a->unique == b->unique;
}

static void forget_leftover(struct fs_leftovers *l, const struct leftover *one)
{
	struct leftover **at = &l->list, *found;

	while (*at && !same_leftover(*at, one))
		at = &(*at)->next;
	found = *at;
	if (!found)
		return;
	*at = found->next;
	free(found);
}

/* Without a list a file may stay after a crash, and nothing worse. An empty list has no lines. */
static void write_leftover(struct fs_leftovers *l, char sign, const struct leftover *one)
{
	char line[CL_CELL_NAME + 80];
	int length =
		snprintf(line, sizeof line, "%c %s %u %u %u %u %u\n", sign, one->cell, one->volume,
			 one->directory, one->directory_unique, one->vnode, one->unique);

	pthread_mutex_lock(&l->lock);
	l->listed += sign == '+' ? 1u : 0u;
	l->listed -= sign == '-' && l->listed ? 1u : 0u;
	if (sign == '-' && !l->listed) {
		if (ftruncate(l->file, 0))
			length = 0;
	} else if (write(l->file, line, (size_t)length) != length) {
		length = 0;
	}
	pthread_mutex_unlock(&l->lock);
}

void fs_list_hidden(rxafs_client *client, char sign, const struct rxafs_fid *directory,
		    const struct rxafs_fid *fid)
{
	struct cl_cell *cell = cl_cells_at(client->cells, directory->cell);
	struct leftover one = {.volume = directory->volume,
			       .directory = directory->vnode,
			       .directory_unique = directory->unique,
			       .vnode = fid->vnode,
			       .unique = fid->unique};

	if (!client->leftovers || !cell)
		return;
	snprintf(one.cell, sizeof one.cell, "%s", cl_cell_name(cell));
	write_leftover(client->leftovers, sign, &one);
}

static void read_leftovers(struct fs_leftovers *l, FILE *f)
{
	char line[CL_CELL_NAME + 100], sign;
	struct leftover one;

	while (fgets(line, sizeof line, f)) {
		struct leftover *kept;

		one = (struct leftover){.next = NULL};
		if (sscanf(line, "%c %253s %u %u %u %u %u", &sign, one.cell, &one.volume,
			   &one.directory, &one.directory_unique, &one.vnode, &one.unique) != 7)
			continue;
		forget_leftover(l, &one);
		if (sign != '+' || !(kept = malloc(sizeof *kept)))
			continue;
		*kept = one;
		kept->next = l->list;
		l->list = kept;
	}
}

/* The cache folder is this client's alone, so those who hid the files that are listed there are gone. */
int fs_open_leftovers(rxafs_client *client, const char *folder)
{
	struct fs_leftovers *l = calloc(1, sizeof *l);
	char path[PATH_MAX];
	FILE *f;

	if (!l || snprintf(path, sizeof path, "%s/hidden", folder) >= (int)sizeof path) {
		free(l);
		return -ENOMEM;
	}
	pthread_mutex_init(&l->lock, NULL);
	f = fopen(path, "re");
	if (f) {
		read_leftovers(l, f);
		fclose(f);
	}
	l->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	client->leftovers = l;
	if (l->file < 0)
		return 0;
	if (ftruncate(l->file, 0))
		return 0;
	for (struct leftover *one = l->list; one; one = one->next)
		write_leftover(l, '+', one);
	return 0;
}

void fs_close_leftovers(rxafs_client *client)
{
	struct fs_leftovers *l = client->leftovers;
	struct leftover *one;

	if (!l)
		return;
	while ((one = l->list)) {
		l->list = one->next;
		free(one);
	}
	if (l->file >= 0)
		close(l->file);
	pthread_mutex_destroy(&l->lock);
	free(l);
	client->leftovers = NULL;
}

/* Only if the name still is that of the file. 0: it is gone. */
static int remove_leftover(rxafs_client *client, struct rxafs_request *request,
			   const struct leftover *one)
{
	struct cl_caller caller = fs_caller(client, request);
	struct fs_vnode *directory;
	struct cl_volume *volume;
	char name[24], number[16];
	AFSFetchStatus status;
	struct rxafs_fid fid;
	struct cl_cell *cell;
	uint64_t known_ns;
	int result = cl_cells_find(client->cells, one->cell, request->deadline, &cell);

	if (result)
		return result;
	snprintf(number, sizeof number, "%u", one->volume);
	fs_name_hidden(name, one->vnode, one->unique);
	result = cl_volume_find(client->net, cell, number, CL_WANT_EXACT, &caller, &volume,
				&request->failure);
	if (result)
		return result == -ENODEV ? 0 : result;
	fid = (struct rxafs_fid){cl_cell_number(cell), one->volume, one->directory,
				 one->directory_unique};
	directory = fs_get_vnode(client, volume, &fid);
	result = directory ? fs_find(directory, request, name, &fid, &known_ns) : -ENOMEM;
	if (!result && (fid.vnode != one->vnode || fid.unique != one->unique))
		result = -ENOENT;
	if (!result) {
		AFSFid in = fs_afs_fid(&directory->fid);

		result = cl_net_remove_file(volume, &caller, &in, name, &status, NULL,
					    &request->failure);
		cl_object_doubt(directory->object);
	}
	if (directory)
		fs_put_vnode(directory);
	cl_volume_unref(volume);
	return result == -ENOENT || result == -ESTALE ? 0 : result;
}

struct leftover_task {
	rxafs_client *client;
	rxafs_user *user; /* a reference, or NULL */
};

/* On a thread of the executor. Those that a user may not remove wait for another one. */
static void remove_leftovers(void *arg)
{
	struct leftover_task *task = arg;
	struct fs_leftovers *l = task->client->leftovers;
	struct leftover *all, *one;

	pthread_mutex_lock(&l->lock);
	all = l->list;
	l->list = NULL;
	pthread_mutex_unlock(&l->lock);
	while ((one = all)) {
		struct rxafs_request request = {.user = task->user,
						.deadline = cl_net_now() + LEFTOVER_NS};

		all = one->next;
		if (!remove_leftover(task->client, &request, one)) {
			write_leftover(l, '-', one);
			free(one);
			continue;
		}
		pthread_mutex_lock(&l->lock);
		one->next = l->list;
		l->list = one;
		pthread_mutex_unlock(&l->lock);
	}
	rxafs_put_user(task->user);
	free(task);
}

void fs_remove_leftovers(rxafs_client *client, rxafs_user *user)
{
	struct leftover_task *task;
	bool some;

	if (!client->leftovers)
		return;
	pthread_mutex_lock(&client->leftovers->lock);
	some = client->leftovers->list != NULL;
	pthread_mutex_unlock(&client->leftovers->lock);
	task = some ? malloc(sizeof *task) : NULL;
	if (!task)
		return;
	*task = (struct leftover_task){client, user};
	if (user)
		atomic_fetch_add(&user->references, 1);
	if (!fs_execute(client->executor, 0, 0, remove_leftovers, task))
		return;
	rxafs_put_user(user);
	free(task);
}
