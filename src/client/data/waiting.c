/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that wait at a file. */
#include <assert.h>
#include <errno.h>

#include "client/data/filesteps.h"
#include "common/clock.h"
#include "common/held.h"

#define LOOK_NS (100ull * NS_PER_MS) /* between two looks whether a wait is cancelled */

bool wait_is_bounded(const struct cl_data_wait *wait)
{
	return wait && (wait->deadline || wait->cancelled);
}

int wait_is_over(const struct cl_data_wait *wait)
{
	if (!wait)
		return 0;
	if (wait->cancelled && wait->cancelled(wait->cancel))
		return -EINTR;
	if (wait->deadline && (uint64_t)read_clock_ns(CLOCK_BOOTTIME) >= wait->deadline)
		return -ETIMEDOUT;
	return 0;
}

uint64_t wait_until(const struct cl_data_wait *wait)
{
	uint64_t left = UINT64_MAX, now;

	if (!wait_is_bounded(wait))
		return UINT64_MAX;
	if (wait->deadline) {
		now = (uint64_t)read_clock_ns(CLOCK_BOOTTIME);
		left = wait->deadline > now ? wait->deadline - now : 0;
	}
	if (wait->cancelled && left > LOOK_NS)
		left = LOOK_NS;
	return monotonic_ns() + left;
}

void file_wake(struct cl_data_file *file, bool all)
{
	assert(mutex_is_held(&file->lock));
	for (struct waiter *waiter = file->waiters; waiter; waiter = waiter->next) {
		if (waiter->woken || (!all && waiter->start == waiter->end) ||
		    (waiter->start != waiter->end && !waiter->error &&
		     !file_covers(file, waiter->start, waiter->end)))
			continue;
		waiter->woken = true;
		pthread_cond_signal(&waiter->cond);
	}
}

int file_wait(struct cl_data_file *file, const struct cl_data_wait *wait, struct waiter *waiter)
{
	struct waiter **at = &file->waiters;
	int over = wait_is_over(wait);

	assert(mutex_is_held(&file->lock));
	if (over)
		return over;
	monotonic_cond_init(&waiter->cond);
	waiter->next = file->waiters;
	file->waiters = waiter;
	while (!waiter->woken && !over) {
		uint64_t until = wait_until(wait);

		if (until == UINT64_MAX)
			pthread_cond_wait(&waiter->cond, &file->lock);
		else
			monotonic_wait(&waiter->cond, &file->lock, until);
		over = waiter->woken ? 0 : wait_is_over(wait);
	}
	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
	pthread_cond_destroy(&waiter->cond);
	return waiter->woken ? waiter->error : over;
}

void cl_data_wake(struct cl_data_file *file)
{
	pthread_mutex_lock(&file->lock);
	for (struct waiter *waiter = file->waiters; waiter; waiter = waiter->next)
		pthread_cond_signal(&waiter->cond);
	pthread_mutex_unlock(&file->lock);
}
