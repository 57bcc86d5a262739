/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads for background calls: volumes and cells whose servers are silent leave some for others. */
#include "client/data/jobs.h"
#include "tests/main.h"

#include <stddef.h>

#define CELLS	9u
#define VOLUMES 40u
#define EACH	20u
#define OF_LANE 16u
#define SILENT	(CELLS * VOLUMES * EACH)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of the counts and calls; of `silent`, which many threads wait for. */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_cond_t answers = PTHREAD_COND_INITIALIZER;
static struct jobs jobs;
static struct call {
	struct job job; /* first */
	bool ended;
} silent_calls[SILENT];
static unsigned waiting, ended;
static bool silent = true;

static void wait_for_server(struct job *job)
{
	(void)job;
	pthread_mutex_lock(&lock);
	waiting++;
	pthread_cond_broadcast(&changed);
	while (silent)
		pthread_cond_wait(&answers, &lock);
	ended++;
	pthread_mutex_unlock(&lock);
}

static void end_call(struct job *job)
{
	pthread_mutex_lock(&lock);
	((struct call *)job)->ended = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static uint64_t lane_of(uint32_t cell, uint32_t volume)
{
	return (uint64_t)cell << 32 | volume;
}

static void call_living(uint32_t cell, uint32_t volume)
{
	struct call call = {.job = {.run = end_call, .lane = lane_of(cell, volume)}};

	jobs_add(&jobs, &call.job);
	pthread_mutex_lock(&lock);
	while (!call.ended)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void call_silent(unsigned first, unsigned count, uint32_t cell, uint32_t volume)
{
	for (unsigned i = first; i < first + count; i++) {
		silent_calls[i].job =
			(struct job){.run = wait_for_server, .lane = lane_of(cell, volume)};
		jobs_add(&jobs, &silent_calls[i].job);
	}
}

static void begin_silence(void)
{
	waiting = ended = 0;
	silent = true;
	ck_assert_int_eq(jobs_start(&jobs, JOBS_LANES), 0);
}

static void end_silence(unsigned calls)
{
	pthread_mutex_lock(&lock);
	silent = false;
	pthread_cond_broadcast(&answers);
	pthread_mutex_unlock(&lock);
	/* Does all that was added. */
	jobs_stop(&jobs);
	ck_assert_uint_eq(ended, calls);
}

START_TEST(one_volume_is_silent)
{
	begin_silence();
	call_silent(0, 2 * OF_LANE, 1, 1);
	pthread_mutex_lock(&lock);
	while (waiting < OF_LANE)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	call_living(1, 2);
	call_living(2, 1);
	ck_assert_uint_eq(waiting, OF_LANE);
	end_silence(2 * OF_LANE);
}
END_TEST

START_TEST(many_volumes_of_cells_are_silent)
{
	unsigned n = 0;

	begin_silence();
	for (uint32_t cell = 1; cell <= CELLS; cell++)
		for (uint32_t volume = 1; volume <= VOLUMES; volume++, n += EACH)
			call_silent(n, EACH, cell, volume);
	call_living(CELLS + 1, 1);
	call_living(CELLS + 2, 1);
	end_silence(SILENT);
}
END_TEST

TEST_MAIN_WITHIN(60, "jobs", one_volume_is_silent, many_volumes_of_cells_are_silent)
