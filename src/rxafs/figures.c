/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of a mount, for Prometheus. */
#include "rxafs/figures.h"

#include <stdio.h>
#include <stdlib.h>

#include <rxafs/admin.h>

#include "program/address.h"
#include "rxafs/mount.h"

static void put_counts(FILE *f, const struct mount *mount)
{
	struct rxafs_counts c;

	rxafs_count(mount->client, &c);

	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} rows[] = {
		{"status_hits_total", "counter",
		 "Statuses and names that were used without a question to a server.", c.hits},
		{"status_misses_total", "counter", "Statuses and names that had to be asked for.",
		 c.misses},
		{"breaks_total", "counter", "Promises that servers have broken.", c.breaks},
		{"conflicts_total", "counter",
		 "Changes by others of files with changes of this client.", c.conflicts},
		{"evicted_total", "counter", "Objects that had to make room in memory.", c.evicted},
		{"calls_answered_total", "counter", "Calls to file servers that got an answer.",
		 c.answered},
		{"calls_unanswered_total", "counter", "Calls to file servers without an answer.",
		 c.unanswered},
		{"objects", "gauge", "Objects whose status is in memory.", c.objects},
		{"name_bytes", "gauge", "Memory for the names of directories.", c.name_bytes},
		{"kernel_files", "gauge", "Files of the cache that the kernel reads by itself.",
		 atomic_load(&mount->kernel_files)},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		fprintf(f, "# HELP rxafs_%s %s\n# TYPE rxafs_%s %s\nrxafs_%s %llu\n", rows[i].name,
			rows[i].help, rows[i].name, rows[i].type, rows[i].name,
			(unsigned long long)rows[i].value);
}

/* Names of cells are those of DNS, so nothing in a label needs an escape. */
static void put_server_states(FILE *f, rxafs_client *client)
{
	struct rxafs_server server;
	char text[TOOLS_ADDRESS_TEXT];

	fputs("# HELP rxafs_server_up Whether a file server answers.\n"
	      "# TYPE rxafs_server_up gauge\n",
	      f);
	for (uint32_t n = 1; rxafs_server_at(client, n, &server); n++)
		fprintf(f, "rxafs_server_up{cell=\"%s\",address=\"%s\"} %d\n", server.cell,
			tools_address_text(&server.address, text, sizeof text),
			server.state != RXAFS_SERVER_DOWN);
	fputs("# HELP rxafs_server_round_trip_seconds Measured to a file server; 0: not yet.\n"
	      "# TYPE rxafs_server_round_trip_seconds gauge\n",
	      f);
	for (uint32_t n = 1; rxafs_server_at(client, n, &server); n++)
		fprintf(f, "rxafs_server_round_trip_seconds{cell=\"%s\",address=\"%s\"} %.6f\n",
			server.cell, tools_address_text(&server.address, text, sizeof text),
			server.rtt_us / 1e6);
}

char *figures_text(void *arg)
{
	const struct mount *mount = arg;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	put_counts(f, mount);
	put_server_states(f, mount->client);
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}
