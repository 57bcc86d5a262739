/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the module. */
#ifndef FILESERVER_CELL_PRIVATE_H
#define FILESERVER_CELL_PRIVATE_H

#include <pthread.h>

#include "common/background.h"
#include "common/htable.h"
#include "fileserver/cell/cell.h"

/* -- locations.c -- */

struct location;
struct locations {
	pthread_mutex_t change; /* one change at a time; taken before `lock` */
	pthread_rwlock_t lock;	/* covers the rest */
	struct htable by_id[3], by_name;
	struct location **order; /* by key; `count` of them */
	uint32_t count, room;
	struct fsd_cell_server *servers;
	uint32_t server_count;
};
int locations_open(struct fsd_cell *cell); /* 0 or a result */
void locations_close(struct fsd_cell *cell);

/* -- transactions.c -- */

/* `lock` of the thread covers everything. */
struct transactions {
	struct background ender; /* which ends those that nobody uses */
	struct fsd_transaction *item;
	uint32_t count, room;
	int32_t last;
	unsigned running; /* threads of fsd_cell_run() */
	pthread_cond_t idle;
};
int transactions_open(struct fsd_cell *cell);
void transactions_close(struct fsd_cell *cell);

struct fsd_cell {
	struct fsd_cell_options options;
	struct store *store;
	struct locations locations;
	struct transactions transactions;
	/* For dumps to other servers; constant. */
	rxw_endpoint *endpoint;
	rxw_security *(*security)(void *arg, uint8_t level);
	void *security_arg;
};

#endif
