/* SPDX-License-Identifier: BSD-2-Clause */
/* The volumes that are served, an exported directory or a store, with its users and its administrators. */
#include "fileserver/parts.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "afs/volname.h"
#include "common/failure.h"

#define BREAK_MS 5000 /* for clients to answer before an administrator's change is complete */

/* Opens the directory. 0 and the status of its root, or -errno. */
static int open_tree(struct fsd_server *server, const char *export, struct export_stat *st)
{
	int rc;

	if (!realpath(export, server->export))
		return -errno;
	rc = export_layer_posix(server->export, 0, &server->layer);
	if (rc)
		return rc;
	server->own_layer = true;
	return server->layer->ops->stat_path(server->layer, "", st);
}

int fsd_server_open_export(struct fsd_server *server, char *message)
{
	const char *export = server->settings.export;
	struct export_stat st;
	int rc;

	server->layer = server->settings.layer;
	if (server->layer) {
		snprintf(server->export, sizeof(server->export), "%s", export);
		return 0;
	}
	rc = open_tree(server, export, &st);
	if (rc)
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "--export %.300s: %s; give a directory that exists and "
				 "that this user may read",
				 export, strerror(-rc));
	if (!server->settings.all_files && (st.mode & 05) != 05)
		fsd_log(RXW_LOG_WARNING,
			"%s may not be read by \"other\": clients will be refused; chmod o+rx "
			"it, or use --all-files",
			server->export);
	return 0;
}

const char *fsd_server_volume_name(const struct fsd_server *server)
{
	const char *last = strrchr(server->export, '/');

	if (server->settings.volume)
		return server->settings.volume;
	return last && afs_volume_name_valid(last + 1) ? last + 1 : "export";
}

/* -- what an exported directory asks and tells -- */

_Static_assert((int)EXPORT_SIGHT_NONE == (int)FSD_SIGHT_NONE &&
		       (int)EXPORT_SIGHT_WAY == (int)FSD_SIGHT_WAY &&
		       (int)EXPORT_SIGHT_ALL == (int)FSD_SIGHT_ALL,
	       "the rules of --allow give what a caller may see");

static enum export_sight ask_guard(void *arg, const void *who, const char *path)
{
	return (enum export_sight)fsd_guard_may(((struct fsd_server *)arg)->guard, who, path);
}

static void break_changed(void *arg, const struct store_fid *fid, const void *actor)
{
	struct fsd_server *server = arg;
	const AFSFid its = {fid->volume, fid->vnode, fid->unique};

	if (server->clients)
		fsd_promise_break(server->clients, &its, actor);
}

static bool is_promised(void *arg, const struct store_fid *fid)
{
	const AFSFid its = {fid->volume, fid->vnode, fid->unique};

	return fsd_promise_held(((struct fsd_server *)arg)->clients, &its);
}

static size_t next_promised(void *arg, size_t *cursor, struct store_fid *fids, size_t max)
{
	AFSFid its[256];
	size_t n = sizeof(its) / sizeof(its[0]);

	n = fsd_promise_sweep(((struct fsd_server *)arg)->clients, cursor, its, max < n ? max : n,
			      fsd_now());
	for (size_t i = 0; i < n; i++)
		fids[i] = (struct store_fid){its[i].Volume, its[i].Vnode, its[i].Unique};
	return n;
}

static int open_volume(struct fsd_server *server, char *message)
{
	struct export_options options = {
		.name = fsd_server_volume_name(server),
		.root = server->export,
		.layer = server->layer,
		.all_files = server->settings.all_files,
		.log = {.line = fsd_storage_log},
		.hooks = {.may_see = ask_guard,
			  .anonymous = &server->anonymous,
			  .authenticated = &server->somebody,
			  .changed = break_changed,
			  .is_promised = is_promised,
			  .next_promised = next_promised,
			  .arg = server},
	};
	char place[PATH_MAX];
	const char *state = server->settings.state;
	int rc;

	if (!state && fsd_state_default(place, sizeof(place), message))
		return -1;
	rc = fsd_state_open(&server->state, state ? state : place, server->export, message);
	if (rc)
		return rc == FSD_STATE_INSIDE ? FSD_WRONG_SETTINGS : -1;
	if (fsd_state_fids(&server->state, options.name, &options.fids, &options.new_id, message))
		return -1;
	server->anonymous.refused = fsd_guard_protects(server->guard, FSD_FS);
	server->somebody.authenticated = true;
	rc = export_open(&options, &server->served);
	if (rc) {
		fids_close(options.fids);
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "volume %s in %.300s: %s; move its file away to make a new one",
				 options.name, server->state.path, strerror(-rc));
	}
	return 0;
}

