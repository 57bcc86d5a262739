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
 * All functions may be called by any thread, also on the same objects. Unless a comment says otherwise they return 0 or a
 * negative errno, and a function that takes a request may wait for servers. A pointer to a result, such as `attributes`, is
 * NULL only where a comment allows it. After a failure a result has no meaning, unless a comment gives it one.
 *
 * Errors that every function with a request may return are not repeated: -ETIMEDOUT, no server has answered until the
 * deadline; -EINTR, the request was cancelled; RXAFS_WOULD_WAIT, it is quick; -EIO, the volume is off-line, or an answer is
 * damaged; -ESTALE, the object is gone; -ENODEV, its volume is; -EACCES, the access list does not permit it; -EKEYEXPIRED,
 * the user's token is over; -ENOMEM. librxafs(3) has the complete list.
 *
 * Strings end at a null byte and are copied, unless a comment says otherwise. Names have 1 to 255 bytes without a slash,
 * paths any length. After fork(2) the child must not use what was opened before.
 */
typedef struct rxafs_client rxafs_client;
typedef struct rxafs_user rxafs_user;
typedef struct rxafs_object rxafs_object;

/* Zero the structure, set `size`, then fill in what differs from the defaults. */
struct rxafs_options {
	size_t size;
	const char *cell; /* home cell, by its name in DNS; NULL: of $AFSCELL or ThisCell */
	/* Cells with their servers, "CELL=HOST[:VLPORT[:FSPORT]][,HOST…]"; they win over CellServDB. */
	const char *const *cells;
	size_t cell_count;
	const char *config_dir;	     /* of ThisCell and CellServDB; NULL: the usual folders */
	/* Made if it is missing, and used by one client at a time. NULL: contents are kept in memory only */
	const char *cache_dir;
	uint64_t cache_bytes;	     /* at most in the cache folder; 0 = 1 GiB */
	uint64_t memory_bytes;	     /* at most for contents in memory; 0 = 64 MiB */
	uint64_t objects;	     /* statuses in memory, a number; 0 = 100,000 */
	const char *root_volume;     /* NULL: a dynamic root, which lists cells */
	const char *const *sysnames; /* for @sys; NULL: of this machine */
	size_t sysname_count;
	uint64_t limit_ms; /* milliseconds for an operation without a deadline; 0 = 60,000 */
	bool ignore_owner; /* changes of owner and group succeed without effect */
	bool strict_locks; /* locks of ranges exclude other clients: each takes the whole file */
	bool read_write;   /* prefer read-write volumes at mount points of other cells */
	const struct rxw_config *transport; /* NULL = defaults */
	/*
	 * Operations ask each server that may answer once, and fail then: the caller repeats them when he
	 * likes. Otherwise they wait for servers that are away or busy, up to `limit_ms`.
	 */
	bool one_round;
	/*
	 * A line for the log, on any thread; priority is syslog's. NULL: the library is silent. It must not call
	 * functions of this library.
	 */
	void (*log)(void *arg, int priority, const char *text);
	void *log_arg;
	const struct rxafs_hooks *hooks; /* NULL; not for programs */
	/*
	 * The only paths to file servers that are used, at most 8: "LOCAL[%DEVICE][,REMOTE]", an address of this machine, its interface,
	 * and an address of the server. What is left out may be any. -EADDRNOTAVAIL: this machine has no such address or interface.
	 */
	const char *const *paths;
	size_t path_count; /* 0: all that there are */
};

/*
 * `options` NULL: the defaults, which suffice where ThisCell and CellServDB, or DNS, tell the cell. No server is
 * asked. The options may go afterwards. On failure *client is not set, and *failure, unless NULL, has a text. -EINVAL: `size` is
 * not set, or an option has no meaning; -EBUSY, -EACCES and others: the cache folder cannot be used.
 */
int rxafs_open_client(const struct rxafs_options *options, rxafs_client **client,
		      struct rxafs_failure *failure);
/*
 * Stores what is dirty, gives promises back, and ends within `limit_ms` milliseconds. Objects, files, listings, users and queues must
 * have been given back, and no other thread may be in a function of this client. The client is gone whatever the result. NULL is allowed.
 * -ETIMEDOUT and others: data were lost, and the log names them.
 */
int rxafs_close_client(rxafs_client *client, uint64_t limit_ms);

