/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: location and protection servers of a cell, with users u1, u2, …, which answer as they are told to. */
#ifndef RXW_TESTS_FILESERVER_FAKECELL_H
#define RXW_TESTS_FILESERVER_FAKECELL_H

#include "tests/fileserver/fixture.h"

#include "afs/pt.h"
#include "afs/vl.h"

struct fake_server {
	rxw_endpoint *endpoint;
	rxw_security *classes[2];
	size_t class_count;
	struct sockaddr_storage address;
	struct PR_service pr;
	struct VL_service vl;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* The lock covers the rest. */
	bool held;		    /* calls wait until it is cleared */
	int32_t code;		    /* what calls end with; 0: an answer */
	unsigned names, lists;	    /* calls that arrived */
	unsigned id_count;	    /* in the answer to one name; 1 */
	int32_t id;		    /* of every name, unless it is 0 */
	const int32_t *groups;	    /* of every user and machine */
	unsigned group_count, many; /* many: so many groups in their place */
	int32_t over;
	const char *name; /* of every id */
	unsigned registrations;
	uint32_t registered[16], registered_count;
	uint32_t elsewhere;	 /* a volume that another server has; others have no entry */
	uint32_t next, compared; /* the next id; entries that were asked for */
};

/* Offers both services at one port of loopback, to callers with tokens by these keys, too; NULL: there are none. */
void fake_open(struct fake_server *fake, rxw_engine *engine, rxw_keys *keys);
void fake_close(struct fake_server *fake);
/* Changes a member with the lock held. */
#define FAKE_SET(fake, member, value)                     \
	do {                                              \
		pthread_mutex_lock(&(fake)->lock);        \
		(fake)->member = (value);                 \
		pthread_cond_broadcast(&(fake)->changed); \
		pthread_mutex_unlock(&(fake)->lock);      \
	} while (0)
/* Waits until that many names were asked. */
void fake_await_names(struct fake_server *fake, unsigned names);
unsigned fake_names(struct fake_server *fake);

#endif
