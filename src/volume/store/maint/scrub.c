/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verification of all data, in the background: each block of each version is read and compared with its checksum, at a limited
 * rate. A pass begins some time after the store was opened, or goes on where an earlier process has stopped.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/held.h"
#include "volume/store/maint/maint.h"
#include "volume/store/txn/lookup.h"

#define CHUNK	     (1u << 20) /* bytes that are read at once */
#define RATE_KIB     8192u	/* in a second */
#define WAIT_MS	     600000u	/* after the opening */
#define PASS_SECONDS 604800u	/* from the begin of a pass to that of the next one */
#define RECORD_NS    (300 * (uint64_t)NS_PER_S)
#define UNFOUND_MOST 1024u /* steps to other vnodes, and to other groups; a page has fewer rows */

struct scrubber {
	struct core *core;
	pthread_t thread;
	bool started;
	uint64_t rate_kib;
	unsigned wait_ms;

	pthread_mutex_t lock; /* covers the rest */
	pthread_cond_t wake;
	bool stop;
	struct scrub_state state;

	/* The thread alone uses the rest. */
	struct vnode_key next; /* the row to go on with */
	unsigned unfound;      /* steps over rows that cannot be found */
	uint64_t pass_bytes, pass_damaged, recorded_ns;
	uint32_t begun; /* seconds since 1970 */
};

/* -- one content -- */

int scrub_content(struct core *core, const struct store_owner *owner,
		  const struct store_content *content, uint64_t length,
		  const struct scrub_calls *calls)
{
	void *buffer = malloc(CHUNK);
	struct store_view *view;
	uint64_t offset = 0;
	int result = buffer ? store_view_open(core->data, owner, content, length, &view) : -ENOMEM;

	if (result) {
		free(buffer);
		return result;
	}
	while (!result && offset < length) {
		uint64_t before = offset;

		result = store_view_verify(view, &offset, buffer, CHUNK);
		if (result == -EBADMSG || result == -EIO || result == -ENOENT) {
			result = calls->damaged(calls->arg, offset);
			offset = (offset / STORE_BLOCK + 1) * STORE_BLOCK;
		}
		/* Holes cost nothing. */
		if (!result &&
		    !calls->go_on(calls->arg, offset - before <= CHUNK ? offset - before : 0))
			result = -EINTR;
	}
	store_view_close(view);
	free(buffer);
	return result;
}

bool scrub_confirm(struct db *db, const struct vnode_key *key, const struct version *version,
		   uint64_t offset)
{
	const struct store_block *old =
		store_content_block(&version->content, offset / STORE_BLOCK);
	const struct store_block *now;
	struct version *current;
	bool same;

	if (db_vnode_get_whole(db, key, &current))
		return false;
	now = store_content_block(&current->content, offset / STORE_BLOCK);
	same = current->epoch == key->epoch && current->v.unique == version->v.unique &&
	       (old && now ? old->object == now->object && old->crc == now->crc
			   : store_content_damaged(&current->content, offset / STORE_BLOCK));
	version_unref(current);
	return same;
}

/* -- the thread -- */

/* Sleep. False: the scrubber is to stop. */
static bool rest_for(struct scrubber *scrubber, uint64_t ns)
{
	uint64_t until = monotonic_ns() + ns;
	bool go_on;

	pthread_mutex_lock(&scrubber->lock);
	while (!scrubber->stop && monotonic_ns() < until)
		monotonic_wait(&scrubber->wake, &scrubber->lock, until);
	go_on = !scrubber->stop;
	pthread_mutex_unlock(&scrubber->lock);
	return go_on;
}

struct scrubbed_row {
	struct scrubber *scrubber;
	struct vnode_key key;
	struct version *version;
};

static bool pay_for_bytes(void *arg, uint64_t bytes)
{
	struct scrubber *scrubber = ((struct scrubbed_row *)arg)->scrubber;

	scrubber->pass_bytes += bytes;
	pthread_mutex_lock(&scrubber->lock);
	scrubber->state.bytes += bytes;
	pthread_mutex_unlock(&scrubber->lock);
	return rest_for(scrubber, bytes * NS_PER_S / (scrubber->rate_kib * 1024));
}

static void count_damaged_block(struct scrubber *scrubber)
{
	scrubber->pass_damaged++;
	pthread_mutex_lock(&scrubber->lock);
	scrubber->state.damaged++;
	pthread_mutex_unlock(&scrubber->lock);
}

static int report_damaged_block(void *arg, uint64_t offset)
{
	struct scrubbed_row *row = arg;
	struct core *core = row->scrubber->core;
	const struct store_fid fid = {row->key.group, row->key.vnode, row->version->v.unique};
	struct db *db;
	bool damaged;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	damaged = scrub_confirm(db, &row->key, row->version, offset);
	readers_put(core->readers, db);
	if (damaged) {
		damage_report(core, &fid, offset);
		count_damaged_block(row->scrubber);
	}
	return 0;
}

