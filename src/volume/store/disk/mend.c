/* SPDX-License-Identifier: BSD-2-Clause */
/* The database and its copy: which has what, and what one can give to the other. */
#include "volume/store/disk/mend.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "volume/store/disk/copystate.h"
#include "volume/store/disk/pageset.h"
#include "volume/store/disk/report.h"

#define CHUNK	     (256u << 10)

/* Places of both logs. */
static int inspect_both_logs(struct store_layer *copy, struct store_layer *store,
			     struct store_place *main, struct store_place *other)
{
	struct store_copy_state state = {0};
	struct store_wal *wal;
	int rc = copy ? store_copy_log_inspect(copy, other) : 0;

	if (!copy)
		*other = (struct store_place){0};
	if (!rc)
		rc = store_wal_create(store, "meta/mark", META_LOG, NULL, NULL, &wal);
	if (rc)
		return rc;
	rc = store_wal_inspect(wal, main);
	store_wal_destroy(wal);
	/* The copy tells that there was a mark, unless a new database was made since. */
	if (!rc && copy && !main->sequence && !store_layer_has(store, STORE_CLOSED))
		rc = store_copy_state_read(copy, &state);
	main->unsure |= !rc && state.state == COPY_FOLLOWS;
	return rc;
}

int store_replica_compare(struct store_layer *copy, struct store_layer *store,
			  enum store_relation *relation)
{
	struct store_place main, other;
	struct store_copy_state state;
	int rc = store_copy_state_read(copy, &state);

	*relation = STORE_COPY_NONE;
	if (rc || state.state == COPY_PARTIAL || !state.state)
		return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
	rc = inspect_both_logs(copy, store, &main, &other);
	if (rc)
		return rc;
	*relation = store_copy_is_same(&state, &main, &other) ? STORE_COPY_SAME : STORE_COPY_OLDER;
	return 0;
}

bool store_replica_is_all(struct store_layer *copy, struct store_layer *store,
			  const uint8_t uuid[16])
{
	struct store_copy_state state;

	return !store_copy_state_read(copy, &state) && state.state == COPY_CLOSED &&
	       memcmp(state.uuid, uuid, 16) == 0 && store_copy_is_noted(store, state.mark) &&
	       !store_layer_has(store, META_LOG) && !store_layer_has(store, "meta/mark");
}

/* Copy a range of a file to another, durably. */
static int copy_range(struct store_file *from, struct store_file *to, uint64_t at, uint64_t end)
{
	uint8_t *chunk = malloc(CHUNK);
	int rc = chunk ? 0 : -ENOMEM;

	while (!rc && at < end) {
		struct iovec iov = {chunk, end - at < CHUNK ? (size_t)(end - at) : CHUNK};
		ssize_t n = from->layer->ops->preadv(from, &iov, 1, at, false);

		if (n <= 0) {
			rc = n < 0 ? (int)n : -EIO;
			break;
		}
		iov.iov_len = (size_t)n;
		at += (uint64_t)n;
		n = to->layer->ops->pwritev(to, &iov, 1, at - iov.iov_len);
		rc = n < 0 ? (int)n : 0;
	}
	free(chunk);
	return rc ? rc : to->layer->ops->sync(to);
}

/* Both logs have the same bytes, as far as they go. */
static int extend_log(struct store_layer *copy, struct store_layer *store, uint64_t from_end,
		      uint64_t end)
{
	struct store_file *from, *to;
	int rc = copy->ops->open(copy, COPY_LOG, 0, &from);

	if (rc)
		return rc;
	rc = store->ops->open(store, META_LOG, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &to);
	if (!rc) {
		rc = copy_range(from, to, from_end, end);
		store->ops->close(to);
	}
	copy->ops->close(from);
	return rc ? rc : store->ops->sync_dir(store, "meta");
}

/* Whether the copy's log is of the generation that the database's log has, or must have had. */
static bool is_log_of(const struct store_place *main, const struct store_place *copy)
{
	if (main->salt || main->exact)
		return copy->salt == (main->salt ? main->salt : main->tail_salt);
	return main->marked_end > 1 ? copy->salt == main->marked_salt
				    : store_copy_salt_follows(main->marked_salt, copy->salt);
}

/*
 * When the copy had all changes that are in it: CLOCK_REALTIME in seconds; 0: that is not known. *had: it had later ones, until
 * then, in its log, which was lost; or 0.
 */
