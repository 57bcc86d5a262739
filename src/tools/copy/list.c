/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp ls and stat. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/common/report.h"
#include "tools/copy/copy.h"

/* Names come from the server: on a terminal, no control characters. */
static void put_name(const char *name)
{
	bool terminal = isatty(STDOUT_FILENO);

	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		putchar(terminal && (*p < ' ' || *p == 0x7f) ? '?' : *p);
}

static const char *mode_text(char text[11], const AFSFetchStatus *status)
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

static const char *time_text(char *text, size_t size, uint32_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (!localtime_r(&t, &tm) || strftime(text, size, "%Y-%m-%d %H:%M", &tm) == 0)
		snprintf(text, size, "%u", seconds);
	return text;
}

static const char *type_text(uint32_t type)
{
	return type == AFS_TYPE_DIR ? "directory" : type == AFS_TYPE_SYMLINK ? "symbolic link" :
									       "file";
}

/* One line of ls -l. 0, or -1 after a message. */
static int print_long(struct copy *copy, const char *name, const AFSFid *fid,
		      const AFSFetchStatus *status)
{
	char mode[11], when[32], link[AFSPATHMAX + 1];
	struct afs_error error;

	if (status->errorCode != 0) {
		afs_error_code(&error, name, (int32_t)status->errorCode, RXW_ORIGIN_PEER);
		tools_error("%s", error.text);
		return -1;
	}
	printf("%s %3u %8u %14llu %s ", mode_text(mode, status), status->LinkCount, status->Owner,
	       (unsigned long long)afs_status_length(status),
	       time_text(when, sizeof(when), status->ClientModTime));
	put_name(name);
	if (status->FileType == AFS_TYPE_SYMLINK) {
		if (afs_client_readlink(copy->client, fid, name, link, &error) < 0) {
			putchar('\n');
			tools_error("%s", error.text);
			return -1;
		}
		printf(" -> ");
		put_name(link);
	}
	putchar('\n');
	return 0;
}

static int list_directory(struct copy *copy, const struct afs_object *object, const char *label)
{
	struct entries entries;
	int rc, bad = 0;

	if (entries_read(copy, &object->fid, label, &entries) < 0)
		return -1;
	rc = copy->set.long_list ? entries_status(copy, &entries) : 0;
	for (size_t i = 0; rc == 0 && i < entries.count && !atomic_load(&copy->interrupted); i++) {
		const struct entry *e = &entries.list[i];

		if (copy->set.long_list) {
			/* One bad entry does not hide the others. */
			bad |= print_long(copy, e->name, &e->fid, &e->status);
		} else {
			put_name(e->name);
			putchar('\n');
		}
	}
	entries_free(&entries);
	return rc < 0 ? rc : bad;
}

/* The object that the command names. */
static int find(struct copy *copy, struct afs_object *object, char *label, size_t size)
{
	struct afs_error error;

	snprintf(label, size, "%s:%.250s", copy->volume.name, copy->path);
	if (afs_client_walk(copy->client, &copy->volume, copy->path, false, object, &error) == 0)
		return 0;
	tools_error("%s", error.text);
	return -1;
}

int copy_list(struct copy *copy)
{
	struct afs_object object;
	char label[320];
	int rc = 0;

	if (find(copy, &object, label, sizeof(label)) < 0)
		return TOOLS_EXIT_FAILURE;
	if (object.status.FileType == AFS_TYPE_DIR) {
		rc = list_directory(copy, &object, label);
	} else if (copy->set.long_list) {
		rc = print_long(copy, copy->path, &object.fid, &object.status);
	} else {
		put_name(copy->path);
		putchar('\n');
	}
	return rc < 0 ? TOOLS_EXIT_FAILURE : 0;
}

static json_t *status_json(const struct copy *copy, const struct afs_object *o, const char *link)
{
	const AFSFetchStatus *s = &o->status;
	json_t *object = json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:I, s:i,"
		" s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:i, s:i}",
		"volume", copy->volume.name, "path", copy->path, "type", type_text(s->FileType),
		"volume_id", (json_int_t)o->fid.Volume, "vnode", (json_int_t)o->fid.Vnode, "unique",
		(json_int_t)o->fid.Unique, "server", "", "length", (json_int_t)afs_status_length(s),
		"mode", (int)s->UnixModeBits, "links", (int)s->LinkCount, "owner", (int)s->Owner,
		"group", (int)s->Group, "author", (int)s->Author, "data_version",
		(json_int_t)afs_status_version(s), "client_mtime", (json_int_t)s->ClientModTime,
		"server_mtime", (json_int_t)s->ServerModTime, "caller_access", (int)s->CallerAccess,
		"anonymous_access", (int)s->AnonymousAccess);
	char text[TOOLS_ADDRESS_TEXT];

	json_object_set_new(object, "server",
			    json_string(tools_address_text(&copy->volume.server, text,
							   sizeof(text))));
	if (link)
		json_object_set_new(object, "link", json_string(link));
	return object;
}

static void print_status(const struct copy *copy, const struct afs_object *o, const char *label,
			 const char *link)
{
	const AFSFetchStatus *s = &o->status;
	char mode[11], when[2][32], server[TOOLS_ADDRESS_TEXT];

	put_name(label);
	printf("\n  type         %s", type_text(s->FileType));
	if (link) {
		printf(afs_is_mount_point(s->UnixModeBits, link) ? ", mount point " : " to ");
		put_name(link);
	}
	printf("\n  length       %llu\n  mode         %04o (%s)\n  links        %u\n"
	       "  owner        %u, group %u, last writer %u\n"
	       "  modified     %s, stored %s\n  data version %llu\n"
	       "  rights       %u of the caller, %u of anyone\n"
	       "  FID          %u.%u.%u\n  server       %s\n",
	       (unsigned long long)afs_status_length(s), s->UnixModeBits, mode_text(mode, s),
	       s->LinkCount, s->Owner, s->Group, s->Author,
	       time_text(when[0], sizeof(when[0]), s->ClientModTime),
	       time_text(when[1], sizeof(when[1]), s->ServerModTime),
	       (unsigned long long)afs_status_version(s), s->CallerAccess, s->AnonymousAccess,
	       o->fid.Volume, o->fid.Vnode, o->fid.Unique,
	       tools_address_text(&copy->volume.server, server, sizeof(server)));
}

int copy_stat(struct copy *copy)
{
	struct afs_object object;
	struct afs_error error;
	char label[320], link[AFSPATHMAX + 1];
	bool is_link;

	if (find(copy, &object, label, sizeof(label)) < 0)
		return TOOLS_EXIT_FAILURE;
	is_link = object.status.FileType == AFS_TYPE_SYMLINK;
	if (is_link &&
	    afs_client_readlink(copy->client, &object.fid, label, link, &error) < 0) {
		tools_error("%s", error.text);
		return TOOLS_EXIT_FAILURE;
	}
	if (copy->set.json)
		return tools_json_print(status_json(copy, &object, is_link ? link : NULL)) < 0 ?
			       TOOLS_EXIT_FAILURE :
			       0;
	print_status(copy, &object, label, is_link ? link : NULL);
	return 0;
}
