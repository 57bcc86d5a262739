/* SPDX-License-Identifier: BSD-2-Clause */
/* Client stubs: StartX, EndX, the blocking X and multi_X (rxgen.md 5.2, 5.3). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

/* An expression for a result, a parameter of EndX or X. */
static const char *format_result(struct emit *e, const struct xg_param *param)
{
	const char *name = emit_param_name(e, param);

	return param->decl.shape == XG_FIXED ? name : emit_format(e, "*%s", name);
}

static const char *format_start_argument(struct emit *e, const struct xg_param *param)
{
	struct emit_view view = emit_param_view(param);

	if (param->direction == XG_IN && !emit_aggregate(&view))
		return emit_param_name(e, param);
	return format_result(e, param);
}

static size_t count_results(const struct xg_proc *proc)
{
	size_t n = 0;

	xg_for_params(param, proc, XG_OUT)
		n++;
	return n;
}

static void emit_start_stub(struct emit *e, const struct xg_proc *proc)
{
	emit_stub(e, proc,
		  "\n%s\n{\n"
		  "struct rxw_rpc_stream $s;\n\n"
		  "rxw_rpc_writer(&$s, $call);\n"
		  "rxw_xdr_put_u32(&$s.xdr, $OPCODE);",
		  emit_start_head(e, proc));
	xg_for_params(param, proc, XG_IN)
		emit_put_param(e, param, emit_stub_format(e, proc, "&$s.xdr"),
			       format_start_argument(e, param));
	emit_stub(e, proc, "return rxw_rpc_flush(&$s) ? 0 : RXW_RPC_CC_MARSHAL;\n}");
}

/* Whether a decoder that fails zeroes the parameter. */
static bool decoder_zeroes_param(const struct xg_param *param)
{
	struct emit_view view = emit_param_view(param);

	return view.form == EMIT_CALL || view.form == EMIT_STRING || view.form == EMIT_BYTES;
}

/* Return the result of the only decoder, in one line if it fits. */
static void emit_only_result(struct emit *e, const char *call)
{
	const char *line = emit_format(e, "return %s ? 0 : RXW_RPC_CC_UNMARSHAL;", call);

	if (strlen(line) + 8 <= 100)
		emit_line(e, "%s\n}", line);
	else
		emit_line(e, "if (!%s)\n\treturn RXW_RPC_CC_UNMARSHAL;\nreturn 0;\n}", call);
}

static void emit_end_stub(struct emit *e, const struct xg_proc *proc)
{
	const char *x = emit_stub_format(e, proc, "&$s.xdr");
	size_t results = count_results(proc), seen = 0;

	emit_line(e, "\n%s\n{", emit_end_head(e, proc));
	if (!results) {
		emit_stub(e, proc, "(void)$call;\nreturn 0;\n}");
		return;
	}
	emit_stub(e, proc,
		  "struct rxw_rpc_stream $s;\n\n"
		  "rxw_rpc_reader(&$s, $call, RXW_RPC_WHOLE, 0);");
	xg_for_params(param, proc, XG_OUT) {
		if (results == 1 && decoder_zeroes_param(param)) {
			emit_only_result(e,
					 emit_get_param_call(e, param, x, format_result(e, param)));
			return;
		}
		emit_get_param(e, param, x, format_result(e, param));
	}
	emit_line(e, "if (rxw_xdr_ok(%s))\n\treturn 0;", x);
	xg_for_params(param, proc, XG_OUT) {
		if (++seen < results || !decoder_zeroes_param(param))
			emit_clear_param(e, param, format_result(e, param));
	}
	assert(seen == results);
	emit_line(e, "return RXW_RPC_CC_UNMARSHAL;\n}");
}

/* The variable for a copy of an INOUT argument, which the result overwrites. */
static const char *name_saved_copy(struct emit *e, const struct xg_proc *proc,
				   const struct xg_param *param)
{
	assert(param->direction == XG_INOUT);
	return emit_local(e, proc, emit_format(e, "%s_in", param->decl.name));
}

