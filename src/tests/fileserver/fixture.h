/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the fileserver share: trees, volumes, services, streams, a slow disk. */
#ifndef RXW_TESTS_FILESERVER_FIXTURE_H
#define RXW_TESTS_FILESERVER_FIXTURE_H

#include "tests/tools/testing.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <rxwire/rxwire.h>

#include "common/clock.h"
#include "fileserver/service/service.h"

/* -- trees of files: `root` is a new folder that "other" may read -- */

char *tree_make(void);
void tree_remove(char *root);
/* Files are written anew; the mode is set whatever the umask. */
void tree_file(const char *root, const char *path, const void *data, size_t length, unsigned mode);
void tree_text(const char *root, const char *path, const char *text);
void tree_dir(const char *root, const char *path, unsigned mode);
void tree_link(const char *root, const char *path, const char *text);
/* "root/path" in a static buffer, one of four in turn. */
const char *tree_path(const char *root, const char *path);
/* Sleep until a time stamp of now differs from all earlier ones. */
void tree_tick(void);

/* -- a volume over a tree, with its store in a folder of its own -- */

struct world {
	char *root, *state;
	struct fsd_layer *layer;
	struct fsd_store *store;
	struct fsd_volume *volume;
	struct fsd_clients *clients;
	struct fsd_readers *readers;
	struct fsd_usage *usage;
	struct fsd_watch *watch; /* NULL; of a test that starts one */
	struct fsd_service *service;
	_Atomic unsigned changes; /* times that on_change was called */
};

/* `flags` go to fsd_layer_posix(). */
void world_open(struct world *world, char *root, bool all_files, unsigned flags);
/* As a restart of the server: everything but the tree and the store is new. */
void world_reopen(struct world *world, bool all_files);
/* As a restart without the state; with the same volume id, so that FIDs can be compared. */
void world_lose_state(struct world *world);
void world_close(struct world *world);
/* The FID of a path: found by looking names up in directory images. Vnode 0: no such name. */
AFSFid world_fid(struct world *world, const char *path);

/* -- a service on loopback, and clients that make calls in words of their own -- */

#define WIRE_CLIENTS 64

struct wire {
	rxw_handler_fn handler;
	void *context;
	uint16_t service, port;
	rxw_engine *engine;
	rxw_endpoint *server;
	bool measure;	      /* set before a call: have `unread` counted */
	pthread_mutex_t lock; /* covers the next four */
	pthread_cond_t ended;
	unsigned served;   /* calls whose handler has returned */
	int32_t last_code; /* of the latest one */
	uint64_t unread;   /* bytes of its request that it had not read */
	struct wire_client {
		unsigned number; /* 0: not in use */
		rxw_endpoint *endpoint;
		rxw_connection *connection;
	} clients[WIRE_CLIENTS];
	const char *to; /* the address that clients opened from now on ask */
	/* Of the latest call: what came, also of one that failed. */
	uint8_t *reply;
	size_t reply_length;
};

/* On any free port of `listen`; false if this machine has no such address. */
bool wire_open(struct wire *wire, uint16_t service, rxw_handler_fn handler, void *context,
	       const char *listen);
void wire_close(struct wire *wire);
/* The connection of a client, which has a port of its own; made when first used. */
rxw_connection *wire_client(struct wire *wire, unsigned number);
/* Close it, so that the next use makes another. */
void wire_forget(struct wire *wire, unsigned number);
/* Make a call: its code. */
int32_t wire_call(struct wire *wire, unsigned number, const void *request, size_t length);
/* Wait until so many handlers have returned in all; the code of the latest. */
int32_t wire_served(struct wire *wire, unsigned count);

/* -- a stream whose bytes lie in memory -- */

struct memory_stream {
	struct fsd_stream stream;
	uint8_t *reply;
	size_t reply_length, reply_capacity;
	bool discard;	/* count the reply, do not keep it */
	size_t fail_at; /* writes fail beyond so many bytes; 0 = never */
	uint8_t *offer; /* reserved, not yet committed */
	size_t offered;
	/* called before `length` bytes go to the reply */
	void (*on_write)(void *arg, size_t total, size_t length);
	void *arg;
};
void memory_stream_init(struct memory_stream *m);
void memory_stream_free(struct memory_stream *m);

/* -- a file layer that has one file of a pattern, and a disk -- */

struct slow_layer {
	struct fsd_layer base;
	uint64_t size;	       /* of the file */
	uint64_t real_size;    /* where it ends when it is read; 0 = at `size` */
	unsigned read_ms;      /* what each read takes */
	uint64_t cached_below; /* bytes before this offset are in the cache */
	pthread_mutex_t lock;  /* covers the rest */
	unsigned reads, running, most_running;
	uint64_t busy_ns; /* time in which at least one read was running */
	uint64_t busy_since;
	uint64_t last_end;	/* of a read */
	uint64_t started[4096]; /* monotonic ns of each start */
	uint64_t offset[4096];
	int64_t mtime_ns; /* changes when the test says so */
	int fail;	  /* errno for reads beyond fail_from */
	uint64_t fail_from;
};
struct slow_layer *slow_layer_make(uint64_t size, unsigned read_ms);
struct fsd_file *slow_layer_open(struct slow_layer *slow, struct fsd_stat *st);
/* The byte at an offset of its file. */
uint8_t slow_layer_byte(uint64_t offset);

#endif
