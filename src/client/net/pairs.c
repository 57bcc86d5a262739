/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that the user has named: "LOCAL[%DEVICE][,REMOTE]", each part may be empty. */
#include "client/net/pairs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"

#define PART_MOST 48u

/* An address without a port. False: it is none. */
static bool parse_address(const char *text, struct sockaddr_storage *address)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
		memcpy(address, &four, sizeof(four));
	else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
		memcpy(address, &six, sizeof(six));
	return address->ss_family != AF_UNSPEC;
}

/* What is before and behind the first `mark`, both without it; the part behind is empty if there is none. False: it is too long. */
static bool split_at(const char *text, char mark, char before[PART_MOST], char behind[PART_MOST])
{
	size_t length = strcspn(text, (char[]){mark, '\0'}), rest = strlen(text + length);

	if (length >= PART_MOST || rest > PART_MOST)
		return false;
	memcpy(before, text, length);
	before[length] = '\0';
	snprintf(behind, PART_MOST, "%s", rest ? text + length + 1 : "");
	return true;
}

/* The interface of a pair, by its name, or as that of its local address. 0, or a negative errno and a text. */
static int find_pair_interface(struct cl_pair *pair, const char *local, const char *device,
			       char *message, size_t size)
{
	struct cl_interfaces now;
	const struct cl_interface *at;

	if (*device) {
		pair->interface = if_nametoindex(device);
		if (!pair->interface)
			return fail_with(-EADDRNOTAVAIL, message, size,
					 "this machine has no interface %s", device);
	}
	if (!*local)
		return 0;
	cl_interfaces_read(&now);
	at = cl_interface_of(&now, &pair->local);
	if (!at || (pair->interface && pair->interface != at->index))
		return fail_with(-EADDRNOTAVAIL, message, size, "%s%s does not have the address %s",
				 *device ? "interface " : "this machine", device, local);
	pair->interface = at->index;
	return 0;
}

int cl_pair_parse(const char *text, struct cl_pair *pair, char *message, size_t size)
{
	char near[PART_MOST], remote[PART_MOST], local[PART_MOST], device[PART_MOST];

	memset(pair, 0, sizeof(*pair));
	if (!split_at(text, ',', near, remote) || !split_at(near, '%', local, device) ||
	    (!*local && !*device && !*remote))
		return fail_with(-EINVAL, message, size, "write LOCAL[%%DEVICE][,REMOTE]");
	if (*local && !parse_address(local, &pair->local))
		return fail_with(-EINVAL, message, size, "\"%s\" is no address", local);
	if (*remote && !parse_address(remote, &pair->remote))
		return fail_with(-EINVAL, message, size, "\"%s\" is no address", remote);
	return find_pair_interface(pair, local, device, message, size);
}

/* Without regard to ports. */
static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *fours[] = {(const void *)a, (const void *)b};
	const struct sockaddr_in6 *sixes[] = {(const void *)a, (const void *)b};

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return fours[0]->sin_addr.s_addr == fours[1]->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&sixes[0]->sin6_addr, &sixes[1]->sin6_addr);
}

bool cl_pair_leads_to(const struct cl_pair *pair, const struct sockaddr_storage *remote)
{
	if (pair->local.ss_family != AF_UNSPEC && pair->local.ss_family != remote->ss_family)
		return false;
	return pair->remote.ss_family == AF_UNSPEC || is_same_host(&pair->remote, remote);
}

unsigned cl_pairs_keep(const struct cl_net *net, struct cl_address *list, unsigned count)
{
	struct cl_address kept[CL_ADDRESSES];
	unsigned found = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned k = 0;

		while (k < net->pair_count && !cl_pair_leads_to(&net->pairs[k], &list[i].sa))
			k++;
		if (k < net->pair_count)
			kept[found++] = list[i];
	}
	if (!found)
		return count;
	memcpy(list, kept, found * sizeof(kept[0]));
	return found;
}