/* Its state directory lies in it, and moves with it. */
static int open_store(struct fsd_server *server, char *message)
{
	const struct fsd_settings *settings = &server->settings;
	char place[PATH_MAX + sizeof(FSD_STORAGE_STATE) + 1];
	int rc = fsd_storage_open(settings->store, settings->durability, settings->copy,
				  server->member != NULL, &server->served, message);

	if (rc)
		return rc == FSD_STORAGE_UNFIT ? FSD_WRONG_SETTINGS : -1;
	rc = fsd_storage_set_member(server->served, server->member != NULL, settings->leave_cell,
				    &server->joined, message);
	if (rc)
		return rc == FSD_STORAGE_UNFIT ? FSD_WRONG_SETTINGS : -1;
	if (!settings->anonymous_writes && !fsd_guard_near(server->guard) &&
	    fsd_storage_check_anonymous(server->served, message))
		return -1;
	snprintf(place, sizeof(place), "%s/" FSD_STORAGE_STATE, server->export);
	return fsd_state_open(&server->state, place, NULL, message) ? -1 : 0;
}

int fsd_server_open_volumes(struct fsd_server *server, char *message)
{
	return server->settings.store ? open_store(server, message) : open_volume(server, message);
}

bool fsd_server_start_export(struct fsd_server *server)
{
	assert(server->served && !server->settings.store);
	return export_start(server->served, (unsigned)server->settings.watches,
			    fsd_remember_date(server->remember));
}

/* An administrator has changed something: no client is told by a reply. */
static void break_administered(void *arg, const struct store_changes *changes)
{
	struct fsd_server *server = arg;
	struct fsd_break breaks[sizeof(changes->change) / sizeof(changes->change[0])];

	assert(changes->count <= sizeof(breaks) / sizeof(breaks[0]));
	for (unsigned i = 0; i < changes->count; i++) {
		const struct store_fid *fid = &changes->change[i].fid;

		breaks[i] = (struct fsd_break){.fid = {fid->volume, fid->vnode, fid->unique},
					       .for_all = true,
					       .gone = changes->change[i].gone};
	}
	fsd_promise_break_all(server->clients, breaks, changes->count, NULL, BREAK_MS);
}

/* Callers without an identity must not write, unless only this machine can call, or the server was told so. */
bool fsd_server_no_anonymous_writes(const struct fsd_server *server)
{
	return !server->settings.anonymous_writes && !fsd_guard_near(server->guard);
}

static bool forbids_acl(void *arg, const struct store_acl *acl)
{
	return fsd_server_no_anonymous_writes(arg) && fsd_acl_lets_anyone_write(acl);
}

/* rxvol's requests, if a store is served. */
int fsd_server_open_control(struct fsd_server *server, char *message)
{
	const struct fsd_control_options options = {
		.store = server->served,
		.directory = server->export,
		.changed = break_administered,
		.forbids = forbids_acl,
		.arg = server,
	};

	return server->settings.store ? fsd_control_start(&options, &server->control, message) : 0;
}

static void warn_protection(void *arg, const char *line)
{
	(void)arg;
	fsd_log(RXW_LOG_ERROR, "--protection: %s", line);
}

int fsd_server_open_protection(struct fsd_server *server, char *message)
{
	const struct prot_options options = {
		.path = server->settings.protection,
		.create = true,
		.cell = server->settings.cell,
		.realms = &server->settings.guard.realm,
		.realm_count = server->settings.guard.realm != NULL,
		.dots = server->settings.dotted_principals,
		.warn = warn_protection,
	};
	char why[PROT_MESSAGE_MAX];

	if (!server->settings.protection || prot_open(&options, &server->prot, why) == 0)
		return 0;
	return fail_with(-1, message, FSD_MESSAGE_MAX, "--protection: %.490s", why);
}

void fsd_server_note_ids(struct fsd_server *server)
{
	if (server->settings.store && server->served && server->prot)
		fsd_storage_note_ids(server->served, server->prot);
}
