/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The load of afscp bench: a place that the run's client has found, and clients of its file server, each with a socket
 * of its own, whose calls are measured.
 */
#ifndef COPY_LOAD_H
#define COPY_LOAD_H

#include <rxafs/admin.h>

#include "afs/bare.h"
#include "program/report.h"
#include "afscp/session.h"

struct load {
	struct run *run;
	const char *label; /* of the place */
	rxafs_object *object;
	struct rxafs_attributes attributes;
	AFSFid fid;
	bool home; /* the place is in the home cell, for which the token is */
	rxw_engine *engine;
	struct bare_client **clients;
	size_t count;

	pthread_mutex_t lock; /* of: */
	struct rxafs_server server;
};

/* Find the place of the command line. 0, or -1 after a message; call load_close() in either case. */
int load_find(struct load *load, struct run *run);
/* Open the clients. 0, or -1 after a message. */
int load_open(struct load *load, size_t clients);
/* The clients return their promises, and are closed. */
void load_end(struct load *load);
/* All the rest, too. */
void load_close(struct load *load);

/* "file server ADDRESS:PORT". */
void load_name_server(struct load *load, char *text, size_t size);
/*
 * After a call of a client failed with this code: a new connection, if the volume has moved to its new server. 0, or a
 * negative result of the library.
 */
int load_reconnect(struct load *load, size_t client, int32_t code);
/* Counters of all clients. */
void load_counters(const struct load *load, struct counters *sum);
/* "config" and so on, for the report. */
void load_describe(const struct load *load, const struct counters *stats, json_t *report);

/* bench --mix. */
int load_mix(struct run *run);

#endif
