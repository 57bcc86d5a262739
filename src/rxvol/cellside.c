/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to the servers of a cell with its own key, and calls of its location service. */
#include "rxvol/cellside.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/call.h>
#include <rxwire/endpoint.h>
#include <rxwire/engine.h>
#include <rxwire/error.h>
#include <rxwire/keys.h>
#include <rxwire/rpc.h>
#include <rxwire/rxkad.h>
#include <rxwire/token.h>

#include "afs/numbers.h"
#include "client/cell/cells.h"
#include "common/clock.h"
#include "program/address.h"
#include "program/message.h"

#define CONFIG_FOLDER "/etc/openafs/server"
#define VOL_PORT      7005
#define PATIENCE_S    30 /* until the location servers have chosen one that takes changes */
#define PROBE_MS      6000 /* until one that does not answer is taken for dead */
#define NO_QUORUM     5376
#define NOT_SYNC      5377
#define PARTITIONS    256

struct cellside {
	char name[CL_CELL_NAME];
	rxw_endpoint *endpoint;
	rxw_engine *engine;
	rxw_token *token;
	struct cl_cell_server servers[CL_CELL_SERVERS];
	rxw_connection *location[CL_CELL_SERVERS];
	int count;
	pthread_mutex_t lock; /* covers `first` */
	int first;	      /* the server that answered last */
};

/* -- opening -- */

/* The value of --location as cl_cells takes it; to be freed. */
static char *join_locations(const struct cellside_options *options)
{
	size_t size = strlen(options->cell) + 2;
	char *text;

	for (size_t i = 0; i < options->location_count; i++)
		size += strlen(options->location[i]) + 1;
	text = malloc(size);
	if (!text)
		return NULL;
	strcpy(text, options->cell);
	for (size_t i = 0; i < options->location_count; i++) {
		strcat(text, i ? "," : "=");
		strcat(text, options->location[i]);
	}
	return text;
}

static void report_cell_fault(void *arg, const char *text)
{
	(void)arg;
	tools_error("%s", text);
}

/* The name of the cell and its location servers. 0, or -1 after a message. */
static int find_location_servers(struct cellside *side, const struct cellside_options *options)
{
	const char *folder = options->config ? options->config : CONFIG_FOLDER;
	char *given = options->location_count ? join_locations(options) : NULL;
	const struct cl_cells_options from = {
		.home = options->cell,
		.given = (const char *const *)&given,
		.given_count = given != NULL,
		.folders = &folder,
		.folder_count = 1,
		.ipv4_only = true,
		.warn = report_cell_fault,
	};
	char message[320];
	struct cl_cells *cells;
	struct cl_cell *cell;
	int result = cl_cells_create(&from, &cells, message, sizeof(message));

	free(given);
	if (result)
		return tools_fail(-1, "%s", message);
	cell = cl_cells_home(cells);
	if (cell) {
		snprintf(side->name, sizeof(side->name), "%s", cl_cell_name(cell));
		side->count = cl_cell_servers(cell, 0, side->servers);
	}
	cl_cells_free(cells);
	if (!cell)
		return tools_fail(
			-1,
			"%s has no ThisCell: give --cell-config DIR, the folder of the servers of "
			"the cell, or --cell NAME and --location HOST",
			folder);
	if (side->count <= 0)
		return tools_fail(-1,
				  "the cell %s has no location server in %s/CellServDB: add it "
				  "there, or give --location HOST",
				  side->name, folder);
	return 0;
}

/* The file with the key of the cell; to be freed. */
static char *find_key_file(const struct cellside_options *options)
{
	static const char *const names[] = {"KeyFileExt", "rxkad.keytab", "KeyFile"};
	const char *folder = options->config ? options->config : CONFIG_FOLDER;
	char *path;

	if (options->keytab)
		return strdup(options->keytab);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (asprintf(&path, "%s/%s", folder, names[i]) < 0)
			return NULL;
		if (access(path, F_OK) == 0 || i + 1 == sizeof(names) / sizeof(names[0]))
			return path;
		free(path);
	}
	return NULL;
}

