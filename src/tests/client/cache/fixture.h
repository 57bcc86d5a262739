/* SPDX-License-Identifier: BSD-2-Clause */
/* A cache, statuses and replies for tests of the client's cache. */
#ifndef TESTS_CLIENT_CACHE_FIXTURE_H
#define TESTS_CLIENT_CACHE_FIXTURE_H

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

static inline void setup(void)
{
	cache = cl_cache_create(&(struct cl_cache_limits){.key = {3, 4}});
	ck_assert_ptr_nonnull(cache);
}

static inline void teardown(void)
{
	cl_cache_destroy(cache);
}

static inline AFSFetchStatus make_status(uint32_t type, uint64_t version)
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

static inline struct cl_reply make_reply(void)
{
	return (struct cl_reply){.note = cl_cache_note(cache),
				 .sent = NOW,
				 .server = SERVER,
				 .identity = ANNA,
				 .sync = 7,
				 .lifetime = HOUR};
}

static inline enum cl_verdict apply(struct cl_object *object, const struct cl_reply *reply,
				    const AFSFetchStatus *status)
{
	struct cl_status known;

	return cl_cache_apply(object, reply, status, &known);
}

static inline struct cl_object *get(struct rxafs_fid fid)
{
	struct cl_object *object = cl_cache_get(cache, &fid);

	ck_assert_ptr_nonnull(object);
	return object;
}

static inline struct cl_status status_of(struct cl_object *object)
{
	struct cl_status status;

	cl_object_status(object, NOW, &status);
	return status;
}

static inline bool is_valid(struct cl_object *object)
{
	return status_of(object).valid_until != 0;
}

/* A file of version 5 with a promise. */
static inline struct cl_object *known_file(void)
{
	struct cl_object *file = get(file_fid);
	AFSFetchStatus status = make_status(RXAFS_FILE, 5);
	struct cl_reply reply = make_reply();

	ck_assert_int_eq(apply(file, &reply, &status), CL_KEEP);
	ck_assert(is_valid(file));
	return file;
}

static inline struct cl_object *known_dir(uint64_t version)
{
	struct cl_object *dir = get(dir_fid);
	AFSFetchStatus status = make_status(RXAFS_DIRECTORY, version);
	struct cl_reply reply = make_reply();

	afs_status_set_length(&status, AFS_DIR_PAGE);
	apply(dir, &reply, &status);
	return dir;
}

/* The end of an own change that the server carried out. */
static inline enum cl_verdict end_change(struct cl_object *object, struct cl_reply reply,
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

/* Runs tests with a new cache for each. */
static inline int run_cache_tests(const char *name, const TTest *const *tests, size_t count)
{
	TCase *tcase = tcase_create(name);
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define CACHE_TEST_MAIN(name, ...)                                                     \
	int main(void)                                                                 \
	{                                                                              \
		const TTest *const tests[] = {__VA_ARGS__};                            \
                                                                                       \
		return run_cache_tests(name, tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif
