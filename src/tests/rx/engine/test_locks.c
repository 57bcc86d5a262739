/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a writing thread acquires the lock of its connection. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/objects.h"
#include "tests/rx/api/harness.h"

#define RUN 65536u

static struct h_bed bed;
static _Atomic(pthread_mutex_t *) watched;
static _Thread_local bool writes;
static _Atomic(uint64_t) taken;

static int (*real_trylock)(pthread_mutex_t *);
static int (*real_lock)(pthread_mutex_t *);

/* dlsym() may lock, so both functions are looked up before any thread is counted. */
__attribute__((constructor)) static void find_real(void)
{
	*(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	*(void **)&real_trylock = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
}

/* rxw_conn_lock() tries first and then waits. An acquisition is counted once, at the attempt. */
int pthread_mutex_trylock(pthread_mutex_t *m)
{
	if (writes && m == atomic_load_explicit(&watched, memory_order_relaxed))
		atomic_fetch_add(&taken, 1);
	return real_trylock(m);
}

/* The handler writes `bytes` in pieces of `chunk`. */
struct job {
	uint64_t bytes;
	size_t chunk;
	bool in_place;
	double most; /* acquisitions per 64 KiB: three, plus those of waits for room */
};

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

static int32_t source(rxw_call *call, void *context)
{
	const struct job *job = context;
	uint8_t *data = calloc(1, job->chunk);
	uint64_t left = job->bytes;
	int32_t code = 0;

	atomic_store(&taken, 0);
	atomic_store(&watched, &call->conn->lock);
	writes = true;
	while (left && !code) {
		size_t n = left < job->chunk ? (size_t)left : job->chunk;

		code = write_piece(call, data, n, job->in_place);
		left -= n;
	}
	writes = false;
	free(data);
	return code;
}

static const struct job jobs[] = {
	{.chunk = RUN, .most = 4},
	{.chunk = 1u << 20, .most = 3},
	{.chunk = 1u << 20, .in_place = true, .most = 3},
	/* not a divisor of a buffer's size: each piece is committed in two parts */
	{.chunk = RUN, .in_place = true, .most = 6},
};

START_TEST(three_for_each_run)
{
	struct job job = jobs[_i];
	rxw_connection *connection;
	char buffer[RUN];
	rxw_call *call;
	ssize_t n;

	job.bytes = h_bulk_size();
	h_open(&bed, &(struct h_options){.server = "writer-receives=0"});
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
	printf("%zu bytes at a time%s: %.2f acquisitions for each 64 KiB\n", job.chunk,
	       job.in_place ? ", in place" : "",
	       (double)atomic_load(&taken) * RUN / (double)job.bytes);
	ck_assert_double_le((double)atomic_load(&taken) * RUN / (double)job.bytes, job.most);
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
	tcase_add_loop_test(tc, three_for_each_run, 0, sizeof(jobs) / sizeof(jobs[0]));
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
