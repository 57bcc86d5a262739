/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that are written in turn. */
#include "volume/store/disk/twin.h"

#include <string.h>

#include "volume/store/disk/crc.h"

#define PLACE (STORE_TWIN_END / 2)

static uint64_t compute_twin_sum(const void *record, size_t size)
{
	assert(size >= sizeof(struct store_twin) + sizeof(uint64_t) && size <= PLACE);
	return store_crc(0, record, size - sizeof(uint64_t));
}

void store_twin_seal(void *record, size_t size)
{
	uint64_t sum = compute_twin_sum(record, size);

	memcpy((uint8_t *)record + size - sizeof(sum), &sum, sizeof(sum));
}

bool store_twin_is_sound(const void *record, size_t size, uint64_t magic)
{
	uint64_t sum = compute_twin_sum(record, size);

	return ((const struct store_twin *)record)->magic == magic &&
	       memcmp((const uint8_t *)record + size - sizeof(sum), &sum, sizeof(sum)) == 0;
}

int store_twin_read(struct store_file *file, void *record, size_t size, uint64_t magic)
{
	_Alignas(struct store_twin) uint8_t found[PLACE];
	const struct iovec iov = {found, size};
	const struct store_twin *twin = (const struct store_twin *)found;
	struct store_twin *newest = record;
	int rc = 0;

	memset(record, 0, size);
	for (uint64_t i = 0; i < 2; i++) {
		ssize_t n = file->layer->ops->preadv(file, &iov, 1, i * PLACE, false);

		if (n < 0)
			rc = (int)n;
		if (n == (ssize_t)size && store_twin_is_sound(found, size, magic) &&
		    (!newest->magic || twin->sequence >= newest->sequence))
			memcpy(record, found, size);
	}
	return newest->magic ? 0 : rc;
}

int store_twin_write(struct store_file *file, void *record, size_t size)
{
	const struct iovec iov = {record, size};
	struct store_twin *twin = record;
	ssize_t n;

	assert(twin->magic);
	twin->sequence++;
	store_twin_seal(record, size);
	n = file->layer->ops->pwritev(file, &iov, 1, twin->sequence % 2 * PLACE);
	return n < 0 ? (int)n : 0;
}
