/* SPDX-License-Identifier: BSD-2-Clause */
/* The class of the tests: what it sealed it opens, and nothing else. */
#include <string.h>

#include "bench.h"

START_TEST(seal_and_open)
{
	struct rxw_security *s = &rxw_security_test_class;
	struct rxw_seal_info info = {1, 2, 3, 4, 251, true};
	uint8_t packet[1500], clear[1500];
	size_t offset, length;
	uint16_t spare;

	for (size_t size = 0; size <= 1400; size += 7) {
		for (size_t i = 0; i < size; i++)
			clear[i] = packet[s->ops->head + i] = (uint8_t)(i * 3);
		ck_assert_int_eq(s->ops->seal(s, NULL, &info, packet, size, &spare), 0);
		if (size > 16)
			ck_assert_mem_ne(packet + 8, clear, size);
		ck_assert_int_eq(
			s->ops->verify(s, NULL, &info, packet, size + 20, spare, &offset, &length),
			0);
		ck_assert_uint_eq(offset, 8);
		ck_assert_uint_eq(length, size);
		ck_assert_mem_eq(packet + offset, clear, size);
	}
}
END_TEST

START_TEST(refuses)
{
	struct rxw_security *s = &rxw_security_test_class;
	struct rxw_seal_info info = {1, 2, 3, 4, 251, true}, other;
	uint8_t packet[200], copy[200];
	size_t offset, length;
	uint16_t spare;

	memset(packet, 7, sizeof(packet));
	s->ops->seal(s, NULL, &info, packet, 100, &spare);
	for (unsigned i = 0; i < 120; i++) {
		memcpy(copy, packet, sizeof(copy));
		copy[i] ^= 1;
		ck_assert_int_ne(s->ops->verify(s, NULL, &info, copy, 120, spare, &offset, &length),
				 0);
	}
	for (unsigned i = 0; i < 6; i++) {
		uint32_t *fields[] = {&other.epoch, &other.cid, &other.call, &other.seq};

		other = info;
		if (i < 4)
			(*fields[i])++;
		else if (i == 4)
			other.client = false;
		memcpy(copy, packet, sizeof(copy));
		ck_assert_int_ne(s->ops->verify(s, NULL, &other, copy, 120,
						(uint16_t)(spare + (i == 5)), &offset, &length),
				 0);
	}
	ck_assert_int_ne(s->ops->verify(s, NULL, &info, packet, 19, spare, &offset, &length), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("security_test");
	TCase *tcase = tcase_create("security_test");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, seal_and_open);
	tcase_add_test(tcase, refuses);
	return bench_main(suite);
}
