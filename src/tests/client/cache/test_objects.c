/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of the client's cache: promises and each race with them, rights, own changes, directories, memory. */
#include "tests/tools/testing.h"

#include "afs/dir.h"
#include "afs/fetchstatus.h"
#include "client/cache/changes.h"
#include "client/cache/listing.h"

#define SECOND 1000000000ull
#define NOW    (1000 * SECOND)
#define HOUR   3600u
#define SERVER 1u
#define ANNA   5u
#define BERT   6u

static const struct rxafs_fid file_fid = {1, 100, 4, 9}, dir_fid = {1, 100, 1, 1};

static struct cl_cache *cache;

static void setup(void)
{
	cache = cl_cache_create(&(struct cl_cache_limits){.key = {3, 4}});
	ck_assert_ptr_nonnull(cache);
}

static void teardown(void)
{
	cl_cache_destroy(cache);
}

static AFSFetchStatus make_status(uint32_t type, uint64_t version)
{
	AFSFetchStatus status = {.InterfaceVersion = 1,
				 .FileType = type,
				 .LinkCount = 1,
				 .UnixModeBits = 0644,
				 .ServerModTime = 50,
				 .ClientModTime = 50,
				 .CallerAccess = 11,
				 .AnonymousAccess = 9,
				 .ParentVnode = 1,
				 .ParentUnique = 1};

	afs_status_set_version(&status, version);
	return status;
}

static struct cl_reply make_reply(void)
{
	return (struct cl_reply){.note = cl_cache_note(cache),
				 .sent = NOW,
				 .server = SERVER,
				 .identity = ANNA,
				 .sync = 7,
				 .lifetime = HOUR};
}

static enum cl_verdict apply(struct cl_object *object, const struct cl_reply *reply,
			     const AFSFetchStatus *status)
{
	struct cl_status known;

	return cl_cache_apply(object, reply, status, &known);
}

static struct cl_object *get(struct rxafs_fid fid)
{
	struct cl_object *object = cl_cache_get(cache, &fid);

	ck_assert_ptr_nonnull(object);
	return object;
}

static struct cl_status status_of(struct cl_object *object)
{
	struct cl_status status;

	cl_object_status(object, NOW, &status);
	return status;
}

static bool is_valid(struct cl_object *object)
{
	return status_of(object).valid_until != 0;
}

/* A file of version 5 with a promise. */
static struct cl_object *known_file(void)
{
	struct cl_object *file = get(file_fid);
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_reply reply = make_reply();

	ck_assert_int_eq(apply(file, &reply, &status), CL_KEEP);
	ck_assert(is_valid(file));
	return file;
}

static struct cl_object *known_dir(uint64_t version)
{
	struct cl_object *dir = get(dir_fid);
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, version);
	struct cl_reply reply = make_reply();

	afs_status_set_length(&status, AFS_DIR_PAGE);
	apply(dir, &reply, &status);
	return dir;
}

START_TEST(promises_end)
{
	struct cl_object *file = known_file();
	struct cl_status status;

	ck_assert_uint_eq(status_of(file).valid_until, NOW + HOUR * SECOND - CL_PROMISE_MARGIN_NS);
	ck_assert_int_eq(
		cl_object_status(file, NOW + HOUR * SECOND - CL_PROMISE_MARGIN_NS - 1, &status), 0);
	ck_assert_int_eq(
		cl_object_status(file, NOW + HOUR * SECOND - CL_PROMISE_MARGIN_NS, &status),
		-ESTALE);
	ck_assert_uint_eq(status.version, 5);
	ck_assert_uint_eq(status.valid_until, 0);
	cl_object_put(file);
}
END_TEST

/* K-041: a promise of ten seconds or less is none, but the answer is known. */
START_TEST(short_promises_are_none)
{
	struct cl_object *file = get(file_fid);
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_reply reply = make_reply();
	struct cl_status known;

	for (reply.lifetime = 0; reply.lifetime <= 10; reply.lifetime += 10) {
		cl_cache_apply(file, &reply, &status, &known);
		ck_assert_uint_eq(known.version, 5);
		ck_assert(!is_valid(file));
	}
	cl_object_put(file);
}
END_TEST

START_TEST(breaks_end_promises)
{
	struct cl_object *file = known_file(), *broken;
	struct rxafs_fid other = {1, 100, 6, 6}, volume = {1, 100, 0, 0};
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_reply reply;
	bool whole;

	ck_assert_ptr_null(cl_cache_break(cache, &other, &whole));
	ck_assert(is_valid(file));
	broken = cl_cache_break(cache, &file_fid, &whole);
	ck_assert(broken == file && !whole && !is_valid(file));
	cl_object_put(broken);
	reply = make_reply();
	apply(file, &reply, &status);
	ck_assert(is_valid(file));
	ck_assert_ptr_null(cl_cache_break(cache, &volume, &whole));
	ck_assert(whole && !is_valid(file));
	reply = make_reply();
	apply(file, &reply, &status);
	cl_cache_reset(cache, SERVER + 1);
	ck_assert(is_valid(file));
	cl_cache_reset(cache, SERVER);
	ck_assert(!is_valid(file));
	reply = make_reply();
	apply(file, &reply, &status);
	ck_assert(is_valid(file));
	cl_cache_doubt(cache);
	ck_assert(!is_valid(file));
	reply = make_reply();
	apply(file, &reply, &status);
	cl_object_doubt(file);
	ck_assert(!is_valid(file));
	cl_object_put(file);
}
END_TEST

