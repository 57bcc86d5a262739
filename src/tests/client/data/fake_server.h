/* SPDX-License-Identifier: BSD-2-Clause */
/* A file server with one file, for tests of the contents of files: counts calls, fails, waits, and changes the file by itself. */
#ifndef TESTS_CLIENT_FAKE_SERVER_H
#define TESTS_CLIENT_FAKE_SERVER_H

#include <pthread.h>

#include "client/data/data.h"

#define FAKE_WHOS 4

struct fake {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned char *bytes;
	size_t length, room;
	uint64_t version;
	/* What the client knows. */
	uint64_t seen, clean_from, order;
	uint32_t incarnation;

	unsigned fetches, stores;	/* calls */
	unsigned running, running_most; /* at a time */
	uint64_t fetched, stored;	/* bytes */
	unsigned durable, holds;
	unsigned whos[FAKE_WHOS]; /* references to the identities 1, 2, 3 */
	unsigned changes, losses; /* upcalls */
	int lost_error;
	int64_t mtime;

	/* Behaviour. */
	size_t piece;		      /* bytes that one take() or give() moves */
	int fetch_error, store_error; /* of the next calls */
	unsigned error_calls;	      /* so many; 0: all */
	uint64_t stop_at;  /* a fetch waits before the byte at this offset; UINT64_MAX: none */
	bool stop_stores;  /* stores wait before they begin */
	unsigned stopped;  /* calls that wait */
	bool again;	   /* each fetch begins anew once, after half of its bytes */
	bool applied;	   /* a store that fails is done nevertheless */
	uintptr_t refused; /* this identity may not store */
	unsigned refusals;
	unsigned delay_us; /* of each call */
	bool sparse; /* contents are a function of the offset, up to `length`; stores are counted only */
};

extern const struct cl_data_ops fake_ops;

void fake_start(struct fake *fake, const void *bytes, size_t length);
void fake_stop(struct fake *fake);
/* Another client writes. */
void fake_change(struct fake *fake, size_t offset, const void *bytes, size_t length);
void fake_cut(struct fake *fake, size_t length);
/* What a status says now. */
struct cl_data_version fake_status(struct fake *fake);
/* Waits until a member has at least this value. */
void fake_await(struct fake *fake, const unsigned *member, unsigned value);
/* Waits until the contents need the owner no more. */
void fake_await_unheld(struct fake *fake);
/* Waits until no call runs. */
void fake_await_idle(struct fake *fake);
void fake_release(struct fake *fake);
/* Byte of a sparse file. */
unsigned char fake_byte(uint64_t offset);

#endif
