/* SPDX-License-Identifier: BSD-2-Clause */
/* The header: types (rxgen.md 5.1), constants, prototypes, and comments for callers. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

static const char *make_include_guard(struct emit *e)
{
	char *name = (char *)emit_format(e, "%s_H", e->file->base);
	bool digit = isdigit((unsigned char)*name);

	for (char *at = name; *at; at++)
		*at = isalnum((unsigned char)*at) ? (char)toupper((unsigned char)*at) : '_';
	return digit || *name == '_' ? emit_format(e, "XG_%s", name) : name;
}

/* -- types ------------------------------------------------------------------------------------- */

/* Whether C knows the type before the item. */
static bool is_type_defined(const struct emit *e, const struct xg_type *type, size_t before)
{
	if (type->included)
		return true;
	for (size_t i = 0; i < before; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (item->kind == XG_ITEM_TYPE && item->type == type)
			return true;
	}
	return false;
}

/* "T *", or "struct T *" before the typedef. */
static const char *format_pointer_type(struct emit *e, const struct xg_decl *decl, size_t index)
{
	bool tag = decl->kind == XG_NAMED && !is_type_defined(e, decl->type, index);

	return emit_format(e, "%s%s *", tag ? "struct " : "", emit_c_type(decl));
}

/* A note on the values that C's type does not express, or "". */
static const char *describe_limit(struct emit *e, const struct xg_decl *decl)
{
	const char *bound = emit_bound(e, decl);

	if (decl->shape == XG_POINTER)
		return "or NULL";
	if (decl->shape != XG_COUNTED)
		return "";
	if (decl->kind == XG_STRING || decl->kind == XG_OPAQUE)
		return emit_format(e, "at most %s bytes", bound);
	return emit_format(e, "at most %s", bound);
}

static const char *join_notes(struct emit *e, const char *first, const char *second)
{
	if (!first || !*first)
		return second;
	if (!second || !*second)
		return first;
	return emit_format(e, "%s; %s", first, second);
}

/* A declaration as a member or, with the keyword "typedef ", a type. `note`: label of an arm. */
static void emit_type_member(struct emit *e, const char *keyword, const struct xg_decl *decl,
			     const char *note, size_t index)
{
	const char *type = emit_c_type(decl), *name = decl->name;
	const char *c_name = emit_member_name(e, name), *text;
	bool bytes = decl->kind == XG_OPAQUE && decl->shape == XG_COUNTED;
	bool counted = decl->shape == XG_COUNTED && decl->kind != XG_STRING;

	note = join_notes(e, note, decl->doc);
	if (counted && !(bytes && e->options->short_fields)) {
		emit_line(e, "%sstruct %s{", keyword,
			  *keyword ? emit_format(e, "%s ", c_name) : "");
		emit_commented(e, emit_format(e, "uint32_t %s;", emit_len(e, name)),
			       describe_limit(e, decl));
		emit_line(e, "%s%s;", format_pointer_type(e, decl, index), emit_val(e, name));
		emit_commented(e, emit_format(e, "} %s;", c_name), *keyword ? NULL : note);
		return;
	}
	if (counted)
		text = emit_format(e, "%sstruct rxw_opaque %s;", keyword, c_name);
	else if (decl->kind == XG_STRING)
		text = emit_format(e, "%schar *%s;", keyword, c_name);
	else if (decl->shape == XG_POINTER)
		text = emit_format(e, "%s%s%s;", keyword, format_pointer_type(e, decl, index),
				   c_name);
	else if (decl->shape == XG_FIXED)
		text = emit_format(e, "%s%s %s[%s];", keyword, type, c_name, emit_bound(e, decl));
	else
		text = emit_format(e, "%s%s %s;", keyword, type, c_name);
	emit_commented(e, text, join_notes(e, *keyword ? NULL : note, describe_limit(e, decl)));
}

static void emit_union_type(struct emit *e, const struct xg_type *type, size_t index)
{
	bool any = false;

	assert(type->what == XG_UNION);
	emit_line(e, "typedef struct %s {", type->name);
	emit_type_member(e, "", &type->discriminant, NULL, index);
	for (size_t i = 0; i < type->arm_count; i++)
		any = any || type->arms[i].decl.kind != XG_VOID;
	if (any) {
		emit_line(e, "union {");
		for (size_t i = 0; i < type->arm_count; i++) {
			const struct xg_arm *arm = &type->arms[i];
			const char *note = arm->text ? arm->text : "any other";

			if (arm->decl.kind != XG_VOID)
				emit_type_member(e, "", &arm->decl, note, index);
		}
		emit_line(e, "} %s;", emit_arms(e, type));
	}
	emit_line(e, "} %s;", type->name);
}

