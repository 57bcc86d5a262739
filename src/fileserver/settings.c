/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of the settings that need neither the network nor the state. */
#include "fileserver/parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "afs/volname.h"
#include "common/failure.h"
#include "fileserver/storage.h"
#include "program/address.h"

static int check_volume_name(struct fsd_server *server, char *message)
{
	const char *name = fsd_server_volume_name(server);

	if (afs_volume_name_valid(name))
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX,
			 "--volume %.100s: not a volume name; use up to 64 letters, digits, "
			 "'.', '_' and '-', not only digits, "
			 "without \".readonly\" or \".backup\" at the end",
			 name);
}

static int check_ports(struct fsd_server *server, char *message)
{
	static const char *const names[] = {"--port", "--vl-port", "--vol-port", "--pt-port",
					    "--bos-port"};
	const struct fsd_settings *settings = &server->settings;
	/* 0: any free one, or none. */
	const uint64_t ports[] = {settings->port, settings->vl_port, settings->vol_port,
				  settings->protection ? settings->pt_port : 0,
				  settings->bos ? settings->bos_port : 0};

	for (size_t i = 1; i < sizeof(ports) / sizeof(ports[0]); i++)
		for (size_t k = 0; k < i; k++) {
			if (!ports[i] || ports[i] != ports[k])
				continue;
			return fail_with(-1, message, FSD_MESSAGE_MAX,
					 "%s %u is also the port of %s: each service needs its own",
					 names[i], (unsigned)ports[i], names[k]);
		}
	return 0;
}

static int check_audit(const struct fsd_settings *settings, char *message)
{
	if (settings->audit && strcmp(settings->audit, "strict") != 0 &&
	    strcmp(settings->audit, "lossy") != 0) {
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--audit %.100s: give strict or lossy", settings->audit);
	}
	if ((settings->audit_reads || settings->audit) && !settings->audit_log)
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--audit%s without a log: give --audit-log FILE",
				 settings->audit_reads ? "-reads" : "");
	return 0;
}

static int check_metrics(const struct fsd_settings *settings, char *message)
{
	if (!settings->metrics.interval_ms || settings->metrics.file)
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX,
			 "--metrics-interval without a file: give --metrics-file FILE");
}

/* The folder of the cell says which cell and which keys. */
static int check_cell(struct fsd_server *server, char *message)
{
	struct fsd_settings *settings = &server->settings;
	const struct fsd_member_options options = {
		.folder = settings->cell_config,
		.realm = settings->guard.realm,
		.dots = settings->dotted_principals,
		.vl_port = (uint16_t)settings->vl_port,
		.pt_port = (uint16_t)settings->pt_port,
		.fresh_s = settings->identity_age,
	};

	if (!settings->cell_config)
		return 0;
	if (settings->leave_cell)
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--leave-cell: with --cell-config the store belongs to a cell");
	if (settings->protection)
		return fail_with(
			-1, message, FSD_MESSAGE_MAX,
			"--protection: with --cell-config the protection servers of the cell have "
			"users and groups");
	if (fsd_member_open(&options, &server->member, message))
		return -1;
	if (settings->cell && strcmp(settings->cell, fsd_member_cell(server->member)) != 0)
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--cell %.100s: the folder of --cell-config is that of %.100s",
				 settings->cell, fsd_member_cell(server->member));
	settings->cell = settings->guard.cell = fsd_member_cell(server->member);
	if (!settings->guard.keytab)
		settings->guard.keytab = fsd_member_keys(server->member);
	settings->guard.superuser = fsd_member_superuser;
	settings->guard.superuser_arg = server->member;
	return 0;
}

/* Checks the volumes that are served, and the place of the server's state. */
static int check_served(struct fsd_server *server, char *message)
{
	const struct fsd_settings *settings = &server->settings;

	if (!settings->store)
		return fsd_server_open_export(server, message) ? -1
							       : check_volume_name(server, message);
	if (settings->state)
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--state: with --store the state is in the store's directory");
	if (settings->guard.allow_count || settings->volume || settings->all_files)
		return fail_with(
			-1, message, FSD_MESSAGE_MAX,
			"--allow, --volume and --all-files are for --export: rights in a store are "
			"those of its ACLs (rxvol acl)");
	if (!realpath(settings->store, server->export))
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--store %.300s: %s; make a store with rxvol -S DIR create NAME",
				 settings->store, strerror(errno));
	return fsd_storage_check(settings->durability, message);
}

