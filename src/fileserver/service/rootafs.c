/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume root.afs, which holds only mount points of the cell: /afs/CELL and /afs/.CELL. */
#include "fileserver/service/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "afs/numbers.h"

#define OBJECTS	     3
#define MOUNT_MODE   0644 /* by which clients recognise a mount point */
#define ANONYMOUS_ID 32766

/*
 * They do not name the cell, so that they work whatever clients call it. The second would name the
 * read-write volume ("%") if there were one.
 */
static const char *const texts[OBJECTS] = {NULL, "#root.cell.", "#root.cell."};
static const AFSFid fids[OBJECTS] = {{FSD_ROOTAFS_ID, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE},
				     {FSD_ROOTAFS_ID, 2, 2},
				     {FSD_ROOTAFS_ID, 4, 3}};

struct fsd_rootafs {
	uint32_t date;
	uint8_t *image;
	size_t image_length;
	AFSFetchStatus status[OBJECTS];
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

static void fill(struct fsd_rootafs *root, int i)
{
	AFSFetchStatus *s = &root->status[i];
	bool directory = i == 0;

	s->InterfaceVersion = 1;
	s->FileType = directory ? AFS_TYPE_DIR : AFS_TYPE_SYMLINK;
	s->LinkCount = directory ? 2 : 1;
	afs_status_set_length(s, directory ? root->image_length : strlen(texts[i]));
	/* Another name of the cell needs another version. */
	afs_status_set_version(s, root->date);
	s->Author = s->Owner = ANONYMOUS_ID;
	s->CallerAccess = s->AnonymousAccess = AFS_RIGHT_READ | AFS_RIGHT_LOOKUP | AFS_RIGHT_LOCK;
	s->UnixModeBits = directory ? 0755 : MOUNT_MODE;
	s->ParentVnode = fids[0].Vnode;
	s->ParentUnique = fids[0].Unique;
	s->ResidencyMask = 1;
	s->ClientModTime = s->ServerModTime = root->date;
}

struct fsd_rootafs *fsd_rootafs_create(const char *cell, uint32_t date)
{
	struct fsd_rootafs *root = calloc(1, sizeof(*root));

	if (!root)
		return NULL;
	root->date = date;
	root->image = make_image(cell, &root->image_length);
	if (!root->image) {
		free(root);
		return NULL;
	}
	for (int i = 0; i < OBJECTS; i++)
		fill(root, i);
	return root;
}

void fsd_rootafs_destroy(struct fsd_rootafs *root)
{
	if (root)
		free(root->image);
	free(root);
}

uint32_t fsd_rootafs_date(const struct fsd_rootafs *root)
{
	return root->date;
}

int fsd_rootafs_get(const struct fsd_rootafs *root, const AFSFid *fid,
		    const AFSFetchStatus **status, const uint8_t **bytes, size_t *size)
{
	for (int i = 0; i < OBJECTS; i++) {
		if (fid->Vnode != fids[i].Vnode || fid->Unique != fids[i].Unique)
			continue;
		*status = &root->status[i];
		*bytes = i == 0 ? root->image : (const uint8_t *)texts[i];
		*size = i == 0 ? root->image_length : strlen(texts[i]);
		return 0;
	}
	return AFS_VNOVNODE;
}
