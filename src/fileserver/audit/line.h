/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the audit log: a record as it lies in a ring, and its line. */
#ifndef FILESERVER_AUDIT_LINE_H
#define FILESERVER_AUDIT_LINE_H

#include <stddef.h>

#include "fileserver/audit/audit.h"

/* A record with its own strings. */
struct audit_entry {
	int64_t time_ns;
	uint8_t address[16];
	uint16_t port;
	uint8_t family; /* 4, 6; 0: unknown */
	bool anonymous, has_name, has_to_name;
	int32_t id, code;
	uint32_t fid[3], to[3];
	const char *operation; /* constant */
	char who[FSD_AUDIT_WHO];
	char name[FSD_AUDIT_NAME], to_name[FSD_AUDIT_NAME];
};

/* A byte becomes at most six ("\u001f"); the rest is less than 512. */
#define AUDIT_LINE_MAX (6 * (FSD_AUDIT_WHO + 2 * FSD_AUDIT_NAME) + 512)

void audit_entry_fill(struct audit_entry *entry, const struct fsd_audit_record *record);
/* The line with its newline, without a NUL, into AUDIT_LINE_MAX bytes. Returns its length. */
size_t audit_line(const struct audit_entry *entry, char *line);

#endif