/* -- race 1 -------------------------------------------------------------------------------- */

enum event {
	FILE_BROKEN,
	VOLUME_BROKEN,
	SERVER_RESET,
	ALL_DOUBTED,
	EVENTS
};

static void happen(enum event event)
{
	struct rxafs_fid volume = {1, 100, 0, 0};
	bool whole;

	if (event == FILE_BROKEN)
		cl_object_put(cl_cache_break(cache, &file_fid, &whole));
	else if (event == VOLUME_BROKEN)
		cl_cache_break(cache, &volume, &whole);
	else if (event == SERVER_RESET)
		cl_cache_reset(cache, SERVER);
	else
		cl_cache_doubt(cache);
}

/* K-047: the break overtakes the reply, of known objects, unknown ones and volumes that were never seen. */
START_TEST(breaks_during_calls)
{
	for (int known = 0; known < 2; known++)
		for (enum event event = 0; event < EVENTS; event++) {
			struct cl_object *file = known ? known_file() : NULL;
			AFSFetchStatus status = make_status(RXAFS_FILE, 6);
			struct cl_reply reply = make_reply();
			struct cl_status now;

			happen(event);
			if (!known)
				file = get(file_fid);
			cl_cache_apply(file, &reply, &status, &now);
			ck_assert_uint_eq(now.version, 6);
			ck_assert(!is_valid(file));
			reply = make_reply();
			apply(file, &reply, &status);
			ck_assert(is_valid(file));
			cl_object_put(file);
			teardown();
			setup();
		}
}
END_TEST

/* -- race 2 -------------------------------------------------------------------------------- */

START_TEST(old_replies_change_nothing)
{
	struct cl_object *file = get(file_fid);
	AFSFetchStatus older = make_status(RXAFS_FILE, 5), newer = make_status(RXAFS_FILE, 6);
	struct cl_reply first = make_reply(), second = make_reply();

	second.sent++;
	ck_assert_int_eq(apply(file, &second, &newer), CL_KEEP);
	ck_assert_int_eq(apply(file, &first, &older), CL_KEEP);
	ck_assert_uint_eq(status_of(file).version, 6);
	ck_assert(is_valid(file));
	cl_object_put(file);
}
END_TEST

START_TEST(server_time_decides)
{
	struct cl_object *file = get(file_fid);
	AFSFetchStatus older = make_status(RXAFS_FILE, 5), newer = older;
	struct cl_reply first = make_reply(), second = first;

	newer.UnixModeBits = 0600;
	newer.ServerModTime = older.ServerModTime + 1;
	apply(file, &second, &newer);
	apply(file, &first, &older);
	ck_assert_uint_eq(status_of(file).mode, 0600);
	cl_object_put(file);
}
END_TEST

/* Equal versions and times: the later request. */
START_TEST(later_request_decides)
{
	struct cl_object *file = get(file_fid);
	AFSFetchStatus one = make_status(RXAFS_FILE, 5), other = one;
	struct cl_reply first = make_reply(), second = first;

	other.UnixModeBits = 0600;
	second.sent++;
	apply(file, &second, &other);
	apply(file, &first, &one);
	ck_assert_uint_eq(status_of(file).mode, 0600);
	/* Without a promise it does not replace one that has it. */
	second.sent++;
	second.lifetime = 0;
	apply(file, &second, &one);
	ck_assert_uint_eq(status_of(file).mode, 0600);
	ck_assert(is_valid(file));
	cl_object_put(file);
}
END_TEST

/* A request that was sent when the status was known already brings the truth, also a lower version. */
START_TEST(lost_changes_are_seen)
{
	struct cl_object *file = known_file();
	AFSFetchStatus status = make_status(RXAFS_FILE, 3);
	struct cl_reply reply = make_reply();

	ck_assert_int_eq(apply(file, &reply, &status), CL_DROP_CLEAN);
	ck_assert_uint_eq(status_of(file).version, 3);
	ck_assert_uint_eq(status_of(file).clean_from, 3);
	cl_object_put(file);
}
END_TEST

START_TEST(foreign_changes_drop_contents)
{
	struct cl_object *file = known_file();
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_reply reply = make_reply();

	status.UnixModeBits = 0600;
	ck_assert_int_eq(apply(file, &reply, &status), CL_KEEP);
	ck_assert_uint_eq(status_of(file).clean_from, 5);
	status = make_status(RXAFS_FILE, 6);
	reply = make_reply();
	ck_assert_int_eq(apply(file, &reply, &status), CL_DROP_CLEAN);
	ck_assert_uint_eq(status_of(file).clean_from, 6);
	status = make_status(RXAFS_SYMLINK, 7);
	reply = make_reply();
	ck_assert_int_eq(apply(file, &reply, &status), CL_DROP_ALL);
	cl_object_put(file);
}
END_TEST

