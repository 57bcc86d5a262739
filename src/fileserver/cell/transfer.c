/* SPDX-License-Identifier: BSD-2-Clause */
/* Volumes as dumps that calls carry. */
#include "fileserver/cell/private.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/call.h>
#include <rxwire/error.h>
#include <rxwire/connection.h>
#include <rxwire/security.h>

#include "afs/afsvol.h"
#include "afs/numbers.h"
#include "fileserver/base/base.h"
#include "volume/dump/dump.h"

/* -- a thread that waits for a deferred call -- */

struct call_stream {
	rxw_call *call;
	pthread_mutex_t lock; /* covers `ready` */
	pthread_cond_t wake;
	bool ready;
	struct fsd_cell *cell;
	bool forbidden; /* a directory has a list that a served volume must not have */
};

static void open_call_stream(struct call_stream *stream, struct fsd_cell *cell, rxw_call *call)
{
	*stream = (struct call_stream){.call = call, .cell = cell};
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->wake, NULL);
}

/* No callback runs afterwards. */
static void close_call_stream(struct call_stream *stream)
{
	rxw_call_set_callback(stream->call, NULL, NULL);
	pthread_cond_destroy(&stream->wake);
	pthread_mutex_destroy(&stream->lock);
}

static void note_call_event(rxw_call *call, unsigned events, void *arg)
{
	struct call_stream *stream = arg;

	(void)call, (void)events;
	pthread_mutex_lock(&stream->lock);
	stream->ready = true;
	pthread_cond_signal(&stream->wake);
	pthread_mutex_unlock(&stream->lock);
}

