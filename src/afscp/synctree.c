/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp sync: trees. A task reads a directory on both sides, compares what is there, and makes tasks of its
 * directories and of files that differ. Directories wait on a stack and are opened by their task, so that few of them are open. Whoever finds too
 * many files waiting copies one of them first.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/stream.h>

#include "afscp/local.h"
#include "afscp/sync.h"
#include "program/message.h"

#define FILES_MOST 1024 /* that wait */
#define FOLDERS_MOST \
	1000000 /* that wait: a malicious server could name more than fit into memory */

/* A directory that is being synchronised. The last of its users gives it its mode and time. */
struct node {
	atomic_uint users; /* its task, tasks of its files, and nodes below it */
	struct node *parent;
	struct folder from, to; /* from.ops NULL: they are not open yet */
	char *path;		/* below the root, "", once it is open */
	char *name;
	struct item source;  /* of that name */
	struct item old;     /* what the destination has, unless it is new */
	bool is_new;	     /* the destination is empty, or does not exist in a dry run */
	atomic_bool changed; /* names of the destination */
	unsigned depth;
	/* Small files that the task of the directory has found; a thread takes them together. */
	struct task *gathered, **last_gathered;
	unsigned gathered_count;
};

/* Work for a thread. */
struct task {
	struct task *next;
	struct node *node;	 /* of a file: its directory; else the directory itself */
	struct item source, old; /* of a file; names are owned */
	bool is_folder, has_old;
};

/* The threads of a sync and their tasks. */
struct crew {
	struct sync *sync;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;
	struct task *folders, *files;
	size_t file_count, folder_count;
	size_t busy; /* threads with a task */
	bool over;
};

enum copy_result sync_judge(struct sync *s, enum copy_result rc)
{
	if (rc != COPY_GOOD)
		atomic_fetch_add(&s->run->failed, 1);
	if (rc == COPY_STOP || atomic_load(&s->run->interrupted))
		atomic_store(&s->stopped, true);
	return rc;
}

/* ---- names ---- */

static char *join_path(const char *path, const char *name)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", path, *path ? "/" : "", name) >= 0)
		return joined;
	tools_error("no memory");
	return NULL;
}

/* Names of an object on both sides for messages, and below the root. */
struct names {
	char *path, *from, *to;
};

static bool name_on_both_sides(struct sync *s, const struct node *n, const char *name,
			       struct names *names)
{
	names->path = join_path(n->path, name);
	names->from = names->path ? copy_join_label(s->from_label, names->path) : NULL;
	names->to = names->from ? copy_join_label(s->to_label, names->path) : NULL;
	return names->to;
}

static void free_both_names(struct names *names)
{
	free(names->path);
	free(names->from);
	free(names->to);
}

/* ---- directories from their beginning to their end ---- */

static void finish_pair_of_folders(struct sync *s, struct node *n)
{
	struct looks looks = {.mode = n->source.mode, .mtime = n->source.mtime};
	char *label;

	looks.set_mode = n->is_new || n->source.mode != n->old.mode;
	looks.set_time = n->is_new || atomic_load(&n->changed) || n->source.mtime != n->old.mtime;
	if (!n->to.ops || atomic_load(&s->stopped) || (!looks.set_mode && !looks.set_time))
		return;
	if (!n->is_new && !atomic_load(&n->changed))
		sync_note(s, SYNC_ADJUST, n->path, true, 0);
	if (s->dry_run)
		return;
	label = *n->path ? copy_join_label(s->to_label, n->path) : strdup(s->to_label);
	sync_judge(s, label ? n->to.ops->set_looks(&n->to, NULL, &looks, label) : COPY_STOP);
	free(label);
}

static void leave_pair(struct sync *s, struct node *n)
{
	while (n) {
		struct node *parent = n->parent;
		unsigned users = atomic_fetch_sub(&n->users, 1);

		assert(users > 0);
		if (users > 1)
			return;
		if (n->from.ops) {
			finish_pair_of_folders(s, n);
			n->from.ops->leave(&n->from);
		}
		if (n->to.ops)
			n->to.ops->leave(&n->to);
		free(n->path);
		free(n->name);
		free(n);
		n = parent;
	}
}

