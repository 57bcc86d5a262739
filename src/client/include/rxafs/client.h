/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of AFS cells: its settings, users, and the root of its name space. */
#ifndef RXAFS_CLIENT_H
#define RXAFS_CLIENT_H

#include <errno.h>

#include <rxwire/config.h>
#include <rxwire/security.h>

#include <rxafs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * All functions may be called by any thread, also on the same objects. Unless a comment says
 * otherwise they return 0 or a negative errno, and a function that takes a request may wait for
 * servers.
 */
typedef struct rxafs_client rxafs_client;
typedef struct rxafs_user rxafs_user;
typedef struct rxafs_object rxafs_object;

/* What has changed, for rxafs_hooks. */
enum rxafs_change {
	RXAFS_CHANGED_STATUS = 1, /* attributes or rights; of a directory perhaps names */
	RXAFS_CHANGED_DATA = 2,	  /* contents of a file */
	RXAFS_CHANGED_NAMES = 4	  /* names of a directory */
};

struct rxafs_hooks {
	/*
	 * An object that the caller holds was changed by another client, or may have been. On a thread of
	 * the client that must not be kept: no function that takes a request.
	 */
	void (*changed)(void *arg, rxafs_object *object, unsigned what);
	/* After one or more of these: the server that told waits. Return soon, after 100 ms at most. */
	void (*settle)(void *arg);
	/* A line for the log; priority is syslog's. */
	void (*log)(void *arg, int priority, const char *text);
	void *arg;
};

struct rxafs_options {
	const char *cell; /* home cell; NULL: of ThisCell */
	/* Cells with their servers, "CELL=HOST[:VLPORT[:FSPORT]][,HOST…]"; they win over CellServDB. */
	const char *const *cells;
	size_t cell_count;
	const char *config_dir;	     /* of ThisCell and CellServDB; NULL: the usual folders */
	const char *cache_dir;	     /* NULL: contents are kept in memory only */
	uint64_t cache_bytes;	     /* of the cache folder; 0 = 1 GiB */
	uint64_t memory_bytes;	     /* for contents in memory; 0 = 64 MiB */
	uint64_t objects;	     /* statuses in memory; 0 = 100,000 */
	const char *root_volume;     /* NULL: a dynamic root, which lists cells */
	const char *const *sysnames; /* for @sys; NULL: of this machine */
	size_t sysname_count;
	uint64_t limit_ms; /* of operations that wait for a dead server; 0 = 60,000 */
	bool ignore_owner; /* changes of owner and group succeed without effect */
	bool strict_locks; /* locks of ranges exclude other clients: each takes the whole file */
	bool read_write;   /* prefer read-write volumes at mount points of other cells */
	rxw_security *security; /* of users without tokens; NULL = anonymous */
	struct rxafs_hooks hooks;
	const struct rxw_config *transport; /* NULL = defaults */
	/*
	 * Operations ask each server that may answer once, and fail then: the caller repeats them when he
	 * likes. Otherwise they wait for servers that are away or busy, up to `limit_ms`.
	 */
	bool one_round;
};

int rxafs_open_client(const struct rxafs_options *options, rxafs_client **client,
		      struct rxafs_failure *failure);
/*
 * Stores what is dirty, gives promises back, and ends within `limit_ms`. Objects and files must have
 * been released. NULL is allowed. -ETIMEDOUT: data were lost, and the log names them.
 */
int rxafs_close_client(rxafs_client *client, uint64_t limit_ms);

/*
 * Ends the wait of one operation at a time, from any thread; stays raised until it is freed.
 */
typedef struct cl_cancel rxafs_cancel;
rxafs_cancel *rxafs_create_cancel(void);
void rxafs_raise_cancel(rxafs_cancel *cancel);
void rxafs_free_cancel(rxafs_cancel *cancel);

/* The result of a quick operation that cannot be done without a server. */
#define RXAFS_WOULD_WAIT (-EINPROGRESS)

/* The servers that an operation waits for. */
struct rxafs_awaited {
	bool known;
	uint32_t cell;	 /* its number; 0: a name that may be one of a cell */
	uint32_t server; /* a file server; 0: the location servers of the cell */
};

/*
 * How an operation is to be done, and what became of it. Zeroed: by an anonymous user, with the
 * client's limit.
 */
struct rxafs_request {
	rxafs_user *user;
	uint64_t deadline; /* nanoseconds of CLOCK_BOOTTIME; 0 = the client's limit */
	bool quick;	   /* RXAFS_WOULD_WAIT rather than a wait for a server */
	/*
	 * Without `quick`: RXAFS_WOULD_WAIT as well, before a wait for another cell than that of
	 * `awaited`. Only for operations that are run again then.
	 */
	bool moves;
	struct rxafs_awaited awaited; /* set with RXAFS_WOULD_WAIT, and by rxafs_run() */
	rxafs_cancel *
		cancel; /* NULL, or what ends the wait with -EINTR; a change goes on at the server */
	struct rxafs_failure failure; /* of the last function that failed */
};

/*
 * Someone with tokens of his own. `number` is the caller's, never 0: the same number gives the same
 * user. Tokens are counted references of a security object for a cell; NULL takes it away.
 */
int rxafs_get_user(rxafs_client *client, uint32_t number, rxafs_user **user);
void rxafs_put_user(rxafs_user *user);
int rxafs_set_token(rxafs_user *user, const char *cell, rxw_security *security, int64_t expires);

/* The root; a reference. */
rxafs_object *rxafs_root(rxafs_client *client);
rxafs_object *rxafs_hold(rxafs_object *object);
void rxafs_release(rxafs_object *object);
void rxafs_release_many(rxafs_object *object, uint64_t references);
/* A place for the caller's own data of an object that he holds. */
void *rxafs_own_data(const rxafs_object *object);
/*
 * Set them, once; `drop` is called with them when the object goes. The result is what is set then: after a
 * race that of the first, and `drop` was called with the second.
 */
void *rxafs_set_own_data(rxafs_object *object, void *data, void (*drop)(void *data));

/* The servers that operations on an object wait for, as far as it is known. Never waits. */
struct rxafs_awaited rxafs_awaited_of(rxafs_object *object);
/*
 * Call run(arg) on a thread of the client, for an operation that may wait for the servers that
 * request->awaited names, or else for those of `about`. Few threads wait for one server, or for one cell;
 * others' operations do not wait behind them. 0 or -ENOMEM.
 */
int rxafs_run(rxafs_client *client, rxafs_object *about, struct rxafs_request *request,
	      void (*run)(void *arg), void *arg);

/* Nanoseconds of CLOCK_BOOTTIME. */
uint64_t rxafs_now(void);

#ifdef __cplusplus
}
#endif

#endif
