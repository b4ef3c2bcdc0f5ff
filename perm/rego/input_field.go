package rego

import (
	"encoding/binary"
	"encoding/json"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// inputField is a part of the input document that the engine builds, compares
// and omits as a unit. The parts together are the document.
type inputField struct {
	path   string                                     // such as "access.resource.root"
	number int                                        // its place in the list of all parts
	term   func(*document, *perm.Request) *ast.Term   // nil result: missing
	key    func(*perm.Request, []byte) []byte         // nil: the value differs from call to call
	free   func(*perm.Request) (text json.RawMessage) // its members have any names
	text   func(*perm.Request) (s string, there bool) // the value of a text; nil for other parts
	list   func(*perm.Request) (list []string, there bool)
}

// parts returns every part. A field of perm.Request that is missing here is
// missing in the document. A test compares the two.
func parts() []inputField {
	list := append(contextParts(), toolParts()...)
	list = append(list, callParts()...)
	list = append(list, accessParts()...)
	for i := range list {
		list[i].number = i
	}
	return list
}

func contextParts() []inputField {
	return []inputField{
		text("principal.id", func(r *perm.Request) string { return r.Principal.ID }),
		text("principal.kind", func(r *perm.Request) string { return r.Principal.Kind }),
		texts("principal.roles", func(r *perm.Request) []string { return r.Principal.Roles }),
		optional(texts("principal.chain", func(r *perm.Request) []string { return r.Principal.Chain }),
			func(r *perm.Request) bool { return len(r.Principal.Chain) > 0 }),
		text("session.id", func(r *perm.Request) string { return r.Session.ID }),
		texts("session.labels", func(r *perm.Request) []string { return r.Session.Labels }),
		optional(texts("session.requires", func(r *perm.Request) []string { return r.Session.Requires }),
			func(r *perm.Request) bool { return len(r.Session.Requires) > 0 }),
		{path: "session.tools", term: (*document).tools},
		{path: "session.recent", term: (*document).recent},
		optional(inputField{path: "session.client", term: (*document).client, key: clientKey},
			func(r *perm.Request) bool { return r.Session.Client != nil }),
		optional(raw("session.data", func(r *perm.Request) json.RawMessage { return r.Session.Data }),
			func(r *perm.Request) bool { return len(r.Session.Data) > 0 }),
		{path: "session.history", term: (*document).history},
		text("txn.id", func(r *perm.Request) string { return r.Txn.ID }),
		passing(number("txn.calls", func(r *perm.Request) int { return r.Txn.Calls })),
		number("txn.depth", func(r *perm.Request) int { return r.Txn.Depth }),
		optional(inputField{path: "txn.effects", term: (*document).effects},
			func(r *perm.Request) bool { return r.Txn.Effects != nil }),
		optional(flag("txn.effects_cut", func(r *perm.Request) bool { return r.Txn.EffectsCut }),
			func(r *perm.Request) bool { return r.Txn.EffectsCut }),
		optional(inputField{path: "txn.totals", term: (*document).totals},
			func(r *perm.Request) bool { return r.Txn.Totals != nil }),
		text("purpose", func(r *perm.Request) string { return string(r.Purpose) }),
		{path: "time", term: (*document).time},
	}
}

func toolParts() []inputField {
	return []inputField{
		text("tool.name", func(r *perm.Request) string { return r.Tool.Name }),
		text("tool.version", func(r *perm.Request) string { return r.Tool.Version }),
		texts("tool.tags", func(r *perm.Request) []string { return r.Tool.Tags }),
		text("tool.digest", func(r *perm.Request) string { return r.Tool.Digest }),
		text("tool.provenance", func(r *perm.Request) string { return r.Tool.Provenance }),
		flag("tool.can_verify", func(r *perm.Request) bool { return r.Tool.CanVerify }),
		flag("tool.can_revert", func(r *perm.Request) bool { return r.Tool.CanRevert }),
		text("tool.confinement", func(r *perm.Request) string { return r.Tool.Confinement }),
		text("tool.coverage", func(r *perm.Request) string { return r.Tool.Coverage }),
		text("tool.destination", func(r *perm.Request) string { return r.Tool.Destination }),
		text("tool.grade", func(r *perm.Request) string { return r.Tool.Grade }),
		optional(number("tool.confidence", func(r *perm.Request) int { return r.Tool.Confidence }),
			func(r *perm.Request) bool { return r.Tool.Confidence != 0 }),
		flag("tool.idempotent", func(r *perm.Request) bool { return r.Tool.Idempotent }),
		text("tool.risk", func(r *perm.Request) string { return string(r.Tool.Risk) }),
		flag("tool.approval", func(r *perm.Request) bool { return r.Tool.Approval }),
	}
}

func callParts() []inputField {
	output := raw("output", func(r *perm.Request) json.RawMessage { return r.Output })
	return []inputField{
		passing(text("call.id", func(r *perm.Request) string { return r.Call.ID })),
		raw("call.args", func(r *perm.Request) json.RawMessage { return r.Call.Args }),
		text("call.effect_class", func(r *perm.Request) string { return r.Call.EffectClass }),
		flag("call.declared", func(r *perm.Request) bool { return r.Call.Declared }),
		number("call.batch.index", func(r *perm.Request) int { return r.Call.Batch.Index }),
		number("call.batch.count", func(r *perm.Request) int { return r.Call.Batch.Count }),
		optional(output, func(r *perm.Request) bool { return len(r.Output) > 0 }),
		optional(raw("call.script", scriptOf), func(r *perm.Request) bool { return r.Call.Script != nil }),
		optional(inputField{path: "call.prompt", term: (*document).prompt, key: promptKey},
			func(r *perm.Request) bool { return r.Call.Prompt != nil }),
		optional(inputField{path: "call.urls", term: (*document).urls, key: urlsKey},
			func(r *perm.Request) bool { return r.Call.URLs != nil }),
		optional(inputField{path: "call.values", term: (*document).values, key: valuesKey},
			func(r *perm.Request) bool { return r.Call.Values != nil }),
		optional(flag("call.values_cut", func(r *perm.Request) bool { return r.Call.ValuesCut }),
			func(r *perm.Request) bool { return r.Call.ValuesCut }),
		{path: "changes", term: (*document).changes},
	}
}

// scriptOf returns the JSON of the script facts, or nothing without a script.
func scriptOf(r *perm.Request) json.RawMessage {
	if r.Call.Script == nil {
		return nil
	}
	text, err := json.Marshal(r.Call.Script)
	if err != nil {
		return json.RawMessage("!") // invalid JSON, which the check refuses
	}
	return text
}

func accessParts() []inputField {
	list := []inputField{
		text("access.action", func(r *perm.Request) string { return string(r.Access.Action) }),
		flag("access.dynamic", func(r *perm.Request) bool { return r.Access.Dynamic }),
		optional(flag("access.user_provided", func(r *perm.Request) bool { return r.Access.UserProvided != nil && *r.Access.UserProvided }),
			func(r *perm.Request) bool { return r.Access.UserProvided != nil }),
		optional(inputField{path: "access.git", term: func(d *document, r *perm.Request) *ast.Term { return d.git(r.Access.Git) }, key: gitKey},
			func(r *perm.Request) bool { return r.Access.Git != nil }),
		text("access.resource.kind", func(r *perm.Request) string { return r.Access.Resource.Kind }),
		text("access.resource.text", func(r *perm.Request) string { return r.Access.Resource.Text }),
		optional(number("access.resource.port", func(r *perm.Request) int { return r.Access.Resource.Port }),
			func(r *perm.Request) bool { return r.Access.Resource.Port != 0 }),
		optional(texts("access.resource.segments", func(r *perm.Request) []string { return r.Access.Resource.Segments }),
			func(r *perm.Request) bool { return len(r.Access.Resource.Segments) > 0 }),
		optional(texts("access.resource.argv", func(r *perm.Request) []string { return r.Access.Resource.Argv }),
			func(r *perm.Request) bool { return len(r.Access.Resource.Argv) > 0 }),
	}
	for path, get := range map[string]func(*perm.Request) string{
		"access.method":             func(r *perm.Request) string { return r.Access.Method },
		"access.resource.root":      func(r *perm.Request) string { return r.Access.Resource.Root },
		"access.resource.path":      func(r *perm.Request) string { return r.Access.Resource.Path },
		"access.resource.name":      func(r *perm.Request) string { return r.Access.Resource.Name },
		"access.resource.ext":       func(r *perm.Request) string { return r.Access.Resource.Ext },
		"access.resource.scheme":    func(r *perm.Request) string { return r.Access.Resource.Scheme },
		"access.resource.host":      func(r *perm.Request) string { return r.Access.Resource.Host },
		"access.resource.database":  func(r *perm.Request) string { return r.Access.Resource.Database },
		"access.resource.table":     func(r *perm.Request) string { return r.Access.Resource.Table },
		"access.resource.statement": func(r *perm.Request) string { return r.Access.Resource.Statement },
		"access.resource.program":   func(r *perm.Request) string { return r.Access.Resource.Program },
		"access.resource.server":    func(r *perm.Request) string { return r.Access.Resource.Server },
		"access.resource.tool":      func(r *perm.Request) string { return r.Access.Resource.Tool },
	} {
		list = append(list, optional(text(path, get), func(r *perm.Request) bool { return get(r) != "" }))
	}
	return list
}

func text(path string, get func(*perm.Request) string) inputField {
	return inputField{
		path: path,
		term: func(_ *document, r *perm.Request) *ast.Term { return ast.StringTerm(get(r)) },
		key:  func(r *perm.Request, key []byte) []byte { return appendText(key, get(r)) },
		text: func(r *perm.Request) (string, bool) { return get(r), true },
	}
}

func texts(path string, get func(*perm.Request) []string) inputField {
	return inputField{
		path: path,
		term: func(d *document, r *perm.Request) *ast.Term { return d.list(get(r)) },
		list: func(r *perm.Request) ([]string, bool) { return get(r), true },
		key: func(r *perm.Request, key []byte) []byte {
			list := get(r)
			key = binary.AppendUvarint(key, uint64(len(list)))
			for _, s := range list {
				key = appendText(key, s)
			}
			return key
		},
	}
}

func flag(path string, get func(*perm.Request) bool) inputField {
	return inputField{
		path: path,
		term: func(_ *document, r *perm.Request) *ast.Term { return ast.InternedTerm(get(r)) },
		key: func(r *perm.Request, key []byte) []byte {
			if get(r) {
				return append(key, 1)
			}
			return append(key, 0)
		},
	}
}

func number(path string, get func(*perm.Request) int) inputField {
	return inputField{
		path: path,
		term: func(_ *document, r *perm.Request) *ast.Term { return ast.InternedTerm(get(r)) },
		key:  func(r *perm.Request, key []byte) []byte { return binary.AppendVarint(key, int64(get(r))) },
	}
}

// raw returns a part that holds any JSON. Its numbers are compared as written.
func raw(path string, get func(*perm.Request) json.RawMessage) inputField {
	return inputField{
		path: path,
		term: func(d *document, r *perm.Request) *ast.Term { return d.raw(get(r)) },
		key:  func(r *perm.Request, key []byte) []byte { return appendText(key, get(r)) },
		free: get,
	}
}

// passing marks a part that differs from call to call: no key holds it.
func passing(p inputField) inputField {
	p.key = nil
	return p
}

// optional makes a part optional: the document omits it if there returns false.
// In a key, a missing part differs from every value.
func optional(p inputField, there func(*perm.Request) bool) inputField {
	term, key, text, list := p.term, p.key, p.text, p.list
	p.term = func(d *document, r *perm.Request) *ast.Term {
		if !there(r) {
			return nil
		}
		return term(d, r)
	}
	if key != nil {
		p.key = func(r *perm.Request, to []byte) []byte {
			if !there(r) {
				return append(to, 0)
			}
			return key(r, append(to, 1))
		}
	}
	if text != nil {
		p.text = func(r *perm.Request) (string, bool) {
			s, _ := text(r)
			return s, there(r)
		}
	}
	if list != nil {
		p.list = func(r *perm.Request) ([]string, bool) {
			texts, _ := list(r)
			return texts, there(r)
		}
	}
	return p
}

// appendText appends the length of a text and the text, so that no two
// sequences of texts have the same key.
func appendText[T ~string | ~[]byte](key []byte, text T) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}
