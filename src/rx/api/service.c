/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of services. */
#include <stdlib.h>
#include <string.h>

#include "common/sized.h"
#include "engine/objects.h"

int rxw_service_add(rxw_endpoint *endpoint, const struct rxw_service_options *given,
		    rxw_service **service)
{
	struct rxw_service_options known = {0}, *options = &known;
	struct rxw_security *null_class = rxw_security_null();
	struct rxw_security *const *classes;
	struct rxw_service *s;
	size_t count;
	unsigned n;
	int r = 0;

	if (!endpoint || !given || !sized_read(&known, sizeof(known), given))
		return -RXW_EINVAL;
	if (!options->id || !options->handler || (options->security_count && !options->security) ||
	    options->security_count > 8 || options->level_min > RXW_LEVEL_CRYPT)
		return -RXW_EINVAL;
	classes = options->security ? options->security : &null_class;
	count = options->security ? options->security_count : 1;
	pthread_mutex_lock(&endpoint->lock);
	n = atomic_load(&endpoint->service_count);
	for (unsigned i = 0; i < n && !r; i++)
		if (endpoint->service[i].id == options->id)
			r = -RXW_ESTATE;
	if (!r && n == RXW_MAX_SERVICES)
		r = -RXW_ELIMIT;
	s = &endpoint->service[n < RXW_MAX_SERVICES ? n : 0];
	if (!r) {
		memset(s, 0, sizeof(*s));
		s->security = calloc(count, sizeof(*s->security));
		if (!s->security)
			r = -RXW_ENOMEM;
	}
	if (!r) {
		s->id = options->id;
		if (options->name)
			strncpy(s->name, options->name, sizeof(s->name) - 1);
		s->handler = options->handler;
		s->context = options->context;
		s->flags = options->flags;
		s->workers_max = options->workers_max;
		s->idle_ms = options->idle_ms;
		s->level_min = options->level_min;
		for (size_t i = 0; i < count; i++)
			s->security[i] = rxw_security_ref(classes[i]);
		s->security_count = count;
		/*
		 * Receivers read the table without the lock: the entry is complete before it is
		 * counted.
		 */
		atomic_store_explicit(&endpoint->service_count, n + 1, memory_order_release);
		if (service)
			*service = s;
	}
	pthread_mutex_unlock(&endpoint->lock);
	return r;
}
