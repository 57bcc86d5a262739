/* SPDX-License-Identifier: BSD-2-Clause */
/* The outputs: which one is made, and that of XDR functions with the tables of names. */
#include <stdlib.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

/* The description of an interface, for statistics and messages. */
static void emit_interface_table(struct emit *e, const struct xg_package *package)
{
	const char *name = emit_package_name(e, package);

	emit_line(e, "\nstatic const struct rxw_rpc_function %srpc_functions[] = {", name);
	for (size_t i = 0; i < package->proc_count; i++) {
		const struct xg_proc *proc = package->procs[i];

		emit_row(e,
			 emit_format(e, "{%s, \"%s\"},", emit_opcode(e, proc),
				     emit_proc_name(e, proc)),
			 (int)i);
	}
	emit_line(e, "};\n\nconst struct rxw_rpc_interface %sinterface = {\n.name = \"%s\",", name,
		  package->name);
	if (package->has_statindex)
		emit_line(e, ".stat_index = %sSTATINDEX,", package->name);
	emit_line(e, ".count = %sNO_OF_STAT_FUNCS,\n.functions = %srpc_functions,\n%s};",
		  package->name, name,
		  package->dense && !e->options->no_errno_swap ? ".swap_errno = true,\n" : "");
}

/* -x */
static void emit_statistics_tables(struct emit *e, const struct xg_package *package)
{
	const char *name = package->name;

	emit_line(e, "\nconst char *const %sfunction_names[%sNO_OF_STAT_FUNCS] = {", name, name);
	for (size_t i = 0; i < package->proc_count; i++)
		emit_row(e, emit_format(e, "\"%s\",", emit_proc_name(e, package->procs[i])),
			 (int)i);
	emit_line(e,
		  "};\n\n"
		  "int %sOpCodeIndex(int32_t opcode)\n{\n"
		  "for (int i = 0; i < %sNO_OF_STAT_FUNCS; i++) {\n"
		  "if (%srpc_functions[i].opcode == opcode)\n"
		  "\treturn i;\n"
		  "}\n"
		  "return -1;\n"
		  "}\n\n"
		  "const char *%sTranslateOpCode(int32_t opcode)\n{\n"
		  "int i = %sOpCodeIndex(opcode);\n\n"
		  "return i < 0 ? NULL : %sfunction_names[i];\n"
		  "}",
		  name, name, emit_package_name(e, package), name, name, name);
}

static void emit_xdr_output(struct emit *e)
{
	emit_title(e, "XDR");
	emit_raw(e, emit_format(e, "#include \"%s.h\"", e->file->base));
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_type *type = e->file->items[i].type;

		if (emit_verbatim(e, i) || e->file->items[i].kind != XG_ITEM_TYPE ||
		    type->customized || e->options->tables_only)
			continue;
		emit_put(e, type);
		emit_get(e, type);
		emit_free(e, type);
		if (e->options->copies)
			emit_copy(e, type);
		emit_forget(e);
	}
	for (size_t i = 0; emit_package(e, i); i++) {
		const struct xg_package *package = emit_package(e, i);

		if (!package->proc_count)
			continue;
		emit_interface_table(e, package);
		if (e->options->statistics)
			emit_statistics_tables(e, package);
	}
}

bool xg_write(const struct xg_file *file, const struct xg_options *options, char **text,
	      size_t *length)
{
	struct emit e = {.file = file, .options = options};
	char *aligned = NULL;

	if (file->output == XG_HEADER)
		emit_header_output(&e);
	else if (file->output == XG_XDR)
		emit_xdr_output(&e);
	else if (file->output == XG_CLIENT)
		emit_client_output(&e);
	else
		emit_server_output(&e);
	if (!e.failed && e.text)
		aligned = emit_align(e.text);
	free(e.text);
	emit_forget(&e);
	*text = aligned;
	*length = aligned ? strlen(aligned) : 0;
	return aligned != NULL;
}