/* A token by which servers know the cell itself. 0, or -1 after a message. */
static int make_cell_token(struct cellside *side, const struct cellside_options *options)
{
	struct rxw_token_options token = {.size = sizeof(token),
					  .source = RXW_TOKEN_LOCAL,
					  .index = RXW_RXKAD_INDEX,
					  .level = (uint8_t)options->level,
					  .cell = side->name};
	char *path = find_key_file(options), message[512] = "no memory";
	int result = path ? rxw_keys_create(&token.keys) : -RXW_ENOMEM;

	if (!result) {
		result = rxw_keys_load(token.keys, path, side->name, message, sizeof(message));
		if (!result)
			result = rxw_token_create(&token, &side->token, message, sizeof(message));
		rxw_keys_unref(token.keys);
	}
	free(path);
	return result ? tools_fail(-1, "the key of the cell %s: %s", side->name, message) : 0;
}

static int connect_to(struct cellside *side, const struct sockaddr *address, socklen_t length,
		      uint16_t service, rxw_connection **connection)
{
	return rxw_connection_create(side->endpoint, address, length, service,
				     rxw_token_security(side->token), connection);
}

/* 0, or -1 after a message. */
static int open_network(struct cellside *side)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (const struct sockaddr *)&any,
					       .address_len = sizeof(any)};
	int result = rxw_engine_create(NULL, &side->engine);

	if (!result)
		result = rxw_endpoint_create(side->engine, &options, &side->endpoint);
	for (int i = 0; i < side->count && !result; i++)
		result = connect_to(side, (const struct sockaddr *)&side->servers[i].address,
				    side->servers[i].len, AFS_SERVICE_VL, &side->location[i]);
	return result ? tools_fail(-1, "the network: %s", tools_result_text(result)) : 0;
}

struct cellside *cellside_open(const struct cellside_options *options)
{
	struct cellside *side;

	if (options->location_count && !options->cell)
		return tools_fail(NULL, "--location needs --cell NAME");
	side = calloc(1, sizeof(*side));
	if (!side)
		return tools_fail(NULL, "no memory");
	pthread_mutex_init(&side->lock, NULL);
	if (!find_location_servers(side, options) && !make_cell_token(side, options) &&
	    !open_network(side))
		return side;
	cellside_close(side);
	return NULL;
}

void cellside_close(struct cellside *cell)
{
	if (!cell)
		return;
	for (int i = 0; i < cell->count; i++)
		rxw_connection_release(cell->location[i]);
	rxw_endpoint_destroy(cell->endpoint);
	rxw_engine_destroy(cell->engine);
	rxw_token_unref(cell->token);
	pthread_mutex_destroy(&cell->lock);
	free(cell);
}

const char *cellside_name(const struct cellside *cell)
{
	return cell->name;
}

rxw_connection *cellside_connect(struct cellside *cell, uint32_t address)
{
	const struct sockaddr_in peer = {.sin_family = AF_INET,
					 .sin_port = htons(VOL_PORT),
					 .sin_addr.s_addr = htonl(address)};
	rxw_connection *connection;

	if (connect_to(cell, (const struct sockaddr *)&peer, sizeof(peer), AFS_SERVICE_VOL,
		       &connection))
		return NULL;
	return connection;
}

/* -- calls of the location service -- */

/* The arguments and results of one. */
struct location_call {
	int32_t (*run)(rxw_connection *connection, struct location_call *call);
	uint32_t id;
	int32_t number; /* of an operation, or what is released */
	const nvldbentry *put;
	nvldbentry *entry;
	ListAddrByAttributes by;
	bulkaddrs addresses;
};

/* Whether another server, or this one later, may answer. */
static bool is_passing_fault(int32_t code)
{
	return code == NO_QUORUM || code == NOT_SYNC || code == RXW_CALL_DEAD ||
	       code == RXW_RESTARTING || code == RXW_CALL_TIMEOUT;
}