static bool owns_memory(const struct xg_param *param)
{
	struct emit_view view = emit_param_view(param);

	return emit_view_owns(&view);
}

static void emit_saved_copy(struct emit *e, const struct xg_proc *proc,
			    const struct xg_param *param, bool declare)
{
	const char *name = emit_param_name(e, param), *in = name_saved_copy(e, proc, param);
	struct emit_view view = emit_param_view(param);
	bool array = emit_is_array(&view);

	if (declare && array)
		emit_line(e, "%s;", emit_variable(e, param, in));
	else if (declare)
		emit_line(e, "%s = *%s;", emit_variable(e, param, in), name);
	else if (array)
		emit_line(e, "memcpy(%s, %s, sizeof(%s));", in, format_result(e, param), in);
}

/* The arguments with which X calls StartX. */
static const char *format_start_arguments(struct emit *e, const struct xg_proc *proc)
{
	struct emit_list list = {.e = e};

	xg_for_params(param, proc, XG_IN) {
		if (param->direction == XG_IN)
			emit_list_add(&list, "", emit_param_name(e, param));
		else
			emit_list_add(&list, emit_const_address(e, param),
				      name_saved_copy(e, proc, param));
	}
	return emit_list_end(&list);
}

/* Whether clearing the only result takes several statements. */
static bool clears_in_two_lines(const struct xg_proc *proc)
{
	xg_for_params(param, proc, XG_OUT) {
		struct emit_view view = emit_param_view(param);

		if (emit_view_owns(&view) && view.form != EMIT_CALL)
			return true;
	}
	return false;
}

/* From the result of the beginning, the variable `code`, to the return. */
static void emit_blocking_body(struct emit *e, const struct xg_proc *proc)
{
	bool braces = count_results(proc) > 1 || clears_in_two_lines(proc);

	xg_for_params(param, proc, XG_IN) {
		if (param->direction == XG_INOUT)
			emit_saved_copy(e, proc, param, true);
	}
	emit_blank(e);
	xg_for_params(param, proc, XG_OUT) {
		if (param->direction == XG_INOUT)
			emit_saved_copy(e, proc, param, false);
		if (owns_memory(param))
			emit_zero_param(e, param, format_result(e, param));
	}
	emit_stub(e, proc,
		  "if (!$code) {\n"
		  "$code = %s$NAME($call%s);\n"
		  "if (!$code)\n"
		  "\t$code = %s$NAME($call%s);\n"
		  "$code = rxw_rpc_end($call, $code, &%sinterface, $FUNCTION);\n"
		  "}",
		  proc->start, format_start_arguments(e, proc), proc->end,
		  emit_arguments(e, proc, EMIT_END), emit_package_name(e, proc->package));
	if (count_results(proc)) {
		emit_stub(e, proc, "if ($code)%s", braces ? " {" : "");
		e->depth += !braces;
		xg_for_params(param, proc, XG_OUT)
			emit_clear_param(e, param, format_result(e, param));
		e->depth -= !braces;
		if (braces)
			emit_line(e, "}");
	}
	emit_stub(e, proc, "return $code;\n}");
}

/* The head of X_opt or X_pool, and the beginning of its call. */
static void emit_beginning(struct emit *e, const struct xg_proc *proc, enum emit_variant variant)
{
	bool pool = variant == EMIT_POOL;

	emit_stub(e, proc,
		  "\n%s\n{\n"
		  "rxw_call *$call;\n"
		  "int32_t $code = rxw_rpc_begin%s(%s, $options, &$call);",
		  emit_client_head(e, proc, variant), pool ? "_pool" : "",
		  emit_local(e, proc, pool ? "pool" : "connection"));
}

