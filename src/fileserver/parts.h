/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the file server: its parts, and the functions that connect them. */
#ifndef FILESERVER_PARTS_H
#define FILESERVER_PARTS_H

#include <limits.h>
#include <pthread.h>

#include <rxwire/rxwire.h>

#include "fileserver/audit/audit.h"
#include "fileserver/base/base.h"
#include "fileserver/bos/bos.h"
#include "fileserver/callbacks/callbacks.h"
#include "fileserver/callbacks/memory.h"
#include "fileserver/pt/pt.h"
#include "fileserver/control/control.h"
#include "fileserver/io/io.h"
#include "fileserver/member/member.h"
#include "fileserver/server.h"
#include "fileserver/service/service.h"
#include "fileserver/storage.h"
#include "volume/export/export.h"
#include "protection/protection.h"

struct fsd_server {
	struct fsd_settings settings;
	char export[PATH_MAX]; /* the directory that is served, or that of the store */
	struct fsd_state state;
	struct store *served; /* the store, or the exported directory as one */
	struct export_layer *layer; /* of the exported directory */
	bool own_layer;
	struct fsd_who anonymous, somebody; /* for the access lists that it shows */
	struct fsd_callbacks *callbacks;
	struct fsd_remember *remember;
	pthread_mutex_t
		lock; /* covers `callbacks` for wake_callbacks(), `service` for explain_limit() */
	struct fsd_clients *clients;
	struct fsd_readers *readers;
	struct fsd_guard *guard;
	struct fsd_timeline *timeline;
	struct fsd_audit *audit;
	rxw_rpcstats *calls;
	uint32_t advertise[FSD_ADDRS_MAX];
	unsigned advertise_count;
	struct fsd_service *service;
	rxw_engine *engine;
	rxw_endpoint *fs, *vl, *vol, *pt,
		*bos;			  /* pt: NULL without `prot`; bos: NULL unless wanted */
	struct prot *prot;		  /* NULL: users are not known, or the cell knows them */
	struct fsd_member *member;	  /* NULL: locations, users and groups are here */
	bool joined;			  /* the store belongs to its cell since this start */
	struct fsd_pt *pt_service;
	struct fsd_bos *bos_service;
	struct tools_metrics *metrics;
	struct tools_trace *trace;
	struct rxw_rpc_observer observer; /* of the calls on all endpoints */
	struct fsd_key_loads key_loads;
	struct fsd_control *control;
	struct fsd_limit *limit; /* on stopping; NULL: there is none */
	bool drained, aborted;
	/* The thread that calls fsd_server_tick() has these: */
	struct fsd_trim trim;
	unsigned ticks;
};

/* Unless they say otherwise, functions return 0, or -1 with one line in message[FSD_MESSAGE_MAX]. */

/* -- volumes.c -- */

/* Opens the directory of --export, and nothing else. */
int fsd_server_open_export(struct fsd_server *server, char *message);
/* The name of an exported directory: that of --volume, or the last part of the path if it is a valid name. */
const char *fsd_server_volume_name(const struct fsd_server *server);
/* Opens the store, or the state of the exported directory. FSD_WRONG_SETTINGS: only other settings help. */
int fsd_server_open_volumes(struct fsd_server *server, char *message);
/* Starts the threads that only an exported directory needs. False: no memory. */
bool fsd_server_start_export(struct fsd_server *server);
/* Whether ACLs must not let callers without an identity write. */
bool fsd_server_no_anonymous_writes(const struct fsd_server *server);
/* Serves the requests of rxvol, if a store is served. */
int fsd_server_open_control(struct fsd_server *server, char *message);
/* Opens the users and groups of --protection, if it is given. */
int fsd_server_open_protection(struct fsd_server *server, char *message);
/* Tells the store which ids of users were given out. */
void fsd_server_note_ids(struct fsd_server *server);

/* -- holders.c -- */

/* Makes the table of clients, with those of the last server. Without memory server->clients stays NULL, and the result is 0. */
int fsd_server_create_clients(struct fsd_server *server, char *message);
/* Tells clients, for a few seconds, that the promises of this server end. It serves no further calls. */
void fsd_server_break_promises(struct fsd_server *server);

/* -- network.c -- */

int fsd_server_open_guard(struct fsd_server *server, char *message);
/* Opens the ports, and begins to serve. */
int fsd_server_open_network(struct fsd_server *server, const struct rxw_config *config,
			    char *message);
/* Begins metrics and packet traces, if they are wanted. */
int fsd_server_open_monitoring(struct fsd_server *server, char *message);

/* -- settings.c -- */

/* Checks everything that needs neither the network nor the state. Returns as fsd_server_check(). */
int fsd_server_check_settings(struct fsd_server *server, char *message);

/* -- report.c -- */

/* Logs the version, the volumes and the effective settings of the ports. */
void fsd_server_log_beginning(struct fsd_server *server);

/* -- sandbox.c: paths that the unit of a service manager hides from the server, or lets it only read -- */

/*
 * Look at a path that the server is to use, as the value of an option; `writes`: it has to write there. -1 with one line
 * in message[FSD_MESSAGE_MAX] that names the line of the unit, if a service manager runs this process and its rules
 * forbid that; else 0, also if the path cannot be used for another reason.
 */
int fsd_sandbox_check(const char *option, const char *path, bool writes, char *message);

#endif