/* Until something has come, can be sent, or the call has failed. The library bounds the time without progress. */
static int wait_for_call(struct call_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->ready = false;
	pthread_mutex_unlock(&stream->lock);
	if (rxw_call_set_callback(stream->call, note_call_event, stream))
		return -ECONNABORTED;
	pthread_mutex_lock(&stream->lock);
	while (!stream->ready)
		pthread_cond_wait(&stream->wake, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return 0;
}

static int send_dump_bytes(void *arg, const void *bytes, size_t length)
{
	struct call_stream *stream = arg;
	int result = 0;

	while (length && !result) {
		ssize_t n = rxw_call_write(stream->call, bytes, length);

		if (n == -RXW_EAGAIN) {
			result = wait_for_call(stream);
			continue;
		}
		if (n < 0)
			return -ECONNABORTED;
		bytes = (const char *)bytes + n;
		length -= (size_t)n;
	}
	return result;
}

static ssize_t receive_dump_bytes(void *arg, void *bytes, size_t length)
{
	struct call_stream *stream = arg;
	ssize_t n;

	while ((n = rxw_call_read_some(stream->call, bytes, length)) == -RXW_EAGAIN) {
		int result = wait_for_call(stream);

		if (result)
			return result;
	}
	return n < 0 ? -ECONNABORTED : n;
}

/* -- sending -- */

static int discard_dump_bytes(void *arg, const void *bytes, size_t length)
{
	const rxw_call *call = arg;

	(void)bytes, (void)length;
	return rxw_call_error(call, NULL) ? -ECONNABORTED : 0;
}

int32_t transfer_dump(struct fsd_cell *cell, uint32_t id, const struct dump_base *given,
		      const struct dump_output *output, struct dump_counts *counts)
{
	struct dump_base base = *given;
	struct store_snapshot *snapshot;
	struct cellvol volume;
	bool local = false;
	int result = cellvol_get(cell->store, id, &volume), end;

	if (result)
		return fsd_volume_code(result);
	base.note = volume.type == STORE_RW ? "A volume utility is running." : volume.message;
	result = store_snapshot_take(cell->store, id, 0, &snapshot);
	if (result)
		return fsd_volume_code(result);
	result = dump_write(cell->store, snapshot, &base, output, counts, &local);
	end = store_snapshot_end(snapshot);
	if (!result)
		return fsd_volume_code(end);
	return result == -EIO && !local ? AFS_VOL_DUMPERROR : fsd_volume_code(result);
}

int32_t fsd_dump_send(struct fsd_cell *cell, const struct fsd_transaction *transaction,
		      const struct fsd_dump *dump, rxw_call *call)
{
	const struct dump_base base = {.date = dump->from, .dated = true, .sparse = dump->sparse};
	struct call_stream stream;
	const struct dump_output output = {.write = send_dump_bytes, .arg = &stream};
	struct dump_counts counts;
	int32_t code;

	open_call_stream(&stream, cell, call);
	transactions_expose(cell, transaction, call);
	code = transfer_dump(cell, transaction->volume, &base, &output, &counts);
	transactions_expose(cell, transaction, NULL);
	close_call_stream(&stream);
	return code;
}

int32_t fsd_dump_size(struct fsd_cell *cell, const struct fsd_transaction *transaction,
		      const struct fsd_dump *dump, rxw_call *call, uint64_t *bytes)
{
	const struct dump_base base = {
		.date = dump->from, .dated = true, .sparse = dump->sparse, .measured = true};
	const struct dump_output output = {.write = discard_dump_bytes, .arg = call};
	struct dump_counts counts;
	int32_t code;

	transactions_expose(cell, transaction, call);
	code = transfer_dump(cell, transaction->volume, &base, &output, &counts);
	transactions_expose(cell, transaction, NULL);
	*bytes = code ? 0 : counts.bytes;
	return code;
}

/* -- forwarding: the calls of a client, which wait -- */

#define FORWARD_IDLE_MS 600000 /* without progress, as long as an idle transaction lives */

struct forwarding {
	struct fsd_forward *to;
	rxw_connection *connection; /* covered by the lock of all */
	rxw_call *call;		    /* NULL: it has failed, with to->code */
};

struct forwardings {
	struct forwarding item[FSD_FORWARDS];
	unsigned count;
	pthread_mutex_t lock;
	bool gone; /* the caller; covered by the lock */
};

void fsd_cell_set_network(struct fsd_cell *cell, rxw_endpoint *endpoint,
			  rxw_security *(*security)(void *arg, uint8_t level), void *arg)
{
	assert(endpoint && security);
	cell->endpoint = endpoint;
	cell->security = security;
	cell->security_arg = arg;
}

/* What nobody waits for any more ends, even if a server takes no further byte. */
static void abandon_forwardings(rxw_call *call, unsigned events, void *arg)
{
	struct forwardings *all = arg;

	(void)call;
	if (!(events & RXW_EVENT_DONE))
		return;
	pthread_mutex_lock(&all->lock);
	all->gone = true;
	for (unsigned i = 0; i < all->count; i++)
		if (all->item[i].connection)
			rxw_connection_abort(all->item[i].connection, RXW_USER_ABORT);
	pthread_mutex_unlock(&all->lock);
}

static bool is_caller_gone(struct forwardings *all)
{
	bool gone;

	pthread_mutex_lock(&all->lock);
	gone = all->gone;
	pthread_mutex_unlock(&all->lock);
	return gone;
}

/* Its call has ended. */
static void release_forwarding(struct forwardings *all, struct forwarding *item)
{
	rxw_connection *connection;

	pthread_mutex_lock(&all->lock);
	connection = item->connection;
	item->connection = NULL;
	pthread_mutex_unlock(&all->lock);
	rxw_connection_release(connection);
}

static void fail_forwarding(struct forwardings *all, struct forwarding *item, int32_t code)
{
	int32_t told = item->call ? rxw_call_end(item->call, code, NULL) : code;

	item->call = NULL;
	item->to->code = told ? told : code;
	release_forwarding(all, item);
}

static void begin_forwarding(struct fsd_cell *cell, struct forwardings *all,
			     struct forwarding *item, rxw_security *security, int32_t flags,
			     const restoreCookie *cookie)
{
	struct sockaddr_in peer = {.sin_family = AF_INET,
				   .sin_port = htons(item->to->port),
				   .sin_addr.s_addr = htonl(item->to->host)};
	const struct rxw_call_options options = {.size = sizeof(options)};
	rxw_connection *connection;

	item->to->code = -1;
	if (rxw_connection_create(cell->endpoint, (const struct sockaddr *)&peer, sizeof(peer),
				  AFS_SERVICE_VOL, security, &connection))
		return;
	rxw_connection_set_timeouts(connection, 0, FORWARD_IDLE_MS, 0);
	pthread_mutex_lock(&all->lock);
	item->connection = connection;
	pthread_mutex_unlock(&all->lock);
	if (rxw_call_begin(connection, &options, &item->call)) {
		item->call = NULL;
		fail_forwarding(all, item, -1);
	} else if (StartAFSVolRestore(item->call, item->to->transaction, flags, cookie)) {
		fail_forwarding(all, item, -1);
	}
}

/* To all that have not failed. The slowest one sets the pace. */
static int forward_dump_bytes(void *arg, const void *bytes, size_t length)
{
	struct forwardings *all = arg;
	int result = -ECONNABORTED;

	if (is_caller_gone(all))
		return result;
	for (unsigned i = 0; i < all->count; i++) {
		struct forwarding *item = &all->item[i];

		if (item->call && rxw_call_write(item->call, bytes, length) != (ssize_t)length)
			fail_forwarding(all, item, -1);
		if (item->call)
			result = 0;
	}
	return result;
}

/* `code`: of the dump. */
static void end_forwarding(struct forwardings *all, struct forwarding *item, int32_t code)
{
	if (!item->call)
		return;
	if (code) {
		fail_forwarding(all, item, code);
		return;
	}
	item->to->code = rxw_call_end(item->call, 0, NULL);
	item->call = NULL;
	release_forwarding(all, item);
}

static void fill_cookie(restoreCookie *cookie, const struct cellvol *from)
{
	*cookie = (restoreCookie){.clone = from->clone, .parent = from->parent};
	memcpy(cookie->name, from->name, sizeof(cookie->name));
	cookie->type = from->type == STORE_RW	? AFS_VL_RW
		       : from->type == STORE_RO ? AFS_VL_RO
						: AFS_VL_BACKUP;
}

int32_t fsd_dump_forward(struct fsd_cell *cell, const struct fsd_transaction *transaction,
			 const struct fsd_dump *dump, const struct cellvol *from, uint8_t level,
			 struct fsd_forward *to, unsigned count, rxw_call *call)
{
	const struct dump_base base = {.date = dump->from, .dated = true, .sparse = dump->sparse};
	struct forwardings all = {.count = count};
	const struct dump_output output = {.write = forward_dump_bytes, .arg = &all};
	rxw_security *security;
	struct dump_counts counts;
	restoreCookie cookie;
	int32_t code;

	assert(count > 0 && count <= FSD_FORWARDS && transaction->running);
	if (!cell->endpoint)
		return AFS_VOL_DUMPERROR;
	security = cell->security(cell->security_arg, level);
	fill_cookie(&cookie, from);
	pthread_mutex_init(&all.lock, NULL);
	rxw_call_set_callback(call, abandon_forwardings, &all);
	transactions_expose(cell, transaction, call);
	for (unsigned i = 0; i < count; i++) {
		all.item[i].to = &to[i];
		begin_forwarding(cell, &all, &all.item[i], security, dump->from != 0, &cookie);
	}
	code = transfer_dump(cell, transaction->volume, &base, &output, &counts);
	for (unsigned i = 0; i < count; i++)
		end_forwarding(&all, &all.item[i], code);
	transactions_expose(cell, transaction, NULL);
	/* It does not run afterwards. */
	rxw_call_set_callback(call, NULL, NULL);
	pthread_mutex_destroy(&all.lock);
	if (security)
		rxw_security_unref(security);
	/* The codes of those that failed say more than that the last one did. */
	return code == ECONNABORTED ? to[0].code : code;
}

/* -- receiving -- */

static int permit_dumped_acl(void *arg, const struct store_acl *acl, uint32_t vnode)
{
	struct call_stream *stream = arg;
	const struct fsd_cell_options *options = &stream->cell->options;

	(void)vnode;
	stream->forbidden = options->permits && !options->permits(options->arg, acl);
	return stream->forbidden ? -EACCES : 0;
}

/* What the volume has beside its vnodes. */
static int take_dump_header(struct fsd_cell *cell, uint32_t id, const struct cellvol *cookie,
			    const struct store_header *header)
{
	struct cellvol volume;
	int result = cellvol_get(cell->store, id, &volume);

	if (result)
		return result;
	memcpy(volume.name, cookie->name, sizeof(volume.name));
	volume.type = cookie->type;
	volume.clone = cookie->clone;
	volume.temporary = cookie->temporary;
	volume.out = !header->volume.online;
	if (cookie->backup)
		volume.backup = cookie->backup;
	if (cookie->restored)
		volume.restored = cookie->restored;
	volume.creation = header->volume.created;
	volume.updated = header->volume.updated;
	volume.backed_up = header->volume.cloned;
	return cellvol_set(cell->store, &volume,
			   CELLVOL_NAMED | CELLVOL_TYPE | CELLVOL_IDS | CELLVOL_STATE |
				   CELLVOL_CREATION | CELLVOL_UPDATED | CELLVOL_RESTORED,
			   NULL, NULL);
}

int transfer_restore(struct fsd_cell *cell, uint32_t id, const struct dump_input *input,
		     const struct cellvol *cookie, char *message)
{
	struct dump_reader *reader;
	struct store_restore *restore;
	struct dump_counts counts;
	struct dump_info info;
	uint64_t lost;
	int result = dump_read_begin(cell->store, input, &reader, &info, message), end;

	if (result)
		return result;
	result = cellvol_restore_onto(cell->store, id, &restore);
	if (!result) {
		result = dump_read_vnodes(reader, restore, &info, &counts);
		if (!result)
			result = store_restore_finish(restore, &info.header, &lost, message);
		end = store_restore_end(restore);
		result = result ? result : end;
	}
	if (!result)
		result = cellvol_restored(cell->store, id, info.header.volume.created);
	dump_read_end(reader);
	return result ? result : take_dump_header(cell, id, cookie, &info.header);
}

int32_t fsd_dump_receive(struct fsd_cell *cell, struct fsd_transaction *transaction,
			 const struct cellvol *cookie, rxw_call *call)
{
	struct call_stream stream;
	const struct dump_input input = {.read = receive_dump_bytes,
					 .permit = cell->options.permits ? permit_dumped_acl : NULL,
					 .arg = &stream};
	char message[STORE_MESSAGE_MAX] = "";
	int result;

	assert(transaction->running);
	open_call_stream(&stream, cell, call);
	transactions_expose(cell, transaction, call);
	result = transfer_restore(cell, transaction->volume, &input, cookie, message);
	transactions_expose(cell, transaction, NULL);
	close_call_stream(&stream);
	transaction->changed = true;
	if (!result)
		return 0;
	fsd_log(RXW_LOG_WARNING, "volume %u was not restored: %s", (unsigned)transaction->volume,
		stream.forbidden ? "anonymous callers of other machines could write"
		: *message	 ? message
				 : "the store could not take it, or its client went away");
	if (stream.forbidden)
		return AFS_VOL_BAD_ACCESS;
	return result == -EBADMSG || result == -ECONNABORTED ? AFS_VOL_READ_DUMPERROR
							     : fsd_volume_code(result);
}