/* A pair that is not open. `old`: what the destination has, or NULL. */
static struct node *new_pair_of_folders(struct node *parent, const struct item *source,
					const struct item *old, const char *name)
{
	struct node *n = calloc(1, sizeof(*n));

	if (n)
		n->name = strdup(name);
	if (!n || !n->name) {
		tools_error("no memory");
		free(n);
		return NULL;
	}
	n->users = 1;
	n->source = *source;
	n->is_new = !old;
	if (old)
		n->old = *old;
	n->source.name = n->old.name = n->name;
	n->from.fd = n->to.fd = -1;
	n->parent = parent;
	n->depth = parent ? parent->depth + 1 : 0;
	if (parent)
		atomic_fetch_add(&parent->users, 1);
	return n;
}

/* ---- tasks ---- */

static bool do_files(struct crew *crew, size_t least);
static bool is_small_task(const struct sync *s, const struct task *task);

static void free_sync_task(struct task *task)
{
	free(task->source.name);
	if (task->has_old)
		free(task->old.name);
	free(task);
}

static void add_task(struct crew *crew, struct task *task)
{
	struct task **list = task->is_folder ? &crew->folders : &crew->files;

	pthread_mutex_lock(&crew->lock);
	task->next = *list;
	*list = task;
	crew->file_count += !task->is_folder;
	crew->folder_count += task->is_folder;
	pthread_cond_signal(&crew->more);
	pthread_mutex_unlock(&crew->lock);
}

/* A file that waits, if too many do; else NULL. With the lock. */
static struct task *pop_file(struct crew *crew, size_t least)
{
	struct task *task = crew->files;

	if (crew->file_count <= least || !task)
		return NULL;
	crew->files = task->next;
	crew->file_count--;
	return task;
}

/* Those that were gathered wait for a thread from now on. */
static void add_gathered(struct crew *crew, struct node *n)
{
	if (!n->gathered)
		return;
	pthread_mutex_lock(&crew->lock);
	*n->last_gathered = crew->files;
	crew->files = n->gathered;
	crew->file_count += n->gathered_count;
	pthread_cond_signal(&crew->more);
	pthread_mutex_unlock(&crew->lock);
	n->gathered = NULL;
	n->gathered_count = 0;
	do_files(crew, FILES_MOST);
}

static void gather_task(struct crew *crew, struct node *n, struct task *task)
{
	if (!n->gathered)
		n->last_gathered = &n->gathered;
	*n->last_gathered = task;
	n->last_gathered = &task->next;
	if (++n->gathered_count == TRANSFER_MANY)
		add_gathered(crew, n);
}

static enum copy_result add_file_task(struct crew *crew, struct node *n, const struct item *source,
				      const struct item *old)
{
	struct task *task = calloc(1, sizeof(*task));

	if (task) {
		*task = (struct task){.node = n, .source = *source, .has_old = old};
		task->source.name = strdup(source->name);
		if (old) {
			task->old = *old;
			task->old.name = strdup(old->name);
		}
	}
	if (!task || !task->source.name || (old && !task->old.name)) {
		tools_error("no memory");
		if (task)
			free_sync_task(task);
		return COPY_STOP;
	}
	atomic_fetch_add(&n->users, 1);
	if (is_small_task(crew->sync, task)) {
		gather_task(crew, n, task);
		return COPY_GOOD;
	}
	add_task(crew, task);
	do_files(crew, FILES_MOST);
	return COPY_GOOD;
}

static enum copy_result add_folder_task(struct crew *crew, struct node *n)
{
	struct task *task = calloc(1, sizeof(*task));

	if (!task) {
		tools_error("no memory");
		leave_pair(crew->sync, n);
		return COPY_STOP;
	}
	*task = (struct task){.node = n, .is_folder = true};
	add_task(crew, task);
	return COPY_GOOD;
}

static bool is_crew_full(struct crew *crew)
{
	bool full;

	pthread_mutex_lock(&crew->lock);
	full = crew->folder_count >= FOLDERS_MOST;
	pthread_mutex_unlock(&crew->lock);
	return full;
}

/* ---- directories in AFS that were seen ---- */

static const char twice[] = "the directory occurs twice, so the volume is damaged";

