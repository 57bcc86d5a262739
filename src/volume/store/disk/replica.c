/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy of the metadata: following the log, moving it to the copy, making the copy anew. */
#include "volume/store/disk/replica.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sqlite3.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/held.h"
#include "volume/store/disk/copystate.h"
#include "volume/store/disk/pageset.h"

#define COPY_NEW   COPY_DB ".new"
#define CHUNK	   (256u << 10)
#define STRETCH	   256 /* pages that are verified at a time */
#define TRIES	   5 /* to read a page that is being written */

struct store_replica {
	struct store_layer *layer, *store;
	struct store_wal *wal;
	struct report *report;
	pthread_mutex_t settling; /* one thread flushes, moves the log, or makes the copy; taken first */
	uint32_t verified;	  /* pages of the copy, in this pass; covered by `settling` */
	pthread_mutex_t lock;	  /* covers the rest; held while bytes are copied, not during flushes */
	struct store_copy_state state; /* the last one that was written or read */
	struct store_file *from, *to; /* the logs; or NULL */
	uint64_t salt, end;	      /* what the copy's log has; 0, 0: nothing */
	int64_t shipped;	      /* with these, the copy has all changes before: CLOCK_REALTIME in seconds */
	uint64_t rewinds;	      /* of the log, as far as the copy has followed them */
	bool complete;		      /* all of a generation: the next one is to come */
	bool missing;		      /* there is no copy */
	bool full;		      /* for want of space */
	bool kept;		      /* there is one, which damaged metadata may need */
	bool making;
	bool told;		      /* that it failed */
	bool unflushed, named;
	uint64_t same_ns;
	uint8_t *chunk;
};

/* How far the copy goes: `end` bytes of its log are flushed, or will be before the state is. */
static void note_copied(struct store_copy_state *state, uint64_t salt, uint64_t end,
			int64_t written)
{
	state->log_salt = end ? salt : 0;
	state->log_end = end;
	state->written = written;
	if (!end)
		state->base = written;
}

/* In both places, as the mark. */
static int write_copy_state(struct store_replica *replica, uint64_t state, uint64_t mark)
{
	int rc;

	pthread_mutex_lock(&replica->lock);
	replica->state.state = state;
	replica->state.mark = mark;
	if (state == COPY_PARTIAL)
		note_copied(&replica->state, 0, 0, 0);
	rc = store_copy_state_write(replica->layer, &replica->state, true);
	if (!rc)
		rc = store_copy_state_write(replica->layer, &replica->state, true);
	pthread_mutex_unlock(&replica->lock);
	return rc;
}

/* -- failures: the copy is given up -- */

static void close_logs(struct store_replica *replica)
{
	if (replica->from)
		replica->store->ops->close(replica->from);
	if (replica->to)
		replica->layer->ops->close(replica->to);
	replica->from = replica->to = NULL;
}

static void give_copy_up(struct store_replica *replica, int rc)
{
	assert(mutex_is_held(&replica->lock));
	close_logs(replica);
	replica->missing = true;
	replica->full = rc == -ENOSPC;
	replica->kept |= rc == -EBADMSG;
	replica->complete = false;
	replica->salt = replica->end = replica->same_ns = 0;
	if (rc == -EBADMSG && !replica->told)
		report_line(
			replica->report, REPORT_ERROR,
			"the metadata are damaged, so that no new copy can be made, and the older copy is "
			"kept: restore the files that the log names, or make a new store with rxvol rescue");
	else if (rc && !replica->told)
		report_line(replica->report, REPORT_ERROR,
			    "the copy of the metadata cannot be written: %s; it is tried again: look at its disk",
			    strerror(-rc));
	replica->told |= rc != 0;
}

/* -- following the log -- */

