/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that change the names of a directory. None is repeated after a lost answer (K-094). */
#include <assert.h>

#include "client/net/many.h"
#include "client/net/tries.h"

/*
 * A call with its arguments: a name in a directory, another one, a text, or the modes of a new object; and the places of its
 * results. Each call uses those that it has.
 */
struct name_call {
	const char *operation;
	unsigned function;
	rxw_code (*run)(struct name_call *c, rxw_call *call, struct cl_stamp *stamp);
	const AFSFid *dir, *other;
	const char *name, *text;
	const AFSStoreStatus *how;
	struct cl_made *made; /* NULL: nothing is made, */
	AFSFetchStatus *dir_status,
		*other_status; /* but these directories change; the second may be NULL */
};

/* The server's answer can be used: the object that was made, and the directories. */
static bool is_answer_usable(const struct name_call *c)
{
	if (c->made)
		return c->made->fid.Vnode && afs_status_usable(&c->made->status) &&
		       afs_status_usable(&c->made->dir_status);
	return afs_status_usable(c->dir_status) &&
	       (!c->other_status || afs_status_usable(c->other_status));
}

static int make_name_call(struct name_call *c, struct cl_volume *volume,
			  const struct cl_caller *caller, struct cl_stamp *stamp,
			  struct rxafs_failure *failure)
{
	struct cl_tries t;

	cl_tries_start(&t, volume, caller, c->operation, c->dir, CL_ONCE, stamp, failure);
	while (cl_tries_next(&t)) {
		rxw_code code = c->run(c, t.sent.call, t.stamp);

		if (code == 0 && !is_answer_usable(c))
			cl_tries_reject(&t, "a status is malformed");
		cl_tries_judge(&t, code, c->function);
	}
	return cl_tries_result(&t);
}

/* Begin a call, and wait for its results. */
#define RUN_CALL(name, arguments, results)                                                      \
	static rxw_code run_##name(struct name_call *c, rxw_call *call, struct cl_stamp *stamp) \
	{                                                                                       \
		return StartRXAFS_##name arguments ?: EndRXAFS_##name results;                  \
	}

RUN_CALL(CreateFile, (call, c->dir, c->name, c->how),
	 (call, &c->made->fid, &c->made->status, &c->made->dir_status, &stamp->callback,
	  &stamp->sync))
RUN_CALL(MakeDir, (call, c->dir, c->name, c->how),
	 (call, &c->made->fid, &c->made->status, &c->made->dir_status, &stamp->callback,
	  &stamp->sync))
RUN_CALL(Symlink, (call, c->dir, c->name, c->text, c->how),
	 (call, &c->made->fid, &c->made->status, &c->made->dir_status, &stamp->sync))
RUN_CALL(Link, (call, c->dir, c->name, c->other),
	 (call, &c->made->status, &c->made->dir_status, &stamp->sync))
RUN_CALL(RemoveFile, (call, c->dir, c->name), (call, c->dir_status, &stamp->sync))
RUN_CALL(RemoveDir, (call, c->dir, c->name), (call, c->dir_status, &stamp->sync))
RUN_CALL(Rename, (call, c->dir, c->name, c->other, c->text),
	 (call, c->dir_status, c->other_status, &stamp->sync))

#define NAME_CALL(call) .operation = #call, .function = RXAFS_FN_##call, .run = run_##call

int cl_net_create_file(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		       const char *name, const AFSStoreStatus *how, struct cl_made *made,
		       struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct name_call c = {NAME_CALL(CreateFile), .dir = dir, .name = name, .how = how,
			      .made = made};

	return make_name_call(&c, volume, caller, stamp, failure);
}

/* ---- several files ---- */

/* Files that are made by calls in progress together. */
struct making {
	const AFSFid *dir;
	struct cl_creation *files;
};