/* A directory that occurs twice is a failure, of which `why` tells. */
static enum copy_result note_seen(struct sync *s, struct fid_set *set, const struct rxafs_fid *fid,
				  const char *label, const char *why)
{
	int seen;

	pthread_mutex_lock(&s->seen_lock);
	seen = fid_set_add(set, fid);
	pthread_mutex_unlock(&s->seen_lock);
	if (!seen)
		return COPY_GOOD;
	if (seen < 0)
		tools_error("%s: memory is exhausted", label);
	else
		tools_error("%s: skipped: %s", label, why);
	return seen < 0 ? COPY_STOP : COPY_FAILED;
}

/* ---- removals ---- */

/* What is to be removed at the destination. */
struct removal {
	struct sync *sync;
	unsigned depth;
	bool kept; /* something that is excluded is left */
};

static enum copy_result remove_extra(struct removal *r, struct folder *to, const struct item *item,
				     const char *path);

static enum copy_result remove_in_folder(struct removal *r, struct folder *to, const char *path,
					 const char *label)
{
	struct items items;
	enum copy_result all, rc;

	if (r->depth > CLIMB_DEPTH) {
		tools_error("%s: more than %d directories deep", label, CLIMB_DEPTH);
		return COPY_FAILED;
	}
	all = to->ops->list(to, label, &items);
	if (all != COPY_GOOD)
		return all;
	r->depth++;
	for (size_t i = 0; i < items.count && all != COPY_STOP; i++) {
		char *below = join_path(path, items.list[i].name);

		rc = below ? remove_extra(r, to, &items.list[i], below) : COPY_STOP;
		all = rc == COPY_GOOD ? all : rc;
		free(below);
	}
	r->depth--;
	items_free(&items);
	return all;
}

/* Not even a malicious server can cause removals without end. */
static enum copy_result note_emptied(struct sync *s, const struct folder *f, const char *label)
{
	struct rxafs_fid fid;

	if (f->ops->local)
		return COPY_GOOD;
	rxafs_get_fid(f->object, &fid);
	return note_seen(s, &s->emptied, &fid, label, twice);
}

static enum copy_result remove_folder(struct removal *r, struct folder *to, const struct item *item,
				      const char *path, const char *label)
{
	struct folder inside;
	enum copy_result rc = to->ops->enter(to, item, label, &inside);
	bool kept = r->kept;

	if (rc != COPY_GOOD)
		return rc;
	r->kept = false;
	rc = note_emptied(r->sync, &inside, label);
	if (rc == COPY_GOOD)
		rc = remove_in_folder(r, &inside, path, label);
	inside.ops->leave(&inside);
	if (rc == COPY_GOOD && !r->kept) {
		sync_note(r->sync, SYNC_REMOVE, path, true, 0);
		if (!r->sync->dry_run)
			rc = to->ops->remove(to, item->name, true, label);
	}
	r->kept |= kept;
	return rc;
}

/* Something at the destination, with everything in it but what is excluded. */
static enum copy_result remove_extra(struct removal *r, struct folder *to, const struct item *item,
				     const char *path)
{
	bool folder = item->kind == ITEM_FOLDER;
	struct sync *s = r->sync;
	enum copy_result rc = COPY_GOOD;
	char *label;

	if (atomic_load(&s->stopped))
		return COPY_STOP;
	if (item->unknown)
		return COPY_FAILED;
	if (filter_excludes(s->filters, path, folder)) {
		r->kept = true;
		return COPY_GOOD;
	}
	label = copy_join_label(s->to_label, path);
	if (!label)
		return COPY_STOP;
	if (item->kind == ITEM_MOUNT) {
		tools_error("%s: not removed: it is a mount point", label);
		rc = COPY_FAILED;
	} else if (folder) {
		rc = remove_folder(r, to, item, path, label);
	} else {
		sync_note(s, SYNC_REMOVE, path, false, 0);
		if (!s->dry_run)
			rc = to->ops->remove(to, item->name, false, label);
	}
	free(label);
	return rc;
}