/* -- races 3 and 4 ------------------------------------------------------------------------- */

/* The end of an own change that the server carried out. */
static enum cl_verdict end_change(struct cl_object *object, struct cl_reply reply,
				  const AFSFetchStatus *status, unsigned raised,
				  const struct cl_edit *edit)
{
	struct cl_effect effect = {.outcome = CL_DONE,
				   .reply = &reply,
				   .status = status,
				   .raised = raised,
				   .edit = edit};

	reply.lifetime = 0;
	return cl_change_end(object, &effect, NULL);
}

/* K-049: a status that was read before an own change arrives after its reply. */
START_TEST(own_changes_stay)
{
	struct cl_object *file = known_file();
	AFSFetchStatus old = make_status(RXAFS_FILE, 5), stored = make_status(RXAFS_FILE, 6),
		       chmod = stored;
	struct cl_reply before = make_reply();

	cl_change_begin(file);
	ck_assert_int_eq(end_change(file, make_reply(), &stored, 1, NULL), CL_KEEP);
	apply(file, &before, &old);
	ck_assert_uint_eq(status_of(file).version, 6);
	ck_assert_uint_eq(status_of(file).clean_from, 5);
	ck_assert(is_valid(file));
	/* chmod does not raise the version. */
	before = make_reply();
	before.sent += 5;
	chmod.UnixModeBits = 0600;
	cl_change_begin(file);
	end_change(file, make_reply(), &chmod, 0, NULL);
	apply(file, &before, &stored);
	ck_assert_uint_eq(status_of(file).mode, 0600);
	ck_assert(is_valid(file));
	cl_object_put(file);
}
END_TEST

/* The promise in a reply that is older than an own change must not make the status trusted: others may have changed it. */
START_TEST(overtaken_promises_do_not_count)
{
	struct cl_object *file = get(file_fid);
	AFSFetchStatus old = make_status(RXAFS_FILE, 5), chmod = old;
	struct cl_reply before = make_reply();

	chmod.UnixModeBits = 0600;
	cl_change_begin(file);
	end_change(file, make_reply(), &chmod, 0, NULL);
	ck_assert(!is_valid(file));
	apply(file, &before, &old);
	ck_assert(!is_valid(file));
	cl_object_put(file);
}
END_TEST

/* K-061, K-077. */
START_TEST(jumps_are_conflicts)
{
	struct cl_object *file = known_file();
	AFSFetchStatus stored = make_status(RXAFS_FILE, 7);

	cl_change_begin(file);
	ck_assert_int_eq(end_change(file, make_reply(), &stored, 1, NULL), CL_DROP_CLEAN);
	ck_assert_uint_eq(status_of(file).clean_from, 7);
	ck_assert(!is_valid(file));
	cl_object_put(file);
}
END_TEST

START_TEST(stores_overlap)
{
	struct cl_object *file = known_file();
	AFSFetchStatus six = make_status(RXAFS_FILE, 6), seven = make_status(RXAFS_FILE, 7),
		       eight = make_status(RXAFS_FILE, 8);
	struct cl_reply one = make_reply(), two = make_reply(), three = make_reply();
	struct cl_cache_counts counts;

	for (int i = 0; i < 3; i++)
		cl_change_begin(file);
	ck_assert_int_eq(end_change(file, three, &eight, 1, NULL), CL_KEEP);
	ck_assert_int_eq(end_change(file, two, &seven, 1, NULL), CL_KEEP);
	ck_assert_int_eq(end_change(file, one, &six, 1, NULL), CL_KEEP);
	ck_assert_uint_eq(status_of(file).version, 8);
	ck_assert_uint_eq(status_of(file).clean_from, 5);
	ck_assert(is_valid(file));
	cl_cache_count(cache, &counts);
	ck_assert_uint_eq(counts.reordered, 2);
	cl_object_put(file);
}
END_TEST

/* A gap that no own change fills. */
START_TEST(gaps_are_conflicts)
{
	struct cl_object *file = known_file();
	AFSFetchStatus seven = make_status(RXAFS_FILE, 7);
	struct cl_reply two = make_reply();

	cl_change_begin(file);
	cl_change_begin(file);
	ck_assert_int_eq(end_change(file, two, &seven, 1, NULL), CL_KEEP);
	ck_assert_int_eq(cl_change_end(file, &(struct cl_effect){.outcome = CL_NOT_DONE}, NULL),
			 CL_DROP_CLEAN);
	ck_assert_uint_eq(status_of(file).clean_from, 7);
	cl_object_put(file);
}
END_TEST