static void send_creation(void *arg, unsigned i, rxw_call *call)
{
	const struct making *all = arg;

	/* A failure shows again in the reply. */
	if (StartRXAFS_CreateFile(call, all->dir, all->files[i].name, &all->files[i].how) == 0)
		rxw_call_send_end(call);
}

static rxw_code receive_creation(void *arg, unsigned i, struct cl_tries *t)
{
	struct making *all = arg;
	struct name_call c = {NAME_CALL(CreateFile), .made = &all->files[i].made};
	rxw_code code = EndRXAFS_CreateFile(t->sent.call, &c.made->fid, &c.made->status,
					    &c.made->dir_status, &t->stamp->callback,
					    &t->stamp->sync);

	if (code == 0 && !is_answer_usable(&c))
		cl_tries_reject(t, "a status is malformed");
	return code;
}

static void end_shared_creation(void *arg, unsigned i, int result)
{
	((struct making *)arg)->files[i].result = result;
}

void cl_net_create_many(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
			struct cl_creation *files, unsigned count)
{
	struct making all = {.dir = dir, .files = files};
	const struct cl_flight flight = {.function = RXAFS_FN_CreateFile,
					 .send = send_creation,
					 .receive = receive_creation,
					 .ended = end_shared_creation,
					 .arg = &all};
	struct cl_tries tries[CL_MANY];

	assert(count && count <= CL_MANY);
	for (unsigned i = 0; i < count; i++)
		cl_tries_start(&tries[i], volume, caller, "CreateFile", dir, CL_ONCE,
			       &files[i].stamp, &files[i].failure);
	cl_tries_together(tries, count, &flight);
}

/* ---- others ---- */

int cl_net_make_dir(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		    const char *name, const AFSStoreStatus *how, struct cl_made *made,
		    struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct name_call c = {NAME_CALL(MakeDir), .dir = dir, .name = name, .how = how,
			      .made = made};

	return make_name_call(&c, volume, caller, stamp, failure);
}

int cl_net_make_symlink(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
			const char *name, const char *text, const AFSStoreStatus *how,
			struct cl_made *made, struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct name_call c = {NAME_CALL(Symlink), .dir = dir, .name = name,
			      .text = text,	  .how = how, .made = made};

	return make_name_call(&c, volume, caller, stamp, failure);
}

int cl_net_make_link(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		     const char *name, const AFSFid *existing, struct cl_made *made,
		     struct cl_stamp *stamp, struct rxafs_failure *failure)
{
	struct name_call c = {NAME_CALL(Link), .dir = dir, .name = name, .other = existing,
			      .made = made};

	made->fid = *existing;
	return make_name_call(&c, volume, caller, stamp, failure);
}

int cl_net_remove_file(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		       const char *name, AFSFetchStatus *dir_status, struct cl_stamp *stamp,
		       struct rxafs_failure *failure)
{
	struct name_call c = {NAME_CALL(RemoveFile), .dir = dir, .name = name,
			      .dir_status = dir_status};

	return make_name_call(&c, volume, caller, stamp, failure);
}

int cl_net_remove_dir(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *dir,
		      const char *name, AFSFetchStatus *dir_status, struct cl_stamp *stamp,
		      struct rxafs_failure *failure)
{
	struct name_call c = {NAME_CALL(RemoveDir), .dir = dir, .name = name,
			      .dir_status = dir_status};

	return make_name_call(&c, volume, caller, stamp, failure);
}

int cl_net_rename(struct cl_volume *volume, const struct cl_caller *caller, const AFSFid *old_dir,
		  const char *old_name, const AFSFid *new_dir, const char *new_name,
		  AFSFetchStatus *old_status, AFSFetchStatus *new_status, struct cl_stamp *stamp,
		  struct rxafs_failure *failure)
{
	struct name_call c = {NAME_CALL(Rename),	 .dir = old_dir,   .name = old_name,
			      .other = new_dir,		 .text = new_name, .dir_status = old_status,
			      .other_status = new_status};

	return make_name_call(&c, volume, caller, stamp, failure);
}
