/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of operations: to know a status, rights, names, texts of links, and volumes behind mount points. */
#ifndef CLIENT_FS_OPERATE_H
#define CLIENT_FS_OPERATE_H

#include "client/fs/fs.h"

/* -- ask.c ---------------------------------------------------------------------------- */

/* One call, from the note before it to the reply. */
struct fs_call {
	rxafs_client *client;
	struct rxafs_request *request;
	struct cl_caller caller;
	struct cl_stamp stamp;
	struct cl_reply reply;
};
void fs_begin_call(struct fs_call *call, rxafs_client *client, struct rxafs_request *request);
/* Fill call->reply from the stamp. `callback`: that of the object, or NULL: none. */
const struct cl_reply *fs_reply(struct fs_call *call, const AFSCallBack *callback);
/* After cl_change_begin_quiet(), and the call whose result and answer these are. `acl`: the access list was changed. */
void fs_end_quiet_change(struct fs_vnode *v, struct rxafs_request *request, struct fs_call *call,
			 int result, const AFSFetchStatus *answer, bool acl);
static inline AFSFid fs_afs_fid(const struct rxafs_fid *fid)
{
	return (AFSFid){fid->volume, fid->vnode, fid->unique};
}

/* The server that calls on the volume of a vnode go to; 0: not known yet. */
static inline uint32_t fs_server_of(struct fs_vnode *vnode)
{
	uint32_t server = 0;

	cl_volume_state(vnode->volume, &server);
	return server;
}

/* Note that the operation waits for the servers of a vnode. Returns RXAFS_WOULD_WAIT. */
int fs_would_wait(struct fs_vnode *vnode, struct rxafs_request *request);

/* A status that can be used now, by a call if there is none. -ESTALE: the object is gone. */
int fs_status(struct fs_vnode *vnode, struct rxafs_request *request, struct cl_status *status);
/* Of the objects whose FIDs are given, all of the volume of `directory`; those that fail are left out. */
int fs_ask_statuses(struct fs_vnode *directory, struct rxafs_request *request,
		    const struct rxafs_fid *fids, unsigned count);
/* The same of any number, in several calls at once. */
void fs_ask_many(struct fs_vnode *directory, struct rxafs_request *request,
		 const struct rxafs_fid *fids, unsigned count);
/* The rights of the caller in a directory. */
int fs_rights(struct fs_vnode *directory, struct rxafs_request *request, uint32_t *rights);
/* The rights of the caller that govern an object: of the directory itself, or of that which it is in. */
int fs_governing_rights(struct fs_vnode *vnode, const struct cl_status *status,
			struct rxafs_request *request, uint32_t *rights);
/* -EACCES, or -EKEYEXPIRED if the token of the caller is over; and whether the caller has these rights. */
int fs_refuse(const struct fs_vnode *v, struct rxafs_request *request);
int fs_need_rights(struct fs_vnode *directory, struct rxafs_request *request, uint32_t needed);
/* What follows from a status that was learned: contents that are held may be old. */
struct cl_data_version fs_version(const struct cl_status *status);
void fs_learned(struct fs_vnode *vnode, const struct cl_status *status);
/*
 * Wait for other operations on an object, which tell client->asked, with the lock of the tables. 0 after a while or a change; -EINTR, or
 * -ETIMEDOUT after `end`.
 */
int fs_await_others(rxafs_client *client, struct rxafs_request *request, uint64_t end);
/* As cl_object_claim(), waiting; -EINTR, -ETIMEDOUT. */
int fs_claim(struct fs_vnode *vnode, struct rxafs_request *request, unsigned claim);
void fs_unclaim(struct fs_vnode *vnode, unsigned claim);

/* -- find.c ------------------------------------------------------------------------------ */

/* The FID of a name. -ENOENT. *known_ns: how long the answer holds. */
int fs_find(struct fs_vnode *directory, struct rxafs_request *request, const char *name,
	    struct rxafs_fid *fid, uint64_t *known_ns);
/* Whether the server has said that the object is gone. */
bool fs_is_gone(struct fs_vnode *v);
/* Fetch the names. *once: names that are right only for this operation; NULL: they are in the cache. */
int fs_load_names(struct fs_vnode *directory, struct rxafs_request *request,
		  struct cl_names **once);
/* The text of a link. Free it. */
int fs_link_text(struct fs_vnode *vnode, struct rxafs_request *request,
		 const struct cl_status *status, char **text);
/* Whether it is a mount point; *text then is its text, to be freed. A negative errno: not known. */
int fs_is_mount_point(struct fs_vnode *vnode, struct rxafs_request *request,
		      const struct cl_status *status, char **text);
/* The object of a FID that was found in a directory, with its status. */
int fs_object_of(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 const struct rxafs_fid *fid, rxafs_object **object, struct cl_status *status);

/* -- enter.c ----------------------------------------------------------------------------- */

/* What an operation waits for that needs the volume behind a mount point, or a plain object. */
struct rxafs_awaited fs_awaited(rxafs_object *object);
/* Whether the operation must be run again, as one that waits for another cell, that of this object. */
bool fs_must_move(rxafs_object *object, struct rxafs_request *request);
/*
 * The vnode whose contents an object shows: of a mount point, the root of the volume. Not a reference: lives as
 * long as the object.
 */
