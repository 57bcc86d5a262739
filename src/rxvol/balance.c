/* SPDX-License-Identifier: BSD-2-Clause */
/* rxvol balance: moves that level the servers of a cell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "program/message.h"
#include "program/report.h"
#include "rxvol/carry.h"
#include "rxvol/plan.h"
#include "rxvol/survey.h"

#define SERVERS_MAX    255
#define PARTITIONS_MAX 1024

struct balance {
	const struct rxvol *rxvol;
	struct cellside *cell;
	struct survey_filter *filter;
	struct move_place place[PARTITIONS_MAX];
	struct plan_partition before[PARTITIONS_MAX], after[PARTITIONS_MAX];
	unsigned partitions;
	struct plan_volume *volume;
	struct move_job *job; /* of each volume */
	size_t count;
};

/* -- what there is -- */

/* A volume with copies beside it frees little space where it is. */
static bool has_clone_here(const volEntries *entries, const volintInfo *volume)
{
	for (uint32_t i = 0; i < entries->len; i++)
		if (entries->val[i].type == AFS_VL_RO && entries->val[i].parentID == volume->volid)
			return true;
	return false;
}

static bool may_be_balanced(struct balance *balance, const volEntries *entries,
			    const volintInfo *info)
{
	return survey_wants(balance->filter, info->name) && info->inUse && info->status == 2 &&
	       !has_clone_here(entries, info);
}

static bool add_balanced_volume(struct balance *balance, const volEntries *entries,
				const volintInfo *info)
{
	size_t at = balance->count;

	if ((at & (at - 1)) == 0) {
		size_t room = at ? at * 2 : 1;
		struct plan_volume *volumes = realloc(balance->volume, room * sizeof(*volumes));
		struct move_job *jobs;

		if (!volumes)
			return false;
		balance->volume = volumes;
		jobs = realloc(balance->job, room * sizeof(*jobs));
		if (!jobs)
			return false;
		balance->job = jobs;
	}
	balance->volume[at] =
		(struct plan_volume){.size_kib = info->size > 0 ? (uint32_t)info->size : 0,
				     .use = info->dayUse > 0 ? (uint32_t)info->dayUse : 0,
				     .at = balance->partitions,
				     .fixed = !may_be_balanced(balance, entries, info)};
	balance->job[at] = (struct move_job){
		.id = info->volid, .rw = info->volid, .from = balance->place[balance->partitions]};
	snprintf(balance->job[at].name, sizeof(balance->job[at].name), "%.31s", info->name);
	balance->before[balance->partitions].use += balance->volume[at].use;
	balance->count++;
	return true;
}

static int read_partition(struct balance *balance, const struct move_place *place)
{
	struct plan_partition *partition = &balance->before[balance->partitions];
	uint64_t room, size;
	volEntries entries;
	bool good = true;

	if (balance->partitions == PARTITIONS_MAX)
		return tools_fail(-1, "more than %d partitions: name some of the servers",
				  PARTITIONS_MAX);
	if (survey_space(balance->cell, place, &room, &size) ||
	    survey_list(balance->cell, place, &entries))
		return -1;
	balance->place[balance->partitions] = *place;
	partition->size_kib = size;
	partition->used_kib = size > room ? size - room : 0;
	for (uint32_t i = 0; i < entries.len && good; i++)
		if (entries.val[i].type == AFS_VL_RW && !entries.val[i].destroyMe)
			good = add_balanced_volume(balance, &entries, &entries.val[i]);
	xdrfree_volEntries(&entries);
	balance->partitions++;
	return good ? 0 : tools_fail(-1, "no memory");
}

static int read_server(struct balance *balance, uint32_t address)
{
	int32_t list[SURVEY_PARTITIONS];
	int count = survey_partitions(balance->cell, address, list);

	for (int i = 0; i < count; i++)
		if (read_partition(balance, &(struct move_place){address, list[i]}))
			return -1;
	return count < 0 ? -1 : 0;
}

/* Those of the command line, or all. 0, or -1 after a message. */
static int read_servers(struct balance *balance, char **words, size_t count)
{
	uint32_t address[SERVERS_MAX];
	char text[CELLSIDE_CODE];
	unsigned found = 0;
	int32_t code, partition;

	if (!count) {
		code = cellside_list_servers(balance->cell, address, SERVERS_MAX, &found);
		if (code)
			return tools_fail(-1, "the servers of the cell: %s",
					  cellside_code_text(text, code));
	}
	for (; found < count && found < SERVERS_MAX; found++)
		if (cellside_parse_place(words[found], &address[found], &partition))
			return -1;
	for (unsigned i = 0; i < found; i++)
		if (read_server(balance, address[i]))
			return -1;
	return 0;
}

/* -- the proposal -- */

static void name_place(char text[2 * CELLSIDE_NAME], const struct move_place *place)
{
	char server[CELLSIDE_NAME], partition[CELLSIDE_NAME];

	snprintf(text, 2 * CELLSIDE_NAME, "%s %s", cellside_address_text(server, place->address),
		 cellside_partition_text(partition, place->partition));
}

