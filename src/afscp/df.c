/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp df: the space of volumes. */
#include <stdio.h>

#include "program/message.h"
#include "program/number.h"
#include "program/report.h"
#include "afscp/copy.h"

/* The space of the volume, with retries. 0, or -1 after a message. */
static int fetch_space(struct copy *copy, struct afs_space *space)
{
	struct outage outage = {0};
	struct afs_error error;

	copy_fresh(copy);
	while (afs_client_space(copy->client, copy->volume.id, copy->volume.name, space, &error) <
	       0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return -1;
	return 0;
}

static json_t *pack_space(const struct copy *copy, const struct afs_space *space)
{
	json_t *o = json_pack("{s:s, s:I, s:I}", "volume", copy->volume.name, "used_kib",
			      (json_int_t)space->used, "free_kib", (json_int_t)space->free);

	json_object_set_new(o, "quota_kib",
			    space->quota ? json_integer((json_int_t)space->quota) : json_null());
	return o;
}

static void print_space(const struct copy *copy, const struct afs_space *space)
{
	char used[32], quota[32] = "no limit", room[32], share[16] = "";

	tools_format_size(used, sizeof(used), space->used * 1024);
	tools_format_size(room, sizeof(room), space->free * 1024);
	if (space->quota) {
		tools_format_size(quota, sizeof(quota), space->quota * 1024);
		snprintf(share, sizeof(share), " (%.0f %%)",
			 (double)space->used * 100 / (double)space->quota);
	}
	printf("%s: %s used, quota %s%s; %s free on the server's partition\n", copy->volume.name,
	       used, quota, share, room);
}

int copy_df(struct copy *copy)
{
	json_t *list = copy->set->json ? json_array() : NULL;
	bool all = true;

	for (size_t i = 0; i < copy->run->source_count && !copy_interrupted(copy); i++) {
		struct afs_space space;

		if (copy_locate(copy, &copy->run->sources[i]) < 0 || fetch_space(copy, &space) < 0)
			all = false;
		else if (list)
			json_array_append_new(list, pack_space(copy, &space));
		else
			print_space(copy, &space);
	}
	if (list && tools_json_print(json_pack("{s:o}", "volumes", list)) < 0)
		all = false;
	return all && !copy_interrupted(copy) ? 0 : TOOLS_EXIT_FAILURE;
}
