/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads that read requests of the kernel. One that does what waits for a server is lent to that request meanwhile. */
#include "rxafs/readers.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Ends the wait of a thread that reads requests. */
#define WAKE_SIGNAL   SIGUSR1
#define WAKE_AGAIN_US 500

struct reader {
	struct mount *mount;
	pthread_t thread;
	atomic_bool lent; /* to a request that waits for a server */
};

static _Thread_local struct reader *this_reader;

bool reader_lend(struct mount *mount)
{
	unsigned reading = atomic_load(&mount->reading);

	assert(this_reader && !atomic_load(&this_reader->lent));
	while (reading > 1)
		if (atomic_compare_exchange_weak(&mount->reading, &reading, reading - 1)) {
			atomic_store(&this_reader->lent, true);
			return true;
		}
	return false;
}

void reader_give_back(struct mount *mount)
{
	assert(atomic_load(&this_reader->lent));
	atomic_store(&this_reader->lent, false);
	atomic_fetch_add(&mount->reading, 1);
}

static void *read_requests(void *arg)
{
	struct mount *mount = ((struct reader *)arg)->mount;
	struct fuse_buf buffer = {.mem = NULL};

	this_reader = arg;
	while (!fuse_session_exited(mount->session)) {
		int result = fuse_session_receive_buf(mount->session, &buffer);

		if (result == -EINTR || result == -EAGAIN)
			continue;
		if (result <= 0)
			break;
		fuse_session_process_buf(mount->session, &buffer);
	}
	fuse_session_exit(mount->session);
	free(buffer.mem);
	atomic_fetch_sub(&mount->reading, 1);
	sem_post(&mount->ended);
	return NULL;
}

static void ignore_wake(int number)
{
	(void)number;
}

/* While a file is open, an end of the mount wakes nobody who reads: a signal does. */
void readers_end(struct mount *mount)
{
	while (atomic_load(&mount->reading)) {
		for (unsigned i = 0; i < mount->readers_begun; i++)
			if (!atomic_load(&mount->reader_list[i].lent))
				pthread_kill(mount->reader_list[i].thread, WAKE_SIGNAL);
		usleep(WAKE_AGAIN_US);
	}
}

int readers_start(struct mount *mount)
{
	struct sigaction wake = {.sa_handler = ignore_wake};

	sigaction(WAKE_SIGNAL, &wake, NULL);
	mount->reader_list = calloc(mount->readers, sizeof *mount->reader_list);
	for (unsigned i = 0; mount->reader_list && i < mount->readers; i++) {
		struct reader *reader = &mount->reader_list[i];

		reader->mount = mount;
		atomic_fetch_add(&mount->reading, 1);
		if (pthread_create(&reader->thread, NULL, read_requests, reader)) {
			atomic_fetch_sub(&mount->reading, 1);
			break;
		}
		mount->readers_begun++;
	}
	return mount->readers_begun ? 0 : -EAGAIN;
}

void readers_join(struct mount *mount)
{
	for (unsigned i = 0; i < mount->readers_begun; i++)
		pthread_join(mount->reader_list[i].thread, NULL);
	free(mount->reader_list);
	mount->reader_list = NULL;
	mount->readers_begun = 0;
}
