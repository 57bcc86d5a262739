/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole fileserver as one object: what main() starts, reports on and stops. */
#ifndef FILESERVER_SERVER_H
#define FILESERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rxwire/config.h>

#include "fileserver/guard.h"
#include "fileserver/layer.h"
#include "fileserver/state.h"
#include "tools/common/metrics.h"
#include "tools/common/trace.h"

struct fsd_settings {
	const char *export; /* directory to serve */
	const char *volume; /* NULL: the last part of `export`, or "export" */
	const char *cell;   /* NULL: none; only said in the log, clients bring their own */
	const char *listen; /* address or host name */
	uint64_t port, vl_port, vol_port; /* 0: any free one */
	const char *state;		  /* NULL: the default place */
	bool all_files;
	const char *const *advertise; /* IPv4 addresses for the location service */
	size_t advertise_count;
	uint64_t readers;    /* threads that read from the disk */
	uint64_t read_ahead; /* bytes of all their buffers */
	const char *timeline; /* file for the time line of reads and sends; NULL: none */
	uint64_t watches;    /* directories watched for changes */
	uint64_t promises;   /* at most, in all */
	uint64_t drain_ms;   /* how long calls may go on when the server is told to stop */
	struct fsd_guard_options guard; /* `listen` is filled in */
	bool rpc_stats;	     /* offer statistics of procedure calls on all ports */
	bool rpc_stats_open; /* to other machines, too */
	struct tools_metrics_options metrics; /* figures for Prometheus; none by default */
	struct tools_trace_options trace;     /* packet traces; none by default; `say` is filled in */
	struct fsd_layer
		*layer; /* tests: serve this in place of `export`, which then is only a name */
};

struct fsd_server;

/*
 * Start serving. `config` is that of the engine. Returns 0, or -1 with one line in
 * message[FSD_MESSAGE_MAX] that names the thing and says what to do.
 */
int fsd_server_start(const struct fsd_settings *settings, const struct rxw_config *config,
		     struct fsd_server **server, char *message);

/*
 * Look at what fsd_server_start() would need before it touches the network or the state: the export
 * can be opened, keys can be read, rules are understood. Returns 0, or -1 with such a line in message.
 */
int fsd_server_check(const struct fsd_settings *settings, char *message);

/* "listening fs ADDR:PORT vl ADDR:PORT vol ADDR:PORT" */
void fsd_server_where(const struct fsd_server *server, char *text, size_t size);
uint16_t fsd_server_fs_port(const struct fsd_server *server);
uint16_t fsd_server_vl_port(const struct fsd_server *server);
uint16_t fsd_server_vol_port(const struct fsd_server *server);
uint32_t fsd_server_volume_id(const struct fsd_server *server);

/* Read the keys of the service again. */
void fsd_server_reload(struct fsd_server *server);

/* Statistics as log lines. */
void fsd_server_report(struct fsd_server *server);

/* Begin a packet trace of all ports, or write it and end it. */
void fsd_server_trace(struct fsd_server *server);

/*
 * Let calls end, for at most drain_ms, then free everything. Returns 0, or 1 if calls had to be
 * aborted.
 */
int fsd_server_stop(struct fsd_server *server);

#endif
