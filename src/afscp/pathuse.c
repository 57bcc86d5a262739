/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "afs/address.h"
#include "afscp/pathuse.h"
#include "common/clock.h"
#include "common/held.h"
#include "program/number.h"
#include "program/report.h"

static bool has_text(json_t *entry, const char *name, const char *text)
{
	return strcmp(json_string_value(json_object_get(entry, name)), text) == 0;
}

/* The address of a path at this machine; "" = unknown. */
static const char *local_text(const struct rxafs_path_use *use, char text[INET6_ADDRSTRLEN])
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	memcpy(&four, &use->local, sizeof(four));
	memcpy(&six, &use->local, sizeof(six));
	text[0] = '\0';
	if (use->local.ss_family == AF_INET)
		inet_ntop(AF_INET, &four.sin_addr, text, INET6_ADDRSTRLEN);
	else if (use->local.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &six.sin6_addr, text, INET6_ADDRSTRLEN);
	return text;
}

/* The entry of a path, made if there is none. NULL: no memory. */
static json_t *find_path_entry(struct run *run, const struct rxafs_path_use *use)
{
	char text[96], near[INET6_ADDRSTRLEN]; /* behind the kind, which is empty, and a space: */
	const char *server = afs_server_text(&use->server, "", text, sizeof(text)) + 1;
	const char *local = local_text(use, near);
	json_t *entry;
	size_t i;

	assert(mutex_is_held(&run->list_lock));
	json_array_foreach(run->paths, i,
			   entry) if (has_text(entry, "server", server) &&
				      has_text(entry, "local", local) &&
				      has_text(entry, "device", use->device)) return entry;
	if (!run->paths)
		run->paths = json_array();
	entry = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "server", server, "local", local,
			  "device", use->device, "bytes", (json_int_t)0, "repeated", (json_int_t)0,
			  "losses", (json_int_t)0);
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
		json_t *entry = find_path_entry(run, use);

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
	uint64_t all = 0;
	json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry) all += tools_count_of(entry, "bytes");
	json_array_foreach (list, i, entry) {
		bool live = json_is_true(json_object_get(entry, "live"));
		const char *device = json_string_value(json_object_get(entry, "device"));
		unsigned long long bytes = tools_count_of(entry, "bytes");
		char size[32];

		printf("  path      %s%s%s: %s (%.0f %%), RTT %.1f ms; lost %llu times%s\n",
		       json_string_value(json_object_get(entry, "server")), *device ? " by " : "",
		       device, tools_format_size(size, sizeof(size), bytes),
		       all ? 100.0 * (double)bytes / (double)all : 0.0,
		       tools_number_of(entry, "rtt_ms"), tools_count_of(entry, "losses"),
		       live ? "" : "; did not answer at the end");
	}
}