static void emit_enum_type(struct emit *e, const struct xg_type *type)
{
	assert(type->what == XG_ENUM);
	emit_line(e, "typedef int32_t %s;\nenum {", type->name);
	for (size_t i = 0; i < type->value_count; i++) {
		const struct xg_value *value = &type->values[i];

		emit_commented(e, emit_format(e, "%s = %d,", value->name, (int)value->value),
			       value->doc);
	}
	emit_line(e, "};");
}

static void emit_type(struct emit *e, const struct xg_item *item, size_t index)
{
	const struct xg_type *type = item->type;

	emit_blank(e);
	emit_comment(e, type->doc ? type->doc : item->doc);
	if (type->what == XG_TYPEDEF) {
		emit_type_member(e, "typedef ", &type->alias, NULL, index);
	} else if (type->what == XG_ENUM) {
		emit_enum_type(e, type);
	} else if (type->what == XG_UNION) {
		emit_union_type(e, type, index);
	} else {
		emit_line(e, "typedef struct %s {", type->name);
		for (size_t i = 0; i < type->member_count; i++)
			emit_type_member(e, "", &type->members[i], NULL, index);
		emit_line(e, "} %s;", type->name);
	}
	if (type->customized)
		emit_comment(e, "The application provides these functions.");
	emit_line(e,
		  "bool xdr_put_%s(struct rxw_xdr *x, const %s *v);\n"
		  "bool xdr_get_%s(struct rxw_xdr *x, %s *v);\n"
		  "void xdrfree_%s(%s *v);",
		  type->name, type->name, type->name, type->name, type->name, type->name);
	if (e->options->copies)
		emit_line(e, "bool xdrcopy_%s(%s *to, const %s *from);", type->name, type->name,
			  type->name);
}

/* -- packages ---------------------------------------------------------------------------------- */

static void emit_procedure_enums(struct emit *e, const struct xg_package *package)
{
	emit_comment(e, "Opcodes, and function numbers for statistics, in order of declaration.");
	emit_line(e, "enum {");
	for (size_t i = 0; i < package->proc_count; i++)
		emit_line(e, "%s = %d,", emit_opcode(e, package->procs[i]),
			  (int)package->procs[i]->opcode);
	emit_line(e, "};\nenum {");
	for (size_t i = 0; i < package->proc_count; i++)
		emit_line(e, "%s = %u,", emit_function(e, package->procs[i]),
			  package->procs[i]->index);
	emit_line(e, "};");
}

static void emit_package_constants(struct emit *e, const struct xg_package *package)
{
	const char *name = package->name;

	emit_blank(e);
	emit_raw(e, emit_format(e, "/* -- package %s -- */", name));
	emit_raw(e, "");
	if (package->has_statindex)
		emit_line(e, "#define %sSTATINDEX %u", name, (unsigned)package->statindex);
	if (!package->proc_count)
		return;
	emit_line(e,
		  "#define %sLOWEST_OPCODE %d\n"
		  "#define %sHIGHEST_OPCODE %d\n"
		  "#define %sNUMBER_OPCODES %zu\n"
		  "#define %sNO_OF_STAT_FUNCS %zu\n\n"
		  "extern const struct rxw_rpc_interface %sinterface;\n\n",
		  name, (int)package->lowest, name, (int)package->highest, name,
		  package->proc_count, name, package->proc_count, emit_package_name(e, package));
	emit_procedure_enums(e, package);
	if (e->options->statistics) {
		emit_blank(e);
		emit_comment(e, "Names by function index; of an opcode the name or NULL, and the "
				"index or -1.");
		emit_line(e,
			  "extern const char *const %sfunction_names[%sNO_OF_STAT_FUNCS];\n"
			  "const char *%sTranslateOpCode(int32_t opcode);\n"
			  "int %sOpCodeIndex(int32_t opcode);",
			  name, name, name, name);
	}
}

/* -- client ------------------------------------------------------------------------------------ */

static const char client_contract[] =
	"Client. Functions return 0, or the code of the call; then all results are zero. The\n"
	"caller frees results with xdrfree_TYPE(), strings with free(). Arguments remain the\n"
	"caller's. The result of an INOUT parameter overwrites the argument with its pointers,\n"
	"without freeing them.\n"
	"\n"
	"StartNAME encodes opcode and arguments on a call that the application has begun, and\n"
	"does not end the request. EndNAME decodes the results and does not end the call.\n"
	"Between the two the application may write and read bytes of its own. It ends the call\n"
	"with rxw_rpc_end(), which also reports it to observers, or rxw_call_end(). Both return\n"
	"the final code.";