/* What the source does not have. Excluded names are left alone. */
static void remove_all_extras(struct sync *s, struct node *n, const struct items *from,
			      const struct items *to)
{
	size_t at = 0;

	for (size_t i = 0; i < to->count && !atomic_load(&s->stopped); i++) {
		const struct item *item = &to->list[i];
		char *path;

		while (at < from->count && strcmp(from->list[at].name, item->name) < 0)
			at++;
		if (at < from->count && !strcmp(from->list[at].name, item->name))
			continue;
		path = join_path(n->path, item->name);
		if (path && !filter_excludes(s->filters, path, item->kind == ITEM_FOLDER)) {
			struct removal r = {.sync = s, .depth = n->depth};

			atomic_store(&n->changed, true);
			sync_judge(s, remove_extra(&r, &n->to, item, path));
		}
		free(path);
	}
}

/* ---- one name ---- */

/* Make room for an object of another kind. */
static enum copy_result clear_place(struct sync *s, struct folder *to, const struct item *source,
				    const struct item *old, const struct names *names,
				    unsigned depth)
{
	bool folder = source->kind == ITEM_FOLDER || source->kind == ITEM_MOUNT;
	struct removal r = {.sync = s, .depth = depth};

	if (old->kind == ITEM_MOUNT) {
		tools_error("%s: a mount point has this name; remove it first", names->to);
		return COPY_FAILED;
	}
	if (old->kind == ITEM_SPECIAL && !s->set->remove) {
		tools_error(
			"%s: a device, pipe or socket has this name; with --delete it is removed",
			names->to);
		return COPY_FAILED;
	}
	if (old->kind != ITEM_FOLDER) {
		if (!folder)
			return COPY_GOOD; /* it is replaced */
		return s->dry_run ? COPY_GOOD : to->ops->remove(to, old->name, false, names->to);
	}
	if (folder)
		return COPY_GOOD;
	if (s->set->remove)
		return remove_extra(&r, to, old, names->path);
	tools_error("%s: a directory has this name; with --delete it is removed", names->to);
	return COPY_FAILED;
}

static bool is_update_older(const struct sync *s, const struct item *source, const struct item *old)
{
	return s->set->update && old->kind == ITEM_FILE && old->mtime > source->mtime;
}

/* Mode or time of a file whose contents are right. */
static enum copy_result adjust_file(struct sync *s, struct folder *to, const struct item *source,
				    const struct item *old, const struct names *names)
{
	struct looks looks = {.set_mode = source->mode != old->mode,
			      .set_time = source->mtime != old->mtime,
			      .mode = source->mode,
			      .mtime = source->mtime};

	if (!looks.set_mode && !looks.set_time)
		return COPY_GOOD;
	sync_note(s, SYNC_ADJUST, names->path, false, 0);
	return s->dry_run ? COPY_GOOD : to->ops->set_looks(to, old, &looks, names->to);
}

static enum copy_result copy_one(struct sync *s, struct folder *from, struct folder *to,
				 const struct item *source, const struct item *old,
				 const char *name, const struct names *names)
{
	struct transfer t = {.from = from,
			     .to = to,
			     .source = source,
			     .old = old,
			     .name = name,
			     .label = names->from,
			     .to_label = names->to,
			     .pace = &s->pace};
	bool same = false;
	enum copy_result rc;

	if (s->set->checksum && old && old->kind == ITEM_FILE && old->size == source->size) {
		rc = transfer_compare(&t, &same);
		if (rc != COPY_GOOD)
			return rc;
		if (same)
			return adjust_file(s, to, source, old, names);
	}
	if (s->dry_run) {
		sync_note(s, SYNC_COPY, names->path, false, source->size);
		return COPY_GOOD;
	}
	rc = transfer_file(&t);
	if (t.vanished)
		atomic_fetch_add(&s->vanished, 1);
	else if (rc == COPY_GOOD)
		sync_note(s, SYNC_COPY, names->path, false, t.copied);
	return rc;
}

static void do_file(struct crew *crew, struct task *task)
{
	struct sync *s = crew->sync;
	struct node *n = task->node;
	struct names names;

	if (!atomic_load(&s->stopped)) {
		bool good = name_on_both_sides(s, n, task->source.name, &names);

		sync_judge(s, good ? copy_one(s, &n->from, &n->to, &task->source,
					      task->has_old ? &task->old : NULL, task->source.name,
					      &names)
				   : COPY_STOP);
		free_both_names(&names);
	}
	free_sync_task(task);
	leave_pair(s, n);
}

