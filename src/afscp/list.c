/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp ls and stat. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "afs/client/change.h"
#include "program/message.h"
#include "program/number.h"
#include "program/report.h"
#include "afscp/arguments.h"
#include "afscp/lookup.h"

/* Names come from the server: on a terminal, replace control characters. */
static void print_name(const char *name)
{
	char text[AFSPATHMAX + 320];

	if (!isatty(STDOUT_FILENO)) {
		fputs(name, stdout);
		return;
	}
	snprintf(text, sizeof(text), "%s", name);
	fputs(tools_harmless(text), stdout);
}

static const char *format_mode(char text[11], const AFSFetchStatus *status)
{
	static const char letters[] = "rwxrwxrwx";

	text[0] = status->FileType == AFS_TYPE_DIR	 ? 'd'
		  : status->FileType == AFS_TYPE_SYMLINK ? 'l'
							 : '-';
	for (int i = 0; i < 9; i++)
		text[1 + i] = status->UnixModeBits & (0400u >> i) ? letters[i] : '-';
	text[10] = 0;
	return text;
}

static const char *format_mtime(char *text, size_t size, uint32_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (!localtime_r(&t, &tm) || strftime(text, size, "%Y-%m-%d %H:%M", &tm) == 0)
		snprintf(text, size, "%u", seconds);
	return text;
}

static const char *name_of_type(uint32_t type)
{
	return type == AFS_TYPE_DIR	  ? "directory"
	       : type == AFS_TYPE_SYMLINK ? "symbolic link"
					  : "file";
}

