/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "afs/address.h"
#include "afscp/pathuse.h"
#include "common/clock.h"
#include "common/held.h"
#include "program/number.h"
#include "program/report.h"

/* The entry of an address, made if there is none. NULL: no memory. */
static json_t *find_path_entry(struct run *run, const char *server)
{
	json_t *entry;
	size_t i;

	assert(mutex_is_held(&run->list_lock));
	json_array_foreach (run->paths, i, entry)
		if (strcmp(json_string_value(json_object_get(entry, "server")), server) == 0)
			return entry;
	if (!run->paths)
		run->paths = json_array();
	entry = json_pack("{s:s, s:I, s:I, s:I}", "server", server, "bytes", (json_int_t)0, "repeated",
			  (json_int_t)0, "losses", (json_int_t)0);
	return json_array_append_new(run->paths, entry) < 0 ? NULL : entry;
}

static void add_count(json_t *entry, const char *name, uint64_t count)
{
	json_object_set_new(entry, name,
			    json_integer((json_int_t)(tools_count_of(entry, name) + count)));
}

void path_uses_add(struct run *run, const struct rxafs_path_use *uses, unsigned count)
{
	if (count < 2)
		return;
	pthread_mutex_lock(&run->list_lock);
	for (unsigned i = 0; i < count; i++) {
		const struct rxafs_path_use *use = &uses[i];
		char text[96]; /* behind the kind, which is empty, and a space */
		json_t *entry = find_path_entry(
			run, afs_server_text(&use->server, "", text, sizeof(text)) + 1);

		if (!entry)
			continue;
		add_count(entry, "bytes", use->bytes);
		add_count(entry, "repeated", use->repeated);
		add_count(entry, "losses", use->losses);
		json_object_set_new(entry, "MBps", json_real((double)use->rate / 1e6));
		json_object_set_new(entry, "rtt_ms", json_real((double)use->rtt_ns / NS_PER_MS));
		json_object_set_new(entry, "live", json_boolean(use->live));
	}
	pthread_mutex_unlock(&run->list_lock);
}

json_t *path_uses_list(struct run *run)
{
	json_t *list;

	pthread_mutex_lock(&run->list_lock);
	list = json_incref(run->paths);
	pthread_mutex_unlock(&run->list_lock);
	return list;
}

void path_uses_print(const json_t *list)
{
	json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry) {
		bool live = json_is_true(json_object_get(entry, "live"));
		char size[32];

		printf("  path      %s: %s, RTT %.1f ms; lost %llu times%s\n",
		       json_string_value(json_object_get(entry, "server")),
		       tools_format_size(size, sizeof(size), tools_count_of(entry, "bytes")),
		       tools_number_of(entry, "rtt_ms"), tools_count_of(entry, "losses"),
		       live ? "" : "; did not answer at the end");
	}
}
