/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories in AFS of a sync. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/stream.h>

#include "afscp/folder.h"
#include "afscp/local.h"
#include "afscp/session.h"
#include "program/message.h"

void open_afs_folder(struct run *run, rxafs_object *object, struct folder *folder)
{
	*folder = (struct folder){.ops = &afs_folder, .run = run, .object = object, .fd = -1};
}

/* ---- listing ---- */

#define HELPERS	     8 /* threads for one large directory */
#define BATCHES_EACH 4 /* for which a thread is worth while */

/* The statuses of one directory, which several threads ask for. */
struct asking {
	struct folder *folder;
	const char *label;
	const struct rxafs_names *names;
	struct items *items;
	atomic_size_t next; /* the next name to be asked for */
	atomic_int result;  /* enum copy_result of the first batch that failed */
};

static enum item_kind kind_of_attributes(const struct rxafs_attributes *a)
{
	return a->mount_point		    ? ITEM_MOUNT
	       : a->kind == RXAFS_DIRECTORY ? ITEM_FOLDER
	       : a->kind == RXAFS_SYMLINK   ? ITEM_LINK
					    : ITEM_FILE;
}

void item_of_attributes(struct item *item, const struct rxafs_attributes *a)
{
	item->kind = kind_of_attributes(a);
	item->mode = a->stat.st_mode & 0777;
	item->size = (uint64_t)a->stat.st_size;
	item->mtime = a->stat.st_mtim.tv_sec;
	item->fid = a->fid;
}

static enum copy_result look_afs(struct folder *f, const char *name, const char *label,
				 struct item *item, bool *exists)
{
	struct attempt t = attempt_begin(f->run, CHANGE_NONE, label);
	struct rxafs_attributes a;
	rxafs_object *object;

	*item = (struct item){.name = (char *)name};
	while (attempt_again_unless(&t, rxafs_lookup(f->object, &t.request, name, &object, &a),
				    -ENOENT))
		;
	*exists = t.value == 0;
	if (t.value == -ENOENT)
		return COPY_GOOD;
	if (t.value)
		return attempt_result(&t);
	item_of_attributes(item, &a);
	rxafs_release(object);
	return COPY_GOOD;
}

static void report_item(const struct asking *k, const char *name, int number)
{
	char *label = copy_join_label(k->label, name);

	if (label)
		session_complain(k->folder->run, label, number);
	free(label);
}

static void fill_item(struct asking *k, struct item *item, const struct rxafs_attributes *a,
		      int result)
{
	/* It was removed since its name was read. */
	if (result == -ENOENT) {
		item->name = NULL;
		return;
	}
	if (result) {
		report_item(k, item->name, -result);
		item->unknown = true;
		return;
	}
	item_of_attributes(item, a);
	/* That of the mount point itself. */
	item->fid = k->names->list[item - k->items->list].fid;
}

static enum copy_result ask_batch(struct asking *k, size_t at, unsigned count)
{
	struct run *run = k->folder->run;
	struct rxafs_attributes attributes[RXAFS_BATCH];
	struct attempt t = attempt_begin(run, CHANGE_NONE, k->label);
	int results[RXAFS_BATCH];

	while (attempt_again(&t, rxafs_fetch_attributes(k->folder->object, &t.request,
							&k->names->list[at], count, attributes,
							results)))
		;
	for (unsigned i = 0; t.value == 0 && i < count; i++)
		fill_item(k, &k->items->list[at + i], &attributes[i], results[i]);
	return attempt_result(&t);
}

static void *ask_batches(void *arg)
{
	struct asking *k = arg;
	size_t at;

	while (atomic_load(&k->result) == COPY_GOOD &&
	       (at = atomic_fetch_add(&k->next, RXAFS_BATCH)) < k->names->count) {
		size_t left = k->names->count - at;
		int good = COPY_GOOD,
		    rc = ask_batch(k, at, left < RXAFS_BATCH ? (unsigned)left : RXAFS_BATCH);

		if (rc != COPY_GOOD)
			atomic_compare_exchange_strong(&k->result, &good, rc);
	}
	return NULL;
}

