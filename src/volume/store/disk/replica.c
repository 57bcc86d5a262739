/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy of the metadata: following the log, moving it to the copy, making the copy anew, repairs. */
#include "volume/store/disk/replica.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sqlite3.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/held.h"
#include "volume/store/disk/crc.h"
#include "volume/store/disk/wal.h"

#define COPY_DB	   STORE_COPY "/db"
#define COPY_NEW   STORE_COPY "/db.new"
#define COPY_LOG   STORE_COPY "/db-wal"
#define COPY_STATE STORE_COPY "/state"
#define META_DB	   "meta/db"
#define META_LOG   "meta/db-wal"
#define CHUNK	   (256u << 10)
#define LONG	   (64u << 20) /* bytes of a database whose copy takes more than a moment */
#define STRETCH	   256 /* pages that are verified at a time */
#define TRIES	   5 /* to read a page that is being written */

/* The file of the state has two of these, SLOT bytes apart, written in turn. */
#define SLOT  4096
#define MAGIC 0x3279706f43575852ull

enum {
	COPY_PARTIAL = 1, /* it is being made */
	COPY_FOLLOWS,	  /* it has all generations of the log before its own */
	COPY_CLOSED,	  /* it is the database whose mark has `mark` */
};

struct state {
	uint64_t magic, sequence;
	uint64_t state, mark;
	/* The last generation of the log that the copy has as a whole, also before it is in the copy. */
	uint64_t salt, end;
	uint64_t moved; /* it is in the copy */
	int64_t written; /* CLOCK_REALTIME in seconds: the copy had all changes */
	uint8_t uuid[16];
	uint64_t check;
};

struct store_replica {
	struct store_layer *layer, *store;
	struct store_wal *wal;
	struct report *report;
	pthread_mutex_t settling; /* one thread flushes, moves the log, or makes the copy; taken first */
	uint32_t verified;	  /* pages of the copy, in this pass; covered by `settling` */
	pthread_mutex_t lock;	  /* covers the rest; held while bytes are copied, not during flushes */
	struct state state;	  /* the last one that was written or read */
	struct store_file *from, *to; /* the logs; or NULL */
	uint64_t salt, end;	      /* what the copy's log has; 0, 0: nothing */
	uint64_t rewinds;	      /* of the log, as far as the copy has followed them */
	bool complete;		      /* all of a generation: the next one is to come */
	bool missing;		      /* there is no copy */
	bool making;
	bool told;		      /* that it failed */
	bool unflushed, named;
	uint64_t same_ns;
	uint8_t *chunk;
};

/* -- the file of the state -- */

static uint64_t compute_state_check(const struct state *state)
{
	return store_crc(0, state, offsetof(struct state, check));
}

static int read_copy_state(struct store_layer *layer, struct state *newest)
{
	struct store_file *file;
	struct state state;
	const struct iovec iov = {&state, sizeof(state)};
	int rc = layer->ops->open(layer, COPY_STATE, 0, &file);

	*newest = (struct state){0};
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (unsigned i = 0; i < 2; i++) {
		ssize_t n = layer->ops->preadv(file, &iov, 1, (uint64_t)i * SLOT, false);

		if (n == (ssize_t)sizeof(state) && state.magic == MAGIC &&
		    state.check == compute_state_check(&state) &&
		    state.sequence > newest->sequence)
			*newest = state;
	}
	layer->ops->close(file);
	return 0;
}

/* Write replica->state to the slot that the newest one is not in. `flush`: durably. */
static int put_copy_state(struct store_replica *replica, bool flush)
{
	const struct store_layer_ops *ops = replica->layer->ops;
	struct state *state = &replica->state;
	const struct iovec iov = {state, sizeof(*state)};
	struct store_file *file;
	ssize_t n;
	int rc = ops->open(replica->layer, COPY_STATE, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file);

	assert(mutex_is_held(&replica->lock));
	if (rc)
		return rc;
	state->magic = MAGIC;
	state->written = time(NULL);
	state->sequence++;
	state->check = compute_state_check(state);
	n = ops->pwritev(file, &iov, 1, state->sequence % 2 * SLOT);
	rc = n < 0 ? (int)n : flush ? ops->sync(file) : 0;
	ops->close(file);
	return rc || !flush ? rc : ops->sync_dir(replica->layer, STORE_COPY);
}

