/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories of a sync, local ones and those in AFS, by the same functions. */
#ifndef COPY_FOLDER_H
#define COPY_FOLDER_H

#include <sys/stat.h>

#include <rxafs/object.h>

#include "afscp/run.h"

enum item_kind {
	ITEM_FILE,
	ITEM_FOLDER,
	ITEM_LINK,
	ITEM_MOUNT,  /* a mount point of AFS */
	ITEM_SPECIAL /* a device, pipe or socket */
};

/* What a directory has under a name. */
struct item {
	char *name;
	enum item_kind kind;
	bool unknown; /* its status could not be read, after a message */
	mode_t mode;  /* 0777 */
	uint64_t size;
	int64_t mtime;	      /* as AFS has it: from 1970 to 2106 */
	struct rxafs_fid fid; /* in AFS */
};
struct items {
	struct item *list; /* in the order of strcmp() */
	size_t count;
	bool parts; /* some are unknown */
	void *storage;
};
void items_free(struct items *items);

/* An open directory. */
struct folder {
	const struct folder_ops *ops; /* NULL: it does not exist, in a dry run */
	struct run *run;
	int fd;		      /* local */
	mode_t former;	      /* local: its mode before it was made usable; -1: unchanged */
	rxafs_object *object; /* in AFS: a reference */
};

/* Mode and time; which of them are set. */
struct looks {
	bool set_mode, set_time;
	mode_t mode;
	int64_t mtime;
};

/*
 * `label` names the object in messages. Results other than COPY_GOOD after a message. No link and no mount point is
 * followed but by enter().
 */
struct folder_ops {
	enum copy_result (*list)(struct folder *f, const char *label, struct items *items);
	/* What has a name. *exists: something has. */
	enum copy_result (*look)(struct folder *f, const char *name, const char *label,
				 struct item *item, bool *exists);
	/* A directory in it, or the volume behind a mount point. */
	enum copy_result (*enter)(struct folder *f, const struct item *item, const char *label,
				  struct folder *child);
	enum copy_result (*make)(struct folder *f, const char *name, const char *label,
				 struct folder *child);
	enum copy_result (*read_link)(struct folder *f, const struct item *item, const char *label,
				      char **text);
	/* Takes the place of what has the name, unless that is a directory. */
	enum copy_result (*make_link)(struct folder *f, const char *name, const char *text,
				      int64_t mtime, const char *label);
	/* A file or link; with `folder` an empty directory. One that is gone is no failure. */
	enum copy_result (*remove)(struct folder *f, const char *name, bool folder,
				   const char *label);
	/* Of a file in it; with item NULL: of itself. */
	enum copy_result (*set_looks)(struct folder *f, const struct item *item,
				      const struct looks *looks, const char *label);
	void (*leave)(struct folder *f);
	bool local;
};
extern const struct folder_ops local_folder, afs_folder;

/* Not followed by a name that sorts behind it: 0, or the difference of names. */
int compare_items(const void *a, const void *b);
/* A time as AFS has it: earlier and later ones become the nearest. */
int64_t time_in_afs(time_t seconds);
void item_of_attributes(struct item *item, const struct rxafs_attributes *a);
/* The root of a side. Takes the reference. */
void open_afs_folder(struct run *run, rxafs_object *object, struct folder *folder);
/* 0, or -1 with errno. `path` may be a link. */
int open_local_folder(struct run *run, const char *path, struct folder *folder);
/* Say that `label` cannot be written, by errno. COPY_STOP if the others would fail as well. */
enum copy_result local_failed(struct run *run, const char *label, const char *what);
/* The object of an item in AFS, a reference; NULL after a message. */
rxafs_object *take_item(struct folder *f, const struct item *item, const char *label);

#endif