/* ---- small files, some at a time ---- */

static bool is_small_task(const struct sync *s, const struct task *task)
{
	const struct node *n = task->node;

	if (task->source.size > TRANSFER_SMALL || !n->to.ops || s->dry_run || s->pace.rate)
		return false;
	if (n->to.ops->local)
		return !n->from.ops->local && task->source.size &&
		       !(s->set->checksum && task->has_old);
	return n->from.ops->local && !task->has_old;
}

/* Further ones of the same directory. With the lock. */
static unsigned pop_more(struct crew *crew, struct task **tasks, unsigned most)
{
	unsigned count = 1;

	while (count < most && crew->files && crew->files->node == tasks[0]->node &&
	       is_small_task(crew->sync, crew->files))
		tasks[count++] = pop_file(crew, 0);
	return count;
}

static void do_small_files(struct crew *crew, struct task **tasks, unsigned count)
{
	struct transfer transfers[TRANSFER_MANY];
	struct names names[TRANSFER_MANY];
	struct sync *s = crew->sync;
	struct node *n = tasks[0]->node;
	bool done[TRANSFER_MANY];
	unsigned made = 0;

	for (; made < count && name_on_both_sides(s, n, tasks[made]->source.name, &names[made]);
	     made++)
		transfers[made] = (struct transfer){.from = &n->from,
						    .to = &n->to,
						    .source = &tasks[made]->source,
						    .name = tasks[made]->source.name,
						    .label = names[made].from,
						    .to_label = names[made].to,
						    .pace = &s->pace};
	if (made)
		transfer_together(transfers, made, done);
	for (unsigned i = 0; i < count; i++) {
		if (i < made && done[i])
			sync_note(s, SYNC_COPY, names[i].path, false, transfers[i].copied);
		if (i < made)
			free_both_names(&names[i]);
		if (i >= made || !done[i]) {
			do_file(crew, tasks[i]);
			continue;
		}
		free_sync_task(tasks[i]);
		leave_pair(s, n);
	}
}

/* Size and time say that a file is the same: the mode may differ. */
static bool looks_same(const struct sync *s, const struct item *source, const struct item *old)
{
	return old && old->kind == ITEM_FILE && old->size == source->size &&
	       old->mtime == source->mtime && !s->set->checksum;
}

static enum copy_result pair_file(struct crew *crew, struct node *n, const struct item *source,
				  const struct item *old, const struct names *names)
{
	struct sync *s = crew->sync;

	atomic_fetch_add(&s->compared, 1);
	if (looks_same(s, source, old))
		return adjust_file(s, &n->to, source, old, names);
	if (old && is_update_older(s, source, old))
		return COPY_GOOD;
	if (!old || old->kind != ITEM_FILE)
		atomic_store(&n->changed, true);
	/* In AFS each file that is replaced changes its directory. */
	if (!n->to.ops || !n->to.ops->local || old)
		atomic_store(&n->changed, true);
	if (old && old->kind == ITEM_FOLDER)
		old = NULL;
	return add_file_task(crew, n, source, old);
}

static enum copy_result adjust_link(struct sync *s, struct folder *to, const struct item *source,
				    const struct item *old, const struct names *names)
{
	const struct looks looks = {.set_time = true, .mtime = source->mtime};

	sync_note(s, SYNC_ADJUST, names->path, false, 0);
	return s->dry_run ? COPY_GOOD : to->ops->set_looks(to, old, &looks, names->to);
}

static enum copy_result pair_link(struct sync *s, struct folder *from, struct folder *to,
				  const struct item *source, const struct item *old,
				  const char *name, const struct names *names, atomic_bool *changed)
{
	char *text = NULL, *present = NULL;
	enum copy_result rc;

	atomic_fetch_add(&s->compared, 1);
	rc = from->ops->read_link(from, source, names->from, &text);
	if (rc == COPY_GOOD && old && old->kind == ITEM_LINK)
		rc = to->ops->read_link(to, old, names->to, &present);
	if (rc == COPY_GOOD && (!present || strcmp(text, present) != 0)) {
		if (!s->dry_run)
			rc = to->ops->make_link(to, name, text, source->mtime, names->to);
		if (changed)
			atomic_store(changed, true);
		if (rc == COPY_GOOD)
			sync_note(s, SYNC_LINK, names->path, false, 0);
	} else if (rc == COPY_GOOD && old->mtime != source->mtime) {
		rc = adjust_link(s, to, source, old, names);
	}
	free(text);
	free(present);
	return rc;
}

