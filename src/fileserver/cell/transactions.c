/* SPDX-License-Identifier: BSD-2-Clause */
/* Transactions: each holds one volume, from its begin to its end, or until nobody has used it for ten minutes. */
#include "fileserver/cell/private.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <rxwire/call.h>

#include "afs/numbers.h"
#include "common/failure.h"
#include "fileserver/base/base.h"

#define IDLE_S	    600
#define LOOK_S	    30 /* between looks for idle ones */
#define SEIZE_S	    30 /* for a call that was aborted to leave its transaction */
#define THREADS_MAX 64
#define WAITING_MAX 56 /* of them, for those whose callers determine how long they take */

int32_t fsd_volume_code(int result)
{
	switch (result) {
	case -ENOMEM:
		return AFS_VOL_NO_MEMORY;
	case -EACCES:
		return AFS_VOL_BAD_ACCESS;
	default:
		return result < 0 ? -result : result;
	}
}

static struct fsd_transaction *find_by_volume(struct transactions *all, uint32_t volume)
{
	assert(mutex_is_held(&all->ender.lock));
	for (uint32_t i = 0; i < all->count; i++)
		if (all->item[i].volume == volume)
			return &all->item[i];
	return NULL;
}

static struct fsd_transaction *find_by_number(struct transactions *all, int32_t id)
{
	assert(mutex_is_held(&all->ender.lock));
	for (uint32_t i = 0; i < all->count; i++)
		if (all->item[i].id == id)
			return &all->item[i];
	return NULL;
}

/* A new one, in which a call runs. */
static int32_t add_transaction(struct fsd_cell *cell, uint32_t volume, int32_t mode,
			       struct fsd_transaction *transaction)
{
	struct transactions *all = &cell->transactions;
	uint32_t now = (uint32_t)time(NULL);
	int32_t code = 0;

	*transaction = (struct fsd_transaction){
		.volume = volume, .mode = mode, .created = now, .used = now, .running = true};
	pthread_mutex_lock(&all->ender.lock);
	if (find_by_volume(all, volume))
		code = AFS_VOL_VOLBUSY;
	else if (all->count == FSD_TRANSACTIONS)
		code = AFS_VOL_NO_MEMORY;
	if (!code) {
		transaction->id = ++all->last;
		all->item[all->count++] = *transaction;
	}
	pthread_mutex_unlock(&all->ender.lock);
	return code;
}

static void drop_transaction(struct fsd_cell *cell, int32_t id)
{
	struct transactions *all = &cell->transactions;
	struct fsd_transaction *item;

	pthread_mutex_lock(&all->ender.lock);
	item = find_by_number(all, id);
	assert(item && item->running);
	*item = all->item[--all->count];
	pthread_cond_broadcast(&all->left);
	pthread_mutex_unlock(&all->ender.lock);
}

/* -- begin -- */

/* What callers of the file service get meanwhile. */
static int hold_volume(struct fsd_cell *cell, const struct fsd_transaction *transaction)
{
	if (transaction->mode & (FSD_BUSY | FSD_READ_ONLY))
		return 0;
	return cellvol_hold(cell->store, transaction->volume, STORE_VOFFLINE, STORE_VOFFLINE);
}

static void wake_ender(struct fsd_cell *cell)
{
	struct background *ender = &cell->transactions.ender;

	pthread_mutex_lock(&ender->lock);
	wake_background(ender);
	pthread_mutex_unlock(&ender->lock);
}

int32_t fsd_transaction_begin(struct fsd_cell *cell, uint32_t volume, int32_t mode, int32_t *id)
{
	struct fsd_transaction transaction;
	struct cellvol found;
	int32_t code;
	int result = cellvol_get(cell->store, volume, &found);

	if (result)
		return fsd_volume_code(result);
	if (found.busy) {
		/* Its restore may have failed, and could not be undone. */
		wake_ender(cell);
		return AFS_VOL_VOLBUSY;
	}
	code = add_transaction(cell, volume, mode, &transaction);
	if (code)
		return code;
	result = hold_volume(cell, &transaction);
	if (result) {
		drop_transaction(cell, transaction.id);
		return fsd_volume_code(result);
	}
	snprintf(transaction.name, sizeof(transaction.name), "TransCreate");
	*id = transaction.id;
	fsd_transaction_leave(cell, &transaction);
	return 0;
}

