/* SPDX-License-Identifier: BSD-2-Clause */
/* The client side of AFS: find a volume, walk its paths, read status and data. */
#ifndef AFS_CLIENT_H
#define AFS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rxwire/call.h>
#include <rxwire/endpoint.h>
#include <rxwire/engine.h>
#include <rxwire/security.h>

#include "afs/client/error.h"
#include "afs/client/data.h"
#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "afs/vl.h"

/*
 * An endpoint with the callback service, and connections to the location server and a file server
 * of a cell.
 */
struct afs_client;

#define AFS_VL_OTHERS 7

struct afs_client_options {
	const struct sockaddr_storage *vl; /* location server, with its port */
	socklen_t vl_len;
	/*
	 * Others of the cell, or other addresses, of the same family, with ports: they are asked if the one
	 * before does not answer. At most AFS_VL_OTHERS; further ones are ignored.
	 */
	const struct sockaddr_storage *vl_others;
	unsigned vl_other_count;
	uint16_t fs_port;		 /* of the file servers; 0 = 7000 */
	const struct sockaddr_storage *local; /* own address, of the same family; NULL = any */
	const struct rxw_config *config; /* of the endpoint; NULL = the engine's */
	rxw_security *security;		 /* of all connections; NULL = anonymous */
	/*
	 * Time limit in milliseconds: for progress of a read, for every other call, and for finding
	 * a server; 0 = 60,000
	 */
	unsigned limit_ms;
};

int afs_client_open(rxw_engine *engine, const struct afs_client_options *options,
		    struct afs_client **client, struct afs_error *error);
/* Does not return promises: see afs_client_give_up(). NULL is allowed. */
void afs_client_close(struct afs_client *client);

/*
 * Make calls in progress and later ones fail as interrupted. Any thread, until afs_client_close().
 */
void afs_client_cancel(struct afs_client *client);

/*
 * Return the callback promises of all file servers that were used and still answer; else these
 * servers would wait for the clients before the next write. At servers without GiveUpAllCallBacks
 * each promise is returned, up to 16,384 for each server. Takes at most `ms` milliseconds for all
 * `count` clients together (NULL ones are skipped). Any thread, also after afs_client_cancel().
 */
void afs_client_give_up(struct afs_client *const *clients, size_t count, unsigned ms);

/*
 * Create new connections with another token for calls that begin from now on. Calls in progress
 * continue with the old one. -1 and *error: nothing has changed.
 */
int afs_client_renew(struct afs_client *client, rxw_security *security, struct afs_error *error);

/*
 * The client's identity at the file server; identity->size is set. -RXW_ESTATE: no volume was used
 * yet.
 */
int afs_client_identity(const struct afs_client *client, struct rxw_identity *identity);

/* A volume and its file server. */
struct afs_volume {
	char name[VL_MAXNAMELEN];
	uint32_t id;
	struct sockaddr_storage server; /* with its port */
	socklen_t server_len;
};

/*
 * Look up a volume by name or number and connect to the first of its servers that answers.
 * "NAME.readonly" and "NAME.backup" select that type; a plain name means the read-write volume, or
 * the read-only one if there is no other. If the location server's address is IPv6, servers with
 * IPv4 addresses are expected at that address.
 */
int afs_client_volume(struct afs_client *client, const char *name, struct afs_volume *volume,
		      struct afs_error *error);
/* Connect to the server of a volume that another client has looked up. */
int afs_client_use(struct afs_client *client, const struct afs_volume *volume,
		   struct afs_error *error);

/*
 * After a failure with a remedy: find a server that serves the volume and connect to it; one round,
 * without pauses. Other servers are tried before the one that failed. 0, or -1 and *error, whose
 * remedy says whether another round may succeed; without a remedy *error is unchanged. *volume is
 * the volume that was looked up last.
 */
int afs_client_recover(struct afs_client *client, struct afs_volume *volume, enum afs_remedy remedy,
		       struct afs_error *error);

