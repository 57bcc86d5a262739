/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp put: small new files of one directory, some at a time. */
#include <stdlib.h>
#include <unistd.h>

#include <rxafs/stream.h>

#include "afscp/folder.h"
#include "afscp/put.h"
#include "afscp/putlevel.h"

#define SMALL 65536 /* bytes */

bool put_file_is_small(const struct put_file *f)
{
	return !f->existing && S_ISREG(f->st.st_mode) && f->st.st_size <= SMALL;
}

static void put_group_drop(void *arg)
{
	struct put_group *g = arg;

	for (unsigned i = 0; i < g->count; i++)
		put_file_drop(g->files[i]);
	free(g);
}

/* All of it, and one byte more, which must not be there. False: it is stored alone. */
static bool read_for_group(struct run *run, const struct put_file *f, uint8_t *bytes,
			   struct rxafs_new_file *file)
{
	if (pread(f->fd, bytes, (size_t)f->st.st_size + 1, 0) != f->st.st_size ||
	    !put_file_is_unchanged(f))
		return false;
	*file = (struct rxafs_new_file){.name = f->name,
					.bytes = bytes,
					.length = (size_t)f->st.st_size,
					.set = {.set = RXAFS_SET_MODE | RXAFS_SET_TIME,
						.mode = put_mode(run, f->st.st_mode),
						.time = time_in_afs(f->st.st_mtime)}};
	return true;
}

/* A name whose contents could not be stored goes. */
static void remove_empty_name(struct run *run, const struct put_file *f)
{
	struct attempt t = attempt_begin(run, CHANGE_REMOVE, f->label);

	t.later = true;
	while (attempt_again(&t, rxafs_unlink(f->directory, &t.request, f->name)))
		;
}

/* Store those that can be. stored[i]: file i is there. */
static void store_group(struct run *run, struct put_group *g, bool stored[PUT_TOGETHER])
{
	struct rxafs_request request = session_request(run);
	struct rxafs_new_file new[PUT_TOGETHER];
	unsigned at[PUT_TOGETHER], ready = 0;
	size_t total = 0, used = 0;
	uint8_t *bytes;

	for (unsigned i = 0; i < g->count; i++)
		total += (size_t)g->files[i]->st.st_size + 1;
	bytes = malloc(total);
	for (unsigned i = 0; bytes && i < g->count; i++)
		if (read_for_group(run, g->files[i], bytes + used, &new[ready])) {
			used += new[ready].length + 1;
			at[ready++] = i;
		}
	if (ready && rxafs_store_small(g->files[0]->directory, &request, new, ready) == 0)
		for (unsigned i = 0; i < ready; i++) {
			stored[at[i]] = new[i].result == 0;
			if (new[i].made &&new[i].result)
				remove_empty_name(run, g->files[at[i]]);
		}
	free(bytes);
}

/* What is not stored is tried once more alone, which tells why if it fails. */
static enum copy_result end_group_file(struct run *run, struct put_file *f, bool stored)
{
	enum copy_result rc = COPY_GOOD;

	if (stored) {
		atomic_fetch_add(&run->bytes, (uint64_t)f->st.st_size);
		copy_progress(run, f->label);
		copy_done(run, f->label, (uint64_t)f->st.st_size);
	} else {
		rc = run_interrupted(run) ? COPY_STOP : put_file(run, f);
	}
	put_level_leave(run, f->level, false);
	f->level = NULL;
	return rc;
}

static enum copy_result put_group_work(struct run *run, void *arg)
{
	bool stored[PUT_TOGETHER] = {false};
	enum copy_result all = COPY_GOOD;
	struct put_group *g = arg;

	if (g->count > 1)
		store_group(run, g, stored);
	for (unsigned i = 0; i < g->count && all != COPY_STOP; i++) {
		enum copy_result rc = end_group_file(run, g->files[i], stored[i]);

		/* The job itself counts as one. */
		if (all == COPY_GOOD)
			all = rc;
		else if (rc != COPY_GOOD)
			atomic_fetch_add(&run->failed, 1);
		if (rc == COPY_STOP)
			all = rc;
	}
	put_group_drop(g);
	return all;
}

const struct job_kind put_group_job = {.work = put_group_work, .drop = put_group_drop};
