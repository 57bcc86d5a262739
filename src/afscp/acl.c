/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp acl: show and change the access list of a directory. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "afs/client/acl.h"
#include "program/message.h"
#include "program/report.h"
#include "afscp/change.h"

/* The access list of an object. 0, or -1 after a message. */
static int fetch_acl(struct copy *copy, const AFSFid *fid, const char *label, struct afs_acl *acl)
{
	char text[AFSOPAQUEMAX + 1];
	struct outage outage = {0};
	struct afs_error error;

	copy_fresh(copy);
	while (afs_client_get_acl(copy->client, fid, label, text, &error) < 0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return -1;
	if (afs_acl_parse(text, acl) == 0)
		return 0;
	tools_error("%s: the server sent a malformed access list", label);
	return -1;
}

static void print_acl_entries(const struct afs_acl *acl, bool negative)
{
	char text[AFS_ACL_RIGHTS], name[sizeof(acl->entry[0].name)];

	for (unsigned i = 0; i < acl->count; i++) {
		if (acl->entry[i].negative != negative)
			continue;
		/* Names of the server must not give orders to the terminal. */
		snprintf(name, sizeof(name), "%s", acl->entry[i].name);
		printf("%s%-8s %s\n", negative ? "-" : " ",
		       afs_rights_text(acl->entry[i].rights, text),
		       isatty(STDOUT_FILENO) ? tools_harmless(name) : name);
	}
}

static json_t *pack_acl(const struct afs_acl *acl, bool negative)
{
	json_t *list = json_object();
	char text[AFS_ACL_RIGHTS];

	for (unsigned i = 0; i < acl->count; i++)
		if (acl->entry[i].negative == negative)
			json_object_set_new(
				list, acl->entry[i].name,
				json_string(afs_rights_text(acl->entry[i].rights, text)));
	return list;
}

static int show_access_list(const struct copy *copy, const struct afs_acl *acl)
{
	if (copy->set->json)
		return tools_json_print(
			json_pack("{s:s, s:o, s:o, s:o}", "volume", copy->volume.name, "path",
				  tools_json_text(copy->path), "positive", pack_acl(acl, false),
				  "negative", pack_acl(acl, true)));
	print_acl_entries(acl, false);
	print_acl_entries(acl, true);
	return 0;
}

/* Check the pairs of the command line before anything is asked. 0, or -1 after a message. */
static int check_acl_pairs(const struct run *run)
{
	uint32_t rights;

	if (run->argument_count % 2) {
		tools_error("\"%s\" has no rights: name pairs of NAME and RIGHTS",
			    run->arguments[run->argument_count - 1]);
		return -1;
	}
	for (size_t i = 1; i < run->argument_count; i += 2)
		if (afs_rights_parse(run->arguments[i], &rights) < 0) {
			tools_error("\"%s\" are no rights; use letters of rlidwka and A to H, or "
				    "read, write, all or none",
				    run->arguments[i]);
			return -1;
		}
	return 0;
}

/* Change entries and store the list. 0, or -1 after a message. */
static int change_acl(struct copy *copy, const AFSFid *fid, const char *label, struct afs_acl *acl)
{
	const struct run *run = copy->run;
	char text[AFSOPAQUEMAX];
	struct change c = {.op = CHANGE_ACL, .label = label, .fid = *fid, .text = text};
	uint32_t rights;

	for (size_t i = 0; i < run->argument_count; i += 2) {
		afs_rights_parse(run->arguments[i + 1], &rights);
		if (afs_acl_set(acl, run->arguments[i], copy->set->negative, rights) < 0) {
			tools_error(
				"%s: \"%.128s\" cannot be added: a list has at most %d entries, "
				"and names have no blanks",
				label, run->arguments[i], AFS_ACL_ENTRIES);
			return -1;
		}
	}
	if (afs_acl_text(acl, text, sizeof(text)) < 0) {
		tools_error("%s: the access list would be too long; use groups", label);
		return -1;
	}
	return change_make(copy, &c) == COPY_GOOD ? 0 : -1;
}

int copy_acl(struct copy *copy)
{
	struct afs_object object;
	struct afs_acl acl;
	char label[COPY_LABEL];
	int rc;

	if (check_acl_pairs(copy->run) < 0)
		return TOOLS_EXIT_USAGE;
	copy_format_label(copy, label);
	if (copy_walk(copy, true, &object) < 0)
		return TOOLS_EXIT_FAILURE;
	if (copy->run->argument_count && object.status.FileType != AFS_TYPE_DIR) {
		tools_error("%s is no directory; a file has the access list of its directory",
			    label);
		return TOOLS_EXIT_FAILURE;
	}
	if (fetch_acl(copy, &object.fid, label, &acl) < 0)
		return TOOLS_EXIT_FAILURE;
	rc = copy->run->argument_count ? change_acl(copy, &object.fid, label, &acl)
				       : show_access_list(copy, &acl);
	return rc < 0 ? TOOLS_EXIT_FAILURE : 0;
}
