/* SPDX-License-Identifier: BSD-2-Clause */
/* Users and groups, from the protection database. */
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <rxwire/rxkad.h>
#include <rxwire/security.h>

#include "fileserver/service/services.h"

static int32_t user_of(struct prot *prot, const struct prot_view *view, const rxw_call *rx)
{
	struct rxw_identity identity = {.size = sizeof(identity)};

	if (rxw_call_identity(rx, &identity) < 0)
		return PROT_ANONYMOUS;
	if (identity.index == RXW_RXKAD_INDEX && identity.rxkad_primary)
		return prot_user_of_parts(prot, view, identity.rxkad_primary,
					  identity.rxkad_instance, identity.rxkad_cell);
	return identity.name ? prot_user_of_principal(prot, view, identity.name) : PROT_ANONYMOUS;
}

size_t fsd_people_identify(struct prot *prot, const rxw_call *rx, int32_t *id, int32_t *ids,
			   size_t room)
{
	const struct prot_view *view = prot_view_get(prot);
	size_t n = 0;

	*id = user_of(prot, view, rx);
	if (*id != PROT_ANONYMOUS)
		n = prot_cps(view, *id, ids, room);
	prot_view_put(view);
	return n;
}

/* An address of IPv4, also in the form that sockets of both families have it in. */
static bool get_ipv4_address(const struct sockaddr_storage *peer, uint32_t *address)
{
	const struct sockaddr_in6 *in6 = (const void *)peer;

	if (peer->ss_family == AF_INET) {
		*address = ntohl(((const struct sockaddr_in *)peer)->sin_addr.s_addr);
		return true;
	}
	if (peer->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return false;
	memcpy(address, in6->sin6_addr.s6_addr + 12, sizeof(*address));
	*address = ntohl(*address);
	return true;
}

size_t fsd_people_host(struct prot *prot, const struct sockaddr_storage *peer, int32_t *ids,
		       size_t room)
{
	const struct prot_view *view;
	uint32_t address;
	size_t n;

	if (!prot_has_machines(prot) || !get_ipv4_address(peer, &address))
		return 0;
	view = prot_view_get(prot);
	n = prot_host_cps(view, address, ids, room);
	prot_view_put(view);
	return n;
}

static bool id_of(void *arg, const char *name, int32_t *id)
{
	const struct prot_view *view = prot_view_get(arg);
	const struct prot_entry *entry = prot_by_name(view, name);

	if (entry)
		*id = entry->id;
	prot_view_put(view);
	return entry != NULL;
}

static bool find_person_name(void *arg, int32_t id, char name[FSD_PERSON_MAX + 1])
{
	const struct prot_view *view = prot_view_get(arg);
	const struct prot_entry *entry = prot_by_id(view, id);

	if (entry)
		snprintf(name, FSD_PERSON_MAX + 1, "%s", entry->name);
	prot_view_put(view);
	return entry != NULL;
}

struct fsd_names fsd_people_names(struct prot *prot)
{
	if (!prot)
		return (struct fsd_names){0};
	return (struct fsd_names){.id_of = id_of, .name_of = find_person_name, .arg = prot};
}