int fs_enter(rxafs_object *object, struct rxafs_request *request, struct fs_vnode **vnode);
/* The same for a change: -EROFS in read-only volumes and the dynamic root. */
int fs_enter_to_change(rxafs_object *object, struct rxafs_request *request,
		       struct fs_vnode **vnode);
bool fs_mount_text_valid(const char *text);
/* The root directory of a volume: a reference. */
int fs_root_of_volume(rxafs_client *client, struct cl_volume *volume, struct fs_vnode **vnode);

/* -- dynamic.c: the dynamic root ---------------------------------------------------------- */

int fs_dynamic_find(rxafs_object *root, struct rxafs_request *request, const char *name,
		    rxafs_object **object);
/* The n-th name, from 0; false: there are no more. */
bool fs_dynamic_name(rxafs_client *client, uint64_t n, char name[CL_CELL_NAME + 2],
		     struct rxafs_fid *fid, bool *alias);

/* -- content.c ---------------------------------------------------------------------------- */

extern const struct cl_data_ops fs_data_ops;
/* The contents of a file, made at the first use. */
int fs_contents(struct fs_vnode *vnode, struct cl_data_file **data);
struct cl_data_wait fs_wait(rxafs_client *client, const struct rxafs_request *request);

/* -- silly.c: files that are removed while they are open -------------------------------------- */

/*
 * A file is opened: waits for the calls that take its last name away, since the server would free it behind an open file. 0, -EINTR,
 * -ETIMEDOUT or RXAFS_WOULD_WAIT.
 */
int fs_note_open(struct fs_vnode *vnode, struct rxafs_request *request);
/* One that was made just now. */
void fs_note_open_new(struct fs_vnode *vnode);
/* The last one removes the file, if it was hidden. */
void fs_note_close(struct fs_vnode *vnode);
/* Before and after a call that takes the last name of a file away. False: it is open, and must be hidden. */
bool fs_begin_leaving(struct fs_vnode *vnode);
void fs_end_leaving(struct fs_vnode *vnode);
bool fs_is_hidden(struct fs_vnode *vnode);
/* Rename a file in its directory, so that it can be removed later. */
int fs_hide(rxafs_object *directory, struct rxafs_request *request, const char *name,
	    struct fs_vnode *vnode);
/* Whether a name is one that hides a file of this client. */
bool fs_hides(rxafs_client *client, const struct rxafs_fid *directory, const char *name);

/* -- change.c ------------------------------------------------------------------------------ */

/* A change of names in one directory, or of two. */
struct fs_change {
	struct fs_call call;
	rxafs_object *through, *other_through; /* the directories as the caller named them */
	struct fs_vnode *directory,
		*other; /* other: where a name goes to; may be NULL or the same */
	struct cl_edit edit, other_edit;
	AFSFetchStatus status, other_status;
};
int fs_begin_change(struct fs_change *change, rxafs_object *directory, rxafs_object *other,
		    struct rxafs_request *request);
/* `result` is that of the call. Tells the cache, and those who keep names. Returns the result. */
int fs_end_change(struct fs_change *change, int result);
struct cl_edit fs_edit(const char *removed, const char *added, const AFSFid *fid);
int fs_check_name(const char *name);
/* The FID of a name at the server now, after an answer was lost. */
int fs_look_again(struct fs_vnode *directory, const struct rxafs_request *request, const char *name,
		  struct rxafs_fid *fid);
/* Whether a change that was not done may be repeated. Not if the server was slow: it may still do it. */
bool fs_may_repeat(const struct rxafs_request *request, int failed);
int fs_remove_file(rxafs_object *directory, struct rxafs_request *request, const char *name);
int fs_rename(rxafs_object *directory, struct rxafs_request *request, const char *name,
	      rxafs_object *new_directory, const char *new_name, const struct rxafs_fid *fid);

/* -- entries.c ----------------------------------------------------------------------------- */

/* A link with the mode of `set`; with mode 0644 and the text of one, a mount point. */
int fs_make_link(rxafs_object *directory, struct rxafs_request *request, const char *name,
		 const char *text, const struct rxafs_changes *set, rxafs_object **object,
		 struct rxafs_attributes *attributes);

/* -- file.c -------------------------------------------------------------------------------- */

int fs_open_new(rxafs_object *object, struct rxafs_request *request, int flags,
		const struct cl_status *status, rxafs_file **file);

/* -- executor.c ---------------------------------------------------------------------------- */

struct fs_executor *fs_executor_create(void);
void fs_executor_free(struct fs_executor *executor);
/* As one of those that wait for a server: see rxafs_awaited. 0 or -ENOMEM. */
int fs_execute(struct fs_executor *executor, uint32_t cell, uint32_t server, void (*run)(void *arg),
	       void *arg);
/*
 * The same on the thread of the caller, which then counts as one of the executor. -EAGAIN, without a run: the bounds leave no room, or
 * the cell has not answered soon.
 */
int fs_execute_here(struct fs_executor *executor, uint32_t cell, uint32_t server,
		    void (*run)(void *arg), void *arg);

#endif