static enum copy_result pair_folder(struct crew *crew, struct node *n, const struct item *source,
				    const struct item *old, const struct names *names)
{
	struct node *child;

	if (n->depth >= CLIMB_DEPTH) {
		tools_error("%s: more than %d directories deep", names->from, CLIMB_DEPTH);
		return COPY_FAILED;
	}
	if (old && old->kind == ITEM_MOUNT && !crew->sync->set->cross_mounts) {
		tools_error("%s: skipped: it is a mount point; see --cross-mounts", names->to);
		return COPY_FAILED;
	}
	if (old && old->kind != ITEM_FOLDER && old->kind != ITEM_MOUNT)
		old = NULL;
	if (is_crew_full(crew)) {
		tools_error("%s: more than %d directories wait", names->from, FOLDERS_MOST);
		return COPY_FAILED;
	}
	child = new_pair_of_folders(n, source, old, source->name);
	return child ? add_folder_task(crew, child) : COPY_STOP;
}

/* `old`: what has the name at the destination, or NULL. */
static enum copy_result pair_items(struct crew *crew, struct node *n, const struct item *source,
				   const struct item *old, const struct names *names)
{
	struct sync *s = crew->sync;
	bool folder = source->kind == ITEM_FOLDER || source->kind == ITEM_MOUNT;
	enum copy_result rc = COPY_GOOD;

	if (source->kind == ITEM_SPECIAL) {
		tools_error("%s: skipped: it is neither a file nor a directory nor a link",
			    names->from);
		return COPY_GOOD;
	}
	if (source->kind == ITEM_MOUNT && !s->set->cross_mounts) {
		tools_error("%s: skipped: it is a mount point; see --cross-mounts", names->from);
		return COPY_GOOD;
	}
	if (old && !(old->kind == ITEM_MOUNT && folder))
		rc = clear_place(s, &n->to, source, old, names, n->depth);
	if (rc != COPY_GOOD)
		return rc;
	if (folder)
		return pair_folder(crew, n, source, old, names);
	if (source->kind == ITEM_LINK)
		return pair_link(s, &n->from, &n->to, source, old, source->name, names,
				 &n->changed);
	return pair_file(crew, n, source, old, names);
}

/* ---- one directory ---- */

static void pair_all(struct crew *crew, struct node *n, const struct items *from,
		     const struct items *to)
{
	struct sync *s = crew->sync;
	size_t at = 0;

	for (size_t i = 0; i < from->count && !atomic_load(&s->stopped); i++) {
		const struct item *source = &from->list[i], *old = NULL;
		struct names names;
		bool folder = source->kind == ITEM_FOLDER || source->kind == ITEM_MOUNT;

		while (at < to->count && strcmp(to->list[at].name, source->name) < 0)
			at++;
		if (at < to->count && !strcmp(to->list[at].name, source->name))
			old = &to->list[at];
		if (!name_on_both_sides(s, n, source->name, &names))
			sync_judge(s, COPY_STOP);
		else if (source->unknown || (old && old->unknown))
			sync_judge(s, COPY_FAILED);
		else if (!filter_excludes(s->filters, names.path, folder))
			sync_judge(s, pair_items(crew, n, source, old, &names));
		free_both_names(&names);
	}
	add_gathered(crew, n);
}

/* Whether a directory is one of those above it by way of mount points. */
static bool is_circle(const struct node *n, const struct rxafs_fid *fid)
{
	struct rxafs_fid above;

	for (n = n->parent; n; n = n->parent) {
		rxafs_get_fid(n->from.object, &above);
		if (rxafs_fid_same(fid, &above))
			return true;
	}
	return false;
}

/*
 * Before the contents of a source in AFS are copied; of a mount point after it was listed, since only then it is known
 * what is behind it. *skip: they are not copied, after a message.
 */