static int32_t ask_location(struct cellside *cell, struct location_call *call)
{
	uint64_t end = monotonic_ns() + (uint64_t)PATIENCE_S * NS_PER_S;
	const struct timespec pause = {.tv_sec = 1};
	int32_t code = RXW_CALL_DEAD;
	int first;

	pthread_mutex_lock(&cell->lock);
	first = cell->first;
	pthread_mutex_unlock(&cell->lock);
	assert(cell->count > 0 && first < cell->count);
	for (;;) {
		for (int i = 0; i < cell->count; i++) {
			int at = (first + i) % cell->count;

			code = call->run(cell->location[at], call);
			if (is_passing_fault(code))
				continue;
			pthread_mutex_lock(&cell->lock);
			cell->first = at;
			pthread_mutex_unlock(&cell->lock);
			return code;
		}
		if (monotonic_ns() > end)
			return code;
		nanosleep(&pause, NULL);
	}
}

int cellside_probe(struct cellside *cell)
{
	const struct rxw_call_options limit = {.size = sizeof(limit), .deadline_ms = PROBE_MS};
	char text[CELLSIDE_CODE], list[512] = "";
	size_t length = 0;

	for (int i = 0; i < cell->count; i++) {
		int32_t code = VL_ProbeServer_opt(cell->location[i], &limit);
		char host[INET6_ADDRSTRLEN] = "?";

		if (!is_passing_fault(code)) {
			cell->first = i;
			return 0;
		}
		getnameinfo((const struct sockaddr *)&cell->servers[i].address,
			    cell->servers[i].len, host, sizeof(host), NULL, 0, NI_NUMERICHOST);
		if (length < sizeof(list))
			length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s: %s",
						   i ? ", " : "", host,
						   cellside_code_text(text, code));
	}
	return tools_fail(-1, "no location server of the cell %s answers: %s", cell->name, list);
}

static int32_t run_find_entry(rxw_connection *connection, struct location_call *call)
{
	return VL_GetEntryByIDN(connection, call->id, -1, call->entry);
}

static int32_t run_replace(rxw_connection *connection, struct location_call *call)
{
	return VL_ReplaceEntryN(connection, call->id, AFS_VL_RW, call->put, call->number);
}

static int32_t run_lock_entry(rxw_connection *connection, struct location_call *call)
{
	return VL_SetLock(connection, call->id, AFS_VL_RW, call->number);
}

static int32_t run_unlock_entry(rxw_connection *connection, struct location_call *call)
{
	return VL_ReleaseLock(connection, call->id, AFS_VL_RW, call->number);
}

static int32_t run_new_id(rxw_connection *connection, struct location_call *call)
{
	return VL_GetNewVolumeId(connection, 1, &call->id);
}

static int32_t run_addresses(rxw_connection *connection, struct location_call *call)
{
	struct rxw_uuid uuid;
	int32_t unique, entries;

	return VL_GetAddrsU(connection, &call->by, &uuid, &unique, &entries, &call->addresses);
}

int32_t cellside_find_entry(struct cellside *cell, uint32_t id, nvldbentry *entry)
{
	struct location_call call = {.run = run_find_entry, .id = id, .entry = entry};
	int32_t code = ask_location(cell, &call);

	if (!code && (entry->nServers < 0 || entry->nServers > NMAXNSERVERS ||
		      !memchr(entry->name, 0, sizeof(entry->name))))
		code = AFS_VL_BADENTRY;
	return code;
}

#define RELEASE_ALL 7

int32_t cellside_replace_entry(struct cellside *cell, uint32_t id, const nvldbentry *entry,
			       int32_t release)
{
	struct location_call call = {.run = run_replace, .id = id, .put = entry, .number = release};

	return ask_location(cell, &call);
}

int32_t cellside_lock_entry(struct cellside *cell, uint32_t id, int32_t operation)
{
	struct location_call call = {.run = run_lock_entry, .id = id, .number = operation};

	return ask_location(cell, &call);
}

int32_t cellside_unlock_entry(struct cellside *cell, uint32_t id)
{
	struct location_call call = {.run = run_unlock_entry, .id = id, .number = RELEASE_ALL};

	return ask_location(cell, &call);
}

