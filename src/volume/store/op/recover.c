/* SPDX-License-Identifier: BSD-2-Clause */
/* When a store is opened: what an earlier process has begun with whole volumes, and not ended. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "volume/store/cellvol.h"
#include "volume/store/op/op.h"
#include "volume/store/op/whole.h"

/* Nothing needs the contents of a volume that goes. Its clones, if it has any, need those from before. */
static bool is_to_go_whole(const struct volrec *rec)
{
	return rec->cell & VOLUME_TEMPORARY && !volrec_has_clones(rec);
}

static int recover_volume(struct core *core, const struct volrec *rec)
{
	struct volrec kept = *rec;

	assert(!rec->snapshot || rec->type == STORE_RW);
	if (volrec_is_unfinished(rec))
		return admin_remove_hidden(&core->store, rec->id);
	kept.epoch = rec->snapshot;
	if (!(rec->offline & VOLUME_BUSY) || is_to_go_whole(rec))
		return rec->snapshot ? whole_snapshot_end(core, &kept) : 0;
	if (rec->snapshot)
		return revert_volume(core, rec->id, rec->snapshot, true);
	return revert_begun(core, rec);
}

/* Hidden volumes are in no list, so the database is asked. */
struct recovery {
	struct volrec *rec;
	size_t count;
};

static int note_unfinished(void *arg, const struct volrec *volume, bool damaged)
{
	struct recovery *recovery = arg;
	struct volrec *more;
	bool begun = volume->snapshot || volume->offline & VOLUME_BUSY ||
		     volrec_is_unfinished(volume) || volume->cell & VOLUME_TEMPORARY;

	if (damaged || !begun)
		return 0;
	more = realloc(recovery->rec, (recovery->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	recovery->rec = more;
	more[recovery->count++] = *volume;
	return 0;
}

/* The others are served. */
static void report_unfinished(struct core *core, const struct volrec *rec, int result)
{
	report_line(
		&core->report, REPORT_ERROR,
		"%s: volume %u (%s) stays as it is: its restore or revert was interrupted, and could not be "
		"ended (error %d); the next start tries again",
		core->name, rec->id, rec->name, result);
}

/* Clones that are not ready go when no change of their volume is left over. */
static void recover_each(struct core *core, const struct recovery *recovery)
{
	for (size_t i = 0; i < recovery->count; i++) {
		struct volrec *rec = &recovery->rec[i];
		int result = recover_volume(core, rec);

		if (result) {
			report_unfinished(core, rec, result);
			rec->cell &= (uint8_t)~VOLUME_TEMPORARY;
		}
	}
	for (size_t i = 0; i < recovery->count; i++) {
		const struct volrec *rec = &recovery->rec[i];
		int result =
			rec->cell & VOLUME_TEMPORARY ? cellvol_delete(&core->store, rec->id) : 0;

		if (result)
			report_unfinished(core, rec, result);
	}
}

int whole_recover(struct core *core)
{
	struct recovery recovery = {0};
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = db_volumes(db, note_unfinished, &recovery);
	readers_put(core->readers, db);
	recover_each(core, &recovery);
	free(recovery.rec);
	/* That the list of volumes is damaged was reported when it was loaded. */
	return result == -EIO ? 0 : result;
}