/* All statuses: of a large directory with some calls at a time. */
static enum copy_result ask_statuses(struct folder *f, const char *label,
				     const struct rxafs_names *names, struct items *items)
{
	struct asking k = {.folder = f, .label = label, .names = names, .items = items};
	size_t wanted = names->count / RXAFS_BATCH / BATCHES_EACH, count = 0;
	pthread_t threads[HELPERS];

	while (count < HELPERS && count < wanted &&
	       pthread_create(&threads[count], NULL, ask_batches, &k) == 0)
		count++;
	ask_batches(&k);
	while (count)
		pthread_join(threads[--count], NULL);
	return (enum copy_result)atomic_load(&k.result);
}

/* Those that are gone were given no name. */
static void drop_gone_items(struct items *items)
{
	size_t kept = 0;

	for (size_t i = 0; i < items->count; i++)
		if (items->list[i].name)
			items->list[kept++] = items->list[i];
	items->count = kept;
}

static enum copy_result list_afs(struct folder *f, const char *label, struct items *items)
{
	struct attempt t = attempt_begin(f->run, CHANGE_NONE, label);
	struct rxafs_names names;
	enum copy_result rc;

	*items = (struct items){0};
	while (attempt_again(&t, rxafs_list_names(f->object, &t.request, &names)))
		;
	if (t.value)
		return attempt_result(&t);
	items->list = calloc(names.count + 1, sizeof(*items->list));
	if (!items->list) {
		rxafs_free_names(&names);
		tools_error("no memory");
		return COPY_STOP;
	}
	items->count = names.count;
	for (size_t i = 0; i < names.count; i++)
		items->list[i] =
			(struct item){.name = (char *)names.list[i].text, .fid = names.list[i].fid};
	rc = ask_statuses(f, label, &names, items);
	/* The texts go on with the items. */
	items->storage = names.storage;
	names.storage = NULL;
	rxafs_free_names(&names);
	if (rc != COPY_GOOD) {
		items_free(items);
		return rc;
	}
	drop_gone_items(items);
	qsort(items->list, items->count, sizeof(*items->list), compare_items);
	return COPY_GOOD;
}

/* ---- directories ---- */

static enum rxafs_kind kind_of_item(const struct item *item)
{
	return item->kind == ITEM_FILE	 ? RXAFS_FILE
	       : item->kind == ITEM_LINK ? RXAFS_SYMLINK
					 : RXAFS_DIRECTORY;
}

rxafs_object *take_item(struct folder *f, const struct item *item, const char *label)
{
	struct rxafs_name name = {.text = item->name, .fid = item->fid};
	struct rxafs_attributes a = {.fid = item->fid,
				     .kind = kind_of_item(item),
				     .mount_point = item->kind == ITEM_MOUNT};
	struct attempt t = attempt_begin(f->run, CHANGE_NONE, label);
	rxafs_object *object;

	while (attempt_again(&t, rxafs_take_object(f->object, &t.request, &name, &a, &object)))
		;
	return t.value ? NULL : object;
}

static enum copy_result enter_afs(struct folder *f, const struct item *item, const char *label,
				  struct folder *child)
{
	rxafs_object *object = take_item(f, item, label);

	if (!object)
		return atomic_load(&f->run->interrupted) ? COPY_STOP : COPY_FAILED;
	open_afs_folder(f->run, object, child);
	return COPY_GOOD;
}

/* A try whose answer was lost has made the directory, or somebody else. */
static enum copy_result enter_made(struct folder *f, const char *name, const char *label,
				   struct folder *child)
{
	struct item item;
	bool exists;
	enum copy_result rc = look_afs(f, name, label, &item, &exists);

	if (rc != COPY_GOOD)
		return rc;
	if (exists && item.kind == ITEM_FOLDER)
		return enter_afs(f, &item, label, child);
	session_complain(f->run, label, EEXIST);
	return COPY_FAILED;
}

static enum copy_result make_afs(struct folder *f, const char *name, const char *label,
				 struct folder *child)
{
	struct attempt t = attempt_begin(f->run, CHANGE_MKDIR, label);
	struct rxafs_attributes a;
	rxafs_object *object;

	while (attempt_again_unless(&t, rxafs_mkdir(f->object, &t.request, name, 0777, &object, &a),
				    -EEXIST))
		;
	if (t.value == -EEXIST)
		return enter_made(f, name, label, child);
	if (t.value == 0)
		open_afs_folder(f->run, object, child);
	return attempt_result(&t);
}

