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

#define SAMPLES	     512 /* rows; with the last one half of them go, and the interval is doubled */
#define CHANGES_MOST 200 /* of a path that are listed */

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
	entry = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:[]}", "server", server, "local",
			  local, "device", use->device, "bytes", (json_int_t)0, "repeated",
			  (json_int_t)0, "losses", (json_int_t)0, "state", "", "changes");
	return json_array_append_new(run->paths, entry) < 0 ? NULL : entry;
}

static double ms_of_run(const struct run *run, uint64_t now)
{
	return (double)(now - run->began_ns) / NS_PER_MS;
}

/* ---- changes of states ---- */

/* The name of a change of state, or NULL if there is none. */
static const char *name_change(enum rxafs_path_state before, enum rxafs_path_state now, bool known)
{
	if (before == now)
		return NULL;
	switch (now) {
	case RXAFS_PATH_OUT:
		return "dead";
	case RXAFS_PATH_SUSPECT:
		return "suspect";
	case RXAFS_PATH_PARKED:
		return "parked";
	default:
		return known ? "back" : "joined";
	}
}

/* Several transfers see a path: one that joins another one, or has ended, is no change of the path. */
static void note_path_state(struct run *run, json_t *entry, enum rxafs_path_state before,
			    enum rxafs_path_state now)
{
	const char *last = json_string_value(json_object_get(entry, "state"));
	const char *change = name_change(before, now, *last);
	json_t *changes = json_object_get(entry, "changes");
	double ms = ms_of_run(run, monotonic_ns());

	if (!change || strcmp(change, last) == 0 ||
	    (strcmp(change, "back") == 0 && strcmp(last, "joined") == 0))
		return;
	json_object_set_new(entry, "state", json_string(change));
	if (json_array_size(changes) < CHANGES_MOST)
		json_array_append_new(changes,
				      json_pack("{s:f, s:s}", "ms", ms, "state", change));
	if (!copy_tells_names(run))
		return;
	printf("%.3f s: path %s by %s: %s\n", ms / 1000,
	       json_string_value(json_object_get(entry, "server")),
	       json_string_value(json_object_get(entry, "device")), change);
	fflush(stdout); /* another program may wait for the line */
}

/* ---- bytes ---- */

static void drop_every_second(json_t *rows)
{
	for (size_t i = json_array_size(rows); i-- > 0;)
		if (i % 2)
			json_array_remove(rows, i);
}

/* A row: milliseconds, and the bytes of each path. */
static void add_path_sample(struct run *run, uint64_t now)
{
	json_t *row = json_pack("[f]", ms_of_run(run, now)), *entry;
	size_t i;

	assert(mutex_is_held(&run->list_lock));
	json_array_foreach(run->paths, i, entry)
		json_array_append(row, json_object_get(entry, "bytes"));
	if (!run->path_samples)
		run->path_samples = json_array();
	json_array_append_new(run->path_samples, row);
	if (json_array_size(run->path_samples) >= SAMPLES) {
		drop_every_second(run->path_samples);
		run->sample_ns *= 2;
	}
	run->next_sample = now + run->sample_ns;
}

/* Numbers may fall, if what a path has carried is dropped. */
static void add_difference(json_t *entry, const char *name, uint64_t before, uint64_t now)
{
	uint64_t sum = tools_count_of(entry, name) + (now - before);

	/* A new number, since rows of samples refer to the former one. */
	json_object_set_new(entry, name, json_integer((json_int_t)sum));
}

static struct rxafs_path_use *find_seen_use(struct path_watch *watch,
					    const struct rxafs_path_use *use)
{
	for (unsigned i = 0; i < watch->count; i++) {
		struct rxafs_path_use *seen = &watch->seen[i];

		if (memcmp(&seen->server, &use->server, sizeof(use->server)) == 0 &&
		    memcmp(&seen->local, &use->local, sizeof(use->local)) == 0 &&
		    strcmp(seen->device, use->device) == 0)
			return seen;
	}
	if (watch->count == RXAFS_PATHS)
		return NULL;
	watch->seen[watch->count] = (struct rxafs_path_use){.server = use->server,
							    .local = use->local};
	memcpy(watch->seen[watch->count].device, use->device, sizeof(use->device));
	return &watch->seen[watch->count++];
}