static int take_one_row(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct scrubbed_row *row = arg;

	(void)version;
	row->key = *key;
	return 1;
}

/*
 * Rows from `next` on cannot be found, because a page of the table is damaged: go on behind it, at the next vnodes, and
 * then at the next groups. -ENOENT: both were in vain.
 */
static int pass_damaged_rows(struct scrubber *scrubber)
{
	struct vnode_key *next = &scrubber->next;

	next->epoch = 0;
	if (scrubber->unfound == 2 * UNFOUND_MOST || next->group == UINT32_MAX)
		return -ENOENT;
	if (scrubber->unfound++ < UNFOUND_MOST && next->vnode < UINT32_MAX) {
		next->vnode++;
	} else {
		next->group++;
		next->vnode = 0;
	}
	return 0;
}

/* The key of the first row from `next` on. -ENOENT: there is none any more. */
static int find_next_key(struct scrubber *scrubber, struct db *db, struct scrubbed_row *row)
{
	struct vnode_key *next = &scrubber->next;
	int result = 0;

	while (!result) {
		result = next->group ? db_group_rows(db, next, take_one_row, row) : 0;
		if (result)
			break;
		result = db_group_next(db, &next->group);
		if (!result)
			next->vnode = next->epoch = 0;
	}
	return result == 1 ? 0 : result;
}

/* The first row from `next` on, with its contents; none, if rows were passed that cannot be found. */
static int find_next_row(struct scrubber *scrubber, struct db *db, struct scrubbed_row *row)
{
	int result;

	do {
		result = find_next_key(scrubber, db, row);
		if (result == -EIO) {
			/* One damage of many rows. */
			if (!scrubber->unfound)
				count_damaged_block(scrubber);
			return pass_damaged_rows(scrubber);
		}
		if (result)
			return result;
		scrubber->unfound = 0;
		scrubber->next = row->key;
		scrubber->next.epoch++;
		result = db_vnode_get_whole(db, &row->key, &row->version);
		/* It was removed meanwhile. */
	} while (result == -ENOENT);
	return result;
}

/* Contents in the database: their checksums are verified when they are read, and damage is reported there. */
static int verify_small(struct db *db, const struct scrubbed_row *row)
{
	const struct db_small small = {row->version->v.small, row->key.group, row->key.vnode};
	struct blob *blob = NULL;
	int result = db_small_get(db, &small, &blob);

	blob_unref(blob);
	return result == -ENOENT ? 0 : result;
}

/* 0: there are more rows; -ENOENT: there are not. */
static int verify_next_row(struct scrubber *scrubber)
{
	struct core *core = scrubber->core;
	struct scrubbed_row row = {.scrubber = scrubber};
	const struct scrub_calls calls = {report_damaged_block, pay_for_bytes, &row};
	struct db *db;
	bool damaged = false;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = find_next_row(scrubber, db, &row);
	/* The record itself is damaged, which was reported. */
	if (result == -EIO ||
	    (!result && row.version && row.version->v.small && verify_small(db, &row) == -EIO))
		damaged = true;
	readers_put(core->readers, db);
	if (damaged) {
		count_damaged_block(scrubber);
		result = 0;
	}
	if (!result && row.version && row.version->v.slots) {
		const struct store_owner owner = {row.key.group, row.key.vnode,
						  row.version->v.unique};

		result = scrub_content(core, &owner, &row.version->content, row.version->v.length,
				       &calls);
		/* It was replaced meanwhile, and is verified the next time. */
		if (result == -ENOENT)
			result = 0;
		if (result == -EACCES) {
			report_damage(&core->report,
				      "%s: a file with contents of vnode %u of volume %u cannot be "
				      "read: %s",
				      core->name, row.key.vnode, row.key.group, strerror(EACCES));
			count_damaged_block(scrubber);
			result = 0;
		}
	}
	version_unref(row.version);
	return result;
}

/* -- where a later process goes on -- */

struct record_op {
	struct txn_op txn;
	struct scrubber *scrubber;
};

static int apply_scrub_record(struct txn_op *txn, struct work *work)
{
	const struct scrubber *scrubber = ((struct record_op *)txn)->scrubber;
	struct db *db;
	int result = work_db(work, &db);

	if (!result)
		result = db_number_put(db, "scrub begun", scrubber->begun);
	if (!result)
		result = db_number_put(db, "scrub group", scrubber->next.group);
	if (!result)
		result = db_number_put(db, "scrub vnode", scrubber->next.vnode);
	return result;
}

static void record_progress(struct scrubber *scrubber)
{
	struct record_op op = {.txn = {.apply = apply_scrub_record, .alone = true},
			       .scrubber = scrubber};

	txn_run(scrubber->core->txn, &op.txn);
	scrubber->recorded_ns = monotonic_ns();
}

