/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Own changes that got no answer. They may be carried out later, without a break for their own client, so no promise of the object counts
 * meanwhile. A change of a name is an exception while the directory shows what it was to lead to: then it was carried out, which
 * happens once, or would be refused.
 */
#include "client/cache/steps.h"

#include <stdlib.h>
#include <string.h>

/* So long a change without an answer may be carried out. */
#define LATE_CHANGE_NS 120000000000ull
#define NAMED_MOST     16u /* doubts of an object; further ones concern all of it */

struct cache_doubt {
	struct cache_doubt *next;
	uint64_t until;
	bool added;    /* the change adds the name; else it removes it */
	size_t length; /* 0: the change is not one of a name */
	char name[];
};

/* True: the change has no effect any more as long as the directory has this version. */
static bool is_outcome_seen(const struct cl_object *object, const struct cache_doubt *doubt,
			    uint64_t version)
{
	const struct cache_listing *listing = object->listing;
	uint32_t vnode, unique;

	return doubt->length && listing && listing->version == version &&
	       cl_names_find(listing->names, doubt->name, doubt->length, &vnode, &unique) ==
		       doubt->added;
}

bool cache_is_doubted(const struct cl_object *object, uint64_t version, uint64_t time)
{
	for (const struct cache_doubt *doubt = object->doubts; doubt; doubt = doubt->next)
		if (doubt->until > time && !is_outcome_seen(object, doubt, version))
			return true;
	return false;
}

uint64_t cache_doubted_until(const struct cl_object *object)
{
	uint64_t until = 0;

	for (const struct cache_doubt *doubt = object->doubts; doubt; doubt = doubt->next)
		if (until < doubt->until)
			until = doubt->until;
	return until;
}

static unsigned drop_doubts(struct cl_object *object, uint64_t until)
{
	unsigned left = 0;

	for (struct cache_doubt **at = &object->doubts, *doubt; (doubt = *at);) {
		if (doubt->until > until) {
			left++;
			at = &doubt->next;
			continue;
		}
		*at = doubt->next;
		free(doubt);
	}
	return left;
}

void cache_free_doubts(struct cl_object *object)
{
	drop_doubts(object, UINT64_MAX);
}

/* Without memory for it: until then, all that share the trace are asked for each time. */
static void distrust_trace(struct cl_object *object, uint64_t until)
{
	struct rxafs_fid fid = cl_object_fid(object);
	struct cl_cache *cache = object->volume->cache;

	cache_trace(cache, cache_hash_fid(cache, &fid))->distrust_until = until;
}

static struct cache_doubt *find_unnamed(const struct cl_object *object)
{
	struct cache_doubt *doubt = object->doubts;

	while (doubt && doubt->length)
		doubt = doubt->next;
	return doubt;
}

void cache_doubt_object(struct cl_object *object, const struct cl_edit *edit, uint64_t now)
{
	bool removes = edit && edit->removed;
	const char *name = removes ? edit->removed : edit ? edit->added : NULL;
	size_t length = removes ? edit->removed_length : name ? edit->added_length : 0;
	struct cache_doubt *doubt;

	if (drop_doubts(object, now) >= NAMED_MOST)
		length = 0;
	doubt = length ? NULL : find_unnamed(object);
	if (doubt) {
		doubt->until = now + LATE_CHANGE_NS;
		return;
	}
	doubt = malloc(sizeof(*doubt) + length);
	if (!doubt) {
		distrust_trace(object, now + LATE_CHANGE_NS);
		return;
	}
	*doubt = (struct cache_doubt){.next = object->doubts,
				      .until = now + LATE_CHANGE_NS,
				      .added = !removes,
				      .length = length};
	if (length)
		memcpy(doubt->name, name, length);
	object->doubts = doubt;
}
