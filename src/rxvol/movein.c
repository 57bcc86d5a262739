/* SPDX-License-Identifier: BSD-2-Clause */
/* rxvol move-in: the volumes of a server move to another one; what was found before, and what is left. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "program/number.h"
#include "program/report.h"
#include "rxvol/carry.h"
#include "rxvol/survey.h"

#define USUAL_RATE (50 * 1024) /* KiB/s, for the estimate before anything is measured */

/* -- the report before -- */

static void print_surveyed_volume(const struct survey_volume *volume)
{
	char size[CARRY_SIZE];

	printf("  %10u  %s  %10s  %9u files  %s%s\n", (unsigned)volume->job.id,
	       survey_type(&volume->job), carry_size_text(size, volume->size_kib),
	       (unsigned)volume->files, volume->job.name,
	       volume->begun ? "  (begun by an earlier run)" : "");
}

static void print_survey(const struct survey *survey)
{
	char size[CARRY_SIZE], room[CARRY_SIZE], time[32];
	bool others = survey->moving < survey->count;

	for (size_t i = 0; i < survey->count; i++)
		if (!*survey->volume[i].why)
			print_surveyed_volume(&survey->volume[i]);
	if (others)
		printf("not moved:\n");
	for (size_t i = 0; others && i < survey->count; i++)
		if (*survey->volume[i].why) {
			print_surveyed_volume(&survey->volume[i]);
			printf("%29s%s\n", "", survey->volume[i].why);
		}
	if (survey->backups)
		printf("%zu backup volume%s not copied; \"vos backupsys\" makes %s again\n",
		       survey->backups, survey->backups == 1 ? " is" : "s are",
		       survey->backups == 1 ? "it" : "them");
	if (survey->own_root)
		printf("root.afs.readonly does not move: rxfsd makes it itself\n");
	printf("%zu volume%s, %s; the target has room for %s; about %s at 50 MiB/s\n",
	       survey->moving, survey->moving == 1 ? " moves" : "s move",
	       carry_size_text(size, survey->moving_kib), carry_size_text(room, survey->free_kib),
	       tools_format_time(time, sizeof(time),
				 (survey->moving_kib / USUAL_RATE + survey->moving + 1) *
					 1000000000));
	fflush(stdout);
}

static json_t *volume_report(const struct survey_volume *volume)
{
	return json_pack("{s:s, s:I, s:s, s:I, s:I, s:b, s:s}", "name", volume->job.name, "id",
			 (json_int_t)volume->job.id, "type", survey_type(&volume->job), "size_kib",
			 (json_int_t)volume->size_kib, "files", (json_int_t)volume->files, "begun",
			 volume->begun, "why_not", volume->why);
}

static json_t *survey_report(const struct survey *survey)
{
	json_t *list = json_array();

	for (size_t i = 0; i < survey->count; i++)
		json_array_append_new(list, volume_report(&survey->volume[i]));
	return list;
}

/* -- the report after -- */

/* What the source still has. Its number; -1 after a message. */
static long list_leftovers(const struct rxvol *rxvol, struct cellside *cell,
			   const struct survey_options *options, json_t *list)
{
	int32_t partitions[SURVEY_PARTITIONS] = {options->from.partition};
	int count = options->from.partition >= 0
			    ? 1
			    : survey_partitions(cell, options->from.address, partitions);
	long found = 0;

	if (count < 0)
		return -1;
	for (int i = 0; i < count; i++) {
		const struct move_place place = {options->from.address, partitions[i]};
		volEntries entries;

		if (survey_list(cell, &place, &entries))
			return -1;
		for (uint32_t at = 0; at < entries.len; at++) {
			if (!*entries.val[at].name)
				snprintf(entries.val[at].name, sizeof(entries.val[at].name), "%u",
					 (unsigned)entries.val[at].volid);
			found++;
			json_array_append_new(list, json_string(entries.val[at].name));
			if (!rxvol->json)
				printf("%s%s", found > 1 ? ", " : "left at the source: ",
				       entries.val[at].name);
		}
		xdrfree_volEntries(&entries);
	}
	if (!rxvol->json && found)
		printf("\n");
	return found;
}

static void print_totals(const struct carry_totals *totals)
{
	char bytes[CARRY_SIZE], time[32];

	printf("moved %u volume%s", totals->moved, carry_plural(totals->moved));
	if (totals->bytes)
		printf(", %s in %s; the dumps of both servers had the same lengths",
		       tools_format_size(bytes, sizeof(bytes), totals->bytes),
		       tools_format_time(time, sizeof(time), totals->ns));
	printf("\n");
	if (totals->failed)
		printf("%u %s not moved: see the messages above, and give the command again\n",
		       totals->failed, totals->failed == 1 ? "was" : "were");
}