/* With stubs for pools X_opt and X_pool share a function, run_X. */
static void emit_blocking_stub(struct emit *e, const struct xg_proc *proc)
{
	if (e->options->pools) {
		emit_stub(e, proc,
			  "\nstatic int32_t run_$NAME(rxw_call *$call, int32_t $code%s)\n{",
			  emit_params(e, proc, EMIT_CLIENT));
		emit_blocking_body(e, proc);
		for (int variant = EMIT_OPT; variant <= EMIT_POOL; variant++) {
			emit_beginning(e, proc, (enum emit_variant)variant);
			emit_stub(e, proc, "\nreturn run_$NAME($call, $code%s);\n}",
				  emit_arguments(e, proc, EMIT_CLIENT));
		}
	} else {
		emit_beginning(e, proc, EMIT_OPT);
		emit_blocking_body(e, proc);
	}
	emit_stub(e, proc, "\n%s\n{\nreturn $NAME_opt($connection, NULL%s);\n}",
		  emit_client_head(e, proc, EMIT_PLAIN), emit_arguments(e, proc, EMIT_CLIENT));
}

/* -- one procedure on many connections --------------------------------------------------------- */

/* The variable for a result. */
static const char *name_result_variable(struct emit *e, const struct xg_proc *proc,
					const struct xg_param *param)
{
	assert(param->direction & XG_OUT);
	if (param->direction == XG_OUT)
		return emit_param_name(e, param);
	return emit_local(e, proc, emit_format(e, "%s_out", param->decl.name));
}

/* ", &entries" of all results. */
static const char *format_result_arguments(struct emit *e, const struct xg_proc *proc)
{
	struct emit_list list = {.e = e};

	xg_for_params(param, proc, XG_OUT)
		emit_list_add(&list, param->decl.shape == XG_FIXED ? "" : "&",
			      name_result_variable(e, proc, param));
	return emit_list_end(&list);
}

static void emit_multi_reply(struct emit *e, const struct xg_proc *proc)
{
	if (count_results(proc)) {
		emit_stub(e, proc, "if ($code) {");
		xg_for_params(param, proc, XG_OUT)
			emit_clear_param(e, param, name_result_variable(e, proc, param));
		emit_line(e, "}");
	}
	emit_stub(e, proc, "$reply($arg, $index, $code%s);", format_result_arguments(e, proc));
	xg_for_params(param, proc, XG_OUT) {
		if (owns_memory(param))
			emit_free_param(e, param, name_result_variable(e, proc, param));
	}
}

static void emit_multi_loop(struct emit *e, const struct xg_proc *proc)
{
	emit_stub(e, proc,
		  "for (;;) {\n"
		  "enum rxw_rpc_step $step = rxw_rpc_multi_next($multi, &$index, &$call, &$code);");
	xg_for_params(param, proc, XG_OUT)
		emit_line(e, "%s = %s;",
			  emit_variable(e, param, name_result_variable(e, proc, param)),
			  emit_initial(param));
	emit_stub(e, proc,
		  "\n"
		  "if ($step == RXW_RPC_DONE)\n"
		  "\tbreak;\n"
		  "if ($step == RXW_RPC_START) {\n"
		  "$code = %s$NAME($call%s);\n"
		  "rxw_rpc_multi_started($multi, $index, $code);\n"
		  "continue;\n"
		  "}\n"
		  "if ($step == RXW_RPC_REPLY) {\n"
		  "$code = %s$NAME($call%s);\n"
		  "$code = rxw_rpc_multi_ended($multi, $index, $code, &%sinterface, $FUNCTION);\n"
		  "}",
		  proc->start, emit_arguments(e, proc, EMIT_START), proc->end,
		  format_result_arguments(e, proc), emit_package_name(e, proc->package));
	emit_multi_reply(e, proc);
	emit_stub(e, proc, "}\nrxw_rpc_multi_destroy($multi);\nreturn 0;\n}");
}

/* The variables of the loop, which the caller declares among others. */
#define MULTI_VARIABLES "rxw_call *$call;\nunsigned $index;\nint32_t $code;\n\n"

static void emit_multi_check(struct emit *e, const struct xg_proc *proc, const char *targets)
{
	emit_stub(e, proc, "if (!$reply || (!%s && $count))\n\treturn -RXW_EINVAL;", targets);
}

