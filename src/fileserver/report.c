/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of the server as text, and what it logs about itself. */
#include "fileserver/parts.h"

#include <stdio.h>
#include <string.h>

#include "common/counters.h"
#include "program/address.h"

#define TRIM_TICKS 10u /* seconds between looks at memory that was freed */

static char *endpoint_text(rxw_endpoint *endpoint, char *text, size_t size)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	if (rxw_endpoint_address(endpoint, &sa, &length))
		snprintf(text, size, "?");
	else
		tools_address_text(&sa, text, size);
	return text;
}

/* Log the effective settings. */
static void log_endpoint(struct fsd_server *server, const char *name, enum fsd_service_kind kind,
			 rxw_endpoint *endpoint)
{
	struct rxw_effective e = {.size = sizeof(e)};
	char where[TOOLS_ADDRESS_TEXT];

	if (!endpoint || rxw_endpoint_effective(endpoint, &e))
		return;
	fsd_log(RXW_LOG_INFO,
		"%s on %s: protection %s; %u listener%s, "
		"back-end %s, GSO %s, GRO %s, window %u, packets of %u bytes, "
		"buffers of %zu and %zu KiB",
		name, endpoint_text(endpoint, where, sizeof(where)),
		fsd_guard_level(server->guard, kind), e.listeners, e.listeners == 1 ? "" : "s",
		e.io, e.gso ? "on" : "off", e.gro ? "on" : "off", e.window, e.mtu, e.rcvbuf / 1024,
		e.sndbuf / 1024);
}

void fsd_server_log_beginning(struct fsd_server *server)
{
	const struct fsd_settings *settings = &server->settings;

	fsd_log(RXW_LOG_INFO, "version %s, library %s", PACKAGE_VERSION, rxw_version());
	if (!settings->store)
		fsd_log(RXW_LOG_INFO, "volume %s (%u) of %s%s%s, from %s",
			fsd_server_volume_name(server), (unsigned)fsd_server_volume_id(server),
			settings->cell ? "cell " : "this server",
			settings->cell ? settings->cell : "",
			settings->all_files ? ", all files" : "", server->export);
	else
		fsd_log(RXW_LOG_INFO, "volumes of %s%s, from the store %s, durability %s",
			settings->cell ? "cell " : "this server",
			settings->cell ? settings->cell : "", server->export,
			settings->durability ? settings->durability : "lazy");
	log_endpoint(server, "fs", FSD_FS, server->fs);
	log_endpoint(server, "vl", FSD_VL, server->vl);
	log_endpoint(server, "vol", FSD_VOL, server->vol);
	log_endpoint(server, "pt", FSD_VL, server->pt);
	log_endpoint(server, "bos", FSD_VL, server->bos);
	fsd_guard_log_keys(server->guard);
}

static uint16_t endpoint_port(rxw_endpoint *endpoint)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	return rxw_endpoint_address(endpoint, &sa, &length) ? 0 : tools_address_port(&sa);
}

void fsd_server_where(const struct fsd_server *server, char *text, size_t size)
{
	char fs[TOOLS_ADDRESS_TEXT], vl[TOOLS_ADDRESS_TEXT] = "", vol[TOOLS_ADDRESS_TEXT],
				     pt[TOOLS_ADDRESS_TEXT] = "", bos[TOOLS_ADDRESS_TEXT] = "";

	if (server->vl)
		endpoint_text(server->vl, vl, sizeof(vl));
	if (server->pt)
		endpoint_text(server->pt, pt, sizeof(pt));
	if (server->bos)
		endpoint_text(server->bos, bos, sizeof(bos));
	snprintf(text, size, "listening fs %s%s%s vol %s%s%s%s%s",
		 endpoint_text(server->fs, fs, sizeof(fs)), *vl ? " vl " : "", vl,
		 endpoint_text(server->vol, vol, sizeof(vol)), *pt ? " pt " : "", pt,
		 *bos ? " bos " : "", bos);
}

void fsd_server_title(const struct fsd_server *server, char *text, size_t size)
{
	char fs[TOOLS_ADDRESS_TEXT];

	endpoint_text(server->fs, fs, sizeof(fs));
	if (!server->settings.store)
		snprintf(text, size, "volume %s of %.200s on %s", fsd_server_volume_name(server),
			 server->export, fs);
	else
		snprintf(text, size, "store %.200s on %s", server->export, fs);
}

uint16_t fsd_server_fs_port(const struct fsd_server *server)
{
	return endpoint_port(server->fs);
}

uint16_t fsd_server_vl_port(const struct fsd_server *server)
{
	return server->vl ? endpoint_port(server->vl) : 0;
}

uint16_t fsd_server_vol_port(const struct fsd_server *server)
{
	return endpoint_port(server->vol);
}

uint16_t fsd_server_bos_port(const struct fsd_server *server)
{
	return server->bos ? endpoint_port(server->bos) : 0;
}

uint32_t fsd_server_volume_id(const struct fsd_server *server)
{
	struct store_volume first;

	return server->served->ops->volume_next(server->served, 0, &first) ? 0 : first.id;
}

/* Contended acquisitions of locks. */
static void report_locks(const struct counters *stats)
{
	static const char lock[] = "lock_contended.";
	uint64_t packets = counters_sum(stats, "packets.");
	const struct rxw_counter *c;
	char text[512] = "";
	size_t n = 0;

	for (size_t i = 0; (c = rxw_counter_at(i)) && packets && n < sizeof(text); i++)
		if (stats->value[i] && !strncmp(c->name, lock, strlen(lock)))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s %.1f",
					      n ? "," : "", c->name + strlen(lock),
					      (double)stats->value[i] * 1e6 / (double)packets);
	fsd_log(RXW_LOG_INFO, "contended locks per million packets:%s", n ? text : " none");
}

void fsd_server_tick(struct fsd_server *server)
{
	struct fsd_reader_stats readers;
	size_t peak = 0, packets = rxw_engine_memory(server->engine, &peak);

	if (++server->ticks % TRIM_TICKS)
		return;
	fsd_readers_stats(server->readers, &readers);
	fsd_trim(&server->trim, packets + readers.memory, peak);
}

void fsd_server_report(struct fsd_server *server)
{
	struct counters c;
	size_t peak = 0, memory = rxw_engine_memory(server->engine, &peak);

	fsd_service_log(server->service);
	if (counters_read(&c, server->fs) == 0) {
#define COUNT(name) (unsigned long long)counters_get(&c, name)
		fsd_log(RXW_LOG_INFO,
			"datagrams sent %llu, received %llu, in %llu and %llu system calls; "
			"packets retransmitted %llu; connections %llu, calls active %llu, "
			"workers %llu",
			COUNT("datagrams.sent"), COUNT("datagrams.received"),
			COUNT("syscalls.send"), COUNT("syscalls.receive"), COUNT("retransmitted"),
			COUNT("connections_server"), COUNT("calls_active"), COUNT("workers"));
#undef COUNT
		report_locks(&c);
	}
	fsd_log(RXW_LOG_INFO, "packet memory %zu KiB, at most %zu KiB", memory / 1024, peak / 1024);
}
