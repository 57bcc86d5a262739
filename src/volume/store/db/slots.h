/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of the maps of large files, which have all slots but the first one. */
#ifndef STORE_SLOTS_H
#define STORE_SLOTS_H

#include "volume/store/db/db.h"

/* For each slot of a map, the row with the greatest epoch up to that asked for counts. An empty one hides older ones. */
struct db_slot_key {
	uint64_t map;
	uint32_t slot, epoch;
};
typedef int (*db_slot_fn)(void *arg, const struct db_slot_key *key, const struct store_slot *slot);
/* Load all slots of a version that is `partial`, as of the epoch. Slots that are damaged or missing are marked so. 0, -ENOMEM, ... */
int db_slots_get(struct db *db, uint32_t epoch, const struct vnode_key *owner,
		 struct version *version);
/* NULL: an empty one. */
int db_slot_put(struct db *db, const struct db_slot_key *key, const struct store_slot *slot);
int db_slot_delete(struct db *db, const struct db_slot_key *key);
/* The rows of a slot, one for each epoch; NULL: damaged. Nonzero stops. */
int db_slot_rows(struct db *db, uint64_t map, uint32_t slot, db_slot_fn each, void *arg);
/*
 * The rows of the slot in the other maps that rows of a vnode have, now or for clones. *damaged: rows of the vnode whose map is
 * not known.
 */
int db_other_map_rows(struct db *db, const struct store_owner *owner, const struct db_slot_key *key,
		      unsigned *damaged, db_slot_fn each, void *arg);
/* All of a map, in the order of (slot, epoch); NULL: damaged. Nonzero stops. */
int db_slots_each(struct db *db, uint64_t map, db_slot_fn each, void *arg);
/* The map with the smallest number above *map. -ENOENT. */
int db_map_next(struct db *db, uint64_t *map);
/*
 * Delete rows from slot `slot` on, as of struct db_hidden, `limit` at most. `each` gets those that go. *more: there are
 * others, and `slot` is where they begin.
 */
struct db_drop {
	uint64_t id, map;
	struct db_hidden hidden;
	uint32_t slot;
};
int db_slots_drop(struct db *db, struct db_drop *drop, unsigned limit, bool *more, db_slot_fn each,
		  void *arg);

/* -- the queue of such rows, which are deleted in steps -- */

int db_drop_put(struct db *db, const struct db_drop *drop); /* id 0: a new one */
int db_drop_first(struct db *db, struct db_drop *drop);	    /* -ENOENT */
int db_drop_delete(struct db *db, uint64_t id);
int db_drop_each(struct db *db, int (*each)(void *arg, const struct db_drop *drop), void *arg);

#endif
