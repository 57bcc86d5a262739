/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often a writing thread acquires the lock of its connection. How often it waits for room, and
 * in how many parts the packets leave, depends on the other threads. So a paced writer has nothing
 * to wait for, and of a streaming one the acquisitions of waits and transmissions are left out.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "engine/lock.h"
#include "engine/objects.h"
#include "tests/rx/api/harness.h"

#define RUN    65536u
#define ROUNDS 64u

static struct h_bed bed;
static _Atomic(pthread_mutex_t *) watched;
static _Thread_local const struct rxw_call *writes; /* of the thread that is counted */
static _Thread_local bool sent;			    /* since the latest acquisition */
/* all; those that report a transmission, outside of waits; those for waits for room */
static _Atomic(uint64_t) taken, completions, waiting;
static _Thread_local bool waits; /* the latest acquisition was for a wait */

static int (*real_trylock)(pthread_mutex_t *);
static int (*real_unlock)(pthread_mutex_t *);
static _Thread_local bool held; /* the watched lock, by this thread */
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static int (*real_sendmmsg)(int, struct mmsghdr *, unsigned, int);

/* dlsym() may lock, so all functions are looked up before any thread is counted. */
__attribute__((constructor)) static void find_real(void)
{
	*(void **)&real_unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	*(void **)&real_trylock = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
	*(void **)&real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
	*(void **)&real_sendmmsg = dlsym(RTLD_NEXT, "sendmmsg");
}

int pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (m == atomic_load_explicit(&watched, memory_order_relaxed))
		held = false;
	return real_unlock(m);
}

/*
 * rxw_conn_lock() tries first and then waits. An acquisition is counted once, at the attempt. An attempt of
 * the thread that has the lock is an assertion.
 */
int pthread_mutex_trylock(pthread_mutex_t *m)
{
	if (writes && !held && m == atomic_load_explicit(&watched, memory_order_relaxed)) {
		bool waited = waits;

		held = true;
		atomic_fetch_add(&taken, 1);
		waits = writes->w.state == RXW_WRITER_WAITING;
		if (waits) /* the one before it found no room */
			atomic_fetch_add(&waiting, waited ? 1 : 2);
		else if (sent)
			atomic_fetch_add(&completions, 1);
		sent = false;
	}
	return real_trylock(m);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	sent = true;
	return real_sendmsg(fd, m, flags);
}

int sendmmsg(int fd, struct mmsghdr *m, unsigned count, int flags)
{
	sent = true;
	return real_sendmmsg(fd, m, count, flags);
}

/* The handler writes ROUNDS pieces. */
struct job {
	size_t chunk;
	bool in_place;
	bool paced; /* each piece once the one before it is acknowledged */
	/*
	 * Acquisitions per 64 KiB. Paced: to queue a run, to build its packets and to complete the
	 * transmission; and for each piece, to queue the run that it began, and to leave write().
	 * Otherwise without waits and transmissions: one for each run, and those of the piece.
	 */
	double most;
};

static uint64_t counts[ROUNDS];

static int write_piece(rxw_call *call, const uint8_t *data, size_t length, bool in_place)
{
	while (in_place && length) {
		struct iovec iov[64];
		unsigned count = 64;
		ssize_t room = rxw_call_reserve(call, length, iov, &count);

		if (room <= 0 || rxw_call_commit(call, (size_t)room))
			return -1;
		length -= (size_t)room;
	}
	return length && rxw_call_write(call, data, length) != (ssize_t)length ? -1 : 0;
}

/* All that was queued is acknowledged; what fills no run yet is not queued. */
static bool acknowledged(void *arg)
{
	rxw_call *call = arg;
	bool done;

	rxw_conn_lock(call->conn);
	done = !rxw_pcall_queued(&call->p);
	rxw_conn_unlock(call->conn);
	return done;
}

static int32_t source(rxw_call *call, void *context)
{
	const struct job *job = context;
	uint8_t *data = calloc(1, job->chunk);
	int32_t code = 0;

	atomic_store(&watched, &call->conn->lock);
	for (unsigned i = 0; i < ROUNDS && !code; i++) {
		uint64_t before = atomic_load(&taken);

		writes = call;
		sent = false;
		code = write_piece(call, data, job->chunk, job->in_place);
		writes = NULL;
		counts[i] = atomic_load(&taken) - before;
		if (job->paced)
			h_wait_for(acknowledged, call, "the reader has everything");
	}
	free(data);
	return code;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Acquisitions for each 64 KiB. Of the paced rounds the cheapest one counts. Others find a small
 * congestion window, at the begin of a call or after a timeout on a busy machine.
 */
static double result(const struct job *job)
{
	double runs = (double)job->chunk / RUN;

	if (!job->paced)
		return (double)(atomic_load(&taken) - atomic_load(&waiting) -
				2 * atomic_load(&completions)) /
		       runs / ROUNDS;
	qsort(counts, ROUNDS, sizeof(counts[0]), ascending);
	return (double)counts[0] / runs;
}

static const struct job jobs[] = {
	{.chunk = RUN, .paced = true, .most = 5},
	{.chunk = 4 * RUN, .paced = true, .most = 2.5},
	/* not a divisor of a buffer's size: each piece is committed in two parts */
	{.chunk = RUN, .in_place = true, .paced = true, .most = 5},
	{.chunk = RUN, .most = 3},
	{.chunk = 16 * RUN, .most = 2},
	{.chunk = 16 * RUN, .in_place = true, .most = 2},
	{.chunk = RUN, .in_place = true, .most = 4},
};

START_TEST(three_for_each_run)
{
	struct job job = jobs[_i / 2];
	rxw_connection *connection;
	char buffer[RUN];
	rxw_call *call;
	double each;
	ssize_t n;

	h_open(&bed, &(struct h_options){.server = "writer-receives=0",
					 .both = _i % 2 ? "io=msg" : NULL});
	h_offer(&bed, (struct rxw_service_options){.size = sizeof(struct rxw_service_options),
						   .id = 77,
						   .name = "source",
						   .handler = source,
						   .context = &job});
	connection = h_connect(&bed, 77);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	while ((n = rxw_call_read(call, buffer, sizeof(buffer))) > 0)
		;
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
	each = result(&job);
	printf("%zu bytes at a time%s%s: %.2f acquisitions for each 64 KiB\n", job.chunk,
	       job.in_place ? ", in place" : "", job.paced ? ", paced" : "", each);
	ck_assert_double_le(each, job.most);
	h_close(&bed);
}
END_TEST

int main(void)
{
#ifdef __SANITIZE_THREAD__
	puts("SKIP: the thread sanitizer needs pthread_mutex_trylock() for itself");
	return 77;
#endif
	Suite *s = suite_create("locks");
	TCase *tc = tcase_create("locks");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 120);
	/* with batches of datagrams in one system call, and without */
	tcase_add_loop_test(tc, three_for_each_run, 0, 2 * sizeof(jobs) / sizeof(jobs[0]));
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
