/* SPDX-License-Identifier: BSD-2-Clause */
/* The volumes of a server: which of them can move, and why others cannot. */
#include "rxvol/survey.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fnmatch.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/call.h>

#include "afs/numbers.h"
#include "program/message.h"
#include "rxvol/movelog.h"

#define STATUS_OK 2
#define LOCKS	  0x1f0
#define PROBE_MS  2000

const char *survey_type(const struct move_job *job)
{
	return job->replica ? "ro" : "rw";
}

/* -- servers -- */

static int fail_at_server(uint32_t address, const char *what, int32_t code)
{
	char server[CELLSIDE_NAME], text[CELLSIDE_CODE];

	cellside_code_text(text, code);
	return tools_fail(-1, "the volume service of %s: %s: %s",
			  cellside_address_text(server, address), what, text);
}

int survey_partitions(struct cellside *cell, uint32_t address, int32_t list[SURVEY_PARTITIONS])
{
	rxw_connection *connection = cellside_connect(cell, address);
	partEntries entries = {0};
	int32_t code = connection ? AFSVolXListPartitions(connection, &entries) : AFS_VOL_NO_MEMORY;
	int count = 0;

	for (uint32_t i = 0; !code && i < entries.len && count < SURVEY_PARTITIONS; i++)
		if (entries.val[i] >= 0 && entries.val[i] < SURVEY_PARTITIONS)
			list[count++] = entries.val[i];
	xdrfree_partEntries(&entries);
	if (connection)
		rxw_connection_release(connection);
	return code ? fail_at_server(address, "the partitions", code) : count;
}

int survey_list(struct cellside *cell, const struct move_place *place, volEntries *entries)
{
	rxw_connection *connection = cellside_connect(cell, place->address);
	int32_t code = AFS_VOL_NO_MEMORY;

	*entries = (volEntries){0};
	if (connection) {
		code = AFSVolListVolumes(connection, place->partition, 1, entries);
		rxw_connection_release(connection);
	}
	for (uint32_t i = 0; !code && i < entries->len; i++)
		entries->val[i].name[sizeof(entries->val[i].name) - 1] = 0;
	return code ? fail_at_server(place->address, "the list of volumes", code) : 0;
}

int survey_space(struct cellside *cell, const struct move_place *place, uint64_t *free_kib,
		 uint64_t *size_kib)
{
	rxw_connection *connection = cellside_connect(cell, place->address);
	diskPartition64 info = {0};
	char name[CELLSIDE_NAME];
	int32_t code = AFS_VOL_NO_MEMORY;

	if (connection) {
		code = AFSVolPartitionInfo64(
			connection, cellside_partition_text(name, place->partition), &info);
		rxw_connection_release(connection);
	}
	*free_kib = info.free > 0 ? (uint64_t)info.free : 0;
	*size_kib = info.minFree > 0 ? (uint64_t)info.minFree : 0;
	return code ? fail_at_server(place->address, "the space of the partition", code) : 0;
}

static bool answers_at(struct cellside *cell, uint32_t address)
{
	const struct rxw_call_options limit = {.size = sizeof(limit), .deadline_ms = PROBE_MS};
	rxw_connection *connection = cellside_connect(cell, address);
	partEntries entries = {0};
	bool good = connection && !AFSVolXListPartitions_opt(connection, &limit, &entries);

	xdrfree_partEntries(&entries);
	if (connection)
		rxw_connection_release(connection);
	return good;
}

uint32_t survey_own_address(struct cellside *cell, uint32_t but)
{
	struct ifaddrs *list;
	uint32_t found = 0;

	if (getifaddrs(&list))
		return 0;
	for (const struct ifaddrs *at = list; at && !found; at = at->ifa_next) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)at->ifa_addr;
		uint32_t address;

		if (!in || in->sin_family != AF_INET || at->ifa_flags & IFF_LOOPBACK)
			continue;
		address = ntohl(in->sin_addr.s_addr);
		if (address != but && answers_at(cell, address))
			found = address;
	}
	freeifaddrs(list);
	return found;
}

/* -- one volume -- */

struct survey_filter *survey_filter_create(const struct tools_list *only,
					   const struct tools_list *exclude)
{
	struct survey_filter *filter =
		calloc(1, sizeof(*filter) + (only->count + exclude->count) * sizeof(bool));

	if (!filter)
		return tools_fail(NULL, "no memory");
	filter->only = only;
	filter->exclude = exclude;
	return filter;
}

