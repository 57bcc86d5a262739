/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that looks after the calls which wait for places, also while the server drains or reloads. */
#ifndef FILESERVER_SERVICE_WAITING_H
#define FILESERVER_SERVICE_WAITING_H

#include <pthread.h>
#include <stdbool.h>

#include "fileserver/service/places.h"

struct fsd_service;

struct fsd_waiting {
	pthread_mutex_t lock;	/* covers the rest */
	pthread_cond_t changed; /* `wanted` or `stop` */
	pthread_t thread;
	bool begun; /* there is a thread */
	bool wanted; /* some call may wait */
	bool stop;
};

void fsd_waiting_init(struct fsd_waiting *waiting);
/* Ends the thread. No call waits. */
void fsd_waiting_fini(struct fsd_waiting *waiting);
/* As fsd_place_await(), and the thread looks after the call if it waits. */
enum fsd_entry fsd_wait_for_place(struct fsd_service *service, struct fsd_places *all,
				  struct fsd_place *place, rxw_call *rx,
				  const struct sockaddr_storage *peer,
				  void (*start)(struct fsd_place *place, bool got));
/* One look at all of them; the thread does that every second. False: none waits any more. */
bool fsd_waiting_look(struct fsd_service *service);

#endif