/* In both slots, as the mark. */
static int write_copy_state(struct store_replica *replica, uint64_t state, uint64_t mark)
{
	int rc;

	pthread_mutex_lock(&replica->lock);
	replica->state.state = state;
	replica->state.mark = mark;
	rc = put_copy_state(replica, true);
	if (!rc)
		rc = put_copy_state(replica, true);
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
	replica->complete = false;
	replica->salt = replica->end = replica->same_ns = 0;
	if (rc == -EBADMSG && !replica->told)
		report_line(replica->report, REPORT_ERROR,
			    "the metadata are damaged: their copy, which is older, is kept as it is; stop the "
			    "server, and start it again");
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

/* `limit`: as far as what the log refers to is flushed, or was some time ago; NULL: all of it is. */
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
	if (limit && limit->marked_end < place.end)
		place.end = limit->marked_end;
	if (!replica->end)
		replica->salt = place.salt;
	assert(replica->salt == place.salt);
	rc = copy_log_bytes(replica, place.end);
	if (rc)
		give_copy_up(replica, rc);
	else
		replica->same_ns = now;
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
	replica->state.moved = false;
	put_copy_state(replica, false);
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
	pthread_mutex_unlock(&replica->lock);
	rc = move_copy_log(replica->layer);
	pthread_mutex_lock(&replica->lock);
	/* It may have been given up meanwhile. */
	if (!rc && replica->complete) {
		replica->complete = false;
		replica->salt = replica->end = 0;
		replica->state.moved = true;
		rc = put_copy_state(replica, true);
	}
	pthread_mutex_unlock(&replica->lock);
	return rc;
}

void store_replica_settle(struct store_replica *replica)
{
	struct store_place limit;
	bool complete, missing;
	int rc;

	pthread_mutex_lock(&replica->settling);
	pthread_mutex_lock(&replica->lock);
	complete = replica->complete;
	missing = replica->missing;
	pthread_mutex_unlock(&replica->lock);
	rc = missing ? 0 : flush_copy_log(replica);
	if (!rc && complete && !missing)
		rc = move_complete_log(replica);
	store_wal_marked(replica->wal, &limit);
	pthread_mutex_lock(&replica->lock);
	if (rc)
		give_copy_up(replica, rc);
	else
		ship_log(replica, &limit);
	pthread_mutex_unlock(&replica->lock);
	pthread_mutex_unlock(&replica->settling);
}

bool store_replica_is_busy(struct store_replica *replica)
{
	bool busy;

	pthread_mutex_lock(&replica->lock);
	busy = replica->complete;
	pthread_mutex_unlock(&replica->lock);
	return busy;
}

uint64_t store_replica_rest(struct store_replica *replica)
{
	struct store_place place;
	uint64_t rest = 0;

	store_wal_place(replica->wal, &place);
	pthread_mutex_lock(&replica->lock);
	if (!replica->missing && !replica->making)
		rest = replica->complete	  ? place.end
		       : place.end > replica->end ? place.end - replica->end
						  : 0;
	pthread_mutex_unlock(&replica->lock);
	return rest;
}

bool store_replica_is_missing(struct store_replica *replica)
{
	bool missing;

	pthread_mutex_lock(&replica->lock);
	missing = replica->missing;
	pthread_mutex_unlock(&replica->lock);
	return missing;
}

uint64_t store_replica_time(struct store_replica *replica)
{
	uint64_t time;

	pthread_mutex_lock(&replica->lock);
	time = replica->same_ns;
	pthread_mutex_unlock(&replica->lock);
	return time;
}

/* -- making the copy: pages of the database, which a checkpoint may be writing, then the log, which has those -- */

static bool is_zero_page(const uint8_t *page)
{
	return !page[0] && memcmp(page, page + 1, STORE_DB_PAGE - 1) == 0;
}

