/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of the client's cache: promises and each race with them, own changes, volumes, rights. */
#include "tests/client/cache/fixture.h"

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

/*
 * A status shows an own change before its reply does. With a break it may be another client's change; of a file in any case, since blocks
 * pass for the new version at once.
 */
START_TEST(changes_are_seen_early)
{
	for (int i = 0; i < 4; i++) {
		bool broken = i % 2, own = i == 2;
		uint32_t kind = i < 2 ? RXAFS_FILE : RXAFS_DIRECTORY;
		struct cl_object *object = kind == RXAFS_FILE ? known_file() : known_dir(5);
		AFSFetchStatus six = make_status(kind, 6);
		struct cl_reply change = make_reply(), reply;
		bool whole;

		cl_change_begin(object);
		if (broken)
			cl_object_put(cl_cache_break(
				cache, kind == RXAFS_FILE ? &file_fid : &dir_fid, &whole));
		reply = make_reply();
		ck_assert_int_eq(apply(object, &reply, &six), own ? CL_KEEP : CL_DROP_CLEAN);
		end_change(object, change, &six, 1, NULL);
		ck_assert_uint_eq(status_of(object).clean_from, own ? 5 : 6);
		cl_object_put(object);
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

/* Other objects are trusted as before, however their FIDs are hashed. */
START_TEST(unknown_changes_concern_one_object)
{
	struct cl_object *file = known_file(), *other;
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_effect effect = {.outcome = CL_UNKNOWN, .now = NOW};
	struct cl_reply reply;

	cl_change_begin(file);
	cl_change_end(file, &effect, NULL);
	reply = make_reply();
	for (uint32_t i = 0; i < 40000; i++) {
		other = get((struct rxafs_fid){1, 100, 10 + 2 * i, 3});
		apply(other, &reply, &status);
		ck_assert(is_valid(other));
		cl_object_put(other);
	}
	apply(file, &reply, &status);
	ck_assert(!is_valid(file));
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
	/* No other site answers any more. */
	reply.sync = 10;
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

/* A change of others is seen in a reply whose promise does not count: the break of the present one is under way. */
START_TEST(foreign_changes_end_promises)
{
	struct cl_object *file = known_file();
	AFSFetchStatus status = make_status(RXAFS_FILE, 6);
	struct cl_reply reply = make_reply();

	reply.lifetime = 0;
	ck_assert_int_eq(apply(file, &reply, &status), CL_DROP_CLEAN);
	ck_assert(!is_valid(file));
	cl_object_put(file);
}
END_TEST

/* A reply with the status from before an own chmod and after its undoing by others, which comes before the reply to the chmod. */
START_TEST(undone_changes_are_asked)
{
	struct cl_object *file = known_file();
	AFSFetchStatus status = make_status(RXAFS_FILE, 5), chmod = status;
	struct cl_reply change = make_reply(), reply;

	chmod.UnixModeBits = 0600;
	cl_change_begin_quiet(file);
	reply = make_reply();
	apply(file, &reply, &status);
	end_change(file, change, &chmod, 0, NULL);
	ck_assert(!is_valid(file));
	cl_object_put(file);
}
END_TEST

/* The question overlaps an own chmod, and there is no promise: neither status is known to be the newer one. */
START_TEST(unclear_replies_are_repeated)
{
	struct cl_object *file = get(file_fid);
	AFSFetchStatus status = make_status(RXAFS_FILE, 5), chmod = status;
	struct cl_reply reply = make_reply();

	chmod.UnixModeBits = 0600;
	cl_change_begin_quiet(file);
	end_change(file, make_reply(), &chmod, 0, NULL);
	ck_assert_int_eq(apply(file, &reply, &status), CL_ASK_AGAIN);
	reply = make_reply();
	ck_assert_int_eq(apply(file, &reply, &status), CL_KEEP);
	ck_assert_uint_eq(status_of(file).mode, 0644);
	cl_object_put(file);
}
END_TEST

/* Quiet changes explain no version. */
START_TEST(quiet_changes_explain_nothing)
{
	struct cl_object *file = known_file();
	AFSFetchStatus six = make_status(RXAFS_FILE, 6);
	struct cl_reply change = make_reply(), reply = make_reply();

	cl_change_begin_quiet(file);
	ck_assert_int_eq(apply(file, &reply, &six), CL_DROP_CLEAN);
	end_change(file, change, &six, 0, NULL);
	ck_assert_uint_eq(status_of(file).clean_from, 6);
	cl_object_put(file);
}
END_TEST

/* Promise and rights of the contents before a restore do not come back with a reply to an own change. */
START_TEST(restores_end_promises)
{
	struct cl_object *file = known_file();
	AFSFetchStatus status = make_status(RXAFS_FILE, 3);
	struct cl_reply change = make_reply(), reply;
	uint32_t rights;

	change.sync = 8;
	cl_change_begin(file);
	ck_assert_int_eq(end_change(file, change, &status, 1, NULL), CL_DROP_CLEAN);
	ck_assert(!is_valid(file));
	reply = make_reply();
	reply.sync = 8;
	reply.identity = BERT;
	apply(file, &reply, &status);
	ck_assert(is_valid(file));
	ck_assert_int_eq(cl_object_rights(file, BERT, NOW, &rights), 0);
	ck_assert_int_eq(cl_object_rights(file, ANNA, NOW, &rights), -ESTALE);
	cl_object_put(file);
}
END_TEST

/* What an object knew of breaks and own changes is remembered after its eviction. */
START_TEST(evicted_objects_leave_traces)
{
	struct cl_cache_limits limits = {.objects = 1, .key = {5, 6}};

	struct cl_effect unknown = {.outcome = CL_UNKNOWN, .now = NOW};

	for (int own = 0; own < 3; own++) {
		struct cl_reply reply;
		AFSFetchStatus status = make_status(RXAFS_FILE, 5);
		struct cl_cache_counts counts;
		struct cl_object *file;

		teardown();
		cache = cl_cache_create(&limits);
		file = known_file();
		reply = make_reply();
		if (own == 1) {
			cl_change_begin_quiet(file);
			end_change(file, make_reply(), &status, 0, NULL);
		} else if (own) {
			cl_change_begin(file);
			cl_change_end(file, &unknown, NULL);
		} else {
			happen(FILE_BROKEN);
		}
		cl_object_put(file);
		for (uint32_t i = 0; i < 5000; i++)
			cl_object_put(get((struct rxafs_fid){1, 100, 2 * i + 10, i}));
		ck_assert_ptr_null(cl_cache_find(cache, &file_fid));
		cl_cache_count(cache, &counts);
		ck_assert_uint_gt(counts.evicted, 0);
		file = get(file_fid);
		if (own == 2)
			reply = make_reply();
		apply(file, &reply, &status);
		ck_assert(!is_valid(file));
		cl_object_put(file);
	}
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

CACHE_TEST_MAIN("client objects", promises_end, short_promises_are_none, breaks_end_promises,
		breaks_during_calls, old_replies_change_nothing, server_time_decides,
		later_request_decides, lost_changes_are_seen, foreign_changes_drop_contents,
		own_changes_stay, overtaken_promises_do_not_count, jumps_are_conflicts,
		stores_overlap, gaps_are_conflicts, changes_are_seen_early,
		unordered_changes_are_asked, unknown_changes_end_trust,
		unknown_changes_concern_one_object, restored_volumes_drop_all,
		readonly_promises_are_shared, releases_are_validated_by_version, sites_and_gaps,
		rights_by_identity, rights_end_with_promises, gone_objects,
		foreign_changes_end_promises, undone_changes_are_asked,
		unclear_replies_are_repeated, quiet_changes_explain_nothing, restores_end_promises,
		evicted_objects_leave_traces)