/*
 * All operations of the client that wait for servers end with -EINTR, and later ones as well: for a program that has to end at once. What
 * became of changes is then not known. Only what gives back may follow.
 */
void rxafs_abandon(rxafs_client *client);

/* Ends the wait of one operation at a time, from any thread; stays raised until it is freed. */
typedef struct cl_cancel rxafs_cancel;
/* NULL: there is no memory. Give it back by rxafs_free_cancel(). */
rxafs_cancel *rxafs_create_cancel(void);
/* Also before the operation begins, and again: nothing. Never waits. */
void rxafs_raise_cancel(rxafs_cancel *cancel);
/* No operation uses it any more. NULL is allowed. */
void rxafs_free_cancel(rxafs_cancel *cancel);

/* The result of a quick operation that cannot be done without a server. */
#define RXAFS_WOULD_WAIT (-EINPROGRESS)

/*
 * How an operation is to be done, and what became of it. Zeroed: by an anonymous user, with the client's limit. One operation
 * at a time may use it. What it names lives as long as the operation.
 */
struct rxafs_request {
	rxafs_user *user;  /* NULL: an anonymous one */
	uint64_t deadline; /* nanoseconds of rxafs_now(); 0 = the client's limit */
	/* NULL, or what ends the wait with -EINTR; a change goes on at the server */
	rxafs_cancel *cancel;
	bool quick; /* RXAFS_WOULD_WAIT rather than a wait for a server */
	/* Of the mount daemon. Leave them zero. */
	bool moves;
	struct rxafs_awaited awaited;
	struct rxafs_failure failure; /* of the last function that failed */
	uint64_t reserved[4];	      /* zero */
};

/*
 * The text of a result of the function that was called last with this request: what a server or the client said, or else that of the
 * errno. Lives as long as the request, until it is used again.
 */
const char *rxafs_error_text(struct rxafs_request *request, int64_t result);

/*
 * Someone with tokens of his own: a reference, for rxafs_put_user(). `number` is the caller's, never 0: the same number gives the same
 * user, until the end of the client. -ENOMEM.
 */
int rxafs_get_user(rxafs_client *client, uint32_t number, rxafs_user **user);
/* A user without a number, who goes with the last reference to him. -ENOMEM. */
int rxafs_create_user(rxafs_client *client, rxafs_user **user);
/* Another reference. Returns `user`; NULL is allowed. */
rxafs_user *rxafs_hold_user(rxafs_user *user);
/* Gives a reference back, before the client is closed. NULL is allowed. */
void rxafs_put_user(rxafs_user *user);
/*
 * A token for a cell, of rxw_token_security(); the library takes a reference of its own. `expires`: seconds since 1970. NULL takes the
 * token away. Operations that began before may still use the old one. May ask DNS about the cell. -ENOENT: there is no such cell.
 */
int rxafs_set_token(rxafs_user *user, const char *cell, rxw_security *security, int64_t expires);
/* The same for a token of the same principal as the present one, so that what is known of his rights stays. */
int rxafs_renew_token(rxafs_user *user, const char *cell, rxw_security *security, int64_t expires);

/*
 * Get a token with the Kerberos tickets of this process ($KRB5CCNAME), as kinit has left them: for rxgk, or else for rxkad.
 * `cell` NULL: the home cell. Waits for the KDC, as long as the Kerberos library does: the deadline and the cancel of the request do not
 * end that. Call it again before rxafs_token_expires(). -EACCES: there is no ticket, or it is refused; request->failure.text tells why.
 * -EDESTADDRREQ: no home cell is known; -ENOENT: there is no such cell.
 */
int rxafs_log_in(rxafs_user *user, struct rxafs_request *request, const char *cell);
/* Seconds since 1970 until which a user's token for a cell is valid; 0: he has none, or there is no such cell. */
int64_t rxafs_token_expires(rxafs_user *user, const char *cell);

/*
 * The root of the name space, /afs: a reference. All references to objects are given back by
 * rxafs_release(), once each, before the client is closed.
 */
rxafs_object *rxafs_root(rxafs_client *client);
/* Another reference. Returns `object`, which is not NULL. */
rxafs_object *rxafs_hold(rxafs_object *object);
/* Gives a reference back. Never waits. NULL is allowed. */
void rxafs_release(rxafs_object *object);

/* Nanoseconds of CLOCK_BOOTTIME, for deadlines. */
uint64_t rxafs_now(void);

#ifdef __cplusplus
}
#endif

#endif