/* -EBADMSG: it is damaged. One without any byte was never used. */
static int read_stable_page(struct store_replica *replica, struct store_file *file, uint32_t number,
			    uint8_t *page)
{
	const struct iovec iov = {page, STORE_DB_PAGE};

	for (int i = 0; i < TRIES; i++) {
		ssize_t n = replica->store->ops->preadv(
			file, &iov, 1, (uint64_t)(number - 1) * STORE_DB_PAGE, false);

		if (n == STORE_DB_PAGE && (store_page_is_sound(number, page) || is_zero_page(page)))
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
	ship_log(replica, &limit);
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

bool store_replica_is_long(struct store_replica *replica)
{
	struct store_file *file;
	uint64_t length = 0;

	if (replica->store->ops->open(replica->store, META_DB, 0, &file))
		return false;
	replica->store->ops->size(file, &length);
	replica->store->ops->close(file);
	return length > LONG;
}

/* -- beginning and end -- */

/* The contents of the copy's log. */
static int inspect_copy_log(struct store_layer *layer, struct store_place *place)
{
	struct store_wal *wal;
	enum store_past past;
	int rc = store_wal_create(layer, STORE_COPY "/mark", COPY_LOG, NULL, NULL, &wal);

	if (rc)
		return rc;
	rc = store_wal_recover(wal, &past);
	if (!rc)
		store_wal_place(wal, place);
	store_wal_destroy(wal);
	return rc;
}

/* SQLite counts generations in the first half of the salt. */
static bool is_next_generation(uint64_t before, uint64_t salt)
{
	return before && (uint32_t)(salt >> 32) == (uint32_t)(before >> 32) + 1;
}

/* The copy has all of a generation of the log: `copy` is what its own log has. */
static bool has_whole_generation(const struct state *state, const struct store_place *copy)
{
	if (!state->salt)
		return false;
	if (state->moved)
		return copy->end == 0;
	return copy->salt == state->salt && copy->end == state->end;
}

/* Whether a page that the database's log does not have is the same in both. */
static bool is_copy_same(const struct state *state, const struct store_place *main,
			 const struct store_place *copy)
{
	if (state->state == COPY_CLOSED)
		return main->closed && state->mark - main->sequence <= 1 && !main->end &&
		       !copy->end;
	if (state->state != COPY_FOLLOWS)
		return false;
	if (copy->end && copy->salt == main->salt)
		return true;
	if (!has_whole_generation(state, copy))
		return false;
	return main->end ? is_next_generation(state->salt, main->salt)
			 : state->salt == main->marked_salt && main->marked_end <= 1;
}

static bool read_last_frame(struct store_layer *layer, const char *path, uint64_t end,
			    uint8_t header[STORE_FRAME_HEADER])
{
	const struct iovec iov = {header, STORE_FRAME_HEADER};
	struct store_file *file;
	ssize_t n;

	if (end < STORE_FRAME_HEADER + STORE_DB_PAGE || layer->ops->open(layer, path, 0, &file))
		return false;
	n = layer->ops->preadv(file, &iov, 1, end - STORE_FRAME_HEADER - STORE_DB_PAGE, false);
	layer->ops->close(file);
	return n == STORE_FRAME_HEADER;
}

/* Whether the database's log has the first `end` bytes of that of the copy: a frame has a checksum of all that is before it. */
static bool is_log_continued(struct store_layer *copy, struct store_layer *store, uint64_t end)
{
	uint8_t of_copy[STORE_FRAME_HEADER], of_store[STORE_FRAME_HEADER];

	return read_last_frame(store, META_LOG, end, of_store) &&
	       read_last_frame(copy, COPY_LOG, end, of_copy) &&
	       memcmp(of_store, of_copy, sizeof(of_store)) == 0;
}

/* Whether the copy can go on from where it is. */
static int find_copy_place(struct store_replica *replica)
{
	struct store_place main, copy;
	int rc = inspect_copy_log(replica->layer, &copy);

	if (rc)
		return rc;
	store_wal_marked(replica->wal, &main);
	replica->missing = !is_copy_same(&replica->state, &main, &copy) ||
			   (copy.end && copy.salt == main.salt &&
			    (copy.end > main.end ||
			     !is_log_continued(replica->layer, replica->store, copy.end)));
	if (replica->missing)
		return 0;
	replica->salt = copy.end ? copy.salt : 0;
	replica->end = copy.end;
	replica->complete = copy.end && copy.salt != main.salt;
	/* From now on the database may be newer. */
	return write_copy_state(replica, COPY_FOLLOWS, 0);
}

static int prepare_copy(struct store_replica *replica, const uint8_t uuid[16])
{
	static const uint8_t none[16];
	int rc = replica->layer->ops->mkdir(replica->layer, STORE_COPY);

	if (!rc)
		rc = replica->layer->ops->sync_dir(replica->layer, ".");
	if (rc && rc != -EEXIST)
		return rc;
	rc = read_copy_state(replica->layer, &replica->state);
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
	if (same)
		write_copy_state(replica, COPY_CLOSED, place.sequence);
}

/* -- repairs -- */

/* Places of both logs. */
static int inspect_both_logs(struct store_layer *copy, struct store_layer *store,
			     struct store_place *main, struct store_place *other)
{
	struct store_wal *wal;
	int rc = inspect_copy_log(copy, other);

	if (!rc)
		rc = store_wal_create(store, "meta/mark", META_LOG, NULL, NULL, &wal);
	if (rc)
		return rc;
	rc = store_wal_inspect(wal, main);
	store_wal_destroy(wal);
	return rc;
}

int store_replica_compare(struct store_layer *copy, struct store_layer *store,
			  enum store_relation *relation)
{
	struct store_place main, other;
	struct state state;
	int rc = read_copy_state(copy, &state);

	*relation = STORE_COPY_NONE;
	if (rc || state.state == COPY_PARTIAL || !state.state)
		return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
	rc = inspect_both_logs(copy, store, &main, &other);
	if (rc)
		return rc;
	*relation = is_copy_same(&state, &main, &other) ? STORE_COPY_SAME : STORE_COPY_OLDER;
	return 0;
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
	if (main->salt)
		return copy->salt == main->salt;
	return main->marked_end > 1 ? copy->salt == main->marked_salt
				    : is_next_generation(main->marked_salt, copy->salt);
}

/* What lies behind the damage of the database's log may be whole in that of the copy. */
static bool has_rest_of_log(const struct store_place *main, const struct store_place *copy)
{
	return (main->damaged || main->gone) && copy->end > main->end && is_log_of(main, copy);
}

/*
 * In strict mode no mark says how long the log was. The copy has flushed bytes only: if it has more of the same log, the rest
 * is gone.
 */
static int inspect_lost_log(struct store_layer *copy, struct store_layer *store,
			    struct store_place *main, struct store_place *other)
{
	int rc = inspect_both_logs(copy, store, main, other);

	if (rc || main->closed || main->damaged || main->gone || !main->salt ||
	    other->salt != main->salt || other->end <= main->end)
		return rc;
	main->gone = is_log_continued(copy, store, main->end);
	return 0;
}

int store_replica_judge_log(struct store_layer *copy, struct store_layer *store, bool *better,
			    bool *lost)
{
	struct store_place main, other;
	int rc = inspect_lost_log(copy, store, &main, &other);

	*better = !rc && has_rest_of_log(&main, &other);
	*lost = !rc && (main.gone || (main.damaged && (!*better || other.end < main.marked_end)));
	return rc;
}

int64_t store_replica_written(struct store_layer *copy)
{
	struct state state;

	return read_copy_state(copy, &state) ? 0 : state.written;
}

int store_replica_mend_log(struct store_layer *copy, struct store_layer *store, bool *mended,
			   bool *lost)
{
	struct store_place main, other;
	bool gone;
	int rc = inspect_lost_log(copy, store, &main, &other);

	*mended = *lost = false;
	if (rc || (!main.damaged && !main.gone))
		return rc;
	gone = main.gone;
	if (has_rest_of_log(&main, &other)) {
		rc = extend_log(copy, store, main.end, other.end);
		if (!rc)
			rc = inspect_both_logs(copy, store, &main, &other);
	}
	*mended = !rc && !gone && !main.damaged;
	*lost = !rc && !*mended;
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
	repair->left += !same && !(is_zero_page(page) && is_zero_page(other));
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
