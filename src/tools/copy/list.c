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

static const char *mode_text(char text[11], const struct afs_status *status)
{
	static const char letters[] = "rwxrwxrwx";

	text[0] = status->type == AFS_TYPE_DIR ? 'd' : status->type == AFS_TYPE_SYMLINK ? 'l' : '-';
	for (int i = 0; i < 9; i++)
		text[1 + i] = status->mode & (0400u >> i) ? letters[i] : '-';
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
static int print_long(struct copy *copy, const char *name, const struct afs_fid *fid,
		      const struct afs_status *status)
{
	char mode[11], when[32], link[AFS_PATH_MAX + 1];
	struct afs_error error;

	if (status->error != 0) {
		afs_error_code(&error, name, status->error, RXW_ORIGIN_PEER);
		tools_error("%s", error.text);
		return -1;
	}
	printf("%s %3u %8u %14llu %s ", mode_text(mode, status), status->links, status->owner,
	       (unsigned long long)status->length,
	       time_text(when, sizeof(when), status->client_mtime));
	put_name(name);
	if (status->type == AFS_TYPE_SYMLINK) {
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
	if (object.status.type == AFS_TYPE_DIR) {
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
	const struct afs_status *s = &o->status;
	json_t *object = json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:I, s:i,"
		" s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:i, s:i}",
		"volume", copy->volume.name, "path", copy->path, "type", type_text(s->type),
		"volume_id", (json_int_t)o->fid.volume, "vnode", (json_int_t)o->fid.vnode, "unique",
		(json_int_t)o->fid.unique, "server", "", "length", (json_int_t)s->length, "mode",
		(int)s->mode, "links", (int)s->links, "owner", (int)s->owner, "group",
		(int)s->group, "author", (int)s->author, "data_version",
		(json_int_t)s->data_version, "client_mtime", (json_int_t)s->client_mtime,
		"server_mtime", (json_int_t)s->server_mtime, "caller_access",
		(int)s->caller_access, "anonymous_access", (int)s->anonymous_access);
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
	const struct afs_status *s = &o->status;
	char mode[11], when[2][32], server[TOOLS_ADDRESS_TEXT];

	put_name(label);
	printf("\n  type         %s", type_text(s->type));
	if (link) {
		printf(afs_is_mount_point(s->mode, link) ? ", mount point " : " to ");
		put_name(link);
	}
	printf("\n  length       %llu\n  mode         %04o (%s)\n  links        %u\n"
	       "  owner        %u, group %u, last writer %u\n"
	       "  modified     %s, stored %s\n  data version %llu\n"
	       "  rights       %u of the caller, %u of anyone\n"
	       "  FID          %u.%u.%u\n  server       %s\n",
	       (unsigned long long)s->length, s->mode, mode_text(mode, s), s->links, s->owner,
	       s->group, s->author, time_text(when[0], sizeof(when[0]), s->client_mtime),
	       time_text(when[1], sizeof(when[1]), s->server_mtime),
	       (unsigned long long)s->data_version, s->caller_access, s->anonymous_access,
	       o->fid.volume, o->fid.vnode, o->fid.unique,
	       tools_address_text(&copy->volume.server, server, sizeof(server)));
}

int copy_stat(struct copy *copy)
{
	struct afs_object object;
	struct afs_error error;
	char label[320], link[AFS_PATH_MAX + 1];
	bool is_link;

	if (find(copy, &object, label, sizeof(label)) < 0)
		return TOOLS_EXIT_FAILURE;
	is_link = object.status.type == AFS_TYPE_SYMLINK;
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