static void load_progress(struct scrubber *scrubber)
{
	uint64_t begun = 0, group = 0, vnode = 0;
	struct db *db;

	if (readers_get(scrubber->core->readers, &db))
		return;
	if (db_number_get(db, "scrub begun", &begun) || db_number_get(db, "scrub group", &group) ||
	    db_number_get(db, "scrub vnode", &vnode))
		begun = group = vnode = 0;
	readers_put(scrubber->core->readers, db);
	scrubber->begun = (uint32_t)begun;
	scrubber->next = (struct vnode_key){(uint32_t)group, (uint32_t)vnode, 0};
}

/* -- passes -- */

static void conclude_pass(struct scrubber *scrubber)
{
	struct core *core = scrubber->core;

	report_line(&core->report, scrubber->pass_damaged ? REPORT_ERROR : REPORT_INFO,
		    "%s: all data were verified: %llu MiB in large files, %llu damaged blocks",
		    core->name, (unsigned long long)scrubber->pass_bytes >> 20,
		    (unsigned long long)scrubber->pass_damaged);
	pthread_mutex_lock(&scrubber->lock);
	scrubber->state.passes++;
	scrubber->state.last = (uint32_t)time(NULL);
	pthread_mutex_unlock(&scrubber->lock);
	scrubber->next = (struct vnode_key){0};
	scrubber->unfound = 0;
	record_progress(scrubber);
}

static void run_pass(struct scrubber *scrubber)
{
	int result = 0;

	if (!scrubber->next.group) {
		scrubber->begun = (uint32_t)time(NULL);
		scrubber->pass_bytes = scrubber->pass_damaged = 0;
	}
	while (!result) {
		result = verify_next_row(scrubber);
		if (!result && monotonic_ns() - scrubber->recorded_ns > RECORD_NS)
			record_progress(scrubber);
		/* Between two looks at the database, others have their turn. */
		if (!result && !rest_for(scrubber, NS_PER_MS / 10))
			result = -EINTR;
	}
	if (result == -ENOENT)
		conclude_pass(scrubber);
	else if (result == -EINTR)
		record_progress(scrubber);
}

/* Until the next pass begins, or goes on. */
static uint64_t compute_pause_ns(const struct scrubber *scrubber)
{
	uint64_t now = (uint64_t)time(NULL), next = (uint64_t)scrubber->begun + PASS_SECONDS;
	uint64_t wait = (uint64_t)scrubber->wait_ms * NS_PER_MS;

	if (scrubber->next.group || next <= now || scrubber->begun > now)
		return wait;
	return wait > (next - now) * NS_PER_S ? wait : (next - now) * NS_PER_S;
}

static void *run_scrubber(void *arg)
{
	struct scrubber *scrubber = arg;

	pthread_setname_np(pthread_self(), "store-scrub");
	if (!rest_for(scrubber, (uint64_t)scrubber->wait_ms * NS_PER_MS))
		return NULL;
	load_progress(scrubber);
	scrubber->recorded_ns = monotonic_ns();
	if (!scrubber->next.group &&
	    !rest_for(scrubber,
		      compute_pause_ns(scrubber) - (uint64_t)scrubber->wait_ms * NS_PER_MS))
		return NULL;
	do
		run_pass(scrubber);
	while (rest_for(scrubber, compute_pause_ns(scrubber)));
	return NULL;
}

/* -- the interface -- */

int scrub_create(struct core *core, unsigned rate_kib, unsigned wait_ms, struct scrubber **out)
{
	struct scrubber *scrubber = calloc(1, sizeof(*scrubber));

	if (!scrubber)
		return -ENOMEM;
	scrubber->core = core;
	scrubber->rate_kib = rate_kib ? rate_kib : RATE_KIB;
	scrubber->wait_ms = wait_ms ? wait_ms : WAIT_MS;
	pthread_mutex_init(&scrubber->lock, NULL);
	monotonic_cond_init(&scrubber->wake);
	*out = scrubber;
	return 0;
}

int scrub_start(struct scrubber *scrubber)
{
	int result = pthread_create(&scrubber->thread, NULL, run_scrubber, scrubber);

	scrubber->started = !result;
	return -result;
}

void scrub_stop(struct scrubber *scrubber)
{
	if (!scrubber || !scrubber->started)
		return;
	pthread_mutex_lock(&scrubber->lock);
	scrubber->stop = true;
	pthread_cond_signal(&scrubber->wake);
	pthread_mutex_unlock(&scrubber->lock);
	pthread_join(scrubber->thread, NULL);
	scrubber->started = false;
}

void scrub_destroy(struct scrubber *scrubber)
{
	if (!scrubber)
		return;
	assert(!scrubber->started);
	pthread_mutex_destroy(&scrubber->lock);
	pthread_cond_destroy(&scrubber->wake);
	free(scrubber);
}

void scrub_get_state(struct scrubber *scrubber, struct scrub_state *state)
{
	pthread_mutex_lock(&scrubber->lock);
	*state = scrubber->state;
	pthread_mutex_unlock(&scrubber->lock);
}
