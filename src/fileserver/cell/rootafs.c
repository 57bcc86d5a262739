/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume root.afs, which holds only mount points of the cell: /afs/CELL and /afs/.CELL. */
#include "fileserver/cell/cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/afs-common.h"
#include "afs/dir.h"
#include "afs/numbers.h"

#define OBJECTS	   3
#define MOUNT_MODE 0644 /* by which clients recognise a mount point */
#define RIGHTS	   (STORE_READ | STORE_LOOKUP | STORE_LOCK)
#define KIB	   4

/*
 * They do not name the cell, so that they work whatever clients call it. The second names the
 * read-write volume, if there is one. Both texts are equally long.
 */
static const char *const texts[OBJECTS] = {NULL, "#root.cell.", "#root.cell."};
#define WRITABLE_TEXT "%root.cell."
static const AFSFid fids[OBJECTS] = {{FSD_ROOTAFS_ID, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE},
				     {FSD_ROOTAFS_ID, 2, 2},
				     {FSD_ROOTAFS_ID, 4, 3}};

struct fsd_rootafs {
	struct store store; /* the first member */
	bool writable;	    /* root.cell is a read-write volume */
	uint32_t date;
	uint8_t *image;
	size_t image_length;
	struct store_status status[OBJECTS];
};

/* The image of the directory, or the text of a mount point; owned by the volume. */
struct store_reader {
	const uint8_t *bytes;
	size_t length;
};

static uint8_t *make_image(const char *cell, size_t *length)
{
	char dotted[AFS_DIR_NAME_MAX + 1];
	struct afs_dir dir;

	if (snprintf(dotted, sizeof(dotted), ".%s", cell) >= (int)sizeof(dotted))
		return NULL;
	if (afs_dir_begin(&dir, fids[0].Vnode, fids[0].Unique, fids[0].Vnode, fids[0].Unique))
		return NULL;
	if (afs_dir_add(&dir, cell, strlen(cell), fids[1].Vnode, fids[1].Unique) ||
	    afs_dir_add(&dir, dotted, strlen(dotted), fids[2].Vnode, fids[2].Unique)) {
		afs_dir_destroy(&dir);
		return NULL;
	}
	return afs_dir_take(&dir, length);
}

static void fill_root_status(struct fsd_rootafs *root, int i)
{
	bool directory = i == 0;

	root->status[i] = (struct store_status){
		.fid = {fids[i].Volume, fids[i].Vnode, fids[i].Unique},
		.kind = directory ? STORE_DIR : STORE_SYMLINK,
		.links = directory ? 2 : 1,
		.length = directory ? root->image_length : strlen(texts[i]),
		.version = root->date, /* another name of the cell needs another version */
		.author = STORE_ANONYMOUS,
		.owner = STORE_ANONYMOUS,
		.rights = RIGHTS,
		.anonymous = RIGHTS,
		.mode = directory ? 0755 : MOUNT_MODE,
		.parent = fids[0].Vnode,
		.parent_unique = fids[0].Unique,
		.client_mtime = root->date,
		.server_mtime = root->date,
	};
}

/* -- as a store -- */

static int root_volume(struct store *store, uint32_t id, struct store_volume *volume)
{
	const struct fsd_rootafs *root = (struct fsd_rootafs *)store;

	if (id != FSD_ROOTAFS_ID)
		return STORE_VNOVOL;
	*volume = (struct store_volume){
		.id = FSD_ROOTAFS_ID,
		.rw = FSD_ROOTAFS_ID - 1, /* as in any cell it has an id, although it is missing */
		.ro = FSD_ROOTAFS_ID,
		.type = STORE_RO,
		.name = FSD_ROOTAFS_NAME ".readonly",
		.online = true,
		.used_kib = KIB,
		.files = OBJECTS,
		.created = root->date,
		.copied = root->date,
		.updated = root->date,
		.cloned = root->date,
		.sync = root->date,
	};
	return 0;
}

static int find_root_object(const struct store_fid *fid)
{
	for (int i = 0; i < OBJECTS; i++)
		if (fid->vnode == fids[i].Vnode && fid->unique == fids[i].Unique)
			return i;
	return -1;
}

static int root_status(struct store *store, const struct store_caller *caller,
		       const struct store_fid *fid, struct store_status *status)
{
	int i = find_root_object(fid);

	(void)caller;
	if (i < 0)
		return STORE_VNOVNODE;
	*status = ((struct fsd_rootafs *)store)->status[i];
	return 0;
}

static int root_acl(struct store *store, const struct store_caller *caller,
		    const struct store_fid *fid, struct store_acl *acl, struct store_status *status)
{
	*acl = (struct store_acl){.positive = 1, .entry = {{STORE_ANYUSER, RIGHTS}}};
	return root_status(store, caller, fid, status);
}

static const char *root_text(const struct fsd_rootafs *root, int i)
{
	return i == 2 && root->writable ? WRITABLE_TEXT : texts[i];
}

static int root_read_begin(struct store *store, const struct store_caller *caller,
			   const struct store_fid *fid, struct store_reader **reader,
			   struct store_status *status)
{
	const struct fsd_rootafs *root = (struct fsd_rootafs *)store;
	int rc = root_status(store, caller, fid, status), i = find_root_object(fid);

	if (rc)
		return rc;
	*reader = malloc(sizeof(**reader));
	if (!*reader)
		return STORE_VBUSY;
	(*reader)->bytes = i == 0 ? root->image : (const uint8_t *)root_text(root, i);
	(*reader)->length = status->length;
	return 0;
}

static ssize_t root_read(struct store_reader *reader, const struct iovec *iov, int count,
			 uint64_t offset, unsigned flags)
{
	(void)flags;
	return store_read_memory(reader->bytes, reader->length, iov, count, offset);
}

static int root_read_end(struct store_reader *reader)
{
	free(reader);
	return 0;
}

static const struct store_ops root_ops = {
	.volume = root_volume,
	.status = root_status,
	.acl = root_acl,
	.read_begin = root_read_begin,
	.read = root_read,
	.read_end = root_read_end,
};

struct store *fsd_rootafs_store(struct fsd_rootafs *root)
{
	return &root->store;
}

struct fsd_rootafs *fsd_rootafs_create(const char *cell, bool writable, uint32_t date)
{
	struct fsd_rootafs *root = calloc(1, sizeof(*root));

	if (!root)
		return NULL;
	root->store.ops = &root_ops;
	root->writable = writable;
	root->date = date;
	root->image = make_image(cell, &root->image_length);
	if (!root->image) {
		free(root);
		return NULL;
	}
	for (int i = 0; i < OBJECTS; i++)
		fill_root_status(root, i);
	return root;
}

void fsd_rootafs_destroy(struct fsd_rootafs *root)
{
	if (root)
		free(root->image);
	free(root);
}
