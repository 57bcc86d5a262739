/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <unistd.h>

#include <rxafs/stream.h>

#include "afscp/local.h"
#include "afscp/pathuse.h"
#include "afscp/scatter.h"

struct scattering {
	struct scatter *file;
	uint64_t counted; /* bytes that the run has counted */
	struct path_watch watch;
};

/* Bytes that were sent, some of them again. */
static void count_scattered_bytes(struct scattering *s, const struct iovec *iov, unsigned count)
{
	struct scatter *w = s->file;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += iov[i].iov_len;
	if (s->counted + bytes > w->size)
		bytes = w->size - s->counted;
	s->counted += bytes;
	atomic_fetch_add(&w->run->bytes, bytes);
	copy_progress(w->run, w->label);
}

/* Any bytes of the source. */
static int give_scattered_bytes(void *arg, uint64_t offset, const struct iovec *iov, unsigned count)
{
	struct scattering *s = arg;
	int result = read_slices(s->file->fd, offset, iov, count);

	if (result) {
		s->file->unread = true;
		s->file->error = result < 0 ? -result : 0;
		return -ECANCELED;
	}
	count_scattered_bytes(s, iov, count);
	return 0;
}

static void forget_scattered_bytes(struct scattering *s)
{
	atomic_fetch_sub(&s->file->run->bytes, s->counted);
	s->counted = 0;
}

/* The parts of the source that have data, in whole units. False: it has none. */
static bool find_data_spans(const struct scatter *w, struct rxafs_scattered_store *store)
{
	const uint64_t unit = RXAFS_STORE_UNIT;
	off_t data = 0, hole;

	for (uint64_t at = 0; at < w->size; at = (uint64_t)hole) {
		struct rxafs_span *last =
			store->span_count ? &store->spans[store->span_count - 1] : NULL;
		uint64_t from, end;

		data = lseek(w->fd, (off_t)at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		hole = data < 0 ? -1 : lseek(w->fd, data, SEEK_HOLE);
		if (data < 0 || hole <= data)
			data = (off_t)at, hole = (off_t)w->size;
		from = (uint64_t)data / unit * unit;
		end = ((uint64_t)hole + unit - 1) / unit * unit;
		end = end < w->size ? end : w->size;
		if (last && (from < last->end + HOLE_LEAST || store->span_count == RXAFS_SPANS))
			last->end = end;
		else if (from < end)
			store->spans[store->span_count++] = (struct rxafs_span){from, end};
	}
	return store->span_count > 0;
}

static void see_store_paths(void *arg, const struct rxafs_path_use *uses, unsigned count)
{
	struct scattering *s = arg;

	path_uses_see(s->file->run, &s->watch, uses, count);
}

enum copy_result scatter_store(struct scatter *w, struct attempt *t, bool *stored)
{
	struct scattering s = {.file = w};
	struct rxafs_scattered_store store = {.size = w->size,
					      .set = w->set,
					      .give = give_scattered_bytes,
					      .see = see_store_paths,
					      .arg = &s,
					      .paths = (unsigned)w->run->set.paths};
	int result;

	*stored = false;
	if (!find_data_spans(w, &store))
		return COPY_GOOD;
	do {
		forget_scattered_bytes(&s);
		result = rxafs_store_scattered(w->object, &t->request, &store, &w->now);
	} while (attempt_again_unless(t, result, w->unread ? -ECANCELED : -EOPNOTSUPP));
	path_uses_add(w->run, &s.watch, store.uses, store.use_count);
	forget_scattered_bytes(&s);
	*stored = t->value == 0;
	return *stored || (t->value == -EOPNOTSUPP && !w->unread) ? COPY_GOOD : COPY_FAILED;
}
