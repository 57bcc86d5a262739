/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the module. */
#ifndef FILESERVER_CELL_PRIVATE_H
#define FILESERVER_CELL_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/background.h"
#include "common/htable.h"
#include "fileserver/base/base.h"
#include "fileserver/cell/volumes.h"
#include "volume/dump/dump.h"

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

/* -- relocate.c -- */

/* After a rescue: volumes without an entry get one. 0 or a result. */
int relocate_volumes(struct fsd_cell *cell);

/* -- transactions.c -- */

/* `lock` of the thread covers everything. */
struct transactions {
	struct background ender; /* which ends those that nobody uses */
	struct fsd_transaction *item;
	uint32_t count, room;
	/* Volumes that are not ready and in no transaction: they go if that stays so. */
	struct unready {
		uint32_t volume;
		uint64_t since; /* s, by the monotonic clock */
	} * unready;
	uint32_t unready_count;
	int32_t last;
	unsigned running; /* threads of fsd_cell_run() */
	struct fsd_shares shares; /* of those whose callers determine how long they take */
	pthread_cond_t idle;
	pthread_cond_t left; /* a call has left a transaction, or one has ended */
};
/* This call may be aborted from now on, by the one that ends the transaction; NULL: no more. */
void transactions_expose(struct fsd_cell *cell, const struct fsd_transaction *transaction,
			 rxw_call *call);
int transactions_open(struct fsd_cell *cell);
void transactions_close(struct fsd_cell *cell);

/* -- transfer.c -- */

/* The dump of a volume, as it is now: a code. */
int32_t transfer_dump(struct fsd_cell *cell, uint32_t id, const struct dump_base *base,
		      const struct dump_output *output, struct dump_counts *counts);
/* A dump becomes the contents of a volume. Name, type, clones and whether it is temporary: of the cookie. A result. */
int transfer_restore(struct fsd_cell *cell, uint32_t id, const struct dump_input *input,
		     const struct cellvol *cookie, char *message);

struct fsd_cell {
	struct fsd_cell_options options;
	_Atomic bool stopping; /* what takes long and waits for no caller is given up */
	struct store *store;
	struct locations locations;
	struct transactions transactions;
	/* For dumps to other servers; constant. */
	rxw_endpoint *endpoint;
	rxw_security *(*security)(void *arg, uint8_t level);
	void *security_arg;
};

#endif