int32_t fsd_transaction_create(struct fsd_cell *cell, const struct cellvol *volume, bool root,
			       int32_t *id)
{
	struct fsd_transaction transaction;
	int32_t code = add_transaction(cell, volume->id, FSD_CREATE, &transaction);
	int result = code ? 0 : cellvol_create(cell->store, volume, root);

	if (code)
		return code;
	if (result) {
		drop_transaction(cell, transaction.id);
		return result == STORE_VVOLEXISTS ? EIO : fsd_volume_code(result);
	}
	snprintf(transaction.name, sizeof(transaction.name), "CreateVolume");
	*id = transaction.id;
	fsd_transaction_leave(cell, &transaction);
	return 0;
}

/* -- calls in one -- */

int32_t fsd_transaction_enter(struct fsd_cell *cell, int32_t id, const char *name,
			      struct fsd_transaction *transaction)
{
	struct transactions *all = &cell->transactions;
	struct fsd_transaction *item;
	int32_t code = ENOENT;

	pthread_mutex_lock(&all->ender.lock);
	item = find_by_number(all, id);
	if (item)
		code = item->running || item->ending ? AFS_VOL_VOLBUSY : 0;
	if (!code) {
		item->running = true;
		snprintf(item->name, sizeof(item->name), "%s", name);
		*transaction = *item;
	}
	pthread_mutex_unlock(&all->ender.lock);
	return code;
}

void fsd_transaction_leave(struct fsd_cell *cell, const struct fsd_transaction *transaction)
{
	struct transactions *all = &cell->transactions;
	struct fsd_transaction *item;
	bool ending;

	pthread_mutex_lock(&all->ender.lock);
	item = find_by_number(all, transaction->id);
	assert(item && item->running && item->volume == transaction->volume && !item->call);
	ending = item->ending;
	*item = *transaction;
	item->used = (uint32_t)time(NULL);
	item->touched = fsd_now();
	item->running = false;
	item->ending = ending;
	pthread_cond_broadcast(&all->left);
	pthread_mutex_unlock(&all->ender.lock);
}

void transactions_expose(struct fsd_cell *cell, const struct fsd_transaction *transaction,
			 rxw_call *call)
{
	struct transactions *all = &cell->transactions;
	struct fsd_transaction *item;

	pthread_mutex_lock(&all->ender.lock);
	item = find_by_number(all, transaction->id);
	assert(item && item->running && !(item->call && call));
	item->call = call;
	if (call && item->ending)
		rxw_call_abort(call, ENOENT);
	pthread_mutex_unlock(&all->ender.lock);
}

int32_t fsd_transaction_seize(struct fsd_cell *cell, int32_t id, const char *name,
			      struct fsd_transaction *transaction)
{
	struct transactions *all = &cell->transactions;
	uint64_t until = monotonic_ns() + (uint64_t)SEIZE_S * NS_PER_S;
	struct fsd_transaction *item;
	int32_t code = ENOENT;

	pthread_mutex_lock(&all->ender.lock);
	while ((item = find_by_number(all, id)) && item->running && monotonic_ns() < until) {
		item->ending = true;
		if (item->call)
			rxw_call_abort(item->call, ENOENT);
		monotonic_wait(&all->left, &all->ender.lock, until);
	}
	if (item) {
		item->ending = false;
		code = item->running ? AFS_VOL_VOLBUSY : 0;
	}
	if (!code) {
		item->running = true;
		snprintf(item->name, sizeof(item->name), "%s", name);
		*transaction = *item;
	}
	pthread_mutex_unlock(&all->ender.lock);
	return code;
}