int32_t cellside_take_id(struct cellside *cell, uint32_t *id)
{
	struct location_call call = {.run = run_new_id};
	int32_t code = ask_location(cell, &call);

	*id = call.id;
	return code;
}

int32_t cellside_list_servers(struct cellside *cell, uint32_t *address, unsigned room,
			      unsigned *count)
{
	*count = 0;
	for (int32_t index = 1; *count < room; index++) {
		struct location_call call = {.run = run_addresses,
					     .by = {.Mask = AFS_VL_BY_INDEX, .index = index}};
		int32_t code = ask_location(cell, &call);

		if (code == AFS_VL_INDEXERANGE || (code == AFS_VL_NOENT && index > 255))
			break;
		if (code && code != AFS_VL_NOENT)
			return code;
		if (!code && call.addresses.len)
			address[(*count)++] = call.addresses.val[0];
		xdrfree_bulkaddrs(&call.addresses);
	}
	return 0;
}

bool cellside_same_server(struct cellside *cell, uint32_t one, uint32_t other)
{
	struct location_call call = {.run = run_addresses,
				     .by = {.Mask = AFS_VL_BY_ADDRESS, .ipaddr = one}};
	bool found = one == other;

	if (found || ask_location(cell, &call))
		return found;
	for (uint32_t i = 0; i < call.addresses.len; i++)
		found |= call.addresses.val[i] == other;
	xdrfree_bulkaddrs(&call.addresses);
	return found;
}

/* -- text -- */

char *cellside_code_text(char text[CELLSIDE_CODE], int32_t code)
{
	snprintf(text, CELLSIDE_CODE, "%s (code %d)", rxw_code_text_from(code, rxw_rpc_origin()),
		 (int)code);
	return text;
}

char *cellside_address_text(char text[CELLSIDE_NAME], uint32_t address)
{
	const struct in_addr in = {htonl(address)};

	inet_ntop(AF_INET, &in, text, CELLSIDE_NAME);
	return text;
}

char *cellside_partition_text(char text[CELLSIDE_NAME], int32_t partition)
{
	assert(partition >= 0 && partition < PARTITIONS);
	if (partition < 26)
		snprintf(text, CELLSIDE_NAME, "/vicep%c", 'a' + partition);
	else
		snprintf(text, CELLSIDE_NAME, "/vicep%c%c", 'a' + (partition - 26) / 26,
			 'a' + (partition - 26) % 26);
	return text;
}

int32_t cellside_parse_partition(const char *text)
{
	int32_t number;

	if (*text == '/')
		text++;
	if (!strncmp(text, "vicep", 5))
		text += 5;
	if (text[0] < 'a' || text[0] > 'z')
		return -1;
	if (!text[1])
		return text[0] - 'a';
	if (text[1] < 'a' || text[1] > 'z' || text[2])
		return -1;
	number = 26 + (text[0] - 'a') * 26 + (text[1] - 'a');
	return number < PARTITIONS ? number : -1;
}

int cellside_parse_place(const char *text, uint32_t *address, int32_t *partition)
{
	size_t length = strcspn(text, ":");
	struct tools_address list[TOOLS_ADDRESSES];
	char message[256];
	char *host = strndup(text, length);
	size_t count;

	*partition = -1;
	if (text[length]) {
		*partition = cellside_parse_partition(text + length + 1);
		if (*partition < 0) {
			free(host);
			return tools_fail(-1,
					  "%s: %s is no partition; give one such as a or /vicepa",
					  text, text + length + 1);
		}
	}
	count = host ? tools_resolve_all(host, VOL_PORT, list, message, sizeof(message)) : 0;
	free(host);
	for (size_t i = 0; i < count; i++)
		if (list[i].sa.ss_family == AF_INET) {
			const struct sockaddr_in *in = (const struct sockaddr_in *)&list[i].sa;

			*address = ntohl(in->sin_addr.s_addr);
			return 0;
		}
	return tools_fail(-1, "%s: %s", text, count ? "the server has no IPv4 address" : message);
}
