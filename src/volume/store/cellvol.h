/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Volumes as the volume service of a cell makes and changes them (doc/notes/cell.md): the caller chooses ids, names, types and
 * dates. Several volumes may have one name; the first one is found by it. Results: as in interface.h. Any thread that may wait.
 */
#ifndef STORE_CELLVOL_H
#define STORE_CELLVOL_H

#include "volume/store/store.h"

#define CELLVOL_NAME 32 /* bytes of a name, its NUL included */

struct cellvol {
	uint32_t id, parent, clone, backup, restored;
	enum store_type type;
	char name[STORE_VOLNAME_MAX + 16];
	bool temporary;	  /* not ready: it is not served, and goes when the store is opened */
	bool out;	  /* of service */
	bool busy;	  /* its contents are being replaced */
	bool independent; /* it is no clone of another volume here */
	uint32_t creation, copied, updated, backed_up;
	uint64_t quota_kib, used_kib, files;
	int32_t minimum, owner;
	uint32_t next_unique;
	char message[128];
};
/* STORE_VNOVOL. */
int cellvol_get(struct store *store, uint32_t id, struct cellvol *volume);

/* id, parent (0: the id), type and name. Temporary and off-line. `root`: with an empty root directory. STORE_VVOLEXISTS. */
int cellvol_create(struct store *store, const struct cellvol *volume, bool root);
/* Its clones, if it has any, stay. */
int cellvol_delete(struct store *store, uint32_t id);
/*
 * A clone with id, type (not STORE_RW) and name. Temporary and off-line. Costs no copying. STORE_VVOLEXISTS; -ENOSPC: the volume has
 * too many.
 */
int cellvol_clone(struct store *store, uint32_t source, const struct cellvol *clone);
/*
 * A clone shows what its volume has now; a copy of it that another server has sent becomes such a clone. -EXDEV: it is neither.
 */
int cellvol_reclone(struct store *store, uint32_t source, uint32_t clone);

/*
 * As store_restore_onto(), also for a clone whose volume was removed: it shows what it had until cellvol_restored(), which follows
 * the end of the restore. -EINVAL: the clone of a volume that is here. A read-only copy gets the `date` of its release, by which
 * clients compare sites, unless that is older than what they know.
 */
struct store_restore;
int cellvol_restore_onto(struct store *store, uint32_t id, struct store_restore **restore);
int cellvol_restored(struct store *store, uint32_t id, uint32_t date);

/*
 * A read-only volume takes the place of its read-write one, and goes. `rw`: a temporary volume with its contents, or the one that
 * was removed before it, whose clone it is; that gets the contents again. -EXDEV: the read-write one is here; STORE_VBUSY.
 */
int cellvol_convert(struct store *store, uint32_t ro, uint32_t rw);

enum cellvol_member {
	CELLVOL_NAMED = 1, /* name */
	CELLVOL_TYPE = 2,  /* type; -EINVAL: a clone cannot become a read-write volume */
	CELLVOL_IDS = 4,   /* parent, clone, backup */
	CELLVOL_STATE = 8, /* temporary, out; -EINVAL: it has no root directory yet */
	CELLVOL_CREATION = 16,
	CELLVOL_UPDATED = 32,
	CELLVOL_QUOTA = 64,
	CELLVOL_RESTORED = 128, /* restored, backed_up */
	CELLVOL_OWNED =
		256, /* the database of locations has it, or none has it: it is a volume of a cell */
};
/* `permits`, as in store_volume_online(), is asked if the volume comes on-line. */
int cellvol_set(struct store *store, const struct cellvol *volume, unsigned members,
		bool (*permits)(void *arg, const struct store_acl *root), void *arg);

/*
 * Codes that callers of the file service get who read a volume, or change it; 0: none. Operations that have begun to change it have
 * ended, or fail with the code. Until the next call or the end of the store.
 */
int cellvol_hold(struct store *store, uint32_t id, int for_readers, int for_writers);

/* New ids in a row, which no volume has or keeps. count 0: the last one that was given out. */
int cellvol_ids(struct store *store, unsigned count, uint32_t *first);

/* -- the database of locations: entries by id, in a form that only the caller knows -- */

/* length 0: there is none any more. */
int cellvol_put_location(struct store *store, uint32_t id, const void *entry, size_t length);
int cellvol_locations(struct store *store,
		      int (*each)(void *arg, uint32_t id, const void *entry, size_t length),
		      void *arg);
/* Whether the store was rescued from damaged pages, so that some may be missing; until cellvol_locations_complete(). 0 or a result. */
int cellvol_locations_lost(struct store *store, bool *lost);
int cellvol_locations_complete(struct store *store);

#endif