int32_t fsd_transaction_look(struct fsd_cell *cell, int32_t id, struct fsd_transaction *transaction)
{
	struct transactions *all = &cell->transactions;
	const struct fsd_transaction *item;

	pthread_mutex_lock(&all->ender.lock);
	item = find_by_number(all, id);
	if (item)
		*transaction = *item;
	pthread_mutex_unlock(&all->ender.lock);
	return item ? 0 : ENOENT;
}

int32_t fsd_transaction_freeze(struct fsd_cell *cell, struct fsd_transaction *transaction)
{
	int result;

	assert(transaction->running);
	if (transaction->frozen || !(transaction->mode & FSD_BUSY))
		return 0;
	result = cellvol_hold(cell->store, transaction->volume, 0, STORE_VBUSY);
	transaction->frozen = !result;
	return fsd_volume_code(result);
}

bool fsd_transaction_of(struct fsd_cell *cell, uint32_t volume, struct fsd_transaction *transaction)
{
	struct transactions *all = &cell->transactions;
	const struct fsd_transaction *item;

	pthread_mutex_lock(&all->ender.lock);
	item = find_by_volume(all, volume);
	if (item && transaction)
		*transaction = *item;
	pthread_mutex_unlock(&all->ender.lock);
	return item != NULL;
}

uint32_t fsd_transactions(struct fsd_cell *cell, struct fsd_transaction *list, uint32_t max)
{
	struct transactions *all = &cell->transactions;
	uint32_t count;

	pthread_mutex_lock(&all->ender.lock);
	count = all->count < max ? all->count : max;
	memcpy(list, all->item, count * sizeof(*list));
	pthread_mutex_unlock(&all->ender.lock);
	return count;
}

/* -- volumes that are not ready -- */

void fsd_transaction_made(struct fsd_cell *cell, uint32_t volume)
{
	struct transactions *all = &cell->transactions;

	pthread_mutex_lock(&all->ender.lock);
	/* Without room it stays until the next start. */
	if (all->unready_count < FSD_TRANSACTIONS)
		all->unready[all->unready_count++] = (struct unready){volume, fsd_now()};
	pthread_mutex_unlock(&all->ender.lock);
}

/* One that nobody cares for. */
static bool take_unready(struct transactions *all, uint64_t idle_s, uint32_t *volume)
{
	uint64_t now = fsd_now();

	assert(mutex_is_held(&all->ender.lock));
	for (uint32_t i = 0; i < all->unready_count; i++) {
		struct unready *item = &all->unready[i];

		if (find_by_volume(all, item->volume))
			item->since = now;
		if (now - item->since <= idle_s)
			continue;
		*volume = item->volume;
		*item = all->unready[--all->unready_count];
		return true;
	}
	return false;
}

/* -- end -- */

static void remove_unfinished(struct fsd_cell *cell, struct fsd_transaction *transaction)
{
	struct cellvol volume;

	assert(transaction->running);
	if (!transaction->deleted && cellvol_get(cell->store, transaction->volume, &volume) == 0 &&
	    volume.temporary)
		transaction->deleted = cellvol_delete(cell->store, transaction->volume) == 0;
}

void fsd_transaction_end(struct fsd_cell *cell, struct fsd_transaction *transaction)
{
	const struct fsd_cell_options *options = &cell->options;

	/* A volume that was made and did not get its contents, because its restore failed. */
	if (transaction->mode == FSD_CREATE)
		remove_unfinished(cell, transaction);
	if (transaction->changed && options->changed)
		options->changed(options->arg, transaction->volume);
	if (transaction->recloned && options->changed)
		options->changed(options->arg, transaction->recloned);
	if (!transaction->deleted && !transaction->moved)
		cellvol_hold(cell->store, transaction->volume, 0, 0);
	drop_transaction(cell, transaction->id);
	if (!transaction->deleted && (transaction->flags & 1))
		fsd_transaction_made(cell, transaction->volume);
}

