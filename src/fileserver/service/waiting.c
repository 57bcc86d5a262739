/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that looks after the calls which wait for places. */
#include "fileserver/service/waiting.h"

#include "common/clock.h"
#include "fileserver/service/services.h"

#define LOOK_NS NS_PER_S

void fsd_waiting_init(struct fsd_waiting *waiting)
{
	*waiting = (struct fsd_waiting){0};
	pthread_mutex_init(&waiting->lock, NULL);
	monotonic_cond_init(&waiting->changed);
}

void fsd_waiting_fini(struct fsd_waiting *waiting)
{
	pthread_mutex_lock(&waiting->lock);
	waiting->stop = true;
	pthread_cond_signal(&waiting->changed);
	pthread_mutex_unlock(&waiting->lock);
	if (waiting->begun)
		pthread_join(waiting->thread, NULL);
	pthread_cond_destroy(&waiting->changed);
	pthread_mutex_destroy(&waiting->lock);
}

bool fsd_waiting_look(struct fsd_service *service)
{
	struct fsd_counters *counters = &service->counters;
	unsigned fetches, stores;
	bool fetches_wait, stores_wait;

	fetches_wait = fsd_places_look(&service->sending, monotonic_ns(), &fetches);
	stores_wait = fsd_places_look(&service->storing, monotonic_ns(), &stores);
	fsd_count(&counters->fetches_given_up, fetches);
	fsd_count(&counters->stores_given_up, stores);
	return fetches_wait || stores_wait;
}

/* With the lock held, as all waits: until some call may have waited for a second. False: the thread ends. */
static bool await_waiters(struct fsd_waiting *waiting, uint64_t *due)
{
	while (!waiting->wanted && !waiting->stop) {
		pthread_cond_wait(&waiting->changed, &waiting->lock);
		*due = monotonic_ns() + LOOK_NS;
	}
	while (monotonic_ns() < *due && !waiting->stop)
		monotonic_wait(&waiting->changed, &waiting->lock, *due);
	return !waiting->stop;
}

static void *look_after_waiters(void *arg)
{
	struct fsd_service *service = arg;
	struct fsd_waiting *waiting = &service->waiting;
	uint64_t due = monotonic_ns() + LOOK_NS;
	bool wanted;

	pthread_setname_np(pthread_self(), "rxfsd-waiting");
	pthread_mutex_lock(&waiting->lock);
	while (await_waiters(waiting, &due)) {
		waiting->wanted = false;
		pthread_mutex_unlock(&waiting->lock);
		wanted = fsd_waiting_look(service);
		pthread_mutex_lock(&waiting->lock);
		waiting->wanted |= wanted;
		due = monotonic_ns() + LOOK_NS;
	}
	pthread_mutex_unlock(&waiting->lock);
	return NULL;
}

static bool start_looking(struct fsd_service *service)
{
	struct fsd_waiting *waiting = &service->waiting;
	bool begun;

	pthread_mutex_lock(&waiting->lock);
	if (!waiting->begun)
		waiting->begun = pthread_create(&waiting->thread, NULL, look_after_waiters,
						service) == 0;
	begun = waiting->begun;
	pthread_mutex_unlock(&waiting->lock);
	return begun;
}

static void note_waiter(struct fsd_waiting *waiting)
{
	pthread_mutex_lock(&waiting->lock);
	if (!waiting->wanted)
		pthread_cond_signal(&waiting->changed);
	waiting->wanted = true;
	pthread_mutex_unlock(&waiting->lock);
}

enum fsd_entry fsd_wait_for_place(struct fsd_service *service, struct fsd_places *all,
				  struct fsd_place *place, rxw_call *rx,
				  const struct sockaddr_storage *peer,
				  void (*start)(struct fsd_place *place, bool got))
{
	enum fsd_entry entry;

	if (!start_looking(service))
		return fsd_place_enter(all, place, rx, peer, monotonic_ns());
	entry = fsd_place_await(all, place, rx, peer, monotonic_ns(), start);
	if (entry == FSD_ENTRY_WAITS)
		note_waiter(&service->waiting);
	return entry;
}