/* Number of addresses of servers of the last volume that was looked up. */
unsigned afs_client_sites(const struct afs_client *client);

/* FetchStatus. `what` names the object in errors. */
int afs_client_status(struct afs_client *client, const AFSFid *fid, const char *what,
		      AFSFetchStatus *status, struct afs_error *error);

/* The space of a volume, in KiB, and what its administrator says. */
struct afs_space {
	uint64_t used, quota; /* quota 0: no limit */
	uint64_t free, total; /* of the server's partition; servers give at most 2 TiB */
	bool online;
	char message[256]; /* why it is off-line; may be empty */
};

/* GetVolumeStatus of a volume by its number. `what` names it in errors. */
int afs_client_space(struct afs_client *client, uint32_t volume, const char *what,
		     struct afs_space *space, struct afs_error *error);

/*
 * InlineBulkStatus of 1..AFSCBMAX objects: statuses in the order of `fids`, each with its own error
 * code. Servers without that call get one call for each object. `what` names their directory in
 * errors.
 */
int afs_client_bulk(struct afs_client *client, const AFSFid *fids, uint32_t count, const char *what,
		    AFSFetchStatus *statuses, struct afs_error *error);

/* The contents of a directory or symbolic link, at most `max` bytes; free() *data. */
int afs_client_contents(struct afs_client *client, const AFSFid *fid, const char *what, size_t max,
			uint8_t **data, size_t *length, struct afs_error *error);

/* An object that was found by its path. */
struct afs_object {
	AFSFid fid;
	AFSFetchStatus status;
};

/*
 * Walk `path` from the root of a volume: "a/b"; leading and repeated slashes are ignored, "" is the
 * root. Symbolic links within the volume are followed, the last one only if `follow`. Mount points
 * are errors that name their target.
 */
int afs_client_walk(struct afs_client *client, const struct afs_volume *volume, const char *path,
		    bool follow, struct afs_object *object, struct afs_error *error);

/*
 * Look up one name in a directory. 1 and *fid; 0: there is no such name; -1 and *error. `what`
 * names the directory in errors.
 */
int afs_client_lookup(struct afs_client *client, const AFSFid *dir, const char *name,
		      const char *what, AFSFid *fid, struct afs_error *error);

/* The text of a symbolic link, with a terminating NUL. */
int afs_client_readlink(struct afs_client *client, const AFSFid *fid, const char *what,
			char text[AFSPATHMAX + 1], struct afs_error *error);
/* Whether a symbolic link of that mode and text is a mount point. */
bool afs_is_mount_point(uint32_t mode, const char *text);

/*
 * All steps of a fetch in one blocking call. take() gets the data at `offset` of the file, and may
 * change iov; a nonzero result ends the call. Returns 0; -1 and *error; or 1 if take() ended it. A
 * server that sends less than 1 KiB within the client's time limit makes no progress.
 */
int afs_client_read(struct afs_client *client, struct afs_fetch *fetch, const char *what,
		    int (*take)(void *arg, struct iovec *iov, unsigned count, uint64_t offset),
		    void *arg, struct afs_error *error);

/*
 * The fetch is complete: remember the promise that came with it, for afs_client_give_up(). Any
 * thread. afs_client_read() does it by itself.
 */
void afs_client_fetched(struct afs_client *client, const struct afs_fetch *fetch);

/* A call to the file server; for use with afs_fetch_step(). */
int afs_client_call(struct afs_client *client, const struct rxw_call_options *options,
		    rxw_call **call, struct afs_error *error);
rxw_endpoint *afs_client_endpoint(struct afs_client *client);

/* Fill *error from the code of a call. */
void afs_error_code(struct afs_error *error, const char *what, int32_t code,
		    enum rxw_origin origin);
/* An error with this text. Returns -1. */
int afs_error_text(struct afs_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