/* The text is no address. A name server that has no answer today may have one later. */
static bool is_host_name(const char *text)
{
	static const char digits[] = "0123456789.", others[] = "-_"
							       "abcdefghijklmnopqrstuvwxyz"
							       "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t numeric = strspn(text, digits), length = strlen(text), i;

	for (i = numeric; text[i] && (strchr(digits, text[i]) || strchr(others, text[i])); i++)
		;
	return numeric < length && i == length;
}

/* A failure of the name service may be temporary. */
static int check_listen(struct fsd_server *server, char *message)
{
	struct tools_address address;
	char reason[256];
	int rc;

	if (tools_resolve(server->settings.listen, 0, 1, &address, reason, sizeof(reason)) == 0)
		return 0;
	rc = errno == EAGAIN || is_host_name(server->settings.listen) ? -1 : FSD_WRONG_SETTINGS;
	snprintf(message, FSD_MESSAGE_MAX, "--listen %.100s: %s%s", server->settings.listen, reason,
		 rc == FSD_WRONG_SETTINGS
			 ? "; give an address without brackets and port, which is that of --port"
			 : "");
	return rc;
}

/* The rules of a unit do not change by themselves, so a path that they forbid is a wrong setting. */
static int check_sandbox(const struct fsd_server *server, char *message)
{
	const struct fsd_settings *settings = &server->settings;
	/* A store that is missing is no matter of the unit. */
	bool missing = settings->store && access(settings->store, F_OK) < 0 && errno == ENOENT;
	const struct {
		const char *option, *path;
		bool writes;
	} uses[] = {
		{"--export", settings->layer ? NULL : settings->export, false},
		{"--store", missing ? NULL : settings->store, true},
		{"--state", settings->state, true},
		{"--protection", settings->protection, true},
		{"--keytab", settings->guard.keytab, false},
		{"--cell-config", settings->cell_config, false},
		{"--audit-log", settings->audit_log, true},
		{"--timeline", settings->timeline, true},
		{"--trace-dir", settings->trace.dir, true},
		{"--metrics-file", settings->metrics.file, true},
		{"--metrics-socket", settings->metrics.socket, true},
	};

	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		if (fsd_sandbox_check(uses[i].option, uses[i].path, uses[i].writes, message))
			return -1;
	return 0;
}

static int add_advertise(struct fsd_server *server, const char *text, char *message)
{
	struct in_addr address;
	char part[64];

	while (*text) {
		size_t n = strcspn(text, ",");

		snprintf(part, sizeof(part), "%.*s", (int)(n < 63 ? n : 63), text);
		if (inet_pton(AF_INET, part, &address) != 1)
			return fail_with(-1, message, FSD_MESSAGE_MAX,
					 "--advertise %.60s: not an IPv4 address; location entries "
					 "can hold no other",
					 part);
		if (server->advertise_count == FSD_ADDRS_MAX)
			return fail_with(-1, message, FSD_MESSAGE_MAX,
					 "--advertise: more than %d addresses", FSD_ADDRS_MAX);
		server->advertise[server->advertise_count++] = ntohl(address.s_addr);
		text += n + (text[n] == ',');
	}
	return 0;
}

/* Everything that needs neither the network nor the state. */
int fsd_server_check_settings(struct fsd_server *server, char *message)
{
	int rc = check_listen(server, message);

	if (rc)
		return rc;
	if (check_ports(server, message) || check_sandbox(server, message) ||
	    check_cell(server, message) || fsd_server_open_guard(server, message) ||
	    check_audit(&server->settings, message) || check_metrics(&server->settings, message) ||
	    check_served(server, message) ||
	    tools_trace_check(&server->settings.trace, message, FSD_MESSAGE_MAX))
		return FSD_WRONG_SETTINGS;
	for (size_t i = 0; i < server->settings.advertise_count; i++)
		if (add_advertise(server, server->settings.advertise[i], message))
			return FSD_WRONG_SETTINGS;
	return 0;
}
