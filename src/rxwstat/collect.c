/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries of all endpoints on the command line, and of the programs whose sockets it names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rxwstat/stat.h"

void stat_forget(struct stat_view *views, size_t count)
{
	for (size_t i = 0; views && i < count; i++) {
		for (size_t k = 0; k < views[i].samples.count; k++) {
			free(views[i].samples.at[k].name);
			free(views[i].samples.at[k].labels);
		}
		free(views[i].samples.at);
		free(views[i].conns);
		free(views[i].peers);
		json_decref(views[i].calls);
	}
	free(views);
}

static struct stat_view *add_view(struct stat_view **views, size_t *count)
{
	struct stat_view *more = realloc(*views, (*count + 1) * sizeof(*more));

	if (!more)
		return NULL;
	*views = more;
	memset(&more[*count], 0, sizeof(*more));
	return &more[(*count)++];
}

/* Copy the samples of this endpoint. */
static bool copy_samples(struct stat_view *v, const struct stat_samples *all)
{
	v->samples.at = calloc(all->count ? all->count : 1, sizeof(*v->samples.at));
	for (size_t i = 0; v->samples.at && i < all->count; i++) {
		struct stat_sample *to = &v->samples.at[v->samples.count];
		char name[TOOLS_ADDRESS_TEXT];

		if (!stat_label(all->at[i].labels, "endpoint", name, sizeof(name)) ||
		    strcmp(name, v->name) != 0)
			continue;
		to->name = strdup(all->at[i].name);
		to->labels = strdup(all->at[i].labels);
		to->value = all->at[i].value;
		v->samples.count++;
		if (!to->name || !to->labels)
			return false;
	}
	return v->samples.at != NULL;
}

/* The address at which this host queries an endpoint with this local address. */
static bool find_query_address(struct stat_view *v)
{
	char host[256], message[256];
	uint16_t port = 0;
	const char *at = host;

	if (tools_split_host(v->name, host, sizeof(host), &port, 1) < 0)
		return false;
	if (!strcmp(host, "0.0.0.0"))
		at = "127.0.0.1";
	else if (!strcmp(host, "::"))
		at = "::1";
	return tools_resolve(at, port, 0, &v->address, message, sizeof(message)) == 0;
}

/* Query each endpoint of the program that serves the socket. */
static bool collect_from_socket(const struct stat_source *source, const char *path,
				struct stat_view **views, size_t *count, char *message, size_t size)
{
	char *text = stat_fetch(path, "/metrics", source->timeout_ms, message, size);
	char *calls, ignored[256];
	struct stat_samples all;
	bool good = true;

	if (!text)
		return false;
	if (!stat_parse(text, &all)) {
		snprintf(message, size, "%s: malformed response", path);
		free(text);
		return false;
	}
	/* Programs with an older library list no calls. */
	calls = stat_fetch(path, "/calls", source->timeout_ms, ignored, sizeof(ignored));
	for (size_t i = 0; i < all.count && good; i++) {
		struct stat_view *v;

		if (strcmp(all.at[i].name, "rxwire_endpoint_info") != 0)
			continue;
		v = add_view(views, count);
		good = v && stat_label(all.at[i].labels, "endpoint", v->name, sizeof(v->name)) &&
		       copy_samples(v, &all);
		if (good && calls)
			stat_take_calls(v, calls);
		if (good && find_query_address(v))
			stat_ask(v, source->timeout_ms, source->most, source->all);
	}
	if (!good)
		snprintf(message, size, "no memory");
	free(all.at);
	free(calls);
	free(text);
	return good;
}

struct stat_view *stat_collect(const struct stat_source *source, size_t *count, char *message,
			       size_t size)
{
	struct stat_view *views = calloc(1, sizeof(*views));
	bool good = views != NULL;

	*count = 0;
	snprintf(message, size, "no memory");
	for (size_t i = 0; good && i < source->address_count; i++) {
		struct stat_view *v = add_view(&views, count);

		good = v != NULL;
		if (!good)
			break;
		v->address = source->addresses[i];
		tools_address_text(&v->address.sa, v->name, sizeof(v->name));
		stat_ask(v, source->timeout_ms, source->most, source->all);
	}
	for (size_t i = 0; good && i < source->socket_count; i++)
		good = collect_from_socket(source, source->sockets[i], &views, count, message,
					   size);
	if (good)
		return views;
	stat_forget(views, *count);
	return NULL;
}
