/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of the file service on objects of a volume, with fail-over. */
#ifndef CLIENT_NET_CALLS_H
#define CLIENT_NET_CALLS_H

#include <sys/uio.h>

#include "afs/fetchstatus.h"
#include "client/net/volume.h"

/*
 * Each function makes one call, blocking, at a site of the volume that answers: other addresses,
 * sites and times are tried as K-135 says, within the limits of the caller. Returns 0, or a
 * negative errno value and *failure. The status in a reply was checked (afs_status_usable()). Hold
 * no lock.
 *
 * `maybe_done` with EEXIST, ENOENT or EAGAIN: the request was sent twice, and a server that was
 * killed in between may answer so to what it has done itself.
 *
 * Calls that only read, StoreData, StoreStatus and StoreACL are repeated after a lost answer. Calls
 * of names and SetLock are not: see `maybe_done` of struct rxafs_failure.
 */

/* What came with the reply, beside its contents. */
struct cl_stamp {
	uint64_t sent;	   /* cl_net_now() before the request was sent that got this answer */
	uint64_t received; /* after its end */
	uint32_t server;   /* number */
	uint32_t resets;   /* of that server, before the request was sent: see cl_net_ops */
	uint32_t identity; /* number of the identity that the server saw; 0 = anonymous */
	AFSVolSync sync;
	/*
	 * Of a volume for reading: number of the release, greater for a later one, although that may have an earlier date. 0: unknown
	 */
	uint32_t release;
	AFSCallBack callback; /* ExpirationTime 0: no promise. Counts from `sent` */
	/*
	 * Whether an earlier try of the call got no answer and may have been carried out: the
	 * version of an object that it changes may have been raised twice (K-080).
	 */
	bool repeated;
};

int cl_net_fetch_status(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
			AFSFetchStatus *status, struct cl_stamp *stamp,
			struct rxafs_failure *failure);
/*
 * InlineBulkStatus of 1 to AFSCBMAX objects. Each status may have an errorCode instead of contents,
 * or be unusable; each object has a promise of its own. stamp->callback is zero.
 */
int cl_net_fetch_statuses(struct cl_volume *volume, const struct cl_caller *caller,
			  const AFSFid *fids, uint32_t count, AFSFetchStatus *statuses,
			  AFSCallBack *callbacks, struct cl_stamp *stamp,
			  struct rxafs_failure *failure);

/* The negative errno value for the errorCode of one of these statuses. */
int cl_net_result_of_code(int32_t code);

/*
 * Takes the next bytes of a file, in order, as they arrive; they are valid until it returns. After
 * a failure in the middle another server may be tried: then `offset` begins again where the fetch
 * began. `iov` may be changed. A nonzero result ends the fetch, which returns it.
 */
typedef int cl_take_fn(void *arg, uint64_t offset, struct iovec *iov, unsigned count);
/*
 * FetchData64 of `length` bytes from `offset` on. *fetched: the bytes that the server sent, fewer
 * only at the end of the file. The status is that of the version which was read. `version` is that of a status which came before, or 0:
 * with it a long fetch whose path to the server falls silent goes on at the next byte over another path (P-022).
 */
int cl_net_fetch_data(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
		      uint64_t version, uint64_t offset, uint64_t length, cl_take_fn *take, void *arg,
		      uint64_t *fetched, AFSFetchStatus *status, struct cl_stamp *stamp,
		      struct rxafs_failure *failure);

/* How many paths share long fetches from the server that is used for the volume. *share: see cl_load_paths(). */
unsigned cl_net_paths(struct cl_volume *volume, uint64_t *share);

/*
 * Bytes of one version. What has arrived before a failure is not fetched again: the next server sends the rest, if it has
 * that version. A server is asked for it before it sends bytes from the middle of the file, and one of several always.
 */
struct cl_part {
	AFSFid fid;
	uint64_t version;
	uint64_t offset, length;
	cl_take_fn *take;
	void *arg;
	/* results */
	uint64_t fetched;
	AFSFetchStatus status;
	bool differs; /* with -EAGAIN: the server has another version, that of `status` */
};
int cl_net_fetch_part(struct cl_volume *volume, const struct cl_caller *caller,
		      struct cl_part *part, struct cl_stamp *stamp, struct rxafs_failure *failure);

/*
 * Fills iov[0..count) with the bytes of a file from `offset` on. A nonzero result ends the store,
 * which returns it. After a failure the offset may begin again.
 */