static const char plain_contract[] =
	"\n\n"
	"NAME_opt is NAME with options of the call, such as its deadline; NULL: defaults.";

static const char pool_contract[] =
	"\n\n"
	"NAME_pool is NAME_opt on a pool: the call takes a free channel of any connection of the\n"
	"pool, and waits for one if all are busy.";

static const char multi_contract[] =
	"\n\n"
	"multi_NAME makes the same call on each connection, passes the results to `reply` in\n"
	"order of arrival, and frees them. It returns 0 after the last reply, or -RXW_ENOMEM or\n"
	"-RXW_EINVAL. multi_NAME_opt takes options; the deadline applies to each call.";

static const char multi_pool_contract[] = "\nmulti_NAME_pool is multi_NAME_opt on pools.";

/* Whether the file has a procedure with multi_NAME, or one with NAME. */
static bool has_procedure(const struct emit *e, bool multi)
{
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (item->kind == XG_ITEM_PROC && (multi ? item->proc->multi : !item->proc->split))
			return true;
	}
	return false;
}

static void emit_client_contract(struct emit *e)
{
	bool plain = has_procedure(e, false), multi = has_procedure(e, true);
	bool pools = e->options->pools;

	emit_comment(e,
		     emit_format(e, "%s%s%s%s%s", client_contract, plain ? plain_contract : "",
				 plain && pools ? pool_contract : "", multi ? multi_contract : "",
				 multi && pools ? multi_pool_contract : ""));
}

static void emit_client_prototypes(struct emit *e, const struct xg_item *item)
{
	const struct xg_proc *proc = item->proc;
	int last = e->options->pools ? EMIT_POOL : EMIT_OPT;

	emit_blank(e);
	emit_comment(e, proc->doc ? proc->doc : item->doc);
	emit_line(e, "%s;\n%s;", emit_start_head(e, proc), emit_end_head(e, proc));
	for (int i = EMIT_PLAIN; !proc->split && i <= last; i++)
		emit_line(e, "%s;", emit_client_head(e, proc, (enum emit_variant)i));
	if (!proc->multi)
		return;
	emit_stub(e, proc,
		  "typedef void (*$NAME_reply_fn)(void *$arg, unsigned $index, int32_t $code%s);",
		  emit_params(e, proc, EMIT_REPLY));
	for (int i = EMIT_PLAIN; i <= last; i++)
		emit_line(e, "%s;", emit_multi_head(e, proc, (enum emit_variant)i));
}

/* -- server ------------------------------------------------------------------------------------ */

static const char server_contract[] =
	"Server. A function returns 0, or a code that aborts the call; then no results are\n"
	"sent. The stub owns the arguments. Results are zero when the function is called;\n"
	"afterwards the stub frees them with free(), like INOUT parameters. A NULL member\n"
	"aborts with RXW_RPC_OPCODE.";

static const char reply_contract[] =
	"NAME_reply answers a call whose function has called rxw_call_defer() and returned\n"
	"RXW_RPC_DEFERRED, and frees the call; any thread. With a code other than 0 the results\n"
	"are not used. They remain the caller's. Returns the code of the call.";

static void emit_reply_prototypes(struct emit *e, const struct xg_package *package, bool first)
{
	if (first)
		emit_comment(e, reply_contract);
	for (size_t i = 0; i < package->proc_count; i++)
		if (!package->procs[i]->own_stub)
			emit_line(e, "%s;", emit_answer_head(e, package->procs[i]));
}