static int64_t get_copied_time(struct store_layer *copy, int64_t *had)
{
	struct store_copy_state state;
	struct store_place log;

	*had = 0;
	if (store_copy_state_read(copy, &state))
		return 0;
	if (!store_copy_log_inspect(copy, &log) && store_copy_has_log(&state, &log))
		return state.written;
	*had = state.written;
	return state.base;
}

void store_replica_describe(struct store_layer *copy, char clause[STORE_COPY_CLAUSE])
{
	int64_t had, has = get_copied_time(copy, &had);
	char time[32], later[32];

	report_time(time, has);
	report_time(later, had);
	if (!had)
		snprintf(clause, STORE_COPY_CLAUSE, "had all changes until %s", time);
	else
		snprintf(clause, STORE_COPY_CLAUSE,
			 "had all changes until %s, but has lost its log or the end of it since: changes after %s may "
			 "be missing",
			 later, time);
}

/* What lies behind the damage of the database's log may be whole in that of the copy. */
static bool has_rest_of_log(const struct store_place *main, const struct store_place *copy)
{
	return (main->damaged || main->gone) && copy->end > main->end && is_log_of(main, copy);
}

/*
 * Places of both logs. The copy has flushed bytes only: if it has more of the same log, the rest is gone, also where the mark
 * does not say so.
 */
static int inspect_lost_log(struct store_layer *copy, struct store_layer *store,
			    struct store_place *main, struct store_place *other)
{
	int rc = inspect_both_logs(copy, store, main, other);

	if (rc || main->closed || main->damaged || main->gone || !main->salt ||
	    other->salt != main->salt || other->end <= main->end)
		return rc;
	main->gone = store_copy_log_goes_on(copy, store, main->end);
	return 0;
}

/* Whether a log that ends there has all that the killed process wrote. */
static bool reaches_tail(const struct store_place *tail, const struct store_place *log)
{
	return tail->exact &&
	       (!tail->tail_end || (log->salt == tail->tail_salt && log->end >= tail->tail_end));
}

/* Whether it has all that was flushed. Generations before the marked one are in the database. */
static bool reaches_mark(const struct store_place *mark, const struct store_place *log)
{
	if (mark->unsure && !mark->sequence)
		return false;
	if (mark->marked_end <= 1 || log->salt == mark->marked_salt)
		return log->end >= mark->marked_end || mark->marked_end <= 1;
	return store_copy_salt_follows(mark->marked_salt, log->salt);
}

static void judge_places(const struct store_place *main, const struct store_place *copy,
			 struct store_log_state *state)
{
	const struct store_place *log = has_rest_of_log(main, copy) ? copy : main;

	*state = (struct store_log_state){.damaged = main->damaged || main->gone || main->unsure,
					  .better = log == copy};
	if (!state->damaged)
		return;
	state->torn = !reaches_mark(main, log);
	state->blank = !main->sequence && !log->end;
	state->lost = state->torn || !reaches_tail(main, log);
	state->until = state->torn ? 0 : main->marked_time;
}

/* A log that has all of the copy's has all that was in the copy. */
static void judge_time(struct store_layer *copy, const struct store_place *main,
		       const struct store_place *other, struct store_log_state *state)
{
	int64_t had, written = copy && is_log_of(main, other) ? get_copied_time(copy, &had) : 0;

	if (state->damaged && state->until < written)
		state->until = written;
}

static void judge_base(struct store_layer *copy, struct store_layer *store,
		       const struct store_place *main, const struct store_place *other,
		       struct store_log_state *state)
{
	struct store_copy_state of_copy;
	bool same = other->end && other->salt == main->salt;

	state->based = state->torn && copy && !store_copy_state_read(copy, &of_copy) &&
		       store_copy_has_base(&of_copy, main, other) &&
		       (!same || other->end > main->end ||
			store_copy_log_goes_on(copy, store, other->end));
	state->goes_on =
		state->based && main->end &&
		(same ? main->end > other->end : !other->end && of_copy.salt != main->salt);
}

static int judge_log(struct store_layer *copy, struct store_layer *store, struct store_place *main,
		     struct store_place *other, struct store_log_state *state)
{
	int rc = inspect_lost_log(copy, store, main, other);

