/* SPDX-License-Identifier: BSD-2-Clause */
/* One move of a volume: its steps, and what a later run makes of steps that an earlier one has left. */
#include "rxvol/move.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "afs/numbers.h"
#include "common/background.h"
#include "common/clock.h"
#include "rxvol/movelog.h"

#define VOL_PORT   7005
#define CLONE_NAME "move-clone-temp" /* as that of vos */
/* Modes and flags of transactions (afs-volumes 2). */
#define OFFLINE	       1
#define BUSY	       2
#define FLAG_TEMPORARY 1
#define FLAG_OUT       2
#define STATUS_OK      2
#define SLACK_S	       2 /* of dates, as vos has it */
#define BUSY_TRIES     60
#define BUSY_MS	       500
#define WATCH_S	       5	   /* between looks whether the target is still there */
#define SILENCE_S      60	   /* after which a target is given up that does not answer */
#define SETTLE_S       UINT64_C(3) /* after which an idle transaction is that of a dead client */
#define RUNNING_S      600	   /* of what runs in the transaction of a dead client */
#define CLONE_S	       20	   /* the same, in that of a temporary clone */
#define LOCKS	       0x1f0	   /* of an entry's flags */

/* A server, with the transaction that this move has there with its volume. */
struct end {
	struct move_place place;
	rxw_connection *connection;
	int32_t transaction; /* 0: none */
};

struct move {
	const struct move_settings *settings;
	const struct move_job *job;
	struct move_result *result;
	struct movelog *log;
	struct move_note note;
	nvldbentry entry;
	struct end source, target;
	int32_t clone_transaction;
	bool locked;
	bool decided;	/* the target may be on-line: nothing is put back any more */
	uint64_t since; /* the source is not served */
};

/* -- messages -- */

