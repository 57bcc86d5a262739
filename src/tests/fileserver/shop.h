/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: a store in a temporary folder, served on loopback, and clients with a callback service. */
#ifndef RXW_TESTS_FILESERVER_SHOP_H
#define RXW_TESTS_FILESERVER_SHOP_H

#include "tests/fileserver/fixture.h"

#include "afs/rxafs.h"
#include "afs/rxafscb.h"
#include "volume/store/store.h"

#define SHOP_CLIENTS 4

/* A client of the file service. `lock` of the shop protects what its callbacks count. */
struct shop_client {
	struct shop *shop;
	rxw_endpoint *endpoint;
	rxw_connection *fs;
	struct RXAFSCB_service service;
	struct rxw_uuid uuid;
	bool stuck; /* callbacks wait until it is cleared */
	unsigned inits, breaks;
	AFSFid broken
		[256]; /* of the latest breaks; those of whole volumes are not kept before `up` */
	bool up;
};

struct shop {
	char *folder;
	char path[4200]; /* of the store */
	struct store *store;
	struct fsd_clients *clients;
	struct fsd_callbacks *callbacks;
	struct fsd_readers *readers;
	struct fsd_service *service;
	struct fsd_audit *audit; /* may be set before shop_serve() */
	struct prot *prot;	 /* the same */
	struct fsd_guard *guard; /* the same */
	bool no_anonymous_writes;
	rxw_engine *engine;
	rxw_endpoint *server, *vl, *vol;
	uint32_t volume; /* "data", in which anonymous callers have all rights */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct shop_client client[SHOP_CLIENTS];
};

/* Make the store and its volume. Then shop_serve(). */
void shop_make(struct shop *shop);
/* Before shop_serve(): open the store again on a layer of its folder, which stays the caller's. */
void shop_open_on(struct shop *shop, struct store_layer *layer);
void shop_serve(struct shop *shop);
/* All of that, with clients 0 and 1. Returns the root of the volume. */
AFSFid shop_open(struct shop *shop, struct shop_client **a, struct shop_client **b);
/* Stop serving; the store is checked and closed, and the folder removed. */
void shop_close(struct shop *shop);
/* Client number i; made on first use, and brought up: it gets promises. */
struct shop_client *shop_client(struct shop *shop, unsigned i);
/* A connection of it to AFS_SERVICE_FS, AFS_SERVICE_VL or AFS_SERVICE_VOL. To be released. */
rxw_connection *shop_connect(struct shop *shop, unsigned i, uint16_t service);
/* Wait until a counter of a client has reached a value. */
void shop_reaches(struct shop *shop, const unsigned *counter, unsigned value);
/* Number of breaks of an object that a client got. */
unsigned shop_broken(struct shop_client *client, const AFSFid *fid);
/* Wait until no thread of the library serves a call. */
void shop_await_idle(const struct shop *shop);
/* Let the callbacks of a client wait, or go on. */
void shop_stick(struct shop_client *client, bool stuck);

AFSFid shop_root(const struct shop *shop);
/* Make a file as client 0; the call must succeed. */
AFSFid shop_file(struct shop *shop, const AFSFid *dir, const char *name);
/* Store bytes; *st may be NULL. Returns the code. `sent`: bytes that are sent, of `length`. */
int32_t shop_put(struct shop_client *client, const AFSFid *fid, uint64_t pos, uint64_t length,
		 uint64_t file_length, const void *data, size_t sent, AFSFetchStatus *st);
/* Fetch into `data`; returns the bytes, or the negated code. */
int64_t shop_get(struct shop_client *client, const AFSFid *fid, uint64_t pos, uint64_t length,
		 void *data, AFSFetchStatus *st, AFSCallBack *cb);

#endif
