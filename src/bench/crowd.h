/* SPDX-License-Identifier: BSD-2-Clause */
/* How a client of the crowd (crowd_load.c) reads files: from an AFS file server, by HTTP or by datagrams. */
#ifndef CROWD_H
#define CROWD_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "afs/rxafs.h"

#define CROWD_WHY    512    /* bytes of the text of an error */
#define CROWD_BUFFER 65536u /* bytes that a client reads at a time */

struct crowd_place {
	const char *address; /* numeric, IPv4 */
	const char *volume;
	unsigned fs_port, vl_port, http_port, raw_port, raw_status_port;
	unsigned limit_ms; /* of a call */
	unsigned clients;  /* in all */
	uint32_t own;	   /* of an AFS client: the first address of all, in host order; 0: any */
	bool jumbograms;   /* accept those of an AFS file server */
	uint64_t part;	   /* bytes that an AFS client asks for with a call; 0: the file */
	/* Of AFS clients that are no honest ones: */
	bool one_address;		/* that of the first one */
	bool one_socket;		/* that of the first one, four of them on a connection */
	unsigned pause_bytes, pause_ms; /* after so many bytes, read none for so long; 0: never */
};

struct crowd_file {
	char name[16];
	uint32_t number;
	AFSFid fid; /* by AFS only */
	uint64_t length;
	const uint8_t *content; /* NULL: what arrives is not compared */
};

/* What each client begins with. crowd_load.c allocates, fills and frees it. */
struct crowd_client {
	unsigned number;      /* from 0 */
	unsigned limit_ms;    /* of a call */
	uint64_t kept;	      /* bytes of the file that have arrived, if the rest of it failed */
	void (*ready)(void *arg); /* step() can do more */
	void *arg;
	pthread_mutex_t lock; /* of `interrupted`, and of what interrupt() uses */
	bool interrupted;
};

enum crowd_step {
	CROWD_AGAIN, /* ready() will be called, maybe already before the function returns, by any thread */
	CROWD_DONE, /* the file has arrived */
	CROWD_FAILED
};

/*
 * A way to the files. Functions that fail return -1 with the reason in `why`. One thread uses a client
 * at a time, but for interrupt().
 */
struct crowd_way {
	const char *name;
	size_t client_size; /* of its client, which begins with struct crowd_client */
	/* Give the client, whose other bytes are 0, a socket of its own. A failure ends the program. */
	int (*open)(void *client, const struct crowd_place *place, char *why);
	/* Find the file of file->name. */
	int (*find)(void *client, struct crowd_file *file, char *why);
	/* Read a file and discard it; `bytes` grows with what arrives. */
	int (*fetch)(void *client, const struct crowd_file *file, uint8_t *buffer,
		     _Atomic(uint64_t) *bytes, char *why);
	/* Whether each client needs a thread, which waits in fetch(). NULL: yes. */
	bool (*needs_thread)(const struct crowd_place *place);
	/* As fetch(), but does only what needs no wait. */
	enum crowd_step (*step)(void *client, const struct crowd_file *file,
				_Atomic(uint64_t) *bytes, char *why);
	/* Ask for the status of a file. */
	int (*ask)(void *client, const struct crowd_file *file, char *why);
	/* Make the call in progress fail, and later ones. Any thread, with the lock. */
	void (*interrupt)(void *client);
	void (*close)(void *client);
};

static inline int crowd_explain(char *why, const char *text)
{
	snprintf(why, CROWD_WHY, "%s", text);
	return -1;
}

static inline int crowd_explain_errno(char *why, const char *call)
{
	snprintf(why, CROWD_WHY, "%s: %s", call, strerror(errno));
	return -1;
}

/* These bytes of a file have arrived. Ends the program if the file has others. */
void crowd_compare(const struct crowd_file *file, uint64_t offset, const void *data, size_t length);

extern const struct crowd_way crowd_afs, crowd_http, crowd_raw;

#endif