/* A status shows an own change before its reply does; with a break it may be somebody else's. */
START_TEST(changes_are_seen_early)
{
	for (int broken = 0; broken < 2; broken++) {
		struct cl_object *file = known_file();
		AFSFetchStatus six = make_status(RXAFS_FILE, 6);
		struct cl_reply change = make_reply(), reply;

		cl_change_begin(file);
		if (broken)
			happen(FILE_BROKEN);
		reply = make_reply();
		ck_assert_int_eq(apply(file, &reply, &six), broken ? CL_DROP_CLEAN : CL_KEEP);
		end_change(file, change, &six, 1, NULL);
		ck_assert_uint_eq(status_of(file).clean_from, broken ? 6 : 5);
		cl_object_put(file);
		teardown();
		setup();
	}
}
END_TEST

/* Two changes that do not raise the version: which was the last is not known. */
START_TEST(unordered_changes_are_asked)
{
	struct cl_object *file = known_file();
	AFSFetchStatus one = make_status(RXAFS_FILE, 5), two = one;
	struct cl_reply first = make_reply(), second = make_reply();

	one.UnixModeBits = 0600;
	two.UnixModeBits = 0644;
	cl_change_begin(file);
	cl_change_begin(file);
	end_change(file, second, &two, 0, NULL);
	end_change(file, first, &one, 0, NULL);
	ck_assert(!is_valid(file));
	cl_object_put(file);
}
END_TEST

/* No answer: the change may still come, and nobody breaks our promise then. */
START_TEST(unknown_changes_end_trust)
{
	struct cl_object *file = known_file();
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_effect effect = {.outcome = CL_UNKNOWN, .now = NOW};
	struct cl_reply reply;

	cl_change_begin(file);
	cl_change_end(file, &effect, NULL);
	ck_assert(!is_valid(file));
	reply = make_reply();
	apply(file, &reply, &status);
	ck_assert(!is_valid(file));
	reply.sent = NOW + 200 * SECOND;
	apply(file, &reply, &status);
	ck_assert(is_valid(file));
	cl_object_put(file);
}
END_TEST

/* -- volumes ------------------------------------------------------------------------------- */

/* K-052. */
START_TEST(restored_volumes_drop_all)
{
	struct cl_object *file = known_file(), *other;
	struct rxafs_fid other_fid = {1, 100, 6, 6};
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_reply reply = make_reply(), late = make_reply();

	other = get(other_fid);
	reply.sync = 8;
	apply(other, &reply, &status);
	ck_assert(!is_valid(file) && is_valid(other));
	ck_assert_uint_eq(status_of(file).incarnation, 7);
	/* A reply from before the restore. */
	ck_assert_int_eq(apply(file, &late, &status), CL_ASK_AGAIN);
	ck_assert(!is_valid(file));
	reply = make_reply();
	reply.sync = 8;
	ck_assert_int_eq(apply(file, &reply, &status), CL_DROP_CLEAN);
	ck_assert(is_valid(file));
	ck_assert_uint_eq(status_of(file).incarnation, 8);
	cl_object_put(file);
	cl_object_put(other);
}
END_TEST

static void make_readonly(void)
{
	ck_assert_int_eq(cl_cache_set_readonly(cache, file_fid.cell, file_fid.volume, true), 0);
}

/* K-042: a promise for one object renews those of the volume. */
START_TEST(readonly_promises_are_shared)
{
	struct rxafs_fid other_fid = {1, 100, 6, 6};
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_object *file, *other;
	struct cl_reply reply;
	struct cl_status now;
	bool whole;

	make_readonly();
	file = known_file();
	other = get(other_fid);
	reply = make_reply();
	reply.sent += HOUR * SECOND;
	ck_assert_int_eq(cl_object_status(file, reply.sent, &now), -ESTALE);
	apply(other, &reply, &status);
	ck_assert_int_eq(cl_object_status(file, reply.sent, &now), 0);
	ck_assert_ptr_null(cl_cache_break(cache, &other_fid, &whole));
	ck_assert(whole);
	ck_assert_int_eq(cl_object_status(file, reply.sent, &now), -ESTALE);
	/* After a break each object is asked again. */
	reply.note = cl_cache_note(cache);
	apply(other, &reply, &status);
	ck_assert_int_eq(cl_object_status(other, reply.sent, &now), 0);
	ck_assert_int_eq(cl_object_status(file, reply.sent, &now), -ESTALE);
	cl_object_put(file);
	cl_object_put(other);
}
END_TEST

START_TEST(releases_are_validated_by_version)
{
	struct rxafs_fid other_fid = {1, 100, 6, 6};
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_object *file, *other;
	struct cl_reply reply;

	make_readonly();
	file = known_file();
	other = get(other_fid);
	reply = make_reply();
	reply.sync = 9;
	apply(other, &reply, &status);
	ck_assert(!is_valid(file));
	ck_assert_int_eq(apply(file, &reply, &status), CL_KEEP);
	ck_assert(is_valid(file));
	ck_assert_uint_eq(status_of(file).incarnation, 50);
	/* A site that has the older release. */
	reply = make_reply();
	reply.server = 2;
	status = make_status(RXAFS_FILE, 4);
	ck_assert_int_eq(apply(file, &reply, &status), CL_OTHER_SITE);
	ck_assert_uint_eq(status_of(file).version, 5);
	reply.older = true;
	ck_assert_int_eq(apply(file, &reply, &status), CL_DROP_CLEAN);
	ck_assert_uint_eq(status_of(file).version, 4);
	cl_object_put(file);
	cl_object_put(other);
}
END_TEST

