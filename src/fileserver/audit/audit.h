/* SPDX-License-Identifier: BSD-2-Clause */
/* The audit log: one line of JSON for each call that changed something or was refused. */
#ifndef FILESERVER_AUDIT_H
#define FILESERVER_AUDIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rxwire/types.h>

#define FSD_AUDIT_NAME 256 /* bytes of a name or text that are kept */
#define FSD_AUDIT_WHO  128 /* of the name of a caller */

struct fsd_audit;

/* One call. Strings need not be UTF-8; longer ones are cut. */
struct fsd_audit_record {
	int64_t time_ns; /* since 1970 */
	const struct sockaddr_storage *peer;
	const char *who; /* authenticated name; NULL: anonymous */
	int32_t id;	 /* of the user */
	const char *operation;
	uint32_t volume, vnode, unique; /* volume 0: none */
	const char *name;		/* in the directory, or NULL */
	uint32_t to_volume, to_vnode,
		to_unique;   /* Rename, Link: the other object; volume 0: none */
	const char *to_name; /* new name, or NULL */
	int32_t code;	     /* as it was sent; 0: success */
	bool reserved;	     /* there is a place for it: fsd_audit_reserve() */
};

/*
 * Open or create the file, to append to it, and start the thread that writes. `strict`: calls that change something
 * reserve a place for their records, and are refused if they get none. NULL after one line in message[FSD_MESSAGE_MAX].
 */
struct fsd_audit *fsd_audit_open(const char *path, bool strict, char *message);
/*
 * Writes what is left: with `strict`, what cannot be written goes to the log of the server. No other function may be
 * running. NULL is allowed.
 */
void fsd_audit_close(struct fsd_audit *audit);

/*
 * Before a call that changes something: a place for its record, for fsd_audit_add() or fsd_audit_unreserve(). False: the
 * file cannot be written, or not fast enough: the call must not be done. Without `strict`, or with NULL, always true and
 * without effect. Any thread.
 */
bool fsd_audit_reserve(struct fsd_audit *audit);
void fsd_audit_unreserve(struct fsd_audit *audit);

/*
 * Add a record to the queue. If it is full, wait while the writer makes progress, with `strict` also while it makes
 * none, unless the call failed; else, or if the file cannot be written, the record is lost and counted, and the log says so once a minute. A record with a place neither waits nor is lost. Any thread. NULL: does
 * nothing.
 */
void fsd_audit_add(struct fsd_audit *audit, const struct fsd_audit_record *record);

/*
 * The server stops. From now on no call waits for a file that cannot be written, and records leave the file out. NULL is
 * allowed.
 */
void fsd_audit_release(struct fsd_audit *audit);

/* The file was renamed: open it anew under its name before the next line. NULL is allowed. */
void fsd_audit_reopen(struct fsd_audit *audit);

struct fsd_audit_stats {
	uint64_t written; /* records */
	uint64_t lost;	  /* the queue was full, or the file could not be written */
	uint64_t waits;	  /* calls that waited for room */
	uint64_t refused; /* calls that got no place, with `strict` */
};
void fsd_audit_stats(struct fsd_audit *audit, struct fsd_audit_stats *stats);

/*
 * A change by an administrator, or in the database of users: what its record says. The members up to `code` are the caller's; strings
 * live as long as the change. `operation`: service, dot, procedure, as in "VL.CreateEntry".
 */
struct fsd_audit_change {
	struct fsd_audit *audit; /* NULL: nothing is recorded */
	const rxw_call *call;
	const char *who; /* as in a record */
	int32_t id;
	const char *operation;
	uint32_t volume; /* 0: none */
	const char *name, *to_name;
	bool begun; /* inside */
};
/* Before the change, which must not happen if this returns a code: it cannot be recorded now. */
int32_t fsd_audit_begin(struct fsd_audit_change *change);
/* After it, or after it was refused. Returns `code`. */
int32_t fsd_audit_end(struct fsd_audit_change *change, int32_t code);

/* -- inside: a record as it lies in the queue -- */

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

void fsd_audit_fill(struct audit_entry *entry, const struct fsd_audit_record *record);
/* The line with its newline, without a NUL, into AUDIT_LINE_MAX bytes. Returns its length. */
size_t fsd_audit_line(const struct audit_entry *entry, char *line);

#endif
