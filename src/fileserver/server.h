/* SPDX-License-Identifier: BSD-2-Clause */
/* The file server: main() starts it, prints its statistics and stops it. */
#ifndef FILESERVER_SERVER_H
#define FILESERVER_SERVER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rxwire/config.h>

#include "fileserver/guard/guard.h"
#include "volume/export/tree.h"
#include "program/metrics.h"
#include "program/trace.h"

struct fsd_settings {
	const char *export;	/* directory to serve; NULL: `store` */
	const char *store;	/* store to serve in place of a directory */
	const char *durability; /* of the store: strict, lazy; NULL: lazy */
	const char *copy;	/* the directory for the copy of its metadata; NULL: the store */
	bool anonymous_writes;	/* ACLs may let anonymous callers of other machines write */
	const char *audit_log;	/* file; NULL: none */
	const char *audit;	/* strict, lossy; NULL: lossy */
	bool audit_reads;	/* calls that only read are in the audit log, too */
	const char *volume;	/* NULL: the last part of `export`, or "export" */
	const char *cell;	/* NULL: none, and no root.afs; clients bring their own */
	const char *listen;	/* address or host name */
	uint64_t port, vl_port, vol_port; /* 0: any free one */
	/* Users and groups: a file, or a directory with protection.db. NULL: no such service. */
	const char *protection;
	/* A folder of OpenAFS's, of the cell whose databases other servers have, at vl_port and pt_port; NULL: they are here. */
	const char *cell_config;
	bool leave_cell;	/* the store was one of such a cell, and is not any more */
	uint64_t identity_age;	/* s: how long its answers about users are used; 0: the default */
	bool dotted_principals; /* john.doe is a user of that name; john/doe is not then */
	uint64_t pt_port;  /* of the protection service; 0: any free one */
	bool bos;	   /* answer `bos status` at bos_port; 0: any free one */
	uint64_t bos_port;
	const char *state; /* NULL: the default place; must be NULL with `store` */
	bool all_files;
	const char *const *advertise; /* IPv4 addresses for the location service */
	size_t advertise_count;
	uint64_t readers;     /* threads that read from the disk */
	uint64_t read_ahead;  /* bytes of all their buffers */
	const char *timeline; /* file for the time line of reads and sends; NULL: none */
	uint64_t watches;     /* directories watched for changes */
	uint64_t promises;    /* at most, in all */
	uint64_t drain_ms;    /* how long calls may go on when the server is told to stop */
	/*
	 * How much longer stopping may take before the process ends with status 1, for a handler
	 * that does not return; 0: no limit
	 */
	uint64_t stop_ms;
	struct fsd_guard_options guard;	      /* `listen` is filled in */
	bool rpc_stats;			      /* offer statistics of procedure calls on all ports */
	bool rpc_stats_open;		      /* to other machines, too */
	struct tools_metrics_options metrics; /* figures for Prometheus; none by default */
	uint64_t metrics_volumes; /* the most volumes of a store with figures of their own */
	struct tools_trace_options trace; /* packet traces; none by default; `say` is filled in */
	struct export_layer
		*layer; /* tests: serve this in place of `export`, which then is only a name */
};

struct fsd_server;

#define FSD_WRONG_SETTINGS -2

/*
 * Start serving. `config` is that of the engine. Returns 0; FSD_WRONG_SETTINGS if
 * fsd_server_check() finds something that does not change by itself; -1 for what else goes wrong:
 * with one line in message[FSD_MESSAGE_MAX] that names the thing and says what to do.
 */
int fsd_server_start(const struct fsd_settings *settings, const struct rxw_config *config,
		     struct fsd_server **server, char *message);

/*
 * What fsd_server_start() looks at before it touches the network or the state: the export can be
 * opened, keys can be read, rules, names and addresses are understood, ports differ, the directory
 * of traces is there. Returns as that does.
 */
int fsd_server_check(const struct fsd_settings *settings, char *message);

/* "listening fs ADDR:PORT vl ADDR:PORT vol ADDR:PORT", then " pt ADDR:PORT" with `protection`, " bos ADDR:PORT" with `bos`. */
void fsd_server_where(const struct fsd_server *server, char *text, size_t size);
uint16_t fsd_server_fs_port(const struct fsd_server *server);
uint16_t fsd_server_vl_port(const struct fsd_server *server);
uint16_t fsd_server_vol_port(const struct fsd_server *server);
uint16_t fsd_server_bos_port(const struct fsd_server *server); /* 0: no such service */
/* The id of the exported directory, or the smallest id of the store; 0: the store has no volume. */
uint32_t fsd_server_volume_id(const struct fsd_server *server);

/* The volume, and where: "volume NAME of PATH on ADDR:PORT", or "store PATH on ADDR:PORT". */
void fsd_server_title(const struct fsd_server *server, char *text, size_t size);

/*
 * Read the keys of the service again, and open the audit log anew. 0, or -1 after a log line: the
 * old keys stay.
 */
int fsd_server_reload(struct fsd_server *server);

/* Statistics as log lines, also between fsd_server_drain() and fsd_server_stop(). */
void fsd_server_report(struct fsd_server *server);

/* Every second, on one thread: memory goes back to the system after a peak. */
void fsd_server_tick(struct fsd_server *server);

/* Begin a packet trace of all ports, or write it and end it. */
void fsd_server_trace(struct fsd_server *server);

/*
 * Refuse new calls and let those that run end, for at most drain_ms. Returns 0, or 1 if calls had
 * to be aborted.
 */
int fsd_server_drain(struct fsd_server *server);

/* Drain if that was not done, then free everything. Returns the same. */
int fsd_server_stop(struct fsd_server *server);

/*
 * -- reload.c: reloading with a result. SIGHUP alone has no result, and the service manager would report success
 * in any case. `rxfsd --reload PID` therefore queues SIGHUP with a value, and the server answers
 * with a queued signal, which is ignored by a sender that does not wait for it. --
 */

/*
 * Make the rxfsd with this process id read its keys again, and wait for the result for at most
 * limit_ms. Returns the exit status, after one line if it is not 0. If the calling process is root,
 * it changes to the user of that process. No other threads may run.
 */
int fsd_reload_ask(uint64_t pid, unsigned limit_ms);

/* In the server: send the result (0 or -1) to the sender of this SIGHUP, if it waits for one. */
void fsd_reload_answer(const siginfo_t *signal, int result);

#endif