/* Sites have promises of their own (K-136). Without AFSVolSync a gap between promises makes all be asked. */
START_TEST(sites_and_gaps)
{
	struct rxafs_fid other_fid = {1, 100, 6, 6};
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_object *file, *other;
	struct cl_reply reply;
	struct cl_status now;

	make_readonly();
	file = get(file_fid);
	other = get(other_fid);
	reply = make_reply();
	reply.sync = 0;
	apply(file, &reply, &status);
	reply.server = 2;
	apply(other, &reply, &status);
	cl_cache_reset(cache, SERVER);
	ck_assert(is_valid(file) && is_valid(other));
	cl_cache_reset(cache, 2);
	ck_assert(!is_valid(file) && !is_valid(other));
	reply = make_reply();
	reply.sync = 0;
	apply(other, &reply, &status);
	ck_assert(is_valid(other) && !is_valid(file));
	reply.sent += 2 * HOUR * SECOND;
	reply.note = cl_cache_note(cache);
	apply(other, &reply, &status);
	ck_assert_int_eq(cl_object_status(other, reply.sent, &now), 0);
	cl_object_put(file);
	cl_object_put(other);
}
END_TEST

/* -- rights -------------------------------------------------------------------------------- */

static int rights_of(struct cl_object *object, uint32_t identity, uint32_t *rights)
{
	*rights = 0;
	return cl_object_rights(object, identity, NOW, rights);
}

START_TEST(rights_by_identity)
{
	struct cl_object *dir = known_dir(5);
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, 5);
	struct cl_reply reply = make_reply();
	uint32_t rights;

	ck_assert_int_eq(rights_of(dir, ANNA, &rights), 0);
	ck_assert_uint_eq(rights, 11);
	ck_assert_int_eq(rights_of(dir, 0, &rights), 0);
	ck_assert_uint_eq(rights, 9);
	ck_assert_int_eq(rights_of(dir, BERT, &rights), -ESTALE);
	afs_status_set_length(&status, AFS_DIR_PAGE);
	status.CallerAccess = 127;
	for (uint32_t identity = BERT; identity < BERT + 100; identity++) {
		reply.identity = identity;
		apply(dir, &reply, &status);
		ck_assert_int_eq(rights_of(dir, identity, &rights), 0);
		ck_assert_uint_eq(rights, 127);
	}
	cl_object_put(dir);
}
END_TEST

/* Other identities' rights do not outlive a time without a promise, nor an own change of the access list. */
START_TEST(rights_end_with_promises)
{
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, 5);
	struct cl_object *dir = known_dir(5);
	struct cl_reply reply = make_reply();
	struct cl_effect effect;
	uint32_t rights;
	bool whole;

	afs_status_set_length(&status, AFS_DIR_PAGE);
	reply.identity = BERT;
	apply(dir, &reply, &status);
	ck_assert_int_eq(rights_of(dir, ANNA, &rights), 0);
	ck_assert_int_eq(rights_of(dir, BERT, &rights), 0);
	cl_object_put(cl_cache_break(cache, &dir_fid, &whole));
	ck_assert_int_eq(rights_of(dir, BERT, &rights), -ESTALE);
	reply = make_reply();
	apply(dir, &reply, &status);
	ck_assert_int_eq(rights_of(dir, ANNA, &rights), 0);
	ck_assert_int_eq(rights_of(dir, BERT, &rights), -ESTALE);
	reply = make_reply();
	effect = (struct cl_effect){
		.outcome = CL_DONE, .reply = &reply, .status = &status, .acl = true};
	cl_change_begin(dir);
	cl_change_end(dir, &effect, NULL);
	ck_assert(is_valid(dir));
	ck_assert_int_eq(rights_of(dir, ANNA, &rights), -ESTALE);
	cl_object_put(dir);
}
END_TEST

/* -- directories --------------------------------------------------------------------------- */

static void load(struct cl_object *dir, uint64_t version, int want, struct cl_names **once)
{
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, version);
	struct cl_reply reply = make_reply();
	struct afs_dir builder;
	const char *fault;
	uint8_t *image;
	size_t length;

	ck_assert_int_eq(afs_dir_begin(&builder, 1, 1, 1, 1), 0);
	ck_assert_int_eq(afs_dir_add(&builder, "file", 4, 4, 9), 0);
	image = afs_dir_take(&builder, &length);
	afs_status_set_length(&status, length);
	ck_assert_int_eq(cl_dir_load(dir, &reply, &status, image, length, once, &fault), want);
	ck_assert_int_eq(cl_dir_load(dir, &reply, &status, image, length - 1, once, &fault), -EIO);
	free(image);
}

static int find(struct cl_object *dir, const char *name, struct rxafs_fid *fid)
{
	return cl_dir_find(dir, name, strlen(name), NOW, fid);
}

