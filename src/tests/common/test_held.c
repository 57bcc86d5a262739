/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether locks are held, for assertions: the question leaves the lock as it was. */
#include "common/held.h"
#include "tests/main.h"

START_TEST(a_mutex)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	ck_assert(!mutex_is_held(&mutex));
	ck_assert(!mutex_is_held(&mutex));
	pthread_mutex_lock(&mutex);
	ck_assert(mutex_is_held(&mutex));
	ck_assert(mutex_is_held(&mutex));
	pthread_mutex_unlock(&mutex);
	ck_assert(!mutex_is_held(&mutex));
}
END_TEST

START_TEST(a_lock_of_readers_and_writers)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

	ck_assert(!rwlock_is_held(&lock));
	pthread_rwlock_rdlock(&lock);
	ck_assert(rwlock_is_held(&lock));
	pthread_rwlock_unlock(&lock);
	ck_assert(!rwlock_is_held(&lock));
	pthread_rwlock_wrlock(&lock);
	ck_assert(rwlock_is_held(&lock));
	pthread_rwlock_unlock(&lock);
	ck_assert(!rwlock_is_held(&lock));
}
END_TEST

TEST_MAIN("held", a_mutex, a_lock_of_readers_and_writers)
