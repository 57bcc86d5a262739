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
	const char *name = emit_param_name(e, param);

	if (param->direction == XG_IN && !emit_aggregate(&view))
		return name;
	return format_result(e, param);
}

static size_t count_params(const struct xg_proc *proc, enum xg_direction direction)
{
	size_t n = 0;

	for (size_t i = 0; i < proc->param_count; i++)
		n += (proc->params[i].direction & direction) != 0;
	return n;
}

static void emit_start_stub(struct emit *e, const struct xg_proc *proc)
{
	const char *s = emit_local(e, proc, "s"), *x = emit_format(e, "&%s.xdr", s);

	emit_line(e, "%s", emit_start_head(e, proc));
	emit_open(e, "{");
	emit_line(e, "struct rxw_rpc_stream %s;", s);
	emit_blank(e);
	emit_line(e, "rxw_rpc_writer(&%s, %s);", s, emit_local(e, proc, "call"));
	emit_line(e, "rxw_xdr_put_u32(%s, %s);", x, emit_opcode(e, proc));
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction & XG_IN)
			emit_put_param(e, param, x, format_start_argument(e, param));
	}
	emit_line(e, "return rxw_rpc_flush(&%s) ? 0 : RXW_RPC_CC_MARSHAL;", s);
	emit_close(e, "}");
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

	if (strlen(line) + 8 <= 100) {
		emit_line(e, "%s", line);
		return;
	}
	emit_check(e, call, "return RXW_RPC_CC_UNMARSHAL;");
	emit_line(e, "return 0;");
}

static void emit_end_stub(struct emit *e, const struct xg_proc *proc)
{
	const char *s = emit_local(e, proc, "s"), *x = emit_format(e, "&%s.xdr", s);
	const char *call = emit_local(e, proc, "call");
	size_t results = count_params(proc, XG_OUT), seen = 0;

	emit_line(e, "%s", emit_end_head(e, proc));
	emit_open(e, "{");
	if (!results) {
		emit_line(e, "(void)%s;", call);
		emit_line(e, "return 0;");
		emit_close(e, "}");
		return;
	}
	emit_line(e, "struct rxw_rpc_stream %s;", s);
	emit_blank(e);
	emit_line(e, "rxw_rpc_reader(&%s, %s, RXW_RPC_WHOLE, 0);", s, call);
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (!(param->direction & XG_OUT))
			continue;
		if (results == 1 && decoder_zeroes_param(param)) {
			emit_only_result(e,
					 emit_get_param_call(e, param, x, format_result(e, param)));
			emit_close(e, "}");
			return;
		}
		emit_get_param(e, param, x, format_result(e, param));
	}
	emit_open(e, "if (rxw_xdr_ok(%s))", x);
	emit_line(e, "return 0;");
	e->depth--;
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (!(param->direction & XG_OUT))
			continue;
		if (++seen < results || !decoder_zeroes_param(param))
			emit_clear_param(e, param, format_result(e, param));
	}
	assert(seen == results);
	emit_line(e, "return RXW_RPC_CC_UNMARSHAL;");
	emit_close(e, "}");
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

	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction == XG_IN)
			emit_list_add(&list, "", emit_param_name(e, param));
		else if (param->direction == XG_INOUT)
			emit_list_add(&list, emit_const_address(e, param),
				      name_saved_copy(e, proc, param));
	}
	return emit_list_end(&list);
}

/* Whether clearing the only result takes several statements. */
static bool clears_in_two_lines(const struct xg_proc *proc)
{
	for (size_t i = 0; i < proc->param_count; i++) {
		struct emit_view view = emit_param_view(&proc->params[i]);

		if ((proc->params[i].direction & XG_OUT) && emit_view_owns(&view) &&
		    view.form != EMIT_CALL)
			return true;
	}
	return false;
}