static enum copy_result enter_once(struct sync *s, const struct node *n, const char *label,
				   bool *skip)
{
	struct rxafs_fid fid;
	enum copy_result rc;

	rxafs_get_fid(n->from.object, &fid);
	*skip = true;
	if (n->parent && rxafs_fid_same(&fid, &s->target)) {
		tools_error("%s: skipped: it is the destination", label);
		return COPY_GOOD;
	}
	if (n->source.kind == ITEM_MOUNT && is_circle(n, &fid)) {
		tools_error("%s: skipped: it is the same directory as one above it", label);
		return COPY_GOOD;
	}
	rc = note_seen(s, &s->entered, &fid, label,
		       n->source.kind == ITEM_MOUNT
			       ? "the volume has another mount point in this tree"
			       : twice);
	*skip = rc != COPY_GOOD;
	return rc;
}

/* The directory at the destination, made if it is missing. */
static enum copy_result open_target(struct sync *s, struct node *n, const char *label)
{
	struct folder *above = &n->parent->to;

	if (!n->is_new)
		return above->ops->enter(above, &n->old, label, &n->to);
	sync_note(s, SYNC_MAKE, n->path, true, 0);
	atomic_store(&n->parent->changed, true);
	return s->dry_run ? COPY_GOOD : above->ops->make(above, n->name, label, &n->to);
}

/* Both directories, unless they are the roots. */
static enum copy_result open_pair(struct sync *s, struct node *n, const struct names *names,
				  bool *skip)
{
	struct folder *above = n->parent ? &n->parent->from : NULL;
	bool in_afs = !(above ? above : &n->from)->ops->local;
	enum copy_result rc = COPY_GOOD;

	if (above)
		rc = above->ops->enter(above, &n->source, names->from, &n->from);
	if (rc != COPY_GOOD) {
		n->from.ops = NULL;
		return rc;
	}
	if (in_afs && n->source.kind != ITEM_MOUNT)
		rc = enter_once(s, n, names->from, skip);
	if (rc != COPY_GOOD || *skip || !above)
		return rc;
	rc = open_target(s, n, names->to);
	if (rc != COPY_GOOD)
		n->to.ops = NULL;
	return rc;
}

/* Both sides of a directory. *skip: its contents are not copied. */
static enum copy_result list_both(struct sync *s, struct node *n, const struct names *names,
				  struct items *from, struct items *to, bool *skip)
{
	enum copy_result rc = open_pair(s, n, names, skip);

	if (rc == COPY_GOOD && !*skip)
		rc = n->from.ops->list(&n->from, names->from, from);
	if (rc == COPY_GOOD && !*skip && !n->is_new)
		rc = n->to.ops->list(&n->to, names->to, to);
	if (rc == COPY_GOOD && !*skip && !n->from.ops->local && n->source.kind == ITEM_MOUNT)
		rc = enter_once(s, n, names->from, skip);
	return rc;
}

static void do_folder(struct crew *crew, struct node *n)
{
	struct sync *s = crew->sync;
	struct items from = {0}, to = {0};
	struct names names = {0};
	enum copy_result rc = COPY_STOP;
	bool skip = false, named = true;

	if (n->parent)
		named = name_on_both_sides(s, n->parent, n->name, &names);
	else
		names.path = strdup(""), names.from = strdup(s->from_label),
		names.to = strdup(s->to_label);
	n->path = names.path;
	names.path = NULL;
	if (!named || !n->path || !names.from || !names.to)
		sync_judge(s, COPY_STOP);
	else if (!atomic_load(&s->stopped))
		rc = sync_judge(s, list_both(s, n, &names, &from, &to, &skip));
	if (rc == COPY_GOOD && s->set->remove && !skip)
		remove_all_extras(s, n, &from, &to);
	if (rc == COPY_GOOD && !skip)
		pair_all(crew, n, &from, &to);
	items_free(&from);
	items_free(&to);
	free_both_names(&names);
	leave_pair(s, n);
}

/* ---- threads ---- */

