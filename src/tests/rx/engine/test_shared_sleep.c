/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared listener goes to sleep: what begins between its last look and the sleep is not missed. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>

#include "engine/objects.h"
#include "engine/sched/inner.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define LONG_AGO 1 /* the time of a sample that is due */

static rxw_endpoint *endpoint; /* the only one that shares */
static _Atomic(bool) armed;    /* the next turn that ends meets a sample that begins */
static _Atomic(bool) met;      /* it did */
static _Atomic(int) timeout;   /* of the sleep after it, ms */
static _Atomic(bool) slept;

static bool is_shared_listener(void)
{
	static _Thread_local int known; /* 1: it is; -1: it is not */
	char name[16] = "";

	if (!known) {
		pthread_getname_np(pthread_self(), name, sizeof(name));
		known = strncmp(name, "rxw-shared", 10) ? -1 : 1;
	}
	return known > 0;
}

/* After each lock during a turn, the last of which is that of the listener, another thread might begin a sample. */
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	int r = __real_pthread_mutex_lock(lock);

	if (atomic_load(&armed) && is_shared_listener() &&
	    !atomic_load(&endpoint->shard->role.in_wait))
		atomic_store(&endpoint->workers->sample_at, LONG_AGO);
	return r;
}

/* If the turn has not ended under that lock, the next one is tried. */
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	if (atomic_load(&armed) && is_shared_listener() &&
	    atomic_load(&endpoint->workers->sample_at) == LONG_AGO) {
		if (!atomic_load(&endpoint->shard->role.in_wait)) {
			atomic_store(&endpoint->workers->sample_at, UINT64_MAX);
		} else {
			atomic_store(&armed, false);
			atomic_store(&met, true);
		}
	}
	return __real_pthread_mutex_unlock(lock);
}

int __real_epoll_wait(int set, struct epoll_event *events, int most, int ms);
int __wrap_epoll_wait(int set, struct epoll_event *events, int most, int ms);

int __wrap_epoll_wait(int set, struct epoll_event *events, int most, int ms)
{
	if (is_shared_listener() && atomic_exchange(&met, false)) {
		atomic_store(&timeout, ms);
		atomic_store(&slept, true);
	}
	return __real_epoll_wait(set, events, most, ms);
}

static bool has_slept(void *arg)
{
	(void)arg;
	return atomic_load(&slept);
}

static bool has_looked(void *arg)
{
	(void)arg;
	return atomic_load(&endpoint->workers->sample_at) == UINT64_MAX;
}

START_TEST(samples_that_begin)
{
	struct h_bed bed = {0};
	rxw_connection *c;

	h_open(&bed, NULL);
	endpoint = h_client(&bed, "listeners=shared");
	ck_assert_int_eq(rxw_connection_create(endpoint, (struct sockaddr *)&bed.address,
					       bed.address_len, H_SERVICE, bed.security, &c),
			 0);
	h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
	atomic_store(&armed, true);
	h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
	h_wait_for(has_slept, NULL, "the listener sleeps after a turn");
	ck_assert_int_eq(atomic_load(&timeout), 0);
	h_wait_for(has_looked, NULL, "the listener takes the sample");
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "sleep of a shared listener", samples_that_begin)
