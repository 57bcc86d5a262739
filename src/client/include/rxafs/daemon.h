/* SPDX-License-Identifier: BSD-2-Clause */
/* What only the mount daemon and afscp need. Not installed, and not exported: they have the library inside. */
#ifndef RXAFS_DAEMON_H
#define RXAFS_DAEMON_H

#include <sys/uio.h>

#include <rxafs/file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What has changed, for rxafs_hooks. */
enum rxafs_change {
	RXAFS_CHANGED_STATUS = 1, /* attributes or rights; of a directory perhaps names */
	RXAFS_CHANGED_DATA = 2,	  /* contents of a file */
	RXAFS_CHANGED_NAMES = 4	  /* names of a directory */
};

/* Of rxafs_options; copied. */
struct rxafs_hooks {
	/*
	 * An object that the caller holds was changed by another client, or may have been. On a thread of
	 * the client that must not be kept: no function that takes a request.
	 */
	void (*changed)(void *arg, rxafs_object *object, unsigned what);
	/* After one or more of these: the server that told waits. Return within 3 s. */
	void (*settle)(void *arg);
	/*
	 * A token of a user is over, or a server has refused it: whether another was set. On a thread of an
	 * operation that waits. NULL: never.
	 */
	bool (*renew)(void *arg, rxafs_user *user, const char *cell);
	bool keep_whole; /* large files of read-only volumes are kept in files of the cache folder, for rxafs_lend_whole() */
	void *arg;
};

/*
 * request->moves, without `quick`: RXAFS_WOULD_WAIT as well, before a wait for another cell than that of
 * request->awaited. Only for operations that are run again then. request->awaited is set with RXAFS_WOULD_WAIT, and by
 * rxafs_run().
 */

/* The servers that operations on an object wait for, as far as it is known. Never waits. */
struct rxafs_awaited rxafs_awaited_of(rxafs_object *object);
/*
 * Call run(arg) on a thread of the client, for an operation that may wait for the servers that
 * request->awaited names, or else for those of `about`. Few threads wait for one server, or for one cell;
 * others' operations do not wait behind them. 0 or -ENOMEM.
 */
int rxafs_run(rxafs_client *client, rxafs_object *about, struct rxafs_request *request,
	      void (*run)(void *arg), void *arg);
/*
 * The same on the thread of the caller: the answer then wakes no other one. -EAGAIN, without a call: too many wait already, or those who
 * waited for this cell had to wait for long.
 */
int rxafs_run_here(rxafs_client *client, rxafs_object *about, struct rxafs_request *request,
		   void (*run)(void *arg), void *arg);

/*
 * For how many nanoseconds the servers that `awaited` names have not answered questions, which this function asks. Call it each 50 ms.
 * Never waits. UINT64_MAX: no server is known.
 */
uint64_t rxafs_silence(rxafs_client *client, const struct rxafs_awaited *awaited);

/* Read CellServDB again. Cells that it no longer lists stay. */
int rxafs_reload_cells(rxafs_client *client);
/* The endpoint of its calls, for metrics; lives as long as the client. */
rxw_endpoint *rxafs_endpoint(rxafs_client *client);

/* For one who keeps a pointer without a reference, until own data are dropped. False: the object goes just now. */
bool rxafs_hold_if_used(rxafs_object *object);
void rxafs_release_many(rxafs_object *object, uint64_t references);
/* A place for the caller's own data of an object that he holds. */
void *rxafs_own_data(const rxafs_object *object);
/*
 * Set them, once; `drop` is called with them when the object goes. The result is what is set then: after a
 * race that of the first, and `drop` was called with the second.
 */
void *rxafs_set_own_data(rxafs_object *object, void *data, void (*drop)(void *data));

/*
 * As rxafs_read(), without a copy: fills iov[0..*count) with what stays as it is until rxafs_give_back(). *loan is NULL unless
 * the result is above 0. -E2BIG: the bytes are in more than *count places; read them instead.
 */
typedef struct rxafs_loan rxafs_loan;
int64_t rxafs_lend(rxafs_file *file, struct rxafs_request *request, size_t length, uint64_t offset,
		   struct iovec *iov, unsigned *count, rxafs_loan **loan);
void rxafs_give_back(rxafs_loan *loan);

/* Whether nothing is known to have changed since these attributes were got. Never waits. */
bool rxafs_attributes_hold(rxafs_object *object, const struct rxafs_attributes *attributes);
/* Whether a server has promised to tell of changes of the object, from now on. Never waits. */
bool rxafs_is_promised(rxafs_object *object);
/* Ask whether others have changed the file, unless a server has promised to tell. */
int rxafs_refresh(rxafs_file *file, struct rxafs_request *request);
/*
 * A descriptor of a file with the contents of *version as a whole, if there is one; -ENOENT. It keeps them as long as it is open,
 * whatever happens. `lent` is given back after the last use of such a descriptor. Never waits.
 */
typedef struct cl_disk_whole rxafs_whole;
int rxafs_lend_whole(rxafs_file *file, uint64_t *version, rxafs_whole **lent);
void rxafs_return_whole(rxafs_whole *lent);
/* The same as rxafs_file_contents(), of its object. */
uint64_t rxafs_contents(const rxafs_object *object);
/* Changes whenever others have changed the contents, but not by own writes; never 0. */
uint64_t rxafs_file_contents(const rxafs_file *file);

#ifdef __cplusplus
}
#endif

#endif