static void leave_afs(struct folder *f)
{
	rxafs_release(f->object);
	f->ops = NULL;
}

/* ---- links and removals ---- */

static enum copy_result read_afs_link(struct folder *f, const struct item *item, const char *label,
				      char **text)
{
	rxafs_object *object = take_item(f, item, label);
	struct attempt t;

	if (!object)
		return COPY_FAILED;
	t = attempt_begin(f->run, CHANGE_NONE, label);
	while (attempt_again(&t, rxafs_readlink(object, &t.request, text)))
		;
	rxafs_release(object);
	return attempt_result(&t);
}

static enum copy_result remove_afs(struct folder *f, const char *name, bool folder,
				   const char *label)
{
	struct attempt t = attempt_begin(f->run, CHANGE_REMOVE, label);

	while (attempt_again_unless(&t,
				    folder ? rxafs_rmdir(f->object, &t.request, name)
					   : rxafs_unlink(f->object, &t.request, name),
				    -ENOENT))
		;
	return t.value == -ENOENT ? COPY_GOOD : attempt_result(&t);
}

static enum copy_result rename_in_folder(struct folder *f, const char *from, const char *to,
					 const char *label)
{
	struct attempt t = attempt_begin(f->run, CHANGE_RENAME, label);

	/* Nobody else takes this name: if it is gone, a try whose answer was lost has succeeded. */
	while (attempt_again_unless(&t,
				    rxafs_rename(f->object, &t.request, from, f->object, to, false),
				    t.unknown ? -ENOENT : 1))
		;
	return t.value == -ENOENT && t.unknown ? COPY_GOOD : attempt_result(&t);
}

/* A link of a name that is free; -EEXIST without a message, if it `may_exist`. */
static struct attempt make_free_link(struct folder *f, const char *name, const char *text,
				     int64_t mtime, const char *label, bool may_exist)
{
	const struct rxafs_changes set = {.set = RXAFS_SET_TIME, .time = mtime};
	struct attempt t = attempt_begin(f->run, CHANGE_SYMLINK, label);
	struct rxafs_attributes a;
	rxafs_object *object;

	while (attempt_again_unless(
		&t, rxafs_make_link(f->object, &t.request, name, text, &set, &object, &a),
		may_exist ? -EEXIST : 1))
		;
	if (t.value == 0)
		rxafs_release(object);
	return t;
}

static enum copy_result make_afs_link(struct folder *f, const char *name, const char *text,
				      int64_t mtime, const char *label)
{
	struct attempt t = make_free_link(f, name, text, mtime, label, true);
	char temp[224];
	enum copy_result rc;

	if (t.value != -EEXIST)
		return attempt_result(&t);
	sink_temp_name(temp, sizeof(temp), name);
	t = make_free_link(f, temp, text, mtime, label, false);
	if (t.value)
		return attempt_result(&t);
	rc = rename_in_folder(f, temp, name, label);
	if (rc != COPY_GOOD)
		remove_afs(f, temp, false, label);
	return rc;
}

static enum copy_result set_afs(struct folder *f, const struct item *item,
				const struct looks *looks, const char *label)
{
	struct rxafs_changes changes = {.set = (looks->set_mode ? RXAFS_SET_MODE : 0) |
					       (looks->set_time ? RXAFS_SET_TIME : 0),
					.mode = looks->mode,
					.time = looks->mtime};
	rxafs_object *object = item ? take_item(f, item, label) : rxafs_hold(f->object);
	struct rxafs_attributes a;
	struct attempt t;

	if (!object)
		return COPY_FAILED;
	t = attempt_begin(f->run, CHANGE_STATUS, label);
	while (attempt_again(&t, rxafs_setattr(object, &t.request, &changes, &a)))
		;
	rxafs_release(object);
	return attempt_result(&t);
}

const struct folder_ops afs_folder = {
	.list = list_afs,
	.look = look_afs,
	.enter = enter_afs,
	.make = make_afs,
	.read_link = read_afs_link,
	.make_link = make_afs_link,
	.remove = remove_afs,
	.set_looks = set_afs,
	.leave = leave_afs,
};
