/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of the file server: trees, volumes, services, streams, a slow disk. */
#ifndef RXW_TESTS_FILESERVER_FIXTURE_H
#define RXW_TESTS_FILESERVER_FIXTURE_H

#include "tests/tools/testing.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <rxwire/afs.h>
#include <rxwire/rxwire.h>

#include "common/clock.h"
#include "volume/export/export.h"
#include "fileserver/service/service.h"

/* -- trees of files: `root` is a new folder that "other" may read -- */

char *tree_make(void);
void tree_remove(char *root);
/* Replaces the file; sets the mode independently of the umask. */
void tree_file(const char *root, const char *path, const void *data, size_t length, unsigned mode);
void tree_text(const char *root, const char *path, const char *text);
void tree_dir(const char *root, const char *path, unsigned mode);
void tree_link(const char *root, const char *path, const char *text);
/* "root/path" in one of four static buffers. */
const char *tree_path(const char *root, const char *path);
/* Sleeps until the current time stamp differs from all earlier ones. */
void tree_tick(void);

/* -- a volume over a tree, with its store in a separate folder -- */

struct world {
	char *root, *state;
	struct export_layer *layer;
	struct fsd_clients *clients;
	struct fsd_readers *readers;
	struct export *export; /* the volume, */
	struct store *served;  /* as a store */
	struct fsd_service *service;
	_Atomic unsigned changes; /* number of calls of on_change */
};

/* `flags` are passed to export_layer_posix(). */
void world_open(struct world *world, char *root, bool all_files, unsigned flags);
/* A restart of the server: only the tree and the store stay. */
void world_reopen(struct world *world, bool all_files);
/* A restart without the state, but with the same volume id, so that FIDs can be compared. */
void world_lose_state(struct world *world);
void world_close(struct world *world);
/* The FID of a path, found by looking up names in directory images. Vnode 0: no such name. */
AFSFid world_fid(struct world *world, const char *path);
struct store_fid world_find(struct world *world, const char *path);

/* -- a service on loopback, and clients that encode their calls by hand -- */

#define WIRE_CLIENTS 64

struct wire {
	rxw_handler_fn handler;
	void *context;
	uint16_t service, port;
	rxw_engine *engine;
	rxw_endpoint *server;
	bool measure;	      /* set before a call to have `unread` counted */
	pthread_mutex_t lock; /* protects the next four */
	pthread_cond_t ended;
	unsigned served;   /* calls whose handler has returned */
	int32_t last_code; /* code of the latest one */
	uint64_t unread;   /* bytes of its request that it did not read */
	struct wire_client {
		unsigned number; /* 0: unused */
		rxw_endpoint *endpoint;
		rxw_connection *connection;
	} clients[WIRE_CLIENTS];
	const char *to; /* the address that newly opened clients call */
	/* The reply to the latest call, also of a failed one. */
	uint8_t *reply;
	size_t reply_length;
};

/* On any free port of `listen`; false if this machine has no such address. */
bool wire_open(struct wire *wire, uint16_t service, rxw_handler_fn handler, void *context,
	       const char *listen);
void wire_close(struct wire *wire);
/* The connection of a client, which has its own port; made on first use. */
rxw_connection *wire_client(struct wire *wire, unsigned number);
/* Closes it, so that the next use makes another. */
void wire_forget(struct wire *wire, unsigned number);
/* Makes a call and returns its code. */
int32_t wire_call(struct wire *wire, unsigned number, const void *request, size_t length);
/* Waits until so many handlers have returned in all; returns the code of the latest. */
int32_t wire_served(struct wire *wire, unsigned count);

/* -- a stream in memory -- */

struct memory_stream {
	struct fsd_stream stream;
	uint8_t *reply;
	size_t reply_length, reply_capacity;
	bool discard;	/* count the reply without keeping it */
	size_t fail_at; /* writes fail beyond this many bytes; 0 = never */
	uint8_t *offer; /* reserved, not yet committed */
	size_t offered;
	/* called before `length` bytes of the reply are sent */
	void (*on_write)(void *arg, size_t total, size_t length);
	void *arg;
	/* With a window: bytes of the reply that there is room for, until the test adds some and visits. */
	bool has_window;
	_Atomic size_t window;
	void (*visit)(void *arg);
	void *visited;
	bool asks; /* visits that a flow asks for come from the test; else there are none */
};
void memory_stream_init(struct memory_stream *m);
void memory_stream_free(struct memory_stream *m);

/* -- a file layer with one file of a pattern on a simulated disk -- */

struct slow_layer {
	struct export_layer base;
	uint64_t size;	       /* of the file */
	uint64_t real_size;    /* offset at which reads end; 0 = at `size` */
	unsigned read_ms;      /* duration of each read */
	uint64_t cached_below; /* bytes before this offset are in the cache */
	pthread_mutex_t lock;  /* protects the rest */
	unsigned reads, running, most_running;
	uint64_t busy_ns; /* time during which at least one read was running */
	uint64_t busy_since;
	uint64_t last_end;	/* of a read */
	uint64_t started[4096]; /* monotonic start times, ns */
	uint64_t offset[4096];
	int64_t mtime_ns; /* the file changes when the test sets this */
	int fail;	  /* errno for reads beyond fail_from */
	uint64_t fail_from;
};
struct slow_layer *slow_layer_make(uint64_t size, unsigned read_ms);
struct export_file *slow_layer_open(struct slow_layer *slow, struct export_stat *st);
/* The byte at an offset of its file. */
uint8_t slow_layer_byte(uint64_t offset);

/* Sends a part of a file of a layer, waits until it has ended, and returns the result. */
int send_file(struct fsd_readers *readers, struct export_file *file, uint64_t offset,
	      uint64_t length, struct fsd_stream *stream);

/* -- a client's security, printed with the keys of the server. `name`: NULL: the service itself -- */

rxw_security *token_for_rxkad(rxw_keys *keys, const char *name, uint8_t level);
rxw_security *token_for_rxgk(rxw_keys *keys, const char *name);

#endif