START_TEST(names_are_found)
{
	struct cl_object *dir = get(dir_fid), *child;
	struct cl_status status;
	struct rxafs_fid fid;

	ck_assert_int_eq(find(dir, "file", &fid), -ESTALE);
	cl_object_put(dir);
	dir = known_dir(5);
	ck_assert_int_eq(find(dir, "file", &fid), -ESTALE);
	load(dir, 5, 0, NULL);
	ck_assert(cl_dir_loaded(dir, NOW));
	ck_assert_int_eq(find(dir, "file", &fid), 0);
	ck_assert(rxafs_fid_same(&fid, &file_fid));
	ck_assert_int_eq(find(dir, "none", &fid), -ENOENT);
	ck_assert_int_eq(cl_dir_walk(dir, "file", 4, NOW, &child, &status), -EAGAIN);
	ck_assert_int_eq(status.kind, 0);
	cl_object_put(child);
	cl_object_put(known_file());
	ck_assert_int_eq(cl_dir_walk(dir, "file", 4, NOW, &child, &status), 0);
	ck_assert_uint_eq(status.version, 5);
	ck_assert_int_eq(find(child, "x", &fid), -ENOTDIR);
	cl_object_put(child);
	cl_object_doubt(dir);
	ck_assert_int_eq(find(dir, "file", &fid), -ESTALE);
	cl_object_put(dir);
}
END_TEST

START_TEST(other_versions_are_not_kept)
{
	struct cl_object *dir = known_dir(6);
	struct cl_names *once = NULL;
	uint32_t vnode, unique;

	load(dir, 5, -ESTALE, NULL);
	load(dir, 5, -ESTALE, &once);
	ck_assert_ptr_nonnull(once);
	ck_assert(cl_names_find(once, "file", 4, &vnode, &unique));
	cl_names_free(once);
	load(dir, 6, 0, NULL);
	cl_object_put(known_dir(7));
	ck_assert(!cl_dir_loaded(dir, NOW));
	cl_object_put(dir);
}
END_TEST

static const struct cl_edit add_new = {.added = "new", .added_length = 3, .vnode = 8, .unique = 8},
			    remove_file = {.removed = "file", .removed_length = 4};

static enum cl_verdict edit_dir(struct cl_object *dir, struct cl_reply reply, uint64_t version,
				const struct cl_edit *edit)
{
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, version);

	afs_status_set_length(&status, AFS_DIR_PAGE);
	return end_change(dir, reply, &status, 1, edit);
}

/* K-090. */
START_TEST(own_edits_keep_names)
{
	struct cl_object *dir = known_dir(5);
	struct rxafs_fid fid;

	load(dir, 5, 0, NULL);
	cl_change_begin(dir);
	ck_assert_int_eq(edit_dir(dir, make_reply(), 6, &add_new), CL_KEEP);
	ck_assert_int_eq(find(dir, "new", &fid), 0);
	ck_assert_uint_eq(fid.vnode, 8);
	cl_change_begin(dir);
	ck_assert_int_eq(edit_dir(dir, make_reply(), 7, &remove_file), CL_KEEP);
	ck_assert_int_eq(find(dir, "file", &fid), -ENOENT);
	cl_change_begin(dir);
	ck_assert_int_eq(edit_dir(dir, make_reply(), 9, &remove_file), CL_DROP_CLEAN);
	ck_assert_int_eq(find(dir, "new", &fid), -ESTALE);
	cl_object_put(dir);
}
END_TEST

/* K-050: the name is made and removed again; the replies come the other way round. */
START_TEST(edits_in_the_order_of_versions)
{
	static const struct cl_edit remove_new = {.removed = "new", .removed_length = 3};
	struct cl_object *dir = known_dir(5);
	struct cl_reply first = make_reply(), second = make_reply();
	struct rxafs_fid fid;

	load(dir, 5, 0, NULL);
	cl_change_begin(dir);
	cl_change_begin(dir);
	ck_assert_int_eq(edit_dir(dir, second, 7, &remove_new), CL_KEEP);
	ck_assert_int_eq(find(dir, "file", &fid), -ESTALE);
	ck_assert_int_eq(edit_dir(dir, first, 6, &add_new), CL_KEEP);
	ck_assert_int_eq(find(dir, "file", &fid), 0);
	ck_assert_int_eq(find(dir, "new", &fid), -ENOENT);
	cl_object_put(dir);
}
END_TEST

/* An image that has the change already is not edited again. */
START_TEST(loads_between_edits)
{
	struct cl_object *dir = known_dir(5);
	struct cl_reply change = make_reply(), reply;
	AFSFetchStatus six = make_status(RXAFS_DIRECTORY, 6);
	struct rxafs_fid fid;

	load(dir, 5, 0, NULL);
	cl_change_begin(dir);
	reply = make_reply();
	afs_status_set_length(&six, AFS_DIR_PAGE);
	apply(dir, &reply, &six);
	load(dir, 6, 0, NULL);
	ck_assert_int_eq(find(dir, "file", &fid), 0);
	ck_assert_int_eq(edit_dir(dir, change, 6, &add_new), CL_KEEP);
	ck_assert_int_eq(find(dir, "new", &fid), -ENOENT);
	cl_object_put(dir);
}
END_TEST