	*state = (struct store_log_state){0};
	if (rc)
		return rc;
	judge_places(main, other, state);
	judge_time(copy, main, other, state);
	state->bare = main->unsure && !main->sequence && !main->salt;
	/* A database that is not new had a mark. */
	if (!state->damaged && !main->sequence && !store_layer_has(store, STORE_CLOSED) &&
	    store_layer_has(store, META_DB))
		state->damaged = state->torn = state->lost = state->blank = true;
	judge_base(copy, store, main, other, state);
	return 0;
}

int store_replica_judge_log(struct store_layer *copy, struct store_layer *store,
			    struct store_log_state *state)
{
	struct store_place main, other;

	return judge_log(copy, store, &main, &other, state);
}

int store_replica_mend_log(struct store_layer *copy, struct store_layer *store,
			   struct store_log_state *state)
{
	struct store_place main, other;
	int rc = judge_log(copy, store, &main, &other, state);

	if (rc || !state->better)
		return rc;
	rc = extend_log(copy, store, main.end, other.end);
	if (!rc)
		rc = inspect_both_logs(copy, store, &main, &other);
	/* If only the middle was damaged, the log goes on behind what the copy has. */
	if (!rc && !main.damaged && !main.unsure && (main.exact || main.end > other.end))
		state->torn = state->lost = state->based = false;
	return rc;
}

struct repair {
	struct store_pageset *main, *copy;
	struct store_layer *layer, *copy_layer;
	struct store_file *file, *copy_file; /* opened when they are first needed */
	uint32_t repaired, left;
};

static int write_repaired_page(struct store_layer *layer, const char *path,
			       struct store_file **file, uint32_t number, uint8_t *page)
{
	const struct iovec iov = {page, STORE_DB_PAGE};
	ssize_t n;
	int rc = *file ? 0
		       : layer->ops->open(layer, path, STORE_OPEN_WRITE | STORE_OPEN_CREATE, file);

	if (rc)
		return rc;
	put32(page + STORE_DB_PAGE - STORE_DB_SPARE, store_page_sum(number, page));
	n = layer->ops->pwritev(*file, &iov, 1, (uint64_t)(number - 1) * STORE_DB_PAGE);
	return n < 0 ? (int)n : 0;
}

/* The one that is sound, in the place of the other. */
static int repair_page(struct repair *repair, uint32_t number)
{
	uint8_t page[STORE_DB_PAGE], other[STORE_DB_PAGE];
	bool sound, same;

	if (store_pageset_logs(repair->main, number))
		return 0;
	sound = !store_pageset_read(repair->main, number, page);
	same = !store_pageset_read(repair->copy, number, other);
	/* A log of the copy has the last generation of that of the database, or what that has, too. */
	if (sound && !same && !store_pageset_logs(repair->copy, number))
		return write_repaired_page(repair->copy_layer, COPY_DB, &repair->copy_file, number,
					   page);
	if (sound)
		return 0;
	repair->repaired += same;
	repair->left += !same && !(store_page_is_zero(page) && store_page_is_zero(other));
	return same ? write_repaired_page(repair->layer, META_DB, &repair->file, number, other) : 0;
}

static int end_repair(struct store_layer *layer, const char *folder, struct store_file *file)
{
	int rc = file ? layer->ops->sync(file) : 0;

	if (file)
		layer->ops->close(file);
	return rc || !file ? rc : layer->ops->sync_dir(layer, folder);
}

static int repair_pages(struct repair *repair)
{
	uint32_t pages = store_pageset_pages(repair->main);
	int rc = 0, other;

	if (pages < store_pageset_pages(repair->copy))
		pages = store_pageset_pages(repair->copy);
	for (uint32_t number = 1; !rc && number <= pages; number++)
		rc = repair_page(repair, number);
	other = end_repair(repair->layer, "meta", repair->file);
	if (!rc)
		rc = other;
	other = end_repair(repair->copy_layer, STORE_COPY, repair->copy_file);
	return rc ? rc : other;
}

int store_replica_repair(struct store_layer *copy, struct store_layer *store, uint32_t *repaired,
			 uint32_t *left)
{
	struct repair repair = {.layer = store, .copy_layer = copy};
	int rc = store_pageset_open(store, "meta", &repair.main);

	if (!rc)
		rc = store_pageset_open(copy, STORE_COPY, &repair.copy);
	if (!rc)
		rc = repair_pages(&repair);
	store_pageset_close(repair.main);
	store_pageset_close(repair.copy);
	*repaired = repair.repaired;
	*left = repair.left;
	return rc;
}