static void emit_handler_struct(struct emit *e, const struct xg_package *package, bool first)
{
	const char *name = emit_package_name(e, package);
	bool any = false;

	for (size_t i = 0; i < package->proc_count; i++)
		any = any || !package->procs[i]->own_stub;
	emit_blank(e);
	if (first)
		emit_comment(e, server_contract);
	if (any) {
		emit_line(e, "struct %shandlers {", name);
		for (size_t i = 0; i < package->proc_count; i++) {
			const struct xg_proc *proc = package->procs[i];

			if (!proc->own_stub)
				emit_stub(e, proc,
					  "int32_t (*%s)(void *$context, rxw_call *$call%s);",
					  emit_handler(e, proc),
					  emit_params(e, proc, EMIT_HANDLER));
		}
		emit_line(e, "};");
		emit_reply_prototypes(e, package, first);
	}
	emit_line(e, "struct %sservice {\nstruct rxw_rpc_service base;%s\n};", name,
		  any ? emit_format(e, "\nconst struct %shandlers *handlers;", name) : "");
	emit_comment(e, emit_format(e,
				    "A handler for rxw_service_add(). Its context is a struct "
				    "%sservice, which must outlive the service.",
				    name));
	emit_line(e, "int32_t %s%sExecuteRequest(rxw_call *call, void *service);",
		  e->options->prefix, package->name);
	for (size_t i = 0; i < package->proc_count; i++) {
		const struct xg_proc *proc = package->procs[i];

		if (!proc->own_stub)
			continue;
		emit_comment(e, emit_format(e, "The application's own stub of %s.",
					    emit_proc_name(e, proc)));
		emit_line(e, "int32_t %s(rxw_call *call, const void *service);", proc->own_stub);
	}
}

static void emit_code_prototype(struct emit *e, const struct xg_package *package)
{
	if (!xg_has_codes(e->file))
		return;
	emit_blank(e);
	emit_comment(e, "The text of a code of this interface, in English; of others that of "
			"rxw_code_text().\nStatic. Any thread.");
	emit_line(e, "const char *%scode_text(rxw_code code);", emit_package_name(e, package));
}

static const char type_contract[] =
	"For each type T: xdr_put_T() encodes and xdr_get_T() decodes a value. On failure both\n"
	"return false, and the cursor records it; xdr_get_T() then zeroes the value, with\n"
	"nothing to free. xdrfree_T() frees the memory of a value and zeroes it.";
static const char copy_contract[] =
	"xdrcopy_T() makes a deep copy, which xdrfree_T() frees. On failure, for lack of memory, it\n"
	"returns false, and the copy is zero. What `to` had before is not freed.";

/* -- the output -------------------------------------------------------------------------------- */

static void emit_constant_macro(struct emit *e, const struct xg_item *item,
				const struct xg_item *previous)
{
	if (!previous || previous->kind != XG_ITEM_CONST)
		emit_blank(e);
	emit_commented(e,
		       emit_format(e, *item->text == '-' ? "#define %s (%s)" : "#define %s %s",
				   item->name, item->text),
		       item->doc);
}

static void emit_header_item(struct emit *e, size_t index, bool *types, bool *procs)
{
	const struct xg_item *item = &e->file->items[index];
	const struct xg_item *previous = index ? item - 1 : NULL;

	switch (item->kind) {
	case XG_ITEM_CONST:
		emit_constant_macro(e, item, previous);
		break;
	case XG_ITEM_TYPE:
		if (!*types) {
			emit_blank(e);
			emit_comment(e, type_contract);
			if (e->options->copies)
				emit_comment(e, copy_contract);
		}
		*types = true;
		emit_type(e, item, index);
		break;
	case XG_ITEM_PACKAGE:
		emit_package_constants(e, item->package);
		break;
	case XG_ITEM_PROC:
		if (!*procs) {
			emit_blank(e);
			emit_client_contract(e);
		}
		*procs = true;
		emit_client_prototypes(e, item);
		break;
	default:
		emit_verbatim(e, index);
		break;
	}
}

void emit_header_output(struct emit *e)
{
	const struct xg_file *file = e->file;
	const char *name = make_include_guard(e);
	bool types = false, procs = false, first = true;

	emit_title(e, "types and procedures");
	emit_text(e, "#ifndef %s\n#define %s\n\n#include <rxwire/stub.h>\n", name, name);
	for (size_t i = 0; i < file->item_count; i++) {
		if (file->items[i].kind == XG_ITEM_HEADER)
			emit_raw(e, emit_format(e, "#include \"%s\"", file->items[i].text));
	}
	emit_blank(e);
	emit_text(e, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
	emit_forget(e);
	for (size_t i = 0; i < file->item_count; i++) {
		emit_header_item(e, i, &types, &procs);
		emit_forget(e);
		if (file->items[i].kind == XG_ITEM_LINE &&
		    (i + 1 == file->item_count || file->items[i + 1].kind != XG_ITEM_LINE))
			emit_blank(e);
	}
	for (size_t i = 0; emit_package(e, i); i++)
		emit_code_prototype(e, emit_package(e, i));
	for (size_t i = 0; emit_package(e, i); i++) {
		if (!emit_package(e, i)->proc_count)
			continue;
		emit_handler_struct(e, emit_package(e, i), first);
		first = false;
	}
	emit_blank(e);
	emit_text(e, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
}