START_TEST(new_directories_are_known)
{
	struct cl_object *dir = known_dir(5), *made = get((struct rxafs_fid){1, 100, 3, 3});
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, 0);
	struct cl_reply reply = make_reply();
	struct rxafs_fid fid;

	afs_status_set_length(&status, AFS_DIR_PAGE);
	apply(made, &reply, &status);
	ck_assert_int_eq(cl_dir_load_new(made, dir), 0);
	ck_assert_int_eq(find(made, "..", &fid), 0);
	ck_assert(rxafs_fid_same(&fid, &dir_fid));
	ck_assert_int_eq(find(made, "x", &fid), -ENOENT);
	cl_object_moved(made, 5, 5);
	ck_assert_int_eq(find(made, "..", &fid), 0);
	ck_assert_uint_eq(fid.vnode, 5);
	cl_object_put(made);
	cl_object_put(dir);
}
END_TEST

START_TEST(neighbours_are_those_to_ask)
{
	struct cl_object *dir = known_dir(5), *some;
	AFSFetchStatus status = make_status(RXAFS_FILE, 1);
	struct cl_reply reply = make_reply();
	struct cl_entry entries[7];
	struct rxafs_fid fids[50];
	uint64_t offset = 0;
	unsigned count, all = 0;
	char name[16];

	load(dir, 5, 0, NULL);
	for (uint32_t i = 0; i < 100; i++) {
		struct cl_edit edit = {.added = name, .vnode = 100 + 2 * i, .unique = i};

		edit.added_length = (size_t)snprintf(name, sizeof(name), "n%u", i);
		cl_change_begin(dir);
		edit_dir(dir, make_reply(), 6 + i, &edit);
	}
	some = get((struct rxafs_fid){1, 100, 102, 1});
	apply(some, &reply, &status);
	count = cl_dir_neighbours(dir, "n0", 2, NOW, fids, 50);
	ck_assert_uint_eq(count, 50);
	ck_assert_uint_eq(fids[0].vnode, 100);
	ck_assert_uint_eq(fids[1].vnode, 104); /* n1 is known */
	ck_assert_uint_eq(cl_dir_neighbours(dir, "n99", 3, NOW, fids, 50), 1);
	ck_assert_uint_eq(cl_dir_neighbours(dir, "none", 4, NOW, fids, 50), 0);
	while ((count = cl_dir_unasked(dir, &offset, NOW, fids, 50)) > 0)
		all += count;
	ck_assert_uint_eq(all, 100); /* with "file", without n1 */
	offset = 0;
	all = 0;
	do {
		ck_assert_int_eq(cl_dir_next(dir, offset, entries, 7, &count), 0);
		all += count;
		offset = count ? entries[count - 1].next : 0;
	} while (count);
	ck_assert_uint_eq(all, 103);
	cl_object_put(some);
	cl_object_put(dir);
}
END_TEST

/* -- memory -------------------------------------------------------------------------------- */

static unsigned dropped;

static void count_drop(void *user)
{
	dropped += user != NULL;
}

START_TEST(objects_are_bounded)
{
	struct cl_cache_limits limits = {.objects = 1000, .drop = count_drop, .key = {5, 6}};
	struct cl_object *held[100], *batch[64];
	AFSFetchStatus status = make_status(RXAFS_FILE, 1);
	struct rxafs_fid fids[50], volume = {1, 100, 0, 0};
	struct cl_cache_counts counts;
	struct cl_reply reply;
	uint64_t cursor = 0;
	size_t count, given = 0;
	uint32_t server;

	teardown();
	dropped = 0;
	cache = cl_cache_create(&limits);
	reply = make_reply();
	for (uint32_t i = 0; i < 5000; i++) {
		struct cl_object *object = get((struct rxafs_fid){1, 100, 2 * i + 2, i});

		ck_assert_ptr_eq(cl_object_set_user(object, &limits), &limits);
		apply(object, &reply, &status);
		if (i < 100)
			held[i] = object;
		else
			cl_object_put(object);
	}
	cl_cache_count(cache, &counts);
	ck_assert_uint_le(counts.objects, 1100);
	ck_assert_uint_eq(counts.evicted, 5000 - counts.objects);
	ck_assert_uint_eq(dropped, counts.evicted);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert(is_valid(held[i]));
		cl_object_put(held[i]);
	}
	while ((count = cl_cache_walk(cache, &cursor, &volume, batch, 64)) > 0) {
		given += count;
		while (count)
			cl_object_put(batch[--count]);
	}
	cl_cache_count(cache, &counts);
	ck_assert_uint_eq(given, counts.objects);
	given = 0;
	while ((count = cl_cache_give_up(cache, &server, fids, 50)) > 0) {
		ck_assert_uint_eq(server, SERVER);
		cl_cache_gave_up(cache, fids, count, true, NOW);
		given += count;
	}
	ck_assert_uint_gt(given, 900);
}
END_TEST