/* multi_X_opt and multi_X_pool share a function, collect_X. */
static void emit_shared_multi(struct emit *e, const struct xg_proc *proc)
{
	emit_stub(
		e, proc,
		"\nstatic int collect_$NAME(struct rxw_rpc_multi *$multi%s, $NAME_reply_fn $reply, "
		"void *$arg)\n{\n" MULTI_VARIABLES "if (!$multi)\n\treturn -RXW_ENOMEM;",
		emit_params(e, proc, EMIT_MULTI));
	emit_multi_loop(e, proc);
	for (int variant = EMIT_OPT; variant <= EMIT_POOL; variant++) {
		bool pool = variant == EMIT_POOL;
		const char *targets = emit_local(e, proc, pool ? "pools" : "connections");

		emit_line(e, "\n%s\n{", emit_multi_head(e, proc, (enum emit_variant)variant));
		emit_multi_check(e, proc, targets);
		emit_stub(e, proc,
			  "return collect_$NAME(rxw_rpc_multi_create%s(%s, $count, $options)%s, "
			  "$reply, $arg);\n}",
			  pool ? "_pool" : "", targets, emit_arguments(e, proc, EMIT_MULTI));
	}
}

static void emit_multi(struct emit *e, const struct xg_proc *proc)
{
	if (e->options->pools) {
		emit_shared_multi(e, proc);
	} else {
		emit_stub(e, proc, "\n%s\n{\nstruct rxw_rpc_multi *$multi;\n" MULTI_VARIABLES,
			  emit_multi_head(e, proc, EMIT_OPT));
		emit_multi_check(e, proc, emit_local(e, proc, "connections"));
		emit_stub(e, proc,
			  "$multi = rxw_rpc_multi_create($connections, $count, $options);\n"
			  "if (!$multi)\n\treturn -RXW_ENOMEM;");
		emit_multi_loop(e, proc);
	}
	emit_stub(e, proc,
		  "\n%s\n{\n"
		  "return multi_$NAME_opt($connections, $count, NULL%s, $reply, $arg);\n"
		  "}",
		  emit_multi_head(e, proc, EMIT_PLAIN), emit_arguments(e, proc, EMIT_MULTI));
}

/* -- the output --------------------------------------------------------------------------------- */

/* A string constant of C; bytes that are no printable ASCII characters are written as they are. */
static void emit_string_return(struct emit *e, const char *text)
{
	char line[2 * XG_CODE_TEXT + 16];
	int n = snprintf(line, sizeof(line), "\t\treturn \"");

	assert(strlen(text) < XG_CODE_TEXT);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			line[n++] = '\\';
		line[n++] = *text;
		/* no trigraphs */
		if (*text == '?' && text[1] == '?')
			line[n++] = '\\';
	}
	memcpy(line + n, "\";", 3);
	emit_raw(e, line);
}

static void emit_code_text(struct emit *e, const struct xg_package *package)
{
	char text[XG_CODE_TEXT];

	if (!xg_has_codes(e->file))
		return;
	emit_line(e, "\nconst char *%scode_text(rxw_code code)\n{\nswitch (code) {",
		  emit_package_name(e, package));
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (!xg_code_text(item, text, sizeof(text)) || !xg_code_is_first(e->file, i))
			continue;
		emit_line(e, "case %s:", item->name);
		emit_string_return(e, *text ? text : item->name);
	}
	emit_line(e, "}\nreturn rxw_code_text(code);\n}");
}

void emit_client_output(struct emit *e)
{
	emit_title(e, "client stubs");
	emit_raw(e, emit_format(e, "#include \"%s.h\"", e->file->base));
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_proc *proc = e->file->items[i].proc;

		if (emit_verbatim(e, i) || e->file->items[i].kind != XG_ITEM_PROC)
			continue;
		e->index = emit_local(e, proc, "i");
		emit_start_stub(e, proc);
		emit_end_stub(e, proc);
		if (!proc->split)
			emit_blocking_stub(e, proc);
		if (proc->multi)
			emit_multi(e, proc);
		emit_forget(e);
	}
	for (size_t i = 0; emit_package(e, i); i++) {
		emit_code_text(e, emit_package(e, i));
		emit_forget(e);
	}
}
