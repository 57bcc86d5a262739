/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands for stores that a server cannot open: rescue and convert. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/message.h"
#include "program/number.h"
#include "rxvol/volumes.h"
#include "volume/store/upkeep.h"

#define EXIT_LOSSES 3 /* the new store lacks something */

static void take_rescue_line(void *arg, const char *line)
{
	struct rxvol *rxvol = arg;

	if (rxvol->json)
		json_array_append_new(rxvol->faults, json_string(line));
	else
		printf("%s\n", line);
}

static unsigned long long widen_number(uint64_t number)
{
	return (unsigned long long)number;
}

static bool has_losses(const struct store_rescue *rescue)
{
	return rescue->lost || rescue->log_lost || rescue->unread || rescue->found ||
	       rescue->older || !rescue->pages;
}

static void show_count(const char *what, uint64_t count)
{
	if (count)
		printf("%s: %llu\n", what, widen_number(count));
}

static void show_rescue(const struct store_rescue *rescue)
{
	char bytes[32];

	if (!rescue->pages)
		printf("no metadata are left in %s, nor a copy in %s%s\n", rescue->source,
		       rescue->copy ? rescue->copy : rescue->source,
		       rescue->copy
			       ? ""
			       : "; if rxfsd has metadata-copy, name its directory with --copy");
	else
		printf("damaged pages of the metadata and their copy: %llu of %llu\n",
		       widen_number(rescue->damaged_pages), widen_number(rescue->pages));
	printf("in %s now: volumes: %llu; files, directories and links: %llu (%s)\n",
	       rescue->target, widen_number(rescue->volumes), widen_number(rescue->files),
	       tools_format_size(bytes, sizeof(bytes), rescue->bytes));
	show_count("of them without a name, in lost+found of their volume", rescue->found);
	show_count("records and names that are lost", rescue->lost);
	show_count("records as an older copy of the metadata has them", rescue->older);
	show_count("faults of contents that remain", rescue->unread);
	if (!has_losses(rescue))
		printf("nothing %sis lost\n", rescue->copy_only ? "that the copy has " : "");
}

static int show_rescue_json(struct rxvol *rxvol, const struct store_rescue *rescue)
{
	json_t *result = json_pack(
		"{s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:I,s:I,s:I,s:I,s:O}", "pages",
		(json_int_t)rescue->pages, "damaged_pages", (json_int_t)rescue->damaged_pages,
		"volumes", (json_int_t)rescue->volumes, "files", (json_int_t)rescue->files, "found",
		(json_int_t)rescue->found, "lost", (json_int_t)rescue->lost, "log_lost",
		rescue->log_lost, "older", (json_int_t)rescue->older, "unused",
		(json_int_t)rescue->unused, "unread", (json_int_t)rescue->unread, "bytes",
		(json_int_t)rescue->bytes, "lines", rxvol->faults);

	return tools_json_print(result);
}

/* A directory of a store: one that a server can open, or the given one, whatever is left in it. */
static bool is_store(const char *directory, const struct stat *source)
{
	char file[PATH_MAX];
	struct stat st;

	if (!stat(directory, &st) && st.st_dev == source->st_dev && st.st_ino == source->st_ino)
		return true;
	return snprintf(file, sizeof(file), "%s/FORMAT", directory) < (int)sizeof(file) &&
	       !access(file, F_OK);
}

/* A new store within another one would be taken for damage of that. */
static bool lies_in_store(const char *target, const char *source, char parent[PATH_MAX])
{
	char path[PATH_MAX];
	struct stat st = {0};

	if (stat(source, &st) || snprintf(path, sizeof(path), "%s", target) >= (int)sizeof(path) ||
	    !realpath(dirname(path), parent))
		return false; /* the next step tells */
	for (;;) {
		char *end;

		if (is_store(*parent ? parent : "/", &st))
			return true;
		end = strrchr(parent, '/');
		if (!end || !*parent)
			return false;
		*end = '\0';
	}
}

int rxvol_rescue(struct rxvol *rxvol)
{
	char parent[PATH_MAX];
	struct store_rescue rescue = {.source = rxvol->store,
				      .target = rxvol->target,
				      .copy = rxvol->copy,
				      .line = take_rescue_line,
				      .arg = rxvol};
	char message[STORE_MESSAGE_MAX];

	if (rxvol_become_owner(rxvol))
		return TOOLS_EXIT_FAILURE;
	if (lies_in_store(rxvol->target, rxvol->store, parent))
		return tools_fail(TOOLS_EXIT_FAILURE,
				  "%s: lies in the store %s; choose a directory outside of it",
				  rxvol->target, parent);
	if (rxvol->json)
		rxvol->faults = json_array();
	if (store_rescue(&rescue, message))
		return tools_fail(TOOLS_EXIT_FAILURE, "%s", message);
	if (!rxvol->json)
		show_rescue(&rescue);
	else if (show_rescue_json(rxvol, &rescue))
		return TOOLS_EXIT_FAILURE;
	return has_losses(&rescue) ? EXIT_LOSSES : 0;
}

/* A command that changes the files of a store, which no process may have open. */
static int change_closed_store(struct rxvol *rxvol,
			       int (*change)(const struct store_options *options, char *message),
			       const char *done)
{
	const struct store_options options = {.path = rxvol->store, .copy = rxvol->copy};
	char message[STORE_MESSAGE_MAX];

	if (rxvol_become_owner(rxvol))
		return TOOLS_EXIT_FAILURE;
	if (change(&options, message))
		return tools_fail(TOOLS_EXIT_FAILURE, "%s", message);
	if (*message)
		printf("%s\n", message);
	else
		printf("%s: %s\n", rxvol->store, done);
	return 0;
}

int rxvol_convert(struct rxvol *rxvol)
{
	return change_closed_store(rxvol, store_convert, "converted");
}

int rxvol_use_copy(struct rxvol *rxvol)
{
	return change_closed_store(rxvol, store_use_copy, "goes on with the copy of its metadata");
}
