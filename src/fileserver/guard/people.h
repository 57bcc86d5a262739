/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who callers are: the ids of users and their groups, of machines, and names. They come from the database of --protection, or from the
 * protection servers of a cell. These may take their time, so a call that needs them does not wait on its thread: it is told.
 */
#ifndef FILESERVER_GUARD_PEOPLE_H
#define FILESERVER_GUARD_PEOPLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/security.h>

#include "fileserver/base/base.h"
#include "fileserver/guard/guard.h"
#include "protection/protection.h"

/*
 * Who asks, in rounds: between the begin and the end of one it may call several functions. If one has returned -EAGAIN, `ready` is called
 * once after the end, on any thread; then there is another round. It must not wait.
 */
struct fsd_asker {
	void (*ready)(struct fsd_asker *asker);
	struct fsd_share_key caller; /* whose share the question takes */
	bool final;		     /* it takes what is known, and asks nothing */
	/* The people's: */
	bool waits;
	_Atomic unsigned holds;
	struct fsd_asker *next;
};
static inline void fsd_asker_begin(struct fsd_asker *asker)
{
	asker->waits = false;
	atomic_store(&asker->holds, 1);
}
/* Only if a function has returned -EAGAIN: the asker may be gone then. */
static inline void fsd_asker_end(struct fsd_asker *asker)
{
	if (atomic_fetch_sub(&asker->holds, 1) == 1)
		asker->ready(asker);
}

/* Ids that entries of ACLs are compared with, ascending: those of a caller, or of its machine. */
struct fsd_ids {
	int32_t id;	    /* of the user */
	int32_t *ids;	    /* room for `room` of them */
	size_t room, count; /* count > room: there are more than were stored */
};

/*
 * Any thread; none of the functions waits. Results: 0; -ENOENT: there is none; -EAGAIN: it is being asked, or without an asker it would have
 * to be; -EBUSY: it cannot be known now, or too much is being asked.
 */
struct fsd_people;
struct fsd_people_ops {
	/* An authenticated identity. */
	int (*user)(struct fsd_people *people, const struct rxw_identity *identity,
		    struct fsd_asker *asker, struct fsd_ids *ids);
	/* The groups of the machine with this IPv4 address, which may be none. */
	int (*machine)(struct fsd_people *people, uint32_t address, struct fsd_asker *asker,
		       struct fsd_ids *ids);
	int (*id_of)(struct fsd_people *people, const char *name, struct fsd_asker *asker,
		     int32_t *id);
	int (*name_of)(struct fsd_people *people, int32_t id, struct fsd_asker *asker,
		       char name[FSD_PERSON_MAX + 1]);
	/* Nothing that was known before is used any more. */
	void (*forget)(struct fsd_people *people);
};

struct fsd_people {
	const struct fsd_people_ops *ops;
};

/* Those of a database, which outlives it. */
struct fsd_database_people {
	struct fsd_people people;
	struct prot *prot;
};
void fsd_people_of_database(struct fsd_database_people *people, struct prot *prot);

#endif
