/* SPDX-License-Identifier: BSD-2-Clause */
/* Statuses of several objects in one operation. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/main.h"
#include "tests/volume/store/store_fixture.h"

#define MOST  32
#define TURNS 400

/* Give `rights` to all but administrators. */
static void grant(const struct store_fid *dir, uint32_t rights)
{
	struct store_acl acl = {0};

	ck_assert_int_eq(store_acl_add(&acl, false, STORE_ADMINISTRATORS, STORE_ALL), 0);
	if (rights)
		ck_assert_int_eq(store_acl_add(&acl, false, STORE_ANYUSER, rights), 0);
	ck_assert_int_eq(store->ops->set_acl(store, &admin, dir, &acl, &status, &changes), 0);
}

/* Each result and status is that of the object alone. */
static void expect_same(const struct store_caller *caller, const struct store_fid *fids, size_t n)
{
	struct store_status statuses[MOST];
	int results[MOST];

	ck_assert_uint_le(n, MOST);
	store->ops->statuses(store, caller, fids, n, statuses, results);
	for (size_t i = 0; i < n; i++) {
		const struct store_status *s = &statuses[i];

		ck_assert_int_eq(results[i], try_status(caller, &fids[i]));
		if (results[i])
			continue;
		ck_assert_uint_eq(s->fid.volume, status.fid.volume);
		ck_assert_uint_eq(s->fid.vnode, status.fid.vnode);
		ck_assert_uint_eq(s->fid.unique, status.fid.unique);
		ck_assert_int_eq(s->kind, status.kind);
		ck_assert_uint_eq(s->length, status.length);
		ck_assert_uint_eq(s->version, status.version);
		ck_assert_int_eq(s->owner, status.owner);
		ck_assert_uint_eq(s->mode, status.mode);
		ck_assert_uint_eq(s->rights, status.rights);
		ck_assert_uint_eq(s->anonymous, status.anonymous);
		ck_assert_uint_eq(s->parent, status.parent);
		ck_assert_uint_eq(s->parent_unique, status.parent_unique);
	}
}

START_TEST(all_kinds)
{
	const struct store_caller *const callers[] = {&admin, &user, &anonymous};
	struct store_fid fids[MOST], open, closed;
	uint32_t clone;
	size_t n = 0;

	fixture_open(STORE_LAZY);
	open = make(&root, "open", STORE_DIR);
	closed = make(&root, "closed", STORE_DIR);
	grant(&open, STORE_LOOKUP | STORE_INSERT | STORE_READ);
	grant(&closed, STORE_INSERT);
	fids[n++] = make(&open, "a", STORE_FILE);
	fids[n++] = make_as(&user, &open, "b", STORE_FILE);
	fids[n++] = make_link(&open, "l", "text");
	fids[n++] = make(&open, "sub", STORE_DIR);
	fids[n++] = make(&open, "c", STORE_FILE);
	fids[n] = fids[n - 1];
	fids[n++].unique++;
	fids[n] = fids[0];
	fids[n++].vnode = 1000000;
	fids[n++] = make(&open, "d", STORE_FILE);
	fids[n++] = make(&closed, "a", STORE_FILE);
	fids[n++] = make_as(&user, &closed, "b", STORE_FILE);
	fids[n++] = make_link(&closed, "l", "text");
	fids[n++] = root;
	fids[n++] = open;
	fids[n] = fids[0];
	fids[n++].volume += 1000;
	fids[n] = fids[0];
	fids[n++].vnode = 0;
	fids[n++] = make(&open, "e", STORE_FILE);
	ck_assert_int_eq(try_write(&admin, &fids[0], 0, "hello", 5, 5), 0);
	ck_assert_int_eq(store_volume_clone(store, volume, STORE_BACKUP, &clone), 0);
	ck_assert_int_eq(try_write(&admin, &fids[0], 0, "longer", 6, 6), 0);
	for (size_t i = 0; i < 4; i++, n++) {
		fids[n] = fids[i];
		fids[n].volume = clone;
	}
	for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
		expect_same(callers[i], fids, n);
		expect_same(callers[i], fids, 0);
		for (size_t k = 0; k < n; k++)
			expect_same(callers[i], &fids[k], n - k);
	}
}
END_TEST

#define MANY 20000 /* long enough for some commits meanwhile */

static struct {
	struct store_fid fids[MANY]; /* of a file that stays, and of one that is moved */
	atomic_bool over;
} seen;

static void *look(void *arg)
{
	struct store_status *statuses = calloc(MANY, sizeof(*statuses));
	int *results = calloc(MANY, sizeof(*results));
	uintptr_t shown = 0;

	(void)arg;
	ck_assert(statuses && results);
	while (!atomic_load(&seen.over)) {
		store->ops->statuses(store, &anonymous, seen.fids, MANY, statuses, results);
		shown += !results[MANY - 1];
	}
	free(statuses);
	free(results);
	return (void *)shown;
}

static void *look_alone(void *arg)
{
	struct store_status one;
	uintptr_t shown = 0;
	int result;

	(void)arg;
	while (!atomic_load(&seen.over)) {
		store->ops->statuses(store, &anonymous, &seen.fids[MANY - 1], 1, &one, &result);
		shown += !result;
	}
	return (void *)shown;
}

/* A file is only ever in directories that its readers may not read at that time. */
START_TEST(moved_after_refusal)
{
	struct store_fid shared, hidden;
	pthread_t thread, alone;
	void *shown, *shown_alone;

	fixture_open(STORE_LAZY);
	shared = make(&root, "shared", STORE_DIR);
	hidden = make(&root, "hidden", STORE_DIR);
	grant(&hidden, 0);
	seen.fids[0] = make(&shared, "f", STORE_FILE);
	for (size_t i = 1; i < MANY; i++)
		seen.fids[i] = seen.fids[0];
	seen.fids[MANY - 1] = make(&hidden, "secret", STORE_FILE);
	atomic_store(&seen.over, false);
	ck_assert_int_eq(pthread_create(&thread, NULL, look, NULL), 0);
	ck_assert_int_eq(pthread_create(&alone, NULL, look_alone, NULL), 0);
	for (int i = 0; i < TURNS; i++) {
		grant(&shared, STORE_LOOKUP | STORE_READ);
		grant(&shared, 0);
		ck_assert_int_eq(try_rename(&admin, &hidden, "secret", &shared, "secret"), 0);
		ck_assert_int_eq(try_rename(&admin, &shared, "secret", &hidden, "secret"), 0);
	}
	atomic_store(&seen.over, true);
	ck_assert_int_eq(pthread_join(thread, &shown), 0);
	ck_assert_int_eq(pthread_join(alone, &shown_alone), 0);
	ck_assert_ptr_null(shown);
	ck_assert_ptr_null(shown_alone);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("statuses");
	TCase *tcase = tcase_create("statuses");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, fixture_start, fixture_end);
	tcase_add_test(tcase, all_kinds);
	tcase_add_test(tcase, moved_after_refusal);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