/* A file, or some small ones, if more than `least` wait. */
static bool do_files(struct crew *crew, size_t least)
{
	struct task *tasks[TRANSFER_MANY];
	unsigned count = 0;

	pthread_mutex_lock(&crew->lock);
	tasks[0] = pop_file(crew, least);
	if (tasks[0])
		count = is_small_task(crew->sync, tasks[0]) && !atomic_load(&crew->sync->stopped)
				? pop_more(crew, tasks, TRANSFER_MANY)
				: 1;
	pthread_mutex_unlock(&crew->lock);
	if (count == 1)
		do_file(crew, tasks[0]);
	else if (count > 1)
		do_small_files(crew, tasks, count);
	return count > 0;
}

/* Wait for a task. False: there will be none. With the lock. */
static bool wait_for_sync_task(struct crew *crew)
{
	while (!crew->files && !crew->folders && !crew->over)
		pthread_cond_wait(&crew->more, &crew->lock);
	return crew->files || crew->folders;
}

static void do_next_folder(struct crew *crew)
{
	struct task *task;
	struct node *n;

	pthread_mutex_lock(&crew->lock);
	task = crew->folders;
	if (task) {
		crew->folders = task->next;
		crew->folder_count--;
	}
	pthread_mutex_unlock(&crew->lock);
	if (!task)
		return;
	n = task->node;
	free(task);
	do_folder(crew, n);
}

static void *run_tasks(void *arg)
{
	struct crew *crew = arg;

	pthread_mutex_lock(&crew->lock);
	while (wait_for_sync_task(crew)) {
		crew->busy++;
		pthread_mutex_unlock(&crew->lock);
		if (!do_files(crew, 0))
			do_next_folder(crew);
		pthread_mutex_lock(&crew->lock);
		crew->busy--;
		if (!crew->busy && !crew->files && !crew->folders) {
			crew->over = true;
			pthread_cond_broadcast(&crew->more);
		}
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

static void run_crew(struct crew *crew)
{
	size_t wanted = crew->sync->set->jobs - 1, count = 0;
	pthread_t *threads = calloc(wanted + 1, sizeof(*threads));

	while (threads && count < wanted &&
	       pthread_create(&threads[count], NULL, run_tasks, crew) == 0)
		count++;
	run_tasks(crew);
	while (count)
		pthread_join(threads[--count], NULL);
	free(threads);
}

void sync_tree(struct sync *s, struct folder *from, struct folder *to, const struct item *source,
	       const struct item *old)
{
	struct crew crew = {.sync = s};
	struct node *n = new_pair_of_folders(NULL, source, old, "");

	if (!n) {
		sync_judge(s, COPY_STOP);
		from->ops->leave(from);
		if (to->ops)
			to->ops->leave(to);
		return;
	}
	n->from = *from;
	n->to = *to;
	pthread_mutex_init(&crew.lock, NULL);
	pthread_cond_init(&crew.more, NULL);
	if (sync_judge(s, add_folder_task(&crew, n)) == COPY_GOOD)
		run_crew(&crew);
	assert(!crew.busy && !crew.files && !crew.folders);
	pthread_cond_destroy(&crew.more);
	pthread_mutex_destroy(&crew.lock);
}

static enum copy_result copy_alone(struct sync *s, struct folder *from, struct folder *to,
				   const struct item *source, const char *name)
{
	struct names names = {.path = (char *)name, .from = s->from_label, .to = s->to_label};
	struct item old;
	bool exists = false;
	enum copy_result rc = COPY_GOOD;

	if (to->ops)
		rc = to->ops->look(to, name, names.to, &old, &exists);
	if (rc == COPY_GOOD && exists)
		rc = clear_place(s, to, source, &old, &names, 0);
	if (rc != COPY_GOOD)
		return rc;
	if (source->kind == ITEM_LINK)
		return pair_link(s, from, to, source, exists ? &old : NULL, name, &names, NULL);
	atomic_fetch_add(&s->compared, 1);
	if (exists && looks_same(s, source, &old))
		return adjust_file(s, to, source, &old, &names);
	if (exists && is_update_older(s, source, &old))
		return COPY_GOOD;
	return copy_one(s, from, to, source, exists ? &old : NULL, name, &names);
}

void sync_one(struct sync *s, struct folder *from, struct folder *to, const struct item *source,
	      const char *name)
{
	sync_judge(s, copy_alone(s, from, to, source, name));
}