static void add_path_use(struct run *run, struct rxafs_path_use *seen,
			 const struct rxafs_path_use *use, bool states)
{
	json_t *entry = find_path_entry(run, use);

	if (!entry)
		return;
	add_difference(entry, "bytes", seen->bytes, use->bytes);
	add_difference(entry, "repeated", seen->repeated, use->repeated);
	add_difference(entry, "losses", seen->losses, use->losses);
	json_object_set_new(entry, "MBps", json_real((double)use->rate / 1e6));
	json_object_set_new(entry, "rtt_ms", json_real((double)use->rtt_ns / NS_PER_MS));
	if (states)
		note_path_state(run, entry, seen->state, use->state);
	*seen = *use;
}

static void add_path_uses(struct run *run, struct path_watch *watch,
			  const struct rxafs_path_use *uses, unsigned count, bool states)
{
	uint64_t now = monotonic_ns();

	pthread_mutex_lock(&run->list_lock);
	for (unsigned i = 0; i < count; i++) {
		struct rxafs_path_use *seen = find_seen_use(watch, &uses[i]);

		if (seen)
			add_path_use(run, seen, &uses[i], states);
	}
	if (run->set.json && now >= run->next_sample)
		add_path_sample(run, now);
	pthread_mutex_unlock(&run->list_lock);
}

void path_uses_add(struct run *run, struct path_watch *watch, const struct rxafs_path_use *uses,
		   unsigned count)
{
	add_path_uses(run, watch, uses, count, false);
}

void path_uses_see(struct run *run, struct path_watch *watch, const struct rxafs_path_use *uses,
		   unsigned count)
{
	add_path_uses(run, watch, uses, count, true);
}

void path_uses_drop(struct run *run, struct path_watch *watch)
{
	struct path_watch dropped = *watch;

	for (unsigned i = 0; i < dropped.count; i++) {
		dropped.seen[i].repeated += dropped.seen[i].bytes;
		dropped.seen[i].bytes = 0;
	}
	path_uses_add(run, watch, dropped.seen, dropped.count);
	watch->count = 0;
}

/* ---- the report ---- */

/* Whether a path answered at the end: it has carried something, and has not died, or is back. */
static bool was_path_live(json_t *entry)
{
	const char *state = json_string_value(json_object_get(entry, "state"));

	return strcmp(state, "dead") != 0 && (*state || tools_count_of(entry, "bytes"));
}

void path_uses_report(struct run *run, json_t *report)
{
	json_t *entry;
	size_t i;

	pthread_mutex_lock(&run->list_lock);
	json_array_foreach(run->paths, i, entry)
		json_object_set_new(entry, "live", json_boolean(was_path_live(entry)));
	if (json_array_size(run->paths) > (run->set.named_paths.count ? 0 : 1)) {
		if (run->set.json)
			add_path_sample(run, monotonic_ns());
		json_object_set(report, "paths", run->paths);
		json_object_set(report, "path_samples", run->path_samples);
	}
	pthread_mutex_unlock(&run->list_lock);
}

void path_uses_print(const json_t *report)
{
	const json_t *list = json_object_get(report, "paths");
	uint64_t all = 0;
	json_t *entry;
	size_t i;

	json_array_foreach(list, i, entry) all += tools_count_of(entry, "bytes");
	json_array_foreach (list, i, entry) {
		const char *device = json_string_value(json_object_get(entry, "device"));
		unsigned long long bytes = tools_count_of(entry, "bytes");
		char size[32];

		printf("  path      %s%s%s: %s (%.0f %%), RTT %.1f ms; lost %llu times%s\n",
		       json_string_value(json_object_get(entry, "server")), *device ? " by " : "",
		       device, tools_format_size(size, sizeof(size), bytes),
		       all ? 100.0 * (double)bytes / (double)all : 0.0,
		       tools_number_of(entry, "rtt_ms"), tools_count_of(entry, "losses"),
		       json_is_true(json_object_get(entry, "live")) ? ""
		       : *json_string_value(json_object_get(entry, "state"))
			       ? "; did not answer at the end"
			       : "; has not answered");
	}
}
