/* SPDX-License-Identifier: BSD-2-Clause */
/* Who wants to know when a vnode changes. */
#include "client/fs/listeners.h"

void fs_add_listener(struct fs_listener *listener, struct fs_vnode *v)
{
	cl_object_hold(v->object);
	listener->vnode = v;
	pthread_mutex_lock(&v->lock);
	listener->next = v->listeners;
	listener->at = &v->listeners;
	if (listener->next)
		listener->next->at = &listener->next;
	v->listeners = listener;
	pthread_mutex_unlock(&v->lock);
}

void fs_drop_listener(struct fs_listener *listener)
{
	struct fs_vnode *v = listener->vnode;

	if (!v)
		return;
	pthread_mutex_lock(&v->lock);
	*listener->at = listener->next;
	if (listener->next)
		listener->next->at = listener->at;
	pthread_mutex_unlock(&v->lock);
	listener->vnode = NULL;
	cl_object_put(v->object);
}

void fs_note_change(struct fs_vnode *v)
{
	pthread_mutex_lock(&v->lock);
	for (struct fs_listener *p = v->listeners; p; p = p->next)
		p->changed(p);
	pthread_mutex_unlock(&v->lock);
}