/* What a client has left unfinished goes. */
static void end_idle_transaction(struct fsd_cell *cell, struct fsd_transaction *transaction)
{
	remove_unfinished(cell, transaction);
	fsd_log(RXW_LOG_WARNING, "transaction %d with volume %u was not ended by its client: %s",
		(int)transaction->id, (unsigned)transaction->volume,
		transaction->deleted ? "the unfinished volume is removed" : "it ends now");
	fsd_transaction_end(cell, transaction);
}

static void remove_unready(struct fsd_cell *cell, uint32_t volume)
{
	struct fsd_transaction transaction;
	int32_t id;

	if (fsd_transaction_begin(cell, volume, FSD_CREATE, &id) ||
	    fsd_transaction_enter(cell, id, "DeleteVolume", &transaction))
		return;
	fsd_transaction_end(cell, &transaction);
	if (transaction.deleted)
		fsd_log(RXW_LOG_WARNING, "volume %u, which was never ready, is removed",
			(unsigned)volume);
}

static bool take_idle_transaction(struct fsd_cell *cell, struct fsd_transaction *transaction)
{
	struct transactions *all = &cell->transactions;
	uint64_t now = fsd_now();

	assert(mutex_is_held(&all->ender.lock));
	for (uint32_t i = 0; i < all->count; i++) {
		struct fsd_transaction *item = &all->item[i];

		if (item->running || item->ending || now - item->touched <= cell->options.idle_s)
			continue;
		item->running = true;
		*transaction = *item;
		return true;
	}
	return false;
}

static void *run_ender(void *arg)
{
	struct fsd_cell *cell = arg;
	struct background *ender = &cell->transactions.ender;
	uint64_t look_s = cell->options.idle_s < LOOK_S ? 1 : LOOK_S;
	struct fsd_transaction transaction;
	uint32_t volume;

	pthread_mutex_lock(&ender->lock);
	while (!ender->stop) {
		bool idle = take_idle_transaction(cell, &transaction);
		bool left =
			!idle && take_unready(&cell->transactions, cell->options.idle_s, &volume);

		pthread_mutex_unlock(&ender->lock);
		if (idle)
			end_idle_transaction(cell, &transaction);
		else if (left)
			remove_unready(cell, volume);
		else
			store_restores_retry(cell->store);
		pthread_mutex_lock(&ender->lock);
		if (!idle && !left && !ender->stop)
			sleep_in_background(ender, monotonic_ns() + look_s * NS_PER_S);
	}
	pthread_mutex_unlock(&ender->lock);
	return NULL;
}

/* -- threads -- */

struct cell_job {
	struct fsd_cell *cell;
	struct fsd_share *share; /* NULL: it does not take long */
	void (*run)(void *arg);
	void *arg;
};

static void *run_cell_job(void *arg)
{
	struct cell_job job = *(struct cell_job *)arg;
	struct transactions *all = &job.cell->transactions;

	free(arg);
	job.run(job.arg);
	pthread_mutex_lock(&all->ender.lock);
	if (job.share)
		fsd_share_give(&all->shares, job.share);
	if (!--all->running)
		pthread_cond_broadcast(&all->idle);
	pthread_mutex_unlock(&all->ender.lock);
	return NULL;
}

static bool start_cell_job(struct cell_job *job)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool started;

	if (pthread_attr_init(&attributes))
		return false;
	started = !pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) &&
		  !pthread_create(&thread, &attributes, run_cell_job, job);
	pthread_attr_destroy(&attributes);
	return started;
}