static int open_logs(struct store_replica *replica)
{
	int rc = 0;

	if (!replica->from)
		rc = replica->store->ops->open(replica->store, META_LOG, 0, &replica->from);
	if (!rc && !replica->to) {
		rc = replica->layer->ops->open(replica->layer, COPY_LOG,
					       STORE_OPEN_WRITE | STORE_OPEN_CREATE, &replica->to);
		replica->named = false;
	}
	return rc;
}

/* Copy the bytes of the log up to `end`. */
static int copy_log_bytes(struct store_replica *replica, uint64_t end)
{
	int rc = end > replica->end ? open_logs(replica) : 0;

	assert(mutex_is_held(&replica->lock));
	while (!rc && replica->end < end) {
		uint64_t left = end - replica->end;
		struct iovec iov = {replica->chunk, left < CHUNK ? (size_t)left : CHUNK};
		ssize_t n = replica->store->ops->preadv(replica->from, &iov, 1, replica->end, false);

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		iov.iov_len = (size_t)n;
		n = replica->layer->ops->pwritev(replica->to, &iov, 1, replica->end);
		rc = n < 0 ? (int)n : 0;
		if (!rc)
			replica->end += (uint64_t)n;
		replica->unflushed = true;
	}
	return rc;
}

/* Transactions that were overwritten in the log are to be copied again. */
static void follow_rewinds(struct store_replica *replica, const struct store_place *place)
{
	assert(mutex_is_held(&replica->lock));
	if (replica->rewinds != place->rewinds && place->rewound_to < replica->end)
		replica->end = place->rewound_to;
	replica->rewinds = place->rewinds;
}

/* `limit`: of store_wal_marked(), now or some time ago; NULL: all of the log is flushed. */
static void ship_log(struct store_replica *replica, const struct store_place *limit)
{
	uint64_t now = monotonic_ns();
	struct store_place place;
	int rc;

	assert(mutex_is_held(&replica->lock));
	if (replica->missing || replica->complete || replica->making)
		return;
	store_wal_place(replica->wal, &place);
	if (limit && limit->marked_salt != place.salt)
		return;
	follow_rewinds(replica, &place);
	if (limit && limit->flushed_end < place.end)
		place.end = limit->flushed_end;
	if (!replica->end)
		replica->salt = place.salt;
	assert(replica->salt == place.salt);
	rc = copy_log_bytes(replica, place.end);
	if (rc) {
		give_copy_up(replica, rc);
		return;
	}
	replica->same_ns = now;
	replica->shipped = limit ? limit->marked_time : time(NULL);
}

void store_replica_ship(struct store_replica *replica)
{
	struct store_place limit;

	store_wal_marked(replica->wal, &limit);
	pthread_mutex_lock(&replica->lock);
	ship_log(replica, &limit);
	pthread_mutex_unlock(&replica->lock);
}

/* If the machine stops now, this may be known without the bytes of the log, which tell the same by their end. */
static void note_complete_log(struct store_replica *replica)
{
	replica->state.salt = replica->salt;
	replica->state.end = replica->end;
	replica->state.moved = COPY_UNMOVED;
	note_copied(&replica->state, replica->salt, replica->end, replica->shipped);
	store_copy_state_write(replica->layer, &replica->state, false);
}

/* The log of the database begins anew: the copy needs the rest of it now. */
static void complete_generation(void *arg)
{
	struct store_replica *replica = arg;
	struct store_place place;

	store_wal_place(replica->wal, &place);
	if (!place.end)
		return;
	pthread_mutex_lock(&replica->lock);
	if (replica->complete) {
		/* The disk of the copy is too slow. */
		give_copy_up(replica, 0);
	} else if (place.doubtful) {
		/* Nobody but SQLite knows whether the database has the last transaction. */
		give_copy_up(replica, 0);
	} else {
		ship_log(replica, NULL);
		replica->complete = !replica->missing && !replica->making && replica->end;
		if (replica->complete)
			note_complete_log(replica);
	}
	if (replica->from)
		replica->store->ops->close(replica->from);
	replica->from = NULL;
	pthread_mutex_unlock(&replica->lock);
}