static bool matches_any(const struct tools_list *patterns, const char *name, bool *met)
{
	bool found = false;

	for (size_t i = 0; i < patterns->count; i++)
		if (!fnmatch(patterns->items[i], name, 0)) {
			met[i] = true;
			found = true;
		}
	return found;
}

bool survey_wants(struct survey_filter *filter, const char *name)
{
	size_t count = filter->only->count;
	bool in = matches_any(filter->only, name, filter->met) || !count;

	return !matches_any(filter->exclude, name, filter->met + count) && in;
}

int survey_filter_check(const struct survey_filter *filter)
{
	size_t only = filter->only->count;
	int result = 0;

	for (size_t i = 0; i < only + filter->exclude->count; i++)
		if (!filter->met[i])
			result = tools_fail(-1, "%s %s: no volume has such a name",
					    i < only ? "--only" : "--exclude",
					    i < only ? filter->only->items[i]
						     : filter->exclude->items[i - only]);
	return result;
}

static void set_reason(struct survey_volume *volume, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void set_reason(struct survey_volume *volume, const char *format, ...)
{
	va_list args;

	if (*volume->why)
		return;
	va_start(args, format);
	vsnprintf(volume->why, sizeof(volume->why), format, args);
	va_end(args);
}

static bool has_site_at(struct cellside *cell, const nvldbentry *entry, int32_t flag,
			const struct move_place *place)
{
	for (int i = 0; i < entry->nServers; i++)
		if (entry->serverFlags[i] & flag && entry->serverPartition[i] == place->partition &&
		    cellside_same_server(cell, (uint32_t)entry->serverNumber[i], place->address))
			return true;
	return false;
}

static void judge_entry(struct cellside *cell, const struct survey_options *options,
			struct survey_volume *volume)
{
	const struct move_job *job = &volume->job;
	nvldbentry entry;
	char text[CELLSIDE_CODE];
	int32_t code = cellside_find_entry(cell, job->id, &entry);
	int32_t site = job->replica ? VLSF_ROVOL : VLSF_RWVOL;
	int type = job->replica ? AFS_VL_RO : AFS_VL_RW;

	if (code == AFS_VL_NOENT) {
		set_reason(volume, "the location service has no entry; \"vos syncvldb\" makes one");
	} else if (code) {
		set_reason(volume, "its entry: %s", cellside_code_text(text, code));
	} else if (entry.volumeId[type] != job->id || entry.volumeId[AFS_VL_RW] != job->rw) {
		set_reason(volume, "its entry has other numbers; see \"vos syncvldb\"");
	} else if (options->take_over && entry.flags & VLOP_MOVE &&
		   (has_site_at(cell, &entry, site, &job->from) ||
		    has_site_at(cell, &entry, site, &job->to))) {
		volume->begun = true;
	} else if (!has_site_at(cell, &entry, site, &job->from)) {
		set_reason(volume, "its entry names other servers: this is a copy that is left; "
				   "\"vos zap\" removes it");
	} else if (entry.flags & LOCKS) {
		set_reason(
			volume,
			"its entry is locked: another administrator works with the volume, or "
			"\"vos\" was killed; in the latter case see \"vos unlock\" and --take-over");
	}
}

/* What the file server could not serve, or no name of a file server's volume. */
static void judge_state(const volintInfo *info, struct survey_volume *volume)
{
	size_t length = strlen(info->name);

	if (info->status == AFS_VBUSY)
		set_reason(volume, "a transaction has it; \"vos status\" shows which one");
	else if (info->status != STATUS_OK || info->needsSalvaged)
		set_reason(volume, "it cannot be attached; see \"bos salvage\"");
	else if (!info->inUse && !volume->job.replica)
		set_reason(volume,
			   "it is off-line; \"vos online\" brings it back, \"vos zap\" removes it");
	else if (!length ||
		 length != strspn(info->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
					      "uvwxyz0123456789._-"))
		set_reason(volume,
			   "its name has other characters than letters, digits, '.', '_' and "
			   "'-'; see \"vos rename\"");
}

static bool add_survey_volume(struct survey *survey, const struct survey_volume *volume)
{
	if ((survey->count & (survey->count - 1)) == 0) {
		size_t room = survey->count ? survey->count * 2 : 1;
		struct survey_volume *more = realloc(survey->volume, room * sizeof(*more));

		if (!more)
			return false;
		survey->volume = more;
	}
	survey->volume[survey->count++] = *volume;
	return true;
}

/* OpenAFS's server lists only the number of a volume that is in a transaction. False: a temporary one. */
static bool complete_listed_volume(struct cellside *cell, volintInfo *info)
{
	nvldbentry entry;

	if (*info->name)
		return true;
	if (cellside_find_entry(cell, info->volid, &entry))
		return false;
	info->type = info->volid == entry.volumeId[AFS_VL_RW]	? AFS_VL_RW
		     : info->volid == entry.volumeId[AFS_VL_RO] ? AFS_VL_RO
								: AFS_VL_BACKUP;
	info->parentID = entry.volumeId[AFS_VL_RW];
	snprintf(info->name, sizeof(info->name), "%.22s%s", entry.name,
		 info->type == AFS_VL_RO ? ".readonly" : "");
	return true;
}

static bool take_listed_volume(struct cellside *cell, const struct survey_options *options,
			       const struct move_place *place, volintInfo *info,
			       struct survey *survey)
{
	struct survey_volume volume = {
		.job = {.id = info->volid,
			.rw = info->parentID ? info->parentID : info->volid,
			.replica = info->type == AFS_VL_RO,
			.from = *place,
			.to = options->to},
		.files = info->filecount > 0 ? (uint32_t)info->filecount : 0,
		.size_kib = info->size > 0 ? (uint32_t)info->size : 0,
	};
	struct move_note note;

	if (info->destroyMe || !survey_wants(options->filter, info->name))
		return true;
	if (info->volid == AFS_RXFSD_ROOTAFS) {
		survey->own_root = true;
		return true;
	}
	if (info->type == AFS_VL_BACKUP) {
		survey->backups++;
		return true;
	}
	snprintf(volume.job.name, sizeof(volume.job.name), "%.31s", info->name);
	volume.begun = movelog_peek(options->state, info->volid, &note);
	if (!volume.begun)
		judge_entry(cell, options, &volume);
	if (!volume.begun)
		judge_state(info, &volume);
	return add_survey_volume(survey, &volume);
}

static int survey_partition(struct cellside *cell, const struct survey_options *options,
			    int32_t partition, struct survey *survey)
{
	const struct move_place place = {options->from.address, partition};
	volEntries entries;
	bool good = true;

	if (survey_list(cell, &place, &entries))
		return -1;
	for (uint32_t i = 0; i < entries.len && good; i++)
		good = !complete_listed_volume(cell, &entries.val[i]) ||
		       take_listed_volume(cell, options, &place, &entries.val[i], survey);
	xdrfree_volEntries(&entries);
	return good ? 0 : tools_fail(-1, "no memory");
}

/* -- moves of which the source does not show anything any more -- */

static bool is_surveyed(const struct survey *survey, uint32_t id)
{
	for (size_t i = 0; i < survey->count; i++)
		if (survey->volume[i].job.id == id)
			return true;
	return false;
}

static void add_begun_volume(struct cellside *cell, const struct survey_options *options,
			     uint32_t id, struct survey *survey)
{
	struct survey_volume volume = {.begun = true};
	struct move_note note;
	nvldbentry entry;

	if (is_surveyed(survey, id) || !movelog_peek(options->state, id, &note) ||
	    note.from.address != options->from.address || cellside_find_entry(cell, id, &entry))
		return;
	volume.job = (struct move_job){.id = id,
				       .rw = entry.volumeId[AFS_VL_RW],
				       .replica = id == entry.volumeId[AFS_VL_RO],
				       .from = note.from,
				       .to = note.to};
	snprintf(volume.job.name, sizeof(volume.job.name), "%.22s%s", entry.name,
		 volume.job.replica ? ".readonly" : "");
	if (survey_wants(options->filter, volume.job.name))
		add_survey_volume(survey, &volume);
}

/* -- all of them -- */

/* Whether the server has the partition. 0, or -1 after a message. */
static int find_partition(const struct move_place *place, const int32_t *list, int count)
{
	char server[CELLSIDE_NAME], name[CELLSIDE_NAME], all[256] = "";
	size_t length = 0;

	for (int i = 0; i < count; i++) {
		if (list[i] == place->partition)
			return 0;
		if (length < sizeof(all))
			length += (size_t)snprintf(all + length, sizeof(all) - length, "%s%s",
						   i ? ", " : "",
						   cellside_partition_text(name, list[i]));
	}
	return tools_fail(-1, "%s has no partition %s; it has: %s",
			  cellside_address_text(server, place->address),
			  cellside_partition_text(name, place->partition), count ? all : "none");
}

/* -1 becomes the only partition if `one` is wanted. 0, or -1 after a message. */
static int complete_place(struct cellside *cell, struct move_place *place, bool one)
{
	int32_t list[SURVEY_PARTITIONS];
	char server[CELLSIDE_NAME];
	int count = survey_partitions(cell, place->address, list);

	if (count < 0)
		return -1;
	if (place->partition >= 0)
		return find_partition(place, list, count);
	if (!one)
		return 0;
	if (count != 1)
		return tools_fail(-1, "%s has %d partitions: give one of them, such as %s:a",
				  cellside_address_text(server, place->address), count, server);
	place->partition = list[0];
	return 0;
}

static int order_volumes(const void *one, const void *other)
{
	const struct survey_volume *a = one, *b = other;

	if (a->job.rw != b->job.rw)
		return a->job.rw < b->job.rw ? -1 : 1;
	return (int)a->job.replica - (int)b->job.replica;
}

/* Those that the target has room for move. */
static void divide_room(struct survey *survey)
{
	uint64_t room = survey->free_kib;

	for (size_t i = 0; i < survey->count; i++) {
		struct survey_volume *volume = &survey->volume[i];

		if (volume->size_kib > room && !volume->begun)
			set_reason(volume, "the target has no room for it: %llu KiB are left",
				   (unsigned long long)room);
		if (*volume->why)
			continue;
		room -= volume->size_kib < room ? volume->size_kib : room;
		survey->moving++;
		survey->moving_kib += volume->size_kib;
	}
}

static int survey_volumes(struct cellside *cell, const struct survey_options *options,
			  struct survey *survey)
{
	int32_t list[SURVEY_PARTITIONS];
	uint32_t *ids;
	size_t begun;
	int count = 1;

	list[0] = options->from.partition;
	if (list[0] < 0)
		count = survey_partitions(cell, options->from.address, list);
	if (count < 0)
		return -1;
	for (int i = 0; i < count; i++)
		if (survey_partition(cell, options, list[i], survey))
			return -1;
	begun = movelog_list(options->state, &ids);
	for (size_t i = 0; i < begun; i++)
		add_begun_volume(cell, options, ids[i], survey);
	free(ids);
	if (survey->count)
		qsort(survey->volume, survey->count, sizeof(*survey->volume), order_volumes);
	return 0;
}

/* What the target has already is no typing error. */
static int look_for_moved_names(struct cellside *cell, const struct survey_options *options)
{
	volEntries entries;

	if (survey_list(cell, &options->to, &entries))
		return -1;
	for (uint32_t i = 0; i < entries.len; i++)
		if (!entries.val[i].destroyMe && complete_listed_volume(cell, &entries.val[i]))
			survey_wants(options->filter, entries.val[i].name);
	xdrfree_volEntries(&entries);
	return survey_filter_check(options->filter);
}

int survey_server(struct cellside *cell, struct survey_options *options, struct survey *survey)
{
	uint64_t size;

	*survey = (struct survey){0};
	if (complete_place(cell, &options->from, false) || complete_place(cell, &options->to, true))
		return -1;
	if (cellside_same_server(cell, options->from.address, options->to.address) &&
	    (options->from.partition < 0 || options->from.partition == options->to.partition))
		return tools_fail(-1, "source and target are the same");
	if (survey_space(cell, &options->to, &survey->free_kib, &size) ||
	    survey_volumes(cell, options, survey) || look_for_moved_names(cell, options)) {
		survey_free(survey);
		return -1;
	}
	divide_room(survey);
	return 0;
}

void survey_free(struct survey *survey)
{
	free(survey->volume);
	*survey = (struct survey){0};
}