/* While a promise is being given back a new one for the same FID does not count: the server may take it back at once. */
START_TEST(promises_are_given_back)
{
	struct cl_cache_limits limits = {.objects = 1, .key = {5, 6}};
	AFSFetchStatus status = make_status(RXAFS_FILE, 1);
	struct cl_object *object;
	struct rxafs_fid fids[50];
	struct cl_reply reply;
	uint32_t server;
	size_t count;

	teardown();
	cache = cl_cache_create(&limits);
	reply = make_reply();
	for (uint32_t i = 0; i < 1000; i++) {
		object = get((struct rxafs_fid){1, 100, 2 * i + 2, i});
		apply(object, &reply, &status);
		cl_object_put(object);
	}
	count = cl_cache_give_up(cache, &server, fids, 50);
	ck_assert_uint_gt(count, 0);
	object = get(fids[0]);
	reply = make_reply();
	apply(object, &reply, &status);
	ck_assert(!is_valid(object));
	cl_cache_gave_up(cache, fids, count, true, NOW);
	apply(object, &reply, &status);
	ck_assert(!is_valid(object));
	reply = make_reply();
	apply(object, &reply, &status);
	ck_assert(is_valid(object));
	cl_object_put(object);
}
END_TEST

START_TEST(names_are_bounded)
{
	struct cl_cache_limits limits = {.name_bytes = 100000, .key = {5, 6}};
	struct cl_object *dirs[200], *parent;
	struct cl_cache_counts counts;
	unsigned loaded = 0;

	teardown();
	cache = cl_cache_create(&limits);
	parent = known_dir(1);
	for (uint32_t i = 0; i < 200; i++) {
		AFSFetchStatus status = make_status(RXAFS_DIRECTORY, 0);
		struct cl_reply reply = make_reply();

		dirs[i] = get((struct rxafs_fid){1, 100, 2 * i + 3, i});
		apply(dirs[i], &reply, &status);
		ck_assert_int_eq(cl_dir_load_new(dirs[i], parent), 0);
		ck_assert(cl_dir_loaded(dirs[i], NOW));
	}
	cl_cache_count(cache, &counts);
	ck_assert_uint_le(counts.name_bytes, limits.name_bytes);
	for (unsigned i = 0; i < 200; i++) {
		loaded += cl_dir_loaded(dirs[i], NOW);
		cl_object_put(dirs[i]);
	}
	ck_assert_uint_ge(loaded, 30);
	ck_assert_uint_le(loaded, 50);
	cl_object_put(parent);
}
END_TEST

START_TEST(claims_exclude)
{
	struct cl_object *file = get(file_fid);

	ck_assert(cl_object_claim(file, CL_CLAIM_STATUS));
	ck_assert(!cl_object_claim(file, CL_CLAIM_STATUS));
	ck_assert(cl_object_claim(file, CL_CLAIM_NAMES));
	ck_assert(!cl_object_claim(file, CL_CLAIM_STATUS | CL_CLAIM_PREFETCH));
	cl_object_unclaim(file, CL_CLAIM_STATUS);
	ck_assert(cl_object_claim(file, CL_CLAIM_STATUS | CL_CLAIM_PREFETCH));
	cl_object_put(file);
}
END_TEST

START_TEST(gone_objects)
{
	struct cl_object *file = known_file();
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_reply reply = make_reply();
	struct cl_status now;

	cl_object_gone(file);
	ck_assert_int_eq(cl_object_status(file, NOW, &now), -ENOENT);
	apply(file, &reply, &status); /* sent before */
	ck_assert_int_eq(cl_object_status(file, NOW, &now), -ENOENT);
	reply = make_reply();
	apply(file, &reply, &status);
	ck_assert_int_eq(cl_object_status(file, NOW, &now), 0);
	cl_object_put(file);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {promises_end,
				      short_promises_are_none,
				      breaks_end_promises,
				      breaks_during_calls,
				      old_replies_change_nothing,
				      server_time_decides,
				      later_request_decides,
				      lost_changes_are_seen,
				      foreign_changes_drop_contents,
				      own_changes_stay,
				      overtaken_promises_do_not_count,
				      jumps_are_conflicts,
				      stores_overlap,
				      gaps_are_conflicts,
				      changes_are_seen_early,
				      unordered_changes_are_asked,
				      unknown_changes_end_trust,
				      restored_volumes_drop_all,
				      readonly_promises_are_shared,
				      releases_are_validated_by_version,
				      sites_and_gaps,
				      rights_by_identity,
				      rights_end_with_promises,
				      names_are_found,
				      other_versions_are_not_kept,
				      own_edits_keep_names,
				      edits_in_the_order_of_versions,
				      loads_between_edits,
				      new_directories_are_known,
				      neighbours_are_those_to_ask,
				      objects_are_bounded,
				      promises_are_given_back,
				      names_are_bounded,
				      claims_exclude,
				      gone_objects};
	TCase *tcase = tcase_create("objects");
	Suite *suite = suite_create("client objects");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
