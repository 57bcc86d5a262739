/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids of volumes that the store has given out before it belonged to the cell: the cell must not give them out again, and may have given
 * them to other volumes.
 */
#include <assert.h>
#include <string.h>

#include "afs/numbers.h"
#include "afs/vl.h"
#include "fileserver/member/membership.h"

#define BUMP	 1000 /* ids that one call skips; OpenAFS's server refuses more */
#define BUMPS	 1000
#define VOLUMES	 256 /* at a time */
#define ANY_TYPE (-1)

struct vl_counter {
	uint32_t bump, next;
};

static int32_t ask_counter(rxw_call *call, void *arg)
{
	struct vl_counter *counter = arg;
	int32_t code = StartVL_GetNewVolumeId(call, counter->bump);

	return code ? code : EndVL_GetNewVolumeId(call, &counter->next);
}

struct vl_wanted {
	uint32_t id;
	nvldbentry entry;
};

static int32_t ask_entry(rxw_call *call, void *arg)
{
	struct vl_wanted *wanted = arg;
	int32_t code = StartVL_GetEntryByIDN(call, wanted->id, ANY_TYPE);

	return code ? code : EndVL_GetEntryByIDN(call, &wanted->entry);
}

/* The cell's next id comes behind all that the store has. False: not now. */
static bool skip_own_ids(struct member_database *database, uint32_t highest)
{
	struct vl_counter counter = {0};
	uint32_t first;

	if (member_database_ask(database, ask_counter, &counter))
		return false;
	first = counter.next;
	for (unsigned i = 0; i < BUMPS && counter.next <= highest; i++) {
		uint32_t gap = highest - counter.next;

		counter.bump = gap < BUMP ? gap + 1 : BUMP;
		if (member_database_ask(database, ask_counter, &counter))
			return false;
		counter.next += counter.bump; /* the answer is the first of those that it has given out */
	}
	if (counter.next <= highest)
		fsd_log(RXW_LOG_WARNING,
			"the store has volumes with ids up to %u, which the cell has not given out: it may give them to "
			"others, since its next one is %u",
			highest, counter.next);
	else if (counter.next != first)
		fsd_log(RXW_LOG_INFO, "the cell gives out no ids up to %u, which volumes of the store have",
			highest);
	return true;
}

static bool is_own_site(const struct member_registration *registration, const nvldbentry *entry)
{
	for (int32_t i = 0; i < entry->nServers && i < NMAXNSERVERS; i++)
		for (unsigned k = 0; k < registration->count; k++)
			if ((uint32_t)entry->serverNumber[i] == registration->address[k])
				return true;
	return false;
}

/* False: not now. */
static bool compare_volume(const struct member_registration *registration,
			   struct member_database *database, uint32_t id, unsigned *unlisted)
{
	struct vl_wanted wanted = {.id = id};
	int32_t code = member_database_ask(database, ask_entry, &wanted);

	if (code == AFS_VL_NOENT)
		++*unlisted;
	if (code)
		return code == AFS_VL_NOENT;
	if (!is_own_site(registration, &wanted.entry))
		fsd_log(RXW_LOG_ERROR,
			"volume %u of the store has the id of a volume that the cell has at other servers: clients never "
			"come here for it; dump it, remove it, and restore it under a new id",
			id);
	return true;
}

static bool compare_volumes(const struct member_registration *registration,
			    struct member_database *database, const struct fsd_member_network *network)
{
	uint32_t ids[VOLUMES], after = 0;
	unsigned unlisted = 0;
	size_t count;

	while ((count = network->volumes(network->volumes_arg, after, ids, VOLUMES)) > 0) {
		for (size_t i = 0; i < count; i++)
			if (!compare_volume(registration, database, ids[i], &unlisted))
				return false;
		after = ids[count - 1];
	}
	if (unlisted)
		fsd_log(RXW_LOG_INFO,
			"%u volumes of the store are not in the location service of the cell: vos syncvldb adds them",
			unlisted);
	return true;
}

bool member_compare_ids(const struct member_registration *registration,
			struct member_database *database, const struct fsd_member_network *network)
{
	uint32_t ids[VOLUMES], highest = 0;
	size_t count;

	assert(registration->registered);
	if (!network->volumes)
		return true;
	while ((count = network->volumes(network->volumes_arg, highest, ids, VOLUMES)) > 0)
		highest = ids[count - 1];
	return !highest || (compare_volumes(registration, database, network) &&
			    skip_own_ids(database, highest));
}