/* False: the caller has its share. */
static bool take_cell_share(struct transactions *all, rxw_call *call, struct cell_job *job)
{
	struct sockaddr_storage peer = {0};
	socklen_t length = sizeof(peer);
	struct fsd_share_key key;

	assert(mutex_is_held(&all->ender.lock));
	if (!call)
		return true;
	if (rxw_call_peer(call, &peer, &length))
		return false;
	fsd_share_of_address(&peer, &key);
	job->share = fsd_share_take(&all->shares, &key, WAITING_MAX);
	return job->share != NULL;
}

bool fsd_cell_run(struct fsd_cell *cell, rxw_call *call, void (*run)(void *arg), void *arg)
{
	struct transactions *all = &cell->transactions;
	struct cell_job *job = malloc(sizeof(*job));
	bool started;

	if (!job)
		return false;
	*job = (struct cell_job){.cell = cell, .run = run, .arg = arg};
	pthread_mutex_lock(&all->ender.lock);
	started = all->running < THREADS_MAX && take_cell_share(all, call, job);
	if (started && !start_cell_job(job)) {
		if (job->share)
			fsd_share_give(&all->shares, job->share);
		started = false;
	}
	all->running += started;
	pthread_mutex_unlock(&all->ender.lock);
	if (!started)
		free(job);
	return started;
}

void fsd_cell_settle(struct fsd_cell *cell)
{
	struct transactions *all;

	if (!cell)
		return;
	all = &cell->transactions;
	atomic_store(&cell->stopping, true);
	pthread_mutex_lock(&all->ender.lock);
	while (all->running)
		pthread_cond_wait(&all->idle, &all->ender.lock);
	pthread_mutex_unlock(&all->ender.lock);
}

/* -- open and close -- */

int transactions_open(struct fsd_cell *cell)
{
	struct transactions *all = &cell->transactions;
	uint64_t secret[2];
	uint32_t first = 0;

	/* So that nobody takes the number of a transaction of an earlier start for one of this. */
	if (getrandom(&first, sizeof(first), 0) != sizeof(first))
		first = (uint32_t)monotonic_ns();
	all->last = (int32_t)(first & 0xffffff);
	all->item = calloc(FSD_TRANSACTIONS, sizeof(*all->item));
	all->unready = calloc(FSD_TRANSACTIONS, sizeof(*all->unready));
	if (!all->item || !all->unready || getrandom(secret, sizeof(secret), 0) != sizeof(secret) ||
	    !fsd_shares_init(&all->shares, sizeof(struct fsd_share), secret))
		return -ENOMEM;
	pthread_cond_init(&all->idle, NULL);
	monotonic_cond_init(&all->left);
	return start_background(&all->ender, run_ender, cell) ? -EAGAIN : 0;
}

void transactions_close(struct fsd_cell *cell)
{
	struct transactions *all = &cell->transactions;

	fsd_cell_settle(cell);
	stop_background(&all->ender);
	pthread_cond_destroy(&all->idle);
	pthread_cond_destroy(&all->left);
	fsd_shares_fini(&all->shares);
	free(all->item);
	free(all->unready);
}

struct fsd_cell *fsd_cell_open(const struct fsd_cell_options *options, char *message)
{
	struct fsd_cell *cell = calloc(1, sizeof(*cell));
	int result;

	if (!cell)
		return fail_with(NULL, message, FSD_MESSAGE_MAX, "no memory");
	cell->options = *options;
	cell->store = options->store;
	if (!options->idle_s)
		cell->options.idle_s = IDLE_S;
	result = locations_open(cell);
	if (!result)
		result = relocate_volumes(cell);
	if (!result)
		result = transactions_open(cell);
	if (!result)
		return cell;
	snprintf(message, FSD_MESSAGE_MAX, "the database of locations cannot be read: %s",
		 result == -ENOMEM ? "no memory" : "see the log");
	locations_close(cell);
	free(cell->transactions.item);
	free(cell->transactions.unready);
	free(cell);
	return NULL;
}

void fsd_cell_close(struct fsd_cell *cell)
{
	if (!cell)
		return;
	transactions_close(cell);
	locations_close(cell);
	free(cell);
}
