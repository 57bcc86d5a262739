/* SPDX-License-Identifier: BSD-2-Clause */
/* The client side: find a volume, walk its paths, read status and data. */
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
#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "afs/vl.h"

/*
 * One endpoint with the callback service on it, and connections to a cell's location and file
 * server.
 */
struct afs_client;

struct afs_client_options {
	const struct sockaddr_storage *vl; /* location server, with its port */
	socklen_t vl_len;
	uint16_t fs_port;                  /* of the file servers: 7000 but for tests */
	const struct rxw_config *config;   /* of the endpoint; NULL = the engine's */
	rxw_security *security;            /* of all connections; NULL = anonymous */
	/*
	 * Most milliseconds without progress in a read, in all of any other call, and in the search
	 * for a server; 0 = 60,000
	 */
	unsigned limit_ms;
};

int afs_client_open(rxw_engine *engine, const struct afs_client_options *options,
		    struct afs_client **client, struct afs_error *error);
/* Gives up no promises: see afs_client_give_up(). NULL is allowed. */
void afs_client_close(struct afs_client *client);

/*
 * Calls in progress and later ones fail as interrupted. Any thread; until
 * afs_client_close().
 */
void afs_client_cancel(struct afs_client *client);

/*
 * Tell all file servers that were used, but those that do not answer, that the callback promises
 * they gave are not needed any more; else they would wait for these clients before the next write.
 * Servers that do not know GiveUpAllCallBacks are told of each object, up to 16,384 for each server.
 * Takes `ms` milliseconds at most for all `count` clients together (NULL ones are passed over). Any
 * thread, also after afs_client_cancel().
 */
void afs_client_give_up(struct afs_client *const *clients, size_t count, unsigned ms);

/*
 * Make connections of their own for calls that begin from now on, with another token. Calls in progress go on
 * with the old one. -1 and *error: all is as it was.
 */
int afs_client_renew(struct afs_client *client, rxw_security *security, struct afs_error *error);

/* Who the file server takes us for; struct rxw_identity's size is set. -RXW_ESTATE: nothing was asked yet. */
int afs_client_identity(const struct afs_client *client, struct rxw_identity *identity);

/* A volume and where to ask for it. */
struct afs_volume {
	char name[VL_MAXNAMELEN];
	uint32_t id;
	struct sockaddr_storage server; /* with its port */
	socklen_t server_len;
};

/*
 * Look a volume up by name or number ("NAME.readonly" and "NAME.backup" ask for that type; a plain
 * name means the read-write volume, or the read-only one if there is no other) and connect to the
 * first of its servers that answers. Servers known only by IPv4 addresses are asked at the location
 * server's address when that is IPv6.
 */
int afs_client_volume(struct afs_client *client, const char *name, struct afs_volume *volume,
		      struct afs_error *error);
/* Connect to the server of a volume that another client has looked up. */
int afs_client_use(struct afs_client *client, const struct afs_volume *volume,
		   struct afs_error *error);

/*
 * After a failure with a remedy: find a server that serves the volume now and connect to it; one
 * round, without pauses. Others are tried before the one that failed. 0, or -1 and *error, whose
 * remedy says whether another round may succeed; without a remedy it stays as it is. *volume is what
 * was looked up last.
 */
int afs_client_recover(struct afs_client *client, struct afs_volume *volume,
		       enum afs_remedy remedy, struct afs_error *error);

/* Addresses of servers that hold the volume that was looked up last. */
unsigned afs_client_sites(const struct afs_client *client);

/* FetchStatus. `what` names the object in errors. */
int afs_client_status(struct afs_client *client, const AFSFid *fid, const char *what,
		      AFSFetchStatus *status, struct afs_error *error);

/*
 * InlineBulkStatus of 1..AFSCBMAX objects: statuses in the order asked, each with an error code of
 * its own. Servers without that call are asked one by one. `what` names their directory in errors.
 */
int afs_client_bulk(struct afs_client *client, const AFSFid *fids, uint32_t count,
		    const char *what, AFSFetchStatus *statuses, struct afs_error *error);

/* Contents of a directory or symbolic link, whole, of at most `max` bytes; free() *data. */
int afs_client_contents(struct afs_client *client, const AFSFid *fid, const char *what, size_t max,
			uint8_t **data, size_t *length, struct afs_error *error);

/* An object that a path led to. */
struct afs_object {
	AFSFid fid;
	AFSFetchStatus status;
};

/*
 * Walk `path` ("a/b", leading and repeated slashes do not matter, "" is the root) from the root of
 * a volume. Links on the way that stay in the volume are followed, the last one if `follow`; mount
 * points are errors that name their target.
 */
int afs_client_walk(struct afs_client *client, const struct afs_volume *volume, const char *path,
		    bool follow, struct afs_object *object, struct afs_error *error);

/* Text of a symbolic link; a NUL is added. */
int afs_client_readlink(struct afs_client *client, const AFSFid *fid, const char *what,
			char text[AFSPATHMAX + 1], struct afs_error *error);
/* Whether a symbolic link of that mode and text is a mount point. */
bool afs_is_mount_point(uint32_t mode, const char *text);

/*
 * FetchData64 as a state machine, for blocking and non-blocking calls alike. Set up with
 * afs_fetch_init(), then afs_fetch_step() again and again. Once it has returned AFS_FETCH_DONE or
 * AFS_FETCH_ERROR, end the call (with RXW_USER_ABORT after an error).
 */
struct afs_fetch {
	AFSFid fid;
	uint64_t offset, wanted;      /* what is asked for */
	uint64_t length;              /* what the server said it sends; valid after the head */
	uint64_t received;            /* bytes of data so far */
	AFSFetchStatus status;	      /* valid when done */
	AFSCallBack callback;
	AFSVolSync sync;

	uint8_t buffer[160];          /* head, then tail */
	size_t used, surplus;
	enum {
		AFS_FETCH_SENDING, AFS_FETCH_ENDING, AFS_FETCH_HEAD, AFS_FETCH_DATA, AFS_FETCH_TAIL,
		AFS_FETCH_REST /* up to the end of the reply; a longer one is no error */
	} phase;
	const char *why;              /* of AFS_FETCH_ERROR: static text, NULL = the call says it */
};
enum afs_fetch_result { AFS_FETCH_AGAIN, AFS_FETCH_LENT, AFS_FETCH_DONE, AFS_FETCH_ERROR };

void afs_fetch_init(struct afs_fetch *fetch, const AFSFid *fid, uint64_t offset, uint64_t length);
/*
 * Go on. AFS_FETCH_LENT: iov[0..*count) holds the next bytes of data, valid until the next step;
 * `received` counts them already. AFS_FETCH_AGAIN: a non-blocking call must wait for its next
 * event. *count says how long iov is.
 */
enum afs_fetch_result afs_fetch_step(struct afs_fetch *fetch, rxw_call *call, struct iovec *iov,
				     unsigned *count);

/*
 * All steps of a fetch in one blocking call. take() is given what came, at `offset` of the file, and
 * may change iov; what it returns, if not 0, ends the call. 0; -1 and *error; or 1 if take() ended
 * it. A server that sends less than a KiB within the client's limit has made no progress.
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
/* Most that is asked for with one FetchData64: OpenAFS's servers and clients count in 31 bits. */
#define AFS_FETCH_MAX 0x7ffff000u

/* Fill *error from the code of an ended call. */
void afs_error_code(struct afs_error *error, const char *what, int32_t code,
		    enum rxw_origin origin);
void afs_error_text(struct afs_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