/* From the result of the beginning, the variable `code`, to the return. */
static void emit_blocking_body(struct emit *e, const struct xg_proc *proc)
{
	const char *call = emit_local(e, proc, "call"), *code = emit_local(e, proc, "code");
	const char *name = emit_proc_name(e, proc);

	for (size_t i = 0; i < proc->param_count; i++) {
		if (proc->params[i].direction == XG_INOUT)
			emit_saved_copy(e, proc, &proc->params[i], true);
	}
	emit_blank(e);
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction == XG_INOUT)
			emit_saved_copy(e, proc, param, false);
		if ((param->direction & XG_OUT) && owns_memory(param))
			emit_zero_param(e, param, format_result(e, param));
	}
	emit_open(e, "if (!%s) {", code);
	emit_line(e, "%s = %s%s(%s%s);", code, proc->start, name, call,
		  format_start_arguments(e, proc));
	emit_open(e, "if (!%s)", code);
	emit_line(e, "%s = %s%s(%s%s);", code, proc->end, name, call,
		  emit_arguments(e, proc, EMIT_END));
	e->depth--;
	emit_line(e, "%s = rxw_rpc_end(%s, %s, &%sinterface, %s);", code, call, code,
		  emit_package_name(e, proc->package), emit_function(e, proc));
	emit_close(e, "}");
	if (count_params(proc, XG_OUT)) {
		bool braces = count_params(proc, XG_OUT) > 1 || clears_in_two_lines(proc);

		emit_open(e, "if (%s)%s", code, braces ? " {" : "");
		for (size_t i = 0; i < proc->param_count; i++) {
			const struct xg_param *param = &proc->params[i];

			if (param->direction & XG_OUT)
				emit_clear_param(e, param, format_result(e, param));
		}
		e->depth--;
		if (braces)
			emit_line(e, "}");
	}
	emit_line(e, "return %s;", code);
	emit_close(e, "}");
}

/* The head of X_opt or X_pool, and the beginning of its call. */
static void emit_beginning(struct emit *e, const struct xg_proc *proc, enum emit_variant variant)
{
	bool pool = variant == EMIT_POOL;

	emit_line(e, "%s", emit_client_head(e, proc, variant));
	emit_open(e, "{");
	emit_line(e, "rxw_call *%s;", emit_local(e, proc, "call"));
	emit_line(e, "int32_t %s = rxw_rpc_begin%s(%s, %s, &%s);", emit_local(e, proc, "code"),
		  pool ? "_pool" : "", emit_local(e, proc, pool ? "pool" : "connection"),
		  emit_local(e, proc, "options"), emit_local(e, proc, "call"));
}

/* X_opt and X_pool share a function, run_X. */
static void emit_shared_stubs(struct emit *e, const struct xg_proc *proc)
{
	const char *call = emit_local(e, proc, "call"), *code = emit_local(e, proc, "code");
	const char *name = emit_proc_name(e, proc);

	emit_line(e, "static int32_t run_%s(rxw_call *%s, int32_t %s%s)", name, call, code,
		  emit_params(e, proc, EMIT_CLIENT));
	emit_open(e, "{");
	emit_blocking_body(e, proc);
	emit_blank(e);
	for (int variant = EMIT_OPT; variant <= EMIT_POOL; variant++) {
		emit_beginning(e, proc, (enum emit_variant)variant);
		emit_blank(e);
		emit_line(e, "return run_%s(%s, %s%s);", name, call, code,
			  emit_arguments(e, proc, EMIT_CLIENT));
		emit_close(e, "}");
		emit_blank(e);
	}
}

static void emit_blocking_stub(struct emit *e, const struct xg_proc *proc)
{
	if (e->options->pools) {
		emit_shared_stubs(e, proc);
	} else {
		emit_beginning(e, proc, EMIT_OPT);
		emit_blocking_body(e, proc);
		emit_blank(e);
	}
	emit_line(e, "%s", emit_client_head(e, proc, EMIT_PLAIN));
	emit_open(e, "{");
	emit_line(e, "return %s_opt(%s, NULL%s);", emit_proc_name(e, proc),
		  emit_local(e, proc, "connection"), emit_arguments(e, proc, EMIT_CLIENT));
	emit_close(e, "}");
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

	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction & XG_OUT)
			emit_list_add(&list, param->decl.shape == XG_FIXED ? "" : "&",
				      name_result_variable(e, proc, param));
	}
	return emit_list_end(&list);
}

