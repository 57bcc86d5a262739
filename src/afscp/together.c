/* SPDX-License-Identifier: BSD-2-Clause */
/* Small files of one directory, from or to AFS, with their calls in flight together. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxafs/stream.h>

#include "afscp/contents.h"
#include "afscp/local.h"
#include "afscp/session.h"

_Static_assert(TRANSFER_MANY <= RXAFS_SMALL_MOST, "one group of calls");

/* ---- from AFS ---- */

/* A small file that has been fetched. False: it is to be copied once more, which tells why. */
static bool write_small(struct transfer *t, const struct rxafs_small *file)
{
	struct iovec iov = {.iov_base = file->bytes, .iov_len = file->fetched};
	const struct item *source = t->source;
	struct sink sink;
	bool good = false;

	if (file->result || file->fetched != source->size ||
	    (uint64_t)file->attributes.stat.st_size != source->size ||
	    file->attributes.stat.st_mtim.tv_sec != source->mtime)
		return false;
	if (sink_open(&sink, t->to->fd, t->name, true, source->mode) < 0)
		return false;
	if (sink_write(&sink, &iov, 1, 0) == 0)
		good = sink_commit(&sink, source->mode, (uint32_t)source->mtime) == 0;
	sink_abandon(&sink);
	t->copied = source->size;
	return good;
}

/* Some small files. */
struct together {
	struct transfer *transfers;
	struct rxafs_small *files;
	bool *done;
};

static void end_one_of_some(void *arg, struct rxafs_small *file)
{
	struct together *all = arg;
	size_t i = (size_t)(file - all->files);

	all->done[i] = write_small(&all->transfers[i], file);
}

static void fetch_together(struct transfer *transfers, unsigned count, bool *done)
{
	struct rxafs_small files[TRANSFER_MANY];
	struct rxafs_name names[TRANSFER_MANY];
	struct together all = {.transfers = transfers, .files = files, .done = done};
	struct rxafs_request request = session_request(transfers->from->run);
	size_t total = 0, at = 0;
	uint8_t *bytes;

	for (unsigned i = 0; i < count; i++)
		total += transfers[i].source->size;
	bytes = malloc(total + 1);
	if (!bytes)
		return;
	for (unsigned i = 0; i < count; i++) {
		const struct item *source = transfers[i].source;

		names[i] = (struct rxafs_name){.text = source->name, .fid = source->fid};
		files[i] = (struct rxafs_small){
			.name = &names[i], .length = source->size, .bytes = bytes + at};
		at += source->size;
	}
	rxafs_fetch_small(transfers->from->object, &request, files, count, end_one_of_some, &all);
	free(bytes);
}

/* ---- to AFS ---- */

/* All of a file, which may have no more bytes than its directory said. False: it needs more than that. */
static bool read_small_source(struct transfer *t, uint8_t *bytes, struct rxafs_new_file *file)
{
	const struct item *source = t->source;
	int fd = openat(t->from->fd, source->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat before, after;
	ssize_t n = -1;

	if (fd < 0)
		return false;
	if (fstat(fd, &before) == 0 && S_ISREG(before.st_mode) &&
	    (uint64_t)before.st_size == source->size)
		n = pread(fd, bytes, source->size + 1, 0);
	if (n >= 0 && fstat(fd, &after) < 0)
		n = -1;
	close(fd);
	if (n < 0 || n != before.st_size || after.st_size != before.st_size ||
	    after.st_mtim.tv_sec != before.st_mtim.tv_sec ||
	    after.st_mtim.tv_nsec != before.st_mtim.tv_nsec)
		return false;
	*file = (struct rxafs_new_file){
		.name = t->name,
		.bytes = bytes,
		.length = (size_t)n,
		.set = {.set = RXAFS_SET_MODE | RXAFS_SET_TIME,
			.mode = before.st_mode & 0777,
			.time = time_in_afs(before.st_mtim.tv_sec)}};
	return true;
}

/* What became of one. A name without its contents goes, as after a copy of one file. */
static bool end_one_stored(struct transfer *t, const struct rxafs_new_file *file)
{
	if (file->result && file->made && !atomic_load(&t->to->run->interrupted))
		t->to->ops->remove(t->to, t->name, false, t->to_label);
	t->copied = file->length;
	return !file->result;
}

static void store_together(struct transfer *transfers, unsigned count, bool *done)
{
	struct rxafs_request request = session_request(transfers->to->run);
	struct rxafs_new_file files[TRANSFER_MANY];
	unsigned at[TRANSFER_MANY], ready = 0;
	size_t total = 0, used = 0;
	uint8_t *bytes;

	for (unsigned i = 0; i < count; i++)
		total += transfers[i].source->size + 1;
	bytes = malloc(total);
	if (!bytes)
		return;
	for (unsigned i = 0; i < count; i++)
		if (read_small_source(&transfers[i], bytes + used, &files[ready])) {
			used += files[ready].length + 1;
			at[ready++] = i;
		}
	if (rxafs_store_small(transfers->to->object, &request, files, ready) == 0)
		for (unsigned i = 0; i < ready; i++)
			done[at[i]] = end_one_stored(&transfers[at[i]], &files[i]);
	free(bytes);
}

void transfer_together(struct transfer *transfers, unsigned count, bool *done)
{
	assert(count && count <= TRANSFER_MANY);
	memset(done, 0, count * sizeof(*done));
	if (transfers->to->ops->local)
		fetch_together(transfers, count, done);
	else
		store_together(transfers, count, done);
}