typedef int cl_give_fn(void *arg, uint64_t offset, const struct iovec *iov, unsigned count);
/* Length of a file that a store does not cut (K-076). */
#define CL_NO_CUT INT64_MAX
/*
 * StoreData64: `length` bytes at `offset`; the file is cut to `file_length` if it is longer. `how`
 * has the mask with the time (1) and AFS_FSYNC. With CL_NO_CUT: falls back to offset + length, or
 * `known_length` if that is larger, at servers that refuse it.
 */
int cl_net_store_data(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
		      const AFSStoreStatus *how, uint64_t offset, uint64_t length,
		      uint64_t file_length, uint64_t known_length, cl_give_fn *give, void *arg,
		      AFSFetchStatus *status, struct cl_stamp *stamp,
		      struct rxafs_failure *failure);
int cl_net_store_status(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
			const AFSStoreStatus *how, AFSFetchStatus *status, struct cl_stamp *stamp,
			struct rxafs_failure *failure);

/* -- names -------------------------------------------------------------------------------- */

/* Names have 1 to 255 bytes, without '/' and NUL. */
struct cl_made {
	AFSFid fid;
	AFSFetchStatus status, dir_status;
};
int cl_net_create_file(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		       const char *name, const AFSStoreStatus *how, struct cl_made *made,
		       struct cl_stamp *stamp, struct rxafs_failure *failure);
int cl_net_make_dir(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		    const char *name, const AFSStoreStatus *how, struct cl_made *made,
		    struct cl_stamp *stamp, struct rxafs_failure *failure);
/* Mode 0644 makes a mount point (K-015). No promise comes with it. */
int cl_net_make_symlink(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
			const char *name, const char *text, const AFSStoreStatus *how,
			struct cl_made *made, struct cl_stamp *stamp,
			struct rxafs_failure *failure);
/* made->fid is `existing`. */
int cl_net_make_link(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		     const char *name, const AFSFid *existing, struct cl_made *made,
		     struct cl_stamp *stamp, struct rxafs_failure *failure);
int cl_net_remove_file(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		       const char *name, AFSFetchStatus *dir_status, struct cl_stamp *stamp,
		       struct rxafs_failure *failure);
int cl_net_remove_dir(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		      const char *name, AFSFetchStatus *dir_status, struct cl_stamp *stamp,
		      struct rxafs_failure *failure);
int cl_net_rename(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *old_dir,
		  const char *old_name, const AFSFid *new_dir, const char *new_name,
		  AFSFetchStatus *old_status, AFSFetchStatus *new_status, struct cl_stamp *stamp,
		  struct rxafs_failure *failure);

/* -- access lists, locks, volumes, promises ------------------------------------------------ */

/* The text with its NUL; of a file: that of its directory. */
int cl_net_fetch_acl(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
		     char text[AFSOPAQUEMAX + 1], AFSFetchStatus *status, struct cl_stamp *stamp,
		     struct rxafs_failure *failure);
int cl_net_store_acl(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		     const char *text, AFSFetchStatus *status, struct cl_stamp *stamp,
		     struct rxafs_failure *failure);

enum cl_lock_call {
	CL_LOCK_READ,
	CL_LOCK_WRITE,
	CL_LOCK_EXTEND,
	CL_LOCK_RELEASE
};
int cl_net_lock(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *fid,
		enum cl_lock_call kind, struct cl_stamp *stamp, struct rxafs_failure *failure);

struct cl_volume_status {
	AFSFetchVolumeStatus volume;
	char name[AFSNAMEMAX + 1], offline[AFSOPAQUEMAX + 1], motd[AFSOPAQUEMAX + 1];
};
int cl_net_fetch_volume_status(struct cl_volume *volume, const struct cl_caller *caller,
			       struct cl_volume_status *status, struct rxafs_failure *failure);
/* Quota in KiB; -1: unchanged. Messages: NULL = unchanged. */
int cl_net_set_volume_status(struct cl_volume *volume, const struct cl_caller *caller,
			     int32_t max_quota, const char *offline, const char *motd,
			     struct rxafs_failure *failure);

/*
 * Give promises back of objects that the cache drops (K-051). Does not wait for a server that is in doubt. False: it may not have
 * them back.
 */
bool cl_net_give_up(struct cl_net *net, uint32_t server, const AFSFid *fids, uint32_t count);

#endif