static void emit_multi_reply(struct emit *e, const struct xg_proc *proc)
{
	const char *code = emit_local(e, proc, "code");
	bool any = false;

	for (size_t i = 0; i < proc->param_count; i++)
		any = any || (proc->params[i].direction & XG_OUT);
	if (any) {
		emit_open(e, "if (%s) {", code);
		for (size_t i = 0; i < proc->param_count; i++) {
			if (proc->params[i].direction & XG_OUT)
				emit_clear_param(e, &proc->params[i],
						 name_result_variable(e, proc, &proc->params[i]));
		}
		emit_close(e, "}");
	}
	emit_line(e, "%s(%s, %s, %s%s);", emit_local(e, proc, "reply"), emit_local(e, proc, "arg"),
		  emit_local(e, proc, "index"), code, format_result_arguments(e, proc));
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];
		struct emit_view view = emit_param_view(param);

		if ((param->direction & XG_OUT) && emit_view_owns(&view))
			emit_free_param(e, param, name_result_variable(e, proc, param));
	}
}

static void emit_multi_loop(struct emit *e, const struct xg_proc *proc)
{
	const char *code = emit_local(e, proc, "code"), *call = emit_local(e, proc, "call");
	const char *index = emit_local(e, proc, "index"), *multi = emit_local(e, proc, "multi");
	const char *step = emit_local(e, proc, "step"), *name = emit_proc_name(e, proc);

	emit_open(e, "for (;;) {");
	emit_line(e, "enum rxw_rpc_step %s = rxw_rpc_multi_next(%s, &%s, &%s, &%s);", step, multi,
		  index, call, code);
	for (size_t i = 0; i < proc->param_count; i++) {
		const struct xg_param *param = &proc->params[i];

		if (param->direction & XG_OUT)
			emit_line(e, "%s = %s;",
				  emit_variable(e, param, name_result_variable(e, proc, param)),
				  emit_initial(param));
	}
	emit_blank(e);
	emit_open(e, "if (%s == RXW_RPC_DONE)", step);
	emit_line(e, "break;");
	e->depth--;
	emit_open(e, "if (%s == RXW_RPC_START) {", step);
	emit_line(e, "%s = %s%s(%s%s);", code, proc->start, name, call,
		  emit_arguments(e, proc, EMIT_START));
	emit_line(e, "rxw_rpc_multi_started(%s, %s, %s);", multi, index, code);
	emit_line(e, "continue;");
	emit_close(e, "}");
	emit_open(e, "if (%s == RXW_RPC_REPLY) {", step);
	emit_line(e, "%s = %s%s(%s%s);", code, proc->end, name, call,
		  format_result_arguments(e, proc));
	emit_line(e, "%s = rxw_rpc_multi_ended(%s, %s, %s, &%sinterface, %s);", code, multi, index,
		  code, emit_package_name(e, proc->package), emit_function(e, proc));
	emit_close(e, "}");
	emit_multi_reply(e, proc);
	emit_close(e, "}");
}

/* The variables of the loop, which the caller declares among others. */
static void emit_multi_variables(struct emit *e, const struct xg_proc *proc)
{
	emit_line(e, "rxw_call *%s;", emit_local(e, proc, "call"));
	emit_line(e, "unsigned %s;", emit_local(e, proc, "index"));
	emit_line(e, "int32_t %s;", emit_local(e, proc, "code"));
	emit_blank(e);
}

static void emit_multi_end(struct emit *e, const struct xg_proc *proc)
{
	emit_multi_loop(e, proc);
	emit_line(e, "rxw_rpc_multi_destroy(%s);", emit_local(e, proc, "multi"));
	emit_line(e, "return 0;");
	emit_close(e, "}");
	emit_blank(e);
}

static void emit_multi_check(struct emit *e, const struct xg_proc *proc, const char *targets)
{
	emit_open(e, "if (!%s || (!%s && %s))", emit_local(e, proc, "reply"), targets,
		  emit_local(e, proc, "count"));
	emit_line(e, "return -RXW_EINVAL;");
	e->depth--;
}

