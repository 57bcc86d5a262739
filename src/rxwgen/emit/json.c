/* SPDX-License-Identifier: BSD-2-Clause */
/* The checked tree as JSON. rxwgen(1) documents the format. */
#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "rxwgen/xg.h"

#define FORMAT 1

/*
 * jansson functions that add a value release it, and fail without effect if it is NULL. `failed` is
 * set then.
 */
struct json_writer {
	bool failed;
};

static void set_member(struct json_writer *w, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value))
		w->failed = true;
}

static void append_element(struct json_writer *w, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value))
		w->failed = true;
}

/* Input may contain bytes that are not UTF-8; these become '?'. */
static json_t *make_text_value(const char *text)
{
	json_t *value = json_string(text);
	char *copy, *at;

	if (value)
		return value;
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (at = copy; *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	value = json_string(copy);
	free(copy);
	return value;
}

static void set_text_member(struct json_writer *w, json_t *object, const char *key,
			    const char *text)
{
	if (text)
		set_member(w, object, key, make_text_value(text));
}

static void set_number_member(struct json_writer *w, json_t *object, const char *key, int64_t value)
{
	set_member(w, object, key, json_integer(value));
}

static void set_flag_member(struct json_writer *w, json_t *object, const char *key, bool value)
{
	if (value)
		set_member(w, object, key, json_true());
}

static void set_place_members(struct json_writer *w, json_t *object, const struct xg_place *place)
{
	set_text_member(w, object, "file", place->file);
	set_number_member(w, object, "line", place->line);
	set_number_member(w, object, "column", place->column);
}

static const char *get_kind_text(const struct xg_decl *decl)
{
	static const char *const kinds[] = {
		[XG_INT] = "int",
		[XG_UINT] = "unsigned int",
		[XG_SHORT] = "short",
		[XG_USHORT] = "unsigned short",
		[XG_CHAR] = "char",
		[XG_UCHAR] = "unsigned char",
		[XG_BOOL] = "bool",
		[XG_INT64] = "hyper",
		[XG_UINT64] = "unsigned hyper",
		[XG_FLOAT] = "float",
		[XG_DOUBLE] = "double",
		[XG_UUID] = "afsUUID",
		[XG_OPAQUE] = "opaque",
		[XG_STRING] = "string",
		[XG_VOID] = "void",
	};

	assert(decl->kind <= XG_NAMED);
	return decl->kind == XG_NAMED ? decl->type->name : kinds[decl->kind];
}

/* The members of a declaration, into an object that may have others. */
static void set_decl_members(struct json_writer *w, json_t *object, const struct xg_decl *decl,
			     const char *pointer)
{
	static const char *const shapes[] = {
		[XG_ONE] = "value", [XG_FIXED] = "array", [XG_COUNTED] = "counted"};

	set_text_member(w, object, "name", decl->name);
	set_text_member(w, object, "type", get_kind_text(decl));
	set_text_member(w, object, "shape",
			decl->shape == XG_POINTER ? pointer : shapes[decl->shape]);
	if (decl->shape == XG_FIXED || decl->shape == XG_COUNTED)
		set_number_member(w, object, "bound", decl->bound);
	set_text_member(w, object, "doc", decl->doc);
	set_place_members(w, object, &decl->place);
}

static json_t *make_decl_object(struct json_writer *w, const struct xg_decl *decl)
{
	json_t *object = json_object();

	set_decl_members(w, object, decl, "optional");
	return object;
}

static json_t *make_member_array(struct json_writer *w, const struct xg_type *type)
{
	json_t *array = json_array();

	for (size_t i = 0; i < type->member_count; i++)
		append_element(w, array, make_decl_object(w, &type->members[i]));
	return array;
}

static json_t *make_arm_array(struct json_writer *w, const struct xg_type *type)
{
	json_t *array = json_array();

	for (size_t i = 0; i < type->arm_count; i++) {
		const struct xg_arm *arm = &type->arms[i];
		json_t *object = json_object();

		set_member(w, object, "case", arm->text ? json_integer(arm->value) : json_null());
		set_text_member(w, object, "label", arm->text);
		set_decl_members(w, object, &arm->decl, "optional");
		append_element(w, array, object);
	}
	return array;
}

static json_t *make_value_array(struct json_writer *w, const struct xg_type *type)
{
	json_t *array = json_array();

	for (size_t i = 0; i < type->value_count; i++) {
		const struct xg_value *value = &type->values[i];
		json_t *object = json_object();

		set_text_member(w, object, "name", value->name);
		set_number_member(w, object, "value", value->value);
		set_text_member(w, object, "doc", value->doc);
		set_place_members(w, object, &value->place);
		append_element(w, array, object);
	}
	return array;
}

static json_t *make_type_object(struct json_writer *w, const struct xg_type *type)
{
	static const char *const whats[] = {[XG_STRUCT] = "struct",
					    [XG_UNION] = "union",
					    [XG_ENUM] = "enum",
					    [XG_TYPEDEF] = "typedef"};
	json_t *object = json_object();

	set_text_member(w, object, "name", type->name);
	set_text_member(w, object, "kind", whats[type->what]);
	if (type->what == XG_STRUCT) {
		set_member(w, object, "members", make_member_array(w, type));
	} else if (type->what == XG_UNION) {
		set_member(w, object, "discriminant", make_decl_object(w, &type->discriminant));
		set_member(w, object, "arms", make_arm_array(w, type));
	} else if (type->what == XG_ENUM) {
		set_member(w, object, "values", make_value_array(w, type));
	} else {
		set_member(w, object, "alias", make_decl_object(w, &type->alias));
	}
	set_number_member(w, object, "wire_min", (int64_t)type->wire_min);
	set_member(w, object, "wire_size",
		   type->wire_size ? json_integer((json_int_t)type->wire_size) : json_null());
	set_flag_member(w, object, "list", type->list);
	set_flag_member(w, object, "recursive", type->recursive);
	set_flag_member(w, object, "implied", type->parameter);
	set_flag_member(w, object, "included", type->included);
	set_flag_member(w, object, "customized", type->customized);
	set_text_member(w, object, "doc", type->doc);
	set_place_members(w, object, &type->place);
	return object;
}

static json_t *make_param_object(struct json_writer *w, const struct xg_param *param)
{
	static const char *const directions[] = {
		[XG_IN] = "IN", [XG_OUT] = "OUT", [XG_INOUT] = "INOUT"};
	json_t *object = json_object();

	set_text_member(w, object, "direction", directions[param->direction]);
	/* The star of a parameter has no effect on the wire. */
	set_decl_members(w, object, &param->decl, "value");
	return object;
}

static json_t *make_proc_object(struct json_writer *w, const struct xg_proc *proc)
{
	json_t *object = json_object(), *params = json_array();

	for (size_t i = 0; i < proc->param_count; i++)
		append_element(w, params, make_param_object(w, &proc->params[i]));
	set_text_member(w, object, "name", proc->name);
	set_number_member(w, object, "opcode", proc->opcode);
	set_number_member(w, object, "index", proc->index);
	set_member(w, object, "parameters", params);
	set_flag_member(w, object, "split", proc->split);
	set_flag_member(w, object, "multi", proc->multi);
	set_text_member(w, object, "stub", proc->own_stub);
	set_text_member(w, object, "doc", proc->doc);
	set_place_members(w, object, &proc->place);
	return object;
}

static json_t *make_package_object(struct json_writer *w, const struct xg_package *package)
{
	json_t *object = json_object(), *procs = json_array();

	for (size_t i = 0; i < package->proc_count; i++)
		append_element(w, procs, make_proc_object(w, package->procs[i]));
	set_text_member(w, object, "name", package->name);
	set_member(w, object, "statindex",
		   package->has_statindex ? json_integer(package->statindex) : json_null());
	set_member(w, object, "procedures", procs);
	set_place_members(w, object, &package->place);
	return object;
}

static json_t *make_constant_object(struct json_writer *w, const struct xg_item *item)
{
	json_t *object = json_object();

	set_text_member(w, object, "name", item->name);
	set_member(w, object, "value",
		   item->number ? json_integer(item->value) : make_text_value(item->string));
	set_text_member(w, object, "doc", item->doc);
	return object;
}

static json_t *make_constant_array(struct json_writer *w, const struct xg_file *file)
{
	json_t *array = json_array();

	for (size_t i = 0; i < file->item_count; i++)
		if (file->items[i].kind == XG_ITEM_CONST)
			append_element(w, array, make_constant_object(w, &file->items[i]));
	return array;
}

static json_t *make_file_object(struct json_writer *w, const struct xg_file *file)
{
	json_t *object = json_object(), *types = json_array(), *packages = json_array();
	json_t *inputs = json_array();

	for (size_t i = 0; i < file->type_count; i++)
		append_element(w, types, make_type_object(w, file->types[i]));
	for (size_t i = 0; i < file->package_count; i++)
		append_element(w, packages, make_package_object(w, file->packages[i]));
	for (size_t i = 0; i < file->input_count; i++)
		append_element(w, inputs, make_text_value(file->inputs[i]));
	set_number_member(w, object, "format", FORMAT);
	set_member(w, object, "inputs", inputs);
	set_member(w, object, "constants", make_constant_array(w, file));
	set_member(w, object, "types", types);
	set_member(w, object, "packages", packages);
	return object;
}

char *xg_json(const struct xg_file *file, size_t *length)
{
	struct json_writer w = {.failed = false};
	json_t *root = make_file_object(&w, file);
	char *text = w.failed ? NULL : json_dumps(root, JSON_INDENT(2)), *line = NULL;

	json_decref(root);
	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	*length = line ? strlen(line) : 0;
	return line;
}
