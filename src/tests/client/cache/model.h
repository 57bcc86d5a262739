/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model of file servers, for tests of the client's cache: volumes with a few objects, promises, breaks before the answer to a writer,
 * restarts, restored and released volumes, and a network that delays, reorders and loses. One thread, a virtual clock, one seed.
 *
 * The model keeps each state that an object ever had, and knows at any time which is the oldest one that a client may still show.
 */
#ifndef TESTS_CLIENT_CACHE_MODEL_H
#define TESTS_CLIENT_CACHE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_SECOND 1000000000ull
#define MODEL_NEVER  UINT64_MAX

#define CLIENTS	     3u
#define SERVERS	     2u
#define VOLUMES	     3u /* 0: on server 0; 1: on server 1; 2: read-only, on both, released from 0 */
#define RELEASED     2u
#define OBJECTS	     4u /* of a volume; 0 is a directory, the others are files */
#define BLOCKS	     2u /* of a file */
#define NAMES	     6u

/* What a server knows of an object. */
struct state {
	uint64_t version;
	uint32_t sync; /* of the volume */
	uint32_t mode, time, acl;
	uint64_t blocks[BLOCKS];
	uint32_t names[NAMES]; /* unique numbers; 0: absent */
};

/* Each state of an object, and when clients have to know it. */
struct moment {
	struct state state;
	uint64_t known_from[CLIENTS]; /* no older state may be shown from then on */
	unsigned exempt;	      /* clients that could not be reached */
	int writer;		      /* client, or -1 */
	unsigned waiting;	      /* breaks, and sites, that are not resolved */
};

struct history {
	struct moment *moments;
	size_t count, room;
	size_t seen[CLIENTS]; /* the first moment of the version that was seen last */
};

enum call_kind {
	CALL_STATUS,
	CALL_DATA, /* a block of a file, or the image of a directory */
	CALL_BULK,
	CALL_LAST_READ = CALL_BULK,
	CALL_STORE, /* the first one that changes something */
	CALL_CHMOD,
	CALL_ACL,
	CALL_CREATE,
	CALL_REMOVE,
	CALL_KINDS
};

struct model;

struct call {
	struct model *model;
	struct call *next;
	enum call_kind kind;
	unsigned client, volume, object, server;
	uint32_t identity;
	uint32_t value; /* block, mode, acl, number of the name */
	uint64_t token; /* stored data */
	uint64_t note, sent;
	void *user;
	/* results */
	bool answered, abandoned, failed;
	size_t moments[OBJECTS]; /* of the object; CALL_BULK: of each */
	uint32_t lifetime, sync;
	size_t change; /* its moment, if it was carried out */
	bool carried_out;
	uint32_t unique; /* of a created name */
};

/* What the clients do with what arrives. */
struct model_ops {
	void (*answer)(struct call *call); /* answered, failed or abandoned */
	void (*broken)(void *clients, unsigned client, unsigned volume, unsigned object);
	void (*whole)(void *clients, unsigned client, unsigned volume);
	void (*reset)(void *clients, unsigned client, unsigned server);
	void (*act)(void *clients, unsigned client); /* the next step of a client */
};

struct model *model_create(uint64_t seed, const struct model_ops *ops, void *clients);
/* Abandon the calls in flight. */
void model_finish(struct model *model);
void model_destroy(struct model *model);
/* Run until a time. */
void model_run(struct model *model, uint64_t until);
uint64_t model_now(const struct model *model);
uint64_t model_random(struct model *model, uint64_t below);
struct history *model_history(struct model *model, unsigned volume, unsigned object);
const struct state *model_state(struct model *model, unsigned volume, unsigned object,
				size_t moment);
/* A copy is sent. */
void model_call(struct model *model, const struct call *call);

/* The first moment that a client may show. */
size_t model_floor(struct model *model, unsigned client, unsigned volume, unsigned object);
/*
 * The same for one part of it, a block or a name by number. The reply to an own change does not tell what others have done to other
 * parts, for which a break is under way.
 */
enum model_part {
	PART_STATUS,
	PART_BLOCK,
	PART_NAME,
	PART_RIGHTS
};
size_t model_floor_of(struct model *model, unsigned client, unsigned volume, unsigned object,
		      enum model_part part, unsigned detail);
/* An answer came: earlier versions may not be shown any more. */
void model_saw(struct model *model, unsigned client, unsigned volume, unsigned object,
	       size_t moment);
uint32_t model_rights(const struct state *state, uint32_t identity);

#endif