/* multi_X_opt and multi_X_pool share a function, collect_X. */
static void emit_shared_multi(struct emit *e, const struct xg_proc *proc)
{
	const char *multi = emit_local(e, proc, "multi"), *name = emit_proc_name(e, proc);
	const char *reply = emit_local(e, proc, "reply"), *arg = emit_local(e, proc, "arg");

	emit_line(e, "static int collect_%s(struct rxw_rpc_multi *%s%s, %s_reply_fn %s, void *%s)",
		  name, multi, emit_params(e, proc, EMIT_MULTI), name, reply, arg);
	emit_open(e, "{");
	emit_multi_variables(e, proc);
	emit_check(e, multi, "return -RXW_ENOMEM;");
	emit_multi_end(e, proc);
	for (int variant = EMIT_OPT; variant <= EMIT_POOL; variant++) {
		bool pool = variant == EMIT_POOL;
		const char *targets = emit_local(e, proc, pool ? "pools" : "connections");

		emit_line(e, "%s", emit_multi_head(e, proc, (enum emit_variant)variant));
		emit_open(e, "{");
		emit_multi_check(e, proc, targets);
		emit_line(e, "return collect_%s(rxw_rpc_multi_create%s(%s, %s, %s)%s, %s, %s);",
			  name, pool ? "_pool" : "", targets, emit_local(e, proc, "count"),
			  emit_local(e, proc, "options"), emit_arguments(e, proc, EMIT_MULTI),
			  reply, arg);
		emit_close(e, "}");
		emit_blank(e);
	}
}

static void emit_multi(struct emit *e, const struct xg_proc *proc)
{
	const char *multi = emit_local(e, proc, "multi");
	const char *connections = emit_local(e, proc, "connections");
	const char *count = emit_local(e, proc, "count");

	if (e->options->pools) {
		emit_shared_multi(e, proc);
	} else {
		emit_line(e, "%s", emit_multi_head(e, proc, EMIT_OPT));
		emit_open(e, "{");
		emit_line(e, "struct rxw_rpc_multi *%s;", multi);
		emit_multi_variables(e, proc);
		emit_multi_check(e, proc, connections);
		emit_line(e, "%s = rxw_rpc_multi_create(%s, %s, %s);", multi, connections, count,
			  emit_local(e, proc, "options"));
		emit_check(e, multi, "return -RXW_ENOMEM;");
		emit_multi_end(e, proc);
	}
	emit_line(e, "%s", emit_multi_head(e, proc, EMIT_PLAIN));
	emit_open(e, "{");
	emit_line(e, "return multi_%s_opt(%s, %s, NULL%s, %s, %s);", emit_proc_name(e, proc),
		  connections, count, emit_arguments(e, proc, EMIT_MULTI),
		  emit_local(e, proc, "reply"), emit_local(e, proc, "arg"));
	emit_close(e, "}");
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
	emit_blank(e);
	emit_line(e, "const char *%scode_text(rxw_code code)", emit_package_name(e, package));
	emit_open(e, "{");
	emit_line(e, "switch (code) {");
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (!xg_code_text(item, text, sizeof(text)) || !xg_code_is_first(e->file, i))
			continue;
		emit_line(e, "case %s:", item->name);
		emit_string_return(e, *text ? text : item->name);
	}
	emit_line(e, "}");
	emit_line(e, "return rxw_code_text(code);");
	emit_close(e, "}");
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
		emit_blank(e);
		emit_start_stub(e, proc);
		emit_blank(e);
		emit_end_stub(e, proc);
		if (!proc->split) {
			emit_blank(e);
			emit_blocking_stub(e, proc);
		}
		if (proc->multi) {
			emit_blank(e);
			emit_multi(e, proc);
		}
		emit_forget(e);
	}
	for (size_t i = 0; emit_package(e, i); i++) {
		emit_code_text(e, emit_package(e, i));
		emit_forget(e);
	}
}