static int fail_move(struct move *move, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static int fail_move(struct move *move, const char *format, ...)
{
	va_list args;

	/* The first one is the reason. */
	if (*move->result->message)
		return -1;
	va_start(args, format);
	vsnprintf(move->result->message, MOVE_TEXT, format, args);
	va_end(args);
	return -1;
}

static int fail_volume_call(struct move *move, const struct end *end, const char *what,
			    int32_t code)
{
	char server[CELLSIDE_NAME], text[CELLSIDE_CODE];

	cellside_code_text(text, code);
	return fail_move(
		move, "%s at %s: %s%s", what, cellside_address_text(server, end->place.address),
		text,
		code == AFS_VOL_BAD_ACCESS
			? "; the server does not know the key as that of its cell, or asks for --level crypt"
		: code == AFS_VOL_VOLBUSY || code == AFS_VBUSY
			? "; \"vos status\" shows who uses it"
		: code == ENOSPC ? "; make room there"
				 : "");
}

static int fail_location(struct move *move, const char *what, int32_t code)
{
	char text[CELLSIDE_CODE];

	return fail_move(move, "%s: %s", what, cellside_code_text(text, code));
}

static void say_about_move(const struct move *move, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void say_about_move(const struct move *move, const char *format, ...)
{
	char text[MOVE_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (move->settings->say)
		move->settings->say(move->settings->arg, move->job, text);
}

static void pause_ms(unsigned ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L};

	nanosleep(&pause, NULL);
}

/* -- calls of the volume service -- */

/* The volume may be in a transaction that is about to end. */
static int32_t begin_transaction(const struct end *end, uint32_t id, int32_t mode,
				 int32_t *transaction)
{
	int32_t code;

	for (int i = 0;; i++) {
		code = AFSVolTransCreate(end->connection, id, end->place.partition, mode,
					 transaction);
		if (code != AFS_VOL_VOLBUSY || i == BUSY_TRIES)
			return code;
		pause_ms(BUSY_MS);
	}
}

static int32_t end_move_transaction(const struct end *end, int32_t *transaction)
{
	int32_t result = 0, code = 0;

	if (*transaction)
		code = AFSVolEndTrans(end->connection, *transaction, &result);
	*transaction = 0;
	return code ? code : result;
}

/* A volume as the server lists it. ENODEV: there is none, or it is temporary. */
static int32_t look_at_moved_volume(const struct end *end, uint32_t id, volintInfo *info)
{
	volEntries entries = {0};
	int32_t code = AFSVolListOneVolume(end->connection, end->place.partition, id, &entries);

	if (!code && (entries.len != 1 || entries.val[0].volid != id))
		code = ENODEV;
	if (!code)
		*info = entries.val[0];
	xdrfree_volEntries(&entries);
	return code;
}

/* Callers of the file service get it. */
static bool is_served_volume(const volintInfo *info)
{
	return info->inUse && !info->destroyMe && info->status == STATUS_OK;
}

/* 0 also if it is not there. */
static int32_t delete_volume_at(const struct end *end, uint32_t id)
{
	int32_t transaction,
		code = id ? begin_transaction(end, id, OFFLINE, &transaction) : AFS_VNOVOL;

	if (code)
		return code == AFS_VNOVOL || code == ENODEV ? 0 : code;
	code = AFSVolSetFlags(end->connection, transaction, FLAG_TEMPORARY | FLAG_OUT);
	if (!code)
		code = AFSVolDeleteVolume(end->connection, transaction);
	if (code)
		end_move_transaction(end, &transaction);
	else
		code = end_move_transaction(end, &transaction);
	return code;
}

static int32_t set_volume_service(const struct end *end, uint32_t id, int32_t flags)
{
	int32_t transaction, code = begin_transaction(end, id, OFFLINE, &transaction), ended;

	if (code)
		return code;
	code = AFSVolSetFlags(end->connection, transaction, flags);
	ended = end_move_transaction(end, &transaction);
	return code ? code : ended;
}

/* -- the entry -- */

static bool is_move_site(const struct move *move, int at, const struct move_place *place)
{
	return move->entry.serverPartition[at] == place->partition &&
	       cellside_same_server(move->settings->cell, (uint32_t)move->entry.serverNumber[at],
				    place->address);
}

/* The site of the volume's type at a place; -1: none. */
static int find_move_site(const struct move *move, const struct move_place *place)
{
	int32_t flag = move->job->replica ? VLSF_ROVOL : VLSF_RWVOL;

	for (int i = 0; i < move->entry.nServers; i++)
		if (move->entry.serverFlags[i] & flag && is_move_site(move, i, place))
			return i;
	return -1;
}

static int read_entry(struct move *move)
{
	int32_t code = cellside_find_entry(move->settings->cell, move->job->rw, &move->entry);

	return code ? fail_location(move, "the entry of the volume", code) : 0;
}

static void drop_site(nvldbentry *entry, int at)
{
	entry->nServers--;
	for (int i = at; i < entry->nServers; i++) {
		entry->serverNumber[i] = entry->serverNumber[i + 1];
		entry->serverPartition[i] = entry->serverPartition[i + 1];
		entry->serverFlags[i] = entry->serverFlags[i + 1];
	}
	entry->serverNumber[entry->nServers] = 0;
	entry->serverPartition[entry->nServers] = 0;
	entry->serverFlags[entry->nServers] = 0;
}

/* The entry names the target in place of the source. The lock stays. */
static int replace_site(struct move *move, bool drop)
{
	nvldbentry *entry = &move->entry;
	int32_t code;
	bool there;
	int at;

	if (read_entry(move))
		return -1;
	at = find_move_site(move, &move->source.place);
	there = find_move_site(move, &move->target.place) >= 0;
	if (at < 0)
		return there ? 0 : fail_move(move, "the entry names neither server any more");
	if (drop || there) {
		drop_site(entry, at);
	} else {
		entry->serverNumber[at] = (int32_t)move->target.place.address;
		entry->serverPartition[at] = move->target.place.partition;
	}
	if (!move->job->replica)
		entry->flags &= ~VLF_BACKEXISTS;
	code = cellside_replace_entry(move->settings->cell, move->job->rw, entry, 0);
	return code ? fail_location(move, "the entry of the volume", code) : 0;
}

static int lock_entry(struct move *move, bool again)
{
	int32_t code = cellside_lock_entry(move->settings->cell, move->job->rw, VLOP_MOVE);

	if (code && !(again && code == AFS_VL_ENTRYLOCKED))
		return fail_location(move, "the lock of the entry", code);
	move->locked = true;
	return 0;
}

/* -- notes -- */

static int write_note(struct move *move, enum move_stage stage, uint32_t clone)
{
	char message[MOVE_TEXT];

	move->note = (struct move_note){.stage = stage,
					.clone = clone,
					.stuck = move->note.stuck,
					.from = move->source.place,
					.to = move->target.place};
	if (movelog_write(move->log, &move->note, message, sizeof(message)))
		return fail_move(move, "%s", message);
	return 0;
}

/* -- transactions that nobody uses any more -- */

#define IDLE_MAX 8

/* What the transactions with the volume or the temporary clone do. */
struct idle_transactions {
	struct idle_transaction {
		const struct end *end;
		int32_t id, used;
		uint64_t since; /* it has been like that */
	} item[IDLE_MAX];
	unsigned count;
	bool said;
};

/* Since when it has done nothing; now, if it does something. */
static uint64_t note_idle_transaction(struct idle_transactions *all, const struct end *end,
				      const transDebugInfo *info)
{
	uint64_t now = monotonic_ns();
	unsigned at = 0;

	while (at < all->count && (all->item[at].end != end || all->item[at].id != info->tid))
		at++;
	if (at == IDLE_MAX)
		return now;
	if (at == all->count || info->callValid || all->item[at].used != info->time)
		all->item[at] = (struct idle_transaction){end, info->tid, info->time, now};
	all->count += at == all->count;
	return all->item[at].since;
}

static void say_what_runs(const struct move *move, struct idle_transactions *all,
			  const struct end *end, const transDebugInfo *info)
{
	char server[CELLSIDE_NAME];

	if (all->said)
		return;
	all->said = true;
	say_about_move(
		move, "waits for what an earlier run has begun: %.*s of volume %u at %s still runs",
		(int)sizeof(info->lastProcName), info->lastProcName, (unsigned)info->volid,
		cellside_address_text(server, end->place.address));
}

/* That of a dead client ends. A server needs a while to find that a client is dead. */
static int end_dead_transaction(struct move *move, struct idle_transactions *all,
				const struct end *end, const transDebugInfo *info)
{
	int32_t code, ended;

	if (info->callValid)
		say_what_runs(move, all, end, info);
	if (monotonic_ns() - note_idle_transaction(all, end, info) < SETTLE_S * (uint64_t)NS_PER_S)
		return 0;
	code = AFSVolEndTrans(end->connection, info->tid, &ended);
	if (code == AFS_VOL_VOLBUSY) {
		say_what_runs(move, all, end, info);
		return 0;
	}
	return code && code != ENOENT
		       ? fail_volume_call(move, end, "the end of a transaction", code)
		       : 0;
}

/* The number of those that are left at a server; -1: failed. */
static int look_at_transactions(struct move *move, struct idle_transactions *all,
				const struct end *end)
{
	transDebugEntries entries = {0};
	int32_t code = AFSVolMonitor(end->connection, &entries);
	int count = code ? fail_volume_call(move, end, "the list of transactions", code) : 0;

	for (uint32_t i = 0; i < entries.len && count >= 0; i++) {
		const transDebugInfo *info = &entries.val[i];

		if (info->volid != move->job->id &&
		    (!move->note.clone || info->volid != move->note.clone))
			continue;
		/* It may take the server minutes to find that the target is gone. Only the clone has to wait for that. */
		if (info->volid != move->job->id && info->callValid && !move->note.stuck) {
			move->note.stuck = move->note.clone;
			move->note.clone = 0;
			continue;
		}
		count = end_dead_transaction(move, all, end, info) ? -1 : count + 1;
	}
	xdrfree_transDebugEntries(&entries);
	return count;
}

static int settle_transactions(struct move *move)
{
	struct idle_transactions all = {0};
	uint64_t end = monotonic_ns() + RUNNING_S * (uint64_t)NS_PER_S;
	int source, target;

	for (;;) {
		source = look_at_transactions(move, &all, &move->source);
		target = source < 0 ? -1 : look_at_transactions(move, &all, &move->target);
		if (source < 0 || target < 0)
			return -1;
		if (!source && !target)
			return 0;
		if (monotonic_ns() > end)
			return fail_move(move,
					 "what an earlier run has begun still runs at the %s; "
					 "\"vos status\" shows it: give the command again later",
					 source ? "source" : "target");
		pause_ms(250);
	}
}

/* -- the steps -- */

static int make_temporary_clone(struct move *move, int32_t *date)
{
	const struct end *source = &move->source;
	volser_status status = {0};
	int32_t transaction = 0, code;
	uint32_t clone;

	code = cellside_take_id(move->settings->cell, &clone);
	if (code)
		return fail_location(move, "a number for the temporary clone", code);
	if (write_note(move, MOVE_COPYING, clone))
		return -1;
	code = begin_transaction(source, move->job->id, BUSY, &transaction);
	if (!code)
		code = AFSVolClone(source->connection, transaction, 0, AFS_VL_RO, CLONE_NAME,
				   &clone);
	if (code) {
		end_move_transaction(source, &transaction);
		return fail_volume_call(move, source, "the temporary clone", code);
	}
	code = end_move_transaction(source, &transaction);
	if (!code)
		code = begin_transaction(source, clone, OFFLINE, &move->clone_transaction);
	if (!code)
		code = AFSVolSetFlags(source->connection, move->clone_transaction,
				      FLAG_TEMPORARY | FLAG_OUT);
	if (!code)
		code = AFSVolGetStatus(source->connection, move->clone_transaction, &status);
	*date = status.creationDate - SLACK_S;
	return code ? fail_volume_call(move, source, "the temporary clone", code) : 0;
}

/* An empty volume, in a transaction, which goes if the move does not end. */
static int make_target_volume(struct move *move)
{
	struct end *target = &move->target;
	const struct move_job *job = move->job;
	uint32_t id = job->id;
	int32_t transaction, code;

	code = begin_transaction(target, id, OFFLINE, &transaction);
	if (!code) {
		end_move_transaction(target, &transaction);
		return fail_move(
			move,
			"the target has a volume with the number %u already: remove it with "
			"\"vos zap\" if it is not wanted",
			(unsigned)id);
	}
	if (code != AFS_VNOVOL)
		return fail_volume_call(move, target, "the new volume", code);
	if (write_note(move, MOVE_MAKING, move->note.clone))
		return -1;
	code = AFSVolCreateVolume(target->connection, target->place.partition, job->name,
				  job->replica ? AFS_VL_RO : AFS_VL_RW, job->rw, &id,
				  &target->transaction);
	if (code) {
		target->transaction = 0;
		return fail_volume_call(move, target, "the new volume", code);
	}
	code = AFSVolSetFlags(target->connection, target->transaction, FLAG_TEMPORARY | FLAG_OUT);
	return code ? fail_volume_call(move, target, "the new volume", code) : 0;
}

/* -- a transfer, which the target must survive -- */

/* The source may take minutes to find that the target is gone. */
struct watch {
	struct background thread;
	const struct move *move;
	rxw_connection *connection; /* to the target */
	bool gone;		    /* the transfer was ended because of that */
};

/* 1: the transaction is there; 0: it is not; -1: no answer. */
static int find_target_transaction(const struct watch *watch)
{
	transDebugEntries entries = {0};
	int32_t code = AFSVolMonitor(watch->connection, &entries);
	int found = code ? -1 : 0;

	for (uint32_t i = 0; i < entries.len && !found; i++)
		found = entries.val[i].tid == watch->move->target.transaction &&
			entries.val[i].volid == watch->move->job->id;
	xdrfree_transDebugEntries(&entries);
	return found;
}

static void *watch_target(void *arg)
{
	struct watch *watch = arg;
	struct background *thread = &watch->thread;
	uint64_t answered = monotonic_ns();
	int found;

	pthread_mutex_lock(&thread->lock);
	while (!thread->stop && !watch->gone) {
		sleep_in_background(thread, monotonic_ns() + WATCH_S * (uint64_t)NS_PER_S);
		if (thread->stop)
			break;
		pthread_mutex_unlock(&thread->lock);
		found = find_target_transaction(watch);
		pthread_mutex_lock(&thread->lock);
		if (found > 0)
			answered = monotonic_ns();
		if (!found || monotonic_ns() - answered > SILENCE_S * (uint64_t)NS_PER_S) {
			watch->gone = true;
			rxw_connection_abort(watch->move->source.connection, RXW_USER_ABORT);
		}
	}
	pthread_mutex_unlock(&thread->lock);
	return NULL;
}

/* The source sends what has changed since a date; 0: everything. */
static int32_t run_forward(struct move *move, int32_t transaction, int32_t since,
			   const restoreCookie *cookie, bool *gone)
{
	const destServer to = {.destHost = (int32_t)move->target.place.address,
			       .destPort = VOL_PORT,
			       .destSSID = 1};
	struct watch watch = {.move = move};
	bool watched;
	int32_t code;

	watch.connection = cellside_connect(move->settings->cell, move->target.place.address);
	watched = watch.connection && !start_background(&watch.thread, watch_target, &watch);
	code = AFSVolForward(move->source.connection, transaction, since, &to,
			     move->target.transaction, cookie);
	if (watched)
		stop_background(&watch.thread);
	if (watch.connection)
		rxw_connection_release(watch.connection);
	*gone = watch.gone;
	return code;
}

static int forward_volume_to(struct move *move, int32_t transaction, int32_t since)
{
	const struct move_job *job = move->job;
	restoreCookie cookie = {.type = job->replica ? AFS_VL_RO : AFS_VL_RW, .parent = job->rw};
	const char *what = since ? "the transfer of the last changes" : "the transfer";
	char server[CELLSIDE_NAME];
	bool gone;
	int32_t code;

	snprintf(cookie.name, sizeof(cookie.name), "%.31s", job->name);
	code = run_forward(move, transaction, since, &cookie, &gone);
	if (gone)
		return fail_move(move, "%s: the server %s has ended or started again meanwhile",
				 what, cellside_address_text(server, move->target.place.address));
	return code ? fail_volume_call(move, &move->source, what, code) : 0;
}

/* Both have the same. */
static int compare_ends(struct move *move)
{
	volintSize source = {0}, target = {0};
	int32_t code = AFSVolGetSize(move->source.connection, move->source.transaction, 0, &source);

	if (code)
		return fail_volume_call(move, &move->source, "the size of the dump", code);
	code = AFSVolGetSize(move->target.connection, move->target.transaction, 0, &target);
	if (code)
		return fail_volume_call(move, &move->target, "the size of the dump", code);
	if (source.dump_size != target.dump_size)
		return fail_move(move,
				 "the dumps of both servers have different lengths, %llu and %llu "
				 "bytes: the volume stays where it is",
				 (unsigned long long)source.dump_size,
				 (unsigned long long)target.dump_size);
	move->result->bytes = source.dump_size;
	return 0;
}

/* From here on only the next run knows which copy counts, unless all of it succeeds. */
static int bring_target_online(struct move *move)
{
	struct end *target = &move->target;
	int32_t code;

	move->decided = true;
	code = AFSVolSetFlags(target->connection, target->transaction, 0);
	if (!code)
		code = end_move_transaction(target, &target->transaction);
	return code ? fail_volume_call(move, target, "bringing the volume on-line", code) : 0;
}

/* Nobody may change the volume from here on, until the entry names the target. */
static int switch_to_target(struct move *move, int32_t date)
{
	struct end *source = &move->source;
	int32_t code = begin_transaction(source, move->job->id, BUSY, &source->transaction);

	if (code) {
		source->transaction = 0;
		return fail_volume_call(move, source, "the last changes", code);
	}
	move->since = monotonic_ns();
	if (write_note(move, MOVE_SWITCHING, move->note.clone))
		return -1;
	/* So also a target whose client dies after the transfer is out of service. */
	code = AFSVolSetFlags(source->connection, source->transaction, FLAG_OUT);
	if (code)
		return fail_volume_call(move, source, "taking the volume off-line", code);
	if (forward_volume_to(move, source->transaction, date) || compare_ends(move) ||
	    bring_target_online(move))
		return -1;
	return 0;
}

/* Where callers ask the old server, it tells them that the volume has moved. */
static int32_t drop_source(struct move *move)
{
	struct end *source = &move->source;
	int32_t code = 0;

	if (!source->transaction)
		return delete_volume_at(source, move->job->id);
	AFSVolSetForwarding(source->connection, source->transaction,
			    (int32_t)htonl(move->target.place.address));
	code = AFSVolDeleteVolume(source->connection, source->transaction);
	if (code)
		end_move_transaction(source, &source->transaction);
	else
		code = end_move_transaction(source, &source->transaction);
	return code;
}

static int32_t remove_stuck_clone(const struct move *move)
{
	const struct end *source = &move->source;
	int32_t transaction,
		code = AFSVolTransCreate(source->connection, move->note.stuck,
					 source->place.partition, OFFLINE, &transaction);

	if (code)
		return code;
	AFSVolSetFlags(source->connection, transaction, FLAG_TEMPORARY | FLAG_OUT);
	code = AFSVolDeleteVolume(source->connection, transaction);
	end_move_transaction(source, &transaction);
	return code;
}

/* The transaction of the dead client with it, in which nothing runs any more. */
static void end_clone_transaction(const struct move *move)
{
	const struct end *source = &move->source;
	transDebugEntries entries = {0};
	int32_t ended;

	if (!AFSVolMonitor(source->connection, &entries))
		for (uint32_t i = 0; i < entries.len; i++)
			if (entries.val[i].volid == move->note.stuck && !entries.val[i].callValid)
				AFSVolEndTrans(source->connection, entries.val[i].tid, &ended);
	xdrfree_transDebugEntries(&entries);
}

/* If the server does not give it up for long, an administrator has to remove it. */
static void drop_stuck_clone(const struct move *move)
{
	uint64_t end = monotonic_ns() + CLONE_S * (uint64_t)NS_PER_S;
	int32_t code;

	if (!move->note.stuck)
		return;
	while ((code = remove_stuck_clone(move)) == AFS_VOL_VOLBUSY && monotonic_ns() < end) {
		end_clone_transaction(move);
		pause_ms(250);
	}
	if (code && code != AFS_VNOVOL)
		say_about_move(
			move,
			"the temporary clone %u of an earlier run is still in use at the source; "
			"remove it later with \"vos zap\"",
			(unsigned)move->note.stuck);
}

/* The target is what counts: everything goes from the source. */
static int finish_move(struct move *move, bool drop_entry_site)
{
	const struct end *source = &move->source;
	uint32_t backup;
	volintInfo info;
	int32_t code;

	if (replace_site(move, drop_entry_site))
		return -1;
	if (move->since)
		move->result->away_ns = monotonic_ns() - move->since;
	code = drop_source(move);
	if (code)
		return fail_volume_call(move, source, "removing the volume", code);
	backup = move->job->replica ? 0 : move->entry.volumeId[AFS_VL_BACKUP];
	if (backup && look_at_moved_volume(source, backup, &info) == 0) {
		move->result->backup = true;
		code = delete_volume_at(source, backup);
		if (code)
			return fail_volume_call(move, source, "removing the backup volume", code);
	}
	end_move_transaction(source, &move->clone_transaction);
	code = delete_volume_at(source, move->note.clone);
	if (code)
		return fail_volume_call(move, source, "removing the temporary clone", code);
	drop_stuck_clone(move);
	code = cellside_unlock_entry(move->settings->cell, move->job->rw);
	return code ? fail_location(move, "the lock of the entry", code) : 0;
}

/* -- what an earlier run has left -- */

/* Neither copy counts more than the source, which is as it was. */
static int put_back(struct move *move, bool source_was_out)
{
	int32_t code;

	/* First, so that it can never be on-line beside the source. */
	code = move->note.stage >= MOVE_MAKING ? delete_volume_at(&move->target, move->job->id) : 0;
	if (code)
		return fail_volume_call(move, &move->target, "removing the unfinished copy", code);
	if (source_was_out) {
		code = set_volume_service(&move->source, move->job->id, 0);
		if (code)
			return fail_volume_call(move, &move->source, "bringing the volume on-line",
						code);
	}
	code = delete_volume_at(&move->source, move->note.clone);
	return code ? fail_volume_call(move, &move->source, "removing the temporary clone", code)
		    : 0;
}

/* The servers as they are. 1: the move was done but for its end; 0: the source is as before; -1: failed. */
static int judge_leftovers(struct move *move)
{
	volintInfo source = {0}, target = {0};
	int32_t at_source = look_at_moved_volume(&move->source, move->job->id, &source);
	int32_t at_target = look_at_moved_volume(&move->target, move->job->id, &target);
	bool switching = move->note.stage == MOVE_SWITCHING;

	if (at_source && at_source != ENODEV)
		return fail_volume_call(move, &move->source, "the state of the volume", at_source);
	if (at_target && at_target != ENODEV)
		return fail_volume_call(move, &move->target, "the state of the volume", at_target);
	if (find_move_site(move, &move->target.place) >= 0 && !at_target &&
	    (move->job->replica || at_source || !is_served_volume(&source)))
		return 1;
	if (at_source)
		return fail_move(move, "the server that the entry names does not have the volume; "
				       "nothing was changed: see \"vos syncvldb\"");
	if (!move->job->replica && !at_target && is_served_volume(&target)) {
		if (switching && !is_served_volume(&source))
			return 1;
		return fail_move(move,
				 "both servers have the volume on-line, and nothing was changed: "
				 "find out which copy is newer, and take the other one off-line "
				 "with \"vos offline\"");
	}
	return put_back(move, switching && !is_served_volume(&source)) ? -1 : 0;
}

/* As judge_leftovers(). */
static int resume_move(struct move *move)
{
	move->result->resumed = true;
	say_about_move(move, "was begun by an earlier run");
	if (settle_transactions(move))
		return -1;
	return judge_leftovers(move);
}

/* -- a whole move -- */

/* The source answers callers again. The target cannot: it was never told to. */
static int revive_source(struct move *move)
{
	struct end *source = &move->source;
	bool was_out = !move->job->replica && move->note.stage == MOVE_SWITCHING;
	int32_t code = 0;

	assert(!move->decided);
	if (was_out && source->transaction)
		code = AFSVolSetFlags(source->connection, source->transaction, 0);
	if (end_move_transaction(source, &source->transaction) || code)
		code = was_out ? set_volume_service(source, move->job->id, 0) : 0;
	return code || (was_out && write_note(move, MOVE_MAKING, move->note.clone)) ? -1 : 0;
}

/* After a failure, if the source is still what counts. What fails here is left to the next run. */
static void undo_move(struct move *move)
{
	int32_t code;

	if (move->decided || revive_source(move))
		return;
	end_move_transaction(&move->target, &move->target.transaction);
	if (move->note.stage >= MOVE_MAKING && delete_volume_at(&move->target, move->job->id))
		return;
	end_move_transaction(&move->source, &move->clone_transaction);
	code = delete_volume_at(&move->source, move->note.clone);
	if ((move->locked && cellside_unlock_entry(move->settings->cell, move->job->rw)) || code)
		return;
	movelog_remove(move->log);
	move->log = NULL;
}

static int carry_volume_over(struct move *move)
{
	int32_t date = 0;

	if (make_temporary_clone(move, &date) || make_target_volume(move) ||
	    forward_volume_to(move, move->clone_transaction, 0))
		return -1;
	end_move_transaction(&move->source, &move->clone_transaction);
	return switch_to_target(move, date) || finish_move(move, false) ? -1 : 0;
}

/* The source goes on answering until the target does. */
static int carry_replica_over(struct move *move)
{
	struct end *source = &move->source, *target = &move->target;
	int32_t code = begin_transaction(source, move->job->id, BUSY, &source->transaction);

	if (code) {
		source->transaction = 0;
		return fail_volume_call(move, source, "the transfer", code);
	}
	if (make_target_volume(move) || forward_volume_to(move, source->transaction, 0) ||
	    compare_ends(move))
		return -1;
	code = AFSVolSetIdsTypes(target->connection, target->transaction, move->job->name,
				 AFS_VL_RO, move->job->rw, 0, 0);
	if (code)
		return fail_volume_call(move, target, "the type of the copy", code);
	return bring_target_online(move) || finish_move(move, false) ? -1 : 0;
}

/* Whether the target's server has a copy already, on any partition. */
static bool has_replica_site(const struct move *move)
{
	for (int i = 0; i < move->entry.nServers; i++)
		if (move->entry.serverFlags[i] & VLSF_ROVOL &&
		    cellside_same_server(move->settings->cell,
					 (uint32_t)move->entry.serverNumber[i],
					 move->target.place.address) &&
		    !is_move_site(move, i, &move->source.place))
			return true;
	return false;
}

/* The source has the volume, and the entry says so. */
static int begin_move(struct move *move, bool again)
{
	if (!again && move->entry.flags & LOCKS)
		return fail_move(move, "its entry is locked: another administrator works with the "
				       "volume, or \"vos\" was killed; in the latter case add "
				       "--take-over");
	if (find_move_site(move, &move->source.place) < 0)
		return fail_move(move, "its entry does not name this server; see \"vos syncvldb\"");
	if (write_note(move, MOVE_COPYING, 0) || lock_entry(move, again))
		return -1;
	if (!move->job->replica)
		return carry_volume_over(move);
	if (!has_replica_site(move))
		return carry_replica_over(move);
	move->result->dropped = true;
	move->decided = true;
	return finish_move(move, true);
}

static int run_move(struct move *move, bool found)
{
	bool again = found;
	int result = 0;

	if (read_entry(move))
		return -1;
	if (!found && move->settings->take_over && move->entry.flags & VLOP_MOVE) {
		move->note.stage = MOVE_SWITCHING;
		again = true;
	}
	if (again) {
		move->locked = true;
		result = resume_move(move);
		if (result < 0) {
			move->decided = true;
			return -1;
		}
	}
	if (result > 0)
		return finish_move(move, false);
	move->source.place = move->job->from;
	move->target.place = move->job->to;
	return begin_move(move, again);
}

/* Where an earlier run has moved it from and to. */
static int connect_ends(struct move *move, bool found)
{
	struct cellside *cell = move->settings->cell;

	move->source.place = found ? move->note.from : move->job->from;
	move->target.place = found ? move->note.to : move->job->to;
	move->source.connection = cellside_connect(cell, move->source.place.address);
	move->target.connection = cellside_connect(cell, move->target.place.address);
	if (!move->source.connection || !move->target.connection)
		return fail_move(move, "no memory");
	return 0;
}

/* What the target lists. */
static void note_moved_volume(struct move *move)
{
	volintInfo info;

	if (look_at_moved_volume(&move->target, move->job->id, &info))
		return;
	move->result->files = (uint32_t)info.filecount;
	move->result->used_kib = (uint32_t)info.size;
}

int move_volume(const struct move_settings *settings, const struct move_job *job,
		struct move_result *result)
{
	struct move move = {.settings = settings, .job = job, .result = result};
	bool found = false;
	int rc;

	assert(job->id && job->rw && settings->state);
	*result = (struct move_result){0};
	move.log = movelog_open(settings->state, job->id, &move.note, &found, result->message,
				sizeof(result->message));
	if (!move.log)
		return -1;
	rc = connect_ends(&move, found);
	if (!rc)
		rc = run_move(&move, found);
	if (rc)
		undo_move(&move);
	else
		note_moved_volume(&move);
	if (move.source.connection)
		rxw_connection_release(move.source.connection);
	if (move.target.connection)
		rxw_connection_release(move.target.connection);
	if (move.log && !rc)
		movelog_remove(move.log);
	else if (move.log)
		movelog_close(move.log);
	return rc;
}
