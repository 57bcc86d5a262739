/* SPDX-License-Identifier: BSD-2-Clause */
/* How the client asks location servers of which some do not answer, refuse, or are older. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/asserts.h"
#include "tests/client/net/fake.h"
#include "tests/main.h"

START_TEST(older_location_server)
{
	fake.no_uuids = true;
	fake_open(1, 30000);
	looks(fake_volume);
	ck_assert_uint_eq(fake.asked_addresses, 0);
	fake_close();
}
END_TEST

START_TEST(a_linked_cell_has_the_volume)
{
	char folder[] = "/tmp/rxafs-test-XXXXXX", path[64];
	struct cl_volume *v;
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/CellServDB", folder);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(">example.org linked.org #\n10.0.0.1\n", f);
	fclose(f);
	fake.folder = folder;
	fake_open(1, 1000);
	ck_assert_str_eq(cl_cell_name(cl_volume_cell(fake_volume)), "example.org");
	/* Both servers know the names; the first one does not any more. */
	fake.vl_answer[0] = AFS_VL_NOENT;
	fake.name = "there";
	v = fake_find("there", CL_WANT_EXACT);
	ck_assert_str_eq(cl_cell_name(cl_volume_cell(v)), "linked.org");
	looks(v);
	cl_volume_unref(v);
	fake_close();
	unlink(path);
	rmdir(folder);
}
END_TEST

START_TEST(second_location_server)
{
	struct cl_volume *v;
	unsigned asked;
	int fd;

	fake_open(1, 30000);
	asked = fake_asked();
	fd = fake_vl_stop(0);
	ck_assert_int_eq(fake_seek("none"), -ENODEV);
	ck_assert_uint_gt(fake_questions(fd), 0);
	ck_assert_uint_eq(fake_asked(), asked + 1);
	/* The dead one is not asked first again. */
	ck_assert_int_eq(fake_seek("another"), -ENODEV);
	ck_assert_uint_eq(fake_asked(), asked + 2);
	cl_volume_forget_record(fake_volume);
	v = fake_find("vol", CL_WANT_EXACT);
	ck_assert_ptr_eq(v, fake_volume);
	cl_volume_unref(v);
	cl_volume_forget_record(fake_volume);
	looks(fake_volume);
	ck_assert_uint_eq(fake_questions(fd), 0);
	close(fd);
	fake_close();
}
END_TEST

/* A renewal, which has little time, asks the second one instead of going on with what is known. */
START_TEST(a_renewal_is_not_held_up_by_one_location_server)
{
	unsigned asked;
	int fd;

	fake_open(1, 30000);
	asked = fake_asked();
	fd = fake_vl_stop(0);
	cl_volume_forget_record(fake_volume);
	looks(fake_volume);
	ck_assert_uint_gt(fake_questions(fd), 0);
	ck_assert_uint_gt(fake_asked(), asked);
	close(fd);
	fake_close();
}
END_TEST

/* What is known of a volume stays in use. */
START_TEST(a_renewal_without_a_quorum)
{
	fake_open(1, 30000);
	looks(fake_volume);
	/* Ubik's UNOQUORUM. */
	fake.vl_answer[0] = fake.vl_answer[1] = 5376;
	cl_volume_forget_record(fake_volume);
	looks(fake_volume);
	fake_close();
}
END_TEST

/* The silence that the renewal of one volume meets holds for the others. */
START_TEST(one_renewal_for_all_meets_the_silence)
{
	struct cl_volume *ro;
	int fd[2];

	fake.dead_ms = 1000;
	fake.has_ro = true;
	fake.ro_servers = 1;
	fake_open(1, 30000);
	fake.shift = 100;
	fake.name = "other";
	ro = fake_find("other", CL_WANT_RO);
	for (unsigned i = 0; i < 2; i++)
		fd[i] = fake_vl_stop(i);
	cl_volume_forget_record(fake_volume);
	looks(fake_volume);
	ck_assert_uint_gt(fake_questions(fd[0]) + fake_questions(fd[1]), 0);
	cl_volume_forget_record(ro);
	cl_volume_unref(ro);
	ro = fake_find("other", CL_WANT_RO);
	ck_assert_uint_eq(fake_questions(fd[0]) + fake_questions(fd[1]), 0);
	cl_volume_unref(ro);
	close(fd[0]);
	close(fd[1]);
	fake_close();
}
END_TEST

/* It is told once, and the others are asked first. */
START_TEST(a_location_server_without_route)
{
	fake.no_route = true;
	fake_open(1, 30000);
	looks(fake_volume);
	cl_volume_forget_record(fake_volume);
	looks(fake_volume);
	ck_assert_uint_eq(fake_asked(), 2);
	ck_assert_uint_eq(fake.unrouted, 1);
	fake_close();
}
END_TEST

START_TEST(no_location_server)
{
	int fd[2];

	fake.dead_ms = 1000;
	fake_open(1, 30000);
	for (unsigned i = 0; i < 2; i++)
		fd[i] = fake_vl_stop(i);
	/* What is known stays in use, and nobody asks again for a while. */
	cl_volume_forget_record(fake_volume);
	looks(fake_volume);
	ck_assert_uint_gt(fake_questions(fd[0]) + fake_questions(fd[1]), 0);
	for (int i = 0; i < 10; i++) {
		cl_volume_forget_record(fake_volume);
		looks(fake_volume);
	}
	ck_assert_uint_eq(fake_questions(fd[0]) + fake_questions(fd[1]), 0);
	fake_caller.deadline = cl_net_now() + (uint64_t)1500 * NS_PER_MS;
	ck_assert_int_eq(fake_seek("another"), -ETIMEDOUT);
	ck_assert_int_eq(fake_failure.origin, RXAFS_FROM_NETWORK);
	close(fd[0]);
	close(fd[1]);
	fake_close();
}
END_TEST

TEST_MAIN_WITHIN(120, "net locations", older_location_server, a_linked_cell_has_the_volume,
		 second_location_server, a_renewal_is_not_held_up_by_one_location_server,
		 a_renewal_without_a_quorum, one_renewal_for_all_meets_the_silence,
		 a_location_server_without_route, no_location_server)