/* Read a symbolic link, with retries. 0, or -1 after a message. */
static int read_link(struct copy *copy, const AFSFid *fid, const char *label,
		     char link[AFSPATHMAX + 1])
{
	struct outage outage = {0};
	struct afs_error error;

	copy_fresh(copy);
	while (afs_client_readlink(copy->client, fid, label, link, &error) < 0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return -1;
	return 0;
}

/* One line of ls -l. 0, or -1 after a message. */
static int print_long(struct copy *copy, const char *name, const AFSFid *fid,
		      const AFSFetchStatus *status)
{
	char mode[11], when[32], link[AFSPATHMAX + 1];
	struct afs_error error;

	if (status->errorCode != 0) {
		afs_error_code(&error, name, (int32_t)status->errorCode, RXW_ORIGIN_PEER);
		copy_complain(copy, &error);
		return -1;
	}
	printf("%s %3u %8u %14llu %s ", format_mode(mode, status), status->LinkCount, status->Owner,
	       (unsigned long long)afs_status_length(status),
	       format_mtime(when, sizeof(when), status->ClientModTime));
	print_name(name);
	if (status->FileType == AFS_TYPE_SYMLINK) {
		if (read_link(copy, fid, name, link) < 0) {
			putchar('\n');
			return -1;
		}
		printf(" -> ");
		print_name(link);
	}
	putchar('\n');
	return 0;
}

/* The bytes of a name, two digits each. */
static json_t *pack_hex(const char *name)
{
	char text[2 * AFSPATHMAX + 1] = "";

	for (size_t i = 0; name[i] && 2 * i + 2 < sizeof(text); i++)
		snprintf(text + 2 * i, 3, "%02x", (unsigned char)name[i]);
	return json_string(text);
}

/* One name as JSON. */
static json_t *pack_listed_entry(const char *name, const AFSFid *fid, const AFSFetchStatus *s)
{
	json_t *o = json_object(), *text = json_string(name);

	/* A name may be any bytes; JSON is UTF-8. */
	json_object_set_new(o, "name", tools_json_text(name));
	if (!text)
		json_object_set_new(o, "name_hex", pack_hex(name));
	json_decref(text);
	json_object_set_new(o, "vnode", json_integer((json_int_t)fid->Vnode));
	json_object_set_new(o, "unique", json_integer((json_int_t)fid->Unique));
	if (s->errorCode != 0) {
		json_object_set_new(o, "error", json_integer((int32_t)s->errorCode));
		return o;
	}
	json_object_set_new(o, "type", json_string(name_of_type(s->FileType)));
	json_object_set_new(o, "length", json_integer((json_int_t)afs_status_length(s)));
	json_object_set_new(o, "mode", json_integer((json_int_t)s->UnixModeBits));
	json_object_set_new(o, "links", json_integer((json_int_t)s->LinkCount));
	json_object_set_new(o, "owner", json_integer((json_int_t)s->Owner));
	json_object_set_new(o, "client_mtime", json_integer((json_int_t)s->ClientModTime));
	return o;
}

/* A part of a directory; COPY_FAILED: some entries failed. */
static enum copy_result list_batch(struct copy *copy, const struct entries *entries, size_t at,
				   uint32_t count, const char *label, json_t *list)
{
	AFSFetchStatus statuses[AFSCBMAX];
	bool wanted = copy->set->long_list || list;
	enum copy_result rc =
		wanted ? entries_status(copy, entries, at, count, label, statuses) : COPY_GOOD;
	int bad = 0;

	if (rc != COPY_GOOD)
		return rc;
	for (uint32_t i = 0; i < count && !copy_interrupted(copy); i++) {
		const struct entry *e = &entries->list[at + i];

		if (list) {
			json_array_append_new(list,
					      pack_listed_entry(e->name, &e->fid, &statuses[i]));
		} else if (copy->set->long_list) {
			/* After an entry that failed, continue with the others. */
			bad |= print_long(copy, e->name, &e->fid, &statuses[i]);
		} else {
			print_name(e->name);
			putchar('\n');
		}
	}
	if (copy_interrupted(copy))
		return COPY_STOP;
	return bad ? COPY_FAILED : COPY_GOOD;
}

/* Drop the entries that a pattern does not match. */
static void drop_unmatched(struct entries *entries, const char *pattern)
{
	size_t kept = 0;

	for (size_t i = 0; i < entries->count; i++)
		if (glob_matches(pattern, entries->list[i].name))
			entries->list[kept++] = entries->list[i];
		else
			free(entries->list[i].name);
	entries->count = kept;
}

/*
 * List the names that a pattern matches; NULL: all. 0, 1 if it matches none, or -1 after a message.
 */
static int list_directory(struct copy *copy, const struct afs_object *object, const char *label,
			  const char *pattern, json_t *list)
{
	enum copy_result rc = COPY_GOOD;
	struct entries entries;
	bool bad = false;

	if (entries_read(copy, &object->fid, label, &entries) != COPY_GOOD)
		return -1;
	if (pattern)
		drop_unmatched(&entries, pattern);
	if (pattern && entries.count == 0) {
		entries_free(&entries);
		return 1;
	}
	/* Stop if the reader of standard output is gone. */
	for (size_t at = 0; at < entries.count && rc != COPY_STOP && !ferror(stdout);
	     at += AFSCBMAX) {
		rc = list_batch(copy, &entries, at, entries_batch(&entries, at), label, list);
		bad |= rc == COPY_FAILED;
	}
	entries_free(&entries);
	return bad || rc == COPY_STOP ? -1 : 0;
}

/*
 * List the matches of a path whose last part is a pattern. 0, 1 if there are none, or -1 after a
 * message.
 */
static int list_matches(struct copy *copy, json_t *list)
{
	const char *path = copy->path;
	size_t length;
	const char *base = target_base(path, &length);
	struct afs_object object;
	struct afs_error error;
	char *parent, *pattern, label[COPY_LABEL];
	int rc = 1;

	if (!glob_is_pattern(base, length))
		return 1;
	parent = strndup(path, (size_t)(base - path));
	pattern = strndup(base, length);
	if (!parent || !pattern) {
		tools_error("no memory");
		rc = -1;
		goto out;
	}
	copy->path = parent;
	copy_format_label(copy, label);
	/* If there is no such directory, the listing of the whole path reports it. */
	if (copy_walk_try(copy, true, &object, &error) == 0 &&
	    object.status.FileType == AFS_TYPE_DIR)
		rc = list_directory(copy, &object, label, pattern, list);
	copy->path = path;
out:
	free(parent);
	free(pattern);
	return rc;
}

/* List the object at the path. 0, or -1 after a message. */
static int list_path(struct copy *copy, json_t *list)
{
	struct afs_object object;
	char label[COPY_LABEL];

	copy_format_label(copy, label);
	if (copy_walk(copy, false, &object) < 0)
		return -1;
	if (object.status.FileType == AFS_TYPE_DIR)
		return list_directory(copy, &object, label, NULL, list);
	if (list) {
		json_array_append_new(list,
				      pack_listed_entry(copy->path, &object.fid, &object.status));
		return 0;
	}
	if (copy->set->long_list)
		return print_long(copy, copy->path, &object.fid, &object.status);
	print_name(copy->path);
	putchar('\n');
	return 0;
}

int copy_list(struct copy *copy)
{
	json_t *list = copy->set->json ? json_array() : NULL;
	int rc = list_matches(copy, list);

	if (rc > 0)
		rc = list_path(copy, list);
	if (rc < 0 && list && json_array_size(list) == 0) {
		json_decref(list);
		return TOOLS_EXIT_FAILURE;
	}
	if (list &&
	    tools_json_print(json_pack("{s:s, s:o, s:o}", "volume", copy->volume.name, "path",
				       tools_json_text(copy->path), "entries", list)) < 0)
		rc = -1;
	return rc < 0 ? TOOLS_EXIT_FAILURE : 0;
}

static json_t *pack_status(const struct copy *copy, const struct afs_object *o, const char *link)
{
	const AFSFetchStatus *s = &o->status;
	json_t *object = json_pack(
		"{s:s, s:o, s:s, s:I, s:I, s:I, s:s, s:I, s:i,"
		" s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:i, s:i}",
		"volume", copy->volume.name, "path", tools_json_text(copy->path), "type",
		name_of_type(s->FileType), "volume_id", (json_int_t)o->fid.Volume, "vnode",
		(json_int_t)o->fid.Vnode, "unique", (json_int_t)o->fid.Unique, "server", "",
		"length", (json_int_t)afs_status_length(s), "mode", (int)s->UnixModeBits, "links",
		(int)s->LinkCount, "owner", (int)s->Owner, "group", (int)s->Group, "author",
		(int)s->Author, "data_version", (json_int_t)afs_status_version(s), "client_mtime",
		(json_int_t)s->ClientModTime, "server_mtime", (json_int_t)s->ServerModTime,
		"caller_access", (int)s->CallerAccess, "anonymous_access", (int)s->AnonymousAccess);
	char text[TOOLS_ADDRESS_TEXT];

	json_object_set_new(
		object, "server",
		json_string(tools_address_text(&copy->volume.server, text, sizeof(text))));
	if (link)
		json_object_set_new(object, "link", tools_json_text(link));
	return object;
}

static void print_status(const struct copy *copy, const struct afs_object *o, const char *label,
			 const char *link)
{
	const AFSFetchStatus *s = &o->status;
	char mode[11], when[2][32], server[TOOLS_ADDRESS_TEXT], rights[2][AFS_ACL_RIGHTS];

	print_name(label);
	printf("\n  type         %s", name_of_type(s->FileType));
	if (link) {
		printf(afs_is_mount_point(s->UnixModeBits, link) ? ", mount point " : " to ");
		print_name(link);
	}
	printf("\n  length       %llu\n  mode         %04o (%s)\n  links        %u\n"
	       "  owner        %u, group %u, last writer %u\n"
	       "  modified     %s, stored %s\n  data version %llu\n"
	       "  rights       %s of the caller, %s of anyone\n"
	       "  FID          %u.%u.%u\n  server       %s\n",
	       (unsigned long long)afs_status_length(s), s->UnixModeBits, format_mode(mode, s),
	       s->LinkCount, s->Owner, s->Group, s->Author,
	       format_mtime(when[0], sizeof(when[0]), s->ClientModTime),
	       format_mtime(when[1], sizeof(when[1]), s->ServerModTime),
	       (unsigned long long)afs_status_version(s),
	       afs_rights_text(s->CallerAccess, rights[0]),
	       afs_rights_text(s->AnonymousAccess, rights[1]), o->fid.Volume, o->fid.Vnode,
	       o->fid.Unique, tools_address_text(&copy->volume.server, server, sizeof(server)));
}

int copy_stat(struct copy *copy)
{
	struct afs_object object;
	char label[COPY_LABEL], link[AFSPATHMAX + 1];
	bool is_link;

	copy_format_label(copy, label);
	if (copy_walk(copy, false, &object) < 0)
		return TOOLS_EXIT_FAILURE;
	is_link = object.status.FileType == AFS_TYPE_SYMLINK;
	if (is_link && read_link(copy, &object.fid, label, link) < 0)
		return TOOLS_EXIT_FAILURE;
	if (copy->set->json)
		return tools_json_print(pack_status(copy, &object, is_link ? link : NULL)) < 0
			       ? TOOLS_EXIT_FAILURE
			       : 0;
	print_status(copy, &object, label, is_link ? link : NULL);
	return 0;
}

/* ---- df ---- */

/* The space of the volume, with retries. 0, or -1 after a message. */
static int fetch_space(struct copy *copy, struct afs_space *space)
{
	struct outage outage = {0};
	struct afs_error error;

	copy_fresh(copy);
	while (afs_client_space(copy->client, copy->volume.id, copy->volume.name, space, &error) <
	       0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return -1;
	return 0;
}

static json_t *pack_space(const struct copy *copy, const struct afs_space *space)
{
	json_t *o = json_pack("{s:s, s:I, s:I}", "volume", copy->volume.name, "used_kib",
			      (json_int_t)space->used, "free_kib", (json_int_t)space->free);

	json_object_set_new(o, "quota_kib",
			    space->quota ? json_integer((json_int_t)space->quota) : json_null());
	return o;
}

static void print_space(const struct copy *copy, const struct afs_space *space)
{
	char used[32], quota[32] = "no limit", room[32], share[16] = "";

	tools_format_size(used, sizeof(used), space->used * 1024);
	tools_format_size(room, sizeof(room), space->free * 1024);
	if (space->quota) {
		tools_format_size(quota, sizeof(quota), space->quota * 1024);
		snprintf(share, sizeof(share), " (%.0f %%)",
			 (double)space->used * 100 / (double)space->quota);
	}
	printf("%s: %s used, quota %s%s; %s free on the server's partition\n", copy->volume.name,
	       used, quota, share, room);
}

int copy_df(struct copy *copy)
{
	json_t *list = copy->set->json ? json_array() : NULL;
	bool all = true;

	for (size_t i = 0; i < copy->run->source_count && !copy_interrupted(copy); i++) {
		struct afs_space space;

		if (copy_locate(copy, &copy->run->sources[i]) < 0 || fetch_space(copy, &space) < 0)
			all = false;
		else if (list)
			json_array_append_new(list, pack_space(copy, &space));
		else
			print_space(copy, &space);
	}
	if (list && tools_json_print(json_pack("{s:o}", "volumes", list)) < 0)
		all = false;
	return all && !copy_interrupted(copy) ? 0 : TOOLS_EXIT_FAILURE;
}
