/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of the application on connections and services, by key. */
#include "core.h"

#define KEYS_MAX 256

static struct {
	pthread_mutex_t lock; /* of the rest */
	int count;
	rx_destructor_t destroy[KEYS_MAX];
} keys = {.lock = PTHREAD_MUTEX_INITIALIZER};

int rx_KeyCreate(rx_destructor_t destroy)
{
	int key = -1;

	pthread_mutex_lock(&keys.lock);
	if (keys.count < KEYS_MAX) {
		key = keys.count++;
		keys.destroy[key] = destroy;
	}
	pthread_mutex_unlock(&keys.lock);
	if (key < 0)
		osi_Panic("rx_KeyCreate: more than %d keys\n", KEYS_MAX);
	return key;
}

static bool is_key(int key)
{
	bool valid;

	pthread_mutex_lock(&keys.lock);
	valid = key >= 0 && key < keys.count;
	pthread_mutex_unlock(&keys.lock);
	return valid;
}

/* The program's destructors may use values and connections: no lock is held. */
static void destroy_value(int key, void *value)
{
	rx_destructor_t function;

	pthread_mutex_lock(&keys.lock);
	assert(key >= 0 && key < keys.count);
	function = keys.destroy[key];
	pthread_mutex_unlock(&keys.lock);
	if (value && function)
		function(value);
}

void classic_values_init(struct classic_values *v)
{
	pthread_mutex_init(&v->lock, NULL);
	v->room = 0;
	v->value = NULL;
}

/* Make room for a key. False: no memory. */
static bool grow_values(struct classic_values *v, int key)
{
	void **larger;

	assert(mutex_is_held(&v->lock));
	if (key < v->room)
		return true;
	larger = realloc(v->value, (size_t)(key + 1) * sizeof(*larger));
	if (!larger)
		return false;
	while (v->room <= key)
		larger[v->room++] = NULL;
	v->value = larger;
	return true;
}

static void classic_values_set(struct classic_values *v, int key, void *value)
{
	void *old = NULL;
	bool room;

	if (!is_key(key))
		osi_Panic("rx_SetSpecific: %d is not a key of rx_KeyCreate()\n", key);
	pthread_mutex_lock(&v->lock);
	room = grow_values(v, key);
	if (room) {
		old = v->value[key];
		v->value[key] = value;
	}
	pthread_mutex_unlock(&v->lock);
	if (!room)
		osi_Panic("rx_SetSpecific: no memory\n");
	if (old != value)
		destroy_value(key, old);
}

static void *classic_values_get(struct classic_values *v, int key)
{
	void *value;

	pthread_mutex_lock(&v->lock);
	value = key >= 0 && key < v->room ? v->value[key] : NULL;
	pthread_mutex_unlock(&v->lock);
	return value;
}

void classic_values_clear(struct classic_values *v)
{
	int room;
	void **value;

	pthread_mutex_lock(&v->lock);
	room = v->room;
	value = v->value;
	v->room = 0;
	v->value = NULL;
	pthread_mutex_unlock(&v->lock);
	for (int key = 0; key < room; key++)
		destroy_value(key, value[key]);
	free(value);
}

void classic_values_free(struct classic_values *v)
{
	classic_values_clear(v);
	pthread_mutex_destroy(&v->lock);
}

void rx_SetSpecific(struct rx_connection *connection, int key, void *value)
{
	classic_values_set(&connection->values, key, value);
}

void *rx_GetSpecific(struct rx_connection *connection, int key)
{
	return classic_values_get(&connection->values, key);
}

void rx_SetServiceSpecific(struct rx_service *service, int key, void *value)
{
	classic_values_set(&service->internal->values, key, value);
}

void *rx_GetServiceSpecific(struct rx_service *service, int key)
{
	return classic_values_get(&service->internal->values, key);
}