/* -- flushing, and moving the log to the copy: SQLite does that, as with any database -- */

static int flush_copy_log(struct store_replica *replica)
{
	struct store_file *file = NULL;
	bool named;
	int rc;

	pthread_mutex_lock(&replica->lock);
	if (!replica->unflushed || !replica->to) {
		pthread_mutex_unlock(&replica->lock);
		return 0;
	}
	replica->unflushed = false;
	named = replica->named;
	pthread_mutex_unlock(&replica->lock);
	/* A file of its own: the other one may be closed meanwhile. */
	rc = replica->layer->ops->open(replica->layer, COPY_LOG, STORE_OPEN_WRITE, &file);
	if (rc)
		return rc;
	rc = replica->layer->ops->sync(file);
	replica->layer->ops->close(file);
	if (!rc && !named)
		rc = replica->layer->ops->sync_dir(replica->layer, STORE_COPY);
	pthread_mutex_lock(&replica->lock);
	replica->named |= !rc;
	pthread_mutex_unlock(&replica->lock);
	return rc;
}

/* Afterwards the log is empty. Also for a copy of an earlier process. */
static int move_copy_log(struct store_layer *layer)
{
	struct store_vfs *vfs;
	sqlite3 *db = NULL;
	int rc = store_vfs_create_in(layer, STORE_COPY, NULL, NULL, &vfs), result;

	if (rc)
		return rc;
	result = sqlite3_open_v2(COPY_DB, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
				 store_vfs_name(vfs));
	if (result == SQLITE_OK)
		result = sqlite3_exec(db,
				      "PRAGMA synchronous=FULL;PRAGMA cache_size=-256;"
				      "PRAGMA mmap_size=0;SELECT count(*) FROM sqlite_master",
				      NULL, NULL, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	rc = result == SQLITE_OK ? 0 : -store_vfs_errno();
	if (result != SQLITE_OK && !rc)
		rc = -EIO;
	sqlite3_close(db);
	store_vfs_destroy(vfs);
	return rc;
}

static int move_complete_log(struct store_replica *replica)
{
	int rc;

	pthread_mutex_lock(&replica->lock);
	if (replica->to)
		replica->layer->ops->close(replica->to);
	replica->to = NULL;
	replica->state.moved = COPY_MOVING;
	rc = store_copy_state_write(replica->layer, &replica->state, false);
	pthread_mutex_unlock(&replica->lock);
	if (!rc)
		rc = move_copy_log(replica->layer);
	pthread_mutex_lock(&replica->lock);
	/* It may have been given up meanwhile. */
	if (!rc && replica->complete) {
		replica->complete = false;
		replica->salt = replica->end = 0;
		replica->state.moved = COPY_MOVED;
		note_copied(&replica->state, 0, 0, replica->state.written);
		rc = store_copy_state_write(replica->layer, &replica->state, true);
	}
	pthread_mutex_unlock(&replica->lock);
	return rc;
}

void store_replica_settle(struct store_replica *replica)
{
	struct store_place limit;
	uint64_t salt, end;
	int64_t written;
	bool complete, missing;
	int rc;

	pthread_mutex_lock(&replica->settling);
	pthread_mutex_lock(&replica->lock);
	complete = replica->complete;
	missing = replica->missing;
	salt = replica->salt;
	end = replica->end;
	written = replica->shipped;
	pthread_mutex_unlock(&replica->lock);
	rc = missing ? 0 : flush_copy_log(replica);
	if (!rc && complete && !missing)
		rc = move_complete_log(replica);
	store_wal_marked(replica->wal, &limit);
	pthread_mutex_lock(&replica->lock);
	if (rc) {
		give_copy_up(replica, rc);
	} else {
		ship_log(replica, &limit);
		if (!replica->missing && !replica->complete && !complete) {
			note_copied(&replica->state, salt, end, written);
			store_copy_state_write(replica->layer, &replica->state, false);
		}
	}
	pthread_mutex_unlock(&replica->lock);
	pthread_mutex_unlock(&replica->settling);
}

void store_replica_look(struct store_replica *replica, struct store_replica_view *view)
{
	struct store_place place;

	store_wal_place(replica->wal, &place);
	pthread_mutex_lock(&replica->lock);
	*view = (struct store_replica_view){.missing = replica->missing,
					    .full = replica->missing && replica->full &&
						    !replica->kept,
					    .busy = replica->complete,
					    .ns = replica->same_ns};
	if (replica->complete)
		view->rest = place.end;
	else if (!replica->missing && !replica->making && place.end > replica->end)
		view->rest = place.end - replica->end;
	pthread_mutex_unlock(&replica->lock);
}

/* -- making the copy: pages of the database, which a checkpoint may be writing, then the log, which has those -- */

/* -EBADMSG: it is damaged. One without any byte was never used. */
static int read_stable_page(struct store_replica *replica, struct store_file *file, uint32_t number,
			    uint8_t *page)
{
	const struct iovec iov = {page, STORE_DB_PAGE};

	for (int i = 0; i < TRIES; i++) {
		ssize_t n = replica->store->ops->preadv(
			file, &iov, 1, (uint64_t)(number - 1) * STORE_DB_PAGE, false);

		if (n == STORE_DB_PAGE &&
		    (store_page_is_sound(number, page) || store_page_is_zero(page)))
			return 0;
	}
	return -EBADMSG;
}

static int copy_database_pages(struct store_replica *replica, struct store_file *from,
			       struct store_file *to, bool (*stopped)(void *arg), void *arg)
{
	const struct store_layer_ops *ops = replica->layer->ops;
	unsigned room = CHUNK / STORE_DB_PAGE;
	uint8_t *chunk = malloc(CHUNK);
	uint64_t length;
	uint32_t pages = 0;
	int rc = chunk ? replica->store->ops->size(from, &length) : -ENOMEM;

	if (!rc)
		pages = (uint32_t)(length / STORE_DB_PAGE);
	for (uint32_t at = 0; !rc && at < pages; at += room) {
		uint32_t count = pages - at < room ? pages - at : room;
		const struct iovec iov = {chunk, (size_t)count * STORE_DB_PAGE};
		ssize_t n;

		if (stopped && stopped(arg))
			rc = -EINTR;
		for (uint32_t i = 0; !rc && i < count; i++)
			rc = read_stable_page(replica, from, at + i + 1, chunk + i * STORE_DB_PAGE);
		n = rc ? 0 : ops->pwritev(to, &iov, 1, (uint64_t)at * STORE_DB_PAGE);
		if (n < 0)
			rc = (int)n;
	}
	free(chunk);
	if (!rc)
		rc = ops->truncate(to, (uint64_t)pages * STORE_DB_PAGE);
	return rc ? rc : ops->sync(to);
}

static int copy_database(struct store_replica *replica, bool (*stopped)(void *arg), void *arg)
{
	struct store_file *from, *to;
	int rc = replica->store->ops->open(replica->store, META_DB, 0, &from);

	if (rc)
		return rc;
	rc = replica->layer->ops->open(replica->layer, COPY_NEW,
				       STORE_OPEN_WRITE | STORE_OPEN_CREATE, &to);
	if (!rc) {
		rc = copy_database_pages(replica, from, to, stopped, arg);
		replica->layer->ops->close(to);
	}
	replica->store->ops->close(from);
	return rc;
}

static int remove_copy_log(struct store_layer *layer)
{
	int rc = layer->ops->unlink(layer, COPY_LOG);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	return layer->ops->sync_dir(layer, STORE_COPY);
}

static int make_copy(struct store_replica *replica, bool (*stopped)(void *arg), void *arg)
{
	struct store_place limit;
	int rc = copy_database(replica, stopped, arg);

	if (rc)
		replica->layer->ops->unlink(replica->layer, COPY_NEW);
	/* Until here there is the older copy. */
	if (!rc)
		rc = write_copy_state(replica, COPY_PARTIAL, 0);
	if (!rc)
		rc = remove_copy_log(replica->layer);
	if (!rc)
		rc = replica->layer->ops->rename(replica->layer, COPY_NEW, COPY_DB);
	if (!rc)
		rc = replica->layer->ops->sync_dir(replica->layer, STORE_COPY);
	if (rc)
		return rc;
	store_wal_marked(replica->wal, &limit);
	pthread_mutex_lock(&replica->lock);
	replica->making = replica->missing = replica->complete = false;
	replica->salt = replica->end = replica->state.salt = 0;
	replica->state.base = 0;
	ship_log(replica, &limit);
	note_copied(&replica->state, replica->salt, replica->end, replica->shipped);
	rc = replica->missing ? -EIO : 0;
	pthread_mutex_unlock(&replica->lock);
	if (!rc)
		rc = flush_copy_log(replica);
	return rc ? rc : write_copy_state(replica, COPY_FOLLOWS, 0);
}

void store_replica_renew(struct store_replica *replica, bool (*stopped)(void *arg), void *arg)
{
	int rc;

	pthread_mutex_lock(&replica->settling);
	pthread_mutex_lock(&replica->lock);
	close_logs(replica);
	replica->making = true;
	pthread_mutex_unlock(&replica->lock);
	rc = make_copy(replica, stopped, arg);
	pthread_mutex_lock(&replica->lock);
	replica->making = false;
	if (rc)
		give_copy_up(replica, rc == -EINTR ? 0 : rc);
	else if (replica->told)
		report_line(replica->report, REPORT_INFO, "the copy of the metadata is complete again");
	if (!rc)
		replica->told = false;
	pthread_mutex_unlock(&replica->lock);
	pthread_mutex_unlock(&replica->settling);
}

/* Without its state a copy is not used. */
static bool remove_copy_files(struct store_layer *layer)
{
	static const char *const rest[] = {COPY_LOG, COPY_NEW, COPY_DB};
	bool removed = !layer->ops->unlink(layer, COPY_STATE);

	if (removed && layer->ops->sync_dir(layer, STORE_COPY))
		return false;
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		removed |= !layer->ops->unlink(layer, rest[i]);
	return removed;
}

bool store_replica_drop(struct store_replica *replica)
{
	bool removed = false;

	pthread_mutex_lock(&replica->settling);
	pthread_mutex_lock(&replica->lock);
	assert(!replica->making);
	if (!replica->kept) {
		give_copy_up(replica, 0);
		removed = remove_copy_files(replica->layer);
		replica->told |= removed;
	}
	pthread_mutex_unlock(&replica->lock);
	pthread_mutex_unlock(&replica->settling);
	return removed;
}

/* -- single pages of one for the other. In each, a page that no log has is as the last generation of the log left it. -- */

/* Whether the first `end` bytes of a log have a page; *offset: where. A log that cannot be read may have it. */
static bool may_log_have(struct store_layer *layer, const char *path, uint64_t end, uint32_t number,
			 uint64_t *offset)
{
	struct store_file *file;
	int rc;

	*offset = 0;
	if (!end)
		return false;
	if (layer->ops->open(layer, path, 0, &file))
		return true;
	rc = store_wal_find(file, end, number, offset);
	layer->ops->close(file);
	return rc || *offset;
}

static bool may_database_log_have(struct store_replica *replica, uint32_t number)
{
	struct store_place place;
	uint64_t offset;

	store_wal_place(replica->wal, &place);
	return may_log_have(replica->store, META_LOG, place.end, number, &offset);
}

static bool read_page_at(struct store_layer *layer, const char *path, uint64_t offset,
			 uint8_t *page)
{
	const struct iovec iov = {page, STORE_DB_PAGE};
	struct store_file *file;
	ssize_t n;

	if (layer->ops->open(layer, path, 0, &file))
		return false;
	n = layer->ops->preadv(file, &iov, 1, offset, false);
	layer->ops->close(file);
	return n == STORE_DB_PAGE;
}

static bool read_page_of(struct store_layer *layer, const char *path, uint32_t number,
			 uint8_t *page)
{
	return read_page_at(layer, path, (uint64_t)(number - 1) * STORE_DB_PAGE, page) &&
	       store_page_is_sound(number, page);
}

/* A page of the database is damaged, for store_vfs_spare(). */
static bool spare_page(void *arg, uint32_t number, uint8_t page[STORE_DB_PAGE])
{
	struct store_replica *replica = arg;
	uint64_t offset = 0;
	bool known;

	pthread_mutex_lock(&replica->lock);
	known = !replica->missing && !replica->making && !may_database_log_have(replica, number);
	/* The generation before may not be in the copy yet. */
	if (known && replica->complete &&
	    may_log_have(replica->layer, COPY_LOG, replica->end, number, &offset))
		known = offset && read_page_at(replica->layer, COPY_LOG, offset, page);
	else if (known)
		known = read_page_of(replica->layer, COPY_DB, number, page);
	pthread_mutex_unlock(&replica->lock);
	return known;
}

/* A page in the log of the database is damaged. The log of the copy has the same bytes, as far as it goes. */
static bool spare_frame(void *arg, uint64_t offset, uint8_t page[STORE_DB_PAGE])
{
	struct store_replica *replica = arg;
	struct store_place place;
	bool known;

	store_wal_place(replica->wal, &place);
	pthread_mutex_lock(&replica->lock);
	known = !replica->missing && !replica->making && !replica->complete && replica->end &&
		replica->salt == place.salt && offset + STORE_DB_PAGE <= replica->end &&
		read_page_at(replica->layer, COPY_LOG, offset, page);
	pthread_mutex_unlock(&replica->lock);
	return known;
}

/* A page of the copy is damaged. */
static void mend_page_of_copy(struct store_replica *replica, struct store_file *file,
			      uint32_t number)
{
	uint8_t page[STORE_DB_PAGE];
	const struct iovec iov = {page, STORE_DB_PAGE};
	ssize_t n = 0;

	pthread_mutex_lock(&replica->lock);
	if (!replica->missing && !replica->making && !replica->complete &&
	    read_page_of(replica->store, META_DB, number, page) &&
	    !may_database_log_have(replica, number))
		n = replica->layer->ops->pwritev(file, &iov, 1,
						 (uint64_t)(number - 1) * STORE_DB_PAGE);
	pthread_mutex_unlock(&replica->lock);
	if (n == STORE_DB_PAGE)
		report_damage(
			replica->report,
			"page %u of the copy of the metadata was damaged, and was repaired: look at its "
			"disk",
			(unsigned)number);
}

void store_replica_verify(struct store_replica *replica, bool all)
{
	uint8_t page[STORE_DB_PAGE];
	const struct iovec iov = {page, sizeof(page)};
	struct store_file *file;

	pthread_mutex_lock(&replica->settling);
	if (all)
		replica->verified = 0;
	if (replica->layer->ops->open(replica->layer, COPY_DB, STORE_OPEN_WRITE, &file)) {
		pthread_mutex_unlock(&replica->settling);
		return;
	}
	for (uint32_t count = all ? UINT32_MAX : STRETCH; count; count--) {
		uint64_t at = (uint64_t)replica->verified * STORE_DB_PAGE;
		ssize_t n = replica->layer->ops->preadv(file, &iov, 1, at, false);

		if (n == 0) {
			replica->verified = 0;
			break;
		}
		replica->verified++;
		/* One of zeros may never have been used: then that of the database is no better. */
		if (n != STORE_DB_PAGE || !store_page_is_sound(replica->verified, page))
			mend_page_of_copy(replica, file, replica->verified);
	}
	replica->layer->ops->sync(file);
	replica->layer->ops->close(file);
	pthread_mutex_unlock(&replica->settling);
}

/* -- beginning and end -- */

/* Whether the copy can go on from where it is. */
static int find_copy_place(struct store_replica *replica)
{
	struct store_place main, copy;
	int rc = store_copy_log_inspect(replica->layer, &copy);

	if (rc)
		return rc;
	store_wal_marked(replica->wal, &main);
	replica->missing = !store_copy_is_same(&replica->state, &main, &copy) ||
			   (copy.end && copy.salt == main.salt &&
			    (copy.end > main.end ||
			     !store_copy_log_goes_on(replica->layer, replica->store, copy.end)));
	if (replica->missing)
		return 0;
	replica->salt = copy.end ? copy.salt : 0;
	replica->end = copy.end;
	replica->complete = copy.end && copy.salt != main.salt;
	replica->shipped = store_copy_has_log(&replica->state, &copy) ? replica->state.written
								      : replica->state.base;
	note_copied(&replica->state, copy.salt, copy.end, replica->shipped);
	/* From now on the database may be newer. */
	return write_copy_state(replica, COPY_FOLLOWS,
				replica->state.state == COPY_CLOSED ? replica->state.mark : 0);
}

static int prepare_copy(struct store_replica *replica, const uint8_t uuid[16])
{
	static const uint8_t none[16];
	int rc = replica->layer->ops->mkdir(replica->layer, STORE_COPY);

	if (!rc)
		rc = replica->layer->ops->sync_dir(replica->layer, ".");
	if (rc && rc != -EEXIST)
		return rc;
	rc = store_copy_state_read(replica->layer, &replica->state);
	if (rc)
		return rc;
	if (memcmp(replica->state.uuid, none, 16) && memcmp(replica->state.uuid, uuid, 16))
		return -EEXIST;
	memcpy(replica->state.uuid, uuid, 16);
	return find_copy_place(replica);
}

int store_replica_open(struct store_layer *copy, struct store_layer *store, struct store_vfs *vfs,
		       const uint8_t uuid[16], struct report *report, struct store_replica **out)
{
	struct store_replica *replica = calloc(1, sizeof(*replica));
	int rc;

	*out = NULL;
	if (!replica)
		return -ENOMEM;
	*replica = (struct store_replica){.layer = copy,
					  .store = store,
					  .wal = store_vfs_wal(vfs),
					  .report = report,
					  .chunk = malloc(CHUNK)};
	pthread_mutex_init(&replica->lock, NULL);
	pthread_mutex_init(&replica->settling, NULL);
	rc = replica->chunk ? prepare_copy(replica, uuid) : -ENOMEM;
	if (rc) {
		store_replica_free(replica);
		return rc;
	}
	store_wal_follow(replica->wal, complete_generation, replica);
	store_vfs_spare(vfs, &(struct store_spare){spare_page, spare_frame, replica});
	*out = replica;
	return 0;
}

void store_replica_free(struct store_replica *replica)
{
	if (!replica)
		return;
	close_logs(replica);
	pthread_mutex_destroy(&replica->lock);
	pthread_mutex_destroy(&replica->settling);
	free(replica->chunk);
	free(replica);
}

void store_replica_end(struct store_replica *replica)
{
	struct store_place place;
	bool same;

	store_replica_settle(replica);
	store_wal_marked(replica->wal, &place);
	pthread_mutex_lock(&replica->lock);
	same = !replica->missing && !replica->complete && !replica->end && place.closed &&
	       !place.end;
	pthread_mutex_unlock(&replica->lock);
	if (!same)
		return;
	replica->state.written = time(NULL);
	if (!write_copy_state(replica, COPY_CLOSED, place.sequence))
		store_copy_note_closed(replica->store, place.sequence);
}
