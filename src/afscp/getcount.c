/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The number of files and bytes that get -r will copy. A malicious server cannot cause endless
 * work: no directory is entered twice, and the number of directories that wait is limited.
 */
#include <stdlib.h>
#include <string.h>

#include "afscp/getcount.h"
#include "afscp/entered_dirs.h"

#define WAITING_MAX 1000000 /* directories that were found and not yet read: 12 MB */

struct counting {
	pthread_t thread;
	struct copy copy;
	atomic_bool ending;
	uint64_t files, bytes;
	struct entered_dirs entered; /* of the source at hand */
	AFSFid *waiting; /* its directories */
	size_t count, room;
};

static bool queue_directory(struct counting *c, const AFSFid *fid)
{
	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		AFSFid *list =
			room > WAITING_MAX ? NULL : realloc(c->waiting, room * sizeof(*list));

		if (!list)
			return false;
		c->waiting = list;
		c->room = room;
	}
	c->waiting[c->count++] = *fid;
	return true;
}

/* Count an object that get would copy. False: the count is given up. */
static bool count_object(struct counting *c, const AFSFid *fid, const AFSFetchStatus *status)
{
	/* get reports these, and goes on. */
	if (status->errorCode || !afs_status_usable(status))
		return true;
	if (status->FileType == AFS_TYPE_DIR)
		return queue_directory(c, fid);
	if (status->FileType == AFS_TYPE_FILE) {
		c->files++;
		c->bytes += afs_status_length(status);
	}
	return true;
}

static bool count_directory(struct counting *c, const AFSFid *fid)
{
	AFSFetchStatus statuses[AFSCBMAX];
	struct entries entries;
	bool good = true;

	if (entries_read(&c->copy, fid, "", &entries) != COPY_GOOD)
		return false;
	for (size_t at = 0; good && at < entries.count; at += AFSCBMAX) {
		uint32_t n = entries_batch(&entries, at);

		good = !atomic_load(&c->ending) &&
		       entries_status(&c->copy, &entries, at, n, "", statuses) == COPY_GOOD;
		for (uint32_t i = 0; good && i < n; i++)
			good = count_object(c, &entries.list[at + i].fid, &statuses[i]);
	}
	entries_free(&entries);
	return good;
}

static bool count_source(struct counting *c, const struct copy_source *source)
{
	struct afs_object object;
	bool good = copy_locate(&c->copy, source) == 0 && copy_walk(&c->copy, true, &object) == 0 &&
		    count_object(c, &object.fid, &object.status);

	while (good && c->count) {
		AFSFid fid = c->waiting[--c->count];
		int entered = entered_dirs_add(&c->entered, &fid);

		good = entered >= 0 && (entered > 0 || count_directory(c, &fid));
	}
	entered_dirs_free(&c->entered);
	return good;
}

static void *count_all_sources(void *arg)
{
	struct counting *c = arg;
	struct run *run = c->copy.run;
	bool good = true;

	for (size_t i = 0; i < run->source_count && good; i++)
		good = count_source(c, &run->sources[i]);
	if (good) {
		atomic_store(&run->total_files, c->files);
		atomic_store(&run->total, c->bytes);
	}
	return NULL;
}

struct counting *count_start(struct run *run)
{
	struct counting *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (copy_open(run, &c->copy) < 0) {
		free(c);
		return NULL;
	}
	c->copy.silent = true;
	if (pthread_create(&c->thread, NULL, count_all_sources, c) == 0)
		return c;
	copy_close(&c->copy);
	free(c);
	return NULL;
}

void count_end(struct counting *c)
{
	if (!c)
		return;
	atomic_store(&c->ending, true);
	afs_client_cancel(c->copy.client);
	pthread_join(c->thread, NULL);
	copy_close(&c->copy);
	free(c->waiting);
	free(c);
}
