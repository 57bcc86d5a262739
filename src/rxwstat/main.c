/* SPDX-License-Identifier: BSD-2-Clause */
/* rxwstat: what endpoints do now, ours and OpenAFS's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/options.h"
#include "program/message.h"
#include "program/report.h"
#include "rxwstat/stat.h"

#define PORT	   7000
#define TIMEOUT_MS 500
#define MOST	   200

struct settings {
	struct tools_list sockets;
	bool json, live, all;
	uint64_t interval_ms, count, timeout_ms, most;
};

#define SETTING(member) offsetof(struct settings, member)
static const struct tools_option options[] = {
	TOOLS_OPTION("socket", 's', TOOLS_LIST, sockets, "PATH",
		     "metrics socket of a program on this host; may be repeated"),
	TOOLS_OPTION("live", 'l', TOOLS_FLAG, live, NULL,
		     "update a display on the terminal, with rates"),
	TOOLS_OPTION("json", 'j', TOOLS_FLAG, json, NULL, "print JSON"),
	TOOLS_OPTION("all", 'a', TOOLS_FLAG, all, NULL, "also show connections without a call"),
	TOOLS_OPTION("interval", 'i', TOOLS_DURATION, interval_ms, "SECONDS",
		     "interval between updates with --live (2)", .min = 100, .max = 3600000),
	TOOLS_OPTION("count", 'n', TOOLS_UINT, count, "N",
		     "exit from --live after N updates (never)", .max = 1000000),
	TOOLS_OPTION("most", 'm', TOOLS_UINT, most, "N",
		     "connections and peers to query per endpoint (200)", .max = 1000000),
	TOOLS_OPTION("timeout", 't', TOOLS_DURATION, timeout_ms, "SECONDS",
		     "wait for an answer; doubled for each of three retries (0.5)", .min = 1,
		     .max = 60000),
};

static const struct tools_program program = {
	.name = "rxwstat",
	.usage = "usage: rxwstat [option...] HOST[:PORT]...\n"
		 "       rxwstat [option...] --socket PATH\n",
	.summary = "Show the state of Rx endpoints of rxwire and OpenAFS; the default port is "
		   "7000.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.no_tunables = true,
};

static int show_views(const struct stat_source *source, bool json)
{
	char message[512];
	size_t count, answered = 0;
	struct stat_view *views = stat_collect(source, &count, message, sizeof(message));
	json_t *list = json_array();
	int rc = 0;

	if (!views) {
		tools_error("%s", message);
		json_decref(list);
		return TOOLS_EXIT_FAILURE;
	}
	for (size_t i = 0; i < count; i++) {
		if (json)
			json_array_append_new(list, stat_json(&views[i]));
		else
			stat_print(&views[i]);
		answered += *views[i].version || views[i].samples.count;
		if (!*views[i].version && !views[i].samples.count)
			tools_error("%s does not answer; check that an Rx server runs there and "
				    "permits queries from this host",
				    views[i].name);
	}
	stat_forget(views, count);
	if (json)
		rc = tools_json_print(json_pack("{s:O}", "endpoints", list));
	json_decref(list);
	return rc || answered < count ? TOOLS_EXIT_FAILURE : 0;
}

/* The hosts of the command line. 0, or an exit status after a message. */
static int resolve_hosts(char **hosts, size_t count, uint64_t timeout_ms,
			 struct tools_address *addresses)
{
	for (size_t i = 0; i < count; i++) {
		struct tools_address list[TOOLS_ADDRESSES];
		char host[256], message[256];
		uint16_t port = PORT;
		size_t found, at = 0;

		if (tools_split_host(hosts[i], host, sizeof(host), &port, 1) < 0)
			return tools_fail(TOOLS_EXIT_USAGE,
					  "%s: write HOST, HOST:PORT or [IPv6]:PORT", hosts[i]);
		found = tools_resolve_all(host, port, list, message, sizeof(message));
		if (found == 0)
			return tools_fail(TOOLS_EXIT_FAILURE, "%s", message);
		while (found > 1 && at < found && !stat_answers(&list[at], timeout_ms))
			at++;
		addresses[i] = list[at < found ? at : 0];
	}
	return 0;
}

/* Check what the option table cannot express. 0, or -1 after a message. */
static int check_stat_options(const struct settings *set, size_t hosts)
{
	if (!hosts && !set->sockets.count)
		tools_error("no endpoint; give HOST[:PORT] or --socket PATH; see rxwstat --help");
	else if (set->json && set->live)
		tools_error("--json and --live are mutually exclusive");
	else if (!set->live && (tools_place_given("interval") || tools_place_given("count")))
		tools_error("--interval and --count are for --live");
	else
		return 0;
	return -1;
}

static int run_stat(void *target, char **hosts, size_t count)
{
	const struct settings *set = target;
	struct stat_source source = {
		.address_count = count,
		.sockets = set->sockets.items,
		.socket_count = set->sockets.count,
		.timeout_ms = set->timeout_ms,
		.most = set->most,
		.all = set->all,
	};
	struct tools_address *addresses;
	int status;

	if (check_stat_options(set, count) < 0)
		return TOOLS_EXIT_USAGE;
	source.addresses = addresses = calloc(count ? count : 1, sizeof(*addresses));
	if (!addresses)
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	status = resolve_hosts(hosts, count, set->timeout_ms, addresses);
	if (status)
		goto out;
	status = set->live ? stat_live(&source, set->interval_ms, set->count)
			   : show_views(&source, set->json);
out:
	free(addresses);
	return status;
}

int main(int argc, char **argv)
{
	struct settings set = {.interval_ms = 2000, .timeout_ms = TIMEOUT_MS, .most = MOST};
	int status = tools_run_program(&program, &set, argc, argv, run_stat);

	tools_list_free(&set.sockets);
	return tools_finish(status);
}