/* The exit status. */
static int report_moves(const struct rxvol *rxvol, struct cellside *cell,
			const struct survey_options *options, const struct survey *survey,
			const struct carry_item *items, const struct carry_totals *totals)
{
	json_t *moves = json_array(), *left = json_array();
	long found;

	if (!rxvol->json)
		print_totals(totals);
	for (size_t i = 0; i < survey->moving; i++)
		json_array_append_new(moves, carry_json(&items[i]));
	found = list_leftovers(rxvol, cell, options, left);
	if (!rxvol->json && !found)
		printf("the source has no volume any more\n");
	if (!rxvol->json) {
		json_decref(moves);
		json_decref(left);
	} else if (tools_json_print(json_pack("{s:o, s:o, s:o}", "volumes", survey_report(survey),
					      "moves", moves, "left", left))) {
		return TOOLS_EXIT_FAILURE;
	}
	return found < 0 || totals->failed || totals->left || survey->moving < survey->count
		       ? TOOLS_EXIT_FAILURE
		       : 0;
}

/* -- the command -- */

/* Those that move, in the order of the survey. NULL: no memory. */
static struct carry_item *choose_items(const struct survey *survey)
{
	struct carry_item *items = calloc(survey->moving ? survey->moving : 1, sizeof(*items));
	size_t count = 0;

	for (size_t i = 0; items && i < survey->count; i++)
		if (!*survey->volume[i].why)
			items[count++] =
				(struct carry_item){.job = survey->volume[i].job,
						    .size_kib = survey->volume[i].size_kib};
	return items;
}

/* SERVER of the command line and --to. 0, or an exit status after a message. */
static int find_move_places(const struct rxvol *rxvol, struct cellside *cell, const char *source,
			    struct survey_options *options)
{
	char own[CELLSIDE_NAME];

	if (cellside_parse_place(source, &options->from.address, &options->from.partition) ||
	    (rxvol->move.to &&
	     cellside_parse_place(rxvol->move.to, &options->to.address, &options->to.partition)))
		return TOOLS_EXIT_USAGE;
	if (rxvol->move.to)
		return 0;
	options->to = (struct move_place){survey_own_address(cell, options->from.address), -1};
	if (!options->to.address)
		return tools_fail(
			TOOLS_EXIT_FAILURE,
			"no address of this machine has a volume service: start rxfsd, or give "
			"--to SERVER");
	if (!rxvol->json)
		printf("volumes move to %s\n", cellside_address_text(own, options->to.address));
	return 0;
}

static int move_surveyed(const struct rxvol *rxvol, struct cellside *cell,
			 const struct survey_options *options, const struct survey *survey)
{
	struct carry_totals totals;
	struct carry_item *items;
	int status;

	if (!rxvol->json)
		print_survey(survey);
	if (rxvol->move.dry_run) {
		if (rxvol->json &&
		    tools_json_print(json_pack("{s:o}", "volumes", survey_report(survey))))
			return TOOLS_EXIT_FAILURE;
		return survey->moving < survey->count ? TOOLS_EXIT_FAILURE : 0;
	}
	items = choose_items(survey);
	if (!items)
		return tools_fail(TOOLS_EXIT_FAILURE, "no memory");
	carry_volumes(rxvol, cell, items, survey->moving, &totals);
	status = report_moves(rxvol, cell, options, survey, items, &totals);
	free(items);
	return status;
}

int rxvol_move_in(struct rxvol *rxvol, char **words, size_t count)
{
	struct survey_options options = {
		.filter = survey_filter_create(&rxvol->move.only, &rxvol->move.exclude),
		.state = rxvol->move.state,
		.take_over = rxvol->move.take_over,
		.to.partition = -1};
	struct cellside *cell = options.filter ? carry_open_cell(rxvol) : NULL;
	struct survey survey;
	int status;

	(void)count;
	if (!cell) {
		free(options.filter);
		return TOOLS_EXIT_FAILURE;
	}
	status = find_move_places(rxvol, cell, words[0], &options);
	if (!status && survey_server(cell, &options, &survey))
		status = TOOLS_EXIT_FAILURE;
	else if (!status) {
		status = move_surveyed(rxvol, cell, &options, &survey);
		survey_free(&survey);
	}
	cellside_close(cell);
	free(options.filter);
	return status;
}
