/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the module of the network: what the location service says of volumes. */
#ifndef CLIENT_NET_RECORD_H
#define CLIENT_NET_RECORD_H

#include "client/net/release.h"
#include "client/net/server.h"
#include "client/net/volume.h"

/* ---- location.c ---- */

/* An entry of the location service, of whatever generation. */
struct cl_entry {
	char name[VL_MAXNAMELEN];
	uint32_t id[MAXTYPES]; /* by enum afs_vl_type; 0: that volume does not exist */
	unsigned count;	       /* of sites */
	struct {
		bool by_uuid;
		struct rxw_uuid uuid; /* or else: */
		uint32_t address;     /* 10.77.0.1 = 0x0a4d0001 */
		int32_t generation;   /* of the addresses of the UUID */
		int32_t flags;	      /* VLSF_… */
	} site[NMAXNSERVERS];
	/* The location server that answered, for servers without an address of its family. */
	struct sockaddr_storage from;
	socklen_t from_len;
	uint16_t fs_port;
};

/*
 * Ask the location servers of a cell for a volume by name or decimal number. 0; -ENODEV: there is
 * none; -ETIMEDOUT: none of them answers; or another negative errno value.
 */
int cl_location_ask(struct cl_net *net, struct cl_cell *cell, const char *name,
		    const struct cl_caller *caller, struct cl_entry *entry,
		    struct rxafs_failure *failure);
/* None has answered a question of the last half minute, so that a renewal need not wait for another one. */
bool cl_location_silent(struct cl_net *net, struct cl_cell *cell);
/* Whether an IPv4 address can be that of a server at all. */
bool cl_location_may_be_server(uint32_t address);
/*
 * The addresses of a server, with ports. 0 with their number, which may be 0, or a negative errno
 * value.
 */
int cl_location_addresses(struct cl_net *net, struct cl_cell *cell, const struct rxw_uuid *uuid,
			  const struct cl_caller *caller, struct cl_address list[CL_ADDRESSES],
			  unsigned *count, int32_t *generation, struct rxafs_failure *failure);
/* The addresses of the location servers of a cell that was used. Never waits. */
unsigned cl_location_guides(struct cl_net *net, uint32_t cell, struct cl_address *list,
			    unsigned max);
void cl_locations_free(struct cl_net *net);

/* ---- record.c ---- */

struct cl_site {
	struct cl_server *server;
	int32_t flags; /* VLSF_… */
	bool behind;   /* by the marks of a release another one is asked first */
};

/* How long calls to a site of a volume wait, for all that wait: by the kind of refusal (K-135). */
struct cl_pause {
	uint64_t until; /* no call before this time; 0 = none */
	uint32_t step;	/* of the sequence of waits */
};

struct cl_volume {
	struct cl_record *record;
	void *link; /* in the table by cell and id */
	enum afs_vl_type type;
	uint32_t id;		   /* 0: this type does not exist; set once */
	_Atomic bool offline_told; /* the log has a line since it went off-line */
	/* the record's lock covers the rest: */
	struct cl_pause pause[NMAXNSERVERS]; /* by index of the site */
	uint64_t refused[NMAXNSERVERS]; /* since when a site has given no answer; 0 = it does */
	uint32_t gone;			/* bits of the sites that do not have it */
	struct cl_releases releases;	/* of a read-only or backup one (K-052) */
	uint32_t release; /* number of the current one; 0 = none. Later ones have greater numbers */
	int last;	  /* the site that answered last; -1 = none */
};

/* A name of a record. Former ones stay as long as the record: somebody may be reading them. */
struct cl_record_name {
	struct cl_record_name *former;
	char text[VL_MAXNAMELEN];
};

struct cl_record {
	struct cl_net *net;
	struct cl_cell *cell;
	struct cl_record_name *_Atomic name; /* without suffix; changed with the table lock held */
	void *link;			     /* in the table by cell and name */
	_Atomic unsigned refs;		     /* of volumes that are in use; the tables have none */
	struct cl_volume volumes[MAXTYPES];
	_Atomic bool stale;	  /* to be refreshed at the next use */
	_Atomic uint32_t standing; /* see cl_volume_standing() */
	_Atomic uint64_t used_at; /* last released */

	pthread_mutex_t lock; /* covers the members below, and parts of `volumes` */
	struct cl_site sites[NMAXNSERVERS];
	unsigned site_count;
	uint64_t fetched_at;
	uint64_t renew_at;     /* it is asked for again at the next use after this time */
	uint32_t version;      /* raised when sites or ids have changed */
	_Atomic bool replaced; /* in no table any more: another record has its name or ids */
};

int cl_records_create(struct cl_net *net);
void cl_records_free(struct cl_net *net);
/* A look-up of its name may give another volume from now on. */
static inline void cl_record_unsettle(struct cl_record *record)
{
	atomic_fetch_add(&record->standing, 1);
}
/* The record of this volume is refreshed at the next use, if it is known. */
void cl_record_doubt(struct cl_net *net, uint32_t cell, uint32_t id);
/*
 * Refresh the record of a volume, unless that has happened since `since` (cl_net_now()). *changed:
 * sites or ids are others now. One thread asks, the others wait for it.
 */
int cl_record_refresh(struct cl_volume *volume, uint64_t since, const struct cl_caller *caller,
		      bool *changed, struct rxafs_failure *failure);
/* Refresh it if it is older than an hour or in doubt. An old one is used if nobody answers. */
int cl_record_renew(struct cl_volume *volume, const struct cl_caller *caller,
		    struct rxafs_failure *failure);
/* Its name; valid as long as the record. */
const char *cl_record_name(const struct cl_record *record);
/* Whether a site has volumes of a type. */
bool cl_site_serves(const struct cl_site *site, enum afs_vl_type type);
/* Whether the location service says that it has the new release. */
static inline bool cl_site_marked(const struct cl_site *site)
{
	return (site->flags & (VLSF_NEWREPSITE | VLSF_DONTUSE)) == VLSF_NEWREPSITE;
}

/* ---- failure.c ---- */

/* Fills in a failure that this side found. Returns -number. */
int cl_fail(struct rxafs_failure *failure, int number, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
