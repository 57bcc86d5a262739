/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp chmod and acl: modes of objects, and access lists of directories. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "afs/client/change.h"
#include "program/message.h"
#include "program/report.h"
#include "afscp/lookup.h"

/* ---- modes ---- */

static int parse_octal(const char *text, mode_t *mode)
{
	mode_t value = 0;

	for (; *text; text++) {
		if (*text < '0' || *text > '7')
			return -1;
		value = value << 3 | (mode_t)(*text - '0');
		if (value > 07777)
			return -1;
	}
	*mode = value;
	return 0;
}

/* The classes before an operator: their bits, 0 = none was named. */
static mode_t take_who(const char **text)
{
	mode_t who = 0;

	for (;; (*text)++)
		switch (**text) {
		case 'u':
			who |= 04700;
			break;
		case 'g':
			who |= 02070;
			break;
		case 'o':
			who |= 01007;
			break;
		case 'a':
			who |= 07777;
			break;
		default:
			return who;
		}
}

/* The permissions after an operator, for all classes. 0 or -1. */
static int take_bits(const char **text, mode_t old, bool directory, mode_t *bits)
{
	*bits = 0;
	for (;; (*text)++)
		switch (**text) {
		case 'r':
			*bits |= 0444;
			break;
		case 'w':
			*bits |= 0222;
			break;
		case 'x':
			*bits |= 0111;
			break;
		case 'X':
			*bits |= directory || old & 0111 ? 0111 : 0;
			break;
		case 's':
			*bits |= 06000;
			break;
		case 't':
			*bits |= 01000;
			break;
		case 0:
		case ',':
		case '+':
		case '-':
		case '=':
			return 0;
		default:
			return -1;
		}
}

static mode_t apply_bits(mode_t mode, mode_t who, char sign, mode_t bits)
{
	switch (sign) {
	case '+':
		return mode | (bits & who);
	case '-':
		return mode & ~(bits & who);
	default:
		return (mode & ~(who & 0777)) | (bits & who);
	}
}

int mode_parse(const char *text, mode_t old, bool directory, mode_t umask, mode_t *mode)
{
	mode_t now = old;

	if (*text >= '0' && *text <= '7')
		return parse_octal(text, mode);
	do {
		mode_t who = take_who(&text), bits;
		bool named = who != 0;

		if (*text == 0 || !strchr("+-=", *text))
			return -1;
		while (*text && strchr("+-=", *text)) {
			char sign = *text++;

			if (take_bits(&text, now, directory, &bits) < 0)
				return -1;
			now = apply_bits(now, named ? who : 07777, sign,
					 named ? bits : bits & ~umask);
		}
	} while (*text++ == ',');
	*mode = now;
	return 0;
}

/* ---- chmod ---- */

#define DEPTH_MAX 256

/* Change the mode of one object. */
static enum copy_result set_mode(struct copy *copy, const AFSFid *fid, const AFSFetchStatus *status,
				 const char *label)
{
	struct change c = {.op = CHANGE_STATUS, .label = label, .fid = *fid};
	enum copy_result rc;
	mode_t mode, now;

	/* The text was checked before. */
	if (mode_parse(copy->run->arguments[0], status->UnixModeBits & 07777,
		       status->FileType == AFS_TYPE_DIR, copy->run->umask, &mode) < 0)
		return COPY_STOP;
	if (mode == (status->UnixModeBits & 07777))
		return COPY_GOOD;
	c.how = (AFSStoreStatus){.Mask = AFS_SETMODE, .UnixModeBits = mode};
	rc = change_make(copy, &c);
	now = c.made.status.UnixModeBits & 07777;
	if (rc != COPY_GOOD || now == mode)
		return rc;
	tools_error(
		"%s: the mode is %04o, not %04o: servers keep the first digit for administrators",
		label, (unsigned)now, (unsigned)mode);
	return COPY_FAILED;
}

static enum copy_result chmod_below(struct copy *copy, const AFSFid *fid, const char *label,
				    unsigned depth);

/* An entry of a directory, and with -r what is below it. Links have no mode of interest. */
static enum copy_result chmod_entry(struct copy *copy, const struct entry *e,
				    const AFSFetchStatus *status, const char *label, unsigned depth)
{
	struct afs_error error;
	enum copy_result rc, down = COPY_GOOD;

	if (status->errorCode != 0) {
		afs_error_code(&error, label, (int32_t)status->errorCode, RXW_ORIGIN_PEER);
		copy_complain(copy, &error);
		return COPY_FAILED;
	}
	if (status->FileType == AFS_TYPE_SYMLINK)
		return COPY_GOOD;
	rc = set_mode(copy, &e->fid, status, label);
	if (rc != COPY_STOP && status->FileType == AFS_TYPE_DIR)
		down = chmod_below(copy, &e->fid, label, depth + 1);
	return rc == COPY_GOOD ? down : rc;
}

static enum copy_result chmod_batch(struct copy *copy, const struct entries *entries, size_t at,
				    const char *label, unsigned depth)
{
	uint32_t count = entries_batch(entries, at);
	AFSFetchStatus statuses[AFSCBMAX];
	enum copy_result all = entries_status(copy, entries, at, count, label, statuses);

	if (all != COPY_GOOD)
		return all;
	for (uint32_t i = 0; i < count; i++) {
		const struct entry *e = &entries->list[at + i];
		char *path = copy_join_label(label, e->name);

		if (!path)
			return COPY_STOP;
		if (chmod_entry(copy, e, &statuses[i], path, depth) != COPY_GOOD)
			all = COPY_FAILED;
		free(path);
		if (copy_interrupted(copy))
			return COPY_STOP;
	}
	return all;
}

static enum copy_result chmod_below(struct copy *copy, const AFSFid *fid, const char *label,
				    unsigned depth)
{
	struct entries entries;
	enum copy_result rc, all = COPY_GOOD;

	if (depth == DEPTH_MAX) {
		tools_error("%s: more than %d directories deep", label, DEPTH_MAX);
		return COPY_FAILED;
	}
	rc = entries_read(copy, fid, label, &entries);
	if (rc != COPY_GOOD)
		return rc;
	for (size_t at = 0; rc != COPY_STOP && at < entries.count; at += AFSCBMAX) {
		rc = chmod_batch(copy, &entries, at, label, depth);
		if (rc != COPY_GOOD)
			all = rc;
	}
	entries_free(&entries);
	return all;
}

static enum copy_result chmod_one(struct copy *copy)
{
	enum copy_result rc, down = COPY_GOOD;
	struct afs_object object;
	char label[COPY_LABEL];

	copy_format_label(copy, label);
	if (copy_walk(copy, true, &object) < 0)
		return COPY_FAILED;
	rc = set_mode(copy, &object.fid, &object.status, label);
	if (rc != COPY_STOP && copy->set->recursive && object.status.FileType == AFS_TYPE_DIR)
		down = chmod_below(copy, &object.fid, label, 0);
	return rc == COPY_GOOD ? down : rc;
}

int copy_chmod(struct copy *copy)
{
	const struct run *run = copy->run;
	mode_t mode;

	if (mode_parse(run->arguments[0], 0, true, run->umask, &mode) < 0) {
		tools_error("\"%s\" is not a mode; use an octal number or changes like u+x,go-w",
			    run->arguments[0]);
		return TOOLS_EXIT_USAGE;
	}
	return copy_each_source(copy, chmod_one);
}

/* ---- acl ---- */

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
