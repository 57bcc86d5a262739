/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that read requests: however many requests wait for servers, one of them is left that reads. */
#include "rxafs/readers.h"
#include "tests/main.h"

#include <errno.h>

#define READERS 4u
#define ROUNDS	50u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct mount mount = {.readers = READERS};
/* In a round each thread gets a request that waits for a server, until the round is over. */
static unsigned round_number, lent, refused;
static bool over;

int fuse_session_exited(struct fuse_session *session)
{
	bool exited;

	(void)session;
	pthread_mutex_lock(&lock);
	exited = over;
	pthread_mutex_unlock(&lock);
	return exited;
}

void fuse_session_exit(struct fuse_session *session)
{
	(void)session;
}

void fuse_session_process_buf(struct fuse_session *session, const struct fuse_buf *buffer)
{
	(void)session;
	(void)buffer;
}

static void await_round(unsigned number)
{
	while (round_number == number && !over)
		pthread_cond_wait(&changed, &lock);
}

int fuse_session_receive_buf(struct fuse_session *session, struct fuse_buf *buffer)
{
	unsigned number;
	bool is_lent;

	(void)session;
	(void)buffer;
	pthread_mutex_lock(&lock);
	number = round_number;
	is_lent = reader_lend(&mount);
	if (is_lent)
		lent++;
	else
		refused++;
	pthread_cond_broadcast(&changed);
	await_round(number);
	pthread_mutex_unlock(&lock);
	if (is_lent)
		reader_give_back(&mount);
	/* The next round begins when all are back. */
	pthread_mutex_lock(&lock);
	lent -= is_lent;
	refused -= !is_lent;
	pthread_cond_broadcast(&changed);
	await_round(number + 1);
	pthread_mutex_unlock(&lock);
	return -EINTR;
}

static void await_counts(unsigned of_lent, unsigned of_refused)
{
	while (lent + refused != of_lent + of_refused)
		pthread_cond_wait(&changed, &lock);
	ck_assert_uint_eq(lent, of_lent);
	ck_assert_uint_eq(refused, of_refused);
}

static void begin_round(void)
{
	round_number++;
	pthread_cond_broadcast(&changed);
}

START_TEST(one_is_left)
{
	over = false;
	sem_init(&mount.ended, 0, 0);
	ck_assert_int_eq(readers_start(&mount), 0);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < ROUNDS; i++) {
		await_counts(READERS - 1, 1);
		ck_assert_uint_eq(atomic_load(&mount.reading), 1);
		begin_round();
		await_counts(0, 0);
		ck_assert_uint_eq(atomic_load(&mount.reading), READERS);
		if (i + 1 < ROUNDS)
			begin_round();
	}
	over = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	readers_end(&mount);
	readers_join(&mount);
	ck_assert_uint_eq(atomic_load(&mount.reading), 0);
	sem_destroy(&mount.ended);
}
END_TEST

TEST_MAIN("readers", one_is_left)
