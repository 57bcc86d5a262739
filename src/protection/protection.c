/* SPDX-License-Identifier: BSD-2-Clause */
/* An open database, and the view that readers get. */
#include "protection/protection.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/failure.h"
#include "common/held.h"
#include "protection/private.h"

#define NEVER	    (-1)		 /* no version of SQLite, whose versions are unsigned */
#define LOOK_NS	    (100ull * NS_PER_MS) /* the least time between two looks at the file */
#define LOOK_FACTOR 10u			 /* reading takes at most a tenth of the time */

/* The number that SQLite changes when another connection has changed the database. Under db_lock. */
static int data_version(struct prot *prot, int64_t *version)
{
	int rc = sqlite3_step(prot->version);

	if (rc == SQLITE_ROW)
		*version = sqlite3_column_int64(prot->version, 0);
	sqlite3_reset(prot->version);
	return rc == SQLITE_ROW ? 0 : rc;
}

/* Replace the view that readers get. */
static void publish_view(struct prot *prot, struct prot_view *view)
{
	const struct prot_view *old;

	pthread_mutex_lock(&prot->lock);
	old = prot->view;
	view->generation = old ? old->generation + 1 : 1;
	prot->view = view;
	atomic_store(&prot->machines, view->machine_count > 0);
	pthread_mutex_unlock(&prot->lock);
	if (old)
		prot_view_put(old);
}

/* Load if the database has changed, or in any case. Under db_lock. 0, or a code and a line. */
static int load_if_changed(struct prot *prot, bool always, char *message)
{
	struct prot_view *view;
	int64_t version = 0;
	int rc;

	if (data_version(prot, &version))
		return prot_database_error(prot, "be read", message);
	if (!always && version == prot->seen)
		return 0;
	rc = prot_load(prot, &view, message);
	if (rc)
		return rc;
	/* A change between the two is loaded once more at the next look. */
	prot->seen = version;
	publish_view(prot, view);
	return 0;
}

/* Looks at the file. Failures are reported once, until it can be read again. */
static void look_at_database(struct prot *prot, bool changed_here)
{
	char message[PROT_MESSAGE_MAX];
	uint64_t begin = monotonic_ns(), took;
	int rc = load_if_changed(prot, changed_here, message);
	bool bad = rc || prot_database_replaced(prot, message);

	assert(mutex_is_held(&prot->db_lock));
	took = (monotonic_ns() - begin) * LOOK_FACTOR;
	if (bad && !prot->failing && prot->options.warn) {
		char line[PROT_MESSAGE_MAX + 64];

		snprintf(line, sizeof(line), "%s; what was read before stays in use", message);
		prot->options.warn(prot->options.arg, line);
	}
	/* Whatever the version is, it was not loaded. */
	if (rc)
		prot->seen = NEVER;
	prot->failing = bad;
	pthread_mutex_lock(&prot->lock);
	prot->next_look = monotonic_ns() + (took > LOOK_NS ? took : LOOK_NS);
	/* Only now, so that no thread takes the old view meanwhile. */
	prot->stale = false;
	pthread_mutex_unlock(&prot->lock);
}

const struct prot_view *prot_view_get(struct prot *prot)
{
	const struct prot_view *view;
	bool due, stale, mine;

	pthread_mutex_lock(&prot->lock);
	stale = prot->stale;
	mine = stale && (prot->several || pthread_equal(prot->changer, pthread_self()));
	due = stale || monotonic_ns() >= prot->next_look;
	pthread_mutex_unlock(&prot->lock);
	/*
	 * Threads use what there is while another one looks, which takes long if the database is large; but not the one that has
	 * made a change. A thread in a transaction of its own does not look.
	 */
	if (due && (mine ? pthread_mutex_lock(&prot->db_lock)
			 : pthread_mutex_trylock(&prot->db_lock)) == 0) {
		pthread_mutex_lock(&prot->lock);
		stale = prot->stale;
		pthread_mutex_unlock(&prot->lock);
		look_at_database(prot, stale);
		pthread_mutex_unlock(&prot->db_lock);
	}
	pthread_mutex_lock(&prot->lock);
	view = prot->view;
	atomic_fetch_add_explicit(&((struct prot_view *)view)->references, 1, memory_order_relaxed);
	pthread_mutex_unlock(&prot->lock);
	return view;
}

bool prot_has_machines(struct prot *prot)
{
	if (monotonic_ns() >= atomic_load(&prot->next_look))
		prot_view_put(prot_view_get(prot));
	return atomic_load(&prot->machines);
}

void prot_view_put(const struct prot_view *view)
{
	struct prot_view *ours = (struct prot_view *)view;
	unsigned references = atomic_fetch_sub_explicit(&ours->references, 1, memory_order_acq_rel);

	assert(references > 0);
	if (references == 1)
		prot_view_free(ours);
}

int prot_open(const struct prot_options *options, struct prot **out, char *message)
{
	struct prot *prot = calloc(1, sizeof(*prot));
	pthread_mutexattr_t attr;
	int rc;

	*out = NULL;
	if (!prot)
		return fail_with(PROT_ERROR, message, PROT_MESSAGE_MAX, "no memory");
	prot->options = *options;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&prot->db_lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_init(&prot->lock, NULL);
	rc = prot_database_open(prot, message);
	if (rc)
		goto fail;
	rc = prot_ids_compare(prot, message);
	if (rc)
		goto fail;
	rc = load_if_changed(prot, true, message);
	if (rc)
		goto fail;
	*out = prot;
	return 0;
fail:
	prot_close(prot);
	return rc;
}

const char *prot_made(const struct prot *prot)
{
	return prot->made ? prot->path : NULL;
}

void prot_close(struct prot *prot)
{
	if (!prot)
		return;
	if (prot->view)
		prot_view_put(prot->view);
	prot_database_close(prot);
	pthread_mutex_destroy(&prot->lock);
	pthread_mutex_destroy(&prot->db_lock);
	free(prot);
}