static void print_partitions(const struct balance *balance)
{
	char name[2 * CELLSIDE_NAME], size[CARRY_SIZE];

	for (unsigned i = 0; i < balance->partitions; i++) {
		name_place(name, &balance->place[i]);
		printf("%-24s  %10s  %3.0f %% full, %llu accesses; then %3.0f %%, %llu\n", name,
		       carry_size_text(size, balance->before[i].size_kib),
		       100 * plan_fill(&balance->before[i]),
		       (unsigned long long)balance->before[i].use,
		       100 * plan_fill(&balance->after[i]),
		       (unsigned long long)balance->after[i].use);
	}
}

static void print_proposal(const struct balance *balance, const struct carry_item *items,
			   size_t count)
{
	char from[2 * CELLSIDE_NAME], to[2 * CELLSIDE_NAME], size[CARRY_SIZE];

	print_partitions(balance);
	for (size_t i = 0; i < count; i++) {
		name_place(from, &items[i].job.from);
		name_place(to, &items[i].job.to);
		printf("  %10u  %10s  %s: %s -> %s\n", (unsigned)items[i].job.id,
		       carry_size_text(size, items[i].size_kib), items[i].job.name, from, to);
	}
	if (!count)
		printf("no move makes the partitions more equal than %llu %%\n",
		       (unsigned long long)balance->rxvol->move.tolerance);
	else if (!balance->rxvol->move.perform)
		printf("%zu move%s; --do performs %s\n", count, carry_plural(count),
		       count == 1 ? "it" : "them");
	fflush(stdout);
}

static json_t *partitions_json(const struct balance *balance)
{
	char server[CELLSIDE_NAME], partition[CELLSIDE_NAME];
	json_t *list = json_array();

	for (unsigned i = 0; i < balance->partitions; i++)
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:I, s:f, s:f, s:I, s:I}", "server",
				  cellside_address_text(server, balance->place[i].address),
				  "partition",
				  cellside_partition_text(partition, balance->place[i].partition),
				  "size_kib", (json_int_t)balance->before[i].size_kib, "fill",
				  plan_fill(&balance->before[i]), "fill_after",
				  plan_fill(&balance->after[i]), "use",
				  (json_int_t)balance->before[i].use, "use_after",
				  (json_int_t)balance->after[i].use));
	return list;
}

static int print_json_proposal(const struct balance *balance, const struct carry_item *items,
			       size_t count)
{
	json_t *moves = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(moves, carry_json(&items[i]));
	return tools_json_print(
		json_pack("{s:o, s:o}", "partitions", partitions_json(balance), "moves", moves));
}

/* -- the command -- */

/* The planned moves. NULL: no memory. */
static struct carry_item *list_moves(struct balance *balance, size_t *count)
{
	const struct plan_aims aims = {.tolerance = (double)balance->rxvol->move.tolerance / 100,
				       .use = balance->rxvol->move.load,
				       .most = balance->rxvol->move.most};
	struct carry_item *items;
	size_t at = 0;

	memcpy(balance->after, balance->before, sizeof(balance->after));
	*count = plan_moves(balance->after, balance->partitions, balance->volume, balance->count,
			    &aims);
	items = calloc(*count ? *count : 1, sizeof(*items));
	for (size_t i = 0; items && i < balance->count; i++) {
		const struct plan_volume *volume = &balance->volume[i];

		if (volume->moves_to == volume->at)
			continue;
		items[at] =
			(struct carry_item){.job = balance->job[i], .size_kib = volume->size_kib};
		items[at++].job.to = balance->place[volume->moves_to];
	}
	return items;
}

static int propose_moves(struct balance *balance)
{
	const struct rxvol *rxvol = balance->rxvol;
	struct carry_totals totals = {0};
	size_t count;
	struct carry_item *items = list_moves(balance, &count);
	int status = 0;

	if (!items)
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	if (!rxvol->json)
		print_proposal(balance, items, count);
	if (rxvol->move.perform)
		carry_volumes(rxvol, balance->cell, items, count, &totals);
	if (rxvol->json && print_json_proposal(balance, items, count))
		status = TOOLS_EXIT_FAILURE;
	free(items);
	return totals.failed || totals.left ? TOOLS_EXIT_FAILURE : status;
}

int rxvol_balance(struct rxvol *rxvol, char **words, size_t count)
{
	struct balance *balance = calloc(1, sizeof(*balance));
	int status = TOOLS_EXIT_FAILURE;

	if (!balance)
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	balance->rxvol = rxvol;
	balance->filter = survey_filter_create(&rxvol->move.only, &rxvol->move.exclude);
	balance->cell = balance->filter ? carry_open_cell(rxvol) : NULL;
	if (balance->cell && !read_servers(balance, words, count) && balance->partitions &&
	    !survey_filter_check(balance->filter))
		status = propose_moves(balance);
	cellside_close(balance->cell);
	free(balance->filter);
	free(balance->volume);
	free(balance->job);
	free(balance);
	return status;
}
